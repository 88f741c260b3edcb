"""The contract of every algorithm in the registry; one that is added is tested from then on.

Each test takes the small training of ``algorithms.small``. The tables below say what else is tried
with which algorithm; one that is not in a table is tried as it is.
"""

import math
import pydoc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from algorithms import NAMES, kind_of, make, options_of, small, teacher_of
from torch import Tensor, nn
from trainings import (
    assert_equal,
    assert_learns,
    assert_same_run,
    pendulum,
    through_a_file,
    untimed,
)

from pyfastenv.nn.policy_spec import PolicySpec
from pyfastenv.nn.torch_policy import TorchPolicy
from pyfastenv.publish.play.player import Player
from pyfastenv.publish.play.source import open_source
from pyfastenv.runs import saved
from pyfastenv.runs.errors import CheckpointError, DivergedError
from pyfastenv.runs.registry import algorithm_module
from pyfastenv.training import distributed
from pyfastenv.training.actor_critic import Batch
from pyfastenv.training.loop import run
from pyfastenv.training.off_policy import OffPolicyConfig

pytestmark = pytest.mark.usefixtures("short_fits", "recorded")

every_algorithm = pytest.mark.parametrize("name", NAMES)
REPLAYING = [n for n in NAMES if issubclass(algorithm_module(n).Config, OffPolicyConfig)]
every_replaying_algorithm = pytest.mark.parametrize("name", REPLAYING)
several_seeds = pytest.mark.parametrize("name", [n for n in NAMES if "num_seeds" in options_of(n)])
TAKES_DISCRETE_ACTIONS = {"dqn", "ppo", "recurrent_ppo"}
# classic control shows no pixels, and nothing is read off these: tests/python/test_drqv2.py
FROM_PIXELS = {n for n in NAMES if algorithm_module(n).Config.learns_from_pixels}
PLAIN = {"distillation", "recurrent_ppo"}  # nothing accelerates it, and it says so
DISCRETE = {"dqn"}  # takes no others; what its rows hold: tests/python/test_dqn.py
every_algorithm_of_numbers = pytest.mark.parametrize(
    "name", [n for n in NAMES if n not in FROM_PIXELS]
)
# a critic that sees more: of own tasks, which mbpo does not take
SEES_GROUPS = {n for n in NAMES if n not in FROM_PIXELS | DISCRETE | PLAIN | {"mbpo"}}
OFFLINE = {n for n in NAMES if "dataset" in options_of(n)}  # no step in an environment
every_exploring_algorithm = pytest.mark.parametrize(
    "name", [n for n in REPLAYING if n not in OFFLINE]
)
every_exploring_algorithm_of_numbers = pytest.mark.parametrize(
    "name", [n for n in REPLAYING if n not in FROM_PIXELS | OFFLINE | DISCRETE]
)


def each(table: dict[str, list[dict[str, Any]]]) -> Any:
    """Every algorithm with each of its own options in the table."""
    cases = [(name, options) for name in NAMES for options in table.get(name, [{}])]
    return pytest.mark.parametrize(("name", "options"), cases, ids=str)


def trained(name: str, num_steps: int, **options: Any) -> Any:
    """A training that has taken at least so many steps."""
    algorithm = make(small(name, **options))
    while algorithm.global_step < num_steps:
        algorithm.iterate()
    return algorithm


def first_network(algorithm: Any) -> nn.Module:
    own = not hasattr(algorithm, "learner")
    network: nn.Module = algorithm.policy if own else algorithm.learner.actor
    return network


@every_algorithm
def test_help_names_the_algorithm(name: str) -> None:
    module = algorithm_module(name)
    for function in (module.train, module.load_policy):
        text = pydoc.plain(pydoc.render_doc(function))
        assert f"function {function.__name__} in module {module.__name__}" in text
        assert "(config: 'Config'" in text
        assert make(small(name)).__class__.__name__ in text


# ---- stopping and going on -----------------------------------------------------------------------

