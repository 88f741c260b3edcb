"""Accelerators compute the readable programs' steps; who changes a program gets the plain one."""

import json
import runpy
import shutil
import sys
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import torch
from algorithms import kind_of, make, small
from small_learners import (
    LAYOUT,
    SEEDS,
    critic_network,
    make_sac,
    make_td3,
    policy_network,
    problem,
)
from torch import Tensor, nn

from pyfastenv import _core, cli
from pyfastenv.algorithms import ppo, sac, td3
from pyfastenv.nn.networks import NetworkStack
from pyfastenv.runs.errors import DivergedError
from pyfastenv.runs.saved import load_policy, resumed_config
from pyfastenv.sampling.rollouts import rollout
from pyfastenv.training.loop import run
from pyfastenv.training.own_losses import check_losses, own_losses


def distance(ours: Tensor, theirs: Tensor) -> float:
    return float((ours - theirs).norm() / theirs.norm().clamp_min(1e-12))


def test_moments_that_have_faded_are_zero() -> None:
    """A gradient step takes denormal numbers for zero, and nothing after it does."""
    least = torch.finfo(torch.float32).tiny
    for accelerate, amp in (("none", False), ("native", False), ("native", True)):
        learner = make_sac(accelerate, bfloat16=amp)
        learner.policy_optimizer.mean.fill_(0.5 * least)
        rows, noise = problem(learner, torch.Generator().manual_seed(1))
        LAYOUT.obs(rows)[..., 0] = 0.0  # so its weights have no gradient
        LAYOUT.next_obs(rows)[..., 0] = 0.0
        learner.run(rows, noise, torch.zeros(len(learner.metrics), len(SEEDS)))
        first_layer = learner.policy_optimizer.mean[: LAYOUT.obs_size * 32]
        assert (first_layer[:32] == 0.0).all()
        assert (torch.tensor(least) * 0.5 > 0.0).all()


def test_in_bfloat16_a_trained_ppo_is_apart_by_less_than_minibatches(in_software: str) -> None:
    """Gradients of the same minibatch in both precisions, beside those of two minibatches."""
    options = {"hidden_sizes": (64, 64), "num_steps": 256, "total_steps": 100_000}
    trained = make(small("ppo", env_id="HalfCheetah-v5", **options))
    for _ in range(20):
        trained.iterate()
    packed = trained._pack(trained._samples(rollout(trained.envs, trained.policy_spec(), 256)))
    packed = packed[trained._order(len(packed))]
    size = sum(each.numel() for each in trained.policy.parameters())
    gradients: list[list[Tensor]] = []
    compiled = [(True, "native")] if in_software else []
    for amp, accelerate in ((False, "none"), (True, "none"), *compiled):
        other = make(replace(trained.config, amp=amp, accelerate=accelerate))
        other.flat.parameter.data.copy_(trained.flat.parameter)
        accelerator = other.acceleration.accelerator
        backward = other.backward if accelerator is None else accelerator._backward
        gradients.append([])
        for rows in packed.split(64):
            backward(rows)
            gradients[-1].append(other.flat.grad[:size].clone())
    wanted, *others = gradients
    noise = median(distance(a, b) for a, b in pairwise(wanted))
    for found in others:
        ours = median(distance(a, b) for a, b in zip(found, wanted, strict=True))
        assert 1e-4 < ours < 0.5 * noise


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("sac", {"hidden_sizes": (64, 64), "total_steps": 500}),
        ("sac", {"hidden_sizes": (64, 64), "total_steps": 500, "layer_norm": True}),
        ("flashsac", {"policy_width": 32, "critic_width": 64, "policy_every": 1}),
    ],
)
def test_on_a_trained_learner_bfloat16_is_less_than_the_noise_of_minibatches(
    name: str, options: dict[str, Any], in_software: str
) -> None:
    """Gradients of the same minibatch in both precisions, beside those of two minibatches."""
    shared = {"batch_size": 64, "num_envs": 4, "buffer_size": 10_000, "updates_per_step": 1.0}
    trained = make(small(name, **{"total_steps": 400, **shared, **options}))
    while trained.global_step < trained.config.total_steps:
        trained.iterate()
    assert trained.learner.policy_optimizer.num_steps > 300
    ways = [(False, "none"), (True, "none"), *([(True, "native")] if in_software else [])]
    exact, *rounded = (
        make(replace(trained.config, amp=amp, accelerate=accelerate)).learner
        for amp, accelerate in ways
    )
    assert all("bfloat16" in learner.choice.name for learner in rounded[1:])

    def gradients(learner: Any, rows: Tensor, noise: Tensor) -> dict[str, Tensor]:
        learner.load_state_dict(trained.learner.state_dict())
        adams = learner.optimizers
        before = {name: adam.betas[0] * adam.mean for name, adam in adams.items()}
        learner.run(rows, noise, torch.zeros(len(learner.metrics), 1))
        return {name: adam.mean - before[name] for name, adam in adams.items()}

    rows, noise = trained.draw(20)
    pairs = [(rows[i : i + 1], noise[i : i + 1]) for i in range(len(rows))]
    wanted = [gradients(exact, *pair) for pair in pairs]
    for name in wanted[0]:
        others = [distance(a[name], b[name]) for a, b in pairwise(wanted)]
        for learner in rounded:
            found = [gradients(learner, *pair)[name] for pair in pairs]
            ours = [distance(a, b[name]) for a, b in zip(found, wanted, strict=True)]
            assert 1e-4 < median(ours) < 0.5 * median(others)


