"""The renderer and scenes that make no sense: an error or a picture, never a crash or a hang."""

import multiprocessing
from typing import Any

import mujoco
import numpy as np
import pytest
from threads import run_threads

import pyfastenv

WEDGE = '<mesh name="wedge" vertex="0 0 0 .5 0 0 0 .5 0 0 0 .5"/>'
SCENE = f"""<mujoco><asset>{WEDGE}<hfield name="ground" nrow="2" ncol="2" size="1 1 .5 .1"/>
  <texture name="t" type="2d" builtin="checker" width="4" height="4"/>
  <material name="m" texture="t"/></asset>
  <worldbody><light pos="0 0 3"/><geom type="mesh" mesh="wedge" material="m"/>
    <geom type="hfield" hfield="ground" pos="0 0 -1"/><geom size=".2" pos=".5 .5 0" material="m"/>
  </worldbody></mujoco>"""


def drawn(model: Any, height: int = 16, width: int = 16, camera: Any = -1) -> Any:
    """A picture of the default pose: colours, distances and objects are drawn."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    with pyfastenv.Renderer(model, height, width, max_geom=200) as renderer:
        renderer.update_scene(data, camera)
        renderer.enable_depth_rendering()
        renderer.render()
        renderer.enable_segmentation_rendering()
        renderer.render()
        renderer.disable_segmentation_rendering()
        return renderer.render()


# ---- models that lack what they name ---------------------------------------------------------


@pytest.mark.parametrize("kind", ["MESH", "HFIELD", "SDF"])
def test_meshes_and_heights_that_are_not_there(kind: str) -> None:
    """Like MuJoCo's renderer, this one shows nothing of a mesh without number."""
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    with pyfastenv.Renderer(model, 16, 16) as renderer:
        renderer.update_scene(data)
        expected = renderer.render()
        scene = renderer.scene
        geom = scene.geoms[scene.ngeom]
        place = np.zeros(3), np.eye(3).ravel(), np.ones(4, np.float32)
        mujoco.mjv_initGeom(geom, getattr(mujoco.mjtGeom, f"mjGEOM_{kind}"), np.ones(3), *place)
        scene.ngeom += 1
        for dataid in (2, 1_000_000):
            geom.dataid = dataid
            with pytest.raises(
                ValueError, match=f"geom 3 .* of the model's .*, got number {dataid}"
            ):
                renderer.render()
        geom.dataid = -1
        assert np.array_equal(renderer.render(), expected) and expected.any()


def test_textures_that_are_not_there() -> None:
    model = mujoco.MjModel.from_xml_string(SCENE)
    for texture in (-1, 7):
        model.mat_texid[:] = texture
        assert drawn(model).any()


def test_exponents_that_are_negative() -> None:
    """They are zero: MuJoCo compiles them, and a power by squaring has no end."""
    lit = '<mujoco><asset><material name="m" specular="1" shininess="{}"/></asset><worldbody>'
    lit += '<light pos="0 0 3" exponent="{}"/><geom size=".1" material="m"/></worldbody></mujoco>'
    zero = drawn(mujoco.MjModel.from_xml_string(lit.format(0, 0)))
    assert zero.any()
    for shininess, exponent in ((-1, 0), (0, -1), (-1e9, -1e9)):
        model = mujoco.MjModel.from_xml_string(lit.format(shininess, exponent))
        assert np.array_equal(drawn(model), zero)


