"""judo: its tasks and optimisers choose the same controls on our rollouts, bit for bit."""

from __future__ import annotations

import copy
from typing import Any

import mujoco
import numpy as np
import pytest
from mujoco import rollout as theirs
from physics_models import SENSORS, controls, from_text, make_data, states

from pyfastenv.integrations.judo import Rollout
from pyfastenv.vector.cpus import available_cpus


def test_threads_are_as_many_as_cpus() -> None:
    """Called as judo does: a deep copy and an MjData for every rollout."""
    model = from_text(SENSORS)
    models = [copy.deepcopy(model) for _ in range(32)]
    x, u = states(model, 32), controls(model, 32, 70)
    pool = Rollout(nthread=32)
    assert pool.nthread == min(32, available_cpus())
    ours = pool.rollout(models, [mujoco.MjData(each) for each in models], x, u)
    expected = theirs.rollout(model, make_data(model), x, u)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(ours, expected, strict=True))
    pool.close()
    with pytest.raises(RuntimeError, match="after thread pool shutdown"):
        pool.rollout(models, make_data(model), x, u)


@pytest.mark.parametrize("optimizer", ["ps", "cem", "mppi"])
@pytest.mark.parametrize("task", ["cartpole", "cylinder_push"])
def test_closed_loops_are_equal(task: str, optimizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("judo")
    from judo.controller import make_controller
    from judo.tasks import base
    from judo.utils import mj_rollout_backend

    # meshes of other tasks, from the network
    monkeypatch.setattr(base, "download_and_extract_meshes", lambda **_: None)
    calls = []

    class Counted(Rollout):
        def rollout(self, *args: Any, **kwargs: Any) -> Any:
            calls.append(args)
            return super().rollout(*args, **kwargs)

    def loop(rollout: Any) -> Any:
        monkeypatch.setattr(mj_rollout_backend, "Rollout", rollout)
        np.random.seed(0)
        controller = make_controller(task, optimizer)
        data, chosen = controller.task.data, []  # controls, and rewards of the rollouts
        for _ in range(25):
            controller.time = data.time
            controller.current_state = np.concatenate([data.qpos, data.qvel])
            controller.update_action()
            data.ctrl[:] = controller.action(data.time)
            chosen.append(np.append(data.ctrl, controller.rewards))
            mujoco.mj_step(controller.task.sim_model, data)
        return np.array(chosen)

    expected = loop(theirs.Rollout)
    assert not calls and np.ptp(expected) > 0
    assert loop(Counted).tobytes() == expected.tobytes()
    assert len(calls) == 25
