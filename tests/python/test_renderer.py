"""pyfastenv.Renderer: MuJoCo's pictures, its interface and its mistakes, without OpenGL."""

import os
import warnings
from typing import Any

os.environ.setdefault("MUJOCO_GL", "egl")

import mujoco
import numpy as np
import pytest

import pyfastenv
from pyfastenv.vector import specs

SCENE = """<mujoco>
  <visual><global offwidth="640" offheight="640"/></visual>
  <asset>
    <texture name="sky" type="skybox" builtin="gradient" rgb1=".3 .5 .7" rgb2="0 0 0" width="64"
             height="384"/>
    <texture name="grid" type="2d" builtin="checker" rgb1=".1 .2 .3" rgb2=".6 .7 .8" width="64"
             height="64"/>
    <material name="grid" texture="grid" texrepeat="4 4" reflectance=".2"/>
    <mesh name="wedge" vertex="0 0 0 .5 0 0 0 .5 0 0 0 .5"/>
    <hfield name="ground" nrow="3" ncol="3" size=".5 .5 .2 .1" elevation="0 1 0 1 0 1 0 1 0"/>
  </asset>
  <worldbody>
    <light pos="0 -1 3" dir="0 .3 -1"/><light pos="2 0 2" dir="-1 0 -1" type="spot"/>
    <geom name="floor" type="plane" size="3 3 .1" material="grid"/>
    <geom name="ball" size=".3" pos="0 0 .6" rgba=".8 .3 .2 1"/>
    <geom type="capsule" size=".1 .3" pos=".6 .3 .5"/>
    <geom type="box" size=".2 .1 .3" pos="-.6 .2 .4" euler="0 0 30"/>
    <geom type="cylinder" size=".2 .2" pos="-.2 -.6 .3"/>
    <geom type="ellipsoid" size=".1 .2 .3" pos=".4 -.5 .4" rgba="0 1 0 .5"/>
    <geom type="mesh" mesh="wedge" pos=".9 -.5 .2"/>
    <geom type="hfield" hfield="ground" pos="0 1.2 .2"/>
    <site name="mark" size=".05" pos="0 -.4 .8"/>
    <camera name="front" pos="0 -3 1.5" xyaxes="1 0 0 0 .4 1"/>
    <camera name="flat" pos="0 -3 1.5" xyaxes="1 0 0 0 .4 1" {projection} fovy="3"/>
  </worldbody>
</mujoco>"""
SIZE = 96, 128  # height, width


def load(xml: str) -> tuple[Any, Any]:
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def parse(xml: str) -> tuple[Any, Any]:
    """The scene in the words of this version of MuJoCo."""
    for projection in ('projection="orthographic"', 'orthographic="true"'):
        try:
            return load(xml.replace("{projection}", projection))
        except ValueError:
            continue
    raise AssertionError("no orthographic camera")


@pytest.fixture(scope="module")
def scene() -> tuple[Any, Any]:
    return parse(SCENE)


def draw(scene: tuple[Any, Any], camera: Any = "front", **kwargs: Any) -> np.ndarray:
    with pyfastenv.Renderer(scene[0], *SIZE, **kwargs) as renderer:
        renderer.update_scene(scene[1], camera)
        frame: np.ndarray = renderer.render()
    return frame


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """Mean absolute difference."""
    assert a.shape == b.shape and a.dtype == b.dtype
    return float(np.abs(a.astype(float) - b.astype(float)).mean())


# ---- beside MuJoCo's -----------------------------------------------------------------------------


def robot(file: str) -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mujoco.MjModel.from_xml_path(os.path.join(specs.assets_dir(), file))
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 20)
    return model, data


@pytest.mark.usefixtures("gl")
@pytest.mark.parametrize(
    "file", ["half_cheetah.xml", "humanoid.xml", "pusher_v5.xml", "reacher.xml"]
)
def test_pictures_are_near_mujocos(file: str) -> None:
    scene = robot(file)
    camera = 0 if scene[0].ncam else -1
    with mujoco.Renderer(scene[0], *SIZE) as theirs:
        theirs.update_scene(scene[1], camera)
        assert difference(draw(scene, camera), theirs.render()) < 3.0


