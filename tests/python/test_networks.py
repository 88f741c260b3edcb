"""Batched networks against plain torch modules and autograd."""

import copy
import pathlib
import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pyfastenv.nn.networks import (
    MLP,
    FlatParameters,
    from_sequential,
    mlp_backward,
    mlp_forward,
    seeded_mlp,
    stack_seeds,
)
from pyfastenv.nn.policy_spec import PolicySpec

MODULES: dict[str, type[nn.Module]] = {
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "elu": nn.ELU,
    "silu": nn.SiLU,
    "identity": nn.Identity,
}
SIZES = [(5, 3), (5, 7, 3), (1, 17, 7, 1), (4, 8, 1, 16, 2)]
BATCH = 13


def make(
    activation: str = "tanh",
    num_networks: int = 1,
    sizes: tuple[int, ...] = (5, 7, 6, 3),
    **fields: Any,
) -> MLP:
    """In float64, with biases, scales and shifts of any size."""
    torch.manual_seed(0)
    network = MLP(sizes, activation=activation, num_networks=num_networks, **fields)
    with torch.no_grad():
        for part in (*network.biases, *network.norms):
            part.normal_()
    return network.double()


def plain(network: MLP, k: int) -> nn.Sequential:
    """The k-th network as everybody writes it."""
    layers: list[nn.Module] = []
    for i, (a, b) in enumerate(pairwise(network.sizes)):
        linear = nn.Linear(a, b).double()
        with torch.no_grad():
            linear.weight.copy_(network.weights[i][k].t())
            linear.bias.copy_(network.biases[i][k])
        layers.append(linear)
        if i < len(network.norms):
            norm = nn.LayerNorm(b).double()
            norm.weight.data, norm.bias.data = network.norms[i][k].detach().clone()
            layers.append(norm)
        layers.append(MODULES[network.activation]())
    return nn.Sequential(*layers[:-1])


@torch.no_grad()
def zero(module: nn.Module) -> None:
    for parameter in module.parameters():
        parameter.zero_()


def linears(module: nn.Sequential) -> list[nn.Linear]:
    return [layer for layer in module if isinstance(layer, nn.Linear)]


def assert_close(ours: Any, theirs: Any) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


# ---- forward and backward ------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("num_networks", [1, 3])
@pytest.mark.parametrize("activation", MODULES)
@pytest.mark.parametrize("layer_norm", [False, True])
def test_outputs_and_gradients_are_those_of_autograd(
    activation: str, num_networks: int, sizes: tuple[int, ...], layer_norm: bool
) -> None:
    network = make(activation, num_networks, sizes, layer_norm=layer_norm)
    x = torch.randn(num_networks, BATCH, sizes[0], dtype=torch.float64, requires_grad=True)
    target = torch.randn(num_networks, BATCH, sizes[-1], dtype=torch.float64)
    outputs = network(x)
    (outputs * target).sum().backward()
    assert outputs.shape == target.shape
    for k in range(num_networks):
        module, input_k = plain(network, k), x[k].detach().requires_grad_()
        expected = module(input_k)
        (expected * target[k]).sum().backward()
        assert_close(outputs[k], expected)
        assert_close(x.grad[k], input_k.grad)
        for i, linear in enumerate(linears(module)):
            assert_close(network.weights[i].grad[k], linear.weight.grad.t())
            assert_close(network.biases[i].grad[k], linear.bias.grad)
        norms = [layer for layer in module if isinstance(layer, nn.LayerNorm)]
        assert len(norms) == (len(sizes) - 2 if layer_norm else 0)
        for ours, norm in zip(network.norms, norms, strict=True):
            assert_close(ours.grad[k], torch.stack((norm.weight.grad, norm.bias.grad)))


@pytest.mark.parametrize("num_networks", [1, 3])
def test_one_input_for_all_networks(num_networks: int) -> None:
    network = make(num_networks=num_networks)
    x = torch.randn(BATCH, 5, dtype=torch.float64, requires_grad=True)
    outputs = network(x)
    assert outputs.shape == (num_networks, BATCH, 3)
    outputs.square().sum().backward()
    gradient = x.grad.clone()
    x.grad = None
    modules = [plain(network, k) for k in range(num_networks)]
    torch.stack([module(x) for module in modules]).square().sum().backward()
    assert_close(gradient, x.grad)


