"""A task reads its own environment's mjData, of its own step, or is refused.

Pools whose mjData is poisoned before every step run by lanes and by ``mj_step``, on one thread and
on three, beside environments that have an mjData of MuJoCo's Python bindings each.
"""

from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
from parity import assert_same
from scripts import module_of

import pyfastenv
from pyfastenv import _core
from pyfastenv.tasks.frontend import vocabulary

NUM_ENVS = 11  # a group of lanes and a rest

WALKER = """<mujoco><option timestep=".004"/>
  <default><joint damping=".5" armature=".01"/></default>
  <worldbody><light pos="0 0 3"/><geom name="floor" type="plane" size="20 20 1"/>
    <body name="trunk" pos="0 0 .12"><freejoint/><camera name="eye"/>
      <geom name="back" type="capsule" fromto="-.2 0 0 .2 0 0" size=".07"/>
      <site name="imu" pos=".1 0 .02"/>
      <body name="leg" pos=".15 0 0"><joint name="hip" axis="0 1 0" range="-60 60"/>
        <geom name="shank" type="capsule" fromto="0 0 0 .05 0 -.25" size=".04"/>
        <site name="shin" pos=".05 0 -.25" size=".1"/></body>
    </body></worldbody>
  <tendon><fixed name="cord"><joint joint="hip" coef="2"/></fixed></tendon>
  <actuator><position name="servo" joint="hip" kp="20" kv=".5" ctrlrange="-1 1"/>
    <general name="slow" joint="hip" gainprm="4" dyntype="filter" dynprm=".03"/></actuator>
  <sensor>{sensors}</sensor></mujoco>"""
SENSORS = """<gyro name="gyro" site="imu"/><accelerometer name="acceleration" site="imu"/>
  <touch name="skin" site="shin"/><subtreelinvel name="drift" body="trunk"/>"""


class Walker(pyfastenv.Task):
    model = WALKER.format(sensors=SENSORS)
    frame_skip = 3

    def reset(self, data: Any, rng: Any) -> None:
        data.qpos[:] = self.init_qpos
        data.qvel[:] = 0.5 * rng.standard_normal(7)

    def step(self, data: Any, action: Any) -> tuple[Any, Any]:
        self.simulate(data)
        return data.qpos[2], data.qpos[2] < 0.05

    def observation(self, data: Any, obs: Any) -> None:
        obs["height"] = data.qpos[2]


class WalkerUpToDate(Walker):
    up_to_date = True


class Bare(Walker):
    model = WALKER.format(sensors="")


def derived() -> list[str]:
    """Arrays of mjData that a task of the walker may read, beyond the state."""
    sample = mujoco.MjData(mujoco.MjModel.from_xml_string(Walker.model))
    known: Any = _core.task_struct_layouts()["data"]  # type: ignore[attr-defined]
    left_out = vocabulary.STATE | vocabulary.EXTERNAL_FORCES | {*vocabulary.NEVER_KNOWN, "contact"}
    arrays = (name for name in known if isinstance(getattr(sample, name, None), np.ndarray))
    return [name for name in arrays if name not in left_out and getattr(sample, name).size > 0]


def written(folder: Path, base: str, observation: str, settings: str = "", step: str = "") -> Any:
    """A task like the walker that is in a file of its own, as the compiler wants it."""
    text = f"""
import mujoco
import numpy as np
from test_task_reads import {base}

class Reading({base}):
    {settings or "pass"}

    def observation(self, data, obs):
        obs["height"] = data.qpos[2]
        {observation}
"""
    if step:
        text += f"""
    def step(self, data, action):
        {step}
        return 0.0, False
"""
    return module_of(folder / "reading.py", text).Reading


