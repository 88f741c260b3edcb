"""Films: the robot stays in the picture, and the picture is of the environment's own scene."""

import contextlib
import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("MUJOCO_GL", "egl")
os.environ.setdefault("PYOPENGL_PLATFORM", os.environ["MUJOCO_GL"])

import mujoco
import numpy as np
import pytest

import pyfastenv
from pyfastenv.tasks.language.randomise import uniform

pytest.importorskip("numba")
pytestmark = pytest.mark.usefixtures("gl")

SIZE = {"width": 96, "height": 64}
PARTS = "<body name='{name}' pos='0 0 1'>{joints}<geom size='.1 .2 .3' type='box'/></body>"
MOVING = {"free": "<freejoint/>", "slide": "<joint type='slide' axis='1 0 0'/>"}
STAYING = {
    "limited": "<joint type='slide' axis='1 0 0' range='-9 9'/>",
    "hinge": "<joint axis='0 1 0'/>",
    "ball": "<joint type='ball'/>",
}


def scene(body: str, more: str = "") -> str:
    return f"""<mujoco><compiler autolimits="true"/><option gravity="0 0 0"/>
      <worldbody><light pos="0 0 9" directional="true"/>{body}</worldbody>{more}</mujoco>"""


def robot(joints: str) -> str:
    return scene(PARTS.format(name="base", joints=joints))


class Placed(pyfastenv.Task):
    """Starts ``x`` metres away."""

    model = robot(MOVING["free"])
    x = 0.0

    def reset(self, data):
        data.qpos[0] += self.x

    def step(self, data):
        self.simulate(data)
        return 0.0, False

    def observation(self, data, obs):
        obs["qpos"] = data.qpos


def picture(task: Any = Placed, *, follow: bool = True, **kwargs: Any) -> np.ndarray:
    with pyfastenv.make_vec(task, 1, render_mode="rgb_array", **{**SIZE, **kwargs}) as envs:
        envs.reset(seed=0)
        frame: np.ndarray = envs.render(follow=follow)[0]
    return frame


def difference(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a.astype(int) - b.astype(int)).mean())


# ---- cameras -------------------------------------------------------------------------------------


@pytest.mark.parametrize("joints", MOVING.values(), ids=MOVING)
def test_a_robot_that_may_leave_is_followed(joints: str) -> None:
    model = robot(joints)
    here, gone = (picture(model=model, x=x, follow=False) for x in (0.0, 50.0))
    assert difference(here, gone) > 1.0
    assert difference(picture(model=model, x=50.0), here) < 0.5


@pytest.mark.parametrize("joints", STAYING.values(), ids=STAYING)
def test_one_that_stays_is_seen_as_ever(joints: str) -> None:
    model = robot(joints)
    for x in (0.0, 1.0):
        seen = picture(model=model, x=x, follow=False)
        assert np.array_equal(picture(model=model, x=x), seen)


def test_the_robot_is_what_actuators_move() -> None:
    ball = PARTS.format(name="ball", joints="<freejoint/>")
    arm = PARTS.format(name="arm", joints="<joint name='elbow' axis='0 1 0'/>")
    for motors, is_followed in (("<motor joint='elbow'/>", False), ("", True)):
        model = scene(ball + arm, f"<actuator>{motors}</actuator>")
        still, film = (picture(model=model, x=0.5, follow=follow) for follow in (False, True))
        assert (difference(still, film) > 1.0) == is_followed


@pytest.mark.parametrize("model", ["half_cheetah.xml", "ant.xml"])
def test_the_models_own_camera_follows(model: str) -> None:
    film = picture(model=model, x=20.0)
    assert np.array_equal(film, picture(model=model, x=20.0, follow=False, camera_name="track"))
    assert difference(film, picture(model=model, x=20.0, follow=False)) > 1.0


@pytest.mark.parametrize(
    "chosen",
    [{"camera_id": 0}, {"camera_name": "fixed"}, {"default_camera_config": {"distance": 3.0}}],
    ids=str,
)
def test_a_chosen_camera_stays(chosen: dict[str, Any]) -> None:
    base = PARTS.format(name="base", joints="<freejoint/>")
    model = scene(base + "<camera name='fixed' pos='0 -2 1' xyaxes='1 0 0 0 0 1'/>")
    seen = picture(model=model, x=0.5, follow=False, **chosen)
    assert np.array_equal(picture(model=model, x=0.5, **chosen), seen)


class Told(Placed):
    """Is told to move, and stands."""

    velocity = pyfastenv.command(3, low=-1.0, high=1.0, names=("forward", "sideways", "turning"))

    def observation(self, data, obs):
        super().observation(data, obs)
        obs["velocity"] = self.velocity