@pytest.mark.parametrize("activation", MODULES)
@pytest.mark.parametrize("layer_norm", [False, True])
def test_functions_write_gradients_and_leave_their_inputs_alone(
    activation: str, layer_norm: bool
) -> None:
    network = make(activation, 3, layer_norm=layer_norm)
    x = torch.randn(3, BATCH, 5, dtype=torch.float64)
    kept = x.clone()
    weights = [weight.detach() for weight in network.weights]
    biases = [bias.detach() for bias in network.biases]
    norms = [norm.detach() for norm in network.norms]
    out, saved = mlp_forward(x, weights, biases, activation, norms)
    grad = torch.randn_like(out)
    # not added to what was there
    weight_grads = [torch.full_like(weight, torch.nan) for weight in weights]
    bias_grads = [torch.full_like(bias, torch.nan) for bias in biases]
    norm_grads = [torch.full_like(norm, torch.nan) for norm in norms]
    written = (weight_grads, bias_grads, norms, norm_grads)
    kept_grad = grad.clone()
    assert mlp_backward(grad, saved, weights, activation, *written) is None
    network(x).backward(grad)
    for ours, theirs in zip(
        weight_grads + bias_grads + norm_grads, list(network.parameters()), strict=True
    ):
        assert_close(ours, theirs.grad)
    input_grad = mlp_backward(grad, saved, weights, activation, *written, input_columns=slice(None))
    assert input_grad is not None and input_grad.shape == x.shape
    assert torch.equal(x, kept)
    assert torch.equal(grad, kept_grad)


def test_autograd_adds_gradients_up() -> None:
    network = make()
    x = torch.randn(BATCH, 5, dtype=torch.float64)
    network(x).sum().backward()
    once = [parameter.grad.clone() for parameter in network.parameters()]
    network(x).sum().backward()
    for parameter, grad in zip(network.parameters(), once, strict=True):
        assert_close(parameter.grad, 2 * grad)


# ---- the module ----------------------------------------------------------------------------------


def test_initial_weights_are_orthogonal() -> None:
    network = MLP((8, 32, 4), num_networks=2, gain=2.0, last_gain=0.01)
    for weight, gain in zip(network.weights, (2.0, 0.01), strict=True):
        for matrix in weight.detach():
            small = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.t()
            expected = gain**2 * torch.eye(len(small))
            torch.testing.assert_close(small @ small.t(), expected, rtol=1e-4, atol=1e-5)
    assert not torch.equal(network.weights[0][0], network.weights[0][1])
    assert not any(bias.any() for bias in network.biases)


def test_pytorchs_initial_weights() -> None:
    network = MLP((16, 100, 100), gain=None)
    for weight, bias in zip(network.weights, network.biases, strict=True):
        bound = weight.shape[1] ** -0.5
        for tensor in (weight, bias):
            assert 0.9 * bound < tensor.abs().max() <= bound


