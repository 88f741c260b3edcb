"""A deployed policy does in plain MuJoCo, without pyfastenv, what it does in its task."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
from algorithms import small

import pyfastenv
from pyfastenv import cli
from pyfastenv.algorithms import ppo
from pyfastenv.publish import deploy, run_policy
from pyfastenv.runs.saved import evaluate_run, load_policy
from pyfastenv.tasks.language.noise import normal

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
XML = """<mujoco><option timestep="0.01" gravity="0 0 0"/><worldbody><body name="craft">
<joint name="x" type="slide" damping="1"/><joint name="y" type="slide" axis="0 1 0" damping="1"/>
<joint name="turn" axis="0 0 1" damping="0.5"/><geom size="0.3 0.2 0.1" type="box" mass="1"/>
<site name="imu"/></body></worldbody>
<actuator><motor name="a" joint="x"/><motor name="b" joint="y"/><motor name="c" joint="turn"/>
</actuator><sensor><gyro name="gyro" site="imu"/><velocimeter name="speed" site="imu"/></sensor>
</mujoco>"""


class Craft(pyfastenv.Task):
    """A hovercraft that is told a speed, the same in every episode."""

    model = XML
    frame_skip, max_episode_steps = 4, 60
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (3,), np.float64)
    observation_dict = {"policy": ("speed", "place", "past", "told"), "critic": ("told", "secret")}
    observation_noise = {"place": normal(0.01)}
    told = pyfastenv.command(low=(0.5, -0.2, 0.4), high=(0.5, -0.2, 0.4), every=(0.2, 0.5))
    action, past, misses = pyfastenv.memory(3), pyfastenv.memory(3), pyfastenv.memory(3)

    def reset(self, data, rng):
        data.qvel[:] = rng.uniform(-0.1, 0.1, 3)

    def control(self, action, ctrl):
        ctrl[:] = 0.3 * action + 0.1

    def step(self, data, action, info):
        self.past[:] = self.action
        self.action[:] = action
        self.simulate(data)
        speed, spin = data.sensor("speed").data, data.sensor("gyro").data
        self.misses[0] += 1.0
        self.misses[1] += np.sqrt(
            np.square(speed[0] - self.told[0]) + np.square(speed[1] - self.told[1])
        )
        self.misses[2] += abs(spin[2] - self.told[2])
        info["episode_velocity_error"] = self.misses[1] / self.misses[0]
        info["episode_turning_error"] = self.misses[2] / self.misses[0]
        return -abs(spin[2] - self.told[2]), False

    def observation(self, data, obs):
        obs["speed"] = 2.0 * data.sensor("speed").data
        obs["place"] = data.qpos - 0.1
        obs["past"] = self.past
        obs["told"] = self.told
        obs["secret"] = np.exp(data.qvel)


def test_the_program_follows_commands_as_evaluations_do(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    run, folder = tmp_path / "run", tmp_path / "deployed"
    ppo.train(small("ppo", env_id="test_deploy:Craft", run_dir=run, total_steps=300))
    assert cli.main(["export", str(run), "--deploy", str(folder)]) == 0
    assert "policy.onnx" in capfd.readouterr().out
    imported = re.findall(r"^ *(?:import|from) (\w+)", (folder / "run.py").read_text(), re.M)
    assert {*imported} - sys.stdlib_module_names == {"mujoco", "numpy", "onnxruntime"}
    spec = json.loads((folder / "policy.json").read_text())
    assert (spec["joints"], spec["action_scale"]) == (["x", "y", "turn"], [0.3] * 3)
    assert spec["observation"][1]["noise"]["high"] == 0.01
    assert [part["name"] for part in spec["observation"]] == ["speed", "place", "past", "told"]
    assert spec["observation"][0]["of"] == ["speed"] * 3
    assert [part["source"] for part in spec["observation"]][1:] == [
        *("qpos", "previous_action", "command"),
    ]

    def found(*options: str) -> list[float]:
        command = [sys.executable, str(folder / "run.py"), "--seconds", "2.4", *options]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert "episodes: 4, falls: 0" in out
        return [float(word) for word in out.splitlines()[-1].split() if "." in word]

    metrics = evaluate_run(run, 4).metrics()
    wanted = [metrics["eval/velocity_error"], metrics["eval/turning_error"]]
    assert found("--episodes", "4") == pytest.approx(wanted, rel=0.05)
    held = found("--episodes", "4", "--command", "-0.5", "0.2", "-0.4")
    assert max(held[0] / wanted[0], held[1] / wanted[1]) > 1.5  # another command counts

    def said(*command: str) -> str:
        program = [sys.executable, str(folder / "run.py"), "--seconds", "0.1", "--command"]
        result = subprocess.run([*program, *command], check=False, capture_output=True, text=True)
        return result.stdout + result.stderr

    assert "--command: expected 3 numbers, got 2" in said("1", "0")
    assert "trained with commands from [0.5, -0.2" in said("9", "0", "0")
    assert "trained" not in said("0.5", "-0.2", "0.4")
    assert sorted(path.name for path in folder.iterdir()) == [
        *("model.mjb", "policy.c", "policy.json", "policy.onnx", "run.py"),
    ]


class Strange(Craft):
    """An observation and a control that the program cannot compute."""

    bent = False

    def control(self, data, action, ctrl):
        ctrl[:] = 0.3 * action + self.bent * data.qpos

    def observation(self, data, obs):
        obs["told"] = self.told
        obs["phase"] = np.sin(data.time)


def test_what_the_program_cannot_compute_is_named(tmp_path: Path) -> None:
    task: Any = {"observation_dict": None, "observation_noise": None}
    said = r"obs\['phase'\] is not, scaled and shifted, of one of .*up_to_date"
    with pytest.raises(ValueError, match=said):
        deploy._describe(Strange(**task, told_high=(1.0, 1.0, 1.0)), range(4))
    with pytest.raises(ValueError, match="expected controls that are the actions, scaled"):
        deploy._describe(Strange(**task, bent=True), range(4))
    ppo.train(small("ppo", env_id="CartPole-v1", run_dir=tmp_path / "run", total_steps=300))
    with pytest.raises(ValueError, match=r"deploy: expected a task in Python.*got CartPole-v1"):
        deploy.deploy(tmp_path / "run", tmp_path / "deployed")
    assert not (tmp_path / "deployed").exists()


FILTERED = XML.replace(
    '<motor name="a" joint="x"/>',
    """<general name="a" joint="x"
  dyntype="filter" dynprm="0.3"/>""",
).replace(
    "<worldbody>",
    """<worldbody>
  <body name="goal" mocap="true" pos="0 0 1"/>""",
)


class Filtered(Craft):
    """Starts and sees what plain `mj_step` from positions and velocities would not have."""

    model = FILTERED
    up_to_date = True
    observation_noise = None
    observation_dict = None

    def reset(self, data, rng):
        data.qvel[:] = rng.uniform(-0.1, 0.1, 3)
        data.act[0] = rng.uniform(-1.0, 1.0)
        data.ctrl[:] = 0.5
        data.mocap_pos[0, 0] = rng.uniform(-1.0, 1.0)

    def observation(self, data, obs):
        obs["speed"] = data.sensor("speed").data
        obs["goal"] = data.body("goal").xpos[0]
        obs["force"] = data.actuator_force


def test_the_program_starts_and_sees_as_the_task_does(tmp_path: Path) -> None:
    plain = pyfastenv.debug(Filtered).unwrapped
    spec = json.loads(json.dumps(deploy._describe(plain.task, range(7))))
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (8, 3)).astype(np.float32)
    seen = []

    class Session:
        """onnxruntime's, of a policy that repeats actions."""

        def run(self, names: list[str], inputs: dict[str, Any]) -> list[Any]:
            seen.append(inputs["obs"][0])
            return [actions[len(seen) - 1][None]]

    options = SimpleNamespace(view=False, seconds=8 * spec["step"], command=None, exact=True)
    model = mujoco.MjModel.from_xml_string(FILTERED)
    run_policy.episode(spec, model, Session(), 0, options)
    obs, _ = plain.reset(seed=0)
    for action, row in zip(actions, seen, strict=True):
        np.testing.assert_allclose(row, obs, rtol=1e-6, atol=1e-7)
        obs = plain.step(action.astype(np.float64))[0]


