"""Numbers in compiled tasks: NumPy's and MuJoCo's bits, or a sentence."""

import ast
import ctypes
import re
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from plain_python import beside_plain
from scripts import module_of

import pyfastenv
from pyfastenv import _core

HEAD = '''
import math
import mujoco
import numpy as np
import pyfastenv

SCALE = np.array([0.5, 1.5, 2.5])
MATRIX = np.arange(12.0).reshape(3, 4) / 7.0
ROWS, CELL = [0, 2], (1, 2)

def pick(array, index):
    return array[index]

def rotate(vector, quaternion):
    out = np.zeros(3)
    mujoco.mju_rotVecQuat(out, vector, quaternion)
    return out

def scaled(factor):
    def times(x):
        return x * factor
    return times

double, treble = scaled(2.0), scaled(3.0)

class Numbers(pyfastenv.Task):
    model = """<mujoco><worldbody>
      <geom name="floor" type="plane" size="5 5 1"/>
      <body name="ball" pos="0 0 .3"><freejoint name="free"/><geom name="skin" size=".1"/>
      <site name="top" pos="0 0 .1"/></body>
      <body name="arm" pos="1 0 1"><joint name="slide" type="slide" axis="1 0 0"/>
      <joint name="turn" axis="0 1 0"/><geom size=".1"/></body></worldbody>
      <tendon><fixed name="cord"><joint joint="turn" coef="2"/></fixed></tendon>
      <actuator><motor name="pull" joint="turn" ctrlrange="-1 1"/><motor joint="slide"/></actuator>
      <sensor><framepos name="where" objtype="site" objname="top"/></sensor></mujoco>"""
    v = pyfastenv.memory(9)
    w = pyfastenv.memory(9)
    x = pyfastenv.memory()
    y = pyfastenv.memory()
    gain = 1.7
    count = 3
    tenths = np.array([1.0, 2.5, 6.0, -1.0, 0.3, 9.0, 0.0, -0.0, 1.7])

    def draw(self, rng):
        self.v[:] = rng.uniform(-3.0, 3.0, 9)
        self.w[:] = rng.normal(0.0, 2.0, 9)
        self.x, self.y = rng.uniform(-3.0, 3.0), rng.standard_normal()

    def reset(self, data, rng):
        data.joint("turn").qpos[0] = rng.random()
        self.draw(rng)

    def step(self, data, action, info, rng):
        self.simulate(data)
        self.draw(rng)
        info["drawn"] = rng.integers(0, 1000) + rng.integers(7)
        return np.where(self.x > 0.0, self.x, self.y), False

    def observation(self, data, obs):
        v, w, x, y = self.v, self.w, self.x, self.y
'''

