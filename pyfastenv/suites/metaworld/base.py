"""The base of MetaWorld's tasks: an arm whose hand a mocap body leads, and what all of them share.

Formulas: MetaWorld 3.1.1, sawyer_xyz_env.py and utils/reward_utils.py, rewards of version v2.
"""

from pathlib import Path

import gymnasium
import mujoco
import numpy as np

from pyfastenv.suites.dm_control.rewards import LONG_TAIL, tolerance
from pyfastenv.suites.packages import package_file
from pyfastenv.suites.starts import MOST_DRAWS
from pyfastenv.tasks.language.fields import command, memory
from pyfastenv.tasks.language.task import Task

# what an observation is clipped to: the hand, the gripper's opening, two things; twice; the goal
_LOW = np.array((-0.525, 0.348, -0.0525, -1.0, *[-np.inf] * 14))
_HIGH = np.array((0.525, 1.025, 0.7, 1.0, *[np.inf] * 14))


def metaworld_file(name: str) -> Path:
    """A model of MetaWorld's, from its package or, of the same physics, from EnvPool's files.

    Args:
        name: In its folder sawyer_xyz, such as ``"sawyer_reach_v3"``.

    Raises:
        ImportError: There is neither metaworld nor envpool-assets, or it has no such file.
    """
    try:
        return package_file("metaworld", f"assets/sawyer_xyz/{name}.xml", "metaworld")
    except ImportError:
        place = f"mujoco/metaworld/assets/sawyer_xyz/{name}.xml"
        return package_file("envpool_assets", place, "'pyfastenv[metaworld]'")


