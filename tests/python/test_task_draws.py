"""``rng`` in compiled tasks: NumPy's numbers for every kind of bound and size, or a refusal."""

import traceback
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripts import module_of

import pyfastenv

NAMES = """
import numpy as np

THREE = np.array([0.25, 1.5, 3.0])
FOUR = np.array([-1.0, 2.0, 0.5, -7.0])
COLUMN = np.array([[2.0], [5.0], [70.0]])
TABLE = np.arange(12.0).reshape(3, 4) / 7.0
SINGLE = np.array([0.125], dtype=np.float32)
WHOLE = np.array([3, 5, 9])
NARROW = np.array([[1], [2]], dtype=np.int32)
BITS = np.array([True, False, True])
WIDE = np.array([-(2**40), 0, 2**62])
"""
FILE = """
import pyfastenv

class Drawing(pyfastenv.Task):
    model = '''<mujoco><worldbody><body><joint name="x" type="slide"/><geom size=".1"/></body>
      </worldbody><actuator><motor joint="x"/></actuator></mujoco>'''
    n = 2

    def reset(self, data, rng):
        data.qpos[:] = rng.random()
        {in_reset}

    def step(self, data, action, rng, info):
        self.simulate(data)
        {in_step}
        return 0.0, False

    def observation(self, data, obs):
        obs["qpos"] = data.qpos
"""

# bounds that go together are found by asking NumPy
LOW = ("-0.5", "-3", "THREE - 20.0", "TABLE - 20.0", "SINGLE", "(-1.0, 0, -2.5)",
       "TABLE[::-1, ::2]")  # fmt: skip
HIGH = ("1e3", "7", "COLUMN", "WHOLE", "BITS", "FOUR + 30.0", "THREE[::2] + 30.0")
CENTRE = ("0.5", "-3", "FOUR", "TABLE", "NARROW", "(1, 2, 3)", "SINGLE")
SCALE = ("2.0", "3", "THREE", "COLUMN", "SINGLE", "BITS", "TABLE[::-1, ::2]")
FIRST = ("-3", "WHOLE - 10", "NARROW", "BITS", "WIDE[1]", "(1, 2, 3)", "WIDE // 2 - 2**41")
LAST = ("12", "2**62", "WHOLE + 300", "BITS + 2", "WIDE + 2**33", "WHOLE[::2] + 2**40", "BITS")
SIZES = ("", "3", "(3,)", "(2, 3)", "(3, 4)", "(2, 3, 4)", "0", "(0, 3)", "self.n", "(self.n, 1)")


def namespace() -> dict[str, Any]:
    space: dict[str, Any] = {"self": type("Self", (), {"n": 2})}
    exec(NAMES, space)
    return space


def of_two(
    name: str, firsts: tuple[str, ...], seconds: tuple[str, ...], more: str = ""
) -> list[str]:
    """Every bound beside three others, and every size with three of these pairs."""
    pairs = [
        pair
        for shift in (1, 4, 6)
        for pair in zip(firsts, seconds[shift:] + seconds[:shift], strict=True)
    ]
    calls = [f"rng.{name}({a}, {b}{more})" for a, b in pairs]
    sized = zip(cycle(pairs), 3 * SIZES[1:], strict=False)
    return calls + [f"rng.{name}({a}, {b}, size={size}{more})" for (a, b), size in sized]


def calls(name: str) -> list[str]:
    """Draws of a distribution, in all ways that NumPy knows."""
    if name == "uniform":
        few = ["rng.uniform()", "rng.uniform(size=4)", "rng.uniform(0.5)", "rng.uniform(high=3)"]
        return [*few, "rng.uniform(low=SINGLE, high=2)", *of_two(name, LOW, HIGH)]
    if name == "normal":
        few = ["rng.normal()", "rng.normal(size=(2, 2))", "rng.normal(scale=THREE, loc=1)"]
        return [*few, "rng.normal(THREE)", "rng.normal(0.0, 0.0)", *of_two(name, CENTRE, SCALE)]
    if name == "integers":
        few = [f"rng.integers({high})" for high in ("1", "7", "2.7", "2**40", "WHOLE", "2**32 - 1")]
        few += [f"rng.integers(0, {high})" for high in ("2**32", "2**32 + 1", "2**63 - 1")]
        few += [f"rng.integers(6, size={size})" for size in SIZES[1:]]
        few += ["rng.integers(high=9, low=WHOLE - 9)", "rng.integers(-2**63, 2**63 - 1, 5)"]
        closed = [
            f"rng.integers({a}, {b}, endpoint=True)" for a, b in zip(FIRST, LAST, strict=True)
        ]
        closed += [
            "rng.integers(-2**63, 2**63 - 1, endpoint=True)",
            "rng.integers(4, 4, 3, None, True)",
        ]
        return [*few, *closed[:-1], *of_two(name, FIRST, LAST)]
    return [f"rng.{name}({size})" for size in SIZES]


def written(folder: Path, in_reset: list[str], in_step: list[str]) -> Any:
    """A task with these lines in its methods."""
    places = {"in_reset": in_reset, "in_step": in_step}
    text = FILE.format(**{name: "\n        ".join(lines) for name, lines in places.items()})
    return module_of(folder / "drawing.py", NAMES + text).Drawing


