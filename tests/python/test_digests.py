"""10,000 steps of every environment have the digests stored for this configuration."""

from __future__ import annotations

import json
import os
from pathlib import Path

import digests
import pytest
from scripts import run_script

import pyfastenv

CONFIG = digests.configuration()
STORED = digests.load(CONFIG)
needs_digests = pytest.mark.skipif(
    STORED is None, reason=f"no digests for {CONFIG}: `make parity NAME=digests` writes them"
)


@needs_digests
def test_every_environment_has_a_digest() -> None:
    assert STORED is not None
    assert sorted(STORED) == sorted(pyfastenv.env_ids()), "make parity NAME=digests"


@needs_digests
@pytest.mark.parametrize("env_id", pyfastenv.env_ids())
def test_digest(env_id: str) -> None:
    assert STORED is not None
    assert digests.digest(env_id) == STORED[env_id], (
        f"{env_id}: 10,000 steps have changed under {CONFIG}. If that was meant, say why in the "
        "commit and write the digests anew: make parity NAME=digests"
    )


def test_digests_of_a_processor_with_fewer_instructions() -> None:
    """NumPy, its BLAS and lanes take what AVX2 alone allows; Reacher's and Pusher's bits differ."""
    if CONFIG["numpy_sin_cos"] != "X86_V4":
        pytest.skip("this processor has no AVX-512 to do without")
    code = """
import json, sys, digests
print(json.dumps([digests.configuration(), {i: digests.digest(i) for i in sys.argv[1:]}]))
"""
    env = {**os.environ, **digests.WITHOUT_AVX512, "PYTHONPATH": str(Path(__file__).parent)}
    env_ids = ("Reacher-v5", "Pusher-v5", "Hopper-v5", "Acrobot-v1")
    config, computed = json.loads(run_script(code, *env_ids, env=env))
    assert config["numpy_sin_cos"] == "X86_V3"
    stored = digests.load(config)
    if stored is None:
        pytest.skip(f"no digests for {config}")
    assert computed == {env_id: stored[env_id] for env_id in computed}
    if STORED is not None:
        same = computed["Reacher-v5"] == STORED["Reacher-v5"]
        assert same == (config["dot"] == CONFIG["dot"])


def test_a_digest_depends_on_every_bit_of_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digests.digest("CartPole-v1")
    assert digests.digest("CartPole-v1") == before
    monkeypatch.setattr(digests, "SEED", digests.SEED + 1)
    assert digests.digest("CartPole-v1") != before
