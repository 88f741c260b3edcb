"""Accelerators stand aside for whatever a user has changed of the code that they replace."""

import sys
from collections.abc import Callable
from typing import Any

import ensembles
import pytest
import torch
from algorithms import make, small
from small_learners import inputs_of, learner_of, make_sac, make_td3, problem
from torch import nn
from trainings import assert_equal

from pyfastenv import _core
from pyfastenv.algorithms import flashsac, mbpo, ppo, sac
from pyfastenv.algorithms.flashsac.spec import FlashSACLearner
from pyfastenv.algorithms.mbpo.dynamics import EnsembleDynamics
from pyfastenv.algorithms.sac.spec import SACLearner
from pyfastenv.nn.networks import MLP
from pyfastenv.nn.optim import FlatAdam
from pyfastenv.training import accelerators
from pyfastenv.training.changes import changed_attributes


def make_amp_sac(accelerate: str) -> SACLearner:
    return make_sac(accelerate, bfloat16=True)


def make_flashsac(accelerate: str) -> FlashSACLearner:
    return learner_of((3, 4), amp=True, accelerate=accelerate)


def make_ensemble(accelerate: str) -> EnsembleDynamics:
    return ensembles.make((3, 4), bfloat16=True, native=accelerate != "none")


def make_ppo(accelerate: str, **options: Any) -> ppo.PPO:
    config = small("ppo", num_threads=1, accelerate=accelerate, **options)
    return make(config)


def steps_of(learner: Any) -> Any:
    """The results of three gradient steps, or of an epoch."""
    generator = torch.Generator().manual_seed(0)
    if isinstance(learner, ppo.PPO):
        learner.iterate()
        learner.envs.close()
        return learner.flat.parameter.detach().clone()
    if isinstance(learner, EnsembleDynamics):
        samples = torch.randn(2, 60, 6, generator=generator)
        with torch.no_grad():
            learner._epoch(samples, torch.randint(60, (2, 3, 100), generator=generator))
        return learner.flat.parameter.detach().clone()
    if isinstance(learner, FlashSACLearner):
        rows, noise = (each[None] for each in inputs_of(learner))
    else:
        rows, noise = problem(learner, generator)
    metrics = torch.zeros(len(learner.metrics), 2)
    learner.run(rows.repeat(3, 1, 1, 1), noise.repeat(3, *(noise.dim() - 1) * (1,)), metrics)
    return {"metrics": metrics, **learner.state_dict()}


def choice_of(learner: Any) -> accelerators.Choice:
    return learner.acceleration if isinstance(learner, ppo.PPO) else learner.choice


Make = Callable[[str], Any]
MAKERS: dict[str, Make] = {
    "sac": make_sac, "sac with amp": make_amp_sac, "td3": make_td3, "flashsac": make_flashsac,
    "ensemble": make_ensemble, "ppo": make_ppo,
}  # fmt: skip


def accelerated(name: str) -> Any:
    learner = MAKERS[name]("native")
    if name == "flashsac" and not _core.bfloat16_unit():
        pytest.skip("neither AMX nor AVX512-BF16")
    assert choice_of(learner).accelerator is not None
    return learner


# ---- methods -------------------------------------------------------------------------------------

METHODS = {
    "sac": ("update", "learning", "mixed_precision", "refresh"),
    "sac with amp": ("update", "learning", "mixed_precision", "refresh"),
    "td3": ("update", "as_networks", "learning", "mixed_precision"),
    "flashsac": ("update", "_improve_policy", "learning", "mixed_precision"),
    "ensemble": ("_train_step",),
    "ppo": ("epochs", "epoch", "backward", "_evaluate", "_columns", "refresh"),
}
PLACES = ("subclass", "instance", "class")


