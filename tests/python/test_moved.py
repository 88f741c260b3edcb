"""Documented modules are found under their earlier names."""

import re
import sys
from importlib import import_module

import pytest

from pyfastenv._moved import MOVED

pytest.importorskip("torch")


@pytest.mark.parametrize("old", MOVED)
def test_the_earlier_name_gives_the_same_module_and_a_warning(
    old: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"pyfastenv.{old}", raising=False)
    said = re.escape(f"pyfastenv.{old} is pyfastenv.{MOVED[old]} now")
    with pytest.warns(DeprecationWarning, match=said):
        found = import_module(f"pyfastenv.{old}")
    assert found is import_module(f"pyfastenv.{MOVED[old]}")
    assert found.__name__ == f"pyfastenv.{MOVED[old]}"
