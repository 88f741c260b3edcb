"""Models whose features keep state outside qpos and qvel: in the row, or refused with a sentence.

Every supported feature is compared with gymnasium, bit for bit, with more environments than
workers, and through a snapshot: what a worker's mjData still holds of another environment must not
matter.
"""

import ctypes
import itertools
import pathlib
from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np
import pytest
from parity import assert_same, make_gymnasium, step_both
from trajectories import action_table

import pyfastenv
from pyfastenv.errors import EnvError

ENV_ID = "HalfCheetah-v5"  # its formulas fit any model with a joint
NUM_ENVS = 5
STEPS = 60

POLE = """
<body name="cart" pos="0 0 1"><joint name="slide" type="slide" axis="1 0 0"/>
  <geom type="capsule" size=".1" fromto="-.1 0 0 .1 0 0" mass="1"/>
  <body name="pole"><joint name="hinge" axis="0 1 0" damping=".1"/>
    <geom type="capsule" size=".05" fromto="0 0 0 0 0 .6" mass="1"/></body></body>
"""
BALLS = "".join(
    f'<body pos="{i} 1 {0.2 + 0.1 * i}"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
    for i in range(3)
)


def model(
    *, options: str = "", bodies: str = "", before: str = "", actuator: str = "", after: str = ""
) -> str:
    """A cart with a pole in a small world, with something added."""
    motor = '<motor joint="slide" ctrlrange="-3 3" gear="10"/>'
    return f"""<mujoco><option timestep="0.01">{options}</option>{before}
      <worldbody><geom type="plane" size="9 9 1"/>{POLE}{bodies}</worldbody>
      <actuator>{actuator or motor}</actuator>{after}</mujoco>"""


PID = """<extension><plugin plugin="mujoco.pid"><instance name="pid">
  <config key="kp" value="40"/><config key="ki" value="40"/><config key="kd" value="4"/>
  <config key="slewmax" value="3"/><config key="imax" value="3"/></instance></plugin></extension>"""
TOUCH = """<sensor><plugin plugin="mujoco.sensor.touch_grid" objtype="site" objname="s">
  <config key="size" value="3 3"/><config key="fov" value="45 45"/>
  <config key="gamma" value="0"/><config key="nchannel" value="3"/></plugin></sensor>"""

SUPPORTED = {
    "mocap": model(bodies='<body mocap="true" pos="1 0 1"><geom size=".2"/></body>'),
    "delay": model(
        actuator='<motor joint="slide" ctrlrange="-3 3" nsample="8" delay="0.03" interp="linear"/>',
        after='<sensor><jointpos joint="hinge" nsample="4" delay="0.02"/></sensor>',
    ),
    "activation": model(
        actuator='<general joint="slide" ctrlrange="-3 3" dyntype="filterexact" dynprm="0.1"/>'
    ),
    "discrete": model(options="", bodies=BALLS).replace(
        "<option ", '<option integrator="discrete" '
    ),
    "islands": model(bodies=BALLS),
    "pid": model(
        before=PID,
        actuator='<plugin joint="slide" plugin="mujoco.pid" instance="pid" actdim="2"'
        ' ctrlrange="-3 3"/>',
    ),
    "touch_grid": model(
        before='<extension><plugin plugin="mujoco.sensor.touch_grid"/></extension>',
        bodies='<body pos="1 1 .1"><freejoint/><site name="s"/><geom size=".1"/></body>',
        after=TOUCH,
    ),
    "userdata": model(before='<size nuserdata="3"/>'),
}


@pytest.fixture
def write(tmp_path: pathlib.Path) -> Any:
    def write(xml: str) -> str:
        path = tmp_path / "model.xml"
        path.write_text(xml)
        return str(path)

    return write


def make(path: str, num_threads: int = 1) -> pyfastenv.FastVectorEnv:
    return pyfastenv.make_vec(
        ENV_ID, NUM_ENVS, num_threads=num_threads, xml_file=path,
        max_episode_steps=25,
    )  # fmt: skip


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("feature", SUPPORTED)
def test_supported_features_equal_gymnasium(feature: str, num_threads: int, write: Any) -> None:
    path = write(SUPPORTED[feature])
    ours = make(path, num_threads)
    theirs = make_gymnasium(ENV_ID, NUM_ENVS, "NextStep", 25, xml_file=path)
    assert_same(ours.reset(seed=0), theirs.reset(seed=0))
    step_both(ours, theirs, STEPS, where=feature)


@pytest.mark.parametrize("feature", SUPPORTED)
def test_snapshots_of_supported_features_are_complete(feature: str, write: Any) -> None:
    path = write(SUPPORTED[feature])
    ours, other = make(path, 3), make(path, 1)
    for envs, seed in ((ours, 0), (other, 9)):
        envs.reset(seed=seed)
        for actions in action_table(envs, 7, seed):
            envs.step(actions)
    other.set_state(ours.get_state())
    step_both(other, ours, 30, seed=1, where=feature)


