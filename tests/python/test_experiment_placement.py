"""The experiment `placement`: the textbook's trainers learn; verdicts from made-up numbers."""

import dataclasses

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

import torch

from pyfastenv.experiments import placement
from pyfastenv.experiments.placement import DDPG, OURS, POOL, PPO, Line
from pyfastenv.experiments.study import NEEDS_CUDA, Study
from pyfastenv.experiments.textbook import TextbookDDPG, TextbookPPO


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_the_textbooks_ppo_learns():
    run = TextbookPPO((32,), fixed_start=False, seed=0).train(70)
    assert np.mean(run.returns[-10:]) > 2.5 * np.mean(run.returns[:10])
    assert run.env_steps == sum(run.returns)
    assert run.updates == len(run.returns) == len(run.seconds) == 70
    assert run.copy_s == 0.0


@pytest.mark.parametrize(("copy_every", "pool_size"), [(3, 1), (1, 2), (3, 2)])
def test_every_episode_is_learned_from_however_seldom_the_policy_is_copied(copy_every, pool_size):
    trainer = TextbookPPO((8,), copy_every=copy_every, pool_size=pool_size)
    before = [p.clone() for p in trainer.actor.parameters()]
    run = trainer.train(4)
    assert run.updates == 4
    assert len(trainer.pool) == min(pool_size, 4)
    assert not torch.equal(before[0], next(trainer.actor.parameters()))


def test_a_fixed_start_is_the_same_each_time_and_an_honest_one_is_not():
    fixed, honest = (TextbookPPO((8,), fixed_start=start) for start in (True, False))
    np.testing.assert_array_equal(fixed.reset(), fixed.reset())
    assert (honest.reset() != honest.reset()).any()


@pytest.mark.parametrize("copy_every", [1, 50])
def test_the_textbooks_ddpg_updates_once_per_step(copy_every):
    trainer = TextbookDDPG((16,), minimum=150, copy_every=copy_every)
    critic = next(trainer.critic.parameters()).clone()
    run = trainer.train(1)
    assert run.env_steps == 200
    assert run.updates == 50
    assert not torch.equal(critic, next(trainer.critic.parameters()))


def test_a_bad_placement_is_one_sentence():
    with pytest.raises(ValueError, match="placement: expected one of cpu, cuda, sample-cpu, got x"):
        TextbookPPO((8,), placement="x")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="placement: cuda needs CUDA"):
            TextbookDDPG((8,), placement="cuda")


def test_first_solved():
    assert placement.first_solved([200.0] * 99) is None
    assert placement.first_solved([200.0] * 100) == 99
    assert placement.first_solved([0.0] * 3 + [200.0] * 100) == 99 + 1  # 97.5 % of 100


def test_ours_runs_what_it_is_told():
    row = placement.our_run(POOL, (16,), 2_000, num_steps=16)
    assert row["env_steps"] == 2_048
    assert row["updates"] == 3  # the first 512 steps go into the moments of observations
    row = placement.our_run(DDPG, (16,), 1_200, num_steps=8)
    assert row["env_steps"] >= 1_200
    assert row["cpu_percent"] > 0.0 and row["gpu_percent"] is None


def _line(algorithm, size, who, where, cost, often=True):
    return Line(
        algorithm=algorithm,
        size=size,
        who=who,
        placement=where,
        copy_every="1 episode" if often else "10 episodes",
        often=often,
        seconds={"median": 1.0, "q1": 1.0, "q3": 1.0},
        cost={"median": cost, "q1": 0.9 * cost, "q3": 1.1 * cost},
        update_ms=1.0,
        update_cost=0.75 * cost,
        sample_cost=0.25 * cost,
    )


CURVE = {
    "returns": [20.0] * 50 + [200.0] * 100,
    "seconds": list(np.linspace(0.1, 9.0, 150)),
    "env_steps": 9_000,
    "solved_s": 9.0,
    "fixed_return": 200.0,
    "honest_return": 150.0,
    "honest_std": 20.0,
}
CURVES = {"fixed": [CURVE], "honest": [CURVE]}
SOLVED = [CURVE | {"solved_s": 0.5, "honest_return": 199.0}]


