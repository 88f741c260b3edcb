"""Rollouts: the trajectories of `step`, torch's distributions, NumPy's streams."""

from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from scripts import interrupt
from threads import run_threads
from torch import Tensor, nn
from torch.distributions import (
    AffineTransform,
    Categorical,
    Normal,
    TanhTransform,
    TransformedDistribution,
)

import pyfastenv
from pyfastenv import EnvError, PolicySpec, RolloutBatch, rollout
from pyfastenv.nn.networks import MLP, from_sequential
from pyfastenv.sampling.device_sampling import DeviceSampler

ACTIVATIONS = {
    "tanh": nn.Tanh(),
    "relu": nn.ReLU(),
    "elu": nn.ELU(),
    "silu": nn.SiLU(),
    "identity": nn.Identity(),
}
MODES = ["SameStep", "NextStep"]
NUM_ENVS = 5
SEED = 40
ATOL = 1e-5


def make(env_id: str, mode: str = "SameStep", **kwargs: Any) -> Any:
    """Short episodes, seeded and reset; differing tasks where there are any."""
    kwargs = {"num_envs": NUM_ENVS, "num_threads": 2, "max_episode_steps": 23, **kwargs}
    envs = pyfastenv.make_vec(env_id, autoreset_mode=mode, **kwargs)
    if env_id in ("HalfCheetahDir-v5", "AntGoal-v5"):
        envs.reset_task(envs.sample_tasks(envs.num_envs, seed=4))
    envs.reset(seed=SEED)
    return envs


def make_spec(
    envs: Any,
    distribution: str = "gaussian",
    *,
    hidden: tuple[int, ...] = (17, 7),
    num_policies: int = 1,
    network_log_std: bool = False,
    normalise: bool = False,
    layer_norm: bool = False,
    seed: int = 0,
    **fields: Any,
) -> PolicySpec:
    """Random numbers everywhere, so large that all of them matter."""
    rng = np.random.default_rng(seed)

    def draw(*shape: int, scale: float = 1.0) -> np.ndarray:
        return (scale * rng.standard_normal((num_policies, *shape))).astype(np.float32)

    obs_size = envs.single_observation_space.shape[0]
    if distribution == "categorical":
        outputs = envs.single_action_space.n
    else:
        action_size = envs.single_action_space.shape[0]
        outputs = 2 * action_size if network_log_std else action_size
        if distribution in ("gaussian", "tanh_gaussian") and not network_log_std:
            fields.setdefault("log_std", draw(action_size, scale=0.3) - np.float32(0.5))
    if normalise:
        fields["obs_mean"] = draw(obs_size, scale=0.1)
        fields["obs_scale"] = np.exp(draw(obs_size, scale=0.3))
    sizes = [obs_size, *hidden, outputs]
    if layer_norm:
        fields["layer_norms"] = [draw(2, size) for size in hidden]
    return PolicySpec(
        weights=[draw(a, b, scale=1 / np.sqrt(a)) for a, b in pairwise(sizes)],
        biases=[draw(b, scale=0.1) for b in sizes[1:]],
        distribution=distribution,
        **fields,
    )


# ---- what torch makes of a policy ----------------------------------------------------------------


def outputs_of(spec: PolicySpec, obs: Tensor, k: int = 0) -> Tensor:
    """The network in float64, from the float32 observations it saw."""
    x = obs.float()
    if spec.obs_mean is not None and spec.obs_scale is not None:
        x = (x - torch.tensor(spec.obs_mean[k])) * torch.tensor(spec.obs_scale[k])
    if spec.obs_clip > 0:
        x = x.clamp(-spec.obs_clip, spec.obs_clip)
    x = x.double()
    last = len(spec.weights) - 1
    for i, (weight, bias) in enumerate(zip(spec.weights, spec.biases, strict=True)):
        x = x @ torch.tensor(weight[k]).double() + torch.tensor(bias[k]).double()
        if i < last:
            if spec.layer_norms:
                scale, shift = torch.tensor(spec.layer_norms[i][k]).double()
                x = nn.functional.layer_norm(x, x.shape[-1:], scale, shift)
            x = ACTIVATIONS[spec.activation](x)
    return x


def bounds_of(envs: Any) -> tuple[Tensor, Tensor]:
    space = envs.single_action_space
    low, high = torch.tensor(space.low).double(), torch.tensor(space.high).double()
    return (high + low) / 2, (high - low) / 2


def normal_of(spec: PolicySpec, outputs: Tensor, k: int = 0) -> Normal:
    if spec.log_std is None:
        mean, log_std = outputs.chunk(2, -1)
        log_std = log_std.clamp(*spec.log_std_range)
    else:
        mean, log_std = outputs, torch.tensor(spec.log_std[k]).double().expand_as(outputs)
    return Normal(mean, log_std.exp())


def generators(num_envs: int = NUM_ENVS, seed: int = SEED) -> list[np.random.Generator]:
    """The streams that policies draw from."""
    return [
        np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed + i, spawn_key=(1,))))
        for i in range(num_envs)
    ]


