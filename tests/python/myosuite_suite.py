"""MyoSuite beside ours, under the same seeds and actions.

``python tests/python/myosuite_suite.py`` (``make parity NAME=myosuite``) compares every id for
1,000 steps and writes down how many numbers were equal. It goes on where it stopped.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import counts
import gymnasium
import mujoco
import numpy as np
from dm_control_suite import mend as mend_dm_control

import pyfastenv
from pyfastenv.suites import myosuite_ids
from pyfastenv.suites.myosuite.base import myosuite_file

NAMES = [env_id.partition("/")[2] for env_id in myosuite_ids()]


def mend() -> None:
    """MyoSuite 2.11.6 asks for packages that films and logs need, and for MuJoCo 3.3's MjSpec."""
    mend_dm_control()
    flat = ModuleType("flatten_dict")
    flat.flatten = flat.unflatten = lambda nested, **_: dict(nested)  # type: ignore[attr-defined]
    sys.modules.setdefault("flatten_dict", flat)
    for name in ("skvideo", "skvideo.io", "git", "pink", "termcolor"):
        sys.modules.setdefault(name, mock.MagicMock())
    if not hasattr(mujoco.MjSpec, "detach_body"):
        mujoco.MjSpec.detach_body = mujoco.MjSpec.delete
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import myosuite  # noqa: F401


def load(name: str, seed: int) -> Any:
    """MyoSuite's own environment, drawing its starts from a seed.

    Of MyoDex's things the wheel has other models than EnvPool's package of files: it gets those.
    """
    mend()
    from myosuite.envs.myo import myodm

    arguments = {}
    if name.startswith("MyoHand"):
        file = myosuite_file("myosuite/envs/myo/assets/hand/myohand_object.xml")
        arguments["model_path"] = "/" + os.path.relpath(file, Path(myodm.__file__).parent)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env: Any = gymnasium.make(name, disable_env_checker=True, **arguments).unwrapped
    env.seed(seed)
    if hasattr(env, "ref"):  # what it tracks is drawn from the same stream
        env.ref.np_random = env.np_random
    return env


def compare(name: str, num_steps: int, *, length: int = 100, seed: int = 0) -> dict[str, Any]:
    """Runs both under the same seed and actions; every number must be equal.

    But for how far a thing of MyoDex's is turned, which MyoSuite has of eigenvectors: the reward
    and its term may differ by rounding, and are counted. Where physics diverges, ours ends the
    episode: such a step is counted, and not compared.

    Args:
        name: MyoSuite's, such as ``"myoElbowPose1D6MRandom-v0"``.
        num_steps: In all.
        length: Of an episode, at most.
        seed: Of starts and actions.
    """
    theirs = load(name, seed)
    ours = pyfastenv.make_vec(
        f"myosuite/{name}", 1, max_episode_steps=length, autoreset_mode="Disabled", num_threads=1
    )
    rng = np.random.default_rng(seed)
    size = theirs.sim.model.nu
    numbers = differences = ended = episodes = diverged = 0
    is_turned = name.startswith("MyoHand")
    terminated, since = True, 0
    hold = np.zeros(size)
    for step in range(num_steps):
        where = f"{name}, step {step}"
        if terminated or since == length:
            obs, _ = theirs.reset()
            mine, _ = ours.reset(seed=seed if step == 0 else None)
            np.testing.assert_array_equal(np.float32(mine[0]), obs, f"{where}: reset")
            numbers, episodes, since = numbers + obs.size, episodes + 1, 0
            hold = rng.uniform(-1.0, 1.0, size)
        # one episode at random, one that holds muscles, one of slow waves, one at rest
        wave = hold * np.sin(0.05 * since)
        noise = rng.uniform(-1.0, 1.0, size)
        action = (noise, hold, wave, np.zeros(size))[episodes % 4]
        obs, reward, terminated, _, infos = theirs.step(action)
        mine, rewards, terminations, _, my_infos = ours.step(action[None])
        since += 1
        if my_infos.get("diverged", [False])[0]:  # MyoSuite's goes on in the default pose
            assert theirs.sim.data.time == 0.0, where
            terminated, diverged = True, diverged + 1
            continue
        np.testing.assert_array_equal(np.float32(mine[0]), obs, where)
        assert terminations[0] == terminated, f"{where}: terminated"
        terms = {
            f"reward_{key}": weight * infos["rwd_dict"][key]
            for key, weight in theirs.rwd_keys_wt.items()
            if weight != 0.0 or f"reward_{key}" in my_infos
        }
        if not is_turned:
            terms["solved"] = infos["rwd_dict"]["solved"]
        pairs = {"reward": (rewards[0], reward)}
        pairs |= {key: (my_infos[key][0], float(value)) for key, value in terms.items()}
        for key, (got, expected) in pairs.items():
            if is_turned and key in ("reward", "reward_object"):
                differences += got != expected
                np.testing.assert_allclose(got, expected, 1e-12, 1e-15, err_msg=f"{where}: {key}")
            else:
                np.testing.assert_array_equal(got, expected, f"{where}: {key}")
        numbers, ended = numbers + obs.size + 1 + len(pairs), ended + terminated
    ours.close()
    theirs.close()
    return {
        "numbers": numbers,
        "episodes": episodes,
        "ended": ended,
        "differences": int(differences),
        **({"diverged": diverged} if diverged else {}),
    }


def measure(name: str, num_steps: int) -> dict[str, Any]:
    """A row of the table."""
    row = compare(name, num_steps, seed=1)
    gc.collect()  # MyoSuite's models hold each other
    return row


if __name__ == "__main__":
    counts.run("myosuite_parity", NAMES, measure, __doc__)
