"""MBPO with and without the flow: schedules, the model's rollouts, presets, NaN in the model."""

import math
import pathlib
import re
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import algorithms
import pytest
import torch
from algorithms import make
from torch import Tensor

from pyfastenv.algorithms import mbpo
from pyfastenv.algorithms.mbpo import MBPO, Config
from pyfastenv.algorithms.mbpo.dynamics import Prediction
from pyfastenv.algorithms.sac.spec import METRICS
from pyfastenv.runs.errors import DivergedError
from pyfastenv.sampling.buffers import ReplayPool
from pyfastenv.training.loop import run

pytestmark = pytest.mark.usefixtures("short_fits")
small = partial(algorithms.small, "mbpo")


# ---- schedules -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedule", "lengths"),
    [
        ((20, 150, 1, 15), {0: 1, 29_000: 1, 30_000: 2, 85_000: 8, 149_999: 14, 150_000: 15}),
        ((20, 100, 1, 25), {999_999: 25, 60_000: 13}),
        ((20, 150, 1, 1), {0: 1, 100_000: 1}),
        ((5, 5, 1, 3), {4_999: 1, 5_999: 1, 6_000: 3}),
        ((0, 0, 2, 2), {0: 2, 10**9: 2}),
    ],
    ids=str,
)
def test_rollouts_grow_by_the_schedule(
    schedule: tuple[int, int, int, int], lengths: dict[int, int]
) -> None:
    config = Config(rollout_schedule=schedule)
    assert {step: config.rollout_length(step) for step in lengths} == lengths


@pytest.mark.parametrize(
    ("options", "length", "rows"),
    [
        ({}, 1, 400_000),
        ({}, 15, 6_000_000),
        ({"model_every": 300, "rollout_batch": 10}, 1, 30),
        ({"model_every": 1_000, "rollout_batch": 10, "model_retain_epochs": 5}, 2, 100),
        ({"model_every": 5_000, "rollout_batch": 10}, 1, 10),
        ({"epoch_steps": 250, "rollout_batch": 10}, 2, 20),
    ],
)
def test_the_pool_holds_the_rollouts_of_some_epochs(
    options: dict[str, int], length: int, rows: int
) -> None:
    assert Config(**options).model_pool_size(length) == rows


def test_what_falls_due_when(monkeypatch: pytest.MonkeyPatch) -> None:
    algorithm = make(small(dynamics="flow", num_envs=2, learning_starts=61, total_steps=300))
    calls: list[tuple[str, int]] = []
    for name in ("_fit_model", "_update_flow", "_improve_model", "_fill_model_pool"):
        monkeypatch.setattr(
            algorithm, name, lambda *_, name=name: calls.append((name, algorithm.global_step))
        )
    learned: list[int] = []
    monkeypatch.setattr(algorithm, "learn", learned.append)
    algorithm.iterate()
    assert algorithm.global_step == 62 and calls == [] and learned == []
    while algorithm.global_step < 180:
        algorithm.iterate()
    by_name = {name: [step for each, step in calls if each == name] for name, _ in calls}
    # the first step that has reached a multiple, two at a time after the 61 random ones
    assert by_name["_fit_model"] == [62, 86, 112, 136, 162]
    assert by_name["_fill_model_pool"] == by_name["_improve_model"] == by_name["_fit_model"]
    assert by_name["_update_flow"] == [62, 102, 142]
    assert [name for name, step in calls if step == 62] == [
        "_fit_model", "_update_flow", "_improve_model", "_fill_model_pool"
    ]  # fmt: skip
    assert learned == [2] * len(learned) and sum(learned) == algorithm.global_step - 62


def test_a_profile_records_the_iteration_in_which_all_falls_due_again() -> None:
    assert Config().busy_steps() == (5_250, 5_251)
    flow = Config(dynamics="flow", flow_every=300, model_agent_every=200)
    assert flow.busy_steps() == (8_000, 8_001)  # 3,000 is a multiple of 250, 300 and 200
    assert Config(log_every=64).busy_steps() == (5_192, 5_193)  # an iteration with step 5,250
    assert Config(total_steps=5_200).busy_steps() == (5_000, 5_001)
    assert Config(profile_steps="5:9").profile_window() == (5, 9)


# ---- the model's rollouts ------------------------------------------------------------------------


class Imagined(NamedTuple):
    """An algorithm whose model is known: x[0] says which state it began from, x[1] how many steps
    ago that was; it terminates after ``x[0] % 4 + 1`` steps, and pays 10 x[0] + x[1]."""

    algorithm: MBPO
    drawn: Tensor  # (K, 40): how often which state began a rollout
    rows: list[Tensor]


