"""Which pool a session drives: drawn from a seed, over all ids and modes."""

import random
from dataclasses import dataclass
from typing import Any

import pyfastenv

IDS = pyfastenv.env_ids()
META = ("AntDir", "AntVel", "AntGoal", "HalfCheetahDir", "HalfCheetahVel")  # not gymnasium's
MODES = ("NextStep", "SameStep", "Disabled")
# some of the arguments that change what is simulated, observed or reported
KWARGS: dict[str, list[dict[str, Any]]] = {
    "Ant-v5": [{"terminate_when_unhealthy": False}, {"include_cfrc_ext_in_observation": False}],
    "CartPole-v1": [{"sutton_barto_reward": True}],
    "HalfCheetah-v4": [{"exclude_current_positions_from_observation": False}],
    "HalfCheetah-v5": [{"frame_skip": 2}, {"ctrl_cost_weight": 0.3}],
    "Hopper-v5": [{"healthy_z_range": (0.9, 1.3)}, {"reset_noise_scale": 0.2}],
    "Humanoid-v5": [{"include_cinert_in_observation": False}],
    "Pendulum-v1": [{"g": 9.81}],
    "Swimmer-v5": [{"xml_file": "swimmer.xml"}],
}
CALLS_PER_SESSION = 1_500  # about; fewer where a step is expensive
EXPENSIVE = {"HumanoidStandup": 16, "Humanoid": 8, "Ant": 6, "Walker": 3, "Hopper": 2}


@dataclass(frozen=True)
class Settings:
    """A session's pool and how it is checked."""

    number: int  # of the session, in its run
    seed: int
    env_id: str
    num_envs: int
    num_threads: int
    mode: str
    limit: int  # max_episode_steps; 0: none
    obs_dtype: str | None
    copy: bool
    infos: bool
    against_gymnasium: bool  # else against pools of one
    torch: bool  # rollouts
    render: bool
    num_calls: int
    kwargs: dict[str, Any]

    @property
    def meta(self) -> bool:
        """Whether the environment has tasks."""
        return self.env_id.startswith(META)

    def reference_kwargs(self) -> dict[str, Any]:
        return {
            **self.kwargs,
            "autoreset_mode": self.mode,
            "max_episode_steps": self.limit,
            "obs_dtype": self.obs_dtype,
            "infos": self.infos,
        }

    def pool_kwargs(self) -> dict[str, Any]:
        return {
            **self.reference_kwargs(),
            "num_threads": self.num_threads,
            "copy": self.copy,
            "render_mode": "rgb_array" if self.render else None,
        }


def draw(
    seed: int, number: int, *, render: bool = False, calls_per_session: int = CALLS_PER_SESSION
) -> Settings:
    """The settings of the n-th session of a run: ids and modes in turn, the rest at random."""
    rng = random.Random(f"{seed} {number}")
    env_id = IDS[number % len(IDS)]
    mode = MODES[(number // len(IDS) + number) % len(MODES)]
    against_gymnasium = not env_id.startswith(META) and rng.random() < 0.25
    cost = next((cost for name, cost in EXPENSIVE.items() if env_id.startswith(name)), 1)
    num_calls = max(30, int(calls_per_session / cost * rng.choice([0.1, 0.5, 1.0, 1.5])))
    return Settings(
        number=number,
        seed=rng.getrandbits(32),
        env_id=env_id,
        num_envs=rng.choice(
            [1, 2, 3, 4, 5, 5, 9] + ([33] if cost == 1 and not against_gymnasium else [])
        ),
        num_threads=rng.choice([1, 1, 2, 3, 4]),
        mode=mode,
        limit=rng.choice([0, 1, 2, 3, 7, 20, 20, 100]),
        obs_dtype=None if against_gymnasium else rng.choice([None, None, "float32", "float64"]),
        copy=rng.random() < 0.5,
        infos=against_gymnasium or rng.random() < 0.8,
        against_gymnasium=against_gymnasium,
        torch=rng.random() < 0.4,
        render=render and rng.random() < 0.03,
        num_calls=num_calls // (2 if against_gymnasium else 1),
        kwargs=rng.choice([{}, *KWARGS.get(env_id, [])]),
    )
