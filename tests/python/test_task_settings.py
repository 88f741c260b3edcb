"""A task's settings are part of what its machine code and its runs are of."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import pyfastenv
from pyfastenv import TaskCodeError
from pyfastenv.tasks.pool.program import Program

XML = """<mujoco><option timestep="0.01"/><worldbody>
  <body mocap="true" pos="0 0 1"><geom size=".05" contype="0" conaffinity="0"/></body>
  <body><joint name="slide" type="slide" axis="1 0 0"/><geom size=".1" mass="1"/><site/></body>
  </worldbody><actuator><motor joint="slide" ctrlrange="-1 1"/></actuator></mujoco>"""
SCALE = 2.0


class Pulled(pyfastenv.Task):
    model = XML
    external_forces = True
    model_fields = ("site_pos",)
    held = pyfastenv.memory()

    def reset(self, data, rng):
        data.qpos[0] = rng.uniform(-0.1, 0.1)

    def control(self, ctrl):
        ctrl[:] = 0.25

    def step(self, data):
        self.simulate(data)
        return data.cacc[2, 5], False

    def observation(self, data, obs):
        obs["x"] = data.qpos
        obs["mocap"] = data.mocap_pos[0]


class Written(Pulled):
    def step(self, data):
        self.simulate(data)
        place = self.model.site_pos
        place[0, 0] = data.qpos[0]
        return place[0, 0], False


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYFASTENV_CACHE", str(tmp_path))


@pytest.mark.parametrize("first", [False, True])
def test_controls_of_mocap_bodies_are_compiled_in_or_not(first: bool) -> None:
    for moves_mocap in (first, not first):
        envs = pyfastenv.make_vec(Pulled, 2, moves_mocap=moves_mocap)
        plain = pyfastenv.debug(Pulled, moves_mocap=moves_mocap)
        for env in (envs, plain):
            env.reset(seed=0)
        expected = plain.step(np.zeros(1))
        obs, rewards, *_ = envs.step(np.zeros((2, 1)))
        np.testing.assert_array_equal(obs[0], expected[0])
        assert rewards[0] == expected[1]


@pytest.mark.parametrize(
    ("task", "less", "said"),
    [(Pulled, {"external_forces": False}, "data.cacc"), (Written, {"model_fields": ()}, "place")],
)
def test_what_is_no_longer_asked_for_is_an_error(
    task: Any, less: dict[str, Any], said: str
) -> None:
    pyfastenv.make_vec(task, 1).close()  # its code is kept
    with pytest.raises(TaskCodeError, match=said):
        pyfastenv.make_vec(task, 1, **less)


def facts(task: Any, **arguments: Any) -> dict[str, str]:
    return Program(task(**arguments)).facts


def test_facts_name_each_setting_that_differs() -> None:
    before = facts(Pulled)
    settings = {
        "up_to_date": True,
        "max_episode_steps": 7,
        "control_every": 1,
        "moves_mocap": True,
        "observation_dict": {"policy": "x", "critic": ("x", "mocap")},
        "action_space": gymnasium.spaces.Box(-2.0, 2.0, (1,)),
        "action_dtype": "float32",
    }
    for name, value in settings.items():
        after = facts(Pulled, **{name: value})
        assert before["its settings"] != after["its settings"], name
        assert facts(Pulled, **{name: value}) == after
    assert facts(Pulled, observation_dict=False, model_fields=["site_pos"]) == before
    lasting = type("Pulled", (Pulled,), {"held": pyfastenv.memory(lasting=True)})
    assert facts(lasting)["its settings"] != before["its settings"]


def test_facts_follow_what_stays_plain_python_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    class Twice(Pulled):
        def batch_step(self, obs, reward, terminated):
            return self.scaled(obs["x"][:, 0]), terminated

        def scaled(self, x):
            return twice(x)

        def compute_reward(self, achieved_goal, desired_goal, info):
            return achieved_goal[..., 0] * {1.0, 2.0}.pop()

    def twice(x):
        """Doubles."""
        return SCALE * x

    def again(x):
        """Multiplies by two."""
        return SCALE * x

    def thrice(x):
        """Doubles."""
        return SCALE * x * 1.5

    name = "its methods in plain Python"
    before = facts(Twice)[name]
    assert facts(Twice)[name] == before
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert facts(Twice)[name] != before
    monkeypatch.undo()
    twice.__code__, twice.__doc__ = again.__code__, again.__doc__
    assert facts(Twice)[name] == before
    twice.__code__, twice.__doc__ = thrice.__code__, thrice.__doc__
    assert facts(Twice)[name] != before
    changed = type("Twice", (Twice,), {"compute_reward": lambda self, achieved_goal, *_: 0.0})
    assert facts(changed)[name] != facts(Twice)[name]
