"""SAC's and the ensemble's compiled updates refuse what does not fit, and touch nothing then."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scripts import run_script

from pyfastenv import _core

SAC = {
    "obs_size": 3, "action_size": 2, "hidden_sizes": [8], "layer_norm": False, "bfloat16": False,
    "num_seeds": 2, "batch_size": 4, "num_threads": 1,
}  # fmt: skip
POLICY = 2 * (3 * 8 + 8 + 8 * 4 + 4) + 2
CRITIC = 4 * (5 * 8 + 8 + 8 + 1)

ENSEMBLE = {
    "num_inputs": 3, "num_targets": 2, "hidden_sizes": [8], "bfloat16": False,
    "num_networks": 4, "num_seeds": 2, "batch_size": 4, "num_threads": 1,
}  # fmt: skip


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def sac_arguments() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "rows": rng.normal(size=(5, 2, 4, 10)).astype(np.float32),
        "noise": rng.normal(size=(5, 2, 8, 2)).astype(np.float32),
        "step": 0,
        "hyper": _core.SacHyper(),
        "policy": [zeros(POLICY) for _ in range(3)],
        "critic": [zeros(CRITIC) for _ in range(3)],
        "target": zeros(CRITIC),
        "log_temperature": zeros(2),
        "metrics": zeros(5, 2),
    }


def test_sac_takes_what_fits() -> None:
    arguments = sac_arguments()
    _core.SacUpdate(**SAC).run(**arguments)
    assert np.abs(arguments["policy"][0]).sum() > 0 and np.isfinite(arguments["metrics"]).all()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("rows", lambda x: x[..., :9], r"rows: expected \(n, 2, 4, 10\) float32"),
        ("rows", lambda x: x[:, :1], r"rows: expected \(n, 2, 4, 10\) float32"),
        ("rows", lambda x: x.astype(np.float64), r"rows: expected \(n, 2, 4, 10\) float32"),
        ("rows", lambda x: x.astype(np.int64), "rows: expected"),
        ("noise", lambda x: x[:, :, :7], r"noise: expected \(n, 2, 8, 2\) float32"),
        ("noise", lambda x: x[:4], "noise: expected as many steps as rows has"),
        ("step", lambda _: -1, "step: expected an integer >= 0, got -1"),
        ("policy", lambda x: x[:2], "policy, critic: expected parameters, mean and square"),
        ("policy", lambda x: [x[0][1:], *x[1:]], "policy: expected a writeable"),
        ("policy", lambda x: [*x[:2], zeros(1)], "policy: expected a writeable"),
        ("critic", lambda x: [x[0], x[1][::2], x[2]], "critic: expected a writeable"),
        ("target", lambda x: x[1:], "target: expected a writeable"),
        ("target", lambda x: x.astype(np.float64), "target: expected a writeable"),
        ("log_temperature", lambda _: zeros(3), "log_temperature: expected a writeable"),
        ("metrics", lambda _: zeros(5, 1), "metrics: expected a writeable"),
        ("metrics", lambda _: zeros(2, 5).T, "metrics: expected a writeable"),
    ],
)
def test_sac_refuses(name: str, change: Callable[[Any], Any], message: str) -> None:
    arguments = sac_arguments()
    arguments[name] = change(arguments[name])
    with pytest.raises((ValueError, TypeError), match=message):
        _core.SacUpdate(**SAC).run(**arguments)
    for vector in (*arguments["policy"], *arguments["critic"], arguments["target"]):
        assert not vector.any()


def ensemble_arguments(num_parameters: int) -> dict[str, Any]:
    hyper = _core.EnsembleHyper()
    hyper.decays = [0.0, 0.0]
    return {
        "samples": np.random.default_rng(0).normal(size=(2, 6, 5)).astype(np.float32),
        "order": np.tile(np.arange(6), (4, 1)),
        "step": 0,
        "hyper": hyper,
        "vectors": [zeros(num_parameters) for _ in range(3)],
    }


def without_decays(_: object) -> _core.EnsembleHyper:
    return _core.EnsembleHyper()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("samples", lambda x: x[..., :4], r"samples: expected \(2, .*, 5\) float32"),
        ("samples", lambda x: x[:, :0], "samples: expected at least one row"),
        ("samples", lambda x: x[:1], r"samples: expected \(2, .*, 5\) float32"),
        ("samples", lambda x: x.astype(np.float64), r"samples: expected \(2, .*, 5\) float32"),
        ("order", lambda x: x[:3], r"order: expected \(networks, count\) integers"),
        ("order", lambda x: x + 1, "order: expected rows of samples"),
        ("order", lambda x: x - 1, "order: expected rows of samples"),
        ("order", lambda x: x.astype(float), r"order: expected \(networks, count\) integers"),
        ("step", lambda _: -1, "step: expected an integer >= 0, got -1"),
        ("hyper", without_decays, "a decay for each layer"),
        ("vectors", lambda x: x[:2], "expected parameters, mean and square"),
        ("vectors", lambda x: [*x[:2], x[2][1:]], "vectors: expected a writeable"),
    ],
)
def test_the_ensemble_refuses(name: str, change: Callable[[Any], Any], message: str) -> None:
    # a network: mean and log variance of each target, and the bounds of the latter
    num_parameters = 4 * (3 * 8 + 8 + 8 * 4 + 4 + 2 * 2)
    _core.EnsembleUpdate(**ENSEMBLE).run_epoch(**ensemble_arguments(num_parameters))
    arguments = ensemble_arguments(num_parameters)
    arguments[name] = change(arguments[name])
    with pytest.raises((ValueError, TypeError, IndexError), match=message):
        _core.EnsembleUpdate(**ENSEMBLE).run_epoch(**arguments)
    assert not any(vector.any() for vector in arguments["vectors"])


@pytest.mark.parametrize(
    ("make", "sizes", "change", "message"),
    [
        (_core.SacUpdate, SAC, {"obs_size": 0}, "obs_size: expected 1 to"),
        (_core.SacUpdate, SAC, {"num_seeds": -1}, "num_seeds: expected 1 to"),
        (_core.SacUpdate, SAC, {"hidden_sizes": []}, "hidden_sizes: expected at least one"),
        (_core.SacUpdate, SAC, {"hidden_sizes": [8, 0]}, "hidden_sizes: expected 1 to"),
        (_core.EnsembleUpdate, ENSEMBLE, {"num_targets": 0}, "num_targets: expected 1 to"),
        (_core.EnsembleUpdate, ENSEMBLE, {"batch_size": 0}, "batch_size: expected 1 to"),
        (_core.EnsembleUpdate, ENSEMBLE, {"num_networks": 3}, "as many for each of 2 seeds"),
    ],
)
def test_networks_that_cannot_be(
    make: type, sizes: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make(**(sizes | change))


@pytest.mark.skipif(bool(_core.bfloat16_unit()), reason="this machine has such a unit")
@pytest.mark.parametrize(
    ("make", "sizes"), [(_core.SacUpdate, SAC), (_core.EnsembleUpdate, ENSEMBLE)]
)
def test_bfloat16_wants_a_unit(make: type, sizes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="this machine has neither AMX nor AVX512-BF16"):
        make(**(sizes | {"bfloat16": True}))


STEPS = """
import json
import numpy as np
from pyfastenv import _core

