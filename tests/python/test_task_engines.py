"""Own tasks whose physics runs in lanes: models and what is read of mjData have mj_step's bits."""

import sys
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
from parity import assert_same, both_engines, compare_engines, step_both
from plain_python import beside_plain

import pyfastenv
from pyfastenv.tasks.language.randomise import scale, shift, uniform

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "own_tasks"))
from hopper import Hopper

NUM_ENVS = 11  # a group and a rest


class Drawn(Hopper):
    randomise = {
        "body_mass": scale(0.8, 1.2),
        "geom_friction": uniform(0.5, 2.0, together=True),
        "dof_damping": shift(0.0, 0.3),
        "actuator_gear": scale(0.9, 1.1),
    }


WALKER = """<mujoco><option timestep=".004"/>
  <default><joint damping=".5" armature=".01"/></default>
  <worldbody><geom type="plane" size="20 20 1"/>
    <body name="trunk" pos="0 0 .4"><freejoint/>
      <geom type="capsule" fromto="-.2 0 0 .2 0 0" size=".07"/><site name="imu" pos=".1 0 .02"/>
      <body name="leg" pos=".15 0 0"><joint name="hip" axis="0 1 0" range="-60 60"/>
        <geom type="capsule" fromto="0 0 0 .05 0 -.25" size=".04"/></body>
    </body></worldbody>
  <actuator><position name="servo" joint="hip" kp="20" kv=".5" ctrlrange="-1 1"/></actuator>
  <sensor><gyro name="gyro" site="imu"/><accelerometer name="acceleration" site="imu"/>
    <jointpos name="angle" joint="hip"/><subtreelinvel name="velocity" body="trunk"/>
    <framezaxis name="up" objtype="site" objname="imu"/><clock name="clock"/></sensor>
  </mujoco>"""


class Feeling(pyfastenv.Task):
    model = WALKER
    frame_skip = 3

    def reset(self, data: Any, rng: Any) -> None:
        data.qpos[:] = self.init_qpos
        data.qvel[:3] = 0.3 * rng.standard_normal(3)

    def step(self, data: Any, action: Any, info: Any, rng: Any) -> tuple[Any, Any]:
        self.simulate(data)
        info["clock"] = data.sensor("clock").data[0]
        return data.sensor("velocity").data[0], data.qpos[2] < 0.12

    def observation(self, data: Any, obs: Any) -> None:
        obs["motion"] = data.qvel
        obs["gyro"] = data.sensor("gyro").data
        obs["acceleration"] = data.sensor("acceleration").data
        obs["angle"] = data.sensor("angle").data
        obs["up"] = data.sensor("up").data


class Weighed(Feeling):
    randomise = {"body_mass": scale(0.7, 1.3), "body_inertia": scale(0.7, 1.3)}


class Skinned(Feeling):
    """Contacts, and sensors of forces."""

    model = WALKER.replace(
        '<clock name="clock"/>',
        """<touch name="skin" site="shin"/><force name="pull" site="shin"/><clock name="clock"/>""",
    ).replace(
        '-.25" size=".04"/>', '-.25" size=".04"/><site name="shin" pos=".05 0 -.25" size=".1"/>'
    )

    def observation(self, data: Any, obs: Any) -> None:
        super().observation(data, obs)
        obs["skin"] = data.sensor("skin").data
        obs["pull"] = data.sensor("pull").data
        obs["ncon"] = data.ncon
        depth = 0.0
        for i in range(data.ncon):
            depth += data.contact[i].dist * data.contact[i].friction[0]
        obs["depth"] = depth


class Touching(Skinned):
    """A task that reads the last substep's forces of contacts, and calls MuJoCo's functions."""

    def observation(self, data: Any, obs: Any) -> None:
        super().observation(data, obs)
        pushed = np.zeros(6)
        for i in range(data.ncon):
            force = np.zeros(6)
            mujoco.mj_contactForce(self.model, data, i, force)
            pushed += force
        obs["pushed"] = pushed
        velocity = np.zeros(6)
        site = mujoco.mjtObj.mjOBJ_SITE
        mujoco.mj_objectVelocity(self.model, data, site, data.site("imu").id, velocity, 1)
        obs["velocity"] = velocity
        down, geom = np.array([0.0, 0.0, -1.0]), np.zeros(1, np.int32)
        above = np.array([data.qpos[0], data.qpos[1], 3.0])
        obs["below"] = mujoco.mj_ray(self.model, data, above, down, None, 1, -1, geom)