@pytest.mark.usefixtures("gl")
@pytest.mark.parametrize("camera", ["front", "flat", -1])
def test_all_that_is_drawn_is_near_mujocos(scene: tuple[Any, Any], camera: Any) -> None:
    with mujoco.Renderer(scene[0], *SIZE) as theirs:
        theirs.update_scene(scene[1], camera)
        assert difference(draw(scene, camera), theirs.render()) < 3.0


@pytest.mark.usefixtures("gl")
def test_depth_and_segments_are_mujocos(scene: tuple[Any, Any]) -> None:
    ours = pyfastenv.Renderer(scene[0], *SIZE)
    with mujoco.Renderer(scene[0], *SIZE) as theirs:
        for renderer in (ours, theirs):
            renderer.update_scene(scene[1], "front")
            renderer.enable_depth_rendering()
        depth, expected = ours.render(), theirs.render()
        near = np.abs(depth - expected) < 0.01 * expected
        assert near.mean() > 0.97  # the rest are edges
        for renderer in (ours, theirs):
            renderer.enable_segmentation_rendering()
        assert (ours.render() == theirs.render()).all(-1).mean() > 0.97
    ours.disable_segmentation_rendering()
    assert ours.render().dtype == np.uint8


SHEETS = """<mujoco><worldbody>
  <geom type="cylinder" zaxis="0 -1 0" size="1 .02" pos="0 .1 0" rgba=".4 .8 .6 .5"/>
  <geom size=".1" pos="1 0 0" rgba="1 0 0 1"/><geom size=".1" pos="1 0 0"/>
</worldbody></mujoco>"""


@pytest.mark.usefixtures("gl")
@pytest.mark.parametrize("y", [-1.0, -0.1, -0.01, -0.001, 0.003, 0.03])
def test_triangles_with_a_corner_beside_the_eye_are_whole(y: float) -> None:
    model, data = load(
        f"""<mujoco><asset><mesh name="q" inertia="shell" face="0 1 2 1 3 2"
        vertex="0 {y} 0 3 6 0 -3 6 0 0 12 0"/></asset><worldbody>
        <geom type="mesh" mesh="q" contype="0" conaffinity="0"/>
        <camera name="c" pos="0 0 .3" xyaxes="1 0 0 0 0 1"/></worldbody></mujoco>"""
    )
    with mujoco.Renderer(model, *SIZE) as theirs, pyfastenv.Renderer(model, *SIZE) as ours:
        for renderer in (ours, theirs):
            renderer.enable_segmentation_rendering()
            renderer.update_scene(data, "c")
        assert (ours.render() != theirs.render()).any(-1).mean() < 5e-3


@pytest.mark.usefixtures("gl")
def test_thin_sheets_and_coinciding_geoms_are_mujocos() -> None:
    """A lid's light covers all of it; of geoms in the same place the last is seen."""
    scene = load(SHEETS)
    with mujoco.Renderer(scene[0], *SIZE) as theirs, pyfastenv.Renderer(scene[0], *SIZE) as ours:
        for renderer in (ours, theirs):
            renderer.update_scene(scene[1])
        assert difference(ours.render(), theirs.render()) < 1.0
        for renderer in (ours, theirs):
            renderer.enable_segmentation_rendering()
        assert (ours.render() == theirs.render()).all(-1).mean() > 0.99


FOG = int(mujoco.mjtRndFlag.mjRND_FOG)
FLOOR = '<geom type="plane" size="3 3 .1" rgba=".5 .6 .7 1"/>'
BALL = '<geom size=".3" pos="0 0 .6" rgba=".8 .3 .2 1"/>'
LAMP = '<light pos="0 -1 3" dir="0 .3 -1"/>'
ABOVE = '<light type="directional" pos="0 0 1.5" dir="0 .1 -1"/>'
CUBE = """<texture name="t" type="cube" builtin="gradient" rgb1="1 0 0" rgb2="0 1 0" width="32"
  height="192" mark="cross" markrgb="0 0 1"/><material name="m" texture="t"/>"""
SKY = """<texture type="skybox" builtin="gradient" rgb1=".3 .5 .7" rgb2="0 0 0" width="64"
  height="384"/>"""
