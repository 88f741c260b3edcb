"""The environments in gymnasium's registry, as ``pyfastenv/<id>``; done by ``import pyfastenv``."""

from __future__ import annotations

from gymnasium.envs.registration import register, registry

from pyfastenv.vector import specs


def register_envs() -> None:
    """Registers ``pyfastenv/HalfCheetah-v5`` and the others for ``make_vec`` and ``make``."""
    for info in specs.registry():
        env_id = f"pyfastenv/{info.id}"
        if env_id in registry:
            continue
        register(
            id=env_id,
            entry_point="pyfastenv.vector.env:FastEnv",
            vector_entry_point="pyfastenv.vector.vector_env:FastVectorEnv",
            max_episode_steps=info.max_episode_steps,
            reward_threshold=info.reward_threshold,
            kwargs={"env_id": info.id},
        )