# ---- who gets which ------------------------------------------------------------------------------


def configurations() -> dict[str, tuple[Any, Any]]:
    return {
        "sac": (sac, small("sac", total_steps=200, num_envs=2)),
        "td3": (td3, small("td3", total_steps=200, normalize_obs=True)),
        "ppo": (ppo, small("ppo", env_id="Pendulum-v1", num_threads=1)),
    }


@pytest.mark.parametrize(("name", "amp"), [("sac", True), ("td3", False), ("ppo", True)])
def test_own_networks_train_in_plain_pytorch_and_come_back(
    name: str, amp: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module, config = configurations()[name]
    own = {"policy_factory": policy_network, "critic_factory": critic_network}
    config = replace(config, run_dir=tmp_path / "run", amp=amp, quiet=False, **own)
    assert config.policy_factory == "small_learners:policy_network"
    if name == "ppo":
        config.total_steps = 3 * config.num_envs * config.num_steps
    result = module.train(config)
    assert result.acceleration == "plain PyTorch"
    out = capsys.readouterr().out
    assert "Gradient steps: plain PyTorch (networks of your own)" in out
    recorded = json.loads((tmp_path / "run" / "config.json").read_text())
    assert recorded["acceleration"] == "plain PyTorch"
    saved = load_policy(tmp_path / "run")
    assert isinstance(saved.as_torch().network[1], nn.LayerNorm)
    obs_shape = saved.spaces[0].shape
    assert saved.act(torch.zeros(3, *obs_shape).numpy()).shape == (3, *saved.spaces[1].shape)


def dropout_network(num_inputs: int, num_outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(num_inputs, 32), nn.Dropout(0.5), nn.Linear(32, num_outputs))


def batch_norm_network(num_inputs: int, num_outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(num_inputs, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, num_outputs)
    )


class MaskedNetwork(nn.Linear):
    """With a frozen layer and numbers that are infinite by design."""

    def __init__(self, num_inputs: int, num_outputs: int):
        super().__init__(16, num_outputs)
        self.frozen = nn.Linear(num_inputs, 16).requires_grad_(False)
        self.mask: Tensor
        self.register_buffer("mask", torch.full((16, 16), -torch.inf).triu(1))

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.frozen(x)
        return super().forward(hidden @ self.mask.softmax(-1).T)


@pytest.mark.parametrize(
    ("name", "factory"),
    [
        ("sac", dropout_network),
        ("td3", MaskedNetwork),
        *(("ppo", network) for network in (batch_norm_network, MaskedNetwork)),
    ],
)
def test_own_networks_learn_in_training_mode_and_act_in_evaluation_mode(
    name: str, factory: Any, tmp_path: Path
) -> None:
    module, config = configurations()[name]
    config = replace(config, run_dir=tmp_path, policy_factory=factory, critic_factory=factory)
    if name == "ppo":
        config.total_steps = 3 * config.num_envs * config.num_steps
    passes: list[tuple[bool, bool]] = []
    forward = NetworkStack.forward

    def watched(self: NetworkStack, x: Tensor) -> Tensor:
        passes.append((self.training, torch.is_grad_enabled()))
        return forward(self, x)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NetworkStack, "forward", watched)
        module.train(config)
    assert (True, True) in passes and (False, False) in passes
    if name == "ppo":
        assert (True, False) not in passes and (False, True) not in passes
    saved = load_policy(tmp_path)
    obs = torch.randn(5, *saved.spaces[0].shape).numpy()
    once = saved.act(obs)
    assert (once == saved.act(obs)).all()
    for row, action in zip(obs, once, strict=True):
        assert saved.act(row) == pytest.approx(action, abs=1e-5)


