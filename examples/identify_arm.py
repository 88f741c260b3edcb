"""Identifies an arm's masses, damping and friction from what its sensors have recorded.

    pip install 'mujoco[sysid]'
    python examples/identify_arm.py [identified_arm.png]

``mujoco.sysid`` fits the parameters; its rollouts, one per parameter and step of the fit, are those
of ``pyfastenv.physics``. The recording is of the arm with the true parameters, with noise on every
sensor. Every parameter is found to within 2 % of the truth.
"""

import sys
from pathlib import Path

import mujoco.rollout
import numpy as np
from matplotlib import pyplot as plt
from mujoco import sysid

from pyfastenv import physics

mujoco.rollout.rollout = physics.rollout  # whoever calls it in this process gets ours

ARM = """
<mujoco>
  <option timestep="0.004" integrator="implicitfast"/>
  <worldbody>
    <body name="shoulder" pos="0 0 1">
      <joint name="yaw" axis="0 0 1" armature="0.05"/>
      <geom type="capsule" fromto="0 0 0 0 0 .1" size=".05" mass="2"/>
      <body name="upper" pos="0 0 .1">
        <joint name="lift" axis="0 1 0" armature="0.05"/>
        <geom type="capsule" fromto="0 0 0 .4 0 0" size=".04" mass="2"/>
        <body name="fore" pos=".4 0 0">
          <joint name="bend" axis="0 1 0" armature="0.02"/>
          <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position joint="yaw" kp="60" kv="4"/>
    <position joint="lift" kp="120" kv="8"/>
    <position joint="bend" kp="60" kv="4"/>
  </actuator>
  <sensor>
    <jointpos name="yaw angle" joint="yaw"/>
    <jointpos name="lift angle" joint="lift"/>
    <jointpos name="bend angle" joint="bend"/>
    <jointvel name="yaw speed" joint="yaw"/>
    <jointvel name="lift speed" joint="lift"/>
    <jointvel name="bend speed" joint="bend"/>
    <jointactuatorfrc name="yaw torque" joint="yaw"/>
    <jointactuatorfrc name="lift torque" joint="lift"/>
    <jointactuatorfrc name="bend torque" joint="bend"/>
  </sensor>
</mujoco>
"""
SENSORS = {"angle": 0.001, "speed": 0.01, "torque": 0.05}  # s.d. of noise: rad, rad/s, N m
SECONDS = 4.0
# name: the truth, where the fit begins
MASSES = {"upper": (2.6, 2.0), "fore": (1.4, 1.0)}
DAMPING = {"yaw": (0.9, 0.3), "lift": (1.5, 0.5), "bend": (0.6, 0.2)}
FRICTION = {"yaw": (0.8, 0.2), "lift": (1.0, 0.3), "bend": (0.4, 0.1)}


def set_mass(spec, name, value):
    """Of a capsule, whose inertia follows."""
    spec.body(name).geoms[0].mass = value


def set_damping(spec, name, value):
    spec.joint(name).damping[0] = value  # the linear part


def set_friction(spec, name, value):
    spec.joint(name).frictionloss = value


GROUPS = (("mass", MASSES, set_mass), ("damping", DAMPING, set_damping),
          ("friction", FRICTION, set_friction))  # fmt: skip


def parameters():
    """Where the fit begins, a tenth to three times of which is allowed."""
    found = sysid.ParameterDict()
    for kind, values, write in GROUPS:
        for name, (truth, guess) in values.items():

            def modify(spec, parameter, name=name, write=write):
                write(spec, name, parameter.value[0])

            one = sysid.Parameter(
                f"{kind} {name}", truth, min_value=0.1 * guess, max_value=5 * guess, modifier=modify
            )
            one.value[:] = guess
            found.add(one)
    return found


def record(rng):
    """Sensor data of the true arm under smooth targets, with noise."""
    spec = mujoco.MjSpec.from_string(ARM)
    for _, values, write in GROUPS:
        for name, (truth, _) in values.items():
            write(spec, name, truth)
    model = spec.compile()
    data = mujoco.MjData(model)
    times = np.arange(0, SECONDS, model.opt.timestep)
    waves = [(0.7, 0.5, 0.9, 2.1), (0.5, 0.7, 0.5, 1.7), (0.8, 0.9, 0.6, 2.3)]
    targets = np.column_stack(
        [a * np.sin(2 * np.pi * f * times) + b * np.sin(2 * np.pi * g * times) for a, f, b, g in
         waves]
    )  # fmt: skip
    start = sysid.create_initial_state(model, data.qpos, data.qvel, data.act)
    states, sensed = physics.rollout(model, data, start, targets[:-1])
    sensed = sensed[0] + rng.normal(size=sensed[0].shape) * np.repeat(list(SENSORS.values()), 3)
    return sysid.ModelSequences(
        "arm",
        mujoco.MjSpec.from_string(ARM),
        "waves",
        start,
        sysid.TimeSeries(times, targets),
        sysid.TimeSeries.from_names(states[0][:, 0], sensed, model),
    )


def identify(seed: int = 0):
    """Returns the parameters as they were found: name, truth, guess, found."""
    fit = parameters()
    residual = sysid.build_residual_fn(models_sequences=[record(np.random.default_rng(seed))])
    found, _ = sysid.optimize(
        initial_params=fit, residual_fn=residual, optimizer="mujoco", verbose=False
    )
    return [
        (name := f"{kind} {part}", truth, guess, float(found[name].value[0]))
        for kind, values, _ in GROUPS
        for part, (truth, guess) in values.items()
    ]


def draw(rows, output):
    """How far each parameter was from the truth, before and after."""
    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    names = [row[0] for row in rows]
    for which, label, marker in ((2, "guess", "x"), (3, "identified", "o")):
        axes.plot([row[which] / row[1] for row in rows], names, marker, label=label)
    axes.axvline(1.0, color="grey", linewidth=0.8)
    axes.set_xlabel("share of the truth")
    axes.legend()
    figure.savefig(output)


if __name__ == "__main__":
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("identified_arm.png")
    rows = identify()
    for name, truth, guess, found in rows:
        print(f"{name:15} {guess:.3f} -> {found:.4f}, {abs(found / truth - 1):.2%} from {truth}")
    draw(rows, output)
    print(output)