@pytest.mark.parametrize(
    ("sizes", "activation", "message"),
    [
        ((3,), "tanh", r"sizes: expected at least two positive integers, got \(3,\)"),
        ((3, 0, 1), "tanh", "sizes: expected at least two"),
        ((3, 1), "gelu", "activation: expected one of tanh, relu, elu, silu, identity, got 'gelu'"),
    ],
)
def test_bad_arguments(sizes: tuple[int, ...], activation: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MLP(sizes, activation=activation)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize(
    "way", [copy.deepcopy, lambda network: pickle.loads(pickle.dumps(network))]
)
def test_copies_share_nothing(way: Any, flat: bool) -> None:
    network = make()
    if flat:  # as one of which a target network is made
        FlatParameters([network])
    other = way(network)
    x = torch.randn(BATCH, 5, dtype=torch.float64)
    expected = network(x)
    zero(network)
    assert torch.equal(other(x), expected)
    zero(other)  # what it computes with are its parameters
    assert not other(x).any()


def test_state_dicts(tmp_path: pathlib.Path) -> None:
    network, other = make(num_networks=3), make(num_networks=3)
    zero(other)
    torch.save(network.state_dict(), tmp_path / "network.pt")
    other.load_state_dict(torch.load(tmp_path / "network.pt"))
    x = torch.randn(BATCH, 5, dtype=torch.float64)
    assert torch.equal(network(x), other(x))
    assert network.num_networks == 3


# ---- flat parameters -----------------------------------------------------------------------------


def test_parameters_are_views_of_one_vector() -> None:
    network, log_std = make(num_networks=3), nn.Parameter(torch.ones(3, 2, dtype=torch.float64))
    x = torch.randn(BATCH, 5, dtype=torch.float64)
    expected = network(x)
    flat = FlatParameters([network, log_std])
    parameters = [*network.parameters(), log_std]
    assert torch.equal(network(x), expected)
    assert torch.equal(
        flat.parameter.detach(), torch.cat([parameter.flatten() for parameter in parameters])
    )
    with torch.no_grad():
        flat.parameter.mul_(2)
    assert (log_std == 2).all()
    assert not torch.equal(network(x), expected)
    for parameter in parameters:
        assert parameter.data_ptr() != 0
        assert parameter.untyped_storage().data_ptr() == flat.parameter.untyped_storage().data_ptr()


@pytest.mark.parametrize("max_norm", [0.01, 1e6])
def test_autograd_writes_into_the_flat_gradient_which_is_clipped(max_norm: float) -> None:
    network, twin = make(), make()
    flat = FlatParameters([network])
    x = torch.randn(BATCH, 5, dtype=torch.float64)
    for module in (network, twin):
        module(x).square().sum().backward()
    expected = torch.cat([parameter.grad.flatten() for parameter in twin.parameters()])
    assert torch.equal(flat.grad, expected)
    norm = flat.clip_grad_norm(max_norm)
    assert_close(norm, nn.utils.clip_grad_norm_(twin.parameters(), max_norm))
    for ours, theirs in zip(network.parameters(), twin.parameters(), strict=True):
        assert_close(ours.grad, theirs.grad)


def test_state_dicts_are_loaded_into_the_vector() -> None:
    network, other = make(), make("tanh")
    flat = FlatParameters([network])
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.normal_()
    network.load_state_dict(other.state_dict())
    expected = torch.cat([parameter.flatten() for parameter in other.parameters()])
    assert torch.equal(flat.parameter.detach(), expected.detach())


# ---- several seeds -------------------------------------------------------------------------------


@pytest.mark.parametrize("per_seed", [1, 2])
@pytest.mark.parametrize("gain", [1.5, None])
def test_seeds_side_by_side_begin_as_they_would_alone(per_seed: int, gain: float | None) -> None:
    torch.manual_seed(11)
    before = torch.get_rng_state()
    together = seeded_mlp((5, 7, 3), [4, 0, 4], per_seed, gain=gain, activation="relu")
    assert torch.equal(torch.get_rng_state(), before)
    assert together.num_networks == 3 * per_seed and together.activation == "relu"
    for i, seed in enumerate((4, 0, 4)):
        torch.manual_seed(seed)
        alone = MLP((5, 7, 3), num_networks=per_seed, gain=gain)
        mine = slice(i * per_seed, (i + 1) * per_seed)
        for ours, theirs in zip(together.parameters(), alone.parameters(), strict=True):
            assert torch.equal(ours[mine], theirs)
    first = together.weights[0]
    assert torch.equal(first[:per_seed], first[2 * per_seed :])
    assert not torch.equal(first[:per_seed], first[per_seed : 2 * per_seed])
    # what it computes with are its parameters
    x = torch.randn(3 * per_seed, BATCH, 5)
    torch.testing.assert_close(together.evaluate(x)[0], together(x))


def test_seeds_may_be_initialised_otherwise() -> None:
    def constant(network: MLP) -> None:
        for weight in network.weights:
            nn.init.constant_(weight, float(torch.randint(1000, ())))

    together = seeded_mlp((2, 1), [3, 8], 2, initialise=constant)
    for seed, weights in zip((3, 8), together.weights[0].split(2), strict=True):
        torch.manual_seed(seed)
        alone = MLP((2, 1), num_networks=2)
        constant(alone)
        assert torch.equal(weights, alone.weights[0])


def test_any_module_of_seeds() -> None:
    def make_module(count: int) -> nn.Module:
        module = nn.Module()
        module.one = nn.Parameter(torch.randn(count, 3))
        module.three = nn.Parameter(torch.rand(3 * count))
        return module

    before = torch.get_rng_state()
    together = stack_seeds(make_module, [5, 6])
    assert torch.equal(torch.get_rng_state(), before)
    for i, seed in enumerate((5, 6)):
        torch.manual_seed(seed)
        alone = make_module(1)
        assert torch.equal(together.one[i : i + 1], alone.one)
        assert torch.equal(together.three[3 * i : 3 * i + 3], alone.three)


# ---- another precision inside --------------------------------------------------------------------


def inside(network: MLP) -> list[torch.dtype]:
    weights, biases = network.layers
    dtypes = [weight.dtype for weight in weights]
    assert dtypes == [bias.dtype for bias in biases]
    return dtypes


def assert_near(ours: Tensor, theirs: Tensor, tolerance: float = 0.02) -> None:
    """As near as bfloat16's 8 bits let it be, and not nearer: it has been used."""
    assert ours.dtype == theirs.dtype == torch.float32
    error = float((ours - theirs).detach().norm() / theirs.detach().norm())
    assert 1e-4 < error < tolerance


@pytest.mark.parametrize("num_networks", [1, 3])
@pytest.mark.parametrize("activation", MODULES)
@pytest.mark.parametrize("layer_norm", [False, True])
def test_bfloat16_between_hidden_layers(
    activation: str, num_networks: int, layer_norm: bool
) -> None:
    network = make(activation, num_networks, (5, 64, 48, 32, 3), layer_norm=layer_norm).float()
    exact = copy.deepcopy(network)
    for module in (network, exact):
        FlatParameters([module])
    network.compute_in(torch.bfloat16)
    assert inside(network) == [torch.float32, torch.bfloat16, torch.bfloat16, torch.float32]
    for layer in (0, 3):
        assert network.layers[0][layer] is network.weight_list[layer]
    x = torch.randn(num_networks, BATCH, 5)
    grad = torch.randn(num_networks, BATCH, 3)
    tolerance = 0.25 if activation == "relu" else 0.02  # its slope jumps, for a few of 13 samples

    def check() -> None:
        (ours, saved), (theirs, exact_saved) = network.evaluate(x), exact.evaluate(x)
        assert_near(ours, theirs)
        by_inputs = network.write_gradients(saved, grad, input_columns=slice(1, 4))
        expected = exact.write_gradients(exact_saved, grad, input_columns=slice(1, 4))
        assert by_inputs is not None and expected is not None
        assert_near(by_inputs, expected, tolerance)
        assert torch.equal(network.input_gradient(saved, grad, slice(1, 4)), by_inputs)
        for mine, other in zip(network.parameters(), exact.parameters(), strict=True):
            if mine is network.bias_list[-1]:  # the sum of what was given
                assert torch.equal(mine.grad, other.grad)
            else:
                assert_near(mine.grad, other.grad, tolerance)

    with torch.no_grad():
        check()
        for module in (network, exact):
            for parameter in module.parameters():
                parameter.mul_(-0.8)
        stale = network.evaluate(x)[0]
        network.refresh()
        assert float((network.evaluate(x)[0] - stale).norm() / stale.norm()) > 0.1
        check()
        zero(network)
        assert network.layers[0][1].any()
        network.refresh_later()
        assert not network.layers[0][1].any()


def test_without_inner_layers_nothing_is_rounded() -> None:
    network = make("relu", 2, (5, 64, 3)).float()
    x = torch.randn(2, BATCH, 5)
    expected = network.evaluate(x)[0]
    network.compute_in(torch.bfloat16)
    assert inside(network) == [torch.float32] * 2
    network.refresh()
    assert torch.equal(network.evaluate(x)[0], expected)


@pytest.mark.parametrize("num_networks", [1, 3])
@pytest.mark.parametrize("activation", MODULES)
@pytest.mark.parametrize("layer_norm", [False, True])
def test_input_gradient_leaves_those_of_parameters(
    activation: str, num_networks: int, layer_norm: bool
) -> None:
    network = make(activation, num_networks, layer_norm=layer_norm)
    FlatParameters([network]).grad.fill_(7.0)
    x = torch.randn(num_networks, BATCH, 5, dtype=torch.float64, requires_grad=True)
    grad = torch.randn(num_networks, BATCH, 3, dtype=torch.float64)
    with torch.no_grad():
        _, saved = network.evaluate(x)
        result = network.input_gradient(saved, grad, slice(2, None))
    assert all((parameter.grad == 7.0).all() for parameter in network.parameters())
    (expected,) = torch.autograd.grad((network(x) * grad).sum(), x)
    assert_close(result, expected[..., 2:])


# ---- policies ------------------------------------------------------------------------------------


def outputs_of(spec: PolicySpec, x: Tensor) -> Tensor:
    """(K, B, out) from a spec's arrays."""
    for i, (weight, bias) in enumerate(zip(spec.weights, spec.biases, strict=True)):
        assert weight.dtype == bias.dtype == np.float32
        x = x @ torch.from_numpy(weight) + torch.from_numpy(bias)[:, None]
        if i + 1 < len(spec.weights):
            x = MODULES[spec.activation]()(x)
    return x


@pytest.mark.parametrize("num_networks", [1, 3])
def test_spec_of_a_network(num_networks: int) -> None:
    network = make("silu", num_networks).float()
    log_std = np.zeros((num_networks, 3), np.float32)
    spec = network.spec(distribution="tanh_gaussian", log_std=log_std, obs_clip=5.0)
    assert (spec.activation, spec.distribution, spec.obs_clip) == ("silu", "tanh_gaussian", 5.0)
    x = torch.randn(BATCH, 5)
    torch.testing.assert_close(outputs_of(spec, x), network(x))
    assert spec.as_greedy().greedy and not spec.greedy
    assert spec.as_greedy().weights is spec.weights


@pytest.mark.parametrize(
    ("activation", "hidden"), [("tanh", (7,)), ("relu", ()), ("elu", (7, 1)), ("silu", (1, 7, 9))]
)
def test_spec_of_a_sequential(activation: str, hidden: tuple[int, ...]) -> None:
    layers: list[nn.Module] = []
    for i, (a, b) in enumerate(pairwise((5, *hidden, 3))):
        layers += [nn.Linear(a, b, bias=i != 1), MODULES[activation]()]
    network = nn.Sequential(*layers[:-1])
    spec = from_sequential(network, distribution="categorical")
    assert spec.activation == (activation if hidden else "identity")
    assert all(weight.flags.c_contiguous for weight in spec.weights)
    x = torch.randn(BATCH, 5)
    torch.testing.assert_close(outputs_of(spec, x)[0], network(x))


@pytest.mark.parametrize(
    "log_std",
    [
        nn.Parameter(torch.tensor([1.0, 2.0, 3.0])),
        torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float64),
        np.array([1.0, 2.0, 3.0], np.float32),
    ],
    ids=["parameter", "row", "array"],
)
def test_log_std_of_a_sequential(log_std: Any) -> None:
    spec = from_sequential(nn.Sequential(nn.Linear(5, 3)), log_std=log_std)
    assert spec.log_std is not None and spec.log_std.dtype == np.float32
    assert spec.log_std.tolist() == [[1.0, 2.0, 3.0]]