class Sawyer(Task):
    """An arm that does one of MetaWorld's tasks; actions move its hand and close its gripper.

    What a subclass says: its model, and the range of the numbers that an episode draws; ``arrange``
    writes those into the model, ``start`` begins an episode with them, ``see_things`` says where
    the things are, if they are not a body, ``judge`` what a step was worth.

    Attributes:
        file: The model's, for :func:`metaworld_file`.
        thing: The body of the one thing that is seen.
        low: The least of an episode's numbers, places of things and of the goal [m].
        high: The greatest, likewise.
        apart: Of six numbers, how far the goal is from the thing at least, in x and y [m].
        goal_low: What the goal in an observation is clipped to [m]; where an episode has six
            numbers, by default the least of the last three.
        goal_high: Likewise, the greatest.
        hand_low: Where the mocap body may be [m].
        hand_high: Likewise.
        hand_start: Where it is when an episode starts [m].
        partially_observable: Observations have no goal, as meta-learning wants it.
        rand_vec: An episode's numbers, if they are not all zero; else each episode draws its own.
    """

    file, thing = "", "obj"
    frame_skip = 5
    up_to_date, passive_reset, moves_mocap = True, False, True
    max_episode_steps = 500
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (4,), np.float64)
    partially_observable = False
    hand_low, hand_high, hand_start = (-0.5, 0.4, 0.05), (0.5, 1.0, 0.5), (0.0, 0.6, 0.2)
    goal_low, goal_high = hand_low, hand_high
    apart = 0.0
    rand_vec = command(6, low=-1.0, high=2.0)
    now, previous, seen = memory(18), memory(18), memory(39)
    goal, thing_start, tcp_start = memory(3), memory(3), memory(3)
    lead = memory(3)  # the mocap body's place

    def __init_subclass__(cls, **arguments):
        if len(vars(cls).get("low", ())) == 6 and "goal_low" not in vars(cls):
            cls.goal_low, cls.goal_high = cls.low[3:], cls.high[3:]
        super().__init_subclass__(**arguments)

    def model(self):
        return str(metaworld_file(self.file))

    def setup(self):
        model = self.model
        for weld in np.flatnonzero(model.eq_type == int(mujoco.mjtEq.mjEQ_WELD)):
            model.eq_data[weld, :11] = (0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 5)
        self.thing_id = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, self.thing)
        self.seen_low = np.concatenate((_LOW, _LOW, self.goal_low))
        self.seen_high = np.concatenate((_HIGH, _HIGH, self.goal_high))

    # ---- an episode's start ----------------------------------------------------------------------

    def reset(self, data, rng):
        # MetaWorld resets twice: the hand goes to its place among what the first has put there
        self.arrange(self.draw(rng))
        self.settle(data)
        numbers = self.draw(rng)
        self.arrange(numbers)
        self.start(data, numbers)
        self.look(data)
        self.previous[:] = self.now
        self.show()

    def draw(self, rng):
        """An episode's numbers: those that are given, or others."""
        if np.any(self.rand_vec != 0.0):
            return self.rand_vec.copy()
        for _ in range(MOST_DRAWS):
            numbers = rng.uniform(self.low, self.high)
            if self.fits(numbers):
                return numbers
        raise ValueError("low, high: no goal is as far from the thing as apart says")

    def sample_tasks(self, n, rng):
        """Numbers for ``envs.reset_task``, as episodes draw them, ``(n, size)`` [m]."""
        return np.stack([self.draw(rng) for _ in range(n)])

    def fits(self, numbers):
        """Whether an episode may begin with these."""
        return self.apart == 0.0 or np.linalg.norm(numbers[:2] - numbers[-3:-1]) >= self.apart

    def settle(self, data):
        """Lets the mocap body pull the hand to where episodes begin."""
        data.mocap_pos[0] = self.hand_start
        self.lead[:] = self.hand_start
        data.mocap_quat[0] = (1.0, 0.0, 1.0, 0.0)
        data.ctrl[:] = (-1.0, 1.0)
        for _ in range(50 * self.frame_skip):
            mujoco.mj_step(self.model, data)
        self.tcp_start[:] = self.tcp(data)

    def arrange(self, numbers):
        """Writes an episode's numbers into the model, where that has places for them."""

    def bend(self, data, angle):
        """Puts the thing's first joint somewhere, at rest."""
        data.qpos[9], data.qvel[9] = angle, 0.0
        mujoco.mj_forward(self.model, data)

    def put(self, data, place):
        """Puts a thing that is free to move somewhere, at rest."""
        data.qpos[9:12] = place
        data.qvel[9:15] = 0.0
        mujoco.mj_forward(self.model, data)

    def put_down(self, data, numbers, height):
        """Puts the thing where an episode's first two numbers say, and remembers that."""
        self.thing_start[:2], self.thing_start[2] = numbers[:2], height
        self.put(data, self.thing_start)

    # ---- a step ----------------------------------------------------------------------------------

    def led(self, action, i):
        """Where an action leads the mocap body, along an axis."""
        place = self.lead[i] + np.clip(action[i], -1.0, 1.0) * 0.01
        return np.clip(place, self.hand_low[i], self.hand_high[i])

    def control(self, data, action, ctrl):
        ctrl[0], ctrl[1] = action[3], -action[3]
        for i in range(3):
            ctrl[2 + i] = self.led(action, i)
        ctrl[5:] = (1.0, 0.0, 1.0, 0.0)

    def step(self, data, action, info):
        self.simulate(data)
        for i in range(3):
            self.lead[i] = self.led(action, i)
        self.previous[:] = self.now
        self.look(data)
        self.show()
        self.seen[:] = np.minimum(np.maximum(self.seen, self.seen_low), self.seen_high)
        reward, success, near, grasped, grasp, in_place, gap = self.judge(data, action)
        info["success"] = np.float64(success)
        info["near_object"] = np.float64(near)
        info["grasp_success"] = np.float64(grasped)
        info["grasp_reward"] = grasp
        info["in_place_reward"] = in_place
        info["obj_to_target"] = gap
        info["unscaled_reward"] = reward
        return reward, False

    # ---- what is seen ----------------------------------------------------------------------------

    def look(self, data):
        """The hand, the gripper's opening, and where things are."""
        self.now[:3] = data.body("hand").xpos
        opening = np.linalg.norm(data.body("rightclaw").xpos - data.body("leftclaw").xpos)
        self.now[3] = np.clip(opening / 0.1, 0.0, 1.0)
        self.see_things(data)

    def see_things(self, data):
        """Writes where the things are into ``now``."""
        see(self.now, 0, data.xpos[self.thing_id], data.xquat[self.thing_id])

    def show(self):
        self.seen[:18], self.seen[18:36] = self.now, self.previous
        if not self.partially_observable:
            self.seen[36:] = self.goal

    def observation(self, data, obs):
        obs["state"], obs["previous"], obs["goal"] = (
            self.seen[:18],
            self.seen[18:36],
            self.seen[36:],
        )
        if self.partially_observable:
            obs["goal"] = np.zeros(3)

    def tcp(self, data):
        """The point between the fingers' ends."""
        ends = data.site("rightEndEffector").xpos + data.site("leftEndEffector").xpos
        return ends / 2.0

    # ---- rewards ---------------------------------------------------------------------------------

    def touching(self, data, geom):
        """Whether both pads press on a geom."""
        mujoco.mj_forward(self.model, data)  # for contacts' forces
        left = right = False
        for i in range(data.ncon):
            contact = data.contact[i]
            if contact.geom1 != geom and contact.geom2 != geom:
                continue
            other = contact.geom1 + contact.geom2 - geom
            force = np.zeros(6)
            mujoco.mj_contactForce(self.model, data, i, force)
            if force[0] > 0.0:
                left = left or other == self.model.geom("leftpad_geom").id
                right = right or other == self.model.geom("rightpad_geom").id
        return left and right

    def caging(self, data, action, thing, radius, pad, xz, effort):
        """How well the pads are around a thing, and whether they close: both in [0, 1].

        Args:
            data: The step's.
            action: The step's.
            thing: Its place ``(3,)`` [m].
            radius: Of a sphere around it [m].
            pad: A pad's distance that is near enough, in y [m].
            xz: The hand's, in x and z [m].
            effort: The last number of an action that is a firm grip.
        """
        left = self.cage(data.body("leftpad").xpos[1], 1.0, thing, radius, pad)
        right = self.cage(data.body("rightpad").xpos[1], -1.0, thing, radius, pad)
        tcp, start = self.tcp(data), self.thing_start
        margin = plane(start, self.tcp_start) - xz
        across = tolerance(plane(tcp, thing), (0.0, xz), margin, LONG_TAIL)
        caged = both(both(left, right), across)
        closed = min(max(0.0, action[3]), effort) / effort if caged > 0.97 else 0.0
        return caged, both(caged, closed)

    def cage(self, y, side, thing, radius, pad):
        """How near a pad is to a thing, in y, and how far from where the thing was."""
        margin = abs(abs(y - self.thing_start[1]) - pad)
        return tolerance(abs(y - thing[1]), (radius, pad), margin, LONG_TAIL)

    def grip(self, data, action, thing, radius, pad, xz, effort=1.0):
        """The mean of both: MetaWorld's caging reward of high density."""
        caged, gripped = self.caging(data, action, thing, radius, pad, xz, effort)
        return (gripped + caged) / 2.0

    def close_grip(self, data, thing, radius, more, xz):
        """The mean of how well the pads are around a thing and how close to it.

        Args:
            data, thing, radius, xz: As in :meth:`caging`.
            more: How much farther than the radius a pad is that grips [m].
        """
        left = data.body("leftpad").xpos[1] - thing[1]
        right = thing[1] - data.body("rightpad").xpos[1]
        left_margin, right_margin = abs(abs(left) - 0.05), abs(abs(right) - 0.05)
        across = tolerance(
            plane(self.tcp(data), thing),
            (0.0, xz),
            plane(self.thing_start, self.tcp_start) - xz,
            LONG_TAIL,
        )
        sides = both(
            tolerance(right, (radius, 0.05), right_margin, LONG_TAIL),
            tolerance(left, (radius, 0.05), left_margin, LONG_TAIL),
        )
        caged = both(sides, across)
        gripped = both(
            tolerance(right, (radius, radius + more), right_margin, LONG_TAIL),
            tolerance(left, (radius, radius + more), left_margin, LONG_TAIL),
        )
        return (caged + (gripped if caged > 0.95 else 0.0)) / 2.0

    def is_lifted(self, by):
        """Whether the first thing is higher than it was, in an open gripper."""
        return self.seen[3] > 0 and self.seen[6] - by > self.thing_start[2]

    def reach_and_grip(self, data, action, thing, radius, pad, reach, xz, effort=1.0):
        """The mean of a firm grip and of the hand's nearness: that of medium density.

        Args:
            data, action, thing, radius, pad, xz, effort: As in :meth:`caging`.
            reach: The hand's distance that is near enough [m].
        """
        _, gripped = self.caging(data, action, thing, radius, pad, xz, effort)
        start = np.linalg.norm(self.thing_start - self.tcp_start)
        near = within(np.linalg.norm(thing - self.tcp(data)), reach, start)
        return (gripped + near) / 2.0