def expected_choices(
    envs: Any,
    spec: PolicySpec,
    batch: RolloutBatch,
    streams: list[np.random.Generator],
    policy_id: list[int] | None = None,
) -> tuple[Tensor, Tensor]:
    """Actions and their log-probabilities from torch's distributions and NumPy's numbers."""
    outputs = torch.stack(
        [
            outputs_of(spec, batch.obs[:, i], policy_id[i] if policy_id else 0)
            for i in range(len(streams))
        ],
        1,
    )  # (T, N, outputs)
    num_steps = batch.num_steps
    if spec.distribution == "categorical":
        uniform = np.stack([stream.random(num_steps) for stream in streams], 1)
        cumulative = Categorical(logits=outputs).probs.cumsum(-1)
        actions = (torch.tensor(uniform)[..., None] >= cumulative).sum(-1)
        return actions, Categorical(logits=outputs).log_prob(batch.actions)
    size = envs.single_action_space.shape[0]
    draws = spec.distribution != "deterministic" or spec.noise > 0
    z = torch.zeros(num_steps, len(streams), size, dtype=torch.float64)
    if draws and not spec.greedy:
        for i, stream in enumerate(streams):
            z[:, i] = torch.tensor(stream.standard_normal((num_steps, size)))
    center, half = bounds_of(envs)
    if spec.distribution == "deterministic":
        noisy = outputs.tanh() + np.float32(spec.noise) * z
        return center + half * noisy.clamp(-1, 1), torch.zeros(z.shape[:2])
    columns = [
        normal_of(spec, outputs[:, i], policy_id[i] if policy_id else 0)
        for i in range(len(streams))
    ]
    normal = Normal(
        torch.stack([column.loc for column in columns], 1),
        torch.stack([column.scale for column in columns], 1),
    )
    drawn = normal.loc + normal.scale * z
    if spec.distribution == "gaussian":
        return drawn, normal.log_prob(batch.actions.double()).sum(-1)
    squashed = TransformedDistribution(
        normal, [TanhTransform(cache_size=1), AffineTransform(center, half, cache_size=1)]
    )
    actions = drawn
    for transform in squashed.transforms:
        actions = transform(actions)  # cached: log_prob does not invert tanh where it is flat
    return actions, squashed.log_prob(actions).sum(-1)


def assert_choices(envs: Any, spec: PolicySpec, batch: RolloutBatch, **kwargs: Any) -> None:
    streams = kwargs.pop("streams", None) or generators(batch.num_envs)
    actions, log_probs = expected_choices(envs, spec, batch, streams, **kwargs)
    if spec.distribution == "categorical":
        assert torch.equal(batch.actions, actions)
    else:
        torch.testing.assert_close(batch.actions.double(), actions, rtol=ATOL, atol=ATOL)
    torch.testing.assert_close(batch.log_probs.double(), log_probs.double(), rtol=ATOL, atol=ATOL)


POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    "gaussian": ("Hopper-v5", {"distribution": "gaussian"}),
    "gaussian, network log-std": ("Hopper-v5", {"network_log_std": True}),
    "gaussian, clamped log-std": (
        "Hopper-v5",
        {"network_log_std": True, "log_std_range": (-0.25, 0.25)},
    ),
    "tanh_gaussian": ("Pendulum-v1", {"distribution": "tanh_gaussian"}),
    "tanh_gaussian, network log-std": (
        "HalfCheetah-v5",
        {"distribution": "tanh_gaussian", "network_log_std": True, "log_std_range": (-2.0, 0.0)},
    ),
    "categorical": ("Acrobot-v1", {"distribution": "categorical"}),
    "deterministic": ("Pendulum-v1", {"distribution": "deterministic"}),
    "deterministic, noise": ("HalfCheetah-v5", {"distribution": "deterministic", "noise": 0.3}),
}


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("name", POLICIES)
def test_choices_are_those_of_torch_and_numpy(name: str, activation: str, layer_norm: bool) -> None:
    env_id, kwargs = POLICIES[name]
    with closing(make(env_id)) as envs:
        spec = make_spec(envs, activation=activation, layer_norm=layer_norm, **kwargs)
        assert_choices(envs, spec, rollout(envs, spec, 40))


@pytest.mark.parametrize(
    "hidden", [(), (1,), (7, 17), (65, 1, 7), (17, 65, 7, 1), (64, 64), (130,)], ids=str
)
@pytest.mark.parametrize("distribution", ["gaussian", "categorical"])
@pytest.mark.parametrize("layer_norm", [False, True])
def test_networks_of_any_size(distribution: str, hidden: tuple[int, ...], layer_norm: bool) -> None:
    with closing(make("CartPole-v1" if distribution == "categorical" else "Pendulum-v1")) as envs:
        spec = make_spec(envs, distribution, hidden=hidden, layer_norm=layer_norm)
        assert_choices(envs, spec, rollout(envs, spec, 60))


@pytest.mark.parametrize("obs_clip", [0.0, 0.7])
@pytest.mark.parametrize("normalise", [False, True])
def test_observations_are_normalised_and_clipped(normalise: bool, obs_clip: float) -> None:
    with closing(make("Hopper-v5")) as envs:
        spec = make_spec(envs, normalise=normalise, obs_clip=obs_clip)
        batch = rollout(envs, spec, 60)
        assert_choices(envs, spec, batch)
        assert batch.obs.abs().max() > 0.7  # recorded as they were