def in_turn(parts: dict[str, tuple[str, ...]], ways: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Each name's parts, each in one of the ways, which take turns."""
    return [
        (name, part, ways[(i + k) % len(ways)])
        for k, (name, mine) in enumerate(parts.items())
        for i, part in enumerate(mine)
    ]


def watched(method: Callable[..., Any], calls: list[str]) -> Callable[..., Any]:
    def mine(*args: Any, **kwargs: Any) -> Any:
        calls.append("")
        return method(*args, **kwargs)

    return mine


def assert_plain_by(learner: Any, name: str, why: str) -> None:
    """It says so, and computes what the plain program does."""
    choice = choice_of(learner)
    assert choice.accelerator is None and choice.name == "plain PyTorch"
    assert f": plain PyTorch ({why}" in choice.note
    assert_equal({"it": steps_of(learner)}, {"it": steps_of(MAKERS[name]("none"))})


@pytest.mark.parametrize(("name", "method", "place"), in_turn(METHODS, PLACES))
def test_a_method_of_ones_own_is_heard(
    name: str, method: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = accelerated(name)
    calls: list[str] = []
    if place == "subclass":
        learner.__class__ = type("Mine", (type(learner),), {})
        assert choice_of(learner).accelerator is not None  # it overrides nothing
    owner = learner if place == "instance" else type(learner)
    monkeypatch.setattr(owner, method, watched(getattr(owner, method), calls))
    assert choice_of(learner).note.count(f"{method} of your own") == 1
    assert_plain_by(learner, name, f"{method} of your own")
    assert calls


@pytest.mark.parametrize("name", MAKERS)
def test_accelerators_name_all_methods_that_they_pass_over(name: str) -> None:
    """An accelerator names the learner's own methods that only the plain program calls."""

    def called(learner: Any) -> set[str]:
        ours = {id(getattr(method, "__code__", None)): key for key, method in methods.items()}
        found: set[str] = set()

        def profile(frame: Any, event: str, _: Any) -> None:
            if event == "call" and id(frame.f_code) in ours:
                found.add(ours[id(frame.f_code)])

        before = sys.getprofile()
        sys.setprofile(profile)
        try:
            steps_of(learner)
        finally:
            sys.setprofile(before)
        return found

    fast, plain = accelerated(name), MAKERS[name]("none")
    methods = {
        key: getattr(getattr(type(fast), key), "__wrapped__", getattr(type(fast), key))
        for key in dir(type(fast))
        if not key.startswith("__")
    }
    mine = set(type(choice_of(fast).accelerator).methods)
    assert called(plain) - called(fast) <= mine
    assert mine <= set(METHODS[name])


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # what it imports
@pytest.mark.parametrize(("make", "method"), [(make_sac, "update"), (make_ppo, "backward")])
def test_torch_compile_stands_aside_too(make: Make, method: str) -> None:
    learner = make("compile")
    assert choice_of(learner).name == "torch.compile"
    calls: list[str] = []
    setattr(learner, method, watched(getattr(learner, method), calls))
    assert choice_of(learner).note == f"Gradient steps: plain PyTorch ({method} of your own)"
    steps_of(learner)
    assert calls


def test_a_class_that_nobody_remembers_is_named() -> None:
    with pytest.raises(TypeError, match="Forgotten: expected a class under @as_written"):
        changed_attributes(Forgotten(), ["update"])


class Forgotten:
    """A class without a specification."""


def test_a_model_says_whose_training_it_is() -> None:
    algorithm = make(small("mbpo"))
    assert algorithm.acceleration.note == ""
    step = algorithm.model._train_step
    algorithm.model._train_step = lambda *args: step(*args)  # type: ignore[method-assign]
    note = "The model's training: plain PyTorch (_train_step of your own)"
    assert algorithm.acceleration.note == note
    algorithm.learner.update = lambda *args: None  # type: ignore[method-assign]
    both = "Gradient steps: plain PyTorch (update of your own)\n" + note
    assert algorithm.acceleration.note == both
    algorithm.envs.close()
    assert isinstance(algorithm, mbpo.MBPO)


# ---- numbers, networks, optimisers ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        *(("sac", "target_entropy"), ("sac with amp", "target_entropy")),
        *(("td3", "discount"), ("flashsac", "target_entropy"), ("ppo", "obs_size")),
        *(("ppo", "config"), ("ensemble", "options")),
        ("ensemble", "num_outputs"),
    ],
)
def test_a_property_in_a_numbers_place_is_heard(name: str, attribute: str) -> None:
    learner = accelerated(name)
    value = vars(learner).pop(attribute)
    learner.__class__ = type("Mine", (type(learner),), {attribute: property(lambda _: value)})
    assert_plain_by(learner, name, f"{attribute} of your own")