class UpToDate(Skinned):
    """A task that reads the new state, but for sensors of forces, which are the last substep's."""

    up_to_date = True

    def reset(self, data: Any, rng: Any) -> None:
        super().reset(data, rng)
        data.qpos[2] = 0.1
        mujoco.mj_forward(self.model, data)
        while data.nefc > 0:  # read here alone
            data.qpos[2] += 0.01
            mujoco.mj_forward(self.model, data)

    def observation(self, data: Any, obs: Any) -> None:
        super().observation(data, obs)
        obs["servo"] = data.actuator_force


class Activated(Skinned):
    """Reads what mj_step2 alone computes, though the rest of what it reads is of the new state."""

    model = Skinned.model.replace(
        "</actuator>",
        """<general joint="hip" gainprm="4" dyntype="filter" dynprm=".03"/>
        <general joint="hip" dyntype="integrator" ctrlrange="-1 1"/></actuator>""",
    )
    up_to_date = True

    def observation(self, data: Any, obs: Any) -> None:
        super().observation(data, obs)
        obs["activation"] = data.act
        obs["change"] = data.act_dot


class Servo(Feeling):
    """Asked for its control in the middle of a step, every two of three substeps."""

    control_every = 2
    gains = (8.0, 0.3)

    def control(self, data: Any, action: Any, ctrl: Any) -> None:
        error = action[0] - data.joint("hip").qpos[0]
        ctrl[0] = self.gains[0] * error - self.gains[1] * data.joint("hip").qvel[0] + data.time

    def observation(self, data: Any, obs: Any) -> None:
        super().observation(data, obs)
        obs["last_control"] = data.ctrl


class Remembering(Servo):
    """A task whose control reads memory that may have changed before the physics."""

    control_every = 1
    target = pyfastenv.memory()

    def control(self, data: Any, action: Any, ctrl: Any) -> None:
        ctrl[0] = 5.0 * (self.target - data.joint("hip").qpos[0])

    def step(self, data: Any, action: Any, info: Any, rng: Any) -> tuple[Any, Any]:
        if rng.random() < 0.2:
            self.target = action[0]
        return super().step(data, action, info, rng)


class LateMemory(Remembering):
    """The first control of a step does not tell that memory has changed: a later one does."""

    def control(self, data: Any, action: Any, ctrl: Any) -> None:
        steps = np.rint(data.time / self.model.opt.timestep)
        ctrl[0] = self.target if steps % 3 > 0 else 0.0


class Chasing(Feeling):
    """Writes its model: in reset, and behind a step that has reached what it chases."""

    model = WALKER.replace(
        "<worldbody>",
        """<worldbody><geom name="target" size=".1" contype="0" conaffinity="0"/>
        <site name="flag" pos="0 1 0"/><body name="post" pos="0 3 0"><site name="top"/></body>""",
    )
    model_fields = ("geom_pos", "site_pos", "body_pos")

    def move(self, rng: Any) -> None:
        self.model.geom("target").pos[:2] = rng.uniform(-1, 1, 2)
        self.model.site("flag").pos[2] = rng.uniform(0, 1)
        self.model.body("post").pos[0] = rng.uniform(-1, 1)

    def reset(self, data: Any, rng: Any) -> None:
        super().reset(data, rng)
        self.move(rng)

    def step(self, data: Any, action: Any, info: Any, rng: Any) -> tuple[Any, Any]:
        self.simulate(data)
        info["clock"] = data.sensor("clock").data[0]
        near = np.abs(data.geom("target").xpos[0] - data.qpos[0])
        if near < 0.3:
            self.move(rng)
        return near, data.qpos[2] < 0.12

    def observation(self, data: Any, obs: Any) -> None:
        super().observation(data, obs)
        obs["target"] = data.geom("target").xpos
        obs["flag"] = data.site("flag").xpos
        obs["top"] = data.site("top").xpos