def imagine(num_seeds: int, num_states: int, num_steps: int, **options: Any) -> Imagined:
    algorithm = make(small(num_seeds=num_seeds, **options))
    layout = algorithm.layout
    elites = algorithm.config.num_elites

    def predict(obs_actions: Tensor, noise: Tensor) -> Prediction:
        assert len(obs_actions) == len(noise) == num_seeds
        assert obs_actions.shape[1] == noise.shape[1]
        assert obs_actions.shape[1] % elites == 0
        obs = obs_actions[..., : layout.obs_size]
        next_obs = obs.clone()
        next_obs[..., 1] += 1.0
        return Prediction(10.0 * obs[..., 0] + obs[..., 1], next_obs)

    algorithm.model.predict = predict  # type: ignore[method-assign]
    algorithm.terminates = lambda obs: obs[..., 1] > obs[..., 0] % 4
    starts = torch.zeros(num_seeds, 40, layout.width)
    starts[..., 0] = torch.arange(40)
    algorithm.env_pool.add(starts)
    pool = ReplayPool(num_seeds, 10_000, layout.width)
    algorithm._roll_out(num_states, num_steps, pool)
    rows = pool.rows()
    first = [mine[layout.obs(mine)[:, 1] == 0.0] for mine in rows]
    drawn = [torch.bincount(mine[:, 0].long(), minlength=40) for mine in first]
    return Imagined(algorithm, torch.stack(drawn), rows)


@pytest.mark.parametrize("num_steps", [1, 3, 7])
@pytest.mark.parametrize(
    ("num_seeds", "options"),
    [(1, {}), (3, {}), (2, {"ensemble_size": 7, "num_elites": 5})],  # 503: a multiple of none
)
def test_rollouts_end_where_episodes_do(
    num_seeds: int, options: dict[str, Any], num_steps: int
) -> None:
    algorithm, drawn, rows = imagine(num_seeds, 503, num_steps, **options)
    layout = algorithm.layout
    assert drawn.sum(1).tolist() == [503] * num_seeds
    assert (drawn > 0).all()
    states = torch.arange(40)
    for k, mine in enumerate(rows):
        # each is followed for as long as it lives, and no row comes of what has ended
        lived = (states % 4 + 1).clamp(max=num_steps)
        assert len(mine) == (drawn[k] * lived).sum()
        obs, next_obs = layout.obs(mine), layout.next_obs(mine)
        for step in range(num_steps):
            now = obs[obs[:, 1] == step]
            counts = torch.bincount(now[:, 0].long(), minlength=40)
            assert torch.equal(counts, torch.where(lived > step, drawn[k], 0))
        assert torch.equal(layout.continues(mine), (next_obs[:, 1] <= obs[:, 0] % 4).float())
        assert torch.equal(layout.rewards(mine), 10.0 * obs[:, 0] + obs[:, 1])
        assert torch.equal(next_obs[:, 0], obs[:, 0])
        assert layout.obs_actions(mine)[:, layout.obs_size :].abs().max() <= 1.0


def test_rollouts_of_nobody_alive_go_on_empty() -> None:
    algorithm, _, _ = imagine(1, 10, 1)
    algorithm.terminates = lambda obs: torch.ones(obs.shape[:-1], dtype=torch.bool)
    pool = ReplayPool(1, 100, algorithm.layout.width)
    algorithm._roll_out(10, 4, pool)
    assert pool.sizes.tolist() == [10]


def test_a_rollout_meets_different_elites() -> None:
    algorithm = make(small(num_elites=2))
    layout = algorithm.layout

    def predict(obs_actions: Tensor, noise: Tensor) -> Prediction:
        obs = obs_actions[..., : layout.obs_size].clone()
        elite = torch.arange(obs.shape[1]).expand(obs.shape[:2]) % 2
        obs[..., 1] = 10.0 * obs[..., 1] + elite + 1.0  # a digit for each step
        return Prediction(obs[..., 1], obs)

    algorithm.model.predict = predict  # type: ignore[method-assign]
    algorithm.terminates = lambda obs: torch.zeros(obs.shape[:-1], dtype=torch.bool)
    algorithm.env_pool.add(torch.zeros(1, 1, layout.width))
    pool = ReplayPool(1, 2_000, layout.width)
    algorithm._roll_out(1_000, 2, pool)
    (rows,) = pool.rows()
    counts = torch.bincount(layout.rewards(rows).long())
    assert counts[1] == counts[2] == 500
    pairs = counts[[11, 12, 21, 22]]
    assert pairs.sum() == 1_000 and (pairs - 250).abs().max() < 60  # standard deviation 8


