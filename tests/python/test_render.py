"""Pictures: gymnasium's own, of the states the environments are in, and without touching them."""

import gc
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

# before anything imports mujoco or pygame
os.environ.setdefault("MUJOCO_GL", "egl")
os.environ.setdefault("PYOPENGL_PLATFORM", os.environ["MUJOCO_GL"])
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")

import gymnasium
import numpy as np
import pytest
from parity import make_gymnasium, random_actions

import pyfastenv

CLASSIC_IDS = ["CartPole-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0"]
CLASSIC_IDS += ["Pendulum-v1"]


needs_gl = pytest.mark.usefixtures("gl")
# how far a picture may be from gymnasium's
RENDERERS = {"mujoco": 1.0, "pyfastenv": 3.0}
renderers = pytest.mark.parametrize(("renderer", "most"), RENDERERS.items())


def make(env_id: str = "HalfCheetah-v5", num_envs: int = 2, **kwargs: Any) -> Any:
    if env_id not in CLASSIC_IDS:
        kwargs = {"width": 96, "height": 64, **kwargs}
    envs = pyfastenv.make_vec(env_id, num_envs, render_mode="rgb_array", **kwargs)
    envs.reset(seed=0)
    return envs


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """Mean absolute difference of two pictures, in 255ths."""
    assert a.shape == b.shape and a.dtype == b.dtype == np.uint8
    return float(np.abs(a.astype(int) - b.astype(int)).mean())


def assert_equals_gymnasium(env_id: str, num_envs: int, kwargs: dict[str, Any]) -> None:
    """Either renderer's pictures after a reset are gymnasium's."""
    theirs = make_gymnasium(env_id, num_envs, "NextStep", render_mode="rgb_array", **kwargs)
    theirs.reset(seed=0)
    expected = theirs.render()
    theirs.close()
    for renderer, most in RENDERERS.items():
        ours = make(env_id, num_envs, renderer=renderer, **kwargs)
        for frame, picture in zip(ours.render(), expected, strict=True):
            assert difference(frame, picture) < most, renderer
        ours.close()


def step_some(envs: Any, num_steps: int = 10) -> None:
    rng = np.random.default_rng(0)
    for _ in range(num_steps):
        envs.step(random_actions(envs.single_action_space, rng, envs.num_envs))


@needs_gl
def test_shapes_and_choice_of_environments() -> None:
    envs = make(num_envs=5)
    step_some(envs)
    frames = envs.render()
    assert isinstance(frames, tuple) and len(frames) == 5
    assert all(frame.shape == (64, 96, 3) and frame.dtype == np.uint8 for frame in frames)
    for a in range(5):
        for b in range(a):
            assert difference(frames[a], frames[b]) > 0.1
    chosen = envs.render(env_ids=[3, 1])
    assert len(chosen) == 2
    assert np.array_equal(chosen[0], frames[3]) and np.array_equal(chosen[1], frames[1])
    assert np.array_equal(envs.render(np.array([4]))[0], frames[4])
    envs.close()


@needs_gl
def test_tiled() -> None:
    envs = make(num_envs=5)
    frames = envs.render()
    picture = envs.render(tiled=True)
    assert picture.shape == (2 * 64, 3 * 96, 3) and picture.dtype == np.uint8
    for i, frame in enumerate(frames):
        y, x = divmod(i, 3)
        assert np.array_equal(picture[64 * y : 64 * (y + 1), 96 * x : 96 * (x + 1)], frame)
    assert not picture[64:, 2 * 96 :].any()
    assert np.array_equal(envs.render([2], tiled=True), frames[2])
    envs.close()


@needs_gl
def test_gymnasiums_default_size() -> None:
    envs = make(num_envs=1, width=480, height=480)
    default = pyfastenv.make_vec("HalfCheetah-v5", render_mode="rgb_array")
    default.reset(seed=0)
    assert default.render()[0].shape == (480, 480, 3)
    assert np.array_equal(default.render()[0], envs.render()[0])
    envs.close()
    default.close()


