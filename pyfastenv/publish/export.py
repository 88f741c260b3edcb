"""Trained policies for other programs: torch.export, ONNX, or C; smaller ones on request.

Every export is read back and run by what will run it (PyTorch, onnxruntime, a C compiler) on
observations of the policy's own episodes, and compared with the policy.
"""

from __future__ import annotations

import copy
import ctypes
import io
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.utils import prune

from pyfastenv.nn.recurrent import RecurrentPolicy
from pyfastenv.nn.torch_policy import TorchPolicy
from pyfastenv.publish.c_source import c_source
from pyfastenv.publish.outputs import check_output
from pyfastenv.runs.atomic import replacing, write_text
from pyfastenv.runs.errors import TrainingError
from pyfastenv.runs.evaluation import evaluate
from pyfastenv.runs.folder import run_of
from pyfastenv.runs.saved import SavedPolicy, load_policy
from pyfastenv.runs.seeds import Stream, env_seeds

Format = Literal["torch.export", "onnx", "c"]
Array = NDArray[Any]
_SUFFIXES: dict[Format, str] = {"torch.export": ".pt2", "onnx": ".onnx", "c": ".c"}
_FORMATS = {suffix: format for format, suffix in _SUFFIXES.items()}
_NUM_ENVS = 10
# of actions; float32 rounding through three layers is below 1e-5 of their range
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Exported:
    """The result of an export.

    Attributes:
        path: The file.
        num_observations: On how many it was compared with the policy it holds.
        difference: The greatest difference of an action; of discrete ones the share that differ.
        num_bytes: The file's size.
        return_before: The trained policy's mean return; None: it was not made smaller.
        return_after: The smaller one's.
    """

    path: Path
    num_observations: int
    difference: float
    num_bytes: int
    return_before: float | None = None
    return_after: float | None = None


def export(
    run: Path | str,
    output: Path | None = None,
    *,
    format: Format | None = None,
    policy_id: int = 0,
    int8: bool = False,
    prune_fraction: float = 0.0,
    episodes: int = 10,
    num_observations: int = 1_000,
) -> Exported:
    """Writes the policy of a run folder or checkpoint: observations to the most likely actions.

    Args:
        run: The run folder or checkpoint file.
        output: The file; by default ``policy`` with the format's suffix there.
        format: ``"torch.export"`` (.pt2), ``"onnx"`` (.onnx; input ``obs``, output ``actions``), or
            ``"c"`` (one C99 file, .c). The first two take batches. None: as the output's suffix
            says; without an output onnx.
        policy_id: Which policy, if the run trained several seeds side by side.
        int8: Quantise the layers' weights and, as they come, their inputs (torchao); torch.export.
        prune_fraction: Set this share of each layer's weights, the smallest, to 0.
        episodes: Of the evaluations before and after a policy is made smaller.
        num_observations: For the comparison.

    Raises:
        CheckpointError: There is no readable checkpoint.
        ImportError: onnx, onnxscript, onnxruntime or torchao is not installed.
        NoSuchPolicyError: No such policy.
        TrainingError: The file does not do what the policy does; there is no C compiler.
        ValueError: A format that cannot hold the policy; a number out of range.
    """
    if format is None:
        format = _format_of(output)
    if format not in _SUFFIXES:
        raise ValueError(f"format: expected one of {', '.join(_SUFFIXES)}, got {format!r}")
    if not 0.0 <= prune_fraction < 1.0:
        raise ValueError(f"prune_fraction: expected 0 to less than 1, got {prune_fraction}")
    if int8 and format != "torch.export":
        raise ValueError(f"int8: only with format torch.export, got {format}")
    saved = load_policy(run)
    suffix = _SUFFIXES[format]
    if output is None:
        output = (run_of(saved.path) or saved.path.parent) / f"policy{suffix}"
    check_output(output, (suffix,))
    policy = copy.deepcopy(exportable(saved, policy_id).as_greedy()).eval()
    returns: tuple[float | None, float | None] = (None, None)
    observations = _observations(saved, policy, num_observations)
    if int8 or prune_fraction > 0.0:
        before = _return(saved, policy, episodes)
        if prune_fraction > 0.0:
            _prune(policy, prune_fraction)
        if int8:
            _quantise(policy)
        returns = before, _return(saved, policy, episodes)
    with torch.no_grad():
        expected = policy(torch.from_numpy(observations)).numpy()
    write = {"torch.export": _write_torch, "onnx": _write_onnx, "c": _write_c}[format]
    found = write(policy, output, _title(saved))(observations)
    difference = _difference(expected, found)
    if not difference < _TOLERANCE * float(np.abs(expected).max() + 1.0):
        raise TrainingError(
            f"{output}: its actions differ from the policy's by up to {difference:g}"
        )
    return Exported(output, len(observations), difference, output.stat().st_size, *returns)


def exportable(saved: SavedPolicy, policy_id: int) -> TorchPolicy:
    """One of a run's policies.

    Raises:
        NoSuchPolicyError: No such policy.
        ValueError: It remembers.
    """
    policy = saved.as_torch(policy_id)
    if isinstance(policy, RecurrentPolicy):
        raise ValueError(
            f"{saved.path}: a policy with a memory is not exported: a file's actions are of one "
            "observation"
        )
    return policy