RED_FOG = '<map fogstart="{}" fogend="{}"/><rgba fog="1 0 0 1" haze="0 1 0 1"/>'
LAMPS = "".join(
    f'<light pos="{np.cos(i):.2f} {np.sin(i):.2f} 3" diffuse=".1 .15 .1" castshadow="false"/>'
    for i in range(14)
)
PANES = "".join(
    f'<geom type="box" size="1 .005 1" pos="0 {1 - 0.04 * i:.2f} 1" rgba=".1 {i < 8:d} .1 .1"/>'
    for i in range(24)
)
TABLE = '<geom type="plane" size=".5 .5 .1" pos="0 0 .9" rgba=".2 .9 .2 1"/>'
LOOKS = {  # worldbody, asset, visual, whether there is fog, the most difference
    "more lights than OpenGL has": (LAMPS + FLOOR + BALL, "", "", False, 1.0),
    "a cube on a plane": (LAMP + FLOOR.replace("rgba", 'material="m" rgba'), CUBE, "", False, 1.5),
    "a plane's shadow": (LAMP + FLOOR + TABLE, "", "", False, 1.0),
    "what is behind a light": (
        f'{ABOVE}{FLOOR}<geom type="box" size=".4 .4 .1" pos="0 0 1.8"/>', "", "", False, 1.0),
    "fog without a sky": (LAMP + FLOOR + BALL, "", RED_FOG.format(1, 2), True, 1.0),
    "fog and a sky": (LAMP + FLOOR + BALL, SKY, RED_FOG.format(1, 2), True, 1.0),
    "fog and haze": (
        LAMP + FLOOR.replace("3 3", "0 0") + BALL, SKY, RED_FOG.format(1, 4), True, 1.0),
    "fog that ends first": (LAMP + FLOOR + BALL, "", RED_FOG.format(2, 1), True, 1.0),
    "no map of shadows": (LAMP + FLOOR + BALL, "", '<quality shadowsize="0"/>', False, 1.0),
    "a sheet's shadow": (
        f'{LAMP}{FLOOR}<geom type="mesh" mesh="q" pos="0 0 .8" contype="0" conaffinity="0"/>',
        '<mesh name="q" inertia="shell" vertex="-.6 -.6 0 .6 -.6 0 .6 .6 0 -.6 .6 0" '
        'face="0 1 2 0 2 3"/>', "", False, 2.0),
    "a ball in a glass box": (
        f'{LAMP}{FLOOR}{BALL}<geom type="box" size=".6 .6 .6" pos="0 0 .6" rgba=".3 .6 .9 .1"/>',
        "", "", False, 1.0),
    "a ball in a glass mesh": (
        f'{LAMP}{FLOOR}{BALL}<geom type="mesh" mesh="k" pos="0 0 .6" rgba=".3 .6 .9 .1"/>',
        '<mesh name="k" vertex="-.6 -.6 -.6 .6 -.6 -.6 .6 .6 -.6 -.6 .6 -.6 '
        '-.6 -.6 .6 .6 -.6 .6 .6 .6 .6 -.6 .6 .6"/>', "", False, 1.0),
    "haze over a transparent plane": (
        LAMP + FLOOR.replace("3 3", "0 0").replace("7 1", "7 .5") + BALL, SKY, "",
        False, 1.5),
    "two dozen panes": (LAMP + FLOOR + PANES, "", "", False, 1.5),
}  # fmt: skip


@pytest.mark.usefixtures("gl")
@pytest.mark.parametrize("name", LOOKS)
def test_looks_are_mujocos(name: str) -> None:
    body, asset, visual, has_fog, most = LOOKS[name]
    scene = load(
        f"""<mujoco><visual>{visual}</visual><asset>{asset}</asset><worldbody>{body}
        <camera name="c" pos="0 -3 1.5" xyaxes="1 0 0 0 .4 1"/></worldbody></mujoco>"""
    )
    with mujoco.Renderer(scene[0], *SIZE) as theirs, pyfastenv.Renderer(scene[0], *SIZE) as ours:
        for renderer in (ours, theirs):
            renderer.update_scene(scene[1], "c")
            renderer.scene.flags[FOG] = has_fog
        assert difference(ours.render(), theirs.render()) < most