@needs_gl
@pytest.mark.parametrize("env_id", ["HalfCheetah-v5", "Reacher-v5"])
def test_equals_gymnasiums_picture(env_id: str) -> None:
    # gymnasium looks at the middle of its first frame's geoms, ours of the model's default pose
    config = {"distance": 3.0, "lookat": np.array([0.1, 0.2, 0.3]), "elevation": -20.0}
    kwargs = {"width": 160, "height": 120, "default_camera_config": config}
    assert_equals_gymnasium(env_id, 2, kwargs)


@needs_gl
@pytest.mark.parametrize(
    "env_id",
    ["HalfCheetah-v5", "Ant-v5", "Hopper-v5", "Walker2d-v5", "Humanoid-v5", "HumanoidStandup-v5",
     "Swimmer-v5", "InvertedPendulum-v5", "InvertedDoublePendulum-v5"],
)  # fmt: skip
def test_equals_gymnasiums_picture_with_the_default_camera(env_id: str) -> None:
    kwargs = {"width": 160, "height": 120, "reset_noise_scale": 0.0}
    assert_equals_gymnasium(env_id, 1, kwargs)


@needs_gl
@renderers
@pytest.mark.parametrize("camera", [{"camera_name": "track"}, {"camera_id": 0}])
def test_cameras(camera: dict[str, Any], renderer: str, most: float) -> None:
    theirs = make_gymnasium(
        "HalfCheetah-v5", 1, "NextStep", render_mode="rgb_array", width=96, height=64, **camera
    )
    ours = make(num_envs=1, renderer=renderer, **camera)
    theirs.reset(seed=0)
    assert difference(ours.render()[0], theirs.render()[0]) < most
    free = make(num_envs=1)
    near = make(num_envs=1, default_camera_config={"distance": 1.5})
    assert difference(free.render()[0], near.render()[0]) > 1.0
    for envs in (ours, theirs, free, near):
        envs.close()


@needs_gl
def test_the_single_environment() -> None:
    kwargs: dict[str, Any] = {"render_mode": "rgb_array", "width": 96, "height": 64}
    kwargs["reset_noise_scale"] = 0.0  # the cameras look at the same point
    ours = gymnasium.make("pyfastenv/Ant-v5", renderer="mujoco", **kwargs)
    theirs = gymnasium.make("Ant-v5", **kwargs)
    ours.reset(seed=0)
    theirs.reset(seed=0)
    frame: Any = ours.render()
    expected: Any = theirs.render()
    assert difference(frame, expected) < 1.0
    ours.close()
    theirs.close()


@needs_gl
def test_model_fields_are_drawn() -> None:
    envs = make(num_envs=2)
    state = envs.get_state([0])
    envs.set_state(np.repeat(state, 2, axis=0))
    same = envs.render()
    assert np.array_equal(same[0], same[1])
    envs.set_model_field("geom_size", 2.0 * envs.get_model_field("geom_size")[1], [1])
    frames = envs.render()
    assert np.array_equal(frames[0], same[0])
    assert difference(frames[1], same[1]) > 0.5
    envs.close()


@needs_gl
def test_scalar_model_fields() -> None:
    envs = make("Swimmer-v5")
    before = envs.render()
    envs.set_model_field("opt.viscosity", [1.0])
    envs.set_model_field("opt.gravity", [0.0, 0.0, -1.0])
    for frame, expected in zip(envs.render(), before, strict=True):
        assert np.array_equal(frame, expected)
    envs.close()


@pytest.mark.parametrize("env_id", ["Humanoid-v5", "CartPole-v1"])
def test_rendering_changes_nothing(env_id: str, request: pytest.FixtureRequest) -> None:
    if env_id not in CLASSIC_IDS:
        request.getfixturevalue("gl")
    envs, other = make(env_id), make(env_id)
    rng = np.random.default_rng(0)
    for _ in range(6):
        envs.render()
        actions = random_actions(envs.single_action_space, rng, 2)
        assert np.array_equal(envs.step(actions)[0], other.step(actions)[0])
        state = envs.get_state()
        assert np.array_equal(state, other.get_state())
        envs.render()
        assert np.array_equal(envs.get_state(), state)
    envs.close()
    other.close()


