"""Pictures as observations: those of render() and of pyfastenv.Renderer, in every way to step."""

import pickle
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

import pyfastenv
from pyfastenv.tasks.language.randomise import scale

N, STEPS = 3, 7
CHEETAH = "HalfCheetah-v5"
SMALL = {"height": 24, "width": 32}


def make(
    env_id: Any = CHEETAH, *, pixels: dict[str, Any] | None = None, **kwargs: Any
) -> pyfastenv.FastVectorEnv:
    return pyfastenv.make_vec(
        env_id, N, pixels={**SMALL, **(pixels or {})}, **{"max_episode_steps": 3, **kwargs}
    )


def actions(envs: pyfastenv.FastVectorEnv, steps: int = STEPS) -> NDArray[np.float32]:
    size = envs.single_action_space.shape[0]  # type: ignore[index]
    rng = np.random.default_rng(1)
    return rng.uniform(-1, 1, (steps, envs.num_envs, size)).astype(np.float32)


def played(envs: pyfastenv.FastVectorEnv) -> Iterator[tuple[Any, Any]]:
    """Observations and infos of a reset and of steps; with autoreset disabled, of resets too."""
    yield envs.reset(seed=3)
    for action in actions(envs):
        obs, _, terminations, truncations, infos = envs.step(action)
        yield obs, infos
        ended = terminations | truncations
        if envs.metadata["autoreset_mode"].value == "Disabled" and ended.any():
            yield envs.reset(options={"reset_mask": ended})


# ---- what is drawn ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env_id", "camera", "looks"),
    [
        (CHEETAH, None, {}),
        (CHEETAH, "track", {"camera_name": "track"}),
        ("Humanoid-v5", 0, {"camera_id": 0}),
        ("Hopper-v4", {"distance": 2.0, "lookat": (0, 0, 1)}, None),
    ],
    ids=str,
)
def test_pictures_are_those_of_render(env_id: str, camera: Any, looks: Any) -> None:
    if looks is None:
        looks = {"default_camera_config": camera}
    pixels = {"camera": camera, "frame_stack": 1}
    with closing(make(env_id, pixels=pixels, render_mode="rgb_array", **SMALL, **looks)) as envs:
        for obs, _ in played(envs):
            assert obs.shape == (N, 24, 32, 3) and obs.dtype == np.uint8
            assert np.array_equal(obs, np.stack(envs.render() or ()))
        assert len(np.unique(obs)) > 10 and not np.array_equal(obs[0], obs[1])


def test_depth_and_segments_are_the_renderers() -> None:
    pixels = {"depth": 5.0, "segmentation": True, "frame_stack": 1, "camera": "track"}
    with closing(make(pixels=pixels, num_threads=1)) as envs:
        obs, _ = envs.reset(seed=0)
        row, _ = envs._core.row(0)
        model = mujoco.MjModel.from_xml_path(envs._core.model_path)
    data = mujoco.MjData(model)
    data.qpos[:] = row[1 : 1 + model.nq]
    mujoco.mj_forward(model, data)
    with pyfastenv.Renderer(model, 24, 32) as renderer:
        renderer.update_scene(data, "track")
        assert np.array_equal(obs[0, ..., :3], renderer.render())
        renderer.enable_depth_rendering()
        depth = np.minimum(renderer.render() / 5.0, 1.0)
        assert np.abs(obs[0, ..., 3] - 255.0 * depth).max() <= 0.5001
        renderer.enable_segmentation_rendering()
        objects = renderer.render()
    is_geom = objects[..., 1] == int(mujoco.mjtObj.mjOBJ_GEOM)
    assert np.array_equal(obs[0, ..., 4], np.where(is_geom, objects[..., 0] + 1, 0))
    assert len(np.unique(obs[0, ..., 4])) > 3 and len(np.unique(obs[0, ..., 3])) > 3