@pytest.mark.parametrize("renderer", ["pyfastenv", "mujoco"])
def test_films_show_the_commanded_velocity(renderer: str) -> None:
    def blue(velocity: list[float], *, follow: bool = True) -> np.ndarray:
        far = {"distance": 5.0, "lookat": (0.0, 0.0, 1.5), "azimuth": 90.0}
        looks = {"render_mode": "rgb_array", "renderer": renderer, "default_camera_config": far}
        size = {name: 3 * pixels for name, pixels in SIZE.items()}
        with pyfastenv.make_vec(Told, 2, model=robot(MOVING["free"]), **looks, **size) as envs:
            envs.set_command("velocity", [velocity, [0.0, 0.0, 0.0]])
            envs.reset(seed=0)
            frame = envs.render([0], follow=follow)[0].astype(int)
        return (frame[..., 2] - frame[..., 0] > 50).nonzero()[1]

    ahead, back = (blue([forward, 0.0, 0.0]) for forward in (1.0, -1.0))
    assert len(ahead) > 4 and len(back) > 4
    assert abs(ahead.mean() - back.mean()) > 2.0
    assert len(blue([1.0, 0.0, 3.0])) > len(ahead) + 5
    assert not len(blue([1.0, 0.0, 0.0], follow=False))


def test_a_film_of_a_built_in_robot_follows_it() -> None:
    looks = {"render_mode": "rgb_array", **SIZE}
    with (
        pyfastenv.make_vec("HalfCheetah-v5", 2, **looks) as envs,
        pyfastenv.make_vec("HalfCheetah-v5", 2, camera_name="track", **looks) as tracked,
        pyfastenv.make_vec("CartPole-v1", 1, render_mode="rgb_array") as classic,
    ):
        for each in (envs, tracked, classic):
            each.reset(seed=0)
        before = envs.render()
        for film, expected in zip(envs.render(follow=True), tracked.render(), strict=True):
            assert np.array_equal(film, expected)
        assert np.array_equal(envs.render(), before)
        assert np.array_equal(classic.render(follow=True), classic.render())


# ---- scenes --------------------------------------------------------------------------------------

GOAL = scene(
    "<site name='goal' pos='.5 0 0' size='.1' rgba='1 0 0 1'/><geom type='hfield' hfield='ground'/>"
    + PARTS.format(name="base", joints="<joint axis='0 0 1'/>"),
    "<asset><hfield name='ground' nrow='2' ncol='3' size='1 1 .5 .1'/></asset>",
)
CAMERA = {"lookat": (0.0, 0.0, 0.5), "distance": 4.0}


class Goals(Placed):
    """Every episode has a goal of its own, and maybe another robot and ground."""

    model = GOAL
    model_fields = ("site_pos",)
    before = pyfastenv.memory(3)

    def reset(self, data, rng):
        self.before[:] = 7.0
        self.model.site_pos[0] = rng.uniform(0.2, 1.0, 3)

    def observation(self, data, obs):
        obs["site_pos"] = self.model.site_pos[0]
        obs["geom_size"] = self.model.geom_size[1]
        obs["hfield_data"] = self.model.hfield_data


class Grounds(Goals):
    model_fields = ("site_pos", "hfield_data")

    def reset(self, data, rng):
        self.model.site_pos[0] = rng.uniform(0.2, 1.0, 3)
        self.model.hfield_data[:] = rng.random(6)


def drawn(**fields: np.ndarray) -> np.ndarray:
    """MuJoCo's own picture of the scene with an environment's numbers."""
    model = mujoco.MjModel.from_xml_string(GOAL)
    for name, values in fields.items():
        getattr(model, name).reshape(-1)[-values.size :] = values.ravel()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    camera = mujoco.MjvCamera()
    camera.lookat[:], camera.distance = CAMERA["lookat"], CAMERA["distance"]
    with mujoco.Renderer(model, SIZE["height"], SIZE["width"]) as renderer:
        renderer.update_scene(data, camera)
        frame: np.ndarray = renderer.render()
    return frame


@pytest.mark.parametrize(("renderer", "most"), [("mujoco", 0.01), ("pyfastenv", 1.5)])
@pytest.mark.parametrize("task", [Goals, Grounds])
@pytest.mark.parametrize("randomise", [None, {"geom_size": uniform(0.1, 0.5)}])
def test_a_picture_has_the_environments_own_numbers(
    task: Any, randomise: Any, renderer: str, most: float
) -> None:
    looks = {"render_mode": "rgb_array", "default_camera_config": CAMERA, **SIZE}
    looks["renderer"] = renderer
    with pyfastenv.make_vec(task, 3, randomise=randomise, **looks) as envs:
        obs, _ = envs.reset(seed=0)
        places = np.arange(18.0).reshape(3, 2, 3) / 50.0
        envs.set_model_field("body_pos", places)
        frames = envs.render()
        for frame, row, body_pos in zip(frames, obs, places, strict=True):
            seen = {name: row[where] for name, where in envs.observation_groups.items()}
            assert difference(frame, drawn(body_pos=body_pos, **seen)) < most
        assert difference(frames[0], frames[1]) > 0.3 < difference(frames[1], frames[2])
        assert all(np.array_equal(a, b) for a, b in zip(frames, envs.render(), strict=True))


# ---- floors --------------------------------------------------------------------------------------

FLOOR = """<asset>
  <texture name="t" type="2d" builtin="checker" rgb1="0 0 0" rgb2="1 1 1" width="64" height="64"/>
  <material name="m" texture="t" texrepeat='4 6'/></asset>"""