@pytest.mark.parametrize(
    ("name", "least"),
    [("uniform", 28), ("normal", 30), ("integers", 40), ("standard_normal", 10), ("random", 10)],
)
def test_draws_are_numpys(name: str, least: int, tmp_path: Path) -> None:
    rng, space = np.random.default_rng(7), namespace()
    rng.random()  # reset's
    drawn: dict[str, Any] = {}
    for call in dict.fromkeys(calls(name)):
        with suppress(ValueError):  # shapes that do not go together
            if "size=" in call:  # integers takes some, and returns a part of what it broadcasts
                eval(call.replace("integers", "normal"), {**space, "rng": np.random.default_rng()})
            drawn[call] = eval(call, {**space, "rng": rng})
    assert len(drawn) >= least
    # infos are float64, of which two hold an int64
    parts = [" >> 32", " & 4294967295"] if name == "integers" else [""]
    lines = []
    for i, (call, value) in enumerate(drawn.items()):
        lines.append(f"x{i} = {call}")
        if np.ndim(value) > 0:
            lines.append(f"info['shape{i}'] = np.array(x{i}.shape)")
        if np.size(value) > 0:  # an info has one number at least
            all_of = f"x{i}.ravel()" if np.ndim(value) > 0 else f"x{i}"
            for k, part in enumerate(parts):
                lines.append(f"info['x{i}_{k}'] = {all_of}{part}")
    envs = pyfastenv.make_vec(written(tmp_path, ["pass"], lines), 2, num_threads=1)
    envs.reset(seed=7)
    infos = envs.step(np.zeros((2, 1)))[4]
    for i, (call, value) in enumerate(drawn.items()):
        if np.ndim(value) > 0:
            assert tuple(infos[f"shape{i}"][0]) == np.shape(value), call
        for k, part in enumerate(parts if np.size(value) > 0 else []):
            theirs = np.ravel(eval(f"value{part}")).astype(float)
            ours = np.ravel(infos[f"x{i}_{k}"][0]).astype(float)
            assert ours.tobytes() == theirs.tobytes(), (call, ours, theirs)
    # and nothing else was drawn
    assert envs.generator(0).bit_generator.state == rng.bit_generator.state


REFUSED = [
    # what NumPy refuses too
    ("rng.uniform(1.0, -1.0)", "high - low"),
    ("rng.uniform(0.0, np.inf)", "high - low"),
    ("rng.uniform(THREE, FOUR[:3] - 5.0)", "high - low"),
    ("rng.uniform(THREE, 9.0, size=4)", "broadcast"),
    ("rng.uniform(THREE, FOUR)", "broadcast"),
    ("rng.normal(0.0, -1.0)", "scale < 0"),
    ("rng.normal(0.0, FOUR, 4)", "scale < 0"),
    ("rng.random(-1)", "negative dimensions"),
    ("rng.integers(5, 5)", "low >= high"),
    ("rng.integers(WHOLE, 9)", "low >= high"),
    ("rng.integers(5, 4, endpoint=True)", "low > high"),
    ("rng.random(2.0)", "expected a sequence of integers"),
    # what compiled code does not do
    ("rng.random(())", "size: expected"),
    ("rng.random(True)", "expected a sequence of integers"),
    ("rng.uniform(0.0, 1.0, [2, 3])", "size: expected"),
    ("rng.random(3, dtype=np.float32)", "dtype: compiled it draws new float64"),
    ("rng.standard_normal(3, np.float32)", "dtype: compiled it draws new float64"),
    ("rng.random(out=np.zeros(3))", "out: compiled it draws new float64"),
    ("rng.integers(3, dtype=np.int32)", "dtype: compiled it draws new float64"),
    ("rng.integers(WHOLE, 50.5)", "expected whole numbers beside an array"),
    ("rng.integers(THREE + 1.0)", "expected whole numbers"),
    ("rng.uniform([0.0, 1.0], 2.0)", "expected a number or an array"),
    ("rng.choice(3)", "rng.uniform"),
    ("rng.exponential()", "rng.uniform"),
    ("rng.permutation(3)", "rng.uniform"),
]


@pytest.mark.parametrize(("call", "said"), REFUSED)
def test_refusals_say_where(call: str, said: str, tmp_path: Path) -> None:
    task = written(tmp_path, [f"y = {call}"], ["pass"])
    with pytest.raises((ValueError, TypeError, OverflowError)) as caught:
        pyfastenv.make_vec(task, 2)
    assert said in str(caught.value), caught.value
    shown = "".join(traceback.format_exception(caught.value))
    assert 'drawing.py", line' in shown or "drawing.py:" in shown


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("rng.uniform(0.0, late)", "high - low"),
        ("rng.uniform(0.0, np.inf if late < 0.0 else 1.0)", "high - low"),
        ("rng.normal(0.0, late * THREE)", "scale < 0"),
        ("rng.integers(0, int(late) + WHOLE)", "high <= 0"),
        ("rng.random(int(late))", "negative dimensions"),
        ("rng.uniform(THREE, 90.0, 2 + int(late > 0.0))", "broadcast"),
        ("rng.uniform(THREE[:2], 90.0, size=(2, 1 + int(late > 0.0)))", "Output size (2, 1)"),
        ("rng.normal(WHOLE[:2], THREE[: 2 + int(late < 0.0)])", "broadcast"),
    ],
)
def test_what_becomes_wrong_later_is_named(call: str, said: str, tmp_path: Path) -> None:
    lines = ["late = 20.0 if data.time < 0.003 else -20.0", f"y = {call}"]
    envs = pyfastenv.make_vec(written(tmp_path, ["pass"], lines), 2, num_threads=1)
    envs.reset(seed=0)
    envs.step(np.zeros((2, 1)))
    with pytest.raises(pyfastenv.EnvError) as caught:
        envs.step(np.zeros((2, 1)))
    assert said in str(caught.value) and "drawing.py:" in str(caught.value), caught.value
