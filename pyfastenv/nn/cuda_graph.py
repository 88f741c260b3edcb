"""A gradient step as a CUDA graph: one launch instead of a hundred. On the CPU, a plain call."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

_WARM_UP = 3  # real steps before the capture, so that libraries have chosen their kernels


class GraphedUpdate:
    """Calls ``update(rows, noise, metrics)``; on CUDA from a graph, after a few plain calls.

    The update must be tensor operations of fixed shapes on fixed parameters, without host
    synchronisation. Another shape of the arguments, or another ``metrics``, gives a new graph.

    Args:
        update: The gradient step.
        device: Where it runs.
    """

    def __init__(
        self, update: Callable[[Tensor, Tensor, Tensor | None], None], device: torch.device
    ):
        self._update = update
        self._on_cuda = device.type == "cuda"
        self._side = torch.cuda.Stream(device) if self._on_cuda else None
        self._calls = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._rows = torch.empty(0, device=device)
        self._noise = torch.empty(0, device=device)
        self._metrics = torch.empty(0, device=device)

    def __call__(self, rows: Tensor, noise: Tensor, metrics: Tensor, *, wanted: bool) -> None:
        """One gradient step.

        Args:
            rows: Of the update.
            noise: Of the update.
            metrics: Where metrics are written.
            wanted: Whether anybody will read them: without a graph that saves time.
        """
        if not self._on_cuda:
            self._update(rows, noise, metrics if wanted else None)
            return
        if rows.shape != self._rows.shape or noise.shape != self._noise.shape:
            self._rows, self._noise = torch.empty_like(rows), torch.empty_like(noise)
            self._calls, self._graph = 0, None
        if metrics is not self._metrics:
            self._metrics = metrics
            self._calls, self._graph = 0, None
        self._rows.copy_(rows)
        self._noise.copy_(noise)
        if self._graph is None and self._calls >= _WARM_UP:
            self._graph = self._captured()
        if self._graph is None:
            self._calls += 1
            self._on_side_stream()
        else:
            self._graph.replay()

    def _on_side_stream(self) -> None:
        """As the capture's documentation asks for the calls before it."""
        assert self._side is not None
        self._side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._side):
            self._update(self._rows, self._noise, self._metrics)
        torch.cuda.current_stream().wait_stream(self._side)

    def _captured(self) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):  # captures, does not run
            self._update(self._rows, self._noise, self._metrics)
        return graph
