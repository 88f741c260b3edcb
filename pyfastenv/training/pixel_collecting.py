"""Collecting pictures for algorithms that replay."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyfastenv.sampling.buffers import RowLayout, Transitions
from pyfastenv.sampling.frames import FramePool
from pyfastenv.training.collecting import SeedCollector
from pyfastenv.training.off_policy_config import OffPolicyConfig
from pyfastenv.vector.pixels import PixelOptions, PixelViews

_EXPECTED = {"channels": "last", "with_state": False, "render_every": 1}


class PixelCollector(SeedCollector):
    """Environments that show pixels: rows have the numbers of pictures, which it keeps.

    Args:
        config: The options.

    Attributes:
        pixels: What observations are.
        frames: Their pictures.

    Raises:
        ValueError: Pixels of a kind from which nothing is learned here.
    """

    def __init__(self, config: OffPolicyConfig):
        super().__init__(config)
        assert self.envs.pixels is not None
        self.pixels: PixelOptions = self.envs.pixels
        for name, expected in _EXPECTED.items():
            if (given := getattr(self.pixels, name)) != expected:
                raise ValueError(
                    f"pixels: {name}: {config.algorithm} expected {expected!r}, got {given!r}"
                )
        height, width, channels = self.pixels.shape
        stack = self.pixels.frame_stack
        self.layout = RowLayout(stack, len(self.actions))
        self.frames = FramePool(
            config.num_seeds,
            config.num_envs,
            config.buffer_size,
            (channels // stack, height, width),
            stack,
            config.learn_device,
        )

    def _rows(self, new: Transitions) -> Tensor:
        """Transitions step by step, ``T * N`` of them, to the seeds' rows; keeps the pictures."""
        views = self.envs.obs_views
        assert isinstance(views, PixelViews)
        lead = (-1, self._config.num_seeds, self._config.num_envs)
        steps = zip(
            *(views.of(obs).unflatten(0, lead).movedim(-1, -3) for obs in (new.obs, new.next_obs)),
            new.ended.view(lead),
            strict=True,
        )
        numbers = [torch.stack(parts) for parts in zip(*map(self._add, steps), strict=True)]
        obs, next_obs = (part.flatten(0, 2) for part in numbers)
        return super()._rows(new._replace(obs=obs, next_obs=next_obs))

    def _add(self, step: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return self.frames.add(*step)

    def state_dict(self) -> dict[str, Any]:
        """As the base's, and the pictures."""
        return {**super().state_dict(), "frames": self.frames.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict`."""
        super().load_state_dict(state)
        self.frames.load_state_dict(state["frames"])
