"""Runs the policy of this folder in plain MuJoCo: ``python run.py --command 0.5 0 0 --view``.

It needs mujoco, numpy and onnxruntime alone. policy.json says what the policy sees, what its
actions mean, at what rate, and which commands it was trained with; --command holds one.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import mujoco
import numpy as np


def episode(spec: Any, model: Any, policy: Any, number: int, options: Any) -> tuple[Any, bool]:
    """Runs one: how far the motion was from the command at each step, and whether it fell."""
    rng, data, until = np.random.default_rng(number), mujoco.MjData(model), 0.0
    for name, values in spec["starts"][number % len(spec["starts"])].items():
        getattr(data, name)[:] = values
    flags = model.opt.disableflags
    model.opt.disableflags = flags | spec["start_without"]
    mujoco.mj_forward(model, data)
    model.opt.disableflags = flags
    given = {name: np.zeros(model.nu) for name in ("action", "previous_action")}
    viewer = (
        __import__("mujoco.viewer").viewer.launch_passive(model, data) if options.view else None
    )
    missed, fallen = [], False
    while data.time < options.seconds - 1e-9 and not fallen:
        if (drawn := spec["command"]) and data.time + 0.5 * spec["step"] >= until:
            until = data.time + rng.uniform(*drawn["every"])
            moves = rng.random(np.shape(drawn["standing"])) >= np.array(drawn["standing"])
            given["command"] = moves * rng.uniform(drawn["low"], drawn["high"])
            if options.command:
                given["command"] = np.array(options.command)
        seen = []
        for part in spec["observation"]:  # numbers of MuJoCo, an action or the command
            source: Any = given.get(part["source"], getattr(data, part["source"], None))
            seen.append(np.ravel(source)[part["index"]] * part["scale"] + part["offset"])
            if (noise := part["noise"]) and not options.exact:
                size = 1 if noise["together"] else len(seen[-1])
                seen[-1] += getattr(rng, noise["kind"])(noise["low"], noise["high"], size)
        obs = np.concatenate(seen)[None].astype(np.float32)
        given["previous_action"] = given["action"]
        given["action"] = policy.run(["actions"], {"obs": obs})[0][0].astype(np.float64)
        data.ctrl[:] = given["action"] * spec["action_scale"] + spec["action_offset"]
        mujoco.mj_step(model, data, spec["substeps"])
        if spec["up_to_date"]:
            mujoco.mj_step1(model, data)
        if spec["motion"]:
            missed.append(given["command"] - data.sensordata[spec["motion"]])
        fallen = spec["free"] and data.xmat[1, 8] < 0.0
        if viewer is not None:
            viewer.sync()
            time.sleep(spec["step"])
    return np.array(missed), bool(fallen)


def check_command(drawn: Any, command: list[float] | None, parser: argparse.ArgumentParser) -> None:
    """Refuses a command of another size; says where one goes beyond what was trained."""
    if command is None:
        return
    if not drawn:
        parser.error("--command: this policy is told nothing")
    low, high = np.ravel(drawn["low"]), np.ravel(drawn["high"])
    if len(command) != len(low):
        parser.error(f"--command: expected {len(low)} numbers, got {len(command)}")
    if (command < low).any() or (command > high).any():
        print(f"note: the policy was trained with commands from {low.tolist()} to {high.tolist()}")


def main() -> None:
    import onnxruntime

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--command", type=float, nargs="+", help="one that is held")
    parser.add_argument("--episodes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--exact", action="store_true", help="observations without noise")
    parser.add_argument("--view", action="store_true")
    options, folder = parser.parse_args(), Path(__file__).parent
    spec = json.loads((folder / "policy.json").read_text())
    check_command(spec["command"], options.command, parser)
    model = mujoco.MjModel.from_binary_path(str(folder / "model.mjb"))
    policy = onnxruntime.InferenceSession(str(folder / "policy.onnx"))
    runs = [episode(spec, model, policy, n, options) for n in range(options.episodes)]
    print(f"episodes: {len(runs)}, falls: {sum(fallen for _, fallen in runs)}")
    if spec["motion"]:  # means over episodes of their means, as the training shows them
        moved = np.mean([np.linalg.norm(missed[:, :2], axis=1).mean() for missed, _ in runs])
        turned = np.mean([np.abs(missed[:, 2]).mean() for missed, _ in runs])
        print(f"off by {moved:.4f} m/s and {turned:.4f} rad/s")


if __name__ == "__main__":
    main()