class ChasingUpToDate(Chasing):
    up_to_date = True


class Sliding(Chasing):
    """Moves what others touch, as no bounding volume does."""

    def move(self, rng: Any) -> None:
        self.model.geom(1).pos[2] = rng.uniform(-0.1, 0.0)


class Led(pyfastenv.Task):
    """An arm that hangs on a mocap body, which each action leads on from where it is."""

    model = """<mujoco><worldbody><body name="lead" mocap="true" pos="0 0 .5"/>
      <geom type="plane" size="1 1 .1"/>
      <body name="arm" pos="0 0 .5"><freejoint/><geom size=".05"/>
        <body pos=".1 0 0"><joint name="wrist" axis="0 1 0" damping=".1"/>
          <geom type="capsule" fromto="0 0 0 .1 0 0" size=".02"/></body></body></worldbody>
      <equality><weld body1="lead" body2="arm"/></equality>
      <actuator><motor joint="wrist" ctrlrange="-1 1"/></actuator></mujoco>"""
    frame_skip = 4
    moves_mocap = True
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (4,), np.float64)
    place = pyfastenv.memory(3)

    def reset(self, data: Any, rng: Any) -> None:
        data.mocap_pos[0] = np.array([0.0, 0.0, 0.5]) + rng.uniform(-0.1, 0.1, 3)
        self.place[:] = data.mocap_pos[0]

    def control(self, data: Any, action: Any, ctrl: Any) -> None:
        ctrl[0] = action[3]
        ctrl[1:4] = self.place + 0.02 * action[:3] + 0.01 * data.time
        ctrl[4:] = (1.0, 0.0, 0.1 * action[0], 0.0)

    def step(self, data: Any, action: Any, info: Any) -> tuple[Any, Any]:
        self.simulate(data)
        info["height"] = data.body("arm").xpos[2]
        self.place[:] = data.mocap_pos[0]
        return data.mocap_quat[0, 2], False

    def observation(self, data: Any, obs: Any) -> None:
        obs["qpos"], obs["place"] = data.qpos, self.place


class LedOften(Led):
    control_every = 1


class LedPressing(Led):
    """Reads forces of contacts behind an mj_forward of its own."""

    up_to_date = True

    def step(self, data: Any, action: Any, info: Any) -> tuple[Any, Any]:
        result = super().step(data, action, info)
        mujoco.mj_forward(self.model, data)
        force = np.zeros(6)
        for i in range(data.ncon):
            pressed = np.zeros(6)
            mujoco.mj_contactForce(self.model, data, i, pressed)
            force += pressed
        info["force"] = force
        return result


class LedActive(LedPressing):
    """Whose resets have actuators."""

    passive_reset = False

    def reset(self, data: Any, rng: Any) -> None:
        super().reset(data, rng)
        data.ctrl[0] = 1.0
        for _ in range(20):
            mujoco.mj_step(self.model, data)


@pytest.mark.parametrize(
    "task",
    [
        *(Drawn, Feeling, Weighed, Touching, UpToDate, Servo, Chasing, ChasingUpToDate, Sliding),
        *(Led, LedOften, LedPressing, LedActive),
    ],
)
def test_lanes_and_mj_step_are_the_same(task: Any, poison: None) -> None:
    stats = compare_engines(task, NUM_ENVS)
    assert stats["lane_steps"] == stats["steps"] > 500


def test_changes_of_activations_are_the_last_substeps(poison: None) -> None:
    plain = gymnasium.vector.SyncVectorEnv([lambda: pyfastenv.debug(Activated)] * NUM_ENVS)
    for envs in both_engines(Activated, NUM_ENVS, num_threads=2):
        assert_same(envs.reset(seed=3)[0], plain.reset(seed=3)[0])
        rng = np.random.default_rng(0)
        for _ in range(20):
            actions = rng.uniform(-1, 1, (NUM_ENVS, 3))
            obs, expected = envs.step(actions)[0], plain.step(actions)[0]
            assert_same(obs, expected)
        assert len(np.unique(obs[:, envs.observation_groups["change"]])) == 2 * NUM_ENVS
        if envs.stats()["engine"] == "lanes":
            assert envs.stats()["lane_steps"] == envs.stats()["steps"] == 20 * NUM_ENVS