@pytest.mark.parametrize("distribution", ["gaussian", "tanh_gaussian"])
def test_each_environment_follows_its_policy(distribution: str) -> None:
    with closing(make("Hopper-v5")) as envs:
        spec = make_spec(envs, distribution, num_policies=3, normalise=True)
        policy_id = [2, 0, 0, 1, 2]
        for ids in (policy_id, np.array(policy_id, np.int32), torch.tensor(policy_id)):
            envs.reset(seed=SEED)
            assert_choices(envs, spec, rollout(envs, spec, 40, policy_id=ids), policy_id=policy_id)
        envs.reset(seed=SEED)
        assert_choices(envs, spec, rollout(envs, spec, 40))  # the first


def test_modules_are_policies() -> None:
    torch.manual_seed(0)
    with closing(make("CartPole-v1")) as envs:

        class Policy(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.network = MLP((4, 33, 2), activation="elu")

            def spec(self) -> PolicySpec:
                return self.network.spec(distribution="categorical")

        policy = Policy()
        batch = rollout(envs, policy, 50)
        logits = policy.network(batch.obs.reshape(1, -1, 4)[0])[0]
        expected = Categorical(logits=logits).log_prob(batch.actions.reshape(-1))
        torch.testing.assert_close(batch.log_probs.reshape(-1), expected, rtol=ATOL, atol=ATOL)

        envs.reset(seed=SEED)
        core = policy.spec().to_core(envs.single_action_space)
        again = rollout(envs, core, 50)
        assert torch.equal(again.actions, batch.actions)


def test_sequentials_are_policies() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Linear(3, 7), nn.SiLU(), nn.Linear(7, 17), nn.SiLU(), nn.Linear(17, 1)
    )
    with closing(make("Pendulum-v1")) as envs:
        batch = rollout(envs, from_sequential(network, log_std=torch.zeros(1)), 50)
        expected = Normal(network(batch.obs), 1.0).log_prob(batch.actions).sum(-1)
        torch.testing.assert_close(batch.log_probs, expected, rtol=ATOL, atol=ATOL)


# ---- distributions and streams -------------------------------------------------------------------


def test_streams_go_on_from_rollout_to_rollout() -> None:
    with closing(make("Pendulum-v1")) as envs:
        spec = make_spec(envs)
        streams = generators()
        for num_steps in (1, 13, 2):
            assert_choices(envs, spec, rollout(envs, spec, num_steps), streams=streams)
        envs.reset()  # without a seed: the streams go on
        assert_choices(envs, spec, rollout(envs, spec, 5), streams=streams)
        envs.reset(seed=[9, None, 3, 2**70, None])
        for i, seed in ((0, 9), (2, 3), (3, 2**70)):
            streams[i] = generators(1, seed)[0]
        assert_choices(envs, spec, rollout(envs, spec, 5), streams=streams)


def test_the_environments_own_stream_is_another() -> None:
    with closing(make("Pendulum-v1")) as envs, closing(make("Pendulum-v1")) as twin:
        rollout(envs, make_spec(envs), 10)  # less than an episode
        assert np.array_equal(envs.reset()[0], twin.reset()[0])


@pytest.mark.parametrize("distribution", ["gaussian", "tanh_gaussian", "deterministic"])
def test_greedy(distribution: str) -> None:
    with closing(make("Hopper-v5")) as envs:
        spec = make_spec(envs, distribution, noise=0.5).as_greedy()
        streams = envs.get_state()
        batch = rollout(envs, spec, 30)
        assert_choices(envs, spec, batch)
        # nothing was drawn
        after = rollout(envs, make_spec(envs), 1)
        envs.set_state(streams)
        rollout(envs, spec, 30)
        assert torch.equal(rollout(envs, make_spec(envs), 1).actions, after.actions)


def test_greedy_takes_the_most_likely_action() -> None:
    with closing(make("CartPole-v1")) as envs:
        spec = make_spec(envs, "categorical")
        batch = rollout(envs, spec.as_greedy(), 50)
        outputs = outputs_of(spec, batch.obs)
        assert torch.equal(batch.actions, outputs.argmax(-1))
        expected = outputs.log_softmax(-1).amax(-1)
        torch.testing.assert_close(batch.log_probs.double(), expected, rtol=ATOL, atol=ATOL)


# ---- the same as steps ---------------------------------------------------------------------------

TRAJECTORIES: list[tuple[str, str, dict[str, Any]]] = [
    ("Hopper-v5", "gaussian", {}),
    ("HalfCheetah-v5", "tanh_gaussian", {"network_log_std": True}),
    ("CartPole-v1", "categorical", {}),
    ("Pendulum-v1", "deterministic", {"noise": 0.5}),
    ("AntGoal-v5", "gaussian", {"network_log_std": True, "log_std_range": (-3.0, 1.0)}),
    ("HalfCheetahDir-v5", "gaussian", {}),
]