RESUMED: dict[str, list[dict[str, Any]]] = {
    "distillation": [{"loss": "nll"}, {"policy_factory": "small_learners:policy_network"}],
    "dqn": [
        {"normalize_obs": True, "num_seeds": 2, "n_step": 3},
        {"policy_factory": "small_learners:policy_network", "num_envs": 1},
    ],
    "drqv2": [{"num_seeds": 2}, {"amp": True, "num_envs": 1}],
    "flashsac": [
        {},
        {"env_id": "InvertedPendulum-v5", "num_seeds": 2},
        {"amp": True, "num_envs": 1},
    ],
    "mbpo": [
        {"dynamics": "ensemble", "num_seeds": 2},
        {"dynamics": "flow", "num_seeds": 2},
        {"dynamics": "flow", "amp": True, "model_hidden_sizes": (16, 16, 16)},
    ],
    "ppo": [
        *({}, {"pool_size": 3}, {"env_id": "CartPole-v1"}, {"env_id": "dict_tasks:Apart"}),
        {"desired_kl": 0.01, "min_std": 0.6},
        *({"amp": True}, {"layer_norm": True}, {"amp": True, "layer_norm": True}),
        {"env_id": "dict_tasks:Sided", "symmetry": True, "pool_size": 2},
    ],
    "recurrent_ppo": [{"rnn_type": "gru"}, {"env_id": "CartPole-v1"}, {"desired_kl": 0.01}],
    "sac": [
        {"policy_factory": "small_learners:policy_network"},
        {
            **{"env_id": "InvertedPendulum-v5", "num_seeds": 2, "n_step": 3},
            "normalize_obs": True,
        },
        {"temperature": 0.2, "num_envs": 1},
        {"amp": True, "hidden_sizes": (16, 16, 16)},
        {"amp": True, "hidden_sizes": ()},
        {"learning_starts": 0, "layer_norm": True},
        {"amp": True, "layer_norm": True, "num_seeds": 2},
        {"updates_per_step": 0.1},  # iterations without a gradient step
    ],
    "td3": [
        {
            "policy_delay": 3,
            "num_envs": 1,
            "layer_norm": True,
        },  # which may fall between two checkpoints
        {"env_id": "InvertedPendulum-v5", "normalize_obs": True, "num_seeds": 2},
        {"policy_factory": "small_learners:policy_network"},
        {"env_id": "dict_tasks:GoalArm", "her_goals": 4},
    ],
    "td3_bc": [{"num_seeds": 2, "n_step": 3}, {"alpha": 0.0, "anneal_to": 0.1}],
}
LEARNING_SINCE = {"flashsac": 5, "mbpo": 4}  # iterations; elsewhere 12, when pools are full


@each(RESUMED)
def test_a_resumed_training_goes_on_bit_for_bit(name: str, options: dict[str, Any]) -> None:
    options = {"total_steps": 2_000, **options}
    learning = LEARNING_SINCE.get(name, 12)
    algorithm = make(small(name, **options))
    states, metrics = [through_a_file(algorithm.state_dict())], []
    for _ in range(learning + 2):
        metrics.append(untimed(algorithm.iterate()))
        states.append(through_a_file(algorithm.state_dict()))
        assert all(map(math.isfinite, metrics[-1].values()))
    for begin, count in ((0, 1), (1, 2), (learning, 2)):  # new; explored; learning
        torch.manual_seed(99)
        resumed = kind_of(name)(small(name, **{**options, "num_threads": 3}), restore=states[begin])
        assert_equal(states[begin], through_a_file(resumed.state_dict()))
        for expected in metrics[begin : begin + count]:
            assert untimed(resumed.iterate()) == expected
        assert_equal(states[begin + count], through_a_file(resumed.state_dict()))


KILLED: dict[str, list[dict[str, Any]]] = {
    "dqn": [{"num_seeds": 2, "double": False, "tau": 1.0}],
    "flashsac": [{"num_seeds": 2, "gamma_schedule": (60, 85, 0.999), "total_steps": 88}],
    "mbpo": [{"dynamics": "flow", "total_steps": 120}],
    "sac": [
        {"num_seeds": 2},
        {"anneal_to": 0.1, "anneal_steps": 200},
        {"gamma_schedule": (60, 150, 0.9)},
    ],
    "td3": [{"num_seeds": 2}],
    "td3_bc": [{"num_seeds": 2}],
}


@each(KILLED)
def test_a_killed_run_ends_as_if_nothing_had_happened_and_leaves_its_policy(
    name: str, options: dict[str, Any], tmp_path: Path
) -> None:
    config = small(name, **options)
    config.eval_every, config.checkpoint_every = config.total_steps // 2, config.total_steps // 4

    def die(run: Any, metrics: dict[str, float]) -> None:
        if run.step >= 0.9 * config.total_steps:
            raise RuntimeError("killed")

    module = algorithm_module(name)
    result = module.train(replace(config, run_dir=tmp_path / "whole"))
    assert result.global_step == config.total_steps
    with pytest.raises(RuntimeError, match="killed"):
        module.train(replace(config, run_dir=tmp_path / "cut"), callbacks=[die])
    module.train(replace(config, resume=tmp_path / "cut"))
    assert_same_run(tmp_path / "whole", tmp_path / "cut")

    assert math.isfinite(result.evaluation["eval/return"])
    again = saved.evaluate_run(tmp_path / "whole", episodes=2, seed=config.seed)
    assert again.metrics() == result.evaluation
    policy = saved.load_policy(tmp_path / "whole")
    obs = torch.randn(7, *policy.spaces[0].shape).numpy()
    assert policy.act(obs).shape == (7, *policy.spaces[1].shape)
    source = open_source(str(tmp_path / "whole"), num_envs=2)
    player = Player(source.envs, source.act)
    player.step()
    assert player.episode == (player.reward, 1)


