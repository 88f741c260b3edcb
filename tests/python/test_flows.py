"""Flows against the change of variables, numerical integration and known densities."""

import math
from typing import Any

import pytest
import torch
from cuda_checks import no_synchronisation
from torch import Tensor, nn
from torch.distributions import MultivariateNormal

from pyfastenv.experiments.baselines.plain import descend
from pyfastenv.nn.flows import CoupledFlow, RealNVP, donsker_varadhan_loss

F64 = torch.float64
BATCH = 11
SIZES = [1, 2, 3, 5, 8]


def perturb(module: nn.Module, scale: float = 0.3) -> None:
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(scale * torch.randn_like(parameter))


def standardise(flow: RealNVP) -> None:
    """Sets another standardisation in each flow and component."""
    shape = (flow.num_flows, flow.size)
    mean = torch.linspace(-2.0, 3.0, math.prod(shape)).reshape(shape)
    std = torch.linspace(0.4, 1.7, math.prod(shape)).flip(0).reshape(shape)
    flow.set_standardisation(mean, std)


def make(size: int, num_flows: int = 1, scale: float = 0.3, **options: Any) -> RealNVP:
    """In float64, not near the identity, standardised."""
    torch.manual_seed(0)
    options = {"num_couplings": 3, "hidden_size": 9, "activation": "tanh", **options}
    flow = RealNVP(size, num_flows=num_flows, **options).double()
    perturb(flow, scale)
    standardise(flow)
    return flow


def assert_close(ours: Any, theirs: Any, tolerance: float = 1e-10) -> None:
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


# ---- the map -------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_couplings", [1, 2, 3, 6])
@pytest.mark.parametrize("size", SIZES)
def test_inverse(size: int, num_couplings: int) -> None:
    flow = make(size, 3, num_couplings=num_couplings)
    x = 2.0 * torch.randn(3, BATCH, size, dtype=F64)
    z, log_det = flow(x)
    assert z.shape == x.shape and log_det.shape == (3, BATCH) and z.dtype == log_det.dtype == F64
    assert (z - x).abs().max() > 0.1
    assert_close(flow.inverse(z), x)
    assert_close(flow(flow.inverse(x))[0], x)
    # one input for all flows
    assert_close(flow.inverse(x[0]), flow.inverse(x[:1].expand(3, -1, -1)))
    assert_close(flow.log_prob(x[0]), flow.log_prob(x[:1].expand(3, -1, -1)))


@pytest.mark.parametrize("num_couplings", [1, 2, 5])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_log_prob_is_the_change_of_variables(size: int, num_couplings: int) -> None:
    flow = make(size, 2, num_couplings=num_couplings)
    x = 2.0 * torch.randn(2, BATCH, size, dtype=F64)
    z, log_det = flow(x)
    log_prob = flow.log_prob(x)
    base = MultivariateNormal(torch.zeros(size, dtype=F64), torch.eye(size, dtype=F64))
    for k in range(2):
        for b in range(BATCH):
            jacobian = torch.autograd.functional.jacobian(
                lambda v, k=k: flow(v[None])[0][k, 0], x[k, b]
            )
            sign, expected = torch.linalg.slogdet(jacobian)
            assert sign == 1.0
            assert_close(log_det[k, b], expected)
            assert_close(log_prob[k, b], base.log_prob(z[k, b]) + expected)


