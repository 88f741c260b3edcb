"""The CUDA caching allocator under lengths of one kind; run in a process of its own. Needs CUDA.

The process may use a third more than what the longest batch needs, as if the model had been sized
to the GPU: blocks of one length that are of no use to another then have to be freed.
"""

from __future__ import annotations

import json

import torch
from torch import nn

from pyfastenv.experiments.clock import milliseconds
from pyfastenv.experiments.profiling import length_of


def main(kind: str, num_steps: str, longest: int = 2_048) -> None:
    """Prints a row as JSON: reserved memory after each step [MiB], frees, retries, ms per step."""
    torch.manual_seed(0)
    lengths = torch.randint(longest // 8, longest + 1, (int(num_steps),)).tolist()
    model = nn.Sequential(*[nn.Sequential(nn.Linear(512, 512), nn.GELU()) for _ in range(8)]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step(length: int) -> None:
        model(torch.randn(16, length, 512, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    step(longest)
    torch.cuda.synchronize()
    limit = 4 * torch.cuda.memory_reserved() // 3
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, limit / total))
    before = torch.cuda.memory_stats()
    reserved: list[float] = []
    times: list[float] = []
    try:
        for length in lengths:
            times += milliseconds(lambda length=length: step(length_of(kind, length, longest)))  # type: ignore[misc]
            reserved.append(torch.cuda.memory_reserved() / 2**20)
    except torch.cuda.OutOfMemoryError:
        pass  # told by the number of steps
    after = torch.cuda.memory_stats()
    row = {"reserved_mib": reserved, "steps": len(reserved), "ms": sum(times) / len(times)}
    for name, key in (("retries", "num_alloc_retries"), ("frees", "num_device_free")):
        row[name] = after.get(key, 0) - before.get(key, 0)
    print(json.dumps(row))