def compare(task: Any, engines: tuple[str, ...]) -> np.ndarray:
    """Steps pools of all engines and threads beside plain Python; returns the observations."""
    kwargs: dict[str, Any] = {"autoreset_mode": "Disabled", "max_episode_steps": 0}
    pools = [
        pyfastenv.make_vec(task, NUM_ENVS, num_threads=threads, engine=engine, **kwargs)
        for engine in engines
        for threads in (1, 3)
    ]
    seen = []
    rng = np.random.default_rng(0)
    for episode in range(2):  # what an episode leaves behind is not the next one's
        plain = gymnasium.vector.SyncVectorEnv(
            [lambda: pyfastenv.debug(task)] * NUM_ENVS, autoreset_mode="Disabled"
        )
        expected = plain.reset(seed=5 + episode)[0]
        for pool in pools:
            assert_same(pool.reset(seed=5 + episode)[0], expected)
        for _ in range(12):
            actions = rng.uniform(-1, 1, (NUM_ENVS, 2))
            expected = plain.step(actions)[0]
            for pool in pools:
                assert_same(pool.step(actions)[0], expected)
            seen.append(expected)
    return np.stack(seen)


@pytest.mark.parametrize("base", ["Walker", "WalkerUpToDate"])
def test_every_array_is_this_environments(base: str, tmp_path: Path, poison: None) -> None:
    names = derived()
    assert len(names) > 50
    lines = [f"obs['{name}'] = np.ascontiguousarray(data.{name}).ravel()" for name in names]
    lines += ["obs['rows'] = data.nefc", "obs['contacts'] = data.ncon"]
    task = written(tmp_path, base, "\n        ".join(lines))
    seen = compare(task, ("mujoco",))
    assert np.isfinite(seen).all()
    assert len(np.unique(seen[..., 0])) > 200 and seen[..., -1].max() > 0


LANES_READ = [
    "obs['acceleration'] = data.qacc",
    "obs['sensors'] = data.sensordata",
    "obs['bodies'] = data.xpos.ravel()",
    "obs['servo'] = data.actuator_force",
    "obs['slow'] = data.act_dot",
    "obs['cord'] = data.ten_length",
    "obs['contacts'] = data.ncon",
    """depth = 0.0
        for i in range(data.ncon):
            contact = data.contact[i]
            depth += contact.dist * contact.friction[0] + contact.efc_address + contact.geom[1]
        obs['depth'] = depth""",
]
FORCES = """total = np.zeros(6)
        for i in range(data.ncon):
            force = np.zeros(6)
            mujoco.mj_contactForce(self.model, data, i, force)
            total += force
        obs['force'] = total"""


@pytest.mark.parametrize("forces", [False, True])
@pytest.mark.parametrize("up_to_date", [False, True])
def test_both_engines_give_it(forces: bool, up_to_date: bool, tmp_path: Path, poison: None) -> None:
    lines = list(LANES_READ)
    if forces and up_to_date:
        lines.append("mujoco.mj_forward(self.model, data)")  # without it they are refused
    if forces:
        lines.append(FORCES)
    base = "WalkerUpToDate" if up_to_date else "Walker"
    task = written(tmp_path, base, "\n        ".join(lines))
    engines = ("mujoco", "auto" if forces and up_to_date else "lanes")
    seen = compare(task, engines)
    if forces:
        assert (np.abs(seen[..., -6]) > 0).mean() > 0.2


def refusal(task: Any) -> str:
    """The error at the first step of two environments on one thread."""
    envs = pyfastenv.make_vec(task, 2, num_threads=1)
    envs.reset(seed=0)
    with pytest.raises(pyfastenv.EnvError) as caught:
        envs.step(np.zeros((2, 2)))
    return str(caught.value)


@pytest.mark.parametrize(
    ("base", "step", "said"),
    [
        # mj_step1 finds contacts; their forces are the next mj_step2's
        ("WalkerUpToDate", "self.simulate(data)", "forces of contacts that mj_step1 has found"),
        ("Walker", "self.simulate(data); mujoco.mj_step1(self.model, data)",
         "forces of contacts that mj_step1 has found"),
        # a step without physics leaves another environment's
        ("Walker", "if data.time < 0.0: self.simulate(data)", "is read before self.simulate"),
        ("Walker", "mujoco.mj_step(self.model, data, 0)", "is read before self.simulate"),
    ],
)  # fmt: skip
def test_contact_forces_that_nobody_has_computed_are_refused(
    base: str, step: str, said: str, tmp_path: Path
) -> None:
    message = refusal(written(tmp_path, base, FORCES, step=step))
    assert said in message and "reading.py:" in message, message