SCENE = """<mujoco><asset><hfield name="ground" nrow="2" ncol="2" size="1 1 .5 .1"/></asset>
  <worldbody><light pos="0 0 3"/><geom type="hfield" hfield="ground"/>
    <body pos="0 0 1"><joint name="turn" axis="0 1 0"/><geom name="ball" size=".2"/>
      <geom type="capsule" fromto="0 0 0 .5 0 0" size=".1" rgba="1 0 0 1"/></body>
    <camera name="side" pos="0 -4 2" xyaxes="1 0 0 0 .4 1"/></worldbody>
  <actuator><motor joint="turn"/></actuator></mujoco>"""


class Grown(pyfastenv.Task):
    """Every episode has a ball and a ground of its own; without pixels, a Dict of observations."""

    model = SCENE
    observation_dict = True
    randomise = {"geom_size": scale(0.5, 1.5)}
    model_fields = ("hfield_data", "hfield_size")

    def reset(self, data, rng):
        self.model.hfield_data[:] = rng.random(4)
        self.model.hfield_size[0, 2] = 0.5 + rng.random()

    def step(self, data):
        self.simulate(data)
        return 0.0, False

    def observation(self, data, obs):
        obs["qpos"] = data.qpos


def test_own_tasks_show_what_is_their_environments_own() -> None:
    obs = assert_pictures_are_those_of_render(Grown)
    assert not np.array_equal(obs[0], obs[1])


def test_model_fields_are_seen() -> None:
    with closing(make(pixels={"camera": "track", "frame_stack": 1})) as envs:
        before, _ = envs.reset(seed=0)
        sizes = envs.get_model_field("geom_size")
        sizes[1] *= 2.0
        envs.set_model_field("geom_size", sizes)
        after, _ = envs.reset(seed=0)
    assert [np.array_equal(a, b) for a, b in zip(before, after, strict=True)] == [True, False, True]


class Turned(pyfastenv.Task):
    """A joint without more."""

    model = SCENE

    def reset(self, data, rng):
        data.qpos[0] = rng.uniform(-1.0, 1.0)

    def step(self, data):
        self.simulate(data)
        return 0.0, False

    def observation(self, data, obs):
        obs["qpos"] = data.qpos


def with_more(body: str, after: str = "") -> type[pyfastenv.Task]:
    more = SCENE.replace("</worldbody>", f"{body}</worldbody>{after}")
    assert more != SCENE
    return type("Turned", (Turned,), {"model": more, "__module__": __name__})


def assert_pictures_are_those_of_render(task: Any, max_geom: int | None = None) -> Any:
    """And of a scene that has room for all; returns the last."""
    pytest.importorskip("numba")
    looks = {"render_mode": "rgb_array", "camera_name": "side", **SMALL}
    pixels = {"camera": "side", "frame_stack": 1}
    with closing(make(task, pixels=pixels, num_threads=2, **looks)) as envs:
        for obs, _ in played(envs):
            assert np.array_equal(obs, np.stack(envs.render() or ()))
        if max_geom is None:
            return obs
        row, _ = envs._core.row(0)
    model = mujoco.MjModel.from_xml_string(task.model)
    data = mujoco.MjData(model)
    data.qpos[:] = row[1 : 1 + model.nq]
    mujoco.mj_forward(model, data)
    with pyfastenv.Renderer(model, *SMALL.values(), max_geom=max_geom) as renderer:
        renderer.update_scene(data, "side")
        assert renderer.scene.ngeom > 1000
        assert np.array_equal(obs[0], renderer.render())
    return obs


def test_rays_of_range_finders_are_seen() -> None:
    site = '<site name="s" pos=".6 0 0" zaxis="0 0 -1"/></body>'
    model = SCENE.replace("</body>", site)
    model = model.replace("</mujoco>", '<sensor><rangefinder site="s"/></sensor></mujoco>')
    task = type("Turned", (Turned,), {"model": model, "__module__": __name__})
    assert_pictures_are_those_of_render(task)