def test_the_middle_of_a_plane_with_a_cubes_texture() -> None:
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><asset><texture name="t" type="cube" builtin="flat" rgb1="1 0 .2" rgb2="1 0 .2"
          width="4" height="24"/><material name="m" texture="t" emission="1"/></asset><worldbody>
        <geom type="plane" size="3 3 .1" material="m"/><camera name="above" pos="0 0 2"/>
        </worldbody></mujoco>"""
    )
    assert (drawn(model, 17, 17, "above") == [255, 0, 51]).all()


# ---- threads and processes -------------------------------------------------------------------


def test_a_thousand_renders_from_eight_threads() -> None:
    expected = drawn(mujoco.MjModel.from_xml_string(SCENE))
    model = mujoco.MjModel.from_xml_string(SCENE)  # whose meshes are made by whoever is first

    def work() -> None:
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        with pyfastenv.Renderer(model, 16, 16, max_geom=200) as renderer:
            for _ in range(125):
                renderer.update_scene(data)
                assert np.array_equal(renderer.render(), expected)

    run_threads(*[work] * 8)


def test_a_forked_process_draws() -> None:
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    renderer = pyfastenv.Renderer(model, 16, 16)
    renderer.update_scene(data)
    expected = renderer.render()
    receiver, sender = multiprocessing.Pipe(duplex=False)

    def child() -> None:
        sender.send([np.array_equal(renderer.render(), expected), drawn(model).tolist()])

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    assert receiver.poll(30)
    same, anew = receiver.recv()
    process.join()
    assert same and process.exitcode == 0 and np.array_equal(anew, drawn(model))


# ---- models that make no sense ---------------------------------------------------------------


def random_model(rng: np.random.Generator) -> str:
    """MJCF of odd numbers, most of which MuJoCo compiles."""

    def pick(*values: object) -> str:
        return str(values[rng.integers(len(values))])

    def number() -> str:
        return pick(0, 1e-12, 1e-4, 0.1, 0.5, 1, 3, 100, 1e6, 1e12, 1e30)

    def signed(count: int) -> str:
        return " ".join(pick("", "-") + number() for _ in range(count))

    def sizes(count: int) -> str:
        return " ".join(pick(1e-12, 1e-4, 0.1, 0.1, 1, 1, 3, 100, 1e9, 1e30) for _ in range(count))

    def color() -> str:
        return " ".join(pick(0, 0.3, 1, 2, -1, 1e20) for _ in range(4))

    def light() -> str:
        return (
            f'<light pos="{signed(3)}" dir="{signed(3)}" cutoff="{pick(0, 45, 90, 180, 1e9)}" '
            f'exponent="{pick(0, 1, -3, 1e9)}" attenuation="{sizes(3)}" diffuse="{sizes(3)}" '
            f'type="{pick("spot", "directional", "point", "image")}" '
            f'castshadow="{pick("true", "false")}"/>'
        )

    def geom(*more: str) -> str:
        kind = pick("sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", *more)
        what = {"mesh": 'mesh="wedge"', "hfield": 'hfield="ground"'}.get(kind, "")
        place = f'pos="{signed(3)}" euler="{signed(3)}"'
        look = f'rgba="{color()}"' if rng.random() < 0.5 else f'material="{pick("m", "cube")}"'
        return f'<geom type="{kind}" size="{sizes(3)}" {what} {place} {look} mass="1"/>'

    heights = " ".join(pick(0, 0, 1, 1e9) for _ in range(6))
    return f"""<mujoco><option gravity="0 0 0"/>
      <statistic extent="{pick(1e-9, 0.1, 1, 1e6)}" center="{signed(3)}"/>
      <visual>
        <map znear="{pick(1e-4, 0.01, 1, 100)}" zfar="{pick(1e-3, 1, 50, 1e9)}" haze="{number()}"
          shadowclip="{number()}" shadowscale="{number()}" fogstart="{number()}"
          fogend="{number()}"/>
        <quality shadowsize="{pick(0, 1, 64, 4096)}" offsamples="{pick(0, 1, 4, 16)}"/>
        <global fovy="{pick(1e-6, 45, 179)}"/>
      </visual>
      <asset><mesh name="wedge" vertex="0 0 0 .5 0 0 0 .5 0 0 0 .5" inertia="shell"
          scale="{" ".join(pick(1e-3, 0.1, 1, -1, 100, 1e6) for _ in range(3))}"/>
        <hfield name="ground" nrow="2" ncol="3" size="{sizes(4)}" elevation="{heights}"/>
        <texture name="t" type="2d" builtin="checker" width="{pick(1, 3)}" height="{pick(1, 5)}"/>
        <texture name="c" type="cube" builtin="gradient" width="{pick(1, 4)}" height="6"/>
        <texture name="s" type="skybox" builtin="gradient" width="4" height="24"/>
        <material name="m" texture="t" texrepeat="{signed(2)}" reflectance="{pick(0, 0.5, 9)}"
          shininess="{signed(1)}" specular="{number()}" emission="{number()}"
          texuniform="{pick("true", "false")}" rgba="{color()}"/>
        <material name="cube" texture="c" texuniform="{pick("true", "false")}"/></asset>
      <worldbody>{"".join(light() for _ in range(rng.integers(3)))}
        {"".join(geom("plane", "plane", "hfield") for _ in range(rng.integers(1, 5)))}
        <body><freejoint/>{geom()}<site name="a" pos="{signed(3)}"/></body>
        <site name="b" size="{sizes(1)}"/>
        <camera name="c" pos="{signed(3)}" euler="{signed(3)}" fovy="{pick(1e-6, 30, 179)}"/>
      </worldbody>
      <tendon><spatial width="{number()}"><site site="a"/><site site="b"/></spatial></tendon>
      </mujoco>"""


def outcome(seed: int) -> str:
    """What becomes of a random model: not compiled, drawn, or why the scene is refused."""
    rng = np.random.default_rng(seed)
    xml = random_model(rng)
    height, width = rng.choice([1, 2, 17, 40], 2)
    try:
        model = mujoco.MjModel.from_xml_string(xml)
    except ValueError:
        return "not compiled"
    try:
        drawn(model, int(height), int(width), "c" if rng.random() < 0.5 else -1)
    except ValueError as error:
        return str(error)
    return "drawn"


def test_models_that_make_no_sense() -> None:
    outcomes = [outcome(seed) for seed in range(60)]
    assert outcomes.count("drawn") > 30
    rest = set(outcomes) - {"drawn", "not compiled"}
    assert all(said.startswith("scene: ") for said in rest)
