"""MetaWorld beside ours, under the same tasks, seeds and actions.

``python tests/python/metaworld_suite.py`` (``make parity NAME=metaworld``) compares every id for
1,000 steps and writes down how many numbers were equal. It goes on where it stopped.
"""

import warnings
from typing import Any

import counts
import mujoco
import numpy as np

import pyfastenv
from pyfastenv.suites import METAWORLD

NAMES = list(METAWORLD)


def load(name: str, seed: int, *, partially_observable: bool = False) -> Any:
    """MetaWorld's own environment, drawing its starts from a seed."""
    mend()
    from metaworld.env_dict import ALL_V3_ENVIRONMENTS

    env = ALL_V3_ENVIRONMENTS[name]()
    env._freeze_rand_vec = False
    env._set_task_called = env.seeded_rand_vec = True
    env._partially_observable = partially_observable
    del env.sawyer_observation_space
    env.seed(seed)
    return env


def mend() -> None:
    """MetaWorld 3.1.1 writes eleven numbers of a weld, of which MuJoCo 4 has twelve."""
    from metaworld.sawyer_xyz_env import SawyerMocapBase

    def reset_mocap_welds(self: Any) -> None:
        welds = self.model.eq_type == int(mujoco.mjtEq.mjEQ_WELD)
        self.model.eq_data[welds, :11] = (0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 5)

    SawyerMocapBase.reset_mocap_welds = reset_mocap_welds


def compare(
    name: str, num_steps: int, *, length: int = 200, seed: int = 0, task: Any = None
) -> dict[str, Any]:
    """Runs both under the same seed and actions; every number must be equal.

    Args:
        name: MetaWorld's, such as ``"reach-v3"``.
        num_steps: In all.
        length: Of an episode, at most.
        seed: Of starts and actions.
        task: The numbers that every episode begins with; None: each has others.
    """
    from metaworld.policies import ENV_POLICY_MAP

    theirs, policy = load(name, seed), ENV_POLICY_MAP[name]()
    ours = pyfastenv.make_vec(
        f"metaworld/{name}", 1, max_episode_steps=length, autoreset_mode="Disabled", num_threads=1
    )
    if task is not None:
        theirs._freeze_rand_vec, theirs._last_rand_vec = True, task
        ours.reset_task(task[None])
    rng = np.random.default_rng(seed)
    numbers = episodes = 0
    most = 0.0
    obs: Any = None
    for step in range(num_steps):
        where = f"{name}, step {step}"
        if step % length == 0:
            obs, _ = theirs.reset()
            mine, _ = ours.reset(seed=seed if step == 0 else None)
            np.testing.assert_array_equal(mine[0], obs, f"{where}: reset")
            numbers, episodes = numbers + obs.size, episodes + 1
        action = rng.uniform(-1.1, 1.1, 4)
        if step // length % 2 == 0:
            with warnings.catch_warnings():  # of a great gain
                warnings.simplefilter("ignore")
                action = policy.get_action(obs) + rng.normal(0.0, 0.05, 4)
        obs, reward, _, _, infos = theirs.step(action)
        mine, rewards, terminations, truncations, my_infos = ours.step(action[None])
        np.testing.assert_array_equal(mine[0], obs, where)
        np.testing.assert_array_equal(rewards[0], reward, f"{where}: reward")
        assert not terminations[0] and truncations[0] == (step % length == length - 1)
        for key, value in infos.items():
            np.testing.assert_array_equal(my_infos[key][0], float(value), f"{where}: {key}")
        numbers += obs.size + 1 + len(infos)
        most = max(most, float(reward))
    ours.close()
    theirs.close()
    return {"numbers": numbers, "episodes": episodes, "most": most}


def measure(name: str, num_steps: int) -> dict[str, Any]:
    """A row of the table."""
    return {**compare(name, num_steps, seed=1), "differences": 0}


if __name__ == "__main__":
    counts.run("metaworld_parity", NAMES, measure, __doc__)
