"""Mutated MJCF files: never a signal, always an exception or an environment that steps.

    python tests/fuzz/mjcf.py --seed 1 --files 10000
    python tests/fuzz/mjcf.py --seed 1 --only 4711
    python tests/fuzz/mjcf.py --file build/fuzz/mjcf-1-4711.xml --env-id HalfCheetah-v5

A model that loads makes two environments, which step, are restored and must repeat themselves bit
for bit. Children's address spaces are bounded, so a model that asks for too much memory must end in
an exception. What ends a child, or an assertion, is kept under build/fuzz/.
"""

import argparse
import random
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
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
STEPS = 4
# whose model it is -> ids that take it; any model may also go to the undemanding ones
IDS_OF = {
    "ant.xml": "Ant-v5", "half_cheetah.xml": "HalfCheetah-v5", "hopper.xml": "Hopper-v5",
    "humanoid.xml": "Humanoid-v5", "humanoidstandup.xml": "HumanoidStandup-v5",
    "inverted_double_pendulum.xml": "InvertedDoublePendulum-v5",
    "inverted_pendulum.xml": "InvertedPendulum-v5", "pusher_v5.xml": "Pusher-v5",
    "reacher.xml": "Reacher-v5", "swimmer.xml": "Swimmer-v5", "walker2d_v5.xml": "Walker2d-v5",
    "actuators.xml": "HalfCheetah-v5", "contacts.xml": "InvertedPendulum-v5",
    "soft.xml": "HalfCheetah-v5",
}  # fmt: skip
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


def _judge_drawn(options: argparse.Namespace, number: int) -> Result:
    env_id, content = draw(options.seed, number)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{number}.xml"
        path.write_bytes(content)
        return judge(env_id, path, number)


PROGRAM = batches.Program(
    Path(__file__),
    batches.drawing(__doc__, "files", 10_000),
    _judge_drawn,
    fine=("refused", "too large", "cannot reset", "stepped", "stopped"),
    seconds=40.0,
    per_child=250,
    memory=6 * 2**30,
)
PROGRAM.parser.add_argument("--file", type=Path, help="a kept file; --seed is of its actions")
PROGRAM.parser.add_argument("--env-id", default="HalfCheetah-v5")


# ---- in the parent -------------------------------------------------------------------------------


def is_mujocos(path: Path) -> bool:
    """Whether the mujoco package alone ends badly on the same file."""
    bare = HERE / "mujoco_crashes" / "bare.py"
    outcome = children.run(bare, [str(path)], 4 * PROGRAM.seconds)
    return outcome.kind == "hang" or outcome.kind.startswith("SIG")


def fuzz(given: Sequence[str], folder: Path = BUILD) -> Iterator[Result]:
    """Results under these arguments; the file of each failure is kept in ``folder``."""
    seed = PROGRAM.parser.parse_args(given).seed
    for result in PROGRAM.results(given):
        if result["kind"] not in PROGRAM.fine:
            kept, env_id = _keep(seed, result["number"], folder)
            whose = "ours"
            if result["kind"] != "wrong" and is_mujocos(kept):
                whose = "MuJoCo's own"
            again = f"python {Path(__file__).name} --file {kept} --env-id {env_id}"
            result["kind"] += f", {whose}"
            result["again"] = f"{again} --seed {result['number']}"
        yield result


def _keep(seed: int, number: int, folder: Path) -> tuple[Path, str]:
    """Writes the n-th file of a run; returns its path and the environment that gets it."""
    env_id, content = draw(seed, number)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"mjcf-{seed}-{number}.xml"
    path.write_bytes(content)
    return path, env_id


def main() -> int:
    options = PROGRAM.parser.parse_args()
    if options.batch is not None:
        return PROGRAM.serve(options)
    env_id, path, seed = options.env_id, options.file, options.seed
    if options.only is not None:
        path, env_id = _keep(seed, options.only, BUILD)
        seed = options.only
    if path is not None:
        children.guard(PROGRAM.memory)
        children.expect_within(PROGRAM.seconds)
        result = judge(env_id, path, seed)
        print(result["kind"], result.get("refusal", ""))
        return int(result["kind"] not in PROGRAM.fine)
    return int(bool(PROGRAM.report(f"MJCF, seed {seed}", fuzz(sys.argv[1:]))))


if __name__ == "__main__":
    sys.exit(main())
