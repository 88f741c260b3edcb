"""A policy as one C file without dependencies but the C library's mathematics."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pyfastenv.nn.torch_policy import TorchPolicy

# x is an element of a layer's output
_ACTIVATIONS: dict[type[nn.Module], str] = {
    nn.Tanh: "tanhf(x)",
    nn.ReLU: "x < 0.0F ? 0.0F : x",
    nn.ELU: "x > 0.0F ? x : expm1f(x)",
    nn.SiLU: "x / (1.0F + expf(-x))",
    nn.Identity: "x",
}

_LAYER = """\
/* out[j] = bias[j] + sum_i in[i] * weight[i][j] */
static void affine(const float* in, int num_in, const float* weight, const float* bias, float* out,
                   int num_out) {
  for (int j = 0; j < num_out; ++j) out[j] = bias[j];
  for (int i = 0; i < num_in; ++i) {
    for (int j = 0; j < num_out; ++j) out[j] += in[i] * weight[i * num_out + j];
  }
}
"""


_CLAMP = """\
/* NaN stays NaN */
static float clampf(float x, float low, float high) {
  return x < low ? low : x > high ? high : x;
}
"""


def c_source(policy: TorchPolicy, title: str) -> str:
    """The most likely action of an observation, as C99.

    Args:
        policy: Linear layers and one kind of activation between them.
        title: One line for the head of the file.

    Raises:
        ValueError: Its network is another one.
    """
    linears, activation = _layers(policy.network)
    sizes = [policy.obs_size, *(linear.out_features for linear in linears)]
    discrete = policy.distribution == "categorical"
    num_actions = 1 if discrete else len(policy.low)
    lines = [
        f"/* {title}",
        " *",
        " * void act(const float* obs, action* out): the most likely action of one observation.",
        " * Reentrant; allocates nothing. Compile with: cc -O2 -c policy.c, and link with -lm.",
        " */",
        "#include <math.h>",
        "",
        f"enum {{ kObsSize = {policy.obs_size}, kActionSize = {num_actions} }};",
        f"typedef {'long long' if discrete else 'float'} action;",
        "",
    ]
    for i, linear in enumerate(linears):
        lines += _array(f"weight{i}", linear.weight.detach().t())
        bias = torch.zeros(linear.out_features) if linear.bias is None else linear.bias.detach()
        lines += _array(f"bias{i}", bias)
    normalised = policy.obs_mean is not None and policy.obs_scale is not None
    if policy.obs_mean is not None and policy.obs_scale is not None:
        lines += _array("obs_mean", policy.obs_mean) + _array("obs_scale", policy.obs_scale)
    if not discrete:
        lines += _array("low", policy.low) + _array("high", policy.high)
    lines += ["", _LAYER]
    if len(linears) > 1:
        lines += [f"static float activate(float x) {{ return {_ACTIVATIONS[activation]}; }}", ""]
    if policy.obs_clip > 0.0 or (policy.clip_actions and policy.distribution == "gaussian"):
        lines += [_CLAMP]
    lines += ["void act(const float* obs, action* out) {"]
    widest = max(sizes)
    lines += [f"  float a[{widest}], b[{widest}];"]
    value = "(obs[i] - obs_mean[i]) * obs_scale[i]" if normalised else "obs[i]"
    if policy.obs_clip > 0.0:
        clip = _number(policy.obs_clip)
        value = f"clampf({value}, -{clip}, {clip})"
    lines += [f"  for (int i = 0; i < kObsSize; ++i) a[i] = {value};"]
    here, there = "a", "b"
    for i, (num_in, num_out) in enumerate(pairwise(sizes)):
        lines += [f"  affine({here}, {num_in}, weight{i}, bias{i}, {there}, {num_out});"]
        here, there = there, here
        if i + 1 < len(linears):
            lines += [f"  for (int i = 0; i < {num_out}; ++i) {here}[i] = activate({here}[i]);"]
    lines += _choice(policy, here, sizes[-1])
    return "\n".join([*lines, "}", ""])


def _choice(policy: TorchPolicy, outputs: str, num_outputs: int) -> list[str]:
    """From the network's outputs to the action."""
    if policy.distribution == "categorical":
        return [
            "  int best = 0;",
            f"  for (int i = 1; i < {num_outputs}; ++i) {{",
            f"    if ({outputs}[i] > {outputs}[best]) best = i;",
            "  }",
            "  *out = best;",
        ]
    loop = "  for (int i = 0; i < kActionSize; ++i) {"
    if policy.distribution == "gaussian":
        value = f"{outputs}[i]"
        if policy.clip_actions:
            value = f"clampf({value}, low[i], high[i])"
        return [loop, f"    out[i] = {value};", "  }"]
    return [
        loop,
        "    float center = (high[i] + low[i]) / 2.0F, half = (high[i] - low[i]) / 2.0F;",
        f"    out[i] = center + half * tanhf({outputs}[i]);",
        "  }",
    ]


def _layers(network: nn.Module) -> tuple[list[nn.Linear], type[nn.Module]]:
    layers = list(network) if isinstance(network, nn.Sequential) else [network]
    linears = [layer for layer in layers if isinstance(layer, nn.Linear)]
    between = {type(layer) for layer in layers if not isinstance(layer, nn.Linear)}
    kind = next(iter(between), nn.Identity)
    regular = all(isinstance(layer, nn.Linear) == (i % 2 == 0) for i, layer in enumerate(layers))
    if not linears or not regular or len(between) > 1 or kind not in _ACTIVATIONS:
        raise ValueError(
            "format: c needs linear layers with one kind of "
            f"{', '.join(each.__name__ for each in _ACTIVATIONS)} between them, got {network}; "
            "onnx and torch.export take any network"
        )
    return linears, kind


def _array(name: str, values: torch.Tensor) -> list[str]:
    numbers: NDArray[np.float32] = values.cpu().numpy().ravel()
    rows = [", ".join(map(_number, numbers[i : i + 8])) + "," for i in range(0, len(numbers), 8)]
    return [f"static const float {name}[{len(numbers)}] = {{", *_indented(rows), "};"]


def _indented(rows: Sequence[str]) -> list[str]:
    return [f"  {row}" for row in rows]


def _number(value: float) -> str:
    """A float32 that C reads back with the same bits."""
    value = float(value)
    if np.isinf(value):
        return "HUGE_VALF" if value > 0 else "-HUGE_VALF"
    return f"{value.hex()}F"
