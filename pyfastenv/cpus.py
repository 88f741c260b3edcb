"""How many CPUs this process may use."""

from __future__ import annotations

import math
import os
from pathlib import Path


def available_cpus(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """The CPUs of the affinity mask, or fewer where a cgroup quota (a container's) says so."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cpus, _cgroup_quota(cgroup) or cpus))


def _cgroup_quota(cgroup: Path) -> int | None:
    """The quota in whole CPUs, rounded up; None if there is none. Reads cgroup v2, then v1."""
    try:
        quota, period = (cgroup / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = (cgroup / "cpu/cpu.cfs_quota_us").read_text().strip()
            period = (cgroup / "cpu/cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    if quota in ("max", "-1"):
        return None
    return max(1, math.ceil(int(quota) / int(period)))
