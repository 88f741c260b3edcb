"""Own tasks by id, by place, by entry point; one environment; Discrete actions; pictures."""

import os
import sysconfig
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from parity import assert_same
from scripts import run_script

import pyfastenv

XML = """<mujoco><worldbody><light pos="0 0 3"/><body>
  <joint name="slide" type="slide" axis="1 0 0"/><geom name="box" type="box" size=".1 .1 .1"/>
  </body></worldbody>
  <actuator><motor joint="slide" ctrlrange="-1 1"/></actuator></mujoco>"""


class Slider(pyfastenv.Task):
    model = XML
    max_episode_steps = 7
    force = 0.5
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, data, rng):
        data.qpos[0] = rng.uniform(-0.1, 0.1)

    def control(self, action, ctrl):
        ctrl[0] = self.force * (action - 1)

    def step(self, data):
        self.simulate(data)
        return -abs(data.qpos[0]), False

    def observation(self, data, obs):
        obs["state"] = (data.qpos[0], data.qvel[0])


def other_step(self, data):
    self.simulate(data)
    return -2.0 * abs(data.qpos[0]), False


@pytest.fixture
def registered() -> str:
    env_id = "test/Slider-v0"
    if env_id not in gymnasium.registry:
        pyfastenv.register(Slider, id=env_id, force=0.25)
    return env_id


def test_all_ways_make_the_same_environments(registered: str) -> None:
    ways = [
        pyfastenv.make_vec(Slider, 3, force=0.25),
        pyfastenv.make_vec(f"{__name__}:Slider", 3, force=0.25),
        pyfastenv.make_vec(registered, 3),
        gymnasium.make_vec(registered, 3),
    ]
    actions = np.array([0, 1, 2])
    results = []
    for envs in ways:
        envs.reset(seed=5)
        results.append([envs.step(actions) for _ in range(10)])
    for other in results[1:]:
        assert_same(tuple(other), tuple(results[0]))
    assert results[0][6][3].all()  # truncated after 7 steps
    assert ways[2].spec is not None
    assert ways[2].spec.max_episode_steps == 7


def test_one_environment_as_gymnasium_makes_it(registered: str) -> None:
    env = gymnasium.make(registered)
    envs = pyfastenv.make_vec(registered, 1, autoreset_mode="Disabled")
    assert_same(env.reset(seed=1)[0], envs.reset(seed=1)[0][0])
    for step in range(7):
        obs, reward, terminated, truncated, _ = env.step(2)
        expected = envs.step(np.array([2]))
        assert_same(obs, expected[0][0])
        assert reward == expected[1][0]
        assert not terminated
        assert truncated == (step == 6)


def test_pictures(registered: str) -> None:
    envs = pyfastenv.make_vec(registered, 2, render_mode="rgb_array", width=64, height=48)
    envs.reset(seed=0)
    frames = envs.render()
    assert frames is not None
    assert frames[0].shape == (48, 64, 3)
    assert frames[0].std() > 0


def test_a_place_that_leads_nowhere_is_said() -> None:
    with pytest.raises(ImportError, match=r"no 'Slidr'; its tasks: .*Slider"):
        pyfastenv.make_vec(f"{__name__}:Slidr", 2)
    with pytest.raises(ModuleNotFoundError):
        pyfastenv.make_vec("no_such_module:Slider", 2)


def test_a_package_ships_tasks(tmp_path: Path) -> None:
    source = Path(__file__).read_text()
    text = source[source.index("XML =") : source.index("@pytest.fixture")]
    site = tmp_path / "site"
    info = site / "tiny_tasks-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-tasks\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[pyfastenv.tasks]\ntiny/Slider-v0 = tiny_tasks:Slider\n"
    )
    (site / "tiny_tasks.py").write_text(f"import gymnasium\nimport pyfastenv\n{text}")
    script = """
import sys, gymnasium, pyfastenv
assert 'tiny_tasks' not in sys.modules
envs = gymnasium.make_vec('tiny/Slider-v0', 2)
envs.reset(seed=0)
env = gymnasium.make('tiny/Slider-v0')
env.reset(seed=0)
print(sum(env.step(1)[3] for _ in range(7)))
"""
    environment = {**os.environ, "PYTHONPATH": f"{site}:{sysconfig.get_path('purelib')}"}
    assert run_script(script, env=environment) == "1\n"


def test_the_command_line_checks_and_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = f"{__name__}:Slider"
    from pyfastenv import cli

    assert cli.main(["check", place]) == 0
    options = ["--total-steps", "4096", "--num-envs", "8", "--run-dir", str(tmp_path / "run")]
    assert cli.main(["train", "ppo", "--env-id", place, *options]) == 0
    assert cli.main(["evaluate", str(tmp_path / "run"), "--episodes", "2"]) == 0
    # what has changed since is named: a run does not go on with another task
    changes: list[tuple[str, object, str]] = [
        ("force", 0.25, "its parameters"),
        ("step", other_step, "its code"),
        ("up_to_date", True, "its settings"),
    ]
    for name, value, changed in changes:
        monkeypatch.setattr(Slider, name, value)
        assert cli.main(["resume", str(tmp_path / "run"), "--total-steps", "8192"]) != 0
        said = " ".join(capsys.readouterr().err.split())
        assert f"{place} has changed since: {changed}; a new run can begin with" in said
        assert f"pyfastenv train ppo --env-id {place} --from {tmp_path}" in said
        monkeypatch.undo()