@pytest.mark.parametrize(
    ("base", "settings", "step", "said"),
    [
        ("Walker", "", "mujoco.mj_step1(self.model, data); y = data.qacc[0]",
         "data.qacc is computed by mj_step2"),
        ("Walker", "", "mujoco.mj_step1(self.model, data); y = data.sensordata[0]",
         "data.sensordata is computed by mj_step2"),
        ("Walker", "", "mujoco.mj_step1(self.model, data); y = data.sensor('skin').data[0]",
         "data.sensor(…).data is computed by mj_step2"),
        ("Bare", "external_forces = True",
         "mujoco.mj_forward(self.model, data); y = data.cfrc_ext[1, 0]",
         "data.cfrc_ext is computed by self.simulate alone"),
        ("Walker", "", "mujoco.mj_step2(self.model, data)",
         "mujoco.mj_step2 begins with is computed by mujoco.mj_step1"),
        ("Walker", "", "self.simulate(data); mujoco.mj_step2(self.model, data)",
         "mujoco.mj_step2 begins with is computed by mujoco.mj_step1"),
    ],
)  # fmt: skip
def test_what_half_a_step_has_not_computed_is_refused(
    base: str, settings: str, step: str, said: str, tmp_path: Path
) -> None:
    message = refusal(written(tmp_path, base, "pass", settings, step))
    assert said in message and "reading.py:" in message, message


def test_halves_of_a_step_are_a_step(tmp_path: Path, poison: None) -> None:
    halves = """for i in range(3):
            mujoco.mj_step1(self.model, data)
            data.ctrl[:] = action
            y = data.sensor('gyro').data[0]
            mujoco.mj_step2(self.model, data)"""
    lines = "\n        ".join([*LANES_READ, FORCES])
    compare(written(tmp_path, "Walker", lines, step=halves), ("mujoco",))


@pytest.mark.parametrize("name", sorted(vocabulary.NEVER_KNOWN))
def test_what_may_be_another_steps_is_refused(name: str, tmp_path: Path) -> None:
    sample = mujoco.MjData(mujoco.MjModel.from_xml_string(Walker.model))
    if not isinstance(getattr(sample, name, None), np.ndarray):
        pytest.skip("MuJoCo's Python bindings do not show it")
    task = written(tmp_path, "Walker", f"y = data.{name}.size")
    with pytest.raises(pyfastenv.TaskCodeError, match=rf"data\.{name} cannot be read: ") as caught:
        pyfastenv.make_vec(task, 2)
    assert "reading.py:" in str(caught.value)


def test_sums_over_subtrees_need_a_sensor(tmp_path: Path) -> None:
    for read in ("data.subtree_linvel[1, 0]", "data.body('trunk').subtree_angmom[0]"):
        with pytest.raises(pyfastenv.TaskCodeError, match="only computed for a sensor of it"):
            pyfastenv.make_vec(written(tmp_path, "Bare", f"obs['x'] = {read}"), 2)


@pytest.mark.parametrize(
    "physics",
    ["mujoco.mj_forward(self.model, data)", "mujoco.mj_step(self.model, data)",
     "self.simulate(data)"],
)  # fmt: skip
def test_control_runs_no_physics(physics: str, tmp_path: Path) -> None:
    write_control = f"""pass

    def control(self, data, action, ctrl):
        ctrl[:] = action
        if data.time > 0.01:
            {physics}
"""
    envs = pyfastenv.make_vec(written(tmp_path, "Walker", write_control), 2, num_threads=1)
    envs.reset(seed=0)
    envs.step(np.zeros((2, 2)))
    with pytest.raises(pyfastenv.EnvError, match="control may run no physics"):
        envs.step(np.zeros((2, 2)))
