"""Own tasks that have some of the model for themselves, or read the new state after a step."""

from typing import Any

import mujoco
import numpy as np
import pytest
from parity import assert_same, both_engines
from plain_python import beside_plain

import pyfastenv
from pyfastenv.errors import EnvError, TaskCodeError

XML = """<mujoco><option timestep=".01"/>
  <asset><hfield name="ground" nrow="4" ncol="3" size="2 2 .3 .1"/></asset>
  <worldbody><geom type="hfield" hfield="ground" pos="0 0 -1.2"/><site name="target" pos=".5 0 0"/>
    <body name="arm"><joint name="hinge" axis="0 1 0" range="-150 150" damping=".1"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.5" size=".05"/><site name="tip" pos="0 0 -.5"/>
      <body name="bob" pos="0 0 -.6"><joint name="slide" type="slide" axis="0 0 1"/>
        <geom size=".1"/></body></body>
    <body name="ball" pos="0 0 .5"><freejoint name="free"/><geom size=".1"/></body></worldbody>
  <actuator><position joint="hinge" kp="2" ctrlrange="-1 1"/><motor joint="slide"/></actuator>
  <sensor><framepos name="target" objtype="site" objname="target"/>
    <accelerometer name="acceleration" site="tip"/></sensor></mujoco>"""


class Reach(pyfastenv.Task):
    model = XML
    frame_skip = 2
    max_episode_steps = 25
    up_to_date = True
    model_fields = ("site_pos", "hfield_data")

    def reset(self, data, rng):
        for joint in range(self.model.njnt):
            if self.model.jnt_limited[joint]:
                low, high = self.model.jnt_range[joint]
                data.qpos[self.model.jnt_qposadr[joint]] = rng.uniform(low, high)
        target = self.model.site("target").pos
        target[0] += rng.uniform(-0.2, 0.2)
        self.model.site_pos[0, 1] = rng.uniform(-0.2, 0.2)
        self.model.hfield_data[:] = rng.random(12)
        mujoco.mj_forward(self.model, data)
        mujoco.mj_step2(self.model, data)
        mujoco.mj_step(self.model, data, 3)
        mujoco.mj_step1(self.model, data)
        data.time = 0.5

    def step(self, data, info):
        self.simulate(data)
        info["contacts"] = data.ncon
        return -np.linalg.norm(data.site("tip").xpos - data.site("target").xpos), False

    def observation(self, data, obs):
        obs["time"] = data.time
        obs["state"] = np.concatenate((data.qpos, data.qvel))
        obs["tip"] = data.site("tip").xpos
        obs["target"] = data.sensor("target").data
        obs["acceleration"] = data.sensor("acceleration").data


class Shapes(Reach):
    """The ball is of another kind in each episode; one action makes it one that there is not."""

    model_fields = (*Reach.model_fields, "geom_size", "geom_type")
    spoilt = False

    def reset(self, data, rng):
        super().reset(data, rng)
        self.model.geom_type[3] = 9 if self.spoilt else rng.integers(2, 7)
        self.model.geom_size[3] = rng.uniform(0.1, 0.3, 3)

    def step(self, data, action, info):
        if action[1] == -7.0:
            self.model.geom_type[3] = -1
        return super().step(data, info)

    def observation(self, data, obs):
        super().observation(data, obs)
        obs["kind"] = self.model.geom_type[3]


@pytest.mark.parametrize("task", [Reach, Shapes])
def test_plain_python_gives_the_same_bits(task: type[pyfastenv.Task]) -> None:
    pairs = beside_plain(task, 100, seed=3)  # four episodes
    assert sum(pair.results[-1].get("contacts", [0.0])[0] for pair in pairs) > 0


def test_what_is_read_after_a_step_is_the_new_states() -> None:
    envs = pyfastenv.make_vec(Reach, 2)
    late = pyfastenv.make_vec(Reach, 2, up_to_date=False)
    groups = envs.observation_groups
    obs, _ = envs.reset(seed=0)
    late.reset(seed=0)
    for _ in range(5):
        obs, *_ = envs.step(np.ones((2, 2)))
        stale, *_ = late.step(np.ones((2, 2)))
    angle = obs[:, groups["state"]][:, 0]
    tip = 0.5 * np.stack([-np.sin(angle), 0 * angle, -np.cos(angle)], axis=1)
    np.testing.assert_allclose(obs[:, groups["tip"]], tip, atol=1e-14)
    assert np.abs(stale[:, groups["tip"]] - obs[:, groups["tip"]]).max() > 1e-4


def test_a_reset_leaves_actuators_out() -> None:
    class Wound(Reach):
        def reset(self, data):
            data.joint("hinge").qpos[0] = 1.0  # far from where its position servo wants it
            mujoco.mj_step(self.model, data, 10)

    class Free(Wound):
        def setup(self):
            self.model.actuator_gainprm[:] = 0.0
            self.model.actuator_biasprm[:] = 0.0

    wound, free = pyfastenv.make_vec(Wound, 1), pyfastenv.make_vec(Free, 1)
    assert_same(wound.reset(seed=0)[0], free.reset(seed=0)[0])
    assert not np.array_equal(wound.step(np.ones((1, 2)))[0], free.step(np.ones((1, 2)))[0])


