"""Exported policies do what the policy does, in the programs that run them."""

import errno
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from algorithms import small
from torch import nn

import pyfastenv
from pyfastenv import cli
from pyfastenv.algorithms import ddpg, flashsac, ppo, sac
from pyfastenv.publish import export as exporting
from pyfastenv.publish.c_source import c_source
from pyfastenv.publish.export import export
from pyfastenv.runs import checkpoint
from pyfastenv.runs.errors import TrainingError

pytestmark = [
    # PyTorch's exporter of itself
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A short training of each kind of policy."""
    folder = tmp_path_factory.mktemp("runs")
    sac.train(small("sac", env_id="Reacher-v5", run_dir=folder / "sac", total_steps=80))
    # wide action bounds that are not symmetric, a normaliser
    options = {"normalize_obs": True, "obs_clip": 2.0, "activation": "silu", "total_steps": 100}
    ddpg.train(small("ddpg", env_id="Humanoid-v5", run_dir=folder / "ddpg", **options))
    for name, env_id in (("discrete", "CartPole-v1"), ("ppo", "Hopper-v5")):
        options = {"activation": "elu", "hidden_sizes": (64, 64), "total_steps": 300}
        ppo.train(small("ppo", env_id=env_id, run_dir=folder / name, **options))
    ppo.train(small("ppo", run_dir=folder / "layer_norm", layer_norm=True, total_steps=300))
    ppo.train(small("ppo", run_dir=folder / "linear", hidden_sizes=(), total_steps=300))
    own = small("sac", env_id="Reacher-v5", run_dir=folder / "own", total_steps=80)
    own.policy_factory = "small_learners:policy_network"
    sac.train(own)
    flashsac.train(small("flashsac", env_id="Reacher-v5", run_dir=folder / "flashsac"))
    return {path.name: path for path in folder.iterdir()}


@pytest.mark.parametrize(("format", "name"), [("c", "policy.c"), ("torch.export", "policy.pt2")])
def test_what_cannot_be_written_leaves_what_was_there(
    format: Any, name: str, runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    path.write_text("an export")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device"):
        export(runs["sac"], path, format=format)
    assert path.read_text() == "an export" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("name", ["sac", "ddpg", "discrete", "ppo", "linear"])
def test_c_without_dependencies(name: str, runs: dict[str, Path], tmp_path: Path) -> None:
    result = export(runs[name], tmp_path / "policy.c", format="c")
    assert result.num_observations == 1_000 and result.difference < 1e-5
    source = result.path.read_text()
    assert source.count("#include") == 1 and "#include <math.h>" in source
    # a program of its own, on the environment's first observation
    policy = pyfastenv.load_policy(runs[name])
    space = policy.spaces[0]
    obs = np.random.default_rng(0).normal(size=space.shape).astype(np.float32)
    numbers = ", ".join(f"{float(x).hex()}F" for x in obs)
    unknown = np.full_like(obs, np.nan)
    (tmp_path / "main.c").write_text(
        f'#include "policy.c"\n#include <stdio.h>\nint main(void) {{\n  float obs[] = '
        f"{{{numbers}}};\n  action out[kActionSize];\n  for (int k = 0; k < 2; ++k) {{\n    "
        "act(obs, out);\n    for (int i = 0; i < kActionSize; ++i) "
        'printf("%.9g\\n", (double)out[i]);\n    '
        "for (int i = 0; i < kObsSize; ++i) obs[i] = NAN;\n  }\n  return 0;\n}\n"
    )
    command = ["cc", "-O2", "-std=c99", str(tmp_path / "main.c"), "-o", str(tmp_path / "a"), "-lm"]
    subprocess.run(command, check=True)
    done = subprocess.run([str(tmp_path / "a")], check=True, capture_output=True, text=True)
    found, of_nothing = np.array(done.stdout.split(), np.float64).reshape(2, -1)
    np.testing.assert_allclose(found, np.atleast_1d(policy.act(obs)), rtol=0, atol=1e-5)
    np.testing.assert_array_equal(of_nothing, np.atleast_1d(policy.act(unknown)))


@pytest.mark.parametrize("name", ["discrete", "own", "flashsac"])
def test_torch_export_takes_batches(name: str, runs: dict[str, Path]) -> None:
    result = export(runs[name], format="torch.export", num_observations=50)
    assert result.path == runs[name] / "policy.pt2" and result.difference < 1e-6
    assert result.num_bytes == result.path.stat().st_size
    module = torch.export.load(result.path).module()
    policy = pyfastenv.load_policy(runs[name])
    obs = np.random.default_rng(0).normal(size=(7, *policy.spaces[0].shape)).astype(np.float32)
    found = module(torch.from_numpy(obs)).detach().numpy()
    np.testing.assert_allclose(found, policy.act(obs), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["ddpg", "discrete", "layer_norm", "own", "flashsac"])
def test_onnx_in_onnxruntime(
    name: str, runs: dict[str, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    assert cli.main(["export", str(runs[name]), "--format", "onnx"]) == 0
    out = capfd.readouterr().out
    assert "policy.onnx" in out and "1,000 observations" in out
    session = runtime.InferenceSession(str(runs[name] / "policy.onnx"))
    policy = pyfastenv.load_policy(runs[name])
    obs = np.random.default_rng(0).normal(size=(7, *policy.spaces[0].shape)).astype(np.float32)
    (found,) = session.run(["actions"], {"obs": obs})
    np.testing.assert_allclose(found, policy.act(obs), rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["sac", "ddpg", "ppo", "flashsac"])
def test_a_run_on_another_device_is_loaded(
    name: str, runs: dict[str, Path], tmp_path: Path
) -> None:
    """CUDA's generators have states of 16 bytes, which those of the CPU cannot take."""

    count = 0

    def as_on_cuda(part: Any, of_generator: bool = False) -> Any:
        nonlocal count
        if isinstance(part, dict):
            return {key: as_on_cuda(item, "generator" in key) for key, item in part.items()}
        if isinstance(part, list):
            return [as_on_cuda(item, of_generator) for item in part]
        count += of_generator
        return torch.zeros(16, dtype=torch.uint8) if of_generator else part

    wanted = pyfastenv.load_policy(runs[name])
    changed = as_on_cuda(checkpoint.load(wanted.path))
    assert count > 1
    (tmp_path / "config.json").write_text((runs[name] / "config.json").read_text())
    checkpoint.CheckpointDir(tmp_path / "checkpoints").save(wanted.step, changed)
    obs = np.random.default_rng(0).normal(size=(7, *wanted.spaces[0].shape)).astype(np.float32)
    found = pyfastenv.load_policy(tmp_path).act(obs)
    np.testing.assert_array_equal(found, wanted.act(obs))


def test_pruning_tells_both_returns(runs: dict[str, Path], tmp_path: Path) -> None:
    result = export(runs["ppo"], tmp_path / "policy.c", format="c", prune_fraction=0.5, episodes=2)
    assert result.return_before is not None and result.return_after is not None
    assert result.return_before != result.return_after
    whole = export(runs["ppo"], tmp_path / "whole.c", format="c")
    assert whole.return_before is None
    zeros, before = (path.read_text().count("0x0.0p+0F") for path in (result.path, whole.path))
    numbers = 11 * 64 + 64 * 64 + 64 * 3
    assert zeros - before == pytest.approx(numbers / 2, abs=2)


def test_int8_tells_both_returns(runs: dict[str, Path], tmp_path: Path) -> None:
    pytest.importorskip("torchao")
    result = export(
        runs["sac"], tmp_path / "policy.pt2", format="torch.export", int8=True, episodes=2
    )
    assert result.return_before is not None and result.return_after is not None
    # 8 bits leave the actions near, and the file does what the quantised policy does
    assert result.return_after == pytest.approx(result.return_before, rel=0.2)
    module = torch.export.load(result.path).module()
    policy = pyfastenv.load_policy(runs["sac"])
    obs = np.random.default_rng(0).normal(size=(7, *policy.spaces[0].shape)).astype(np.float32)
    found = module(torch.from_numpy(obs)).detach().numpy()
    assert 0.0 < np.abs(found - policy.act(obs)).max() < 0.1


@pytest.mark.parametrize("name", ["policy.c", "policy.C", "policy.pt2"])
def test_the_outputs_name_says_the_format(name: str, runs: dict[str, Path], tmp_path: Path) -> None:
    assert cli.main(["export", str(runs["ppo"]), "--output", str(tmp_path / name)]) == 0
    written = (tmp_path / name).read_bytes()
    assert written.startswith(b"PK") if name == "policy.pt2" else b"#include <math.h>" in written


# ---- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "tflite"}, "format: expected one of torch.export, onnx, c, got 'tflite'"),
        ({"prune_fraction": 1.0}, "prune_fraction: expected 0 to less than 1, got 1.0"),
        ({"int8": True}, "int8: only with format torch.export, got onnx"),
        ({"num_observations": 0}, "num_observations: expected at least 1, got 0"),
        (
            {"output": "policy.txt"},
            "output: expected a name ending in .pt2 or .onnx or .c, got policy.txt",
        ),
        ({"output": "p.c", "format": "onnx"}, "output: expected a name ending in .onnx, got p.c"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], message: str, runs: dict[str, Path]) -> None:
    if "output" in options:
        options = {**options, "output": Path(options["output"])}
    with pytest.raises(ValueError, match=message):
        export(runs["sac"], **options)


def test_c_says_which_networks_it_takes(runs: dict[str, Path], tmp_path: Path) -> None:
    for name in ("layer_norm", "own"):
        with pytest.raises(ValueError, match="format: c needs linear layers with one kind of Tanh"):
            export(runs[name], tmp_path / "policy.c", format="c")
    policy = pyfastenv.load_policy(runs["sac"]).as_torch()
    policy.network = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    with pytest.raises(ValueError, match="format: c needs"):
        c_source(policy, "")


def test_a_file_that_does_something_else_is_told(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(policy: Any, title: str) -> str:
        return (
            c_source(policy, title)
            .replace("tanhf(x)", "x")
            .replace("x < 0.0F ? 0.0F : x", "x + 1.0F")
        )

    monkeypatch.setattr(exporting, "c_source", broken)
    with pytest.raises(TrainingError, match="its actions differ from the policy's by up to"):
        export(runs["sac"], tmp_path / "policy.c", format="c")