class Fixture(Sawyer):
    """A task whose thing stands where an episode's three numbers say, as part of the model.

    Attributes:
        fixture: The thing's body.
    """

    fixture = ""
    model_fields = ("body_pos",)
    rand_vec = command(3, low=-1.0, high=2.0)

    def setup(self):
        super().setup()
        self.fixture_id = self.model.body(self.fixture).id

    def arrange(self, numbers):
        self.model.body_pos[self.fixture_id] = numbers


def single(*numbers):
    """Numbers in float32's precision, in which MetaWorld has some."""
    return tuple(float(np.float32(number)) for number in numbers)


def within(x, radius, start, sigmoid=LONG_TAIL):
    """How near a distance is to a radius, of the way that there was at the start."""
    return tolerance(x, (0.0, radius), abs(start - radius), sigmoid)


def funnel(radius, threshold, slope, height):
    """How high a funnel over a thing is, at a distance from its axis; 0 within a threshold [m]."""
    return slope * np.log(radius - threshold) + height if radius > threshold else 0.0


def see(now, k, place, orientation):
    """Writes a thing's place and orientation, the k-th's."""
    now[4 + 7 * k : 7 + 7 * k] = place
    now[7 + 7 * k : 11 + 7 * k] = orientation


def plane(a, b):
    """The distance of two places in x and z."""
    return np.linalg.norm(np.array((a[0] - b[0], a[2] - b[2])))


def both(a, b):
    """Hamacher's product of two numbers in [0, 1]."""
    denominator = a + b - a * b
    return a * b / denominator if denominator > 0 else 0.0


def orientation(m):
    """The quaternion (x, y, z, w) of a rotation's nine numbers: SciPy's ``Rotation.as_quat``."""
    trace = m[0] + m[4] + m[8]
    decisions = np.array((m[0], m[4], m[8], trace))
    i = np.argmax(decisions)
    quat = np.zeros(4)
    if i == 3:
        quat[:] = (m[7] - m[5], m[2] - m[6], m[3] - m[1], 1.0 + trace)
    else:
        j, k = (i + 1) % 3, (i + 2) % 3
        quat[i] = 1.0 - trace + 2.0 * m[4 * i]
        quat[j] = m[3 * j + i] + m[3 * i + j]
        quat[k] = m[3 * k + i] + m[3 * i + k]
        quat[3] = m[3 * k + j] - m[3 * j + k]
    x, y, z, w = quat
    return quat / np.sqrt(x * x + y * y + z * z + w * w)