EXPRESSIONS = """
double(x) - treble(y)
np.sin(x), np.cos(x), np.tan(x), np.exp(x), np.expm1(x), np.tanh(x), np.sinh(x), np.cosh(x)
np.log(abs(x)), np.log2(abs(x)), np.log10(abs(x)), np.log1p(abs(x)), np.cbrt(x), np.sqrt(abs(x))
np.arctan(x), np.arcsin(np.clip(x, -1, 1)), np.arccos(np.clip(y, -1.0, 1.0)), np.arcsinh(x)
np.arctan2(x, y), np.hypot(x, y), np.power(abs(x), y), np.fmod(x, y), np.mod(x, y), x % y
np.degrees(x), np.radians(x), np.rint(x), np.floor(x), np.ceil(x), np.sign(x), np.square(x)
x ** 2, x ** 3, abs(x) ** 0.5, abs(x) ** y, self.count ** 2, self.gain ** 2, 2.0 ** x
np.sin(v)
np.exp(w)
np.tanh(v[::2])
np.arctan2(v, w)
np.arctan2(x > 0, y), np.mod(-7, self.count), np.remainder(7, -self.count)
np.arctan2(v[:3], y > 0)
3 * self.model.jnt_qposadr[1], np.sum(self.model.jnt_qposadr * x), np.sum(~(v > 0)), ~self.count
np.arctan2(v, 1.0)
v ** 2
np.sum(v), np.sum(v[1:4]), np.sum(v[::2]), v.sum(), np.mean(w), w.mean(), np.sum(v * w)
np.linalg.norm(v), np.linalg.norm(v[:2]), np.linalg.norm(w[::3]), np.sum(v > 0)
np.dot(v, w), v @ w, v[:3].dot(w[:3])
MATRIX @ v[:4]
v[:3] @ MATRIX
np.ascontiguousarray(MATRIX.T) @ MATRIX
np.max(v), np.min(w), v.max(), np.argmax(v), np.maximum(x, y), np.minimum(x, y), max(x, y)
np.clip(v, -1.0, 1.0)
np.clip(0.0 * v, 0.0, 1.0)
np.clip(x, np.nan, 1.0), np.clip(x, 0.0, np.nan), np.clip(np.nan * x, 0.0, 1.0)
np.clip(0.0, -1, -0.0), np.clip(-0.0 * abs(y), 0.0, 1.0)
np.where(v > w, v, w)
np.concatenate((v[:3], w[2:5]))
np.cross(v[:3], w[:3])
np.outer(v[:3], w[:2])
np.array([x, y, x * y])
v[:3] * SCALE
np.zeros(3) + x
float(np.float32(x)) * float(np.float32(y)), float(x > 0.0), float(np.sum(v > 0))
v.astype(np.float32) * 3
np.maximum(w.astype(np.float32), 1)
np.sum((1, 2)), np.sum((x > 0, y > 0)), np.sum((x, y, 1.5))
(self.v if x > 0 else np.zeros(9)) * 2.0
self.parts(data)
self.in_place(v)
MATRIX[ROWS]
MATRIX[ROWS, 1]
np.sum(data.xpos[ROWS]), ROWS[1], len(ROWS), MATRIX[CELL]
np.sum((v > 0) + (w > 0)), (v[0] > 0) + 1, np.sum((v > 0) * x), 1.0 if (x > 0) | (y > 0) else 0.0
np.abs(v)
np.sum(abs(w)), abs(self.count - 5), abs(-0.0 * abs(x))
np.where(x > 0, y, 2.0), np.sum(v[:, np.newaxis] * w[:2])
np.ones(9) // 0.1
np.ones(9) % 0.1
self.tenths // 0.1
self.tenths // (0.1 * SCALE[0])
1.0 // self.tenths[:6]
self.tenths % -0.1
np.copysign(1.0, np.rint(v) % -1.0)
self.floored(self.tenths.copy())
self.floored(np.rint(v))
np.copysign(1.0, np.sign(self.tenths))
np.copysign(1.0, np.maximum(self.tenths, 0))
np.copysign(1.0, np.minimum(0.0, self.tenths))
np.copysign(1.0, np.sum(-0.0 * abs(v))), np.copysign(1.0, np.mean(-0.0 * abs(v)))
np.copysign(1.0, np.maximum(-0.0 * abs(x), 0)), np.copysign(1.0, np.maximum(0, -0.0 * abs(x)))
np.clip(self.count, 0, 2) // 2, np.arctan2(-np.clip(self.count - 3, 0, 2), -1.0)
np.arange(1.0, 2.0, 0.1)
np.arange(-0.0, 1.0, 0.3)
np.arange(3.0)
np.arange(2, 9, 3)
np.hypot(v[:1], w)
np.sum(np.arctan2(v, w[:1]))
math.sin(x), math.exp(x), math.atan2(y, x), math.sqrt(abs(x)), math.tanh(y), math.log(abs(y))
math.sin(np.float32(x)), math.atan2(np.float32(y), 2), math.sqrt(self.model.geom_rgba[0, 0])
1.0 if np.any(v > 2.5) else 0.0
1.0 if (v > -2.9).all() and not np.isnan(x) else 0.0
float(int(x)), x // 1.0, -x, +y, x - y * x + y, x / y, round_up(x)
rotate(v[:3], data.body("ball").xquat)
self.turned(w)
data.body("ball").xpos
data.geom("skin").xpos
data.site("top").xmat
data.joint("free").qpos
data.joint("free").qvel
data.joint("turn").qacc
data.joint("turn").xaxis
data.sensor("where").data
data.actuator("pull").force
data.tendon("cord").length
data.xpos[1]
data.body(1).xpos
data.time, float(data.ncon), data.ctrl[0]
self.model.body("ball").mass
self.model.body_mass
self.model.geom("floor").size
self.model.jnt_range
self.model.opt.gravity
self.model.opt.timestep, float(self.model.nq), float(self.model.geom("skin").id)
self.contacts(data)
"""