def test_the_model_pool_follows_the_schedule() -> None:
    algorithm = make(small(rollout_schedule=(1, 3, 1, 3), rollout_batch=50, model_every=250))
    algorithm.terminates = lambda obs: torch.zeros(obs.shape[:-1], dtype=torch.bool)
    algorithm.iterate()
    pool, metrics = algorithm.model_pool, {}
    lengths = {0: 1, 1_000: 1, 2_000: 2, 3_000: 3, 9_000: 3}
    rows = 0
    for step, length in lengths.items():
        algorithm._fill_model_pool(step, metrics)
        rows = min(rows + 50 * length, 200 * length)
        assert pool.capacity == 200 * length
        assert pool.sizes.tolist() == [rows]
        assert metrics["model/rollout_length"] == length
        assert metrics["model/pool_size"] == rows
    algorithm._fill_model_pool(0, metrics)
    assert pool.capacity == 200 and pool.sizes.tolist() == [200]


def test_predictions_are_of_the_policys_actions_and_the_model() -> None:
    algorithm = make(small(rollout_schedule=(0, 0, 1, 1)))
    for _ in range(4):
        algorithm.iterate()
    layout = algorithm.layout
    model = algorithm.model
    real = layout.obs(algorithm.env_pool.rows()[0])
    algorithm.model_pool.clear()
    algorithm._fit_model({})
    algorithm._fill_model_pool(0, {})
    (rows,) = algorithm.model_pool.rows()
    assert len(rows) == 500
    obs, next_obs = layout.obs(rows), layout.next_obs(rows)
    known = {tuple(each) for each in real.tolist()}
    assert {tuple(each) for each in obs.tolist()} <= known
    # what is predicted for a state and an action lies around what the model expects
    pairs = layout.obs_actions(rows)[None].contiguous()
    silent, loud = (model.predict(pairs, torch.full((1, 500, 5), z)) for z in (0.0, 1.0))
    z = (next_obs - silent.next_obs[0]) / (loud.next_obs - silent.next_obs)[0]
    assert z.mean(0).abs().max() < 0.3 and (z.std(0) - 1.0).abs().max() < 0.3
    assert torch.equal(layout.continues(rows) == 0.0, algorithm.terminates(next_obs))


def test_batches_have_their_share_of_real_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    algorithm = make(small(num_seeds=2, batch_size=20, real_ratio=0.27))
    width = algorithm.layout.width
    for number, pool in ((1.0, algorithm.env_pool), (2.0, algorithm.model_pool)):
        rows = torch.full((2, 30, width), number)
        rows[1] *= 10.0
        pool.add(rows)
    batches: list[Tensor] = []
    monkeypatch.setattr(algorithm.learner, "run", lambda rows, *_: batches.extend(rows))
    algorithm.learn(3)
    assert len(batches) == 3
    for batch in batches:
        assert batch.shape == (2, 20, width)
        assert batch[0, :, 0].tolist() == [1.0] * 5 + [2.0] * 15
        assert batch[1, :, 0].tolist() == [10.0] * 5 + [20.0] * 15


@pytest.mark.parametrize("real_ratio", [0.0, 1.0])
def test_batches_may_be_of_one_kind(real_ratio: float) -> None:
    algorithm = make(small(real_ratio=real_ratio))
    for _ in range(2):
        metrics = algorithm.iterate()
    assert all(map(math.isfinite, metrics.values()))


# ---- whole trainings -----------------------------------------------------------------------------


def test_metrics_tell_of_all_that_is_learned() -> None:
    algorithm = make(small(dynamics="flow"))
    names: set[str] = set()
    for _ in range(6):
        names |= algorithm.iterate().keys()
    wanted = {*METRICS, "loss/model", "model/epochs", "model/pool_size", "model/rollout_length"}
    assert names >= wanted | {"loss/flow", "flow/reward"}


# ---- what it needs of an environment -------------------------------------------------------------