rng = np.random.default_rng(0)
sizes = {"obs_size": 3, "action_size": 2, "num_seeds": 1, "batch_size": 50}
norms = 2 * (40 + 72)
policy = 3 * 40 + 40 + 40 * 72 + 72 + 72 * 4 + 4 + norms + 1
critic = 2 * (5 * 40 + 40 + 40 * 72 + 72 + 72 + 1 + norms)
vectors = [
    [rng.normal(size=size).astype(np.float32) / 8, *np.zeros((2, size), np.float32)]
    for size in (policy, critic)
]
metrics = np.zeros((5, 1), np.float32)
networks = {"hidden_sizes": [40, 72], "layer_norm": True, "bfloat16": True}
update = _core.SacUpdate(num_threads=1, **networks, **sizes)
update.run(
    rows=rng.normal(size=(3, 1, 50, 10)).astype(np.float32),
    noise=rng.normal(size=(3, 1, 100, 2)).astype(np.float32),
    step=0, hyper=_core.SacHyper(), policy=vectors[0], critic=vectors[1],
    target=vectors[1][0].copy(), log_temperature=np.zeros(1, np.float32), metrics=metrics,
)
moments = [float(np.abs(each).sum()) for vector in vectors for each in vector]
print(json.dumps([_core.bfloat16_unit(), metrics[:, 0].tolist() + moments]))
"""


@pytest.mark.skipif(
    not _core.bfloat16_unit(), reason="this machine has neither AMX nor AVX512-BF16"
)
def test_units_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is AMX, with AVX512-BF16; sums of other order differ by their rounding."""
    unit, expected = json.loads(run_script(STEPS))
    monkeypatch.setenv("PYFASTENV_BF16", "avx512")
    other, found = json.loads(run_script(STEPS))
    assert other == "AVX512-BF16" and unit in ("AMX", other)
    assert np.isfinite(expected).all() and np.abs(expected).min() > 0.0
    np.testing.assert_allclose(found, expected, rtol=2e-3)
