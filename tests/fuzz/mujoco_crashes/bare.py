"""Loads and steps a model with the mujoco package alone: python bare.py FILE."""

import sys

import mujoco

model = mujoco.MjModel.from_xml_path(sys.argv[1])
data = mujoco.MjData(model)
for _ in range(20):
    mujoco.mj_step(model, data)
    mujoco.mj_rnePostConstraint(model, data)