TAIL = """
    def turned(self, vector):
        out = np.zeros(4)
        mujoco.mju_axisAngle2Quat(out, vector[:3], self.gain)
        mujoco.mju_normalize4(out)
        return out

    def in_place(self, vector):
        square = np.outer(vector[:3], vector[:3])
        square -= square[0]
        line = vector.copy()
        line[1:] += line[:-1]
        line *= line[0]
        line[0] += line[1]
        return np.concatenate((np.ravel(square), line))

    def floored(self, vector):
        vector[1:] //= 0.1
        vector[:4] %= -0.3
        vector //= -0.7
        return vector

    def parts(self, data):
        world, ball, arm = data.xpos
        both = data.qpos
        if self.x > 0:
            both = both + ball[0]
        return np.concatenate((arm - ball, both))

    def contacts(self, data):
        force = np.zeros(6)
        total = np.zeros(6)
        for i in range(data.ncon):
            mujoco.mj_contactForce(self.model, data, i, force)
            total += force
            total[:3] += data.contact[i].frame[:3] * data.contact[i].dist
        return total

def round_up(x):
    return np.ceil(x)
"""

REFUSED = {
    "np.einsum('i,i->', v, w)": "einsum", "np.prod(v)": "prod", "np.std(v)": "std",
    "v.var()": "var", "np.sum(MATRIX, axis=0)": "sum", "np.linalg.pinv(MATRIX)": "pinv",
    "np.convolve(v, w)": "convolve", "np.float32(x) * y": "float32",
    "np.float32(x) * 0.5": "float32", "MATRIX[:, 0] @ v[:3]": "contiguous",
    "math.hypot(x, y)": "hypot", "sum(v)": "np.sum", "np.sin(np.float32(x))": "float64",
    "pick(MATRIX, ROWS)[0]": "is a list", "pick(v, (1,))": "is a tuple",
    "v ** 3": r"\*\*", "np.float32(x) * 3": "float32", "np.maximum(np.float32(x), 0.1)": "float32",
    "np.where(x > 0, np.float32(x), 0)": "float32", "max(np.float32(x), 0.1)": "float32",
    "v.astype(np.float32) * self.count": "float32", "np.add(v.astype(np.float32), x)": "float32",
    "(v[0] > 0) + (w[0] > 0)": "two bools", "np.multiply(v[0] > 0, w[0] > 0)": "two bools",
    "np.exp(x > 0)": r"float\(x\)", "np.arctan2(x > y, v[0] > 0)": r"float\(x\)",
    "np.sqrt(x > 0)": r"float\(…\)", "np.copysign(x > 0, y > 0)": r"float\(…\)",
    "np.sin(self.model.jnt_limited[1])": r"float\(x\)", "np.arctan2(x > y, 2)": r"float\(x\)",
    "~(x > 0)": "write not", "np.int32(x) * np.int32(y)": r"np.int64\(…\)",
    "self.model.jnt_qposadr * 3": r"np.int64\(…\)", "np.int32(x) << np.int32(1)": "in 32 bits",
    "1.0 if x is y else 0.0": "the same object", "np.add(v, w, v)[0]": "to write into",
    "np.sign(v, w)": "to write into", "np.arctan2(v, w, v)[0]": "to write into",
    "1.0 if (x > 0) is True else 0.0": "the condition alone",
    "np.power(self.count, 2)": r"float\(…\)", "np.fmod(self.count, 2)": r"float\(…\)",
}  # fmt: skip


