"""Random calls of physics.Batch and of mujoco.batch on random models: not one bit may differ.

    python tests/fuzz/simulations.py --seed 1 --batches 2000
    python tests/fuzz/simulations.py --seed 1 --only 17        one of them, with its calls

States, outputs, records, statuses and which simulations fail are compared after every call. Calls
with bad arguments are made on ours alone: they must raise, and nothing may have moved.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import batches
import mujoco
import mujoco.batch
import numpy as np
import random_models
from batches import Result

from pyfastenv import physics

CALLS = 16
OUTPUTS = ("xpos", "cvel", "subtree_com", "qacc", "qfrc_actuator", "qfrc_constraint", "sensordata",
           "cfrc_ext")  # fmt: skip
FIELDS = ("body_mass", "dof_damping", "geom_friction", "actuator_gainprm", "opt.gravity")
REFUSED = (ValueError, TypeError, IndexError, AttributeError, mujoco.FatalError)


class Interrupt(Exception):
    """What a user's callback raises."""


class Pair:
    """A batch of ours and one of MuJoCo's, which get the same calls."""

    def __init__(self, model: Any, rng: np.random.Generator, show: bool = False):
        self.nsim, self.rng, self.show = int(rng.integers(1, 25)), rng, show
        self.ours = physics.Batch(model, self.nsim, int(rng.integers(1, 4)))
        self.theirs = mujoco.batch.Batch(model, self.nsim, 1)
        self.model, self.made = model, Counter[str]()
        self.bound: set[str] = set()

    # ---- calls, one of which is drawn ------------------------------------------------------------

    def step(self) -> None:
        ids, nstep = self._ids(), int(self.rng.choice([1, 2, 5, 40]))
        stage = int(self.rng.choice([0, 0, 0, 1, 2, 3]))
        self._both(lambda b: b.step(ids, nstep=nstep, stage=stage))

    def run_in(self) -> None:
        """Steps that pay for a plan."""
        self._both(lambda b: b.step(nstep=1 + 2000 // self.nsim))

    def forward(self) -> None:
        ids = self._ids()
        # what earlier stages do not compute is another simulation's
        stage = 3 if self.bound else int(self.rng.choice([1, 2, 3]))
        self._both(lambda b: b.forward(ids, stage=stage))

    def reset(self) -> None:
        ids, stage = self._ids(), int(self.rng.choice([0, 3]))
        self._both(lambda b: b.reset(ids, stage=stage))

    def write(self) -> None:
        ids = self._ids(None)
        for name in ("ctrl", "qvel", "qfrc_applied", "xfrc_applied"):
            if self.rng.random() < (0.2 if name.endswith("applied") else 0.7):
                noise = self.rng.normal(0, 1, getattr(self.ours, name)[ids].shape)
                self._both(lambda b, to=name, of=noise: getattr(b, to).__setitem__(ids, of))

    def bind(self) -> None:
        name = str(self.rng.choice(OUTPUTS))
        self._both(lambda b: b.bind(name) is None)
        self.bound.add(name)
        self.forward()  # arrays are filled by calls

    def expand(self) -> None:
        name = str(self.rng.choice(FIELDS))
        factors = self.rng.uniform(0.8, 1.2, self.ours.expand(name).shape)
        self._both(lambda b: b.expand(name).__imul__(factors) is None)
        if self.rng.random() < 0.5:
            self._both(lambda b: b.set_const())
        self.run_in()

    def rollout(self) -> None:
        ids, nstep = self._ids(), int(self.rng.choice([1, 4, 30]))
        count = self.nsim if ids is None else len(ids)
        controls = self.rng.normal(0, 1, (count, nstep, self.model.nu))
        record = tuple(self.rng.choice(["qpos", "qacc", "xpos", "cfrc_ext"], 2, replace=False))
        # a second reset of MuJoCo's own does not count as a warning there, and ends no rollout
        self.theirs.warning[:] = 0
        self._both(lambda b: b.rollout(nstep, controls, record=record, ids=ids))

    def query(self) -> None:
        ids, body = self._ids(), int(self.rng.integers(self.model.nbody))
        along = self.rng.normal(0, 1, (3, 3))
        self._both(lambda b: b.jac(body, along[0], ids))
        self._both(lambda b: b.ray(along[:1], along[1:], ids=ids))

    def callback(self) -> None:
        """One that raises after the first of three steps, which is done."""

        def fail() -> None:
            raise Interrupt

        said = _said(lambda: self.ours.step(nstep=3, callback=fail))[0]
        assert said == (_said(lambda: self.theirs.step(nstep=1))[0] or "Interrupt"), said

    def threads(self) -> None:
        """The two halves at once."""
        halves = np.array_split(np.arange(self.nsim), 2)
        with ThreadPoolExecutor(2) as executor:
            done = [executor.submit(_said, lambda h=h: self.ours.step(h, nstep=3)) for h in halves]
            said = [each.result()[0] for each in done]
        assert said == [_said(lambda h=h: self.theirs.step(h, nstep=3))[0] for h in halves]

    def bad(self) -> None:
        n, rng = self.nsim, self.rng
        locked = np.zeros((n, 2, self.model.nq))
        locked.flags.writeable = False
        faults: list[Callable[[Any], Any]] = [
            lambda b: b.step([0, 0]),
            lambda b: b.step(np.ones(n + 1, bool)),
            lambda b: b.step([-1]),
            lambda b: b.step(nstep=0),
            lambda b: b.step(stage=9),
            lambda b: b.step(nstep=2**40),
            lambda b: b.forward([0.5]),
            lambda b: b.reset(keyframe=10**6),
            lambda b: b.rollout(2, np.zeros((n + 1, 3, self.model.nu))),
            lambda b: b.rollout(2, record=("qqpos",)),
            lambda b: b.rollout(2, out={"qpos": locked}),
            lambda b: b.rollout(2, out={"qpos": np.zeros((n, 2, self.model.nq + 1))}),
            lambda b: b.jac(self.model.nbody, np.zeros(3)),
            lambda b: b.ray(np.zeros(3), np.ones(3), geomgroup=[1]),
            lambda b: b.bind("no_field"),
            lambda b: b.expand("nq"),
            lambda b: setattr(b, "xpos", 0.0),
            lambda b: setattr(b, "time", np.zeros(n + 1)),
            lambda b: b.set_models([self.model] * (n + 1)),
        ]
        number = int(rng.integers(len(faults)))
        try:
            faults[number](self.ours)
        except REFUSED:
            return
        raise AssertionError(f"bad call {number} was not refused")

    # ---- beside each other -----------------------------------------------------------------------

    def run(self) -> None:
        """Some calls; AssertionError if anything differs."""
        weights = {self.step: 4, self.forward: 3, self.reset: 1, self.write: 3, self.bind: 2,
                   self.expand: 1, self.rollout: 2, self.query: 1, self.callback: 1,
                   self.threads: 1, self.bad: 3}  # fmt: skip
        calls = self.rng.choice(
            np.array(list(weights)),
            CALLS,
            p=np.array(list(weights.values())) / sum(weights.values()),
        )
        for call in (self.write, self.run_in, *calls):
            if self.show:
                print(call.__name__, flush=True)
            call()
            self.made[call.__name__] += 1
            self.compare(call.__name__)

    def compare(self, call: str) -> None:
        # what a stage is computed of, mujoco.batch resets where mj_step would
        wild = np.flatnonzero(~(np.abs(self.ours.state) < mujoco.mjMAXVAL).all(axis=1))
        if wild.size:
            self._both(lambda b: b.reset(wild))
        for name in ("state", "status"):
            _assert_bits(getattr(self.ours, name), getattr(self.theirs, name), f"{call}: {name}")
        ran = self.ours.status == 0
        for name in self.bound:
            ours, theirs = (b.bind(name)[ran] for b in (self.ours, self.theirs))
            _assert_bits(ours, theirs, f"{call}: {name}")

    def _ids(self, everyone: Any = 0.5) -> Any:
        """Some simulations; None, half of the time: all."""
        if everyone is not None and self.rng.random() < everyone:
            return None
        return np.flatnonzero(self.rng.random(self.nsim) < 0.7)

    def _both(self, call: Callable[[Any], Any]) -> None:
        (said, ours), (their_words, theirs) = (
            _said(lambda b=b: call(b)) for b in (self.ours, self.theirs)
        )
        assert said == their_words, f"{said} here, {their_words} there"
        if isinstance(ours, dict):
            ours, theirs = list(ours.values()), list(theirs.values())
        for one, other in zip(ours or (), theirs or (), strict=True):
            _assert_bits(one, other, "results")


def _said(call: Callable[[], Any]) -> tuple[str, Any]:
    """What a call raises, and what it returns."""
    try:
        return "", call()
    except (physics.SimulationError, mujoco.batch.SimulationError, Interrupt) as error:
        return type(error).__name__, None


def _assert_bits(ours: Any, theirs: Any, what: str) -> None:
    ours, theirs = np.ascontiguousarray(ours), np.ascontiguousarray(theirs)
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype), what
    if ours.tobytes() == theirs.tobytes():
        return
    where = np.argwhere((ours != theirs) | (np.signbit(ours) != np.signbit(theirs)))
    at = tuple(where[0]) if len(where) else ()
    raise AssertionError(f"{what}{list(map(int, at))}: {ours[at]!r} here, {theirs[at]!r} there")


# ---- many ----------------------------------------------------------------------------------------


def judge(options: argparse.Namespace, number: int, *, show: bool = False) -> Result:
    """Judges the n-th batch of a run."""
    try:
        model = mujoco.MjModel.from_xml_string(
            random_models.render(random_models.draw(options.seed, number))
        )
    except ValueError as error:
        return {"kind": "invalid", "refusal": str(error).replace("\n", " ")}
    try:
        pair = Pair(model, np.random.default_rng((options.seed, number)), show)
    except ValueError as error:  # keeps something outside the state
        return {"kind": "refused", "refusal": str(error)}
    try:
        pair.run()
    except AssertionError as error:
        return {"kind": "differs", "refusal": str(error), "calls": pair.made.total()}
    # not public: mujoco.batch, whose interface Batch has, counts nothing
    lane_steps, left = pair.ours._core.lane_steps()
    return {"kind": "equal", "calls": pair.made.total(), "steps": lane_steps - left}


def _show(options: argparse.Namespace) -> str:
    result = judge(options, options.only, show=True)
    print(result)
    return str(result["kind"])


PROGRAM = batches.Program(
    Path(__file__),
    batches.drawing(__doc__, "batches", 2000),
    judge,
    fine=("equal", "invalid", "refused"),
    seconds=60.0,
    per_child=50,
)

if __name__ == "__main__":
    sys.exit(PROGRAM.main("batches", _show))