def _grid(gpu: dict[str, float], ours: float) -> list[Line]:
    lines = []
    for algorithm in (PPO, POOL, DDPG):
        for size in ((64,), (256, 256)):
            for where, cost in ({"cpu": 100.0} | gpu).items():
                lines.append(_line(algorithm, size, "textbook", where, cost))
                seldom = 0.5 * cost if algorithm == DDPG else cost
                lines.append(_line(algorithm, size, "textbook", where, seldom, often=False))
            lines.append(_line(algorithm, size, OURS, "cpu", ours))
    return lines


def test_verdict_without_a_gpu():
    lines = _grid({}, ours=10.0)
    text = placement.verdict(lines, CURVES, SOLVED)
    assert NEEDS_CUDA in text and "neither confirmed nor refuted" in text
    assert "25% of its time" in text
    assert "ahead of every baseline in every row" in text
    assert "solved in 0.50 s" in text and "needs 9.0 s" in text
    assert "DDPG runs at 2.00 times the speed and PPO + pool runs at 1.00 times" in text


@pytest.mark.parametrize(
    ("gpu", "holds"),
    [({"cuda": 300.0, "sample-cpu": 50.0}, 3), ({"cuda": 300.0, "sample-cpu": 200.0}, 3)],
)
def test_verdict_with_a_gpu(gpu, holds):
    text = placement.verdict(_grid(gpu, ours=10.0), CURVES, SOLVED)
    assert f"holds in {holds} of 6 combinations" in text
    wrong = "PPO 64 (sample-cpu)" if gpu["sample-cpu"] < 100.0 else "PPO 256x256 (cpu)"
    assert wrong in text
    assert "placement sample-cpu" in text
    assert "changes its speed by" in text


def test_verdict_says_where_ours_is_behind_and_why():
    text = placement.verdict(_grid({}, ours=120.0), CURVES, SOLVED)
    assert "**not** ahead in 6" in text
    assert "because its update takes 90 against" in text
    unsolved = [CURVE | {"solved_s": None}]
    assert "was not solved by ours" in placement.verdict(_grid({}, 10.0), CURVES, unsolved)
    slow = {"fixed": [CURVE], "honest": unsolved}
    assert "has not solved it after 150" in placement.verdict(_grid({}, 10.0), slow, SOLVED)


@pytest.fixture
def tiny(monkeypatch):
    scale = placement.Scale(
        sizes=((128,),),
        repeats=1,
        episodes={PPO: 2, POOL: 2, DDPG: 6},
        curve_episodes=21,
        curve_seeds=1,
        solve_seeds=1,
    )
    monkeypatch.setattr(placement.Scale, "of", lambda quick: scale)
    monkeypatch.setattr(placement, "_warm_up", lambda: None)
    monkeypatch.setattr(placement, "solve", lambda seed: dict(SOLVED[0]))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.mark.usefixtures("tiny")
def test_it_runs_without_a_gpu_and_goes_on_where_it_stopped(tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    report = placement.run(Study("placement", tmp_path, quick=True))
    text = report.read_text()
    assert text.count(NEEDS_CUDA) > 20
    for name in ("time", "shares", "cartpole"):
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    for name in ("textbook_run", "our_run", "textbook_curve"):
        monkeypatch.setattr(placement, name, lambda *a, **k: pytest.fail("measured twice"))
    assert placement.run(Study("placement", tmp_path, quick=True)).read_text() == text


def test_pictures_of_a_full_grid():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    lines = _grid({"cuda": 300.0, "sample-cpu": 50.0}, ours=10.0)
    lines += [dataclasses.replace(line, placement="cuda") for line in lines if line.who == OURS]
    for figure in (placement.draw_time(lines), placement.draw_shares(lines)):
        assert len(figure.axes) == 3
        pyplot.close(figure)