def env_actions(envs: Any, spec: PolicySpec, actions: Tensor) -> np.ndarray:
    """The actions that the environments were given."""
    if spec.distribution != "gaussian":
        return actions.numpy()
    return actions.numpy().clip(envs.single_action_space.low, envs.single_action_space.high)


class Books:
    """Episodes, as one keeps them who calls `step`."""

    def __init__(self, envs: Any, obs: np.ndarray):
        self.envs, self.obs = envs, obs
        self.returns, self.lengths = np.zeros(envs.num_envs), np.zeros(envs.num_envs, int)
        self.was_ended = np.zeros(envs.num_envs, bool)
        self.episodes: list[tuple[Any, ...]] = []

    def step(self, t: int, actions: np.ndarray) -> tuple[np.ndarray, ...]:
        """Returns obs before, rewards, terminations, truncations, autoresets."""
        next_step = self.envs.autoreset_mode.value == "NextStep"
        before, autoresets = self.obs, self.was_ended & next_step
        self.obs, rewards, terminations, truncations, infos = self.envs.step(actions)
        self.was_ended = terminations | truncations
        self.returns += rewards
        self.lengths += ~autoresets
        for i in np.flatnonzero(self.was_ended):
            final_obs = self.obs[i] if next_step else infos["final_obs"][i]
            last = infos if next_step else infos["final_info"]
            info = {
                name: np.float64(v[i]).tolist()
                for name, v in last.items()
                if name[0] != "_" and v.ndim == 1
            }
            ended = (t, i, self.returns[i], self.lengths[i], terminations[i], final_obs.tolist())
            self.episodes.append((*ended, info))
            self.returns[i] = self.lengths[i] = 0
        return before, rewards, terminations, truncations, autoresets


def rows_of(episodes: pyfastenv.Episodes) -> list[tuple[Any, ...]]:
    columns = ("steps", "env_ids", "returns", "lengths", "terminated", "final_obs")
    infos = [
        {name: values[i].tolist() for name, values in episodes.infos.items()}
        for i in range(len(episodes))
    ]
    rows = zip(*(getattr(episodes, name).tolist() for name in columns), infos, strict=True)
    return list(rows)


def assert_same_as_steps(books: Books, spec: PolicySpec, batch: RolloutBatch) -> None:
    books.episodes = []
    ours = (batch.obs, batch.rewards, batch.terminations, batch.truncations, batch.autoresets)
    for t, actions in enumerate(env_actions(books.envs, spec, batch.actions)):
        for mine, theirs in zip(ours, books.step(t, actions), strict=True):
            assert np.array_equal(mine[t].numpy(), theirs), f"step {t}"
    assert np.array_equal(batch.last_obs.numpy(), books.obs)
    assert rows_of(batch.episodes) == books.episodes
    assert len(batch.episodes) == len(books.episodes)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("env_id", "distribution", "kwargs"), TRAJECTORIES)
def test_trajectories_are_those_of_step(
    env_id: str, distribution: str, kwargs: dict[str, Any], mode: str
) -> None:
    limit = {"max_episode_steps": 23}
    with (
        closing(make(env_id, mode, num_threads=3, **limit)) as envs,
        closing(make(env_id, mode, num_threads=1, **limit)) as twin,
    ):
        spec = make_spec(envs, distribution, **kwargs)
        books = Books(twin, twin.reset(seed=SEED)[0])
        out = RolloutBatch.allocate(envs, 90, dtype=torch.float64)
        batch = rollout(envs, spec, 90, out=out)
        assert batch is out
        assert_same_as_steps(books, spec, batch)
        assert len(batch.episodes) >= 3 * NUM_ENVS
        if distribution == "gaussian":
            assert (batch.actions.abs() > envs.single_action_space.high[0]).any()

        # steps in between: episodes go on
        rng = np.random.default_rng(1)
        for _ in range(7):
            steps = out.actions[rng.integers(90)]
            actions = env_actions(envs, spec, steps)
            results = envs.step(actions)
            _, *theirs, _ = books.step(0, actions)
            for mine, expected in zip(results[1:4], theirs, strict=True):
                assert np.array_equal(mine, expected)
        assert_same_as_steps(books, spec, rollout(envs, spec, 90, out=out))
        assert envs.stats()["episodes"] == twin.stats()["episodes"]
        assert envs.stats()["steps"] == twin.stats()["steps"]
        assert np.array_equal(envs.reset()[0], twin.reset()[0])  # the same streams


def batches_equal(a: RolloutBatch, b: RolloutBatch) -> bool:
    return all(torch.equal(x, b.tensors()[name]) for name, x in a.tensors().items()) and (
        rows_of(a.episodes) == rows_of(b.episodes)
    )


def test_states_hold_the_policies_streams() -> None:
    with closing(make("Hopper-v5")) as envs, closing(make("Hopper-v5", num_threads=1)) as other:
        spec = make_spec(envs)
        rollout(envs, spec, 9)
        state = envs.get_state()
        batch = rollout(envs, spec, 50)
        envs.set_state(state)
        assert batches_equal(rollout(envs, spec, 50), batch)
        rollout(other, spec, 4)
        other.set_state(state[::-1])  # in other places
        swapped = rollout(other, spec, 50)
        assert torch.equal(swapped.actions.flip(1), batch.actions)
        assert torch.equal(swapped.obs.flip(1), batch.obs)