def test_all_geoms_of_a_scene_are_seen() -> None:
    sites = "".join(
        f'<site size=".03" pos="{i % 40 * 0.1 - 2:.2f} {i // 40 * 0.1 - 2:.2f} .5"/>'
        for i in range(1200)
    )
    assert_pictures_are_those_of_render(with_more(sites), 20_000)
    ends = "".join(
        f'<site name="{end}{i}" pos="{x} {i * 0.02:.2f} 1.5" size=".001"/>'
        for i in range(60)
        for end, x in (("a", -1), ("b", 1))
    )
    cables = "".join(
        f'<spatial width=".02" rgba="0 1 {i % 2} 1" limited="true" range="0 {2.1 + i * 0.03:.2f}">'
        f'<site site="a{i}"/><site site="b{i}"/></spatial>'
        for i in range(60)
    )
    assert_pictures_are_those_of_render(with_more(ends, f"<tendon>{cables}</tendon>"), 20_000)


def test_sizes_of_height_fields_are_seen() -> None:
    pytest.importorskip("numba")
    looks = {"render_mode": "rgb_array", "camera_name": "side", **SMALL}
    pixels = {"camera": "side", "frame_stack": 1}
    hilly = SCENE.replace('size="1 1 .5 .1"', 'size="1 1 .5 .1" elevation="0 1 1 0"')
    task = type("Turned", (Turned,), {"model": hilly, "__module__": __name__})
    with closing(make(task, pixels=pixels, **looks)) as envs:
        before, _ = envs.reset(seed=0)
        sizes = envs.get_model_field("hfield_size")
        sizes[1, 0, :3] *= (0.5, 1.0, 2.0)
        envs.set_model_field("hfield_size", sizes)
        after, _ = envs.reset(seed=0)
        assert np.array_equal(after, np.stack(envs.render() or ()))
    assert [np.array_equal(a, b) for a, b in zip(before, after, strict=True)] == [True, False, True]


def test_where_nothing_is_the_depth_is_the_farthest() -> None:
    camera = {"elevation": 60.0, "distance": 3.0}  # from below, to the sky
    pixels = {"depth": 1e6, "segmentation": True, "frame_stack": 1, "camera": camera}
    with closing(make("Reacher-v5", pixels=pixels)) as envs:
        obs, _ = envs.reset(seed=0)
    nothing = obs[..., 4] == 0
    assert nothing.any() and (obs[..., 3][nothing] == 255).all()


# ---- stacks, episodes, ways to step ----------------------------------------------------------


def stacks(
    frames: list[tuple[Any, Any]], mode: str, every: int
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.uint8] | None]]:
    """Three-frame observations and final ones, of single frames; episodes have three steps."""
    stack: list[Any] = []
    for t, (frame, infos) in enumerate(frames):
        elapsed, final = t % (3 if mode == "SameStep" else 4), None
        if elapsed == 0:
            if "final_obs" in infos:
                last = np.stack(list(infos["final_obs"]))
                final = [*stack[1:], last] if 3 % every == 0 else stack
            stack = [frame] * 3
        elif elapsed % every == 0:
            stack = [*stack[1:], frame]
        yield np.concatenate(stack, -1), None if final is None else np.concatenate(final, -1)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@pytest.mark.parametrize("every", [1, 2])
def test_stacks_are_the_latest_frames_of_an_episode(mode: str, every: int) -> None:
    options = {"frame_stack": 3, "render_every": every}
    first = {**options, "channels": "first", "with_state": True}
    num_finals = 0
    with (
        closing(make(pixels={"frame_stack": 1}, autoreset_mode=mode)) as single,
        closing(make(pixels=options, autoreset_mode=mode, num_threads=2)) as envs,
        closing(make(pixels=first, autoreset_mode=mode, num_threads=1)) as others,
        closing(pyfastenv.make_vec(CHEETAH, N, max_episode_steps=3, autoreset_mode=mode)) as plain,
    ):
        assert envs.observation_space.shape == (N, 24, 32, 9)
        expected = stacks([(obs.copy(), infos) for obs, infos in played(single)], mode, every)
        for (obs, infos), (other, _), (state, plain_infos), (frames, final) in zip(
            played(envs), played(others), played(plain), expected, strict=True
        ):
            assert envs.observation_space.contains(obs)
            assert others.observation_space.contains(other)
            assert np.array_equal(obs, frames)
            assert np.array_equal(other["pixels"], np.moveaxis(frames, -1, 1))
            assert np.array_equal(other["state"], state)
            assert ("final_obs" in infos) == ("final_obs" in plain_infos) == (final is not None)
            if final is not None:
                assert np.array_equal(np.stack(list(infos["final_obs"])), final)
                num_finals += 1
    assert (num_finals > 0) == (mode == "SameStep")


