"""Random numbers for several seeds side by side: each seed gets what it would get alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


class SeedStreams:
    """One generator per seed; every draw has a leading axis of seeds.

    Args:
        seeds: K of them.
        device: Where the numbers are drawn and stay.

    Attributes:
        generators: The seeds' generators.
    """

    def __init__(self, seeds: Sequence[int], device: torch.device | str = "cpu"):
        self.device = torch.device(device)
        self.generators = [torch.Generator(self.device).manual_seed(seed) for seed in seeds]

    def __len__(self) -> int:
        return len(self.generators)

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers, ``(K, *shape)`` float32."""
        out = torch.empty(len(self), *shape, device=self.device)
        for mine, generator in zip(out, self.generators, strict=True):
            mine.normal_(generator=generator)
        return out

    def uniform(self, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
        """Uniform numbers in [0, 1), ``(K, *shape)``; in float64 fine enough for any index."""
        out = torch.empty(len(self), *shape, dtype=dtype, device=self.device)
        for mine, generator in zip(out, self.generators, strict=True):
            mine.uniform_(generator=generator)
        return out

    def integers(self, high: int, *shape: int) -> Tensor:
        """Whole numbers from 0 to ``high - 1``, ``(K, *shape)`` int64."""
        out = torch.empty(len(self), *shape, dtype=torch.int64, device=self.device)
        for mine, generator in zip(out, self.generators, strict=True):
            torch.randint(high, shape, generator=generator, out=mine)
        return out

    def fork(self) -> SeedStreams:
        """New streams, seeded by one draw of each: a seed may draw from them longer than it would
        alone, while others go on, and meets the same numbers here afterwards."""
        seeds = (self.uniform() * 2**53).long().tolist()
        return SeedStreams(seeds, self.device)

    def state_dict(self) -> dict[str, Any]:
        """The generators' states."""
        return {"generators": [generator.get_state() for generator in self.generators]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores :meth:`state_dict` of as many seeds on the same kind of device."""
        for generator, saved in zip(self.generators, state["generators"], strict=True):
            generator.set_state(saved)