@pytest.mark.parametrize("task", [Reach, Shapes])
def test_model_fields_are_each_environments_own_and_part_of_snapshots(task: Any) -> None:
    envs = pyfastenv.make_vec(task, 4, num_threads=1, autoreset_mode="Disabled")
    other = pyfastenv.make_vec(task, 4, num_threads=3, autoreset_mode="Disabled")
    obs, _ = envs.reset(seed=0)
    targets = obs[:, envs.observation_groups["target"]]
    assert len(np.unique(targets, axis=0)) == 4
    # every episode begins with the model's own
    assert (np.abs(targets[:, 0] - 0.5) <= 0.2).all()
    other.reset(seed=1)
    other.set_state(envs.get_state())
    for _ in range(20):
        results = envs.step(np.ones((4, 2)))
        assert_same(other.step(np.ones((4, 2))), results)
        assert_same(results[0][:, envs.observation_groups["target"]], targets)
    with pytest.raises(ValueError, match="site_pos' is written by the task itself"):
        envs.set_model_field("site_pos", np.zeros(3))


def test_kinds_of_geoms_are_each_environments_own() -> None:
    envs = pyfastenv.make_vec(Shapes, 64, num_threads=1)
    kinds = envs.reset(seed=0)[0][:, envs.observation_groups["kind"]]
    assert set(kinds.ravel()) == {2.0, 3.0, 4.0, 5.0, 6.0}
    with pytest.raises(
        EnvError, match=r"geom_type\[3\]: expected a kind from 2 \(sphere\) .*, got -1"
    ):
        envs.step(np.tile([0.0, -7.0], (64, 1)))
    with pytest.raises(ValueError, match=r"Shapes: .*geom_type\[3\]: expected a kind .*, got 9"):
        pyfastenv.make_vec(Shapes, 1, spoilt=True)


def test_unlimited_actuators_have_unlimited_actions() -> None:
    space = pyfastenv.make_vec(Reach, 1).single_action_space
    np.testing.assert_array_equal(space.low, [-1, -np.inf])
    np.testing.assert_array_equal(space.high, [1, np.inf])


class Undeclared(Reach):
    model_fields = ("site_pos",)


class OfTime(Reach):
    def reset(self, data):
        data.ncon = 0


def test_mistakes() -> None:
    with pytest.raises(TaskCodeError, match=r"model_fields = \('hfield_data',\)"):
        pyfastenv.make_vec(Undeclared, 1)
    with pytest.raises((TaskCodeError, AttributeError), match="ncon"):
        pyfastenv.make_vec(OfTime, 1)
    with pytest.raises(ValueError, match="'geom_group', of randomise or model_fields, is no real"):
        pyfastenv.make_vec(Reach, 1, model_fields=("site_pos", "hfield_data", "geom_group"))
    with pytest.raises(TypeError, match="expected names such as"):
        pyfastenv.make_vec(Reach, 1, model_fields="site_pos")


class Rods(pyfastenv.Task):
    """A model of as many rods as a parameter says, and Jacobians of its sites."""

    count = 2

    def model(self):
        rod = """<body pos="0 0 -.2"><joint name="joint{0}" axis="0 1 .1" damping=".1"/>
            <geom type="capsule" size=".02" fromto="0 0 0 0 0 -.2"/>
            <site name="end{0}" pos="0 .01 -.2"/>{1}</body>"""
        inner = ""
        for i in reversed(range(self.count)):
            inner = rod.format(i, inner)
        motor = '<actuator><motor joint="joint0" ctrlrange="-1 1" ctrllimited="true"/></actuator>'
        return f"<mujoco><worldbody>{inner}</worldbody>{motor}</mujoco>"

    def reset(self, data, rng):
        data.qpos[:] = rng.uniform(-1, 1, self.model.nq)

    def step(self, data):
        self.simulate(data)
        return 0.0, False

    def observation(self, data, obs):
        linear, angular = np.zeros((3, self.model.nv)), np.zeros((3, self.model.nv))
        end = self.model.site("end1").id
        mujoco.mj_jacSite(self.model, data, linear, angular, end)
        obs["velocity"] = linear @ data.qvel
        obs["turning"] = angular @ data.qvel
        mujoco.mj_jacSite(self.model, data, None, angular, end)
        obs["angular"] = angular.ravel()


class RodsUpToDate(Rods):
    up_to_date = True


@pytest.mark.parametrize("task", [Rods, RodsUpToDate])
def test_a_model_of_parameters_and_jacobians(task, poison) -> None:
    assert pyfastenv.make_vec(task, 1).get_model_field("dof_damping").shape == (1, 2)
    lanes, stepped = both_engines(task, 5, count=3)
    plain = pyfastenv.debug(task, count=3)
    expected = plain.reset(seed=0)[0]
    assert expected.shape == (15,)
    for envs in (lanes, stepped):
        assert_same(envs.reset(seed=0)[0][0], expected)
    for _ in range(20):
        results = [envs.step(np.full((5, 1), 0.7))[0] for envs in (lanes, stepped)]
        assert_same(*results)
        assert_same(results[0][0], plain.step(np.full(1, 0.7))[0])
    assert lanes.stats()["lane_steps"] == lanes.stats()["steps"] > 0


def test_a_model_may_be_an_argument() -> None:
    envs = pyfastenv.make_vec(Rods, 1, model=Rods(count=4).model)
    assert envs.get_model_field("dof_damping").shape == (1, 4)


class Wrong(Rods):
    def observation(self, data, obs):
        linear = np.zeros(3 * self.model.nv)
        mujoco.mj_jacSite(self.model, data, linear.reshape(3, self.model.nv).T, None, 0)
        obs["linear"] = linear


def test_a_jacobian_of_another_shape_is_refused() -> None:
    with pytest.raises((TaskCodeError, TypeError), match=r"jacp should be of shape|mj_jacSite"):
        pyfastenv.make_vec(Wrong, 1)