def test_the_groups_of_an_option_are_hidden(scene: tuple[Any, Any]) -> None:
    option = mujoco.MjvOption()
    option.geomgroup[0] = 0
    renderer = pyfastenv.Renderer(scene[0], *SIZE)
    renderer.enable_segmentation_rendering()
    renderer.update_scene(scene[1], "front", option)
    kinds = set(renderer.render()[..., 1].ravel())
    assert kinds == {-1, int(mujoco.mjtObj.mjOBJ_SITE)}


# ---- the same bits -------------------------------------------------------------------------------


TEXTURED = """<mujoco>
  <asset>
    <texture name="sky" type="skybox" builtin="gradient" rgb1=".3 .5 .7" rgb2="0 0 0" width="{sky}"
             height="{high}" mark="random" random=".2"/>
    <texture name="flat" type="2d" builtin="checker" rgb1=".1 .2 .3" rgb2=".6 .7 .8"
             width="{width}" height="{height}" mark="random" random=".3"/>
    <texture name="cube" type="cube" builtin="flat" rgb1=".9 .2 .3" width="{sky}" height="{high}"
             mark="random" random=".4"/>
    <material name="flat" texture="flat" texrepeat="{repeat} {repeat}"/>
    <material name="cube" texture="cube"/>
  </asset>
  <worldbody>
    <light pos="0 -1 3"/>
    <geom type="plane" size="30 30 .1" material="flat"/>
    <geom type="box" size=".4 .3 .3" pos="0 0 .6" euler="10 20 30" material="cube"/>
    <camera name="near" pos="0 -3 1.5" xyaxes="1 0 0 0 .4 1"/>
    <camera name="turned" pos="0 -3 1.5" xyaxes=".8 .6 0 -.1 .4 1"/>
    <camera name="far" pos="0 -25 6" xyaxes="1 0 0 0 .2 1"/>
    <camera name="aside" pos="20 0 9" xyaxes="0 1 0 -.4 0 1"/>
  </worldbody>
</mujoco>"""


def textured(seed: int) -> tuple[Any, Any]:
    """A scene whose textures have sizes of 1 to 200 texels."""
    width, height, sky = np.random.default_rng(seed).integers(1, 200, 3) if seed else (1, 1, 1)
    repeat = [0.3, 4, 90][seed % 3]
    return load(TEXTURED.format(width=width, height=height, sky=sky, high=6 * sky, repeat=repeat))


@pytest.mark.parametrize("seed", [None, *range(6)])
def test_instruction_sets_agree(seed: int | None) -> None:
    """AVX2 and AVX-512 to the bit; the baseline has no fused multiply-add.

    AVX-512 reads texels that are near one another at once.
    """
    model, data = parse(SCENE) if seed is None else textured(seed)
    try:
        renderers = [pyfastenv.Renderer(model, *SIZE, kernels=k) for k in ("avx2", "avx512")]
    except ValueError:
        pytest.skip("this processor has fewer instruction sets")
    baseline = pyfastenv.Renderer(model, *SIZE, kernels="baseline")
    for camera in range(model.ncam):
        for renderer in (*renderers, baseline):
            renderer.update_scene(data, camera)
        avx2, avx512 = (renderer.render() for renderer in renderers)
        assert np.array_equal(avx2, avx512)
        assert difference(baseline.render(), avx2) < 0.05


def test_pictures_do_not_depend_on_those_before() -> None:
    """The sky is kept while the camera looks in the same direction."""
    model, data = textured(1)
    kept = pyfastenv.Renderer(model, *SIZE)
    for camera in [0, 0, 1, 0, 2, 3, 3, 0]:
        new = pyfastenv.Renderer(model, *SIZE)
        for renderer in (kept, new):
            renderer.update_scene(data, camera)
        assert np.array_equal(kept.render(), new.render())


# ---- its interface -------------------------------------------------------------------------------


def test_out_is_written_and_returned(scene: tuple[Any, Any]) -> None:
    renderer = pyfastenv.Renderer(scene[0], *SIZE)
    renderer.update_scene(scene[1], "front")
    out = np.zeros((*SIZE, 3), np.uint8)
    assert renderer.render(out=out) is out
    assert np.array_equal(out, draw(scene))
    with pytest.raises(ValueError, match=r"out: expected .*96, 128, 3"):
        renderer.render(out=np.zeros((128, 96, 3), np.uint8))
    with pytest.raises(ValueError, match=r"out: expected .* uint8 array, got .* float32"):
        renderer.render(out=np.zeros((*SIZE, 3), np.float32))
    with pytest.raises(ValueError, match="out"):
        renderer.render(out=np.zeros((*SIZE, 6), np.uint8)[..., ::2])


