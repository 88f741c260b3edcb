"""TD3+BC's gradient steps (``spec``) in a faster way: TD3's with another slope of the policy."""

from __future__ import annotations

from torch import Tensor

from pyfastenv.algorithms.td3 import accelerated as td3


class WrittenOut(td3.WrittenOut):
    """Gradients written out, as TD3's."""

    @classmethod
    def why_not(cls, learner: td3.Learner) -> str | None:
        """Behaviour cloning alone has a step of another kind."""
        return "alpha is 0, so no critic learns" if learner.options.alpha == 0.0 else None

    def _policy_slope(self, values: Tensor, unit: Tensor, rows: Tensor) -> td3.PolicySlope:
        learner = self._learner
        scale = learner.options.alpha / values.abs().mean((1, 2), keepdim=True)  # (K, 1, 1)
        errors = unit - learner.layout.obs_actions(rows)[..., learner.layout.obs_size :]
        loss = errors.square().mean((1, 2)) - (scale * values).mean((1, 2))
        by_value = (scale / -values.shape[1]).expand_as(values)
        return td3.PolicySlope(loss, by_value, errors * (2.0 / errors[0].numel()))