class Fleeing(Chasing):
    """Writes its model before the physics, which then is not what was prepared."""

    def step(self, data: Any, action: Any, info: Any, rng: Any) -> tuple[Any, Any]:
        if rng.random() < 0.1:
            self.move(rng)
        return super().step(data, action, info, rng)


class Kicked(Feeling):
    """Reads and writes forces before the physics, and writes those of the next step after it."""

    def step(self, data: Any, action: Any, info: Any, rng: Any) -> tuple[Any, Any]:
        if np.abs(data.xfrc_applied[1, 0]) < 5.0 and rng.random() < 0.2:
            data.xfrc_applied[1, :2] = rng.uniform(-8.0, 8.0, 2)
        result = super().step(data, action, info, rng)
        if rng.random() < 0.2:
            data.qfrc_applied[6] = rng.uniform(-0.5, 0.5)
        return result

    def observation(self, data: Any, obs: Any) -> None:
        super().observation(data, obs)
        obs["force"] = data.xfrc_applied[1, :2]
        obs["warm"] = data.qacc_warmstart


@pytest.mark.parametrize(
    ("task", "most"),
    [(Fleeing, 0.3), (Remembering, 0.4), (LateMemory, 0.4), (Kicked, 0.3)],
)
def test_other_steps_than_those_prepared_are_left_to_mj_step(task: Any, most: float) -> None:
    stats = compare_engines(task, NUM_ENVS)
    assert stats["lane_steps"] + stats["lane_misses"] == stats["steps"]
    assert 0 < stats["lane_misses"] <= most * stats["steps"]


@pytest.mark.parametrize("task", [Servo, LateMemory])
def test_controls_between_substeps_are_those_of_plain_python(task: Any) -> None:
    assert all(beside_plain(task, 25, num_envs=NUM_ENVS, pool={"engine": "lanes"}))


def test_touch_is_felt() -> None:
    envs = pyfastenv.make_vec(Touching, NUM_ENVS, engine="lanes")
    envs.reset(seed=0)
    skin, pushed = (envs.observation_groups[name] for name in ("skin", "pushed"))
    obs = np.stack([envs.step(np.zeros(envs.action_space.shape))[0] for _ in range(60)])
    assert (obs[..., skin] > 0).mean() > 0.2
    assert (obs[..., pushed][..., 0] > 0).mean() > 0.2


def test_set_fields_join_drawn_ones() -> None:
    lanes, mujoco = both_engines(Drawn, NUM_ENVS, num_threads=1)
    stiffness = np.linspace(0.0, 3.0, NUM_ENVS)[:, None] * np.ones(6)
    for envs in (lanes, mujoco):
        envs.reset(seed=3)
        envs.set_model_field("jnt_stiffness", stiffness)
    step_both(lanes, mujoco, 10)
    assert lanes.stats()["lane_steps"] == lanes.stats()["steps"]


class Limited(Feeling):
    model = WALKER.replace('<clock name="clock"/>', '<jointlimitfrc name="clock" joint="hip"/>')


class LimitedUpToDate(Limited):
    up_to_date = True


class Forces(UpToDate):
    """A task that reads contacts of mj_step1, whose forces nothing has computed."""

    def observation(self, data: Any, obs: Any) -> None:
        force = np.zeros(6)
        mujoco.mj_contactForce(self.model, data, 0, force)
        obs["force"] = force


class Rows(Feeling):
    def observation(self, data: Any, obs: Any) -> None:
        obs["nefc"] = data.nefc


