"""Balances a cart-pole by predictive sampling: plan, act, plan again.

    python examples/predictive_sampling.py [seconds]

At every step the controls planned last time are disturbed 63 times, all are rolled out by
``pyfastenv.physics.rollout``, and the first control of the cheapest rollout is applied. (Howell et
al. 2022, "Predictive Sampling: Real-time Behaviour Synthesis with MuJoCo", arXiv:2212.00541.)
"""

import sys

import mujoco
import numpy as np

from pyfastenv import physics

CART_POLE = """
<mujoco>
  <option timestep="0.02"/>
  <worldbody>
    <body>
      <joint type="slide" axis="1 0 0" range="-1.8 1.8" limited="true" damping="0.1" name="cart"/>
      <geom type="capsule" fromto="-.1 0 0 .1 0 0" size=".07" mass="1"/>
      <body>
        <joint type="hinge" axis="0 1 0" damping="0.005"/>
        <geom type="capsule" fromto="0 0 0 0 0 .6" size=".04" mass="0.1" contype="0"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="cart" ctrlrange="-1 1" gear="10"/></actuator>
</mujoco>
"""
NUM_ROLLOUTS, HORIZON, NOISE = 64, 40, 0.5


def cost(states):
    """How far from upright, centred and at rest. states: (..., 5), time, qpos, qvel."""
    _, x, angle, speed, turn = np.moveaxis(states, -1, 0)
    return (1 - np.cos(angle)) + 0.1 * x**2 + 0.01 * speed**2 + 0.002 * turn**2


def balance(seconds: float) -> float:
    """Returns the share of the time that the pole was upright, hanging down at first."""
    model = mujoco.MjModel.from_xml_string(CART_POLE)
    data, scratch = mujoco.MjData(model), mujoco.MjData(model)
    data.qpos[1] = np.pi
    rng = np.random.default_rng(0)
    plan = np.zeros((HORIZON, model.nu))
    num_steps, num_upright = round(seconds / model.opt.timestep), 0
    for _ in range(num_steps):
        plans = plan + rng.normal(0, NOISE, (NUM_ROLLOUTS, HORIZON, model.nu))
        plans[0] = plan
        plans = np.clip(plans, -1, 1)
        state = np.concatenate([[data.time], data.qpos, data.qvel])
        states, _ = physics.rollout(model, scratch, state, plans)
        plan = plans[cost(states).sum(axis=1).argmin()]
        data.ctrl = plan[0]
        mujoco.mj_step(model, data)
        plan = np.roll(plan, -1, axis=0)
        num_upright += np.cos(data.qpos[1]) > 0.95
    return num_upright / num_steps


if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    print(f"upright {balance(seconds):.0%} of {seconds:g} s, hanging down at first")