def test_a_bound_that_only_the_accelerator_reads_is_heard() -> None:
    learner = accelerated("flashsac")
    learner.log_std_range = (-1.0, 0.0)
    assert_plain_by(learner, "flashsac", "log_std_range of your own")


NETWORKS = {
    "sac": ("actor", "critic", "target"),
    "sac with amp": ("actor", "critic", "target"),
    "td3": ("actor", "critic", "target_actor", "target_critic"),
    "flashsac": ("actor", "critic", "target"),
    "ppo": ("policy", "value"),
}


def hook(part: nn.Module, calls: list[str]) -> None:
    part.register_forward_hook(lambda *_: calls.append(""))


def subclass(part: nn.Module, calls: list[str]) -> None:
    part.__class__ = type("Mine", (type(part),), {"forward": watched(type(part).forward, calls)})


def own_forward(part: nn.Module, calls: list[str]) -> None:
    part.forward = watched(part.forward, calls)


@pytest.mark.parametrize(
    ("name", "network", "change"), in_turn(NETWORKS, (hook, subclass, own_forward))
)
def test_changed_networks_are_heard(name: str, network: str, change: Any) -> None:
    learner = accelerated(name)
    calls: list[str] = []
    change(getattr(learner, network), calls)
    why = f"hooks on {network}" if change is hook else f"{network} of your own"
    assert_plain_by(learner, name, why)
    assert calls


@pytest.mark.parametrize(
    ("change", "why"), [(hook, "hooks on critic"), (own_forward, "critic of your own")]
)
def test_changed_layers_inside_flashsacs_networks_are_heard(change: Any, why: str) -> None:
    learner = accelerated("flashsac")
    calls: list[str] = []
    last = [part for part in learner.critic.modules() if isinstance(part, nn.ReLU)][-1]
    change(last if change is hook else learner.critic.networks[0][1], calls)
    assert_plain_by(learner, "flashsac", why)
    assert calls


def test_flashsacs_networks_are_compared_number_by_number() -> None:
    for change in (
        lambda block: setattr(block.inner[1], "momentum", 0.5),
        lambda block: block.inner.__setitem__(2, nn.Identity()),
        lambda block: block.inner.append(nn.ReLU()),
    ):
        learner = accelerated("flashsac")
        block = learner.critic.networks[0][2]
        change(block)
        assert choice_of(learner).accelerator is None
        note = choice_of(learner).note
        assert "critic of your own" in note or "networks as flashsac.py makes them" in note


@pytest.mark.parametrize("name", ["sac", "sac with amp", "td3", "flashsac", "ppo"])
def test_hooks_on_gradients_are_called(name: str) -> None:
    learner = accelerated(name)
    network = "policy" if name == "ppo" else "actor"
    calls: list[str] = []
    next(getattr(learner, network).parameters()).register_hook(lambda _: calls.append(""))
    assert_plain_by(learner, name, f"hooks on {network}")
    assert calls


@pytest.mark.parametrize("name", MAKERS)
def test_frozen_parameters_are_refused_instead_of_trained(name: str) -> None:
    learner = accelerated(name)
    network = {"ppo": "policy", "ensemble": "network"}.get(name, "actor")
    frozen = next(getattr(learner, network).parameters()).requires_grad_(False)
    before = frozen.clone()
    assert f"frozen parameters in {network}" in choice_of(learner).note
    with pytest.raises(ValueError, match=r"expected none frozen .* factory"):
        steps_of(learner)
    assert torch.equal(frozen, before)


class Halving(FlatAdam):
    """Adam that makes half of the step."""

    def step(self) -> None:
        before = self.flat.parameter.detach().clone()
        super().step()
        self.flat.parameter.data.lerp_(before, 0.5)


OPTIMIZERS = {
    "sac with amp": ("policy_optimizer", "critic_optimizer"),
    "ensemble": ("optimizer",),
    "ppo": ("optimizer",),
}
BOTH = ("policy_optimizer", "critic_optimizer")
ALL_OPTIMIZERS = OPTIMIZERS | dict.fromkeys(("sac", "td3", "flashsac"), BOTH)