@pytest.mark.parametrize("env_id", ["Hopper-v5", "CartPole-v1"])
def test_float32_batches_are_rounded_float64_ones(env_id: str) -> None:
    distribution = "categorical" if env_id == "CartPole-v1" else "gaussian"
    with closing(make(env_id)) as envs, closing(make(env_id)) as twin:
        spec = make_spec(envs, distribution)
        single = rollout(envs, spec, 60)
        out = RolloutBatch.allocate(envs, 60, dtype=torch.float64)
        double = rollout(twin, spec, 60, out=out)
        assert single.obs.dtype == single.rewards.dtype == torch.float32
        assert single.episodes.final_obs.dtype == torch.float32
        assert double.episodes.final_obs.dtype == double.episodes.returns.dtype == torch.float64
        for name, tensor in single.tensors().items():
            assert torch.equal(tensor, double.tensors()[name].to(tensor.dtype)), name
        assert torch.equal(single.episodes.returns, double.episodes.returns)


def test_unclipped_actions() -> None:
    with closing(make("Pendulum-v1")) as envs, closing(make("Pendulum-v1")) as twin:
        spec = make_spec(envs, log_std=np.full((1, 1), 2.0, np.float32), clip_actions=False)
        batch = rollout(envs, spec, 20, out=RolloutBatch.allocate(envs, 20, dtype=torch.float64))
        assert batch.actions.abs().max() > 4  # Pendulum clips for itself
        for actions, rewards in zip(batch.actions.numpy(), batch.rewards.numpy(), strict=True):
            assert np.array_equal(twin.step(actions)[1], rewards)


def test_no_episode_ended() -> None:
    with closing(make("Pendulum-v1")) as envs:
        episodes = rollout(envs, make_spec(envs), 3).episodes
        assert len(episodes) == 0
        assert episodes.final_obs.shape == (0, 3)
        assert episodes.steps.dtype == episodes.lengths.dtype == torch.int64


# ---- errors --------------------------------------------------------------------------------------


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