def test_all_bits_are_those_of_plain_python(tmp_path: Path) -> None:
    expressions = [line.strip().rstrip(",") for line in EXPRESSIONS.strip().splitlines()]
    parts = [
        f"        obs['{i}'] = {'(' + e + ')' if is_tuple(e) else e}\n"
        for i, e in enumerate(expressions)
    ]
    module = module_of(tmp_path / "numbers_task.py", HEAD + "".join(parts) + TAIL)
    envs = pyfastenv.make_vec(module.Numbers, 1, num_threads=1, autoreset_mode="Disabled")
    plain = pyfastenv.debug(module.Numbers)
    obs, _ = envs.reset(seed=1)
    expected, _ = plain.reset(seed=1)
    rng = np.random.default_rng(0)
    for _ in range(400):
        differ = np.flatnonzero(~((obs[0] == expected) | (np.isnan(obs[0]) & np.isnan(expected))))
        names = {
            expressions[int(n)]
            for n, s in envs.observation_groups.items()
            if any(s.start <= i < s.stop for i in differ)
        }
        assert not names
        action = rng.uniform(-1, 1, (1, 2))
        obs, rewards, _, _, infos = envs.step(action)
        expected, reward, _, _, plain_infos = plain.step(action[0])
        assert rewards[0] == reward
        assert infos["drawn"][0] == plain_infos["drawn"]


def is_tuple(expression: str) -> bool:

    return isinstance(ast.parse(expression, mode="eval").body, ast.Tuple)


@pytest.mark.parametrize("expression", REFUSED)
def test_other_bits_are_refused(expression: str, tmp_path: Path) -> None:
    name = f"refused_{list(REFUSED).index(expression)}"
    body = f"        obs['e'] = {expression}\n"
    module = module_of(tmp_path / f"{name}.py", HEAD + body + TAIL)
    with pytest.raises(pyfastenv.TaskCodeError, match=REFUSED[expression]) as caught:
        pyfastenv.make_vec(module.Numbers, 1)
    assert f"{name}.py:" in str(caught.value)


