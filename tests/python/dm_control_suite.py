"""dm_control beside ours: its environments on this MuJoCo, and its state made ours.

``python tests/python/dm_control_suite.py`` (``make parity NAME=suites``) compares every task for
1,000 steps from copied states, and 2,000 starts as samples, and writes down how many numbers were
equal and how likely the starts are. It goes on where it stopped.
"""

import copy
from typing import Any

import counts
import mujoco
import numpy as np
from distributions import Starts, assert_distributed_alike

import pyfastenv
from pyfastenv.suites import DM_CONTROL
from pyfastenv.tasks.pool.explain import replay_env

NUM_STARTS = 2_000
SIGNIFICANCE = 1e-3  # of one task's starts, if the distributions are equal


def load(env_id: str, seed: int = 0) -> Any:
    """dm_control's own environment of an id."""
    mend()
    from dm_control import suite

    return suite.load(*DM_CONTROL[env_id], task_kwargs={"random": seed})


def mend() -> None:
    """dm_control 1.0.50 asks for arrays of mjModel and mjData that MuJoCo 4 has no more."""
    from dm_control.mujoco.wrapper.mjbindings import sizes

    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    for struct, sample in (("mjmodel", model), ("mjdata", mujoco.MjData(model))):
        table = sizes.array_sizes[struct]
        for name in [name for name in table if not hasattr(sample, name)]:
            del table[name]


def copy_state(envs: Any, theirs: Any) -> dict[str, Any]:
    """Brings dm_control's environment to where ours is, at an episode's start.

    The state, and what ours keeps of the model for itself. Returns dm_control's observation.
    """
    theirs.reset()  # what its task keeps in Python, and the count of steps
    task = copy.copy(envs.task)
    object.__setattr__(task, "model", copy.copy(envs.task.model))
    plain = replay_env(task, envs._layout, envs._core.row(0), np.random.default_rng())
    physics = theirs.physics
    for name in task.randomise:
        getattr(physics.model, name)[:] = getattr(plain.task.model, name)
    integration = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(task.model, integration))
    mujoco.mj_getState(task.model, plain.data, state, integration)
    mujoco.mj_setState(physics.model.ptr, physics.data.ptr, state, integration)
    physics.after_reset()
    return dict(theirs.task.get_observation(physics))


def flat(observation: dict[str, Any]) -> Any:
    return np.concatenate([np.ravel(value) for value in observation.values()])


def make(env_id: str, **kwargs: Any) -> Any:
    return pyfastenv.make_vec(env_id, 1, num_threads=1, autoreset_mode="Disabled", **kwargs)


def compare(env_id: str, num_steps: int, seed: int = 0, restart_every: int = 250) -> int:
    """Runs both under the same actions; returns how many numbers were compared, all equal.

    Both start anew, from our start, at the end of an episode and every so many steps.
    """
    envs, theirs = make(env_id, max_episode_steps=0), load(env_id)
    assert envs.task.frame_skip == theirs._n_sub_steps
    limit = envs.task.max_episode_steps
    assert (np.inf if limit is None else limit) == theirs._step_limit
    space, spec = envs.single_action_space, theirs.action_spec()
    finite = np.isfinite(space.low)
    np.testing.assert_array_equal(space.low[finite], spec.minimum[finite])
    np.testing.assert_array_equal(space.high[finite], spec.maximum[finite])
    rng = np.random.default_rng(seed)
    low, high = np.where(finite, space.low, -1.0), np.where(finite, space.high, 1.0)
    compared, ended = 0, True
    for step in range(num_steps):
        where = f"{env_id}, step {step}"
        if ended or step % restart_every == 0:
            obs, _ = envs.reset(seed=seed if step == 0 else None)
            np.testing.assert_array_equal(obs[0], flat(copy_state(envs, theirs)), f"{where}: reset")
        action = rng.uniform(1.1 * low, 1.1 * high)
        obs, rewards, terminations, _, infos = envs.step(action[None])
        assert not infos.get("diverged", [False])[0], where
        result = theirs.step(action)
        np.testing.assert_array_equal(obs[0], flat(result.observation), f"{where}: observation")
        assert rewards[0] == result.reward, f"{where}: reward {rewards[0]} != {result.reward}"
        assert terminations[0] == (result.last() and result.discount == 0.0), where
        compared += obs.size + 2
        ended = terminations[0] or result.last()
    return compared


def starts(env_id: str, count: int) -> tuple[Starts, Starts]:
    """First observations and states, ours and dm_control's, (count, size), of unrelated seeds."""
    envs = pyfastenv.make_vec(env_id, count, infos=False)
    obs, _ = envs.reset(seed=5)
    model = envs.task.model
    data = mujoco.MjData(model)
    integration = mujoco.mjtState.mjSTATE_INTEGRATION
    size = mujoco.mj_stateSize(model, integration)
    ours, theirs = [], []
    for i in range(count):
        mujoco.mj_setState(model, data, envs._core.row(i)[0][:size], integration)
        ours.append(np.concatenate([obs[i], data.qpos, data.qvel, data.act]))
    single = load(env_id, seed=12_345)
    for _ in range(count):
        observation = flat(single.reset().observation)
        theirs.append(np.concatenate([observation, single.physics.get_state()]))
    return np.stack(ours), np.stack(theirs)


def measure(env_id: str, num_steps: int) -> dict[str, Any]:
    """A row of the table."""
    return {
        "numbers": compare(env_id, num_steps, seed=1),
        "differences": 0,
        "starts": NUM_STARTS,
        "p_times_tests": assert_distributed_alike(*starts(env_id, NUM_STARTS), SIGNIFICANCE),
    }


if __name__ == "__main__":
    counts.run("dm_control_parity", DM_CONTROL, measure, __doc__, significance=SIGNIFICANCE)