def test_a_policy_in_torch_does_not_overlap_with_learning(tmp_path: Path) -> None:
    module, config = configurations()["ppo"]
    config = replace(config, run_dir=tmp_path / "run", overlap=True)
    module.train(replace(config, critic_factory=critic_network, run_dir=tmp_path / "critic"))
    with pytest.raises(ValueError, match="overlap: a network that acts in torch"):
        module.train(replace(config, policy_factory=policy_network))


def test_who_changes_a_loss_gets_the_plain_program() -> None:
    mine, theirs = Louder(small("sac")), sac.SAC(small("sac", accelerate="none"))
    assert mine.acceleration.note == "Gradient steps: plain PyTorch (critic_loss of your own)"
    for algorithm in (mine, theirs):
        while algorithm.global_step < 62:
            losses = algorithm.iterate()
        algorithm.loss = losses["loss/critic"]
    assert mine.loss != theirs.loss

    for functions in ({"critic_loss": louder}, None, sac.Functions):

        class Wrong(sac.SAC):
            pass

        Wrong.functions = functions  # type: ignore[assignment]
        with pytest.raises(TypeError, match=r"functions: expected a NamedTuple such as sac.Func"):
            Wrong(small("sac"))

    class MinePPO(ppo.PPO):
        functions = ppo.Functions(ppo_loss=lambda *a, **k: ppo.ppo_loss(*a, **k))

    algorithm = MinePPO(small("ppo"))
    assert algorithm.acceleration.note == "Gradient steps: plain PyTorch (ppo_loss of your own)"
    algorithm.iterate()


def louder(networks: Any, batch: Any, noise: Tensor, gamma: float) -> Tensor:
    return 2.0 * sac.critic_loss(networks, batch, noise, gamma)


class Louder(sac.SAC):
    functions = sac.Functions(critic_loss=louder)


def test_a_run_goes_on_with_the_losses_it_began_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    config = small("sac", run_dir=folder, total_steps=70, loggers=(), eval_episodes=1)
    run(Louder, config)
    recorded = json.loads((folder / "config.json").read_text())
    assert recorded["own_losses"] == {"critic_loss": f"{__name__}:louder"}
    message = f"critic_loss was {__name__}:louder, is the standard one; go on with: loop.run("
    assert cli.main(["resume", str(folder), "--total-steps", "80"]) == 1
    out, err = capsys.readouterr()
    assert message in err and err.count("\n") == 1 and out == ""
    run(Louder, resumed_config(folder, total_steps=80))
    assert load_policy(folder).step == 80

    # nor does one that has no checkpoint yet begin again with others
    shutil.rmtree(folder / "checkpoints")
    for name in ("result.json", "metrics.jsonl"):
        (folder / name).unlink()
    with pytest.raises(ValueError, match=r"critic_loss was .*:louder, is the standard one"):
        sac.train(resumed_config(folder))

    standard = replace(config, run_dir=tmp_path / "standard")
    sac.train(standard)
    with pytest.raises(ValueError, match=r"was the standard one, is .*: pyfastenv resume .*"):
        run(Louder, resumed_config(tmp_path / "standard", total_steps=80))


