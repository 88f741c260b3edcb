"""How many CPUs this process may use."""

from __future__ import annotations

import math
import os
from pathlib import Path


def available_cpus(root: Path = Path("/")) -> int:
    """The CPUs of the affinity mask, or fewer where a cgroup quota (a container's) says so.

    Args:
        root: Where ``sys/fs/cgroup`` and ``proc/self/cgroup`` are looked for.
    """
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cgroup_quota(root)
    return max(1, cpus if quota is None else min(cpus, math.ceil(quota)))


def cgroup_quota(root: Path = Path("/")) -> float | None:
    """How many CPUs' time this process's cgroup may take; None: as much as there is."""
    return min(_cgroup_quotas(root), default=None)


def _cgroup_quotas(root: Path) -> list[float]:
    """The quotas in CPUs of this process's cgroup and those above it."""
    mount = root / "sys/fs/cgroup"
    quotas = []
    for group in _cgroups(root):
        folder = mount / group
        try:  # version 2
            quota, period = (folder / "cpu.max").read_text().split()
        except (OSError, ValueError):
            try:  # version 1
                quota = (mount / "cpu" / group / "cpu.cfs_quota_us").read_text().strip()
                period = (mount / "cpu" / group / "cpu.cfs_period_us").read_text().strip()
            except OSError:
                continue
        if quota not in ("max", "-1"):
            quotas.append(int(quota) / int(period))
    return quotas


def _cgroups(root: Path) -> list[Path]:
    """This process's cgroup and its ancestors, relative to the mount; "." is the root."""
    groups = {Path()}
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:  # hierarchy:controllers:path
        _, controllers, path = line.split(":", 2)
        if controllers == "" or "cpu" in controllers.split(","):
            group = Path(path.lstrip("/"))
            groups.update([group, *group.parents])
    return sorted(groups)
