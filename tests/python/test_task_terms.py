"""Named reward terms and endings: their sums over an episode, in infos, rollouts and metrics."""

import inspect
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pole_task
import pytest
import torch
from algorithms import small
from parity import assert_same
from pole_task import Judged, Longer, Pole

import pyfastenv
from pyfastenv.algorithms import ppo, sac
from pyfastenv.errors import EnvError
from pyfastenv.runs.logger import read_metrics
from pyfastenv.sampling.device_sampling import DeviceSampler
from pyfastenv.tools.report import write_report
from pyfastenv.training.loop import run

TERMS = ("upright", "effort", "middle")
ENDINGS = ("terminated_fallen", "terminated_away")


@pytest.mark.parametrize("task", [Pole, Longer])
def test_plain_python_gives_the_same_sums(task: type[pyfastenv.Task]) -> None:
    terms = TERMS if task is Pole else (*TERMS, "short", "straight")
    envs = pyfastenv.make_vec(task, 1, autoreset_mode="Disabled")
    plain = pyfastenv.debug(task)
    rng = np.random.default_rng(1)
    ends: dict[str, int] = defaultdict(int)
    for episode in range(12):
        assert_same(envs.reset(seed=episode)[0][0], plain.reset(seed=episode)[0])
        sums, over, steps = dict.fromkeys(terms, 0.0), False, 0
        push = rng.choice([-1.0, -0.5, 0.0, 0.5]) * np.ones(1)
        while not over:
            steps += 1
            _, rewards, terminations, truncations, infos = envs.step(push[None])
            _, reward, terminated, truncated, plain_infos = plain.step(push)
            over = terminated or truncated
            assert (rewards[0], terminations[0], truncations[0]) == (reward, terminated, truncated)
            assert {n: v[0] for n, v in infos.items() if n[0] != "_"} == plain_infos
            for name in terms:
                sums[name] += infos[f"reward_{name}"][0]
                assert infos[f"episode_reward_{name}"] == sums[name]
                assert infos[f"episode_reward_{name}_per_step"] == sums[name] / steps
            assert any(infos[name][0] for name in ENDINGS) == terminated
        for name in ENDINGS:
            ends[name] += infos[name][0]
        ends["limit"] += truncated and not terminated
    assert all(ends[name] > 0 for name in (*ENDINGS, "limit")), ends


class Forgiving(Pole):
    @pyfastenv.reward_terms(-0.5, upright=-1.0, effort=-1.0)
    def step(self, data, action, info):
        self.simulate(data)
        upright = 0.2
        if action[0] < 0.0:
            upright = np.nan
        return {"upright": upright, "effort": abs(action[0])}, False


def test_a_reward_is_not_less_than_the_least_and_nan_is_not_hidden() -> None:
    envs, plain = pyfastenv.make_vec(Forgiving, 1), pyfastenv.debug(Forgiving)
    envs.reset(seed=0)
    plain.reset(seed=0)
    for action, reward in ((0.125, -0.325), (0.75, -0.5)):
        given = envs.step(np.full((1, 1), action))
        assert given[1][0] == plain.step(np.full(1, action))[1] == reward
        assert given[4]["reward_effort"][0] == -action
    with pytest.raises(EnvError, match="upright"):
        envs.step(np.full((1, 1), -0.5))


class Costly(Pole):
    @pyfastenv.reward_terms(0.0, ["fall"], upright=-1.0, fall=-2.0, effort=1.0)
    def step(self, data, action, info):
        self.simulate(data)
        return {"upright": 0.25, "fall": action[0] < 0.0, "effort": action[0]}, False


class Priced(Pole):
    @pyfastenv.reward_terms(0.0, ["fall"], fall=-2.0)
    def step(self, data, action, info):
        self.simulate(data)
        return {"fall": action[0]}, False


@pytest.mark.parametrize(
    ("task", "rewards"),
    [(Costly, {-0.5: -2.0, 0.125: 0.0, 0.75: 0.5}), (Priced, {-0.5: 1.0, 0.75: -1.5})],
)
def test_added_terms_count_below_the_least(
    task: type[pyfastenv.Task], rewards: dict[float, float]
) -> None:
    envs, plain = pyfastenv.make_vec(task, 1), pyfastenv.debug(task)
    envs.reset(seed=0)
    plain.reset(seed=0)
    for action, reward in rewards.items():
        given = envs.step(np.full((1, 1), action))
        assert given[1][0] == plain.step(np.full(1, action))[1] == reward


def last_infos(task: type[pyfastenv.Task], num_steps: int) -> list[dict[str, float]]:
    """The infos of the episodes that end, as ``step`` has them."""
    envs = pyfastenv.make_vec(task, 4, autoreset_mode="SameStep")
    envs.reset(seed=3)
    found = []
    for _ in range(num_steps):
        infos = envs.step(ACTION.numpy())[4]
        for i in np.flatnonzero(infos.get("_final_info", ())):
            final = infos["final_info"]
            found.append({name: float(final[name][i]) for name in final if name[0] != "_"})
    return found


