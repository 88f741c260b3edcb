"""The flow that tells real transitions from predicted ones, and what it does to the model: against
plain torch in float64."""

import copy
import math
from typing import Any

import pytest
import torch
from ensembles import member, randomised
from small_learners import as_sequential, batch_of
from torch import Tensor
from trainings import assert_equal

from pyfastenv.algorithms.mbpo.dynamics import DynamicsOptions, EnsembleDynamics
from pyfastenv.algorithms.mbpo.flow import FlowAgent, FlowOptions
from pyfastenv.algorithms.sac.spec import SACLearner, SACOptions
from pyfastenv.nn.streams import SeedStreams
from pyfastenv.sampling.buffers import RowLayout

LAYOUT = RowLayout(obs_size=2, action_size=1)
MEMBERS, ELITES = 3, 2


def make(seeds: tuple[int, ...] = (0,), *, new: bool = False, **options: Any) -> FlowAgent:
    """An agent, and a model whose parameters, standardisation and elites are not ``new`` ones."""
    model = EnsembleDynamics(
        LAYOUT,
        seeds,
        DynamicsOptions(ensemble_size=MEMBERS, num_elites=ELITES, hidden_sizes=(12, 8)),
    )
    learner = SACLearner(LAYOUT, seeds, SACOptions(hidden_sizes=(8,)))
    defaults = {"hidden_size": 24, "critic_hidden_sizes": (16, 8)}
    agent = FlowAgent(LAYOUT, seeds, FlowOptions(**{**defaults, **options}), model, learner)
    if not new:
        randomised(model)
    return agent


def real(num_seeds: int, n: int, seed: int = 0) -> Tensor:
    return batch_of(LAYOUT, (num_seeds, n), torch.Generator().manual_seed(seed))


def predicted(num_seeds: int, n: int, seed: int = 0) -> Tensor:
    """Rows whose rewards are not what real ones are."""
    rows = real(num_seeds, n, seed + 1_000)
    LAYOUT.rewards(rows).add_(3.0)
    return rows


# ---- the flow ----------------------------------------------------------------------------


def test_the_flow_learns_to_tell_real_from_predicted() -> None:
    agent = make((0, 1), flow_learning_rate=2e-3)
    agent.standardise_by(real(2, 2_000))
    losses = [
        agent.update_flow(real(2, 128, seed), predicted(2, 128, seed)).tolist()
        for seed in range(80)
    ]
    test, fake = real(2, 1_000, 99), predicted(2, 1_000, 99)
    for k in range(2):
        mine = [loss[k] for loss in losses]
        assert sum(mine[-10:]) / 10 < mine[0] - 0.5
    looks_real, looks_fake = agent.reward(test), agent.reward(fake)
    assert looks_real.shape == (2, 1_000)
    assert (looks_real.mean(1) > 1.5).all() and (looks_fake.mean(1) < 0.5).all()
    for rewards in (looks_real, looks_fake):
        assert rewards.min() >= 0.0 and rewards.max() <= 2.0


def test_the_flows_step_is_the_formula() -> None:
    agent = make((0, 1), likelihood_coef=0.7, max_grad_norm=0.5, flow_learning_rate=1e-3)
    rows = real(2, 500)
    agent.standardise_by(rows)
    flow = copy.deepcopy(agent.flow).double()
    env_rows, model_rows = real(2, 30, 1), predicted(2, 20, 1)[:, :30]
    model_rows = torch.cat((model_rows, predicted(2, 10, 2)), 1)

    def parts(rows: Tensor) -> Tensor:
        """s, a, r."""
        return torch.cat((rows[..., :3], rows[..., 5:6]), -1)

    # standardised by the real rows
    torch.testing.assert_close(flow.flows.mean.float()[::2], parts(rows).mean(1))
    torch.testing.assert_close(flow.flows.std.float()[1::2], parts(rows).std(1))
    on_env, on_model = (
        flow.flows.log_prob(parts(rows).double().repeat_interleave(2, 0))
        for rows in (env_rows, model_rows)
    )
    expected = []
    for k in range(2):
        first, second = 2 * k, 2 * k + 1  # p1, p2
        ratio_env = torch.tanh(on_env[first] - on_env[second])
        ratio_model = torch.tanh(on_model[first] - on_model[second])
        loss = ratio_env.exp().mean().log() - ratio_model.mean()
        expected.append(loss - 0.7 * (on_model[first].mean() + on_env[second].mean()))
    names = [name for name, _ in flow.named_parameters()]
    gradients = dict(
        zip(names, torch.autograd.grad(sum(expected), list(flow.parameters())), strict=True)
    )
    reward = agent.reward(env_rows)
    ratios = (on_env[::2] - on_env[1::2]).detach()
    torch.testing.assert_close(reward.double(), 1.0 - ratios.tanh(), rtol=1e-4, atol=1e-4)

    losses = agent.update_flow(env_rows, model_rows)
    assert losses.tolist() == pytest.approx([loss.item() for loss in expected], rel=1e-4)
    norms = [
        math.sqrt(sum(g[2 * k : 2 * k + 2].square().sum().item() for g in gradients.values()))
        for k in range(2)
    ]
    assert min(norms) > 0.5  # both are clipped, each by its own norm
    for name, parameter in agent.flow.named_parameters():
        for k in range(2):
            mine = slice(2 * k, 2 * k + 2)
            clipped = gradients[name][mine] * (0.5 / norms[k])
            assert parameter.grad is not None
            torch.testing.assert_close(parameter.grad[mine].double(), clipped, rtol=1e-3, atol=1e-5)


