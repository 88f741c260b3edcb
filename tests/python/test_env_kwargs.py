"""An environment's own arguments: trained with, recorded, evaluated with and resumed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from algorithms import NAMES, make, small

import pyfastenv
from pyfastenv import cli
from pyfastenv.algorithms import ddpg, mbpo, ppo, sac
from pyfastenv.runs.errors import CheckpointError
from pyfastenv.runs.evaluation import env_kwargs, make_eval_envs
from pyfastenv.runs.registry import algorithm_module
from pyfastenv.runs.saved import evaluate_run, load_policy
from pyfastenv.vector.specs import resolve_xml_file

pytestmark = pytest.mark.usefixtures("recorded")

KWARGS = {"healthy_z_range": (0.6, 3.0), "reset_noise_scale": 0.02}


@pytest.fixture
def heavy_walker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A walker of another gravity, in the current folder."""
    monkeypatch.chdir(tmp_path)
    text = Path(resolve_xml_file("walker2d_v5.xml")).read_text()
    Path("mine.xml").write_text(text.replace("<option ", '<option gravity="0 0 -12" ', 1))
    return "mine.xml"


def test_a_model_of_ones_own_from_the_command_line_to_the_evaluation(
    heavy_walker: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = (
        "--env-id Walker2d-v5 --total-steps 300 --learning-starts 100 --num-threads 1 "
        "--hidden-sizes 16 --batch-size 32 --quiet"
    )
    given = (
        f"--env.xml_file {heavy_walker} --env.healthy_z_range 0.6 3 --env.reset_noise_scale=0.02"
    )
    line = f"train sac {given} {options} --run-dir run --checkpoint-every 200 --eval-episodes 2"
    assert cli.main(line.split()) == 0
    recorded = json.loads(Path("run/config.json").read_text())["config"]["env_kwargs"]
    path = str(tmp_path / "mine.xml")
    assert recorded == {"xml_file": path, "healthy_z_range": [0.6, 3], "reset_noise_scale": 0.02}

    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    saved = load_policy(tmp_path / "run")
    assert saved.env_kwargs["xml_file"] == path
    assert saved.env_kwargs["healthy_z_range"] == (0.6, 3)
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    again = evaluate_run(tmp_path / "run", episodes=2, seed=1).metrics()
    assert again == result["evaluation"]
    # other physics, other returns
    text = Path(path).read_text()
    Path(path).write_text(Path(resolve_xml_file("walker2d_v5.xml")).read_text())
    assert evaluate_run(tmp_path / "run", episodes=2, seed=1).metrics() != result["evaluation"]
    resume = ["resume", str(tmp_path / "run"), "--total-steps", "400", "--quiet"]
    capsys.readouterr()
    assert cli.main(resume) == 1
    assert "contents of the model's file" in capsys.readouterr().err
    Path(path).write_text(text)
    assert cli.main(resume) == 0
    assert load_policy(tmp_path / "run").step == 400


@pytest.mark.parametrize("name", [name for name in NAMES if name != "dqn"])  # no robots' actions
def test_every_algorithm_trains_in_them(name: str) -> None:
    kwargs = {**small(name).env_kwargs, **KWARGS, "max_episode_steps": 50}
    made = make(small(name, env_id="Hopper-v5", env_kwargs=kwargs))
    given = made.envs.spec.kwargs
    assert {key: given[key] for key in kwargs} == kwargs and made.envs.max_episode_steps == 50


# no robots' actions; none of their observations; others' observations; a teacher's
@pytest.mark.parametrize("name", sorted({*NAMES} - {"dqn", "drqv2", "td3_bc", "distillation"}))
@pytest.mark.parametrize(
    ("env_id", "compact", "all_of_it"), [("Ant-v5", 27, 105), ("Humanoid-v5", 45, 348)]
)
def test_forces_and_inertias_are_left_out(
    name: str, env_id: str, compact: int, all_of_it: int
) -> None:
    for compact_obs, size in ((True, compact), (False, all_of_it)):
        made = make(small(name, env_id=env_id, compact_obs=compact_obs))
        with make_eval_envs(env_id, env_kwargs(made.envs), 1) as evaluated:
            assert made.envs.obs_size == evaluated.obs_size == size
        made.envs.close()


def test_they_win_over_an_algorithms_own() -> None:
    config = mbpo.Config(
        env_id="Ant-v5",
        env_kwargs={"include_cfrc_ext_in_observation": True},
        num_threads=1,
        rollout_batch=1_000,  # the default's pool takes 5 GB
    )
    algorithm = mbpo.MBPO(config)
    assert algorithm.envs.single_observation_space.shape == (105,)


def test_they_are_recorded_in_plain_numbers() -> None:
    config = ppo.Config(
        env_id="Hopper-v5",
        env_kwargs={
            "xml_file": Path("hopper.xml"),
            "healthy_z_range": np.array([0.7, np.inf]),
            "reset_noise_scale": np.float32(0.5),
            "terminate_when_unhealthy": np.bool_(False),
        },
    )
    config.check()
    expected = {
        "xml_file": "hopper.xml",  # gymnasium's own
        "healthy_z_range": (0.7, np.inf),
        "reset_noise_scale": 0.5,
        "terminate_when_unhealthy": False,
    }
    assert config.env_kwargs == expected
    assert ppo.Config.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_a_resumed_run_has_the_same_ones(tmp_path: Path) -> None:
    options = {"env_id": "Hopper-v5", "env_kwargs": KWARGS, "total_steps": 100}
    sac.train(small("sac", run_dir=tmp_path / "run", **options))
    other = {**KWARGS, "reset_noise_scale": 0.03}
    with pytest.raises(ValueError, match=r"env_kwargs was .*0\.02.* is .*0\.03"):
        sac.train(small("sac", resume=tmp_path / "run", **{**options, "env_kwargs": other}))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("--env.xml_file nowhere.xml", "xml_file: 'nowhere.xml' is neither a file"),
        ("--env.reset_noise 0.1", "env_kwargs: Hopper-v5"),
        ("--env.num_envs 3", "env_kwargs: num_envs is the run's to set"),
        ("--env.render_mode human", "env_kwargs: render_mode is the run's to set"),
        ("--env.healthy_z_range", "--env.healthy_z_range: expected --env.KEY VALUE"),
        ("--env.a-b 3", "--env.a-b: expected --env.KEY VALUE"),
        ("--env.reset_noise_scale fast", "reset_noise_scale"),
    ],
)
def test_mistakes_are_one_sentence(
    given: str, message: str, one_sentence: Callable[[list[str], str], None]
) -> None:
    one_sentence(["train", "ppo", "--env-id", "Hopper-v5", *given.split()], message)