def reshape_in_place(array: Any, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The strides that the pool's stand-in for numba's function finds; None: it must be copied."""
    signature = ctypes.CFUNCTYPE(
        ctypes.c_int,
        *(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p),
        *(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p),
        *(ctypes.c_int64, ctypes.c_int),
    )
    function = signature(_core.task_symbols()["numba_attempt_nocopy_reshape"])
    old = [np.array(numbers, np.int64) for numbers in (array.shape, array.strides)]
    new = [np.array(numbers, np.int64) for numbers in (shape, [0] * len(shape))]
    arguments = [(len(pair[0]), *(numbers.ctypes.data for numbers in pair)) for pair in (old, new)]
    found = function(*arguments[0], *arguments[1], array.itemsize, 0)
    return tuple(new[1].tolist()) if found else None


def test_arrays_are_reshaped_where_they_lie_when_numpy_does_it() -> None:
    rng = np.random.default_rng(0)
    block = np.arange(4 * 6 * 8 * 2.0).reshape(4, 6, 8, 2)
    copied = 0
    for _ in range(500):
        parts = [
            slice(0, int(rng.integers(1, n + 1)), int(rng.integers(1, 3))) for n in block.shape
        ]
        array = block[tuple(parts)].transpose(
            rng.permutation(4) if rng.random() < 0.3 else range(4)
        )
        factors = [f for n in array.shape for f in ((2, n // 2) if n % 2 == 0 else (n,))]
        ends = sorted(rng.integers(0, len(factors) + 1, 2))
        groups = factors[: ends[0]], factors[ends[0] : ends[1]], factors[ends[1] :]
        shape = tuple(int(np.prod(group)) for group in groups)
        expected = array.reshape(shape)
        strides = reshape_in_place(array, shape)
        assert (strides is not None) == np.shares_memory(expected, array)
        if strides is None:
            copied += 1
        else:
            seen = np.lib.stride_tricks.as_strided(array, shape, strides)
            np.testing.assert_array_equal(seen, expected)
    assert 100 < copied < 400


SLICES = '''
import numpy as np
import pyfastenv

class Slices(pyfastenv.Task):
    model = """<mujoco><worldbody><body><joint name="x" type="slide"/><geom size="1"/></body>
      </worldbody><actuator><motor joint="x"/></actuator></mujoco>"""
    max_episode_steps = None
    frames = pyfastenv.memory(7)

    def reset(self, data, rng):
        self.frames[:] = rng.standard_normal(7)

    def step(self, data, action, rng):
        self.simulate(data)
        {assignment}
        self.frames[0] = rng.random()
        return 0.0, False

    def observation(self, data, obs):
        obs["frames"] = self.frames
'''


@pytest.mark.parametrize(
    "assignment",
    [
        "self.frames[1:] = self.frames[:-1]",
        "self.frames[:-2] = self.frames[2:]",
        "self.frames[::-1] = self.frames",
        "self.frames[:4] = self.frames[::-2]",
        "self.frames[2:] = self.frames[3:4]",
        "self.frames[::2] = np.array([data.qpos[0]], np.float32)",
        "part = self.frames[2:]\n        part[1:] = self.frames[1:5]",
        "own = self.frames.copy()\n        own[2:] = own[:-2]\n        self.frames[:] = own",
    ],
)
def test_slices_of_an_array_are_assigned_to_it(assignment: str, tmp_path: Path) -> None:
    text = SLICES.replace("{assignment}", assignment)
    task = module_of(tmp_path / "slices.py", text).Slices
    for _ in beside_plain(task, 4):
        pass


def test_functions_that_a_task_has_compiled_are_there_for_others(tmp_path: Path) -> None:
    text = SLICES.replace(
        "{assignment}", "self.frames[:] = np.concatenate((self.frames[1:], data.qpos))"
    )
    pyfastenv.make_vec(module_of(tmp_path / "shared.py", text).Slices, 1)

    assert np.array_equal(numba.njit(_join)(np.arange(3.0)[1:], np.full(1, 5.0)), [1.0, 2.0, 5.0])
    with pytest.raises(ValueError, match="cannot assign slice of shape"):
        numba.njit(_assign)(np.zeros(3), np.zeros(2))


def _join(one: Any, other: Any) -> Any:
    return np.concatenate((one, other))


def _assign(target: Any, source: Any) -> None:
    target[:] = source


SMALL = '''
import mujoco
import numpy as np
import pyfastenv
{above}

class Small(pyfastenv.Task):
    model = """<mujoco><worldbody><body><joint name="x" type="slide"/><geom size="1"/></body>
      <body pos="3 0 0"><joint name="y" type="slide"/><geom size="1"/><site name="tip"/></body>
      </worldbody><actuator><motor joint="x"/><motor joint="y"/></actuator></mujoco>"""
    v = pyfastenv.memory(3)
    {body}

    def reset(self, data, rng):
        self.v[:] = rng.standard_normal(3)

    def step(self, data, action, info, rng):
        self.simulate(data)
        self.v[:] = rng.standard_normal(3)
        v = self.v
        {step}
        return 0.0, False

    def observation(self, data, obs):
        v = self.v
        obs["v"] = v
        {observation}
'''


def small(folder: Path, **code: str) -> Any:
    """A task with a line of code in these places: above, body, step, observation."""
    text = SMALL
    for place in ("above", "body", "step", "observation"):
        text = text.replace("{" + place + "}", code.get(place, "pass"))
    return module_of(folder / "small.py", text).Small


def assert_plain(task: Any, steps: int = 4) -> Any:
    """Compiled it is what plain Python is, which is returned after its last step."""
    (*_, last) = beside_plain(task, steps)
    return last.plain_results


def test_arrays_of_bools_are_masks(tmp_path: Path) -> None:
    task = small(
        tmp_path,
        body="mask, flags = np.array([True, False, True]), [False, True]",
        observation="obs['e'] = np.concatenate((v[self.mask], v[~self.mask], self.mask * v, "
        "v[:2][self.flags]))",
    )
    seen = assert_plain(task)[0]
    v = seen[:3]
    assert np.array_equal(seen[3:], np.concatenate((v[::2], v[1:2], [v[0], 0.0, v[2]], v[1:2])))


@pytest.mark.parametrize("value", ["max(0, data.qvel[0])", "(0, 0 if data.time < 0.003 else v[0])"])
def test_infos_that_are_whole_at_first_are_not_cut(value: str, tmp_path: Path) -> None:
    task = small(tmp_path, step=f"info['e'] = {value}")
    with pytest.raises(pyfastenv.TaskCodeError, match="as in the first run"):
        pyfastenv.make_vec(task, 1)
    plain = pyfastenv.debug(task)
    plain.reset(seed=0)
    with pytest.raises(TypeError, match=r"info.*expected whole numbers, as in the first run.* got"):
        _ = [plain.step(np.full(2, 1e6)) for _ in range(5)]


def test_tuples_lists_and_enums_of_numbers(tmp_path: Path) -> None:
    task = small(
        tmp_path,
        above="import enum\n\nclass Mode(enum.IntEnum):\n    SLOW = 1\n    FAST = 3\n",
        step="data.qvel[:] = 0, 0.25\n        info['e'] = [Mode.FAST / 2, 1]",
        observation="obs['e'] = [v[0], Mode.SLOW]",
    )
    assert assert_plain(task)[-1]["e"].tolist() == [1.5, 1.0]


def test_controls_may_be_a_view_of_those_before(tmp_path: Path) -> None:
    step = "data.ctrl[:] = action\n        self.simulate(data, data.ctrl[::-1])"
    obs = assert_plain(small(tmp_path, step=step, observation="obs['e'] = data.ctrl"))[0]
    assert len(set(obs)) > 1


def test_infos_that_are_whole_stay_it(tmp_path: Path) -> None:
    step = "info['n'] = np.sum(v > 0)\n        info['on'] = v[0] > 0"
    infos = assert_plain(small(tmp_path, step=step))[-1]
    assert infos["n"].dtype == infos["on"].dtype == np.int64


def test_vectors_of_other_lengths_are_an_error(tmp_path: Path) -> None:
    task = small(tmp_path, step="v[0] = np.sum(np.arctan2(v, v[: 3 if data.time < 0.003 else 2]))")
    envs = pyfastenv.make_vec(task, 1)
    envs.reset(seed=0)
    with pytest.raises(pyfastenv.EnvError, match="could not be broadcast together"):
        _ = [envs.step(np.ones((1, 2))) for _ in range(5)]


ABOVE = """
GAIN = K = 1.0
SCALES = (2.0, 3.0)
def scaled(x, k=K, scales=SCALES, none=None, offset=np.array([0.5, 0.25]), minus=-1.0):
    return x * k * scales[1] + offset[1] * minus
def times(factor):
    def of(x, factor=factor):
        return x * factor
    return of
double = times(2.0)
K, SCALES = 7.0, (4.0, 5.0)
"""
BODY = """GAIN = 4.0
    own = GAIN
    def helper(self, x, gain=GAIN, more=own):
        return x * gain + more
"""


def test_default_arguments_are_those_of_the_definition(tmp_path: Path) -> None:
    observation = "obs['e'] = scaled(v[0]), scaled(v[0], 2.0), double(v[0]), self.helper(v[0])"
    task = small(tmp_path, above=ABOVE, body=BODY, observation=observation)
    v, *_, helped = assert_plain(task)[0][[0, 3, 4, 5, 6]]
    assert helped == v * 4.0 + 4.0


def test_a_function_as_a_default_argument_is_refused(tmp_path: Path) -> None:
    above = "def f(x): return x\ndef g(x, f=f): return f(x)"
    with pytest.raises(pyfastenv.TaskCodeError, match=r"small.py:6, in g: f: a function is no"):
        pyfastenv.make_vec(small(tmp_path, above=above, observation="obs['e'] = g(v)"), 1)


SOMETIMES = "if data.time < 0.003: z, own = v[0], v.copy()\n        "


@pytest.mark.parametrize(
    "code",
    [
        SOMETIMES + "info['e'] = z",
        SOMETIMES + "info['e'] = own[0]",
        SOMETIMES + "z += 1.0",
        "for i in range(1 if data.time < 0.003 else 0): pass\n        info['e'] = i",
        "while data.time < 0.003:\n            z = v[0]\n            break\n        info['e'] = z",
    ],
)
def test_a_name_that_is_not_written_is_an_error(code: str, tmp_path: Path) -> None:
    envs = pyfastenv.make_vec(small(tmp_path, step=code), 1)
    envs.reset(seed=0)
    envs.step(np.ones((1, 2)))
    last = code.splitlines()[-1].strip()
    with pytest.raises(pyfastenv.EnvError, match="UnboundLocalError.*\n.*" + re.escape(last)):
        envs.step(np.ones((1, 2)))


@pytest.mark.parametrize(
    "code",
    [
        SOMETIMES + "info['e'] = z if data.time < 0.003 else 0.0",
        "for i in range(2):\n            if i == 0: z = v[0]\n            else: z += v[1]\n"
        "        info['e'] = z + i",
        "if v[0] > 0.0: z = 1.0\n        else: raise ValueError\n        info['e'] = z",
    ],
)
def test_a_name_that_is_written_in_time_may_be_read(code: str, tmp_path: Path) -> None:
    for _ in beside_plain(small(tmp_path, step=code.replace("v[0] >", "abs(v[0]) >")), 4):
        pass


@pytest.mark.parametrize(
    ("code", "line", "said"),
    [
        ("z = 0.0\n        if v[0] > 0.0: z = FLOAT[0]\n        v[0] = z", 1, "float32"),
        ("z = FLOAT[0] if v[0] > 0.0 else 0.0", 0, "float32"),
        ("z = [FLOAT[0], 0.5]", 0, "float32"),
        ("z = [0.5, 1.5]\n        z[0] = FLOAT[0]", 1, "float32"),
        ("z = [0.5]\n        z.append(FLOAT[0])", 1, "float32"),
        ("z, on = (FLOAT[0], True) if v[0] > 0.0 else (0.5, True)", 0, "float32"),
        ("z = positive(FLOAT[0])", "return x", "float32"),
        (
            "z = v[0] > 0.0\n        if v[1] > 0.0: z = 2\n        v[0] = z",
            0,
            "is a bool in one case",
        ),
        ("z = [v[0] > 0.0, 1.0]", 0, "is a bool in one case"),
        ("z = positive(v[0] > 0.0)", "return x", "is a bool in one case"),
    ],
)
def test_a_name_that_is_another_kind_of_number_in_python_is_refused(
    code: str, line: Any, said: str, tmp_path: Path
) -> None:
    above = (
        "FLOAT = np.ones(1, np.float32)\ndef positive(x):\n    if x > 0: return x\n    return 0.0"
    )
    task = small(tmp_path, above=above, step=code)
    named = line if isinstance(line, str) else code.splitlines()[line].strip()
    with pytest.raises(pyfastenv.TaskCodeError, match=said) as caught:
        pyfastenv.make_vec(task, 1)
    assert str(caught.value).splitlines()[1].strip().endswith(named), caught.value


def test_lists_of_which_arrays_are_made_may_have_numbers_of_several_kinds(tmp_path: Path) -> None:
    above = "FLOAT = np.ones(1, np.float32)"
    made = "np.array([[FLOAT[0], v[1]], [1.0, v[2]]])[0, 0], np.array([v[0] > 0, 2.5])[0]"
    assert_plain(small(tmp_path, above=above, observation=f"obs['e'] = {made}"))


@pytest.mark.parametrize(
    "value",
    ["np.float32(0.1)", "np.uint8(200)", "np.bool_(True)", "(1.0, np.float32(0.1))",
     "[[np.int32(1), 2]]"],
)  # fmt: skip
def test_constants_of_numpys_other_types_are_refused(value: str, tmp_path: Path) -> None:
    task = small(tmp_path, above=f"ODD = {value}", observation="odd = ODD")
    with pytest.raises(pyfastenv.TaskCodeError, match=r"ODD: np.* is no plain number: write float"):
        pyfastenv.make_vec(task, 1)


def test_constants_of_numpys_may_be_python_numbers(tmp_path: Path) -> None:
    above = "HALF, TABLE = np.float64(0.5), [np.int64(2), (np.float64(0.1), True)]"
    observation = "obs['e'] = HALF * v[0], TABLE[0] * v[1], TABLE[1][0] * v[2]"
    assert_plain(small(tmp_path, above=above, observation=observation))


def test_a_diagonal_is_a_view_that_is_only_read(tmp_path: Path) -> None:
    step = "m = np.outer(v, v)\n        d, e = np.diag(m), np.diag(m.T, -1)\n        m[0] = v[1]"
    whole = (
        "\n        info['e'] = np.sum(d) + np.sum(e) * np.sum(np.diag(v, 1)) + np.diag(m[:2], 2)[0]"
    )
    assert_plain(small(tmp_path, step=step + whole))
    late = "if data.time > 0.003: np.diag(np.outer(v, v))[0] = 1.0"
    with pytest.raises(pyfastenv.TaskCodeError, match="only read"):
        pyfastenv.make_vec(small(tmp_path, step=late), 1)


@pytest.mark.parametrize("code", ["a, b, c = w = v", "w = a, b, c = v", "[a, b, c] = w = v"])
def test_two_targets_of_which_one_is_unpacked_are_refused(code: str, tmp_path: Path) -> None:
    with pytest.raises(pyfastenv.TaskCodeError, match="write two assignments"):
        pyfastenv.make_vec(small(tmp_path, step=code), 1)


@pytest.mark.parametrize("value", ["math.nan", "-math.inf", "np.float32(math.inf)", "1e19"])
def test_whole_numbers_are_made_of_those_alone_that_fit(value: str, tmp_path: Path) -> None:
    task = small(tmp_path, above="import math", step=f"if data.time > 0.003: v[0] = int({value})")
    envs = pyfastenv.make_vec(task, 1)
    envs.reset(seed=0)
    envs.step(np.ones((1, 2)))
    with pytest.raises(pyfastenv.EnvError, match=r"(Overflow|Value)Error: (cannot|int)"):
        envs.step(np.ones((1, 2)))


def test_types_of_pythons_are_those_of_arrays(tmp_path: Path) -> None:
    code = "n, on = np.zeros(3, dtype=int), np.ones(3, bool)\n        n[1] = int(2.9 * v[0])"
    rest = (
        "\n        info['n'] = (9.0 * v).astype(int)\n        info['on'] = np.sum(n) + np.sum(on)"
    )
    assert_plain(small(tmp_path, step=code + rest))
