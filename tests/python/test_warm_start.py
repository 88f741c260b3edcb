"""The best checkpoint, and new runs that begin with what another has learned."""

# ruff: noqa: E402

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tyro")
pytest.importorskip("matplotlib")

import guess
from algorithms import NAMES, make, small
from guess import Guess, train
from trainings import assert_equal, assert_same_run, final_state, through_a_file

from pyfastenv import cli, load_policy
from pyfastenv.algorithms import ppo, sac, td3, td3_bc
from pyfastenv.errors import EnvError
from pyfastenv.runs import checkpoint
from pyfastenv.runs import folder as run_folder
from pyfastenv.runs.errors import CheckpointError
from pyfastenv.runs.logger import read_metrics
from pyfastenv.runs.registry import algorithm_module
from pyfastenv.runs.saved import evaluate_run, resumed_config
from pyfastenv.training import loop
from pyfastenv.training.callbacks import Callback, Run

pytestmark = pytest.mark.usefixtures("short_fits", "recorded")
every_algorithm = pytest.mark.parametrize("name", NAMES)


class Worse(Callback):
    """Makes the policy worse once it is half way through its training."""

    def on_step(self, run: Run, metrics: dict[str, float]) -> None:
        algorithm: Any = run.algorithm
        if run.step > run.config.total_steps / 2:
            actor = algorithm.policy if hasattr(algorithm, "policy") else algorithm.learner.actor
            with torch.no_grad():
                for parameter in actor.parameters():
                    parameter.fill_(0.0)
            if hasattr(actor, "refresh"):
                actor.refresh()