@pytest.mark.parametrize("size", SIZES)
def test_every_component_is_transformed_by_two_couplings(size: int) -> None:
    flow = make(size, num_couplings=2)
    flow.set_standardisation(torch.zeros(1, size), torch.ones(1, size))
    x = torch.randn(BATCH, size, dtype=F64)
    difference = flow(x)[0][0] - x
    assert (difference.abs() > 1e-3).any(0).all()
    one = make(size, num_couplings=1)
    one.set_standardisation(torch.zeros(1, size), torch.ones(1, size))
    same = (one(x)[0][0] == x).all(0)
    assert same.tolist() == [i < size // 2 for i in range(size)]


def test_of_one_component_a_gaussian() -> None:
    flow = make(1, 2, num_couplings=3)
    x = torch.randn(2, BATCH, 1, dtype=F64)
    z = flow(x)[0]
    slope = (z[:, 1:] - z[:, :-1]) / (x[:, 1:] - x[:, :-1])
    assert_close(slope, slope[:, :1].expand_as(slope), 1e-8)
    assert (slope[0, 0] - slope[1, 0]).abs() > 1e-3
    assert len(list(flow.parameters())) == 3 * 2  # no hidden layer which could learn nothing


@pytest.mark.parametrize("size", SIZES)
def test_starts_near_the_standardised_components(size: int) -> None:
    torch.manual_seed(0)
    flow = RealNVP(size, num_flows=2, num_couplings=4)
    standardise(flow)
    x = torch.randn(2, BATCH, size)
    z, log_det = flow(x)
    assert_close(z, (x - flow.mean[:, None]) / flow.std[:, None], 0.3)
    assert_close(log_det, -flow.std.log().sum(1, keepdim=True).expand(2, BATCH), 0.3)
    assert_close(flow.inverse(z), x, 1e-4)


@pytest.mark.parametrize("limit", [0.5, 2.0])
def test_scales_are_limited(limit: float) -> None:
    flow = make(6, 2, scale=30.0, num_couplings=2, scale_limit=limit)
    flow.set_standardisation(torch.zeros(2, 6), torch.ones(2, 6))
    _, log_det = flow(torch.randn(2, 1000, 6, dtype=F64))
    assert 3 * limit < log_det.abs().max() <= 6 * limit
    # and smoothly
    raw = torch.linspace(-3.0 * limit, 3.0 * limit, 7, dtype=F64)
    one = RealNVP(1, num_flows=7, num_couplings=1, scale_limit=limit).double()
    with torch.no_grad():
        for parameter in one.parameters():
            if parameter.shape == (7, 2):
                parameter[:, 0] = raw
    log_det = one(torch.ones(1, 1, dtype=F64))[1]
    assert_close(log_det[:, 0], limit * (raw / limit).tanh())


# ---- the density ---------------------------------------------------------------------------------


def test_samples_are_those_of_the_generator() -> None:
    flow = make(3, 2)
    first = flow.sample(50, torch.Generator().manual_seed(1))
    assert torch.equal(first, flow.sample(50, torch.Generator().manual_seed(1)))
    assert not torch.equal(first, flow.sample(50, torch.Generator().manual_seed(2)))
    z = flow(first)[0]
    noise = flow.sample(20_000, torch.Generator().manual_seed(3))
    normal = flow(noise)[0]  # with the density tested above: samples are the density's
    assert normal.mean(1).abs().max() < 0.03 and (normal.std(1) - 1.0).abs().max() < 0.03
    tails = (normal.abs() > 1.96).double().mean(1)
    assert ((tails - 0.05).abs() < 0.01).all()
    assert (z[0] - z[1]).abs().min() > 0.0  # not the same noise in all flows
    assert flow.float().sample(5).dtype == torch.float32


# ---- gradients, copies, devices ------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 5])
def test_gradients(size: int) -> None:
    flow = make(size, 2, num_couplings=2, hidden_size=4)
    x = torch.randn(2, 3, size, dtype=F64, requires_grad=True)
    inputs = (x, *flow.parameters())
    assert torch.autograd.gradcheck(lambda *_: flow.log_prob(x), inputs)
    assert torch.autograd.gradcheck(lambda *_: flow.inverse(x), inputs)
    assert torch.autograd.gradcheck(lambda *_: flow(x), inputs)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_flows_are_independent(size: int) -> None:
    flows = make(size, 3, activation="silu")
    x = torch.randn(3, BATCH, size, dtype=F64)
    log_prob = flows.log_prob(x)
    log_prob.sum().backward()
    assert (log_prob[0] - log_prob[1]).abs().max() > 1e-3
    for k in range(3):
        one = make(size, 1, activation="silu")
        one.load_state_dict({name: v[k : k + 1] for name, v in flows.state_dict().items()})
        expected = one.log_prob(x[k])
        expected.sum().backward()
        assert_close(log_prob[k : k + 1], expected, 1e-12)
        assert_close(flows.inverse(x)[k : k + 1], one.inverse(x[k]), 1e-12)
        for ours, theirs in zip(flows.parameters(), one.parameters(), strict=True):
            assert_close(ours.grad[k : k + 1], theirs.grad)


def test_no_value_is_read_by_the_host() -> None:
    # tensors without values raise where one is asked for
    with torch.device("meta"):
        coupled = CoupledFlow(5, num_networks=2, hidden_size=8)
        x = torch.randn(2, BATCH, 5)
        loss = donsker_varadhan_loss(coupled.log_ratio(x), coupled.log_ratio(x[0]))
        loss.sum().backward()
        assert loss.shape == (2,) and loss.is_meta
        assert coupled.flows.inverse(x[0]).shape == coupled.flows.sample(BATCH).shape
        with pytest.raises((RuntimeError, NotImplementedError)):
            loss.sum().item()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no CUDA device")
@pytest.mark.parametrize("size", [1, 5])
def test_on_cuda(size: int) -> None:
    coupled = CoupledFlow(size, num_networks=2, hidden_size=8).double()
    perturb(coupled)
    x = torch.randn(2, BATCH, size, dtype=F64)
    expected = donsker_varadhan_loss(coupled.log_ratio(x), coupled.log_ratio(x[0]))
    coupled.cuda()
    x = x.cuda()
    coupled.log_ratio(x).sum().backward()  # cuBLAS sets itself up
    with no_synchronisation():
        loss = donsker_varadhan_loss(coupled.log_ratio(x), coupled.log_ratio(x[0]))
        loss.sum().backward()
        samples = coupled.flows.sample(BATCH)
    assert_close(loss.cpu(), expected)
    assert_close(coupled.flows(coupled.flows.inverse(samples))[0], samples)


# ---- coupled flows -------------------------------------------------------------------------------


def test_ratio_is_of_neighbouring_flows() -> None:
    torch.manual_seed(0)
    coupled = CoupledFlow(3, num_networks=2, hidden_size=8).double()
    perturb(coupled)
    mean, std = torch.randn(2, 3), torch.rand(2, 3) + 0.5
    coupled.set_standardisation(mean, std)
    flows = coupled.flows
    assert flows.num_flows == 4
    assert torch.equal(flows.mean, mean[[0, 0, 1, 1]].double())
    assert torch.equal(flows.std, std[[0, 0, 1, 1]].double())
    x = torch.randn(2, BATCH, 3, dtype=F64)
    ratio = coupled.log_ratio(x)
    assert ratio.shape == (2, BATCH)
    for k in range(2):
        log_prob = flows.log_prob(x[k])
        assert_close(ratio[k], log_prob[2 * k] - log_prob[2 * k + 1], 1e-12)
    assert_close(coupled.log_ratio(x[0]), coupled.log_ratio(x[:1].expand(2, -1, -1)), 1e-12)


def test_log_ratio_of_two_gaussians() -> None:
    torch.manual_seed(0)
    shift = torch.tensor([[1.0, 0.5], [-0.5, 1.0]])
    correlated = torch.tensor([[[1.0, 0.6], [0.6, 1.0]], [[0.5, 0.0], [0.0, 1.5]]])
    model = MultivariateNormal(shift, correlated)  # two pairs of distributions, (2, 2)
    env = MultivariateNormal(torch.zeros(2, 2), torch.eye(2))

    def draw(distribution: MultivariateNormal, n: int) -> Tensor:
        return distribution.sample((n,)).transpose(0, 1)  # (2, n, 2)

    coupled = CoupledFlow(2, num_networks=2, hidden_size=32)
    optimiser = torch.optim.Adam(coupled.parameters(), lr=3e-3)
    for _ in range(250):
        losses = donsker_varadhan_loss(
            coupled.log_ratio(draw(model, 256)), coupled.log_ratio(draw(env, 256))
        )
        descend(optimiser, losses.sum())
    with torch.no_grad():
        x = torch.cat((draw(model, 2000), draw(env, 2000)), 1)
        ratio = coupled.log_ratio(x)
        losses = donsker_varadhan_loss(
            coupled.log_ratio(draw(model, 20_000)), coupled.log_ratio(draw(env, 20_000))
        )
    truth = (model.log_prob(x.transpose(0, 1)) - env.log_prob(x.transpose(0, 1))).T
    for k in range(2):
        assert torch.corrcoef(torch.stack((ratio[k], truth[k])))[0, 1] > 0.95
        assert (ratio[k] - truth[k]).std() < 0.4 * truth[k].std()  # in scale too
    # the bound is the divergence
    assert_close(losses, -torch.distributions.kl_divergence(model, env), 0.1)


# ---- the loss ------------------------------------------------------------------------------------


def test_loss_is_the_formula() -> None:
    torch.manual_seed(0)
    model, env = torch.randn(3, 7, dtype=F64), torch.randn(3, 5, dtype=F64)
    loss = donsker_varadhan_loss(model, env)
    assert loss.shape == (3,)
    for k in range(3):
        expected = math.log(sum(math.exp(v) for v in env[k]) / 5) - sum(model[k]) / 7
        assert_close(loss[k], expected, 1e-12)
    assert_close(donsker_varadhan_loss(model - 4.0, env - 4.0), loss, 1e-12)  # any constant
    model.requires_grad_()
    env.requires_grad_()
    assert torch.autograd.gradcheck(donsker_varadhan_loss, (model, env))


@pytest.mark.parametrize("level", [-1e3, 1e3])
def test_loss_of_large_ratios(level: float) -> None:
    model = torch.full((1, 4), level, requires_grad=True)
    env = torch.tensor([[level, level + 1.0, -1e3, 1e3]], requires_grad=True)
    loss = donsker_varadhan_loss(model, env)
    loss.sum().backward()
    exact = torch.logsumexp(env.detach().double(), 1) - math.log(4) - level
    assert loss.dtype == torch.float32 and loss.isfinite().all()
    assert_close(loss.detach().double(), exact, 1e-6)
    assert_close(model.grad, torch.full((1, 4), -0.25), 1e-6)
    assert_close(env.grad, env.detach().softmax(1), 1e-6)


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["num_flows", "num_couplings", "hidden_size", "num_hidden"])
def test_numbers_below_one(name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}: expected a positive integer, got 0$"):
        RealNVP(3, **{name: 0})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size: expected a positive integer, got 0"),
        ({"scale_limit": 0.0}, r"scale_limit: expected a positive number, got 0\.0"),
        ({"scale_limit": math.nan}, "scale_limit: expected a positive number, got nan"),
        ({"activation": "gelu"}, "activation: expected one of tanh, .*, got 'gelu'"),
    ],
)
def test_bad_arguments(options: dict[str, Any], message: str) -> None:
    for kind in (RealNVP, CoupledFlow):
        with pytest.raises(ValueError, match=message):
            kind(**{"size": 3, **options})