def test_mocap_bodies_start_where_their_environment_has_them(write: Any) -> None:
    path = write(SUPPORTED["mocap"])
    ours = make(path, 2)
    theirs = make_gymnasium(ENV_ID, NUM_ENVS, "NextStep", 25, xml_file=path)
    field = ours.get_model_field("body_pos")
    field[:, -1, 0] = [0.2, 0.25, 0.3, 0.5, 1.0]  # the pole runs into some of them
    ours.set_model_field("body_pos", field)
    for env, values in zip(theirs.envs, field, strict=True):
        env.unwrapped.model.body_pos[:] = values  # type: ignore[attr-defined]
    assert_same(ours.reset(seed=0), theirs.reset(seed=0))
    step_both(ours, theirs, STEPS)


REFUSED = {
    "sleep": (
        model(options='<flag sleep="enable"/>', bodies=BALLS),
        r'lets bodies sleep.*<flag sleep="disable"/>',
    ),
    "ipc": (
        model(
            options='<flag ipc="enable"/>',
            bodies='<flexcomp name="f" type="grid" count="3 3 1" spacing=".1 .1 .1" pos="1 1 1"'
            ' radius=".02" mass="1" dim="2"><elasticity young="1e3" poisson=".1" thickness=".02"'
            ' elastic2d="stretch"/></flexcomp>',
        ).replace("<option ", '<option integrator="discrete" '),
        r'contact mode ipc.*<flag ipc="disable"/>',
    ),
}


@pytest.mark.parametrize("feature", REFUSED)
def test_unsupported_features_are_refused(feature: str, write: Any) -> None:
    xml, message = REFUSED[feature]
    path = write(xml)
    mujoco.MjModel.from_xml_path(path)  # MuJoCo takes it
    with pytest.raises(ValueError, match=message):
        make(path)
    # and with the flag off it runs
    make(write(xml.replace(f'{feature}="enable"', f'{feature}="disable"'))).reset(seed=0)


@pytest.fixture
def control_callback() -> Iterator[None]:
    mujoco.set_mjcb_control(lambda m, d: None)
    yield
    mujoco.set_mjcb_control(None)


def test_a_global_callback_is_refused(control_callback: None) -> None:
    with pytest.raises(ValueError, match=r"mjcb_control is set.*set_mjcb_control\(None\)"):
        pyfastenv.make_vec("Hopper-v5")


def test_a_global_callback_set_later_fails_the_step_and_nothing_else() -> None:
    envs = pyfastenv.make_vec("Hopper-v5", 3, num_threads=2)
    twin = pyfastenv.make_vec("Hopper-v5", 3)
    envs.reset(seed=0)
    twin.reset(seed=0)
    given = np.full((3, 3), 0.2, np.float32)
    mujoco.set_mjcb_control(lambda m, d: None)
    try:
        with pytest.raises(EnvError, match="mjcb_control is set"):
            envs.step(given)
    finally:
        mujoco.set_mjcb_control(None)
    for _ in range(5):
        assert_same(envs.step(given), twin.step(given))


NSTATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
INIT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
RUN = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)  # reset and compute


class Plugin(ctypes.Structure):
    """mjpPlugin (mjplugin.h); what a passive plugin does not need is null."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("nattribute", ctypes.c_int),
        ("attributes", ctypes.c_void_p),
        ("capabilityflags", ctypes.c_int),
        ("needstage", ctypes.c_int),
        ("nstate", NSTATE),
        ("nsensordata", ctypes.c_void_p),
        ("init", INIT),
        ("destroy", ctypes.c_void_p),
        ("copy", ctypes.c_void_p),
        ("reset", RUN),
        ("compute", RUN),
        ("others", ctypes.c_void_p * 8),
    )


def plugin_data_offset() -> int:
    """Where mjData has its pointer plugin_data [bytes]: two after tree_asleep (mjdata.h).

    The model has sensor data, so that the pointer before tree_asleep differs from it.
    """
    data = mujoco.MjData(mujoco.MjModel.from_xml_string(SUPPORTED["touch_grid"]))
    wanted = data.tree_asleep.ctypes.data
    words = itertools.count(data._address, 8)
    place = next(at for at in words if ctypes.c_uint64.from_address(at).value == wanted)
    return place + 16 - int(data._address)


def test_a_plugin_with_data_of_its_own_is_refused(write: Any) -> None:
    library = ctypes.CDLL(str(next(pathlib.Path(mujoco.__file__).parent.glob("libmujoco.*"))))
    offset = plugin_data_offset()

    def init(model: int, data: int, instance: int) -> int:
        array = ctypes.c_uint64.from_address(data + offset).value
        ctypes.c_uint64.from_address(array + 8 * instance).value = 1
        return 0

    plugin = Plugin(name=b"test.keeps_data", capabilityflags=4)
    plugin.nstate = NSTATE(lambda model, instance: 0)
    plugin.init = INIT(init)
    plugin.reset = plugin.compute = RUN(lambda *_: None)
    library.mjp_registerPlugin(ctypes.byref(plugin))
    path = write(
        model(
            before='<extension><plugin plugin="test.keeps_data"><instance name="x"/></plugin>'
            "</extension>",
            bodies='<body pos="1 1 1"><geom size=".1"/><plugin instance="x"/></body>',
        )
    )
    with pytest.raises(ValueError, match=r"plugin 'test.keeps_data' keeps data of its own"):
        make(path)