class Thrice(Craft):
    def step(self, data, action):
        for _ in range(3):
            self.simulate(data)
        return 0.0, False


class Wider(Craft):
    stage = pyfastenv.curriculum(0, 1, over=(0, 100))
    told = pyfastenv.command(
        low=((-0.1, -0.2, -0.3), (-1.0, -2.0, -3.0)),
        high=((0.1, 0.2, 0.3), (1.0, 2.0, 3.0)),
        every=(0.2, 0.5),
        curriculum="stage",
    )


def test_steps_commands_and_noise_are_the_trainings(tmp_path: Path) -> None:
    plain: Any = {"observation_dict": None, "observation_noise": None}
    with pytest.raises(ValueError, match=r"one self.simulate\(data\), 0.04 s; .* took 0.12 s"):
        deploy._describe(Thrice(**plain), range(12))
    command = deploy._describe(Wider(**plain), range(9))["command"]
    assert (command["low"], command["high"]) == ([-1.0, -2.0, -3.0], [1.0, 2.0, 3.0])
    quiet = {"eval_env_kwargs": {"observation_noise": None}, "total_steps": 300}
    ppo.train(small("ppo", env_id="test_deploy:Craft", run_dir=tmp_path / "run", **quiet))
    assert deploy._task_of(load_policy(tmp_path / "run")).observation_noise["place"].high == 0.01