@every_algorithm
def test_a_divergence_names_the_step_and_the_last_good_checkpoint(
    name: str, tmp_path: Path
) -> None:
    config = small(name, run_dir=tmp_path / "run")
    config.checkpoint_every = config.log_every = config.total_steps // 8
    poisoned_at: list[int] = []

    class Poisoned(kind_of(name)):  # type: ignore[misc]
        def iterate(self) -> dict[str, float]:
            if self.global_step > config.total_steps // 2 and not poisoned_at:
                poisoned_at.append(self.global_step)
                next(first_network(self).parameters()).data.view(-1)[0] = math.nan
            metrics: dict[str, float] = super().iterate()
            return metrics

    with pytest.raises(DivergedError) as raised:
        run(Poisoned, config)
    good = tmp_path / "run" / "checkpoints" / f"step_{poisoned_at[0]:012d}.pt"
    assert f"the last good checkpoint is {good}. Try a lower learning rate" in str(raised.value)
    # and it can be gone on from
    result = algorithm_module(name).train(replace(config, run_dir=None, resume=good))
    assert result.global_step == config.total_steps


# ---- mistakes ------------------------------------------------------------------------------------

NAN, INF = math.nan, math.inf
# of every algorithm that has the option; some are an algorithm's own
IMPOSSIBLE: list[tuple[str, Any]] = [
    *((option, 0) for option in ("num_envs", "total_steps", "num_seeds", "num_steps")),
    *((option, 0) for option in ("batch_size", "buffer_size", "num_elites", "model_every")),
    *((option, 0) for option in ("rollout_batch", "flow_batch_size", "policy_width")),
    *((option, 0) for option in ("max_noise_repeat", "anneal_steps", "n_step", "target_every")),
    *(
        ("huber_delta", 0.0),
        ("huber_delta", NAN),
        ("epsilon", 1.5),
        ("final_epsilon", NAN),
        ("epsilon_steps", 0),
    ),
    *(("eval_every", -1), ("learning_starts", -1), ("noise", -0.1), ("obs_clip", -5.0)),
    *(("log_std_init", 710.0), ("log_std_init", NAN), ("target_entropy", NAN), ("noise", INF)),
    *(
        ("alpha", NAN),
        ("num_critics", 0),
        ("policy_delay", 0),
        ("target_noise", -0.1),
        ("target_noise_clip", NAN),
    ),
    *(
        ("her_goals", -1),
        ("updates_per_step", 0.0),
        ("temperature", 0.0),
        ("anneal_to", 0.0),
        ("anneal_to", 1.5),
    ),
    *(("learning_rate", -1.0), ("learning_rate", NAN), ("critic_learning_rate", NAN)),
    *(("model_learning_rate", NAN), ("gamma", 1.5), ("gamma", -1.0), ("tau", 1.5), ("tau", -0.1)),
    *(("real_ratio", 1.01), ("rollout_schedule", (20, 10, 1, 2))),
    *(("rollout_schedule", (0, 10, 0, 2)), ("rollout_schedule", (0, 10, 3, 2))),
    *(("num_bins", 1), ("max_return", 0.0), ("max_return", INF)),
    *(("desired_kl", 0.0), ("min_std", NAN), ("mirror_coef", -1.0), ("min_std", 0.7)),
    *(("learning_rate_bounds", (0.0, 1e-2)), ("learning_rate_bounds", (1e-2, 1e-3))),
    *(("target_kl", -0.1), ("target_kl", NAN), ("value_coef", -0.5), ("value_clip", NAN)),
    *(
        ("entropy_coef", NAN),
        ("entropy_coef_end", NAN),
        ("hidden_sizes", (64, 0)),
        ("device", "tpu"),
        ("activation", "gelu"),
    ),
]
IMPOSSIBLE_CASES = [
    (name, option, value)
    for name in NAMES
    for option, value in IMPOSSIBLE
    if option in options_of(name)
]


@pytest.mark.parametrize(("name", "option", "value"), IMPOSSIBLE_CASES, ids=str)
def test_an_option_that_cannot_be_is_named_before_anything_is_written(
    name: str, option: str, value: Any, tmp_path: Path
) -> None:
    config = small(name, run_dir=tmp_path / "run", **{option: value})
    with pytest.raises(ValueError, match=f"^{option}: expected ") as raised:
        algorithm_module(name).train(config)
    assert f"got {value!r}" in str(raised.value)
    assert not (tmp_path / "run").exists()