def _format_of(output: Path | None) -> Format:
    """The format that a file's name asks for."""
    if output is None:
        return "onnx"
    check_output(output, tuple(_FORMATS))
    return _FORMATS[output.suffix.lower()]


def _title(saved: SavedPolicy) -> str:
    return f"{saved.config.algorithm} on {saved.config.env_id} after {saved.step:,} steps"


def _observations(saved: SavedPolicy, policy: TorchPolicy, count: int) -> NDArray[np.float32]:
    """The policy's observations in its own episodes, ``(count, obs_size)``."""
    if count < 1:
        raise ValueError(f"num_observations: expected at least 1, got {count}")
    with closing(saved.make_envs(_NUM_ENVS)) as envs:
        rows, _ = envs.flat_reset(seed=env_seeds(0, _NUM_ENVS, Stream.EVALUATION_ENVS))
        seen = [policy.of_rows(rows)]
        while len(seen) * _NUM_ENVS < count:
            seen.append(policy.of_rows(envs.flat_step(policy.act(seen[-1]))[0]))
        return np.concatenate(seen)[:count].astype(np.float32)


def _return(saved: SavedPolicy, policy: TorchPolicy, episodes: int) -> float:
    with closing(saved.make_envs(episodes)) as envs:
        return float(evaluate(envs, [policy], episodes, 0).returns.mean())


def _difference(expected: Array, found: Array) -> float:
    if expected.shape != found.shape:
        raise TrainingError(f"expected actions {expected.shape}, got {found.shape}")
    if np.issubdtype(expected.dtype, np.integer):
        return float((expected != found).mean())
    return float(np.abs(expected - found).max())


# ---- smaller -------------------------------------------------------------------------------------


def _linears(policy: TorchPolicy) -> list[nn.Linear]:
    found = [module for module in policy.network.modules() if isinstance(module, nn.Linear)]
    if not found:
        raise ValueError("only linear layers are made smaller, and the network has none")
    return found


def _prune(policy: TorchPolicy, fraction: float) -> None:
    """Prunes weights by magnitude, layer by layer."""
    for linear in _linears(policy):
        prune.l1_unstructured(linear, "weight", amount=fraction)
        prune.remove(linear, "weight")


def _quantise(policy: TorchPolicy) -> None:
    """Weights once, by row; inputs as they come, by observation."""
    _linears(policy)
    quantization = _needed("torchao.quantization", "torchao")
    quantization.quantize_(policy.network, quantization.Int8DynamicActivationInt8WeightConfig())


# ---- formats: each writes the file and returns what runs it --------------------------------------

Runner = Callable[[NDArray[np.float32]], Array]


def _program(policy: TorchPolicy) -> tuple[tuple[torch.Tensor], Any]:
    """An example and which of its sizes may be another."""
    return (torch.zeros(2, policy.obs_size),), ({0: torch.export.Dim("batch")},)


def _write_torch(policy: TorchPolicy, path: Path, title: str) -> Runner:
    example, sizes = _program(policy)
    with torch.no_grad():
        program = torch.export.export(policy, example, dynamic_shapes=sizes)
    data = io.BytesIO()  # torch's own writer ends the process on a full disk
    torch.export.save(program, data)
    with replacing(path) as file:
        file.write(data.getvalue())
    module = torch.export.load(path).module()

    @torch.no_grad()
    def run(obs: NDArray[np.float32]) -> Array:
        actions: Array = module(torch.from_numpy(obs)).numpy()
        return actions

    return run


def _write_onnx(policy: TorchPolicy, path: Path, title: str) -> Runner:
    for name in ("onnx", "onnxscript"):
        _needed(name, name)
    runtime = _needed("onnxruntime", "onnxruntime")
    example, sizes = _program(policy)
    torch.onnx.export(
        policy,
        example,
        path,
        dynamo=True,
        dynamic_shapes=sizes,
        input_names=["obs"],
        output_names=["actions"],
        external_data=False,
        verbose=False,
    )
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    def run(obs: NDArray[np.float32]) -> Array:
        actions: Array = session.run(None, {"obs": obs})[0]
        return actions

    return run


def _write_c(policy: TorchPolicy, path: Path, title: str) -> Runner:
    write_text(path, c_source(policy, title))

    def run(obs: NDArray[np.float32]) -> Array:
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "policy.so"
            flags = ["-xc", "-O2", "-std=c99", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
            try:
                subprocess.run(
                    ["cc", *flags, str(path), "-o", str(library), "-lm"],
                    check=True,
                    capture_output=True,
                    text=True,
                )
            except FileNotFoundError as error:
                raise TrainingError(f"{path} is written, but there is no cc to try it") from error
            except subprocess.CalledProcessError as error:
                raise TrainingError(f"{path}: cc refuses it: {error.stderr}") from error
            act = ctypes.CDLL(str(library)).act
        discrete = policy.distribution == "categorical"
        shape = (len(obs),) if discrete else (len(obs), len(policy.low))
        actions = np.empty(shape, np.int64 if discrete else np.float32)
        for row, action in zip(
            np.ascontiguousarray(obs), actions.reshape(len(obs), -1), strict=True
        ):
            act(ctypes.c_void_p(row.ctypes.data), ctypes.c_void_p(action.ctypes.data))
        return actions

    return run


def _needed(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"export needs {package}: pip install {package}") from error
