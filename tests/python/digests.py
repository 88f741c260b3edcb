"""Digests of 10,000 steps of every environment, stored per configuration: a silent change is seen.

What may change a bit, and so names the file: MuJoCo's version, NumPy's version and which of its
sin and cos loops this processor gets, what its BLAS makes of dot products (the norms of Reacher and
Pusher; some processors with AVX-512 get AVX2's kernels), the C library (MuJoCo's sin, cos and pow),
the architecture.
``make parity NAME=digests`` (this file as a program) writes the file of its own machine; with
WITHOUT_AVX512 in its environment, that of one without AVX-512.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

import mujoco
import numpy as np
from numpy.lib.introspect import opt_func_info

import pyfastenv

FOLDER = Path(__file__).parent / "digests"
NUM_ENVS = 8
STEPS = 10_000 // NUM_ENVS  # beyond every registered time limit
SEED = 13
WITHOUT_AVX512 = {
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    "OPENBLAS_CORETYPE": "Haswell",
    "PYFASTENV_LANES": "4",
}


def configuration() -> dict[str, str]:
    """The facts that decide the bits on this machine."""
    loops = opt_func_info(func_name="^(sin|cos)$")
    targets = {
        loop["current"].split("(")[0]
        for by_type in loops.values()
        for types, loop in by_type.items()
        if types in ("ff", "dd")
    }
    return {
        "mujoco": mujoco.__version__,
        "numpy": np.__version__,
        "machine": platform.machine(),
        "numpy_sin_cos": "+".join(sorted(targets)),
        "dot": _dots(),
        "libc": "".join(platform.libc_ver()) or platform.system(),
    }


def _dots() -> str:
    """The rounding of BLAS' kernel for short dot products."""
    vectors = np.random.Generator(np.random.PCG64(SEED)).normal(size=(1_000, 3))
    dots = np.array([np.dot(vector, vector) for vector in vectors])
    return blake2b(dots.tobytes(), digest_size=4).hexdigest()


def path_of(config: dict[str, str]) -> Path:
    """Where the digests of a configuration are."""
    name = "mujoco-{mujoco}-numpy-{numpy}-{machine}-{numpy_sin_cos}-{dot}-{libc}.json"
    return FOLDER / name.format(**config).lower()


def load(config: dict[str, str]) -> dict[str, str] | None:
    """The stored digests by environment id; None if this configuration has none."""
    path = path_of(config)
    if not path.is_file():
        return None
    digests: dict[str, str] = json.loads(path.read_text())["digests"]
    return digests


def digest(env_id: str) -> str:
    """blake2b of observations, rewards and flags of 8 environments x 1,250 steps, in hex.

    Actions are uniform in the action space, from a PCG64 seeded alike for every environment.
    """
    envs = pyfastenv.make_vec(env_id, NUM_ENVS, infos=False)
    rng = np.random.Generator(np.random.PCG64(SEED))
    space = envs.single_action_space
    hashed = blake2b(digest_size=16)
    try:
        hashed.update(envs.reset(seed=SEED)[0].tobytes())
        for _ in range(STEPS):
            if hasattr(space, "n"):
                actions = rng.integers(0, space.n, NUM_ENVS)
            else:
                uniform = rng.random((NUM_ENVS, *space.shape), dtype=np.float32)
                actions = space.low + uniform * (space.high - space.low)
            for result in envs.step(actions)[:4]:
                hashed.update(result.tobytes())
    finally:
        envs.close()
    return hashed.hexdigest()


def write(env_ids: Iterable[str]) -> Path:
    """Stores the digests of this machine's configuration."""
    config = configuration()
    content = {
        "configuration": config,
        "steps": NUM_ENVS * STEPS,
        "digests": {env_id: digest(env_id) for env_id in env_ids},
    }
    path = path_of(config)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n")
    return path


if __name__ == "__main__":
    print(write(pyfastenv.env_ids()))