class Gaps(Touching):
    model = Touching.model.replace('size="20 20 1"', 'size="20 20 1" gap=".01" margin=".02"')


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        (Limited, "the task reads sensordata"),
        (LimitedUpToDate, "the task reads sensordata"),
        (Rows, "lanes do not compute nefc, which the task reads"),
        (Gaps, "contacts of geoms with gaps, and the task reads contacts"),
    ],
)
def test_what_lanes_cannot_provide_is_left_to_mj_step(task: Any, reason: str) -> None:
    stats = pyfastenv.make_vec(task, 2, engine="auto").stats()
    assert stats["engine"] == "mujoco"
    assert reason in stats["engine_reason"]


@pytest.mark.parametrize("engine", ["lanes", "mujoco"])
def test_forces_that_nothing_has_computed_are_an_error(engine: str) -> None:
    envs = pyfastenv.make_vec(Forces, NUM_ENVS, engine=engine)
    envs.reset(seed=0)
    with pytest.raises(pyfastenv.EnvError, match="forces of contacts that mj_step1 has found"):
        envs.step(np.zeros((NUM_ENVS, 1)))


class Filming(Feeling):
    model = WALKER.replace("<freejoint/>", '<freejoint/><camera name="eye"/>')

    def observation(self, data: Any, obs: Any) -> None:
        velocity = np.zeros(6)
        mujoco.mj_objectVelocity(self.model, data, mujoco.mjtObj.mjOBJ_CAMERA, 0, velocity, 0)
        obs["velocity"] = velocity


def test_velocities_of_cameras_are_refused() -> None:
    envs = pyfastenv.make_vec(Filming, 2)
    with pytest.raises(pyfastenv.EnvError, match="expected no camera"):
        envs.reset(seed=0)


@pytest.mark.parametrize("task", [Led, LedOften, LedPressing, LedActive])
def test_control_that_moves_mocap_bodies_is_plain_python(task: Any) -> None:
    for _ in beside_plain(task, 30):
        pass


class Filtered(Feeling):
    """Whose control builds on the one before."""

    def control(self, data: Any, action: Any, ctrl: Any) -> None:
        ctrl[0] = 0.8 * ctrl[0] + 0.2 * action[0]


class FilteredOften(Filtered):
    control_every = 1


class LedOn(Led):
    """Leads the body on from where it is, by the control alone, and does not turn it."""

    control_every = 2

    def control(self, data: Any, action: Any, ctrl: Any) -> None:
        ctrl[0] = 0.5 * ctrl[0] + action[3]
        ctrl[1:4] += 0.02 * action[:3]


@pytest.mark.parametrize("engine", ["auto", "mujoco"])
@pytest.mark.parametrize("task", [Filtered, FilteredOften, LedOn])
def test_the_control_before_is_the_environments_own(task: Any, engine: str) -> None:
    envs = pyfastenv.make_vec(task, NUM_ENVS, num_threads=1, engine=engine)
    each = [pyfastenv.debug(task) for _ in range(NUM_ENVS)]
    rng, shape = np.random.default_rng(3), envs.action_space.shape
    obs, _ = envs.reset(seed=5)
    assert_same(obs, np.stack([env.reset(seed=5 + i)[0] for i, env in enumerate(each)]))
    for _ in range(25):
        actions = rng.uniform(-1.0, 1.0, shape)
        obs, rewards, *_ = envs.step(actions)
        results = [env.step(action) for env, action in zip(each, actions, strict=True)]
        assert_same(obs, np.stack([result[0] for result in results]))
        assert rewards.tolist() == [result[1] for result in results]
    assert not envs.stats()["lane_differences"]


def test_a_passive_reset_is_another_one() -> None:
    class LedPassive(LedActive):
        passive_reset = True

    active, passive = (pyfastenv.make_vec(task, 1) for task in (LedActive, LedPassive))
    assert active.reset(seed=0)[0][0, 7] != passive.reset(seed=0)[0][0, 7]  # the wrist


def test_who_moves_mocap_bodies_has_a_control() -> None:
    class Uncontrolled(Feeling):
        moves_mocap = True

    with pytest.raises(TypeError, match=r"Uncontrolled\.moves_mocap: expected a method control"):
        pyfastenv.debug(Uncontrolled)