@pytest.mark.parametrize("shape", [(4, 2), (2, 4, 4), (3, 4, 3), (1, 4, 3), (3,), (), (1, 2, 4, 3)])
def test_other_shapes(shape: tuple[int, ...]) -> None:
    flow, coupled = RealNVP(3, num_flows=2), CoupledFlow(3, num_networks=2)
    got = ", ".join(str(n) for n in shape)
    message = r"expected \(2, B, 3\) or \(B, 3\), got \(" + got
    for method in (flow, flow.log_prob, coupled.log_ratio):
        with pytest.raises(ValueError, match=f"^x: {message}"):
            method(torch.zeros(shape))
    with pytest.raises(ValueError, match=f"^z: {message}"):
        flow.inverse(torch.zeros(shape))


@pytest.mark.parametrize(
    ("mean", "std", "message"),
    [
        (torch.zeros(2, 3), torch.ones(3), r"std: expected \(2, 3\), got \(3,\)"),
        (torch.zeros(1, 3), torch.ones(2, 3), r"mean: expected \(2, 3\), got \(1, 3\)"),
        (torch.zeros(2, 3), torch.zeros(2, 3), "std: expected positive values, got tensor"),
        (torch.zeros(2, 3), torch.full((2, 3), math.inf), "std: expected finite values, got"),
        (torch.full((2, 3), math.nan), torch.ones(2, 3), "mean: expected finite values, got"),
    ],
)
def test_bad_standardisation(mean: Tensor, std: Tensor, message: str) -> None:
    flow = RealNVP(3, num_flows=2)
    with pytest.raises(ValueError, match=message):
        flow.set_standardisation(mean, std)
    assert not flow.mean.any() and (flow.std == 1.0).all()