OFF_POLICY_SENTENCES: list[tuple[dict[str, Any], str]] = [
    ({"learning_starts": 10**6}, "learning_starts: expected less than total_steps = .*, got"),
    (
        {"learning_starts": 40, "num_envs": 50, "total_steps": 50},
        r"got 40 \(in whole steps of 50 environments 50\): nothing would be learned",
    ),
    ({"anneal_to": 1.0, "anneal_steps": 9}, "the learning rates stay; set anneal_to too"),
    ({"gamma_schedule": (9, 5, 0.9)}, r"got \(9, 5, 0.9\) and gamma 0.99"),
    ({"gamma_schedule": (0, 5, 1.0)}, "gamma_schedule: expected two environment steps"),
]
BLOCK_SENTENCES: list[tuple[dict[str, Any], str]] = [
    (
        {"num_steps": 7, "learning_starts": 40, "num_envs": 10, "total_steps": 100},
        "num_steps: expected at most the 6 that learning_starts leaves of each environment's",
    ),
]
SENTENCES: dict[str, list[tuple[dict[str, Any], str]]] = {
    "distillation": [
        ({"teacher": None}, "teacher: expected a run folder or a checkpoint file, got none"),
        ({"teacher": Path("nowhere")}, "teacher: .*nowhere"),
        (
            {"env_id": "InvertedPendulum-v5", "teacher": "Pendulum-v1"},
            r"trained on observations of 3 numbers and actions \(1,\), InvertedPendulum-v5 has 4",
        ),
        ({"pool_size": 2}, "pool_size: expected 1, got 2: the teacher is asked about the newest"),
        ({"accelerate": "native"}, "accelerate: expected 'none', got 'native': nothing faster"),
        ({"gamma": 0.9}, "gamma: expected 0.99, got 0.9: no return is learned from"),
        ({"normalize_rewards": False}, "normalize_rewards: expected True, got False: no reward"),
        ({"minibatch_size": 128}, r"minibatch_size: expected at most .* = 64, got 128"),
    ],
    "mbpo": [
        ({"learning_starts": 19}, "the model needs at least batch_size = 20 real"),
        ({"n_step": 3}, "n_step: expected 1, got 3: the model's rollouts"),
        ({"her_goals": 1}, "her_goals: expected 0, got 1: the model's rollouts"),
        ({"num_elites": 4}, "num_elites: expected at most ensemble_size = 3, got 4"),
    ],
    "ppo": [
        ({"minibatch_size": 256, "pool_size": 3}, r"minibatch_size: expected at most .* 128, got"),
        ({"minibatch_size": 1000}, r"minibatch_size: expected at most .* 128, got 1000"),
        ({"minibatch_size": 1}, "minibatch_size: expected at least 2 with normalize_advantages"),
        ({"total_steps": 128}, r"total_steps: expected more than num_envs \* num_steps = 128"),
        ({"anneal_steps": 700}, r"anneal_steps: expected at least total_steps = 768 .* got 700"),
        *(
            ({"anneal_steps": 9, **none}, "anneal_steps: expected None, got 9: neither learning")
            for none in ({"anneal": False}, {"desired_kl": 0.01})
        ),
        ({"device": "cuda", "overlap": True}, "cuda|overlap"),
        (
            {"desired_kl": 0.01, "learning_rate": 0.02},
            "learning_rate: expected one within learning_rate_bounds with desired_kl, 1e-05 to",
        ),
    ],
    "sac": [
        (
            {"temperature": 0.2, "target_entropy": -1.0},
            "target_entropy: expected None, got -1.0: a temperature of 0.2 stays",
        ),
    ],
    "recurrent_ppo": [
        ({"accelerate": "native"}, "accelerate: expected 'none', got 'native': nothing faster"),
        ({"device": "cuda"}, "device: expected 'cpu', got 'cuda': recurrent networks have not"),
        ({"amp": True}, "amp: expected False, got True: sequences are computed in float32"),
        ({"overlap": True}, "overlap: expected False, got True: a policy with a memory acts"),
        ({"pool_size": 2}, "pool_size: expected 1, got 2: earlier batches began with states of"),
        ({"symmetry": True}, "symmetry: expected False, got True: sequences are not mirrored"),
        (
            {"policy_factory": "small_learners:policy_network"},
            "policy_factory: expected None, got 'small_learners:policy_network': networks are",
        ),
        ({"minibatch_size": 24}, "minibatch_size: expected a multiple of num_steps = 16 .* got 24"),
    ],
}
SENTENCE_CASES = [
    (name, *case)
    for name in NAMES
    for case in [
        ({"env_id": "Pendulu-v1"}, "Pendulum-v1"),
        *SENTENCES.get(name, []),
        *(OFF_POLICY_SENTENCES if name in REPLAYING else []),
        *(BLOCK_SENTENCES if name in REPLAYING and "num_steps" in options_of(name) else []),
    ]
]


