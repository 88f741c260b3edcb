"""Terms of Playground's rewards, each a function of numbers; ``(n,)`` arrays where not said.

Formulas: MuJoCo Playground 0.2, the reward functions of _src/locomotion and _src/gait.py.
"""

import numpy as np


def squares(values):
    """Sum of squares."""
    return np.sum(np.square(values))


def closeness(error, width):
    """1 where a squared error is 0, 1/e where it is ``width``."""
    return np.exp(-error / width)


def effort(forces):
    """Euclidean norm of the actuators' forces, and the sum of their sizes."""
    return np.sqrt(squares(forces)) + np.sum(np.abs(forces))


def power(velocities, forces):
    """Sum of the joints' powers, braking counted like driving [W]."""
    return np.sum(np.abs(velocities * forces))


def jerk(action, last, before):
    """First and second differences of three actions, squared."""
    return squares(action - last) + squares(action - 2.0 * last + before)


def beyond(angles, lowest, highest):
    """How far joints are out of their limits, summed [rad]."""
    return np.sum(np.maximum(lowest - angles, 0.0) + np.maximum(angles - highest, 0.0))


def clearance(speeds, heights, wanted):
    """Distance of feet from a height, by the root of their speed over ground.

    Args:
        speeds: ``(n,)`` squared speeds.
        heights: ``(n,)`` [m].
        wanted: [m].
    """
    return np.sum(np.abs(heights - wanted) * np.sqrt(np.sqrt(speeds)))


def swing_error(peaks, landed, wanted):
    """Squared error of the height that a swing has had, for feet that have come down.

    Args:
        peaks: ``(n,)`` [m].
        landed: ``(n,)``, 1 for a foot that has come down in this step, else 0.
        wanted: [m].
    """
    return np.sum(np.square(peaks / wanted - 1.0) * landed)


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