ACTION = torch.tensor([[-1.0], [0.0], [-0.5], [0.6]])


def constant_policy() -> pyfastenv.PolicySpec:
    """Of each environment its own action, always."""
    weights = [np.zeros((4, 4, 1), np.float32)]
    log_std = np.zeros((4, 1), np.float32)
    return pyfastenv.PolicySpec(
        weights=weights, biases=[ACTION.numpy()], log_std=log_std, greedy=True
    )


@pytest.mark.parametrize("task", [Pole, Judged])
def test_rollouts_have_the_last_infos(task: type[pyfastenv.Task]) -> None:
    expected = last_infos(task, 70)
    assert len(expected) >= 8
    envs = pyfastenv.make_vec(task, 4, autoreset_mode="SameStep", infos=False)
    envs.reset(seed=3)
    episodes = pyfastenv.rollout(envs, constant_policy(), 70, policy_id=[0, 1, 2, 3]).episodes
    assert rows(episodes.infos) == expected
    assert any(row["episode_reward_effort"] != 0.0 for row in expected)
    shown = pyfastenv.make_vec(task, 4, autoreset_mode="SameStep")
    sampler = DeviceSampler(shown, 70, torch.device("cpu"))
    sampler.reset([3, 4, 5, 6])
    batch = sampler.collect(lambda obs: (ACTION, torch.zeros(4), ACTION))
    assert rows(batch.episodes.infos) == expected


def rows(infos: Any) -> list[dict[str, float]]:
    names = list(infos)
    columns = zip(*(infos[name].tolist() for name in names), strict=True)
    return [dict(zip(names, row, strict=True)) for row in columns]


def test_of_an_episode_that_diverged_there_are_none() -> None:
    class Wild(Pole):
        @pyfastenv.reward_terms(upright=1.0)
        def step(self, data, action, info):
            if action[0] > 0.5:
                data.qvel[0] = 1e12
            self.simulate(data)
            return {"upright": 1.0}, {"fallen": False}

    envs = pyfastenv.make_vec(Wild, 4, autoreset_mode="SameStep")
    envs.reset(seed=0)
    episodes = pyfastenv.rollout(envs, constant_policy(), 30, policy_id=[0, 0, 0, 3]).episodes
    wild = episodes.env_ids == 3
    assert wild.sum() == 30
    assert episodes.infos["episode_reward_upright"][wild].isnan().all()
    assert (episodes.infos["episode_reward_upright"][~wild] == 30.0).all()


@pytest.mark.parametrize("algorithm", [ppo, sac])
def test_trainings_and_reports_have_them(algorithm: Any, tmp_path: Path) -> None:
    options = {"learning_starts": 64, "hidden_sizes": (8, 8)} if algorithm is sac else {}
    name = "sac" if algorithm is sac else "ppo"
    config = small(
        name,
        env_id=f"{pole_task.__file__}:Pole",
        env_kwargs={"middle_weight": 0.25},
        run_dir=tmp_path / "run",
        total_steps=512,
        **options,
    )
    run(getattr(algorithm, name.upper()), config)
    rows = read_metrics(tmp_path / "run")
    row = {name: value for each in rows for name, value in each.items()}
    for kind in ("train", "eval"):
        parts = [row[f"{kind}/reward_{term}"] for term in TERMS]
        assert sum(parts) == pytest.approx(row[f"{kind}/return"], rel=1e-5)
        assert 0.0 < row[f"{kind}/reward_middle_per_step"] < 0.25
        assert 0.0 <= row[f"{kind}/terminated_fallen"] <= 1.0
    page = write_report([tmp_path / "run"], tmp_path / "page.html").read_text()
    assert f"<tr><td>reward_middle</td><td>{row['eval/reward_middle']:,.4g} (" in page
    assert f"<tr><td>terminated_away</td><td>{row['eval/terminated_away']:.0%}</td></tr>" in page


def test_a_term_that_is_nan_is_named() -> None:
    envs = pyfastenv.make_vec(Pole, 4, broken=0.1)
    envs.reset(seed=0)
    with pytest.raises(EnvError) as caught:
        pyfastenv.rollout(envs, constant_policy(), 30, policy_id=[0, 1, 1, 1])
    assert list(caught.value.env_ids) == [0]
    message = str(caught.value)
    assert "Pole.step: the reward term 'middle' is not finite: nan (" in message
    lines, first = inspect.getsourcelines(Pole.step)
    line = first + max(i for i, line in enumerate(lines) if '"middle": middle' in line)
    assert f"pole_task.py:{line})" in message