@pytest.mark.parametrize(("name", "options", "message"), SENTENCE_CASES, ids=str)
def test_options_that_do_not_go_together_are_named(
    name: str, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    if isinstance(env_id := options.get("teacher"), str):
        options = {**options, "teacher": teacher_of(env_id)}
    with pytest.raises(ValueError, match=message):
        algorithm_module(name).train(small(name, run_dir=tmp_path / "run", **options))
    assert not (tmp_path / "run").exists()


@every_algorithm_of_numbers
def test_discrete_actions_are_taken_or_refused(name: str, tmp_path: Path) -> None:
    config = small(name, env_id="CartPole-v1", run_dir=tmp_path / "run")
    if name in TAKES_DISCRETE_ACTIONS:
        assert algorithm_module(name).train(config).global_step == config.total_steps
        return
    message = rf"{name} needs continuous actions.*CartPole-v1.*try dqn or ppo"
    with pytest.raises(ValueError, match=message):
        algorithm_module(name).train(config)
    assert not (tmp_path / "run").exists()


# ---- learning ------------------------------------------------------------------------------------

# iterations between evaluations, options
LEARNING: dict[str, tuple[int, dict[str, Any]]] = {
    "ddpg": (8, {"total_steps": 12_000}),
    "ppo": (5, {
        "num_envs": 16, "num_steps": 128, "total_steps": 300_000, "minibatch_size": 128,
        "learning_rate": 1e-3, "gamma": 0.9,
    }),
    "sac": (20, {
        "total_steps": 6_000, "learning_starts": 500, "batch_size": 64, "hidden_sizes": (32, 32),
        "learning_rate": 3e-3, "num_steps": 10, "gamma": 0.95,
    }),
    "td3": (20, {
        "total_steps": 6_000, "learning_starts": 500, "batch_size": 64, "hidden_sizes": (64, 64),
        "policy_learning_rate": 2e-3, "critic_learning_rate": 2e-3, "num_steps": 10, "gamma": 0.95,
        "tau": 0.02,
    }),
    "td3_bc": (10, {
        "dataset": ("Pendulum-v1",), "total_steps": 2_000, "batch_size": 64, "log_every": 20,
        "hidden_sizes": (64, 64), "policy_learning_rate": 2e-3, "gamma": 0.95,
    }),
}  # fmt: skip
# a model of a pendulum that swings up takes minutes, large networks half of one: they balance one,
# which a random policy lets fall after 6 steps
BALANCING: dict[str, tuple[int, dict[str, Any]]] = {
    "dqn": (40, {
        "total_steps": 6_000, "learning_starts": 500, "batch_size": 64, "hidden_sizes": (64, 64),
        "buffer_size": 6_000, "learning_rate": 3e-3, "gamma": 0.95, "epsilon_steps": 1_000,
    }),
    "distillation": (5, {
        "env_id": "InvertedPendulum-v5", "learning_rate": 1e-2, "update_epochs": 10,
        "total_steps": 4 * 16 * 20,
    }),
    "flashsac": (20, {
        "env_id": "InvertedPendulum-v5", "num_envs": 4, "total_steps": 4_000,
        "learning_starts": 200, "batch_size": 64, "buffer_size": 4_000, "policy_width": 16,
        "critic_width": 32, "num_blocks": 1, "learning_rate": 4e-3, "gamma": 0.95, "tau": 0.02,
    }),
    "mbpo": (5, {
        "total_steps": 800, "learning_starts": 200, "batch_size": 128, "updates_per_step": 8.0,
        "hidden_sizes": (64, 64), "learning_rate": 1e-3, "target_entropy": -0.05,
        "model_hidden_sizes": (48, 48), "model_learning_rate": 3e-3, "model_every": 100,
        "rollout_batch": 3_000, "rollout_schedule": (0, 0, 1, 1), "real_ratio": 0.05,
    }),
    "recurrent_ppo": (10, {  # what needs its memory: tests/python/test_recurrent_ppo.py
        "env_id": "CartPole-v1", "num_envs": 8, "total_steps": 15_000, "hidden_sizes": (16,),
        "minibatch_size": 64, "update_epochs": 4, "learning_rate": 5e-3,
    }),
}  # fmt: skip


@every_algorithm_of_numbers
def test_it_learns(name: str) -> None:
    if name in BALANCING:
        iterations, options = BALANCING[name]
        config = small(name, **options)
        assert config.env_id in ("CartPole-v1", "InvertedPendulum-v5")
        first = 30.0 if name == "distillation" else 15.0  # which begins with actions near 0
        assert_learns(make(config), iterations, first=first, last=50.0)
        return
    iterations, options = LEARNING.get(name, (50, {}))
    config = algorithm_module(name).Config(env_id="Pendulum-v1", num_threads=1, **options)
    algorithm = make(config)
    # a policy that has learned nothing stays below -900; the best there is: -150
    assert_learns(algorithm, iterations, first=-900.0, last=-600.0)


# ---- accelerators --------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["", "groups", "layer_norm"])
@pytest.mark.parametrize("amp", [False, True])
@pytest.mark.parametrize(
    "name", [n for n in NAMES if "accelerate" in options_of(n) and n not in PLAIN]
)
def test_an_accelerator_computes_what_the_specification_says(
    name: str, amp: bool, variant: str
) -> None:
    """The losses of the first iteration that learns, and where its parameters then are."""
    if variant == "groups" and name not in SEES_GROUPS:
        pytest.skip("it takes no own tasks with continuous actions")
    if variant == "layer_norm" and variant not in options_of(name):
        pytest.skip("it has no such option")
    variants: dict[str, dict[str, Any]] = {"groups": {"env_id": "dict_tasks:Apart"}}
    options = variants.get(variant, {variant: True} if variant else {})
    losses, parameters = [], []
    for how in ("native", "none"):
        algorithm = make(small(name, accelerate=how, amp=amp, num_threads=1, **options))
        metrics: dict[str, float] = {}
        while not any(key.startswith("loss/") for key in metrics):
            metrics = algorithm.iterate()
        losses.append({key: value for key, value in metrics.items() if key.startswith("loss/")})
        network = first_network(algorithm)
        parameters.append(torch.cat([each.detach().flatten() for each in network.parameters()]))
    assert losses[0] == pytest.approx(
        losses[1], rel=0.1 if amp else 1e-3, abs=0.05 if amp else 1e-4
    )
    difference = (parameters[0] - parameters[1]).norm() / parameters[1].norm()
    assert difference < (0.02 if amp else 1e-4)


# ---- a critic that sees more ---------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in REPLAYING if n in SEES_GROUPS])
def test_policy_and_critics_see_their_groups(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, calls = kind_of(name), []

    def watched(networks: Any, batch: Batch, noise: Tensor, gamma: Any) -> Tensor:
        calls.append((networks, noise, gamma))
        loss: Tensor = functions.critic_loss(networks, batch, noise, gamma)
        return loss

    functions = kind.functions
    monkeypatch.setattr(kind, "functions", functions._replace(critic_loss=watched))
    more = {"normalize_obs": True} if "normalize_obs" in options_of(name) else {}
    algorithm = make(small(name, env_id="dict_tasks:Apart", **more))
    while not calls:
        algorithm.iterate()
    layout, views = algorithm.layout, algorithm.envs.obs_views.views
    columns = {each: set(range(layout.obs_size)[views[each].place]) for each in views}
    assert columns["policy"] != columns["critic"]
    # critics: by which columns of the rows their errors change
    networks, noise, gamma = calls[-1]
    rows = algorithm.draw(1)[0][0]
    pack = (layout.obs(rows), layout.actions(rows), layout.next_obs(rows), layout.rewards(rows))

    def loss(column: int, part: int) -> float:
        parts = [each.clone() for each in pack]
        if column >= 0:
            parts[part][..., column] += 0.5
        changed = layout.pack(*parts, layout.continues(rows) == 0.0)
        batch = Batch.of(changed, layout)
        return float(functions.critic_loss(networks, batch, noise, gamma).detach().sum())

    before = loss(-1, 0)
    for part, seen in ((0, columns["critic"]), (2, columns["policy"] | columns["critic"])):
        found = {i for i in range(layout.obs_size) if loss(i, part) != before}
        assert found == seen
    assert_acts_by(algorithm, columns["policy"])


def test_dqn_sees_what_the_policy_may_see() -> None:
    algorithm = trained("dqn", 80, env_id="dict_tasks:Choosing", normalize_obs=True)
    views = algorithm.envs.obs_views.views
    assert_acts_by(algorithm, set(range(algorithm.layout.obs_size)[views["policy"].place]))


def assert_acts_by(algorithm: Any, columns: set[int]) -> None:
    """A policy's outputs change with these columns of observations, and with no others."""
    layout = algorithm.layout
    obs = torch.randn(500, layout.obs_size)  # of greedy discrete actions few change
    policies = algorithm.eval_policy()
    if isinstance(policies, PolicySpec):
        policies = [TorchPolicy.of(policies, algorithm.envs.single_action_space)]
    network = policies[0]
    outputs = [
        network(network.of_rows(obs + 0.5 * at))
        for at in (torch.zeros(layout.obs_size), *torch.eye(layout.obs_size))
    ]
    assert {i for i, each in enumerate(outputs[1:]) if (each != outputs[0]).any()} == columns


# ---- several seeds -------------------------------------------------------------------------------

SIDE_BY_SIDE: dict[str, dict[str, Any]] = {
    # rollouts of different numbers of living states; more gradient steps let roundings grow until
    # another state falls
    "mbpo": {"rollout_schedule": (0, 0, 4, 4), "model_learning_rate": 1e-2, "dynamics": "flow"},
    "sac": {"env_id": "InvertedPendulum-v5", "num_steps": 3, "hidden_sizes": (24, 24)},
    "ddpg": {"env_id": "dict_tasks:GoalArm", "her_goals": 2, "updates_per_step": 0.2},
    "td3": {"normalize_obs": True, "updates_per_step": 0.2, "buffer_size": 200, "n_step": 3},
}


def networks_of(algorithm: Any) -> Iterator[tuple[str, list[Tensor]]]:
    """Every network that a checkpoint holds, and its parameters."""
    for part in algorithm.parts:
        for name, module in vars(getattr(algorithm, part)).items():
            if isinstance(module, nn.Module):
                yield f"{part}.{name}", [each.detach() for each in module.parameters()]


def of_seed(together: list[Tensor], alone: list[Tensor], k: int) -> list[Tensor]:
    """The parameters of seed ``k``, which follow those of the seeds before along the leading axis
    or, of own networks, in the list."""
    if len(together) > len(alone):
        return together[k * len(alone) : (k + 1) * len(alone)]
    pairs = zip(together, alone, strict=True)
    return [mine[k * len(its) : (k + 1) * len(its)] for mine, its in pairs]


@several_seeds
def test_seeds_side_by_side_are_runs_of_their_own(name: str) -> None:
    options = SIDE_BY_SIDE.get(name, {})
    together = make(small(name, seed=11, num_seeds=2, **options))
    singles = [make(small(name, seed=11 + k, **options)) for k in range(2)]
    for algorithm in (together, *singles):
        if hasattr(algorithm, "model"):  # few steps, another number of them in each fit
            fit = {"batch_size": 256, "min_improvement": 0.05}
            algorithm.model.options = replace(algorithm.model.options, **fit)
        while algorithm.global_step < 0.68 * algorithm.config.total_steps:
            algorithm.iterate()
    rtol, atol = (1e-3, 2e-4) if name == "mbpo" else (1e-4, 1e-4)
    near: dict[str, Any] = {"rtol": rtol, "atol": atol}
    for k, single in enumerate(singles):
        assert single.global_step == together.global_step
        for stream in ("streams", "exploration_streams"):
            mine = getattr(together, stream).state_dict()["generators"][k]
            assert torch.equal(mine, getattr(single, stream).state_dict()["generators"][0])
        for pool in ("env_pool", "model_pool"):
            if hasattr(single, pool) and name not in OFFLINE:
                rows, alone = getattr(together, pool).rows()[k], getattr(single, pool).rows()[0]
                torch.testing.assert_close(rows, alone, **near)
        for (part, mine), (_, its) in zip(networks_of(together), networks_of(single), strict=True):
            for a, b in zip(of_seed(mine, its, k), its, strict=True):
                torch.testing.assert_close(a, b, **near, msg=lambda text, part=part: part + text)
        if hasattr(single.learner, "log_temperature"):
            mine = together.learner.log_temperature[k : k + 1]
            torch.testing.assert_close(mine, single.learner.log_temperature, **near)
    if name in OFFLINE:
        return
    pools = together.env_pool.rows()
    assert not torch.equal(pools[0], pools[1])


@several_seeds
def test_another_number_of_seeds_does_not_resume(name: str) -> None:
    state = through_a_file(make(small(name, num_seeds=2)).state_dict())
    with pytest.raises((ValueError, RuntimeError), match=r"seeds|size mismatch|Missing key"):
        kind_of(name)(small(name, num_seeds=3), restore=state)


@every_replaying_algorithm
def test_seeds_are_not_shared_out_over_processes(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distributed, "world_size", lambda: 2)
    config = small(name, num_seeds=2)
    message = (
        "num_seeds: expected 1 under torchrun, got 2"
        if config.processes
        else f"{name} runs in one process; for several seeds use --num-seeds"
    )
    with pytest.raises(ValueError, match=message):
        config.check()


# ---- learning from replayed transitions ----------------------------------------------------------


@every_exploring_algorithm
def test_updates_per_step_counts_steps_of_a_seeds_environments(name: str) -> None:
    algorithm = make(small(name, num_seeds=2, updates_per_step=0.25))
    metrics = algorithm.iterate()
    assert algorithm.global_step == 60
    assert all(key.startswith("time/") for key in metrics)  # explored, learned nothing
    while algorithm.global_step < 100:
        metrics = algorithm.iterate()
    expected = int(0.25 * algorithm.global_step) - 15
    assert algorithm.learner.optimizers["critic_optimizer"].num_steps == expected
    assert metrics.keys() >= {*algorithm.learner.metrics, "time/update_s"}
    # more than are drawn at once
    algorithm = trained(name, 61, updates_per_step=7, num_envs=10)
    expected = 7 * (algorithm.global_step - 60)
    assert algorithm.learner.optimizers["critic_optimizer"].num_steps == expected >= 70


def few_updates(name: str) -> dict[str, Any]:
    """For tests of what is collected."""
    wanted = {"updates_per_step": 0.02, "model_every": 10_000, "buffer_size": 2_000, "num_envs": 2}
    return {key: value for key, value in wanted.items() if key in options_of(name)}


@every_exploring_algorithm_of_numbers
def test_time_limits_are_no_terminations(name: str) -> None:
    # each of 2 environments: 210 steps explored, 210 with the policy, a time limit in each part
    options = {"env_id": "Pendulum-v1", "learning_starts": 420, "total_steps": 840}
    algorithm = make(small(name, **options, **few_updates(name)))
    returns = []
    while algorithm.global_step < 840:
        returns.append(algorithm.iterate().get("train/return"))
    assert returns[0] is None and sum(value is not None for value in returns) == 1
    (rows,) = algorithm.env_pool.rows()
    assert len(rows) == algorithm.global_step == 840
    layout = algorithm.layout
    assert (layout.continues(rows) == 1.0).all()
    # no row leads into another episode, and actions are in [-1, 1] where Pendulum's go to 2
    batch = Batch.of(rows, layout)
    assert 0.9 < batch.actions.abs().max() <= 1.0
    expected = pendulum(batch.obs, 2.0 * batch.actions)
    torch.testing.assert_close(batch.next_obs, expected, rtol=0.0, atol=1e-4)


@every_exploring_algorithm_of_numbers
def test_terminations_are(name: str) -> None:
    options = {"env_id": "InvertedPendulum-v5", "num_seeds": 2, "learning_starts": 100}
    algorithm = trained(name, 160, total_steps=400, **options, **few_updates(name))
    layout, rows = algorithm.layout, torch.stack(algorithm.env_pool.rows())
    # terminated: |angle| > 0.2, which no other observation has
    fallen = layout.next_obs(rows)[..., 1].abs() > 0.2
    assert fallen.any(1).all()
    assert torch.equal(layout.continues(rows), (~fallen).float())
    assert torch.equal(layout.rewards(rows), (~fallen).float())
    assert (layout.obs(rows)[..., 1].abs() <= 0.2).all()


@every_exploring_algorithm_of_numbers
def test_exploration_is_uniform_over_the_action_space(name: str) -> None:
    options = {"env_id": "Pendulum-v1", "learning_starts": 4_000, "total_steps": 5_000}
    algorithm = make(small(name, num_envs=20, buffer_size=4_000, **options))
    algorithm.iterate()
    (rows,) = algorithm.env_pool.rows()
    actions = 2.0 * Batch.of(rows, algorithm.layout).actions.flatten()
    assert actions.min() >= -2.0 and actions.max() <= 2.0
    counts = torch.histc(actions, bins=10, min=-2.0, max=2.0)
    # 400 each, standard deviation 19
    assert counts.sum() == 4_000
    assert counts.min() > 300 and counts.max() < 500


@every_replaying_algorithm
def test_learning_rates_fall_along_a_cosine(name: str) -> None:
    options = {"total_steps": 1_000, "anneal_to": 0.2}
    algorithm = make(small(name, **options))
    rates = {key: adam.lr for key, adam in algorithm.learner.optimizers.items()}
    while algorithm.global_step < 120:
        algorithm.iterate()
    config = algorithm.config
    last = config.num_envs * getattr(config, "num_steps", 1)  # the step's, after its rate is set
    share = 0.2 + 0.8 * 0.5 * (1.0 + math.cos(math.pi * (algorithm.global_step - last) / 1_000))
    assert share < 1.0
    for key, adam in algorithm.learner.optimizers.items():
        assert adam.lr == pytest.approx(rates[key] * share)
    # by the steps that the run began with, unless others are asked for
    state = through_a_file(algorithm.state_dict())
    for more, expected in (({}, 1_000), ({"anneal_steps": 500}, 500)):
        longer = small(name, **{**options, "total_steps": 2_000, **more})
        assert kind_of(name)(longer, restore=state).anneal_steps == expected


@every_exploring_algorithm
def test_a_checkpoint_that_does_not_fit_says_so(name: str) -> None:
    state = trained(name, 60).state_dict()
    with pytest.raises(ValueError, match=r"at most 50 rows, got"):
        kind_of(name)(small(name, buffer_size=50), restore=state)
    del state["env_pool"]
    with pytest.raises(CheckpointError, match="checkpoint has no env_pool: another version of"):
        kind_of(name)(small(name), restore=state)