def test_send_and_receive_give_the_same() -> None:
    with closing(make(num_threads=1)) as envs, closing(make(num_threads=3, copy=False)) as others:
        expected = [obs for obs, _ in played(envs)]
        others.async_reset(seed=3)
        for t, obs in enumerate(expected):
            received = np.zeros_like(obs)
            for _ in range(N):
                part, *_, infos = others.recv(1, max_envs=1)
                received[infos["env_id"]] = part
            assert np.array_equal(received, obs)
            if t < STEPS:
                others.send(actions(others)[t])


def test_snapshots_hold_the_frames() -> None:
    with closing(make()) as envs, closing(make(pixels={"camera": "track"})) as others:
        envs.reset(seed=0)
        first, second = actions(envs, 2)
        envs.step(first)
        state = envs.get_state([2, 0])
        expected = envs.step(second)[0]
        with closing(make(num_threads=1)) as again:
            again.reset(seed=9)
            again.set_state(state, [0, 1])
            obs = again.step(second[[2, 0, 1]])[0]
            assert np.array_equal(obs[:2], expected[[2, 0]])
            assert not np.array_equal(obs[2], expected[1])
        with pytest.raises(ValueError, match="expected a state of such an environment"):
            others.set_state(state, [0, 1])


def test_buffers_of_tensors_are_written_in_place() -> None:
    torch = pytest.importorskip("torch")
    from staging_parts import HostDevice

    for pixels in ({}, {"with_state": True}):
        with closing(make(pixels=pixels)) as envs:
            expected = [obs for obs, _ in played(envs)]
        for copies in (None, HostDevice()):
            envs = pyfastenv.TorchVectorEnv(make(pixels=pixels), copies=copies)
            obs, _ = envs.reset(seed=3)
            for t, wanted in enumerate(expected):
                shown = obs if isinstance(obs, dict) else {"pixels": obs}
                wanted = wanted if isinstance(wanted, dict) else {"pixels": wanted}
                assert shown["pixels"].dtype == torch.uint8
                assert np.array_equal(shown["pixels"].numpy(), wanted["pixels"])
                if "state" in wanted:
                    assert shown["state"].dtype == torch.float32
                    assert np.array_equal(shown["state"], wanted["state"].astype(np.float32))
                if t < STEPS:
                    obs = envs.step(torch.from_numpy(actions(envs.envs)[t]))[0]
            envs.close()


@pytest.mark.parametrize("with_state", [False, True])
def test_bounds_of_a_space_take_no_memory(with_state: bool) -> None:
    with closing(make(pixels={"with_state": with_state})) as envs:
        space = envs.observation_space
        assert space == batch_space(envs.single_observation_space, N)
        assert space.contains(space.sample()) and pickle.loads(pickle.dumps(space)) == space
        box: Any = space["pixels"] if with_state else space  # type: ignore[index]
        assert box.low.strides == box.bounded_above.strides == (0, 0, 0, 0)


def test_one_environment_and_a_pickled_pool() -> None:
    with closing(make()) as envs, closing(pickle.loads(pickle.dumps(envs))) as again:
        expected, _ = envs.reset(seed=0)
        assert np.array_equal(again.reset(seed=0)[0], expected)
    with closing(gymnasium.make(f"pyfastenv:pyfastenv/{CHEETAH}", pixels=SMALL)) as env:
        obs, _ = env.reset(seed=0)
        assert env.observation_space.contains(obs) and np.array_equal(obs, expected[0])


