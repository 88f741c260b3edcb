"""Panda's inverse kinematics: the joints that hold the hand in a frame, the last one given.

Source: He and Liu, "Analytical Inverse Kinematics for Franka Emika Panda – a Geometrical Solver for
7-DOF Manipulators with Unconventional Design", ICCMA 2021. Joints' frames are those of Craig's
convention; joint 7 stays where it is, and shoulder and wrist keep the side that they are on.
"""

import numpy as np

BASE, UPPER, FORE = 0.333, 0.316, 0.384  # heights along the links [m]
ELBOW, FLANGE, TIP = 0.0825, 0.088, 0.2104  # offsets of elbow and flange, flange to finger tips [m]
TO_ELBOW, TO_WRIST = np.hypot(UPPER, ELBOW), np.hypot(FORE, ELBOW)
BENT = np.arctan2(UPPER, ELBOW) + np.arctan2(FORE, ELBOW) - 2.0 * np.pi
LEAST_WRIST, MOST_WRIST = -0.0175, 3.7525  # of joint 6 [rad]


def reach(found, place, axes, joints):
    """Finds joints that bring the tip to a place.

    Args:
        found: ``(7,)``, written [rad]; left alone where there are none.
        place: ``(3,)`` of the tip [m].
        axes: ``(3, 3)``, columns are the hand's axes; the hand is turned against joint 7's frame by
            -45 degrees.
        joints: ``(7,)``, where the arm is [rad].

    Returns:
        Whether there are such joints.
    """
    last = joints[6] - 0.25 * np.pi
    z7 = axes[:, 2].copy()
    x6 = np.cos(last) * axes[:, 0] - np.sin(last) * axes[:, 1]
    wrist = place - TIP * z7 - FLANGE * x6  # from the shoulder
    wrist[2] -= BASE
    square = dot(wrist, wrist)
    # the triangle of shoulder, elbow and wrist
    lean = (TO_ELBOW * TO_ELBOW + TO_WRIST * TO_WRIST - square) / (2.0 * TO_ELBOW * TO_WRIST)
    if abs(lean) > 1.0:
        return False
    q4 = np.arccos(lean) + BENT
    s4, c4 = np.sin(q4), np.cos(q4)
    # upper arm and forearm in the elbow's plane: wrist = a x3 + b z3, z5 = c4 z3 - s4 x3
    a = ELBOW * (1.0 - c4) - FORE * s4
    b = UPPER - ELBOW * s4 + FORE * c4
    across = UPPER * s4 - ELBOW * (1.0 - c4)  # a c4 + b s4
    z6 = cross(z7, x6)
    y6 = cross(z6, x6)
    along, up = dot(wrist, x6), dot(wrist, y6)
    # the forearm leaves the wrist so that wrist · z5 fits: z5 = sin(q6) x6 + cos(q6) y6
    share = (a * s4 - b * c4) / np.hypot(along, up)
    if abs(share) > 1.0:
        return False
    turn, start = np.arcsin(share), np.arctan2(-up, -along)
    q6 = np.pi - turn - start if np.cos(joints[4]) <= 0.0 else turn - start
    if q6 <= LEAST_WRIST:
        q6 += 2.0 * np.pi
    if q6 >= MOST_WRIST:
        q6 -= 2.0 * np.pi
    s6, c6 = np.sin(q6), np.cos(q6)
    z5 = s6 * x6 + c6 * y6
    z3 = (a * z5 + s4 * wrist) / across
    x3 = (c4 * wrist - b * z5) / across
    if abs(z3[2]) > 0.999:  # the upper arm points straight up
        q1, q2 = joints[0], 0.0
    else:
        q1, q2 = np.arctan2(z3[1], z3[0]), np.arccos(z3[2])
    if joints[1] < 0.0:
        q1 += np.pi if q1 < 0.0 else -np.pi
        q2 = -q2
    s1, c1, s2, c2 = np.sin(q1), np.cos(q1), np.sin(q2), np.cos(q2)
    q3 = np.arctan2(c1 * x3[1] - s1 * x3[0], c2 * (c1 * x3[0] + s1 * x3[1]) - s2 * x3[2])
    x4, x5 = c4 * x3 + s4 * z3, c6 * x6 - s6 * y6
    found[0], found[1], found[2], found[3] = q1, q2, q3, q4
    found[4], found[5], found[6] = np.arctan2(dot(z6, x4), dot(x5, x4)), q6, joints[6]
    return True


def dot(a, b):
    """Scalar product of two vectors, ``(3,)``."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a, b):
    """Vector product of two vectors, ``(3,)``."""
    return np.array(
        (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])
    )