def hopping(**options: Any) -> ppo.Config:
    steps = 4 * 32 * 40
    given = {"total_steps": steps, "eval_every": steps // 4, "eval_episodes": 3, **options}
    config: ppo.Config = small("ppo", learning_rate=3e-3, **given)
    return config


# ---- best ----------------------------------------------------------------------------------------


def test_a_policy_that_gets_worse_leaves_its_best(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    result = ppo.train(hopping(run_dir=folder), callbacks=[Worse()])
    returns = {
        int(row["step"]): row["eval/return"] for row in read_metrics(folder) if "eval/return" in row
    }
    best = max(returns, key=lambda step: returns[step])
    assert returns[best] > result.evaluation["eval/return"]
    policy = load_policy(folder, "best")
    assert policy.step == best < load_policy(folder).step == result.global_step
    again = evaluate_run(policy.path, 3, seed=1).metrics()
    assert again["eval/return"] == returns[best]

    line = f"evaluate {folder} --best --episodes 3 --seed 1"
    assert cli.main(line.split()) == 0
    assert capsys.readouterr().out.startswith(f"return {returns[best]:,.1f} ")
    assert cli.main(f"export {folder} --best --output {folder}/policy.c".split()) == 0
    assert f"after {best:,} steps" in (folder / "policy.c").read_text()


@every_algorithm
def test_the_best_has_what_was_learned_alone(name: str, tmp_path: Path) -> None:
    """And no replay memory, which may have gigabytes."""
    config = small(name, run_dir=tmp_path / "run")
    algorithm_module(name).train(config)
    best = checkpoint.load(tmp_path / "run/checkpoints/best.pt")["ranks"][0]
    assert list(best) == ["algorithm"]
    assert not {"envs", "env_pool", "model_pool", "pool", "streams"} & best["algorithm"].keys()
    newest, kept = load_policy(tmp_path / "run"), load_policy(tmp_path / "run", "best")
    obs = torch.randn(5, *newest.spaces[0].shape).numpy()
    assert (newest.act(obs) == kept.act(obs)).all()  # there was one evaluation, at the end
    with pytest.raises(CheckpointError, match=rf"begin a new run with it: .* {name} --from "):
        algorithm_module(name).train(replace(config, run_dir=None, resume=kept.path))


@pytest.mark.usefixtures("guessed_rollouts")
def test_a_resumed_run_has_the_best_of_an_uninterrupted_one(tmp_path: Path) -> None:
    """Killed after the evaluation of a step, before its checkpoint, wherever that is."""
    train(tmp_path / "whole", eval_every=48, checkpoint_every=96)
    best = checkpoint.load(tmp_path / "whole/checkpoints/best.pt")
    evaluated = [row for row in read_metrics(tmp_path / "whole") if "eval/return" in row]
    assert best["evaluation"]["eval/return"] == max(row["eval/return"] for row in evaluated)
    for at in (best["step"], 240, 456):

        class Killed(Callback):
            def __init__(self, at: int):
                self.at = at

            def on_evaluation(self, run: Run, metrics: dict[str, float]) -> None:
                if run.step >= self.at:
                    raise RuntimeError("killed")

        cut = tmp_path / f"cut-{at}"
        options = {"eval_every": 48, "checkpoint_every": 96}
        with pytest.raises(RuntimeError, match="killed"):
            guess.run(Guess, guess.Config(run_dir=cut, **options), [Killed(at)])
        guess.run(Guess, guess.Config(resume=cut, **options))
        assert_same_run(tmp_path / "whole", cut)
        found = checkpoint.load(cut / "checkpoints/best.pt")
        assert found["step"] == best["step"] and found["evaluation"] == best["evaluation"]
        assert_equal(found["ranks"][0]["algorithm"], best["ranks"][0]["algorithm"])


def test_a_damaged_best_does_not_stop_a_run(tmp_path: Path) -> None:
    config = small("sac", run_dir=tmp_path / "run")
    sac.train(config)
    best = tmp_path / "run/checkpoints/best.pt"
    best.write_bytes(best.read_bytes()[:1000])
    longer = resumed_config(tmp_path / "run", total_steps=2 * config.total_steps)
    with pytest.warns(UserWarning, match=r"best\.pt: damaged.*; the next evaluation's replaces it"):
        sac.train(longer)
    assert load_policy(tmp_path / "run", "best").step > config.total_steps


def test_a_failed_evaluation_leaves_the_training_until_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = small("sac", checkpoint_every=0)
    config.eval_every = config.total_steps // 2
    sac.train(replace(config, run_dir=tmp_path / "whole"))

    def fail(*args: Any) -> None:
        torch.rand(3)
        raise EnvError([3], ["the floor is gone"])

    with monkeypatch.context() as patch:
        patch.setattr(loop, "evaluate", fail)
        with pytest.raises(EnvError, match="the floor is gone"):
            sac.train(replace(config, run_dir=tmp_path / "cut", quiet=False))
    told = capsys.readouterr().out
    assert f"An evaluation failed, after {config.eval_every:,} steps of training." in told
    assert f"Go on with: pyfastenv resume {tmp_path}/cut" in told
    sac.train(replace(config, resume=tmp_path / "cut"))
    assert_equal(final_state(tmp_path / "whole"), final_state(tmp_path / "cut"))


def test_a_run_that_was_not_evaluated_has_no_best(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    sac.train(small("sac", run_dir=folder))
    (folder / "checkpoints/best.pt").unlink()
    with pytest.raises(CheckpointError, match=r"no checkpoints/best\.pt: it comes with the run's"):
        load_policy(folder, "best")
    with pytest.raises(ValueError, match="which: expected 'newest' or 'best', got 'last'"):
        load_policy(folder, "last")  # type: ignore[arg-type]


# ---- from ----------------------------------------------------------------------------------------

OTHER: dict[str, dict[str, Any]] = {
    "distillation": {"learning_rate": 1e-4, "num_envs": 5},
    "flashsac": {"learning_rate": 1e-4, "num_envs": 3},
    "mbpo": {"policy_learning_rate": 1e-4},
    "ppo": {"learning_rate": 1e-4, "num_envs": 3, "num_steps": 16},
    "td3_bc": {"gamma": 0.9, "alpha": 1.0},
}


@every_algorithm
def test_a_run_begins_with_what_another_learned(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = small(name, run_dir=tmp_path / "first")
    algorithm_module(name).train(config)
    other = OTHER.get(name, {"gamma": 0.9, "num_envs": 5})
    known = {key: value for key, value in other.items() if hasattr(config, key)}
    learned = make(config).learned
    began: dict[str, Any] = {}

    class Look(Callback):
        def on_start(self, run: Run) -> None:
            state = run.algorithm.state_dict()
            began.update(through_a_file({"step": run.step, **{k: state[k] for k in learned}}))

    second = replace(
        config, **known, run_dir=tmp_path / "second", from_run=tmp_path / "first", quiet=False
    )
    result = algorithm_module(name).train(second, callbacks=[Look()])
    theirs = final_state(tmp_path / "first")["algorithm"]
    assert began.pop("step") == 0 and result.global_step >= config.total_steps
    for part, state in began.items():
        if part != "reward_scale":
            assert_equal(state, theirs[part])
        else:
            assert_equal(state["moments"], theirs[part]["moments"])
    said = capsys.readouterr().out
    assert f"first/checkpoints/step_{config.total_steps:012d}.pt had learned by step" in said
    for option, value in known.items():
        assert f"{option} was {getattr(config, option)!r}, is {value!r}" in said
    # which checkpoint it was is recorded
    recorded = json.loads((tmp_path / "second/config.json").read_text())["config"]["from_run"]
    assert recorded == str(checkpoint.resolve(tmp_path / "first").resolve())


def test_it_is_an_option_of_the_command_line_and_a_killed_run_begins_so_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    line = "train ppo --env-id CartPole-v1 --total-steps 4096 --run-dir a --quiet"
    assert cli.main(line.split()) == 0
    line = "train ppo --env-id CartPole-v1 --total-steps 4096 --learning-rate 1e-4 --quiet"
    assert cli.main([*line.split(), "--from", "a/checkpoints/best.pt", "--run-dir", "whole"]) == 0

    def killed(run: Run, metrics: dict[str, float]) -> None:
        raise RuntimeError("killed")

    config = resumed_config(tmp_path / "whole")
    assert str(config.from_run) == str(tmp_path / "a/checkpoints/best.pt")
    with pytest.raises(RuntimeError, match="killed"):
        ppo.train(replace(config, resume=None, run_dir=tmp_path / "cut"), callbacks=[killed])
    ppo.train(resumed_config(tmp_path / "cut"))
    assert_same_run(tmp_path / "whole", tmp_path / "cut")


def test_what_does_not_fit_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    first = tmp_path / "first"
    ppo.train(small("ppo", run_dir=first))
    for options, message in (
        (
            {"hidden_sizes": (8, 8)},
            r"does not fit: policy\..*hidden_sizes was \[16, 16\], is \[8, 8\]",
        ),
        ({"hidden_sizes": (16,)}, r"does not fit: policy"),
        (
            {"env_id": "HalfCheetah-v5"},
            r"obs_moments\.mean is \(11,\) there, \(17,\) here; .*env_id was 'Hopper-v5', is 'H",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            ppo.train(small("ppo", run_dir=tmp_path / "new", from_run=first, **options))
    with pytest.raises(ValueError, match=r"from_run: .* was trained by ppo, this is sac"):
        sac.train(small("sac", run_dir=tmp_path / "new", from_run=first))
    with pytest.raises(CheckpointError, match="no such run folder"):
        ppo.train(small("ppo", run_dir=tmp_path / "new", from_run=tmp_path / "nowhere"))
    state = {"step": 1, "algorithm": "guess", "config": {}, "ranks": [{"algorithm": {}}]}
    path = checkpoint.CheckpointDir(tmp_path).save(1, state)
    with pytest.raises(ValueError, match="guess does not say which parts it has learned"):
        train(tmp_path / "new", from_run=path)
    assert not (tmp_path / "new").exists()


LESS = {"policy": "observation", "critic": ("observation", "achieved_goal")}


@pytest.mark.parametrize(
    "before",
    [
        {"env_id": "dict_tasks:Asymmetric", "env_kwargs": {"observation_dict": LESS}},
        {"env_id": "dict_tasks:Reordered"},
    ],
    ids=["less", "another order"],
)
def test_networks_find_what_they_saw_and_heed_no_more_at_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], before: dict[str, Any]
) -> None:
    pytest.importorskip("numba")
    first = small("ppo", **before, run_dir=tmp_path / "a")
    ppo.train(first)
    options = {"env_id": "dict_tasks:Asymmetric", "quiet": False}
    config = small("ppo", **options, run_dir=tmp_path / "b", from_run=tmp_path / "a")

    class Look(Callback):
        def on_start(self, run: Run) -> None:
            now: Any = run.algorithm
            then = make(first)
            then.load_learned(final_state(tmp_path / "a")["algorithm"])
            rows = torch.randn(7, now.obs_size)
            seen_then = torch.zeros(7, then.obs_size)
            groups = now.envs.observation_groups
            for name, place in then.envs.observation_groups.items():
                seen_then[:, place] = rows[:, groups[name]]
            for network, part in (("policy", "policy"), ("value", "critic")):
                got, expected = (
                    getattr(each, network)(each.normalizer(seen)[None, :, getattr(each.seen, part)])
                    for each, seen in ((now, rows), (then, seen_then))
                )
                torch.testing.assert_close(got, expected, rtol=0, atol=1e-6)

    # nothing of the first one's task is made again: it may have changed, or be gone
    changed = dict(run_folder.load_checkpoint(checkpoint.resolve(tmp_path / "a")))
    changed["config"] = {**changed["config"], "env_id": "gone:Asymmetric"}
    torch.save(changed, checkpoint.resolve(tmp_path / "a"))
    ppo.train(config, callbacks=[Look()])
    said = capsys.readouterr().out
    assert "Begins anew: optimizer. Observations are found by name" in said
    if "env_kwargs" in before:  # the first one would see less
        with pytest.raises(ValueError, match=r"does not fit: policy\.weights\.0 is \(1, 6"):
            ppo.train(replace(first, run_dir=tmp_path / "c", from_run=tmp_path / "b"))


@pytest.mark.parametrize("name", ["ppo", "sac"])
def test_networks_do_not_take_one_observation_for_another(name: str, tmp_path: Path) -> None:
    """Where as many numbers have other names, too, and what is known stands elsewhere."""
    pytest.importorskip("numba")
    train = algorithm_module(name).train
    train(small(name, env_id="dict_tasks:Arm", run_dir=tmp_path / "a"))
    changed = small(name, env_id="dict_tasks:Renamed", run_dir=tmp_path / "b")
    with pytest.raises(ValueError, match="does not fit: observations stand in another order"):
        train(replace(changed, from_run=tmp_path / "a"))


def test_networks_that_would_compute_something_else_are_refused(tmp_path: Path) -> None:
    ppo.train(small("ppo", run_dir=tmp_path / "a"))
    other = small("ppo", run_dir=tmp_path / "b", activation="relu", from_run=tmp_path / "a")
    with pytest.raises(ValueError, match=r"activation: .* with tanh, this is relu, so the net"):
        ppo.train(other)


def test_what_was_learned_offline_goes_on_online(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    td3_bc.train(small("td3_bc", run_dir=tmp_path / "first"))
    theirs = final_state(tmp_path / "first")["algorithm"]
    began: dict[str, Any] = {}

    class Look(Callback):
        def on_start(self, run: Run) -> None:
            state = run.algorithm.state_dict()
            began.update(through_a_file({k: state[k] for k in ("learner", "normalizer")}))

    options = {"from_run": tmp_path / "first", "learning_starts": 0, "quiet": False}
    with pytest.raises(ValueError, match=r"normalize_obs: .* with True, this is False, so the net"):
        td3.train(small("td3", run_dir=tmp_path / "second", **options))
    assert not (tmp_path / "second").exists()
    config = small("td3", run_dir=tmp_path / "second", normalize_obs=True, **options)
    result = td3.train(config, callbacks=[Look()])
    assert result.global_step == config.total_steps
    assert_equal(began, {name: theirs[name] for name in began})
    said = capsys.readouterr().out
    assert "alpha was 2.5, is no option here" in said and "Begins anew" not in said
    with pytest.raises(ValueError, match="was trained by td3_bc, this is sac"):
        sac.train(small("sac", run_dir=tmp_path / "third", **options))


def test_an_optimiser_of_other_parameters_begins_anew_and_a_fixed_temperature_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sac.train(small("sac", run_dir=tmp_path / "first"))
    options = {"temperature": 0.2, "quiet": False, "run_dir": tmp_path / "second"}
    sac.train(small("sac", from_run=tmp_path / "first", **options))
    assert (
        "Begins anew: learner.policy_optimizer, learner.critic_optimizer."
        in capsys.readouterr().out
    )
    learner = final_state(tmp_path / "second")["algorithm"]["learner"]
    assert learner["log_temperature"].tolist() == pytest.approx([math.log(0.2)])


# ---- older runs ----------------------------------------------------------------------------------


def without(folder: Path, option: str) -> None:
    """Makes the run one of a version that had no such option."""
    facts = json.loads((folder / run_folder.CONFIG).read_text())
    del facts["config"][option]
    (folder / run_folder.CONFIG).write_text(json.dumps(facts))
    path = checkpoint.resolve(folder)
    state = checkpoint.load(path)
    del state["config"][option]
    torch.save(state, path)


def test_options_added_later_take_their_default_when_an_older_run_goes_on(tmp_path: Path) -> None:
    config = small("sac", run_dir=tmp_path / "run")
    sac.train(config)
    without(tmp_path / "run", "tau")
    with pytest.raises(ValueError, match=r"other options: tau was 0\.005, is 0\.01$"):
        sac.train(replace(config, run_dir=None, resume=tmp_path / "run", tau=0.01))
    result = sac.train(resumed_config(tmp_path / "run", total_steps=config.total_steps + 50))
    assert result.global_step == config.total_steps + 50
