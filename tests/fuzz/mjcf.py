"""Mutated MJCF files: never a signal, always an exception or an environment that steps.

    python tests/fuzz/mjcf.py --seed 1 --files 10000
    python tests/fuzz/mjcf.py --seed 1 --only 4711
    python tests/fuzz/mjcf.py --file build/fuzz/mjcf-1-4711.xml --env-id HalfCheetah-v5

A model that loads makes two environments, which step, are restored and must repeat themselves bit
for bit. Children's address spaces are bounded, so a model that asks for too much memory must end in
an exception. What ends a child, or an assertion, is kept under build/fuzz/.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import batches
import children
import numpy as np
from batches import Result
from mutate import mutated

import pyfastenv
from pyfastenv.vector.specs import assets_dir

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "fuzz"
SECONDS_PER_FILE = 40.0  # of processor time
FILES_PER_CHILD = 250
MEMORY = 6 * 2**30
STEPS = 4
FINE = ("refused", "too large", "cannot reset", "stepped", "stopped")
# whose model it is -> ids that take it; any model may also go to the undemanding ones
IDS_OF = {
    "ant.xml": "Ant-v5",
    "half_cheetah.xml": "HalfCheetah-v5",
    "hopper.xml": "Hopper-v5",
    "humanoid.xml": "Humanoid-v5",
    "humanoidstandup.xml": "HumanoidStandup-v5",
    "inverted_double_pendulum.xml": "InvertedDoublePendulum-v5",
    "inverted_pendulum.xml": "InvertedPendulum-v5",
    "pusher_v5.xml": "Pusher-v5",
    "reacher.xml": "Reacher-v5",
    "swimmer.xml": "Swimmer-v5",
    "walker2d_v5.xml": "Walker2d-v5",
    "actuators.xml": "HalfCheetah-v5",
    "contacts.xml": "InvertedPendulum-v5",
    "soft.xml": "HalfCheetah-v5",
}
UNDEMANDING = ("HalfCheetah-v5", "InvertedPendulum-v5", "Swimmer-v5", "Ant-v5")


def sources() -> list[Path]:
    """The models that are mutated; our own, which have more features, come more often."""
    theirs = [Path(assets_dir()) / name for name in IDS_OF]
    ours = sorted((HERE / "models").glob("*.xml"))
    return [path for path in theirs if path.is_file()] + 4 * ours


def draw(seed: int, number: int) -> tuple[str, bytes]:
    """The n-th file of a run and the environment that gets it."""
    rng = random.Random(f"{seed} {number}")
    source = rng.choice(sources())
    env_id = IDS_OF[source.name] if rng.random() < 0.6 else rng.choice(UNDEMANDING)
    return env_id, mutated(source.read_text(), rng)


# ---- in the child --------------------------------------------------------------------------------


def drive(env_id: str, path: Path, seed: int) -> str:
    """Makes environments of a model and steps them. Returns what became of it.

    Raises:
        AssertionError: A restored state went on otherwise.
        Exception: Any other than those that the API names.
    """
    rng = np.random.default_rng(seed)
    mode = ("NextStep", "SameStep", "Disabled")[seed % 3]
    try:
        envs = pyfastenv.make_vec(
            env_id, 2, num_threads=1 + seed % 2, xml_file=path, autoreset_mode=mode
        )
    except ValueError:
        return "refused"
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, MemoryError) or "allocate memory" in str(error):
            return "too large"
        raise
    try:
        low, high = (np.nan_to_num(np.clip(x, -10, 10)) for x in (
            envs.action_space.low, envs.action_space.high))  # fmt: skip
        actions = [rng.uniform(np.minimum(low, high), np.maximum(low, high)).astype(np.float32)
                   for _ in range(STEPS)]  # fmt: skip
        try:
            envs.reset(seed=seed)
        except pyfastenv.EnvError:
            return "cannot reset"
        start = envs.get_state()
        first = _go(envs, actions)
        envs.set_state(start)
        again = _go(envs, actions)
        assert first == again, "a restored state went on otherwise"
        envs.set_state(start[::-1].copy())  # each worker has had the other's
        swapped = _go(envs, [action[::-1].copy() for action in actions])
        mirrored = [[part[::-1] for part in result] for result in first]
        assert swapped == mirrored, "the same states in other environments went on otherwise"
        return "stepped" if len(first) == STEPS else "stopped"
    finally:
        envs.close()


def _go(envs: pyfastenv.FastVectorEnv, actions: list[np.ndarray]) -> list[list[list[bytes]]]:
    """Steps; per step, per part (state, reward), per environment the bytes. Ends at an error."""
    results = []
    for action in actions:
        try:
            rewards = envs.step(action)[1]
        except (pyfastenv.EnvError, pyfastenv.ResetNeededError):
            break
        states = [state.tobytes() for state in envs.get_state()]
        results.append([states, [reward.tobytes() for reward in rewards]])
    return results


def judge(env_id: str, path: Path, seed: int) -> Result:
    """What becomes of a file; an exception that the API does not name is wrong."""
    try:
        return {"kind": drive(env_id, path, seed)}
    except Exception:
        return {"kind": "wrong", "refusal": traceback.format_exc()}


def _judge_drawn(seed: int, number: int, folder: Path) -> Result:
    env_id, content = draw(seed, number)
    path = folder / f"{number}.xml"
    path.write_bytes(content)
    result = judge(env_id, path, number)
    path.unlink()
    return result


# ---- in the parent -------------------------------------------------------------------------------


def is_mujocos(path: Path) -> bool:
    """Whether the mujoco package alone ends badly on the same file."""
    bare = HERE / "mujoco_crashes" / "bare.py"
    outcome = children.run(bare, [str(path)], 4 * SECONDS_PER_FILE)
    return outcome.kind == "hang" or outcome.kind.startswith("SIG")


def fuzz(seed: int, num_files: int, *, folder: Path = BUILD) -> tuple[Counter[str], list[str]]:
    """Tries so many files. Returns counts and a description of each failure, kept in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    counts: Counter[str] = Counter()
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        for result in batches.run(
            Path(__file__), ["--seed", str(seed), "--folder", scratch], range(num_files),
            seconds=SECONDS_PER_FILE, per_child=FILES_PER_CHILD, workers=1,
        ):  # fmt: skip
            kind, number = result["kind"], result["number"]
            if kind in FINE:
                counts[kind] += 1
                continue
            env_id, content = draw(seed, number)
            kept = folder / f"mjcf-{seed}-{number}.xml"
            kept.write_bytes(content)
            whose = "MuJoCo's own" if kind != "wrong" and is_mujocos(kept) else "ours"
            counts[f"{kind}, {whose}"] += 1
            failures.append(
                f"seed {seed}, file {number}: {kind}, {whose}\n{result['refusal']}\nagain: "
                f"python {Path(__file__).name} --file {kept} --env-id {env_id} --seed {number}"
            )
            print(failures[-1], file=sys.stderr, flush=True)
    return counts, failures


