"""10,000 steps of every environment have the digests stored for this configuration."""

from __future__ import annotations

import digests
import pytest

import pyfastenv

CONFIG = digests.configuration()
STORED = digests.load(CONFIG)
needs_digests = pytest.mark.skipif(
    STORED is None, reason=f"no digests for {CONFIG}: `make digests` writes them"
)


@needs_digests
def test_every_environment_has_a_digest() -> None:
    assert STORED is not None
    assert sorted(STORED) == sorted(pyfastenv.env_ids()), "write them anew: make digests"


@needs_digests
@pytest.mark.parametrize("env_id", pyfastenv.env_ids())
def test_digest(env_id: str) -> None:
    assert STORED is not None
    assert digests.digest(env_id) == STORED[env_id], (
        f"{env_id}: 10,000 steps have changed under {CONFIG}. If that was meant, say why in the "
        "commit and write the digests anew: make digests"
    )


def test_a_digest_depends_on_every_bit_of_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digests.digest("CartPole-v1")
    assert digests.digest("CartPole-v1") == before
    monkeypatch.setattr(digests, "SEED", digests.SEED + 1)
    assert digests.digest("CartPole-v1") != before
