"""mujoco.sysid on physics.rollout: its residuals, and what the example finds."""

import runpy
from typing import Any

import mujoco.rollout
import numpy as np
import pytest
from run_example import EXAMPLES

from pyfastenv import physics

sysid = pytest.importorskip("mujoco.sysid")
if not hasattr(sysid, "optimize"):
    pytest.skip("needs mujoco[sysid]", allow_module_level=True)


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(mujoco.rollout, "rollout", mujoco.rollout.rollout)  # put back afterwards
    return runpy.run_path(str(EXAMPLES / "identify_arm.py"))


def test_residuals_do_not_depend_on_threads_and_are_theirs(
    example: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several models at once, as finite differences ask for."""
    theirs = vars(mujoco.rollout)["Rollout"]
    recorded, fit = example["record"](np.random.default_rng(0)), example["parameters"]()
    x = fit.as_vector()
    columns = np.column_stack([x, *(x + 1e-3 * row for row in np.eye(len(x)))])

    def residuals(num_threads: int) -> Any:
        return sysid.residual(columns, fit, [recorded], n_threads=num_threads)[0][0]

    assert mujoco.rollout.rollout is physics.rollout
    ours = [residuals(num_threads) for num_threads in (1, 2, 3)]
    assert ours[0].shape[1] == 9
    assert ours[0].tobytes() == ours[1].tobytes() == ours[2].tobytes()

    def rollout(models: Any, data: Any, *args: Any) -> Any:
        with theirs(nthread=len(data)) as pool:
            return pool.rollout(models, data, *args)

    monkeypatch.setattr(mujoco.rollout, "rollout", rollout)
    assert residuals(2).tobytes() == ours[0].tobytes()


def test_the_example_finds_the_truth(example: dict[str, Any]) -> None:
    for seed in (0, 1):
        rows = example["identify"](seed)
        assert len(rows) == 8
        for name, truth, guess, found in rows:
            assert abs(guess / truth - 1) > 0.2 and abs(found / truth - 1) < 0.02, name