@pytest.mark.parametrize(
    ("name", "optimizer"), [(name, each) for name in OPTIMIZERS for each in OPTIMIZERS[name]]
)
def test_an_optimiser_of_another_class_makes_its_own_steps(name: str, optimizer: str) -> None:
    learner, plain = accelerated(name), MAKERS[name]("none")
    for each in (learner, plain):
        getattr(each, optimizer).__class__ = Halving
    choice = choice_of(learner)
    by = "written-out gradients" if name.startswith("sac") else "plain PyTorch"  # which call it
    assert choice.name == by and f": {by} ({optimizer} of your own)" in choice.note
    for each in (learner, plain):
        steps_of(each)
    ours, theirs = (getattr(each, optimizer).flat.parameter for each in (learner, plain))
    torch.testing.assert_close(ours, theirs, rtol=0.02, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "optimizer"),
    [(name, each) for name in ALL_OPTIMIZERS for each in ALL_OPTIMIZERS[name]],
)
def test_betas_and_eps_reach_every_accelerator(name: str, optimizer: str) -> None:
    """The moments after three steps, or an epoch, are those of the plain program."""
    fast, plain, start = accelerated(name), MAKERS[name]("none"), MAKERS[name]("none")
    kind = type(choice_of(fast).accelerator)
    for learner in (fast, plain):
        for each in ALL_OPTIMIZERS[name]:
            getattr(learner, each).betas, getattr(learner, each).eps = (0.5, 0.7), 0.1
        steps_of(learner)
    assert type(choice_of(fast).accelerator) is kind
    ours, theirs, begin = (getattr(learner, optimizer) for learner in (fast, plain, start))
    parameters = [each.flat.parameter.detach() for each in (ours, theirs, begin)]
    pairs = [
        (ours.mean, theirs.mean),
        (ours.square, theirs.square),
        (parameters[0] - parameters[2], parameters[1] - parameters[2]),
    ]
    for mine, its in pairs:  # far apart with the stock ones
        assert float((mine - its).norm() / its.norm()) < 0.2  # bfloat16


def test_two_optimisers_of_different_betas_are_refused_by_compiled_steps() -> None:
    learner = accelerated("sac")
    compiled = choice_of(learner).name
    learner.critic_optimizer.betas = (0.5, 0.9)
    why = "only where both optimisers have the same betas and eps"
    note = f"Gradient steps: written-out gradients (why not {compiled}: {why})"
    assert choice_of(learner)[1:] == (
        "written-out gradients",
        note,
        (f"why not {compiled}: {why}",),
    )
    learner = accelerated("sac")
    learner.policy_optimizer.num_steps = 7
    assert choice_of(learner).name == "written-out gradients"
    assert "only where both optimisers have made as many steps" in choice_of(learner).note


def test_networks_of_other_sizes_are_not_taken_for_the_options() -> None:
    class Narrow(SACLearner):
        def make_networks(self, seeds: Any, *recipes: Any) -> list[nn.Module]:
            made = super().make_networks(seeds, *recipes)
            for network in made:
                assert isinstance(network, MLP)
                network.activation = "tanh"
            return made

    stock = accelerated("sac with amp")
    options = stock.options
    mine = Narrow(stock.layout, [3, 4], options)
    assert mine.choice.name == "written-out gradients"  # which reads the networks themselves


def test_another_network_in_its_place_is_heard() -> None:
    learner, other = accelerated("sac with amp"), make_amp_sac("native")
    learner.actor = other.actor
    assert choice_of(learner).accelerator is None
    assert "flat_policy with other parameters than those of actor" in choice_of(learner).note


def test_losses_replaced_later_are_heard() -> None:
    learner = accelerated("sac")
    calls: list[str] = []
    learner.functions = sac.Functions(critic_loss=watched(sac.critic_loss, calls))
    assert_plain_by(learner, "sac", "critic_loss of your own")
    assert calls
    learner = accelerated("flashsac")
    learner.functions = flashsac.Functions(policy_loss=watched(flashsac.policy_loss, calls))
    assert_plain_by(learner, "flashsac", "policy_loss of your own")


def test_callbacks_are_heard_at_the_next_iteration() -> None:
    algorithm = sac.SAC(small("sac"))
    for _ in range(3):
        algorithm.iterate()
    assert algorithm.acceleration.name == "compiled in float32"
    calls: list[str] = []
    algorithm.learner.update = watched(algorithm.learner.update, calls)  # type: ignore[method-assign]
    algorithm.iterate()
    assert calls and algorithm.acceleration.note.endswith("(update of your own)")