@pytest.mark.parametrize("value", [{"a": {1}}, {"a": object()}, {3: 4}, [("a", 1)]])
def test_what_cannot_be_recorded_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="env_kwargs: "):
        ppo.Config(env_id="Hopper-v5", env_kwargs=value).check()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("--env.a 1", 1),
        ("--env.a -1.5e-3", -1.5e-3),
        ("--env.a=true", True),
        ("--env.a False", False),
        ("--env.a None", None),
        ("--env.a -inf inf", (-np.inf, np.inf)),
        ("--env.a (1,2)", (1, 2)),
        ("--env.a model.xml", "model.xml"),
        ("--env.a=x=y", "x=y"),
    ],
)
def test_values_on_the_command_line(text: str, value: Any, ppo_configs: list[ppo.Config]) -> None:
    assert cli.main(["train", "ppo", "--seed", "3", *text.split(), "--num-envs", "2"]) == 0
    (given,) = ppo_configs
    assert given.env_kwargs == {"a": value} and (given.seed, given.num_envs) == (3, 2)


def test_a_policy_acts_from_a_run_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"env_id": "Hopper-v5", "env_kwargs": KWARGS, "normalize_obs": True}
    ddpg.train(small("ddpg", run_dir=tmp_path / "run", **options))
    policy = pyfastenv.load_policy(tmp_path / "run")
    envs = pyfastenv.make_vec("Hopper-v5", 5, num_threads=1, autoreset_mode="SameStep", **KWARGS)
    obs, _ = envs.reset(seed=3)
    batch = pyfastenv.rollout(envs, policy.policy, 1)
    actions = policy.act(obs)
    assert actions.dtype == np.float32
    np.testing.assert_allclose(actions, batch.actions[0].numpy(), rtol=0, atol=2e-6)
    np.testing.assert_allclose(policy.act(obs[2]), actions[2], rtol=0, atol=2e-6)
    assert np.abs(policy.act(obs, deterministic=False) - actions).mean() > 0.01  # the noise
    with pytest.raises(IndexError, match="policy_id: expected 0 to 0, got 1"):
        policy.act(obs, policy_id=1)
    with pytest.raises(ValueError, match=r"obs: expected observations alone; reset\(\)"):
        policy.act(envs.reset())
    for number in ("1", "-1"):
        assert cli.main(["export", str(tmp_path / "run"), "--policy-id", number]) == 1
        assert f"policy_id: expected 0 to 0, got {number}\n" in capsys.readouterr().err
    torch.save({"weights": torch.zeros(3)}, tmp_path / "other.pt")
    with pytest.raises(CheckpointError, match=r"other.pt: not the checkpoint of a run: no 'step'"):
        pyfastenv.load_policy(tmp_path / "other.pt")