@needs_gl
@pytest.mark.parametrize(("env_id", "times"), [("HalfCheetah-v5", 6), ("CartPole-v1", 300)])
def test_any_thread_may_draw(env_id: str, times: int) -> None:
    envs, other = make(env_id), make(env_id)
    expected = envs.render()

    def draw(_: int) -> bool:
        frames = [*envs.render(), *other.render()]
        return all(map(np.array_equal, frames, [*expected, *expected]))

    with ThreadPoolExecutor(3) as threads:
        assert all(threads.map(draw, range(times)))
        assert np.array_equal(envs.render()[0], expected[0])
        threads.submit(envs.close).result()  # nor does it matter which one frees the context
    assert np.array_equal(other.render()[0], expected[0])
    other.close()


@needs_gl
@pytest.mark.parametrize("env_id", ["HalfCheetah-v5", "CartPole-v1"])
def test_environments_that_the_collector_finds_end_their_threads(env_id: str) -> None:
    before = set(threading.enumerate())
    for _ in range(3):
        envs = make(env_id)
        envs.render()
        envs.myself = envs  # a cycle
    started = set(threading.enumerate()) - before
    assert len(started) == 3
    del envs
    gc.collect()
    for thread in started:
        thread.join()
        assert not thread.is_alive()


@needs_gl
def test_an_environment_that_was_never_closed_lets_the_process_end() -> None:
    code = """
import pyfastenv
envs = pyfastenv.make_vec("HalfCheetah-v5", 1, render_mode="rgb_array", width=16, height=16)
envs.reset(seed=0)
print(envs.render()[0].shape)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "(16, 16, 3)\n", done.stderr
    assert "Exception" not in done.stderr and "Error" not in done.stderr


@needs_gl
def test_a_context_of_someone_elses_stays_current() -> None:
    theirs = make_gymnasium("HalfCheetah-v5", 1, "NextStep", render_mode="rgb_array")
    theirs.reset(seed=0)
    before = theirs.render()[0]
    envs = make(num_envs=1)
    envs.render()
    assert np.array_equal(theirs.render()[0], before)
    envs.close()
    assert np.array_equal(theirs.render()[0], before)
    theirs.close()


@needs_gl
def test_pictures_are_new_arrays() -> None:
    envs = make()
    first = envs.render()[0]
    kept = first.copy()
    step_some(envs)
    second = envs.render()[0]
    assert np.array_equal(first, kept) and not np.shares_memory(first, second)
    assert difference(first, second) > 0.1
    envs.close()


@needs_gl
def test_environments_under_way_cannot_be_drawn() -> None:
    envs = make(num_envs=3)
    before = envs.render([0])[0]
    envs.send(np.zeros((1, 6), np.float32), [1])
    with pytest.raises(pyfastenv.BusyError, match=r"environments? .*1"):
        envs.render()
    assert np.array_equal(envs.render([0])[0], before)
    envs.recv()
    assert len(envs.render()) == 3
    envs.close()
    with pytest.raises(pyfastenv.ClosedError):
        envs.render()


@pytest.mark.parametrize("env_id", CLASSIC_IDS)
def test_classic_control_equals_gymnasiums_picture(env_id: str) -> None:
    ours = make(env_id)
    theirs = make_gymnasium(env_id, 2, "NextStep", render_mode="rgb_array")
    theirs.reset(seed=0)
    rng = np.random.default_rng(0)
    for step in range(12):
        if step % 4 == 0:
            for frame, expected in zip(ours.render(), theirs.render(), strict=True):
                assert np.array_equal(frame, expected), f"step {step}"
        actions = random_actions(ours.single_action_space, rng, 2)
        ours.step(actions)
        theirs.step(actions)
    ours.close()
    theirs.close()


@pytest.mark.parametrize("env_id", ["HalfCheetah-v5", "CartPole-v1"])
def test_without_render_mode_a_warning_and_none(env_id: str) -> None:
    envs = pyfastenv.make_vec(env_id, 2)
    envs.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode='rgb_array'"):
        assert envs.render() is None


@pytest.mark.parametrize("mode", ["human", "depth_array", "RGB_ARRAY", 3])
def test_other_render_modes(mode: Any) -> None:
    with pytest.raises(ValueError, match="render_mode: expected None or 'rgb_array'"):
        pyfastenv.make_vec("HalfCheetah-v5", 2, render_mode=mode)


@needs_gl
@pytest.mark.parametrize(
    ("env_ids", "error", "message"),
    [
        ([2], IndexError, "expected ids from 0 to 1, got 2"),
        ([-1], IndexError, "got -1"),
        ([0.5], TypeError, "interpreted as an integer"),
        ([], ValueError, "env_ids"),
        ("0", TypeError, "interpreted as an integer"),
    ],
)
@pytest.mark.parametrize("tiled", [False, True])
def test_bad_ids(env_ids: Any, error: type[Exception], message: str, tiled: bool) -> None:
    envs = make()
    with pytest.raises(error, match=message):
        envs.render(env_ids, tiled=tiled)
    envs.close()


@needs_gl
@pytest.mark.parametrize(
    "kwargs",
    [
        {"camera_name": "no such camera"},
        {"camera_id": 7},
        {"camera_id": -2},
        {"camera_id": 0, "camera_name": "track"},
        {"width": 0},
        {"height": -3},
    ],
    ids=str,
)
def test_bad_camera_arguments(kwargs: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"(?i)camera|width|height"):
        make(**kwargs).render()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"type": 1, "trackbodyid": 99}, "trackbodyid: expected 0 to 7, got 99"),
        ({"type": 2, "fixedcamid": 5}, "fixedcamid: expected 0 to 0, got 5"),
        ({"type": 3}, "type: mjCAMERA_USER needs a scene whose own cameras are set"),
        ({"type": 9}, "type: expected one of mujoco.mjtCamera, got 9"),
        ({"distanse": 3.0}, "unknown 'distanse'; there are type, fixedcamid"),
    ],
    ids=str,
)
def test_cameras_that_are_not_there(config: dict[str, Any], message: str) -> None:
    """Said as environments are made: MuJoCo would end the process at the first picture."""
    with pytest.raises((TypeError, ValueError), match=f"default_camera_config: .*{message}"):
        make(default_camera_config=config)


def test_classic_control_has_no_camera() -> None:
    with pytest.raises(TypeError, match="CartPole-v1 has no camera: width"):
        make("CartPole-v1", width=64)


# MuJoCo's own first attempt, without a context, breaks off in the middle
BREAK_OFF = """
import mujoco, threading
def break_off():
    try:
        mujoco.MjrContext(mujoco.MjModel.from_xml_string("<mujoco/>"), 150)
    except mujoco.FatalError:
        pass