# ---- mistakes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pixels", "error", "message"),
    [
        ({"camera": "trac"}, ValueError, "no camera 'trac'; this model has: track"),
        ({"camera": 7}, ValueError, "a camera from 0 to 0, got 7"),
        ({"camera": {"trackbodyid": 99}}, ValueError, "a body from 0 to 7, got 99"),
        ({"camera": {"fov": 3}}, TypeError, "unknown 'fov'; there are lookat"),
        ({"camera": {"lookat": (0, 1)}}, ValueError, "lookat: expected 3 numbers, got"),
        ({"height": 0}, ValueError, "pixels: height: expected at least 1, got 0"),
        ({"width": 10_000}, ValueError, "pixels: width: expected less than 8193, got 10000"),
        ({"frame_stack": 0}, ValueError, "frame_stack: expected at least 1"),
        ({"render_every": 1.5}, TypeError, "render_every: expected an integer, got 1.5"),
        ({"depth": True}, ValueError, "depth: expected the distance in metres"),
        ({"channels": "middle"}, ValueError, "expected 'last' or 'first', got 'middle'"),
        ({"camera": {"elevation": "a"}}, ValueError, "elevation: expected a number, got 'a'"),
        ({"samples": 4.0}, ValueError, "samples: expected 1, 4, 16 or None, got 4.0"),
        ({"samples": 3}, ValueError, "samples: expected 1, 4, 16 or None, got 3"),
        ({"heigth": 3}, TypeError, "unknown 'heigth'; there are height, width"),
    ],
    ids=str,
)
def test_bad_pixels(pixels: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(pixels=pixels)


def test_numbers_may_be_numpys() -> None:
    plain = {"depth": 3.0, "samples": 4, "height": 24}
    numpys = {"depth": np.float32(3), "samples": np.int64(4), "height": np.int32(24)}
    with closing(make(pixels=plain)) as envs, closing(make(pixels=numpys)) as others:
        expected, _ = envs.reset(seed=0)
        others.reset(seed=1)
        others.set_state(envs.get_state())
        assert np.array_equal(others.reset(seed=0)[0], expected)


def test_environments_that_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match=r"pixels: CartPole-v1 has no MuJoCo model to draw"):
        make("CartPole-v1")
    with pytest.raises(TypeError, match="pixels: expected a dict such as"):
        pyfastenv.make_vec(CHEETAH, 1, pixels=True)


def test_a_task_with_a_dict_shows_pictures_alone() -> None:
    pytest.importorskip("numba")
    with pytest.raises(ValueError, match="with_state: Grown's observations are a Dict"):
        make(Grown, pixels={"with_state": True})


def test_pools_policies_do_not_see_pixels() -> None:
    pytest.importorskip("torch")
    from staging_parts import small_policy

    with closing(make(autoreset_mode="SameStep")) as envs:
        envs.reset(seed=0)
        with pytest.raises(ValueError, match="rollout: expected environments without pixels"):
            pyfastenv.rollout(envs, small_policy(), 2)
    from pyfastenv.algorithms.ppo.spec import Config
    from pyfastenv.training.envs import make_training_envs

    config = Config(env_id=CHEETAH, env_kwargs={"pixels": SMALL})
    with pytest.raises(ValueError, match="drqv2 learns from pictures"):
        make_training_envs(config, 1)


def test_a_picture_that_cannot_be_drawn_is_that_environments_error() -> None:
    with closing(make(pixels={"camera": "track"})) as envs:
        envs.reset(seed=0)
        (action,) = actions(envs, 1)
        places = envs.get_model_field("geom_pos")
        places[1, 2] = 1e300  # no float32
        envs.set_model_field("geom_pos", places)
        before = envs.get_state()
        with pytest.raises(pyfastenv.EnvError, match=r"geom .* of the scene") as raised:
            envs.step(action)
        assert raised.value.env_ids == (1,) and not raised.value.results[0][1].any()
        assert np.array_equal(envs.get_state()[1], before[1])
        places[1, 2] = 0.0
        envs.set_model_field("geom_pos", places)
        assert envs.step(action)[0][1].any()