EDITED_TASK = """
import pyfastenv

class Edited(pyfastenv.Task):
    model = "edited.xml"
    max_episode_steps = 20

    def reset(self, data, rng):
        data.qpos[:] = rng.uniform(-1.0, 1.0, 1)

    def step(self, data, action):
        self.simulate(data)
        return -abs(data.qpos[0]), False

    def observation(self, data, obs):
        obs["state"] = data.qpos
"""
EDITED_MODEL = """
<mujoco>
  <worldbody><body><joint name="hinge" damping="DAMPING"/><geom size="0.1"/></body></worldbody>
  <actuator><motor joint="hinge" ctrlrange="-1 1"/></actuator>
</mujoco>
"""


@pytest.mark.parametrize("name", ["ppo", "flashsac"])
def test_a_policy_outlives_its_environment(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """States of an edited model are refused; the policy needs none."""
    pytest.importorskip("numba")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / f"edited_{name}.py").write_text(EDITED_TASK)
    model = tmp_path / "edited.xml"
    model.write_text(EDITED_MODEL.replace("DAMPING", "1"))
    run = tmp_path / "run"
    algorithm_module(name).train(small(name, env_id=f"edited_{name}:Edited", run_dir=run))
    before = np.asarray(evaluate_run(run, episodes=3).returns)
    model.write_text(EDITED_MODEL.replace("DAMPING", "100"))
    after = np.asarray(evaluate_run(run, episodes=3).returns)
    assert np.isfinite(after).all() and (before != after).all()


def test_a_policy_acts_on_dict_observations(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    env_id = "dict_tasks:Asymmetric"
    ppo.train(small("ppo", env_id=env_id, run_dir=tmp_path / "run"))
    policy = pyfastenv.load_policy(tmp_path / "run")
    envs = pyfastenv.make_vec(env_id, 3, num_threads=1, autoreset_mode="SameStep")
    obs, _ = envs.reset(seed=3)
    actions = policy.act(obs)
    batch = pyfastenv.rollout(envs, policy.policy, 1)
    space = envs.single_action_space
    expected = batch.actions[0].numpy().clip(space.low, space.high)
    np.testing.assert_allclose(actions, expected, rtol=0, atol=2e-6)
    one = policy.act({name: values[1] for name, values in obs.items()})
    np.testing.assert_allclose(one, actions[1], rtol=0, atol=2e-6)
    # what the critic alone sees is not needed any more
    np.testing.assert_array_equal(policy.act({"policy": obs["policy"]}), actions)
    with pytest.raises(ValueError, match="obs: expected a dict of policy, got a dict of tip"):
        policy.act({"tip": obs["tip"]})
