"""Distillation: a student that sees less than its teacher; what follows; mistakes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from algorithms import make, small, teacher_of

from pyfastenv import cli
from pyfastenv.algorithms import distillation, ppo, recurrent_ppo, sac
from pyfastenv.algorithms.distillation.spec import distillation_loss
from pyfastenv.runs import checkpoint, saved
from pyfastenv.runs.errors import CheckpointError

TASK = "dict_tasks:Blurred"
TRUTH = {"policy": "truth", "critic": "truth"}
LEARNS = {"num_envs": 16, "num_steps": 50, "minibatch_size": 100, "hidden_sizes": (32, 32)}


def test_a_student_acts_like_a_teacher_that_sees_more(tmp_path: Path) -> None:
    teacher, student, on = (tmp_path / name for name in ("teacher", "student", "on"))
    of_teacher = {"learning_rate": 3e-3, "gamma": 0.9, "update_epochs": 5, "total_steps": 40_000}
    privileged = {"env_kwargs": {"observation_dict": TRUTH}, "eval_episodes": 64}
    options = {"env_id": TASK, "run_dir": teacher, **LEARNS, **of_teacher}
    best = ppo.train(small("ppo", **options, **privileged)).evaluation["eval/return"]
    untaught = small("distillation", env_id=TASK, teacher=teacher, eval_episodes=64, **LEARNS)
    began_with = saved_return(make(untaught))
    config = small(
        "distillation", env_id=TASK, teacher=teacher, run_dir=student, learning_rate=3e-3,
        total_steps=16_000, eval_episodes=64, **LEARNS,
    )  # fmt: skip
    taught = distillation.train(config).evaluation["eval/return"]
    print(f"teacher {best:.2f}, student {taught:.2f}, at first {began_with:.2f}")
    assert taught > best - 0.25 * (best - began_with)
    # its policy needs the teacher no more, and PPO goes on from it
    policy = saved.load_policy(student)
    assert policy.config.teacher == teacher.resolve()
    assert policy.as_torch().obs_size == 8
    further = {"total_steps": 16 * 50 * 3, "learning_rate": 1e-6, "run_dir": on}
    result = ppo.train(small("ppo", env_id=TASK, from_run=student, **LEARNS, **further))
    assert result.evaluation["eval/return"] > best - 0.4 * (best - began_with)


def saved_return(algorithm: Any) -> float:
    """What its policy of now attains."""
    from pyfastenv.runs.evaluation import evaluate, make_eval_envs

    envs = make_eval_envs(TASK, {"num_threads": 1}, 64)
    value: float = evaluate(envs, algorithm.eval_policy(), 64, 1).metrics()["eval/return"]
    return value


def test_the_student_acts_and_the_teacher_is_asked_about_its_states() -> None:
    config = small("distillation", env_id="InvertedPendulum-v5", learning_rate=1e-6)
    algorithm = make(config)
    algorithm.warm_up()
    batch = algorithm._next_batch()
    obs = batch.obs.view(-1, 4)
    asked = torch.from_numpy(saved.load_policy(teacher_of(config.env_id)).act(obs.numpy()))
    with torch.no_grad():
        means = algorithm.policy(algorithm.normalizer(obs)[None])[0]
    assert asked.abs().max() > 0.1
    assert not torch.allclose(asked, batch.actions.view(-1, 1), atol=0.1)
    expected = float((means - asked).square().mean())
    assert algorithm.learn(batch)["loss/behavior"] == pytest.approx(expected, rel=1e-3)


def test_losses_are_those_of_torch() -> None:
    generator = torch.Generator().manual_seed(0)
    means, actions = (torch.randn(5, 2, generator=generator) for _ in range(2))
    log_std = torch.tensor([-0.3, 0.2])
    expected = {
        "mse": torch.nn.functional.mse_loss(means, actions),
        "huber": torch.nn.functional.huber_loss(means, actions),
        "nll": -torch.distributions.Normal(means, log_std.exp()).log_prob(actions).sum(1).mean(),
    }
    for name, value in expected.items():
        torch.testing.assert_close(distillation_loss(means, log_std, actions, name), value)


@pytest.mark.parametrize(("loss", "moves"), [("mse", False), ("nll", True)])
def test_deviations_are_learned_by_likelihood_alone(loss: Any, moves: bool) -> None:
    algorithm = make(small("distillation", loss=loss, log_std_init=-0.5))
    before = [each.clone() for each in algorithm.value.parameters()]
    for _ in range(3):
        metrics = algorithm.iterate()
    assert (metrics["policy/std"] != pytest.approx(np.exp(-0.5))) == moves
    assert all(map(torch.equal, before, algorithm.value.parameters()))


def test_teachers_that_do_not_fit_are_named(tmp_path: Path) -> None:
    runs = {
        "policy that remembers": recurrent_ppo.train(
            small("recurrent_ppo", run_dir=tmp_path / "remembers")
        ),
        "those of 2 seeds": sac.train(small("sac", num_seeds=2, run_dir=tmp_path / "seeds")),
    }
    for message, run in runs.items():
        with pytest.raises(ValueError, match=f"teacher: .*{message}"):
            small("distillation", teacher=run.run_dir).check()
    ppo.train(small("ppo", env_id="dict_tasks:Asymmetric", run_dir=tmp_path / "order"))
    with pytest.raises(ValueError, match=r"teacher: .* saw observations of .*Reordered at other"):
        small("distillation", env_id="dict_tasks:Reordered", teacher=tmp_path / "order").check()


def test_a_teacher_that_has_trained_on_is_told(tmp_path: Path) -> None:
    teacher, student = tmp_path / "teacher", tmp_path / "student"
    shared = {"env_id": TASK, **LEARNS}
    of_teacher = {"env_kwargs": {"observation_dict": TRUTH}, "anneal": False, **shared}
    ppo.train(small("ppo", run_dir=teacher, total_steps=1_600, keep_checkpoints=9, **of_teacher))
    (first,) = (teacher / "checkpoints").glob("step_*.pt")
    options = {"run_dir": student, "total_steps": 1_600, **shared}
    distillation.train(small("distillation", teacher=teacher, **options))
    ppo.train(saved.resumed_config(teacher, total_steps=2_400))
    with pytest.raises(CheckpointError, match="has trained on, and is not what the run has learn"):
        distillation.train(saved.resumed_config(student, total_steps=2_400))
    config = saved.resumed_config(student, total_steps=2_400, teacher=first)
    assert distillation.train(config).global_step == 2_400


def test_a_teacher_of_another_algorithm_will_do(tmp_path: Path) -> None:
    run = sac.train(small("sac", run_dir=tmp_path / "sac")).run_dir
    path = checkpoint.resolve(run)
    result = distillation.train(small("distillation", teacher=path, run_dir=tmp_path / "run"))
    assert np.isfinite(result.evaluation["eval/return"])


def test_the_command_line_distils(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run, teacher = tmp_path / "run", teacher_of("Pendulum-v1")
    arguments = ["--env-id", "Pendulum-v1", "--total-steps", "4096", "--run-dir", str(run)]
    assert cli.main(["train", "distillation", "--teacher", str(teacher), *arguments]) in (0, None)
    assert saved.load_policy(run).config.teacher == teacher.resolve()