def table(counts: Counter[str], seconds: float) -> str:
    """The closing table."""
    rows = [("files", sum(counts.values())), *sorted(counts.items()), ("seconds", round(seconds))]
    return "\n".join(f"{name:<36}{number:>12,}" for name, number in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--only", type=int, help="this file of the run")
    parser.add_argument("--file", type=Path, help="a kept file")
    parser.add_argument("--env-id", default="HalfCheetah-v5")
    parser.add_argument("--batch", type=int, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.batch is not None:
        return batches.serve(
            lambda number: _judge_drawn(options.seed, number, options.folder),
            *options.batch, SECONDS_PER_FILE, MEMORY,
        )  # fmt: skip
    env_id, path, seed = options.env_id, options.file, options.seed
    if options.only is not None:
        env_id, content = draw(options.seed, options.only)
        BUILD.mkdir(parents=True, exist_ok=True)
        path, seed = BUILD / f"mjcf-{options.seed}-{options.only}.xml", options.only
        path.write_bytes(content)
    if path is not None:
        children.guard(MEMORY)
        children.expect_within(SECONDS_PER_FILE)
        result = judge(env_id, path, seed)
        print(result["kind"], result.get("refusal", ""))
        return int(result["kind"] not in FINE)
    start = time.monotonic()
    counts, failures = fuzz(options.seed, options.files)
    print(f"MJCF, seed {options.seed}\n{table(counts, time.monotonic() - start)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