# Hopper: 11 observations, 3 actions; what is wrong, and the sentence
BAD_SPECS: dict[str, tuple[dict[str, Any], str]] = {
    "observations": ({"weights": [zeros(1, 12, 3)], "biases": [zeros(1, 3)]},
                     r"policy: expected a network for observations of size 11, got one for 12"),
    "outputs": ({"weights": [zeros(1, 11, 4)], "biases": [zeros(1, 4)]},
                r"policy: expected 3 network outputs for 3 action dimensions, got 4"),
    "outputs with log-std": (
        {"weights": [zeros(1, 11, 3)], "biases": [zeros(1, 3)], "log_std": None},
        r"policy: expected 6 network outputs for 3 action dimensions, got 3"),
    "categorical": ({"distribution": "categorical"},
                    r"policy: a categorical one does not fit continuous actions"),
    "weights NaN": ({"weights": [zeros(1, 11, 3) * np.nan], "biases": [zeros(1, 3)]},
                    r"policy: layer 0: weights: expected finite numbers, got NaN or infinity"),
    "biases infinite": (
        {"weights": [zeros(1, 11, 3)], "biases": [zeros(1, 3) + np.float32(np.inf)]},
        r"policy: layer 0: biases: expected finite numbers, got NaN or infinity"),
    "log_std NaN": ({"log_std": zeros(1, 3) * np.nan},
                    r"log_std: expected finite numbers, got NaN or infinity"),
    "log_std shape": ({"log_std": zeros(3)},
                      r"log_std: expected \(1, 3\) float32, got \(3,\) float32"),
    "float64": ({"weights": [np.zeros((1, 11, 3))], "biases": [zeros(1, 3)]},
                r"weights: expected \(1, 11, 3\) float32, got \(1, 11, 3\) float64"),
    "layers": (
        {"weights": [zeros(1, 11, 4), zeros(1, 5, 3)], "biases": [zeros(1, 4), zeros(1, 3)]},
        r"policy: layer 1: expected weights .* that follow the layer before, got \(1, 5, 3\)"),
    "networks": (
        {"weights": [zeros(2, 11, 4), zeros(1, 4, 3)], "biases": [zeros(2, 4), zeros(1, 3)]},
        r"policy: layer 1: expected weights"),
    "biases": ({"weights": [zeros(1, 11, 3)], "biases": [zeros(1, 4)]},
               r"policy: layer 0: biases: expected \(1, 3\) float32, got \(1, 4\) float32"),
    "layer_norms": ({"layer_norms": [zeros(1, 2, 3)]},
                    r"policy: layer_norms: expected one of each hidden layer, 0, or none, got 1"),
    "layer_norms shape": (
        {"weights": [zeros(1, 11, 4), zeros(1, 4, 3)], "biases": [zeros(1, 4), zeros(1, 3)],
         "layer_norms": [zeros(1, 4)]},
        r"policy: layer 0: layer_norms: expected \(1, 2, 4\) float32, got \(1, 4\)"),
    "nothing": ({"weights": [], "biases": []}, r"policy: expected as many weights as biases"),
    "obs_mean shape": ({"obs_mean": zeros(1, 3), "obs_scale": zeros(1, 11)},
                       r"obs_mean: expected \(1, 11\) float32, got \(1, 3\)"),
    "obs_mean alone": ({"obs_mean": zeros(1, 11)}, r"policy: obs_mean and obs_scale go together"),
    "noise": ({"noise": -1.0}, r"policy: expected noise and obs_clip >= 0"),
    "obs_clip": ({"obs_clip": float("nan")}, r"policy: expected noise and obs_clip >= 0"),
    "log_std_range": ({"log_std_range": (1.0, -1.0)}, r"policy: log_std_range: expected a lower"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_SPECS)
def test_policies_that_do_not_fit(name: str) -> None:
    fields, message = BAD_SPECS[name]
    with closing(make("Hopper-v5")) as envs:
        spec = replace(make_spec(envs, hidden=()), **fields)
        before = envs.get_state()
        with pytest.raises(ValueError, match=message):
            rollout(envs, spec, 5)
        assert np.array_equal(envs.get_state(), before)


def test_policies_for_another_kind_of_actions() -> None:
    with closing(make("CartPole-v1")) as envs, closing(make("Pendulum-v1")) as continuous:
        spec = make_spec(envs, "categorical", hidden=())
        for distribution in ("gaussian", "tanh_gaussian", "deterministic"):
            with pytest.raises(ValueError, match="policy: expected a categorical one for discrete"):
                rollout(envs, replace(spec, distribution=distribution), 5)
        core = make_spec(continuous).to_core(continuous.single_action_space)
        with pytest.raises(ValueError, match="policy: expected a network for observations of size"):
            rollout(envs, core, 5)
        four = PolicySpec(
            weights=[zeros(1, 4, 3)], biases=[zeros(1, 3)], distribution="categorical"
        )
        with pytest.raises(ValueError, match="policy: expected one for 2 actions, got 3"):
            rollout(envs, four, 5)
    with closing(make("Hopper-v5")) as hopper, closing(make("Walker2d-v5")) as walker:
        core = make_spec(hopper).to_core(hopper.single_action_space)
        with pytest.raises(ValueError, match="observations of size 17, got one for 11"):
            rollout(walker, core, 5)


def test_unknown_names() -> None:
    with pytest.raises(ValueError, match=r"activation: expected one of tanh, .*, got 'gelu'"):
        PolicySpec(weights=[], biases=[], activation="gelu")
    with pytest.raises(ValueError, match=r"distribution: expected one of .*, got 'beta'"):
        PolicySpec(weights=[], biases=[], distribution="beta")
    with closing(make("Hopper-v5")) as envs:
        for policy in (nn.Linear(11, 3), None, "policy"):
            with pytest.raises(TypeError, match="policy: expected a PolicySpec or a module with a"):
                rollout(envs, policy, 5)


def test_num_steps() -> None:
    with closing(make("Hopper-v5")) as envs:
        spec = make_spec(envs)
        for bad in (0, -1):
            with pytest.raises(ValueError, match=f"num_steps: expected at least 1, got {bad}"):
                rollout(envs, spec, bad)
            with pytest.raises(ValueError, match="num_steps: expected at least 1"):
                rollout(envs, spec, bad, out=RolloutBatch.allocate(envs, 1))
        with pytest.raises(TypeError, match=r"num_steps: expected an integer, got 2\.5"):
            rollout(envs, spec, 2.5)  # type: ignore[arg-type]
        assert rollout(envs, spec, np.int64(2)).num_steps == 2


def test_policy_id() -> None:
    with closing(make("Hopper-v5")) as envs:
        spec = make_spec(envs, num_policies=2)
        for bad, at in (([0, 1, 2, 0, 0], 2), ([0, 0, 0, 0, -1], 4)):
            message = f"policy_id: expected 0 to 1, got {bad[at]} for environment {at}"
            with pytest.raises(IndexError, match=message):
                rollout(envs, spec, 5, policy_id=bad)
        for shape in ([0, 1], [[0, 1, 0, 0, 0]]):
            with pytest.raises(ValueError, match=r"policy_id: expected \(5,\) integers, got shape"):
                rollout(envs, spec, 5, policy_id=np.array(shape))
        with pytest.raises(TypeError, match=r"policy_id: expected \(5,\) integers"):
            rollout(envs, spec, 5, policy_id=np.zeros(5))


BAD_OUT: dict[str, tuple[str, Any]] = {
    "steps": ("obs", lambda a: a[:3]),
    "environments": ("rewards", lambda a: a[:, :2]),
    "not contiguous": ("obs", lambda a: np.repeat(a, 2, 0)[::2]),
    "Fortran": ("rewards", np.asfortranarray),
    "dtype of actions": ("actions", lambda a: np.zeros(a.shape)),
    "dtype of log_probs": ("log_probs", lambda a: np.zeros(a.shape)),
    "dtype of terminations": ("terminations", lambda a: np.zeros(a.shape, np.uint8)),
    "dtype of last_obs": ("last_obs", lambda a: np.zeros(a.shape)),
    "dtype of rewards": ("rewards", lambda a: np.zeros(a.shape, np.float16)),
    "shape of last_obs": ("last_obs", lambda a: a[:2]),
    "a list": ("truncations", lambda a: a.tolist()),
    "nothing": ("autoresets", lambda a: None),
}


@pytest.mark.parametrize("name", BAD_OUT)
def test_bad_out(name: str) -> None:
    field, change = BAD_OUT[name]
    with closing(make("Hopper-v5")) as envs:
        arrays = {k: v.numpy() for k, v in RolloutBatch.allocate(envs, 5).tensors().items()}
        core = make_spec(envs).to_core(envs.single_action_space)
        before = envs.get_state()
        with pytest.raises((ValueError, TypeError), match=f"^{field}: expected"):
            envs.run_rollout(core, None, 5, {**arrays, field: change(arrays[field])})
        read_only = arrays[field].copy()
        read_only.flags.writeable = False
        with pytest.raises(ValueError, match=f"^{field}: expected a writeable .*read-only"):
            envs.run_rollout(core, None, 5, {**arrays, field: read_only})
        del arrays[field]
        with pytest.raises(ValueError, match=f"out: '{field}' is missing"):
            envs.run_rollout(core, None, 5, arrays)
        assert np.array_equal(envs.get_state(), before)


def test_out_whose_tensors_share_memory() -> None:
    with closing(make("Hopper-v5")) as envs:
        out = RolloutBatch.allocate(envs, 5)
        out.rewards = out.log_probs
        with pytest.raises(ValueError, match=r"^out: log_probs and rewards share memory$"):
            rollout(envs, make_spec(envs), 5, out=out)


def test_out_of_another_length_or_layout() -> None:
    with closing(make("Hopper-v5")) as envs:
        spec = make_spec(envs)
        with pytest.raises(
            ValueError, match=r"obs: expected a writeable C-contiguous \(6, 5, 11\)"
        ):
            rollout(envs, spec, 6, out=RolloutBatch.allocate(envs, 5))
        out = RolloutBatch.allocate(envs, 10)
        out.obs = out.obs.transpose(0, 1).contiguous().transpose(0, 1)
        with pytest.raises(ValueError, match="read-only or not contiguous"):
            rollout(envs, spec, 10, out=out)


def test_moments_that_do_not_fit() -> None:
    envs = pyfastenv.make_vec("Hopper-v5", 4, autoreset_mode="SameStep")
    spec = make_spec(envs)
    with pytest.raises(pyfastenv.ResetNeededError, match="rollout: reset environments 0, 1"):
        rollout(envs, spec, 5)
    envs.reset(seed=0)
    envs.send(np.zeros((2, 3), np.float32), [1, 3])
    with pytest.raises(
        pyfastenv.BusyError, match=r"rollout: sent and not received: environments 1, 3"
    ):
        rollout(envs, spec, 5)
    envs.recv()
    rollout(envs, spec, 5)
    envs.close()
    with pytest.raises(pyfastenv.ClosedError):
        rollout(envs, spec, 5)
    with (
        closing(make("Hopper-v5", "Disabled")) as disabled,
        pytest.raises(ValueError, match=r"rollout: episodes must start by themselves: .*SameStep"),
    ):
        rollout(disabled, spec, 5)


def failing_spec(envs: Any) -> PolicySpec:
    """Infinite as soon as a pendulum turns faster than 3.4 rad/s."""
    weights = zeros(1, 3, 1)
    weights[0, 2] = 1e38
    return PolicySpec(weights=[weights], biases=[zeros(1, 1)], log_std=zeros(1, 1) - 5)


@pytest.mark.parametrize("mode", MODES)
def test_a_policy_that_overflows(mode: str) -> None:
    num_steps = 60
    with closing(make("Pendulum-v1", mode)) as envs, closing(make("Pendulum-v1", mode)) as twin:
        spec = failing_spec(envs)
        start = envs.get_state()
        with pytest.raises(EnvError, match="the policy gave a NaN or infinite action") as caught:
            rollout(envs, spec, num_steps)
        error, batch = caught.value, caught.value.results
        assert error.env_ids
        assert isinstance(batch, RolloutBatch)
        steps = dict.fromkeys(range(NUM_ENVS), num_steps)
        for i, message in zip(error.env_ids, error.messages, strict=True):
            steps[i] = int(message.removeprefix("step ").split(":")[0])
            assert batch.last_obs[i, 2].abs() > 3.4
        assert len(set(steps.values())) > 1
        for i, failed in steps.items():
            # a rollout that ends there
            twin.set_state(start)
            if failed > 0:
                try:
                    shorter = rollout(twin, spec, failed)
                except EnvError as other:  # of those that failed before
                    shorter = other.results
                for name, tensor in shorter.tensors().items():
                    if name != "last_obs":
                        assert torch.equal(batch.tensors()[name][:failed, i], tensor[:, i]), name
                        assert not batch.tensors()[name][failed:, i].any(), name
                assert torch.equal(batch.last_obs[i], shorter.last_obs[i])
                own = [row for row in rows_of(batch.episodes) if row[1] == i]
                assert own == [row for row in rows_of(shorter.episodes) if row[1] == i]
            assert np.array_equal(envs.get_state([i]), twin.get_state([i]))
        assert envs.stats()["errors"] == len(error.env_ids)
        rollout(envs, make_spec(envs), 10)  # they go on


@pytest.mark.parametrize("log_std", [-200.0, 100.0])
def test_a_policy_whose_std_is_no_float32(log_std: float) -> None:
    with closing(make("Pendulum-v1")) as envs:
        spec = PolicySpec(
            weights=[zeros(1, 3, 2)], biases=[zeros(1, 2)], log_std_range=(log_std, log_std)
        )
        before = envs.get_state()
        with pytest.raises(EnvError, match="step 0: the policy gave a NaN or infinite action"):
            rollout(envs, spec, 5)
        assert np.array_equal(envs.get_state(), before)


# ---- threads, signals, processes -----------------------------------------------------------------


def test_many_threads_at_once_are_served_one_after_the_other() -> None:
    with closing(make("CartPole-v1")) as envs, closing(make("CartPole-v1")) as twin:
        spec = make_spec(envs, "categorical")
        episodes: list[int] = []

        def work() -> None:
            for _ in range(10):
                episodes.append(len(rollout(envs, spec, 7).episodes))

        run_threads(*[work] * 6)
        whole = rollout(twin, spec, 6 * 10 * 7)
        assert np.array_equal(envs.get_state(), twin.get_state())
        assert sum(episodes) == len(whole.episodes)


LONG_ROLLOUT = """
from pyfastenv import PolicySpec, RolloutBatch, rollout
spec = PolicySpec(weights=[np.zeros((1, 348, 17), np.float32)],
                  biases=[np.zeros((1, 17), np.float32)], distribution="deterministic")
out = RolloutBatch.allocate(envs, 100)  # minutes
"""


@pytest.mark.parametrize("num_threads", [1, 2])
def test_ctrl_c(num_threads: int) -> None:
    delay, lines = interrupt(
        LONG_ROLLOUT
        + """
press()
try:
    rollout(envs, spec, 100, out=out)
except KeyboardInterrupt:
    print(time.process_time() - sent[0])
try:
    rollout(envs, spec, 100, out=out)
except pyfastenv.ResetNeededError as error:
    print("reset needed" if "interrupted" in str(error) else error)
envs.close()
envs = pyfastenv.make_vec("Humanoid-v5", 4, num_threads=int(sys.argv[1]), autoreset_mode="SameStep")
envs.reset(seed=0)
print(len(rollout(envs, spec, 100).episodes) > 0)
""",
        num_threads,
        seconds=0.2,  # a hundred times
    )
    assert 0 < delay < 3.0  # far less than the rollout, and room for sanitizers on a busy machine
    assert lines == ["reset needed", "True"]


def test_signal_handler_that_uses_the_environment() -> None:
    delay, lines = interrupt(
        LONG_ROLLOUT.replace("100)", "1)")
        + """
def handler(*_):
    print(time.process_time() - sent[0])
    try:
        rollout(envs, spec, 1)
    except pyfastenv.BusyError as error:
        print("busy")
signal.signal(signal.SIGINT, handler)
press()
rollout(envs, spec, 1, out=out)  # the handler has swallowed it: the call is completed
print(envs.stats()["steps"])
""",
        2,
        seconds=1.0,
    )
    assert delay > 0
    assert lines == ["busy", "1000"]


# ---- the last infos ------------------------------------------------------------------------------


def test_last_infos_of_both_samplers() -> None:
    """Where physics diverges, there are none."""

    def make() -> Any:
        envs = pyfastenv.make_vec("Hopper-v5", 3, autoreset_mode="SameStep", max_episode_steps=4)
        gain = np.zeros(envs.get_model_field("actuator_gainprm").shape[1:])
        gain[:, 0] = 1e30
        envs.set_model_field("actuator_gainprm", gain, [1])
        envs.reset(seed=0)
        return envs

    def act(obs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        actions = torch.ones(len(obs), 3)
        return actions, torch.zeros(len(obs)), actions

    strong = np.concatenate([np.zeros(11 * 3), np.full(3, 20.0)])
    policy = PolicySpec.of_vectors(strong[None], (11, 3), distribution="deterministic")
    inside = pyfastenv.rollout(make(), policy, 4).episodes
    outside = DeviceSampler(make(), 4, torch.device("cpu")).collect(act).episodes
    assert {"x_position", "reward_ctrl"} <= set(inside.infos) == set(outside.infos)
    assert sorted(inside.env_ids.tolist()) == sorted(outside.env_ids.tolist())
    diverged = inside.env_ids == 1
    assert diverged.any() and (~diverged).any()
    for name, values in inside.infos.items():
        torch.testing.assert_close(values, outside.infos[name], rtol=0, atol=0, equal_nan=True)
        assert torch.equal(values.isnan(), diverged)
    alone = DeviceSampler(make(), 1, torch.device("cpu")).collect(act).episodes
    assert alone.env_ids.tolist() == [1] and set(alone.infos) == set(inside.infos)
    assert all(values.isnan().all() for values in alone.infos.values())