def test_specs_do_not_change_with_the_module() -> None:
    network = make().float()
    sequential = nn.Sequential(nn.Linear(5, 3))
    log_std = nn.Parameter(torch.zeros(3))
    specs = [network.spec(), from_sequential(sequential, log_std=log_std)]
    kept = copy.deepcopy(specs)
    with torch.no_grad():
        for parameter in (*network.parameters(), *sequential.parameters(), log_std):
            parameter.add_(1)
    for spec, before in zip(specs, kept, strict=True):
        np.testing.assert_equal(vars(spec), vars(before))


@pytest.mark.parametrize(
    "layers",
    [
        [],
        [nn.Tanh()],
        [nn.Linear(3, 3), nn.Tanh()],
        [nn.Linear(3, 3), nn.Linear(3, 3)],
        [nn.Tanh(), nn.Linear(3, 3), nn.Linear(3, 3)],
        [nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3)],
        [nn.Linear(3, 3), nn.GELU(), nn.Linear(3, 3)],
        [nn.Linear(3, 3), nn.LayerNorm(3), nn.Tanh(), nn.Linear(3, 3)],
    ],
    ids=lambda layers: " ".join(type(layer).__name__ for layer in layers) or "nothing",
)
def test_other_sequentials_are_refused(layers: list[nn.Module]) -> None:
    with pytest.raises(TypeError, match=r"policy: expected nn\.Sequential\(Linear, activation, …"):
        from_sequential(nn.Sequential(*layers))


def test_activations_with_other_parameters_are_refused() -> None:
    network = nn.Sequential(nn.Linear(3, 3), nn.ELU(alpha=0.5), nn.Linear(3, 3))
    with pytest.raises(TypeError, match="policy: expected ELU with alpha=1"):
        from_sequential(network)