def test_geoms_that_a_user_adds_are_drawn(scene: tuple[Any, Any]) -> None:
    renderer = pyfastenv.Renderer(scene[0], *SIZE)
    renderer.update_scene(scene[1], "front")
    before = renderer.render()
    added = renderer.scene.geoms[renderer.scene.ngeom]
    mujoco.mjv_initGeom(
        added, mujoco.mjtGeom.mjGEOM_SPHERE, np.full(3, 0.2), np.array([0.0, -1.0, 1.0]),
        np.eye(3).ravel(), np.array([1.0, 0.0, 0.0, 1.0], np.float32),
    )  # fmt: skip
    renderer.scene.ngeom += 1
    assert difference(renderer.render(), before) > 0.5


def test_heights_are_taken_anew_when_asked() -> None:
    scene = parse(SCENE)
    renderer = pyfastenv.Renderer(scene[0], *SIZE)
    renderer.update_scene(scene[1], "front")
    before = renderer.render()
    scene[0].hfield_data[:] = 1.0
    assert np.array_equal(renderer.render(), before)
    renderer.upload_height_fields()
    assert difference(renderer.render(), before) > 0.1


def test_a_new_renderer_takes_the_models_look_anew() -> None:
    """Fog, statistics and materials; an older renderer of the same model keeps its own."""
    model, data = parse(SCENE)
    model.vis.map.fogstart, model.vis.map.fogend = 0.1, 3.0
    old = pyfastenv.Renderer(model, *SIZE)

    def drawn_by(renderer: pyfastenv.Renderer) -> np.ndarray:
        renderer.update_scene(data, "front")
        renderer.scene.flags[FOG] = True
        return renderer.render()

    before = drawn_by(old)
    model.vis.rgba.fog[:] = [1, 0, 0, 1]
    foggy = drawn_by(pyfastenv.Renderer(model, *SIZE))
    assert difference(foggy, before) > 1.0 and np.array_equal(drawn_by(old), before)
    model.mat_texrepeat[:] = 1
    assert difference(drawn_by(pyfastenv.Renderer(model, *SIZE)), foggy) > 1.0


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"height": 0}, "height: expected 1 to 8192 pixels, got 0"),
        ({"width": 10_000}, "width: expected 1 to 8192 pixels, got 10000"),
        ({"samples": 3}, "samples: expected 1, 4 or 16, got 3"),
        ({"max_geom": 0}, "max_geom: expected at least 1, got 0"),
        ({"kernels": "mmx"}, "kernels: expected avx512, avx2 or baseline"),
    ],
)
def test_bad_arguments(scene: tuple[Any, Any], kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pyfastenv.Renderer(scene[0], **kwargs)


@pytest.mark.parametrize("name", ["height", "width", "max_geom", "samples"])
def test_numbers_that_are_not_whole(scene: tuple[Any, Any], name: str) -> None:
    with pytest.raises(TypeError, match=f"{name}: expected an integer, got 10.5"):
        pyfastenv.Renderer(scene[0], **{name: 10.5})


def test_what_is_no_model() -> None:
    with pytest.raises(TypeError, match=r"model: expected a mujoco\.MjModel, got 'robot\.xml'"):
        pyfastenv.Renderer("robot.xml")


@pytest.mark.parametrize(
    ("camera", "message"),
    [
        ("back", "no camera 'back'; this model has: front, flat"),
        (2, "camera: expected -1 to 1, got 2"),
    ],
)
def test_bad_cameras(scene: tuple[Any, Any], camera: Any, message: str) -> None:
    renderer = pyfastenv.Renderer(scene[0], *SIZE)
    with pytest.raises(ValueError, match=message):
        renderer.update_scene(scene[1], camera)


@pytest.mark.parametrize(
    ("kind", "field", "number", "message"),
    [
        ("FIXED", "fixedcamid", 7, "fixedcamid: expected 0 to 1, got 7"),
        ("FIXED", "fixedcamid", -1, "fixedcamid: expected 0 to 1, got -1"),
        ("TRACKING", "trackbodyid", 9, "trackbodyid: expected 0 to 0, got 9"),
        ("FREE", "type", 17, "type: expected one of mujoco.mjtCamera, got 17"),
        ("USER", "fixedcamid", 0, "type: mjCAMERA_USER needs a scene whose own cameras are set"),
    ],
)
def test_bad_cameras_of_mujocos(
    scene: tuple[Any, Any], kind: str, field: str, number: int, message: str
) -> None:
    """MuJoCo ends the process."""
    camera = mujoco.MjvCamera()
    camera.type = getattr(mujoco.mjtCamera, f"mjCAMERA_{kind}")
    setattr(camera, field, number)
    renderer = pyfastenv.Renderer(scene[0], *SIZE)
    with pytest.raises(ValueError, match=f"camera: {message}"):
        renderer.update_scene(scene[1], camera)


def test_a_scenes_own_cameras(scene: tuple[Any, Any]) -> None:
    renderer = pyfastenv.Renderer(scene[0], *SIZE)
    renderer.update_scene(scene[1], "front")
    camera = mujoco.MjvCamera()
    camera.type = mujoco.mjtCamera.mjCAMERA_USER
    renderer.update_scene(scene[1], camera)
    assert np.array_equal(renderer.render(), draw(scene))


def test_a_pose_that_is_not_finite_is_said() -> None:
    model, data = parse(SCENE)
    renderer = pyfastenv.Renderer(model, *SIZE)
    data.geom_xpos[1] = np.nan
    renderer.update_scene(data, "front")
    out = np.zeros((*SIZE, 3), np.uint8)
    with pytest.raises(ValueError, match="got NaN or infinity in the position of geom 1"):
        renderer.render(out=out)
    assert not out.any()


def test_a_scene_that_was_never_updated_and_a_closed_renderer(scene: tuple[Any, Any]) -> None:
    renderer = pyfastenv.Renderer(scene[0], *SIZE)
    with pytest.raises(ValueError, match="the camera sees nothing; was it updated"):
        renderer.render()
    renderer.close()
    with pytest.raises(RuntimeError, match=r"render\(\) after close\(\)"):
        renderer.render()


def test_what_is_not_drawn_is_refused(scene: tuple[Any, Any]) -> None:
    renderer = pyfastenv.Renderer(scene[0], *SIZE)
    option = mujoco.MjvOption()
    option.label = mujoco.mjtLabel.mjLABEL_GEOM
    renderer.update_scene(scene[1], "front", option)
    assert renderer.refusal() == "labels are not drawn"
    with pytest.raises(ValueError, match="labels are not drawn"):
        renderer.render()
    renderer.update_scene(scene[1], "front")
    for flag in ("mjRND_SEGMENT", "mjRND_DEPTH"):  # the second not in older versions
        if number := getattr(mujoco.mjtRndFlag, flag, None):
            renderer.scene.flags[int(number)] = 1
            assert "segments and depth" in renderer.refusal()
            renderer.scene.flags[int(number)] = 0


SKIN = """<mujoco><asset><skin name="s" vertex="0 0 0 1 0 0 0 1 0" face="0 1 2">
  <bone body="b" bindpos="0 0 0" bindquat="1 0 0 0" vertid="0 1 2" vertweight="1 1 1"/>
</skin></asset>
<worldbody><body name="b"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""


def test_models_with_skins_are_refused() -> None:
    model, data = load(SKIN)
    renderer = pyfastenv.Renderer(model, *SIZE)
    renderer.update_scene(data)
    with pytest.raises(ValueError, match="skins and flexes are not drawn"):
        renderer.render()


# ---- environments --------------------------------------------------------------------------------


def test_environments_are_drawn_without_opengl() -> None:
    code_path = {"render_mode": "rgb_array", "width": 64, "height": 48}
    with pyfastenv.make_vec("HalfCheetah-v5", 2, renderer="pyfastenv", **code_path) as envs:
        envs.reset(seed=0)
        frames = envs.render()
    assert frames[0].shape == (48, 64, 3) and frames[0].std() > 5


def test_the_renderer_has_a_known_name() -> None:
    with pytest.raises(ValueError, match="renderer: expected one of auto, pyfastenv, mujoco"):
        pyfastenv.make_vec("HalfCheetah-v5", 1, renderer="povray")
