"""Terms of Playground's rewards, each a function of numbers; ``(n,)`` arrays where not said.

Formulas: MuJoCo Playground 0.2, the reward functions of _src/locomotion, _src/manipulation and
_src/gait.py.
They are loops, which compile faster than expressions of arrays and make no arrays.
"""

import mujoco
import numpy as np


def squares(values):
    """Sum of squares."""
    total = 0.0
    for i in range(len(values)):
        total += np.square(values[i])
    return total


def length(values):
    """Euclidean norm."""
    return np.sqrt(squares(values))


def sizes(values):
    """Sum of absolute values."""
    total = 0.0
    for i in range(len(values)):
        total += abs(values[i])
    return total


def distance(values, others):
    """Sum of squared differences; of the first of ``others``, as many as there are ``values``."""
    total = 0.0
    for i in range(len(values)):
        total += np.square(values[i] - others[i])
    return total


def apart(values, others):
    """Sum of absolute differences."""
    total = 0.0
    for i in range(len(values)):
        total += abs(values[i] - others[i])
    return total


def weighted(values, others, weights):
    """Sum of squared differences, each with a weight."""
    total = 0.0
    for i in range(len(values)):
        total += np.square(values[i] - others[i]) * weights[i]
    return total


def deviation(values, others, weights):
    """Sum of absolute differences, each with a weight."""
    total = 0.0
    for i in range(len(values)):
        total += abs(values[i] - others[i]) * weights[i]
    return total


def closeness(error, width):
    """1 where a squared error is 0, 1/e where it is ``width``."""
    return np.exp(-error / width)


def effort(forces):
    """Euclidean norm of the actuators' forces, and the sum of their sizes."""
    return length(forces) + sizes(forces)


def power(velocities, forces):
    """Sum of the joints' powers, braking counted like driving [W]."""
    total = 0.0
    for i in range(len(forces)):
        total += abs(velocities[i] * forces[i])
    return total


def jerk(action, last, before):
    """First and second differences of three actions, squared."""
    total = distance(action, last)
    for i in range(len(action)):
        total += np.square(action[i] - 2.0 * last[i] + before[i])
    return total


def beyond(angles, lowest, highest):
    """How far joints are out of their limits, summed [rad]."""
    total = 0.0
    for i in range(len(angles)):
        total += max(lowest[i] - angles[i], 0.0) + max(angles[i] - highest[i], 0.0)
    return total


def excess(velocities, most):
    """Squares of what velocities are above ``most``, in either direction, summed."""
    total = 0.0
    for i in range(len(velocities)):
        total += np.square(max(abs(velocities[i]) - most, 0.0))
    return total


def slip(speeds, contact):
    """Sum of the squared speeds of feet that stand.

    Args:
        speeds: ``(n,)`` squared.
        contact: ``(n,)``, 1 for a foot that stands, else 0.
    """
    total = 0.0
    for i in range(len(speeds)):
        total += speeds[i] * contact[i]
    return total


def clearance(speeds, heights, wanted):
    """Distance of feet from a height, by the root of their speed over ground.

    Args:
        speeds: ``(n,)`` squared speeds.
        heights: ``(n,)`` [m].
        wanted: [m].
    """
    total = 0.0
    for i in range(len(speeds)):
        total += abs(heights[i] - wanted) * np.sqrt(np.sqrt(speeds[i]))
    return total


def swing_error(peaks, landed, wanted):
    """Squared error of the height that a swing has had, for feet that have come down.

    Args:
        peaks: ``(n,)`` [m].
        landed: ``(n,)``, 1 for a foot that has come down in this step, else 0.
        wanted: [m].
    """
    total = 0.0
    for i in range(len(peaks)):
        total += np.square(peaks[i] / wanted - 1.0) * landed[i]
    return total


def flight(air_time, landed, least, most):
    """How much longer than ``least`` feet that have come down were in the air; ``most`` counts.

    Args:
        air_time: ``(n,)`` [s].
        landed: As of :func:`swing_error`.
        least, most: [s].
    """
    total = 0.0
    for i in range(len(air_time)):
        total += min((air_time[i] - least) * landed[i], most)
    return total


def foot_path(phase, height):
    """Height of a foot at a phase of its stride, by Bézier's cubic up and down.

    Args:
        phase: From -pi to pi; the foot is up at 0.
        height: Of the swing [m].
    """
    x = (phase + np.pi) / np.pi
    if x > 1.0:
        x = 2.0 - x
    return height * (x * x * x + 3.0 * (x * x * (1.0 - x)))


def off_path(heights, phases, height):
    """Sum of squared distances of feet from where :func:`foot_path` has them [m²].

    Args:
        heights: ``(n,)`` of the feet [m].
        phases: ``(n,)``.
        height: Of a swing [m].
    """
    error = 0.0
    for i in range(len(phases)):
        error += np.square(heights[i] - foot_path(phases[i], height))
    return error


def push_front(history, values):
    """Puts values at the front of a memory and drops as many at its end."""
    size = len(values)
    for i in range(len(history) - size):
        k = len(history) - 1 - i
        history[k] = history[k - size]
    for i in range(size):
        history[i] = values[i]


def meet(data, geoms, others):
    """Finds which pairs of geoms touch.

    Args:
        data: The method's, after the physics.
        geoms, others: ``(n,)`` ids.

    Returns:
        ``(n,)``: 1 for a pair that touches, else 0.
    """
    found = np.zeros(len(geoms))
    for i in range(data.ncon):
        contact = data.contact[i]
        for k in range(len(geoms)):
            is_pair = contact.geom1 == geoms[k] and contact.geom2 == others[k]
            is_pair = is_pair or (contact.geom1 == others[k] and contact.geom2 == geoms[k])
            if is_pair and contact.dist <= 0.0:
                found[k] = 1.0
    return found


def gap(values, others):
    """Euclidean distance; of the first of ``others``, as many as there are ``values``."""
    return np.sqrt(distance(values, others))


def note_misses(misses, told, velocity, turning, info):
    """Shows the means of an episode's errors, whose number and sums are ``misses``, ``(3,)``."""
    misses[0] += 1.0
    misses[1] += gap(told[:2], velocity)
    misses[2] += abs(told[2] - turning)
    info["episode_velocity_error"] = misses[1] / misses[0]
    info["episode_turning_error"] = misses[2] / misses[0]


def nearness(distance):
    """1 where a distance is 0, nearly 0 from half a metre on."""
    return 1.0 - np.tanh(5.0 * distance)


def is_far(place):
    """Whether a place is more than 1 m away along some axis."""
    return abs(place[0]) > 1.0 or abs(place[1]) > 1.0 or abs(place[2]) > 1.0


def any_turn(rng):
    """Draws a quaternion: all turns are alike."""
    turn = rng.standard_normal(4)
    return turn / length(turn)


def any_axis(rng):
    """Draws a direction as Playground's noise does, more often near the vertical."""
    around, down = 2.0 * np.pi * rng.standard_normal(), np.pi * rng.standard_normal()
    return np.array((np.sin(down) * np.cos(around), np.sin(down) * np.sin(around), np.cos(down)))


def turn_from(quat, other):
    """The quaternion that turns ``other`` into ``quat``."""
    back, turn = np.zeros(4), np.zeros(4)
    mujoco.mju_negQuat(back, other)
    mujoco.mju_mulQuat(turn, quat, back)
    return turn


def angle_of(turn):
    """The angle of a quaternion, from 0 to pi [rad]."""
    return 2.0 * np.arcsin(min(length(turn[1:]), 1.0))