thread = threading.Thread(target=break_off)
thread.start()
thread.join()
from pyfastenv.vector import opengl
opengl._PATIENCE = 3  # nothing will come
"""


@pytest.mark.parametrize(
    ("gl", "before", "message"),
    [
        ("glfw", "", "there is no OpenGL context"),  # without a display
        ("disable", "", "MUJOCO_GL=disable turns OpenGL off"),
        # EGL, but not yet when that breaks off
        (None, BREAK_OFF, "cannot draw any more in this process"),
    ],
)
def test_without_a_context_it_is_said_every_time(gl: str | None, before: str, message: str) -> None:
    """The second attempt waited for ever, and with the GIL."""
    code = f"""
import faulthandler, os
faulthandler.dump_traceback_later(200, exit=True)
{before}
import pyfastenv
looks = dict(render_mode="rgb_array", width=16, height=16, renderer="mujoco")
envs = pyfastenv.make_vec("HalfCheetah-v5", 1, **looks)
envs.reset(seed=0)
for _ in range(2):
    try:
        envs.render()
    except RuntimeError as error:
        print(error)
if os.fork() == 0:
    os._exit(0)
assert os.wait()[1] == 0
"""
    environment = dict(os.environ)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "PYOPENGL_PLATFORM", "MUJOCO_GL"):
        environment.pop(name, None)
    if gl is not None:
        environment["MUJOCO_GL"] = gl
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(message) == 2, done.stdout
