"""gymnasium's plugin entry point: registers every environment as ``pyfastenv/<id>``.

gymnasium calls this while it is being imported, so nothing here may import gymnasium's parts
beyond its registration, nor anything heavy.
"""

from __future__ import annotations


def register_envs() -> None:
    """Registers ``pyfastenv/HalfCheetah-v5`` and the others for ``make_vec`` and ``make``."""
    from gymnasium.envs.registration import register, registry

    from pyfastenv import specs

    for info in specs.registry():
        env_id = f"pyfastenv/{info.id}"
        if env_id in registry:
            continue
        register(
            id=env_id,
            entry_point="pyfastenv.env:FastEnv",
            vector_entry_point="pyfastenv.vector_env:FastVectorEnv",
            max_episode_steps=info.max_episode_steps,
            reward_threshold=info.reward_threshold,
            kwargs={"env_id": info.id},
        )