# examples/config/<name>/0.py of github.com/jannerm/mbpo at ac694ff: n_train_repeat,
# target_entropy, rollout_schedule, model_train_freq, model_retain_epochs, epoch_length,
# n_initial_exploration_steps (5,000 where it is not given)
OFFICIAL = {
    "Hopper": (20, -1.0, (20, 150, 1, 15), 250, 1, 1000, 5000),
    "InvertedDoublePendulum": (20, -0.5, (1, 15, 1, 1), 250, 1, 250, 500),
    "InvertedPendulum": (10, -0.05, (1, 15, 1, 1), 250, 1, 250, 500),
    "Walker2d": (20, -3.0, (20, 150, 1, 1), 250, 1, 1000, 5000),
}
OURS = (
    "updates_per_step", "target_entropy", "rollout_schedule", "model_every", "model_retain_epochs",
    "epoch_steps", "learning_starts",
)  # fmt: skip
SHARED = {
    "rollout_batch": 100_000, "real_ratio": 0.05, "ensemble_size": 7, "num_elites": 5,
    "model_hidden_sizes": (200,) * 4, "gamma": 0.99, "tau": 0.005,
}  # fmt: skip


def test_presets_are_the_official_ones() -> None:
    assert set(mbpo.Config.presets) == set(OFFICIAL)
    for name, official in OFFICIAL.items():
        config = Config.preset(f"{name}-v5")
        config.check()
        assert official == tuple(getattr(config, option) for option in OURS)
        assert {option: getattr(config, option) for option in SHARED} == SHARED
    # the rollouts of one epoch of 250 steps, of five of 1,000
    assert Config.preset("InvertedPendulum-v5").model_pool_size(1) == 100_000
    longer = Config.preset("Humanoid-v5", model_every=1_000, model_retain_epochs=5)
    assert longer.model_pool_size(25) == 5 * 25 * 100_000


def test_episodes_that_only_time_limits_end() -> None:
    algorithm = make(small(env_id="Pendulum-v1", learning_starts=210, total_steps=300))
    for _ in range(2):
        algorithm.iterate()
    for pool in (algorithm.env_pool, algorithm.model_pool):
        assert (algorithm.layout.continues(pool.rows()[0]) == 1.0).all()
    assert algorithm.model_pool.sizes.tolist() == [1_000]  # nobody died


def test_an_environment_without_a_rule_is_refused_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyfastenv

    xml = tmp_path / "double.xml"
    model = pathlib.Path(pyfastenv.vector.specs.resolve_xml_file("inverted_double_pendulum.xml"))
    xml.write_text(model.read_text())
    monkeypatch.setattr(Config, "env_defaults", lambda _: {"xml_file": str(xml)})
    closed: list[str] = []
    close = pyfastenv.FastVectorEnv.close
    monkeypatch.setattr(
        pyfastenv.FastVectorEnv,
        "close",
        lambda self, **_: (closed.append(self.env_id), close(self)),
    )
    config = small(env_id="InvertedDoublePendulum-v5", run_dir=tmp_path / "run")
    with pytest.raises(
        ValueError, match="InvertedDoublePendulum-v5: no termination rule, because the lengths of"
    ) as raised:
        mbpo.train(config)
    assert "\n" not in str(raised.value)
    assert closed == ["InvertedDoublePendulum-v5"]
    assert not (tmp_path / "run").exists()


# ---- mistakes ------------------------------------------------------------------------------------


class PoisonedBeforeFit(MBPO):
    """NaN gets into the model at step 110."""

    def _fit_model(self, metrics: dict[str, float]) -> None:
        if self.global_step == 110:
            self.poison()
        super()._fit_model(metrics)

    def poison(self) -> None:
        self.model.network.weight_list[0].data[:, 0, 0] = math.nan
        self.model.refresh()


class PoisonedAfterFit(PoisonedBeforeFit):
    def _fit_model(self, metrics: dict[str, float]) -> None:
        MBPO._fit_model(self, metrics)
        if self.global_step == 110:
            self.poison()


@pytest.mark.parametrize(
    ("dynamics", "poisoned", "loss"),
    [("ensemble", PoisonedBeforeFit, "model"), ("flow", PoisonedAfterFit, "critic")],
)
def test_nan_in_the_model_names_the_step_and_the_last_good_checkpoint(
    dynamics: Literal["ensemble", "flow"], poisoned: type[MBPO], loss: str, tmp_path: Path
) -> None:
    config = small(dynamics=dynamics, run_dir=tmp_path / "run", checkpoint_every=20, log_every=20)
    with pytest.raises(DivergedError) as raised:
        run(poisoned, config)
    good = tmp_path / "run" / "checkpoints" / "step_000000000100.pt"
    pattern = rf"step 111: loss/\w+ is nan; the last good checkpoint is {good}\. Try a lower"
    assert re.match(pattern, str(raised.value))
    assert f"loss/{loss} is nan" in str(raised.value) or poisoned is PoisonedBeforeFit
    # and it can be gone on from
    result = mbpo.train(small(dynamics=dynamics, log_every=20, checkpoint_every=20, resume=good))
    assert result.global_step == 160