# ---- the model as a policy -----------------------------------------------------------------------


class Reference:
    """The agent's update of a seed's critics and model, in plain torch."""

    def __init__(self, agent: FlowAgent, k: int):
        self.agent, self.k = agent, k
        self.critics = [as_sequential(agent.critic, 2 * k + i) for i in range(2)]
        self.targets = [as_sequential(agent.target, 2 * k + i) for i in range(2)]

    def moments(self, pairs: Tensor) -> tuple[Tensor, Tensor]:
        """Means and standard deviations of (r, s' - s); row i is the (i mod E)-th elite's."""
        model = self.agent.dynamics
        elites = [int(model.elites[self.k, i % ELITES]) for i in range(len(pairs))]
        rows = [
            member(model, self.k, elite, pair[None])
            for elite, pair in zip(elites, pairs, strict=True)
        ]
        means, stds = zip(*rows, strict=True)
        return torch.cat(means), torch.cat(stds)

    def outcome(self, pairs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """A sample, and its log-density."""
        mean, std = self.moments(pairs)
        outcome = mean + std * noise.double()
        return outcome, torch.distributions.Normal(mean, std).log_prob(outcome).sum(-1)

    def judge(self, critics: list[Any], pairs: Tensor, outcome: Tensor) -> list[Tensor]:
        model = self.agent.dynamics
        state = (pairs - model.input_mean[self.k]) / model.input_std[self.k]
        scaled = outcome / self.agent._outcome_std[self.k]
        inputs = torch.cat((state.double(), scaled.double()), -1)
        return [critic(inputs)[:, 0] for critic in critics]


def happened_in(rows: Tensor) -> Tensor:
    """(r, s' - s)."""
    return torch.cat((rows[:, 5:6], rows[:, 3:5] - rows[:, :2]), -1)


def steps_of(agent: FlowAgent, temperature: float = 0.3) -> tuple[Tensor, Tensor, Tensor]:
    """An agent in the middle of its life; a batch and noise for it."""
    rows = real(agent.num_seeds, 12, 5)
    rows[..., 5] *= 4.0  # the rewards' scale is another than the observations'
    agent.standardise_by(rows)
    generator = torch.Generator().manual_seed(6)
    with torch.no_grad():
        agent.log_temperature.copy_(math.log(temperature) + 0.1 * torch.arange(agent.num_seeds))
        for parameter in agent.target.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    noise = torch.randn(agent.num_seeds, 12, 3, generator=generator)
    return rows, noise, torch.randn(agent.num_seeds, 12, 1, generator=generator)


def test_critics_steps_are_those_of_plain_torch() -> None:
    agent = make((3, 4), gamma=0.9, tau=0.2)
    rows, noise, action_noise = steps_of(agent)
    references = [Reference(agent, k) for k in range(2)]
    expected = []
    rewards = agent.reward(rows)
    actions = agent.learner.act(LAYOUT.next_obs(rows), action_noise)
    old_target = [p.detach().clone() for p in agent.target.parameters()]
    for k, reference in enumerate(references):
        mine = rows[k]
        next_pairs = torch.cat((mine[:, 3:5], actions[k]), -1)
        with torch.no_grad():
            outcome, log_probs = reference.outcome(next_pairs, noise[k])
            soft = torch.min(*reference.judge(reference.targets, next_pairs, outcome))
            soft = soft - agent.log_temperature[k].exp() * log_probs
            wanted = rewards[k] + 0.9 * mine[:, 6] * soft
        values = reference.judge(reference.critics, mine[:, :3], happened_in(mine))
        loss = sum(0.5 * (value - wanted).square().mean() for value in values)
        for critic in reference.critics:
            expected.append(torch.autograd.grad(loss, critic.parameters(), retain_graph=True))
    assert (LAYOUT.continues(rows) == 0.0).any(1).all()
    with torch.no_grad():
        assert torch.equal(agent._update_critic(rows, action_noise, noise), rewards)
    for i, gradients in enumerate(expected):
        weights, biases = gradients[::2], gradients[1::2]
        for ours, theirs in zip(agent.critic.weight_list, weights, strict=True):
            assert_near(ours.grad[i], theirs.t())
        for ours, theirs in zip(agent.critic.bias_list, biases, strict=True):
            assert_near(ours.grad[i], theirs)
    for target, online, old in zip(
        agent.target.parameters(), agent.critic.parameters(), old_target, strict=True
    ):
        torch.testing.assert_close(target, 0.8 * old + 0.2 * online)


def assert_near(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours.double(), theirs.double(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("agent_coef", [0.0, 1.0])
def test_the_models_steps_are_those_of_plain_torch(agent_coef: float) -> None:
    agent = make((3, 4), agent_coef=agent_coef)
    rows, noise, _ = steps_of(agent)
    model = agent.dynamics
    parameters = [*model.network.parameters(), model.max_log_var, model.min_log_var]
    loss, entropies = torch.zeros((), dtype=torch.float64), []
    for k in range(2):
        reference = Reference(agent, k)
        pairs, happened = rows[k, :, :3], happened_in(rows[k]).double()
        mean, std = reference.moments(pairs)
        outcome, log_probs = reference.outcome(pairs, noise[k])
        value = torch.min(*reference.judge(reference.critics, pairs, outcome))
        temperature = agent.log_temperature[k].exp().detach()
        agent_loss = (temperature * log_probs - value).mean()
        agent_loss = agent_loss / (1.0 + value.detach().abs().mean())
        likelihood = (((mean - happened) / std).square() + 2.0 * std.log()).mean()
        loss = loss + likelihood + agent_coef * agent_loss
        entropies.append(-log_probs.mean().item())
    expected = torch.autograd.grad(loss, parameters)
    target = agent._update_model(rows, noise, None)
    assert target.tolist() == pytest.approx(entropies, rel=1e-4)
    for parameter, gradient in zip(parameters, expected, strict=True):
        assert parameter.grad is not None and gradient.any()
        assert_near(parameter.grad, gradient)

    # the temperature: towards the entropy that is aimed at, which stays
    before = agent.log_temperature.detach().clone()
    aim = target + torch.tensor([5.0, -5.0])
    assert agent._update_model(rows, noise, aim) is aim
    assert (agent.log_temperature.detach() - before).sign().tolist() == [1.0, -1.0]


def test_improving_changes_the_elites_and_nothing_of_the_policy() -> None:
    agent = make((0, 1))
    agent.standardise_by(real(2, 500))
    model = agent.dynamics
    before = {
        name: copy.deepcopy(part.state_dict())
        for name, part in (("model", model), ("learner", agent.learner), ("flow", agent.flow))
    }
    pairs, noise = LAYOUT.obs_actions(real(2, 20)).contiguous(), torch.ones(2, 20, 3)
    predictions = [model.predict(pairs, noise)]
    batches = torch.stack([real(2, 25, seed) for seed in range(4)])  # no multiple of the elites
    rewards = agent.improve_model(batches, SeedStreams([0, 1]))
    assert rewards.shape == (2,) and ((rewards > 0.0) & (rewards < 2.0)).all()
    torch.testing.assert_close(rewards, agent.reward(batches[-1][:, :24]).mean(1))
    assert_equal(agent.learner.state_dict(), before["learner"])
    assert_equal(dict(agent.flow.state_dict()), dict(before["flow"]))
    for parameter, old in zip(
        model.network.parameters(), before["model"]["network"].values(), strict=True
    ):
        for k in range(2):
            elites = {k * MEMBERS + int(m) for m in model.elites[k]}
            for m in range(k * MEMBERS, (k + 1) * MEMBERS):
                assert torch.equal(parameter[m], old[m]) == (m not in elites)
    predictions.append(model.predict(pairs, noise))  # with the new parameters
    assert not torch.equal(predictions[0].rewards, predictions[1].rewards)
    for name in ("elites", "input_mean", "input_std"):
        assert torch.equal(getattr(model, name), before["model"][name])