PLANE = "<geom type='plane' size='4 6 .1' material='m'/>"
CAR = "<body pos='0 0 1'><joint type='slide' axis='1 0 0'/><geom size='.3'/>{}</body>"
TRACK = "<camera name='track' mode='track' pos='0 -3 1' xyaxes='1 0 0 0 .3 1'/>"


@pytest.mark.parametrize("texture", ["texrepeat='4 6'", "texuniform='true'"])
def test_a_films_floor_has_no_end_and_the_same_squares(texture: str) -> None:
    """Either way a period of its texture is 2 m long."""
    model = scene(CAR.format(TRACK) + PLANE, FLOOR.replace("texrepeat='4 6'", texture))
    here, there, gone = (picture(model=model, x=x, film=True) for x in (0.0, 2.0, 500.0))
    assert max(difference(here, gone), difference(here, there)) < 3.0  # as without the shadow
    assert difference(here, picture(model=model, x=1.0, film=True)) > 30.0  # half a period
    bottom = SIZE["height"] * 3 // 4
    plain = picture(model=model)
    assert difference(here[bottom:], plain[bottom:]) < 2.0
    assert picture(model=model, x=500.0)[bottom:].std() < 1.0 < here[bottom:].std()


def test_planes_of_robots_that_stay_keep_their_ends() -> None:
    free = scene(CAR.format(TRACK) + PLANE, FLOOR)
    limited = free.replace("axis=", "range='-9 9' axis=")
    of_film = []
    for model in (free, limited):
        film, plain = (picture(model=model, camera_name="track", film=f) for f in (True, False))
        of_film.append(difference(film, plain))
    assert of_film[1] < 2.0 < of_film[0]  # shadows are coarser


# ---- of a training -------------------------------------------------------------------------------


def trained(
    folder: Path, *, quiet: bool = True, video: bool = False, length: int = 8, **looks: Any
) -> None:
    from pyfastenv.algorithms import ppo

    options: dict[str, Any] = {"num_envs": 2, "num_steps": 32, "minibatch_size": 64}
    options |= {"total_steps": 128, "eval_episodes": 1, "loggers": (), "run_dir": folder}
    options["env_kwargs"] = {"max_episode_steps": length, **SIZE, **looks}
    ppo.train(ppo.Config.preset("HalfCheetah-v5", video=video, quiet=quiet, **options))


@pytest.mark.parametrize("quiet", [False, True])
def test_a_film_is_announced(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, quiet: bool
) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("imageio_ffmpeg")
    monkeypatch.chdir(tmp_path)
    trained(tmp_path / "run", quiet=quiet, video=True)
    out, err = capfd.readouterr()
    film = tmp_path / "run" / "video.mp4"
    assert film.is_file() and not (tmp_path / "MUJOCO_LOG.TXT").exists()
    assert err == ""
    if quiet:
        assert out == ""
    else:
        *_, result, announced, shown, said = out.splitlines()
        assert result.startswith("HalfCheetah-v5: return ")
        assert announced == "Filming up to 8 steps …"
        assert shown.startswith("8 steps (100%)") and said == f"Film: {film}"


def test_a_film_that_fails_is_reported(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("MUJOCO_GL", "off")
    trained(tmp_path / "run", video=True, renderer="mujoco")
    error = capfd.readouterr().err
    assert "no picture can be drawn: MuJoCo's renderer needs OpenGL (MUJOCO_GL=off" in error
    assert "renderer='pyfastenv' needs none" in error
    assert (tmp_path / "run" / "result.json").is_file()
    assert not list((tmp_path / "run").glob("*film*")) + list((tmp_path / "run").glob("video*"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("long") / "run"
    trained(run, length=100_000)
    return run


def film(run: Path) -> None:
    """What a training does at its end, in a group of processes of its own."""
    from pyfastenv.publish import video

    os.setsid()
    video.record_apart(run, quiet=True, seconds=10_000)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("how", ["SIGINT to all", "SIGINT", "SIGTERM", "SIGKILL"])
def test_who_stops_a_training_stops_its_film(run: Path, how: str) -> None:
    """Whichever way the training ends, its film's process ends too and leaves nothing."""
    psutil = pytest.importorskip("psutil")
    parent = multiprocessing.get_context("fork").Process(target=film, args=(run,))
    parent.start()
    while not (films := list(run.glob(".film-*/*"))):
        assert parent.is_alive()
        time.sleep(0.05)
    children = psutil.Process(parent.pid).children(recursive=True)
    for child in children:  # or a busy machine ends the film first
        child.suspend()
    # who waits for a film waits no longer than its work takes
    assert films and {child.nice() for child in children} == {os.nice(0)}
    number = getattr(signal, how.split()[0])
    (os.killpg if how == "SIGINT to all" else os.kill)(parent.pid, number)
    for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):  # already gone
            child.resume()
    parent.join()
    assert psutil.wait_procs(children)[1] == []
    assert not list(run.glob(".film*")) + list(run.glob("video*"))