def test_losses_are_told_apart_wherever_they_stand() -> None:
    class Mine:
        functions = sac.Functions(critic_loss=partial(louder, 2.0, sign=-1, networks=sac))

    partly = f"{__name__}:louder(2.0, sign=-1, networks=module)"
    assert own_losses(Mine) == {"critic_loss": partly}
    for mine, its, alike in (
        ("losses:f", "losses:f", True),
        ("losses:f", "others:f", False),
        ("losses:f(1.0)", "losses:f(7.0)", False),
        ("losses:f", "__main__:f", True),  # what a notebook defined
        ("__main__:g", "losses:f", False),
        ("losses:f(1.0)", "__main__:f(1.0)", True),
    ):
        with nullcontext() if alike else pytest.raises(ValueError, match="critic_loss was"):
            check_losses({"critic_loss": mine}, {"own_losses": {"critic_loss": its}}, Path("run"))


def test_losses_of_a_module_that_is_run_are_the_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    package = tmp_path / "a_package"
    package.mkdir()
    (package / "losses.py").write_text(
        "from pyfastenv.training.own_losses import own_losses\n"
        "from pyfastenv.algorithms import sac\n"
        "def f(*arguments): ...\n"
        "class Mine:\n    functions = sac.Functions(critic_loss=f)\n"
        "if __name__ == '__main__':\n    print(own_losses(Mine))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "argv", [""])
    runpy.run_module("a_package.losses", run_name="__main__", alter_sys=True)
    runpy.run_path(str(package / "losses.py"), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        "{'critic_loss': 'a_package.losses:f'}",
        "{'critic_loss': 'losses:f'}",
    ]


def test_each_option_is_what_it_says() -> None:
    notes = {how: make_sac(how).choice for how in ("auto", "none", "native")}
    assert notes["auto"].name == notes["native"].name == "compiled in float32"
    assert notes["none"].name == "plain PyTorch" and notes["none"].note == ""
    compiled = make_td3("compile").choice
    assert compiled.note == "Gradient steps: plain PyTorch (nothing here is of kind compile)"
    config = small("ppo")
    assert make(config).acceleration.name == "epochs compiled in C++"
    unit = _core.bfloat16_unit()
    amp = make(small("ppo", amp=True, normalize_obs=False))  # in float32: plain bfloat16 is slow
    assert amp.acceleration.name == "epochs compiled in C++"
    why_not = "only with normalize_obs" if unit else "neither AMX nor AVX512-BF16, so in float32"
    assert amp.acceleration.note == (
        "Gradient steps: epochs compiled in C++ (why not epochs compiled in C++, in bfloat16"
        f"{f' ({unit})' if unit else ''}: {why_not})"
    )
    assert amp.iterate()["loss/value"] > 0.0
    for make_learner, name in (
        (make_sac, "compiled in float32"),
        (make_td3, "written-out gradients"),
    ):
        normalised = make_learner("auto", layer_norm=True).choice
        assert (normalised.name, normalised.note) == (name, "")
    partly = make_sac("auto")
    partly.target.norm_list = [torch.ones(4, 2, 32)] * 2
    reason = "only where all networks' layers are normalised, or none's"
    assert sac.accelerated.CompiledStep.why_not(partly) == reason
    apart = make(small("sac", env_id="dict_tasks:Apart", amp=True)).acceleration
    assert apart.name == "written-out gradients"
    assert "bfloat16" in apart.note and "where policy and critic see the same)" in apart.note


@pytest.mark.parametrize("name", ["ppo", "sac", "flashsac", "mbpo"])
@pytest.mark.parametrize("accelerate", ["none", "native"])
def test_mixed_precision_in_software_would_be_slow_and_is_float32(
    name: str, accelerate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing multiplies bfloat16 numbers an iteration has the same bits with it."""
    monkeypatch.setattr(_core, "bfloat16_unit", lambda: "")
    rows = []
    for amp in (False, True):
        algorithm = make(small(name, amp=amp, accelerate=accelerate))
        row: dict[str, float] = {}
        while not any(key.startswith("loss/") for key in row):
            row = algorithm.iterate()
        rows.append({key: value for key, value in row.items() if not key.startswith("time/")})
        note = algorithm.acceleration.note
        assert ("so in float32" in note) == (amp and accelerate == "native")
    assert rows[0] == rows[1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # what it imports
def test_torch_compile_computes_the_plain_steps() -> None:
    fast, plain = make_sac("compile"), make_sac("none")
    assert fast.choice.name == "torch.compile"
    generator = torch.Generator().manual_seed(0)
    metrics = torch.zeros(2, len(plain.metrics), len(SEEDS))
    for _ in range(20):
        rows, noise = problem(plain, generator)
        fast.load_state_dict(plain.state_dict())
        for learner, mine in zip((fast, plain), metrics, strict=True):
            learner.run(rows, noise, mine)
        for name in ("flat_critic", "flat_policy"):
            assert distance(*(getattr(each, name).grad for each in (fast, plain))) < 1e-4
        assert distance(*metrics) < 1e-4


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        ("nowhere:make", "policy_factory: 'nowhere:make' cannot be imported"),
        ("torch", "policy_factory: 'torch' cannot be imported"),
        ("torch:nothing", "policy_factory: 'torch:nothing' cannot be imported"),
        ("nets:make", r"there is no module 'nets' .* a file elsewhere is named"),
        ("nets.py:make", r"there is no file .*/nets.py"),
        ("my.nets.py:make", r"'my.nets' is no name of a module: rename the file"),
        ("__main__:network", r"'__main__:network' cannot .* put it into a mod"),
        (lambda i, o: nn.Linear(i, o), "policy_factory: expected a function that stands in a mo"),
        (nn.Linear(3, 1), "policy_factory: expected a function that stands in a mo"),
    ],
)
def test_factories_that_cannot_be_found(
    factory: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.nets.py").write_text("")
    monkeypatch.setattr(sys.modules["__main__"], "network", policy_network, raising=False)
    with pytest.raises(ValueError, match=message):
        small("sac", policy_factory=factory).check()


def one_output_more(num_inputs: int, num_outputs: int) -> nn.Module:
    return nn.Linear(num_inputs, num_outputs + 1)


def one_input_more(num_inputs: int, num_outputs: int) -> nn.Module:
    return nn.Linear(num_inputs + 1, num_outputs)


def of_inputs_alone(num_inputs: int) -> nn.Module:
    return nn.Linear(num_inputs, 1)


def nothing(num_inputs: int, num_outputs: int) -> None:
    pass


def raising(num_inputs: int, num_outputs: int) -> nn.Module:
    raise KeyError("no such network")


class Zeros(nn.Module):
    """Without parameters."""

    def __init__(self, num_inputs: int, num_outputs: int):
        super().__init__()
        self.num_outputs = num_outputs

    def forward(self, x: Tensor) -> Tensor:
        return x.new_zeros(len(x), self.num_outputs)


def frozen(num_inputs: int, num_outputs: int) -> nn.Module:
    return nn.Linear(num_inputs, num_outputs).requires_grad_(False)


def not_a_number(num_inputs: int, num_outputs: int) -> nn.Module:
    network = nn.Linear(num_inputs, num_outputs)
    nn.init.constant_(network.bias, torch.nan)
    return network


class Half(nn.Linear):
    """Which computes in bfloat16 inside."""

    def __init__(self, num_inputs: int, num_outputs: int):
        super().__init__(num_inputs, num_outputs, dtype=torch.bfloat16)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.to(torch.bfloat16)).float()


@pytest.mark.parametrize("name", ["sac", "td3", "ppo"])
@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (one_output_more, r"for [34] inputs its network is to have 1 outputs: .* got \(2, 2\)"),
        (one_input_more, "its network fails on two observations .* cannot be multiplied"),
        (of_inputs_alone, r"of_inputs_alone\([34], 1\) failed: .* takes 1 positional argument"),
        (nothing, "expected it to make a torch module, got None"),
        (raising, r"raising\([34], 1\) failed: 'no such network'"),
        (Zeros, "its network has no parameters to learn"),
        (frozen, "its network has no parameters to learn"),
        (not_a_number, r"of zeros its network makes \[nan\]"),
        (Half, r"expected torch.float32 parameters, got torch.bfloat16 \(weight\)"),
    ],
)
def test_networks_that_cannot_be_are_named(name: str, factory: Any, message: str) -> None:
    _, config = configurations()[name]
    with pytest.raises(ValueError, match=message) as raised:
        kind_of(name)(replace(config, critic_factory=factory))
    assert f"critic_factory: {__name__}:{factory.__name__}" in str(raised.value)


def test_networks_from_a_file_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "elsewhere" / "nets_of_a_file.py"
    file.parent.mkdir()
    file.write_text("from torch import nn\n\ndef make(i, o):\n    return nn.Linear(i, o)\n")
    config = small("sac", policy_factory="elsewhere/nets_of_a_file.py:make")
    assert config.policy_factory == f"{file}:make"
    monkeypatch.chdir(tmp_path.parent)
    assert isinstance(sac.SAC(config).learner.actor.networks[0], nn.Linear)


def lazy(num_inputs: int, num_outputs: int) -> nn.Module:
    return nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(num_outputs))


def test_networks_whose_sizes_come_with_their_inputs_begin_apart() -> None:
    for factory in (lazy, critic_network):
        config = small("sac", critic_factory=factory, num_seeds=2)
        networks = sac.SAC(config).learner.critic.networks
        weights = [tuple(next(each.parameters()).flatten().tolist()) for each in networks]
        assert len(set(weights)) == len(networks) == 4


ONE = nn.Linear(4, 1)


def one_for_all(num_inputs: int, num_outputs: int) -> nn.Module:
    return ONE


def test_one_network_in_two_places_is_refused() -> None:
    with pytest.raises(ValueError, match="the same module twice where 2 are needed"):
        sac.SAC(small("sac", critic_factory=one_for_all))


def test_a_file_with_networks_may_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())
    file = tmp_path / "nets_to_move.py"
    file.write_text("from torch import nn\n\ndef make(i, o):\n    return nn.Linear(i, o)\n")
    run_dir = tmp_path / "run"
    sac.train(small("sac", run_dir=run_dir, policy_factory=f"{file}:make", total_steps=70))
    elsewhere = file.rename(tmp_path / "nets_that_moved.py")
    elsewhere.write_text(elsewhere.read_text() + "\nother = make\n")
    with pytest.raises(ValueError, match=r"policy_factory: '.*nets_to_move.py:make' cannot be imp"):
        sac.train(resumed_config(run_dir, total_steps=80))
    with pytest.raises(ValueError, match=r"policy_factory was .*:make', is .*:other'"):
        sac.train(resumed_config(run_dir, total_steps=80, policy_factory=f"{elsewhere}:other"))
    sac.train(resumed_config(run_dir, total_steps=80, policy_factory=f"{elsewhere}:make"))
    assert load_policy(run_dir).step == 80


@pytest.mark.parametrize("name", ["td3", "sac"])
def test_own_networks_that_diverge_are_told_of_as_such(name: str, tmp_path: Path) -> None:
    module, config = configurations()[name]
    rate = {"policy_learning_rate": 1e30} if name == "td3" else {"learning_rate": 1e30}
    config = replace(config, run_dir=tmp_path, loggers=(), policy_factory=policy_network, **rate)
    with pytest.raises(DivergedError, match=r"is not finite|is nan"):
        module.train(config)
