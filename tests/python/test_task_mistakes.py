"""Forty careless mistakes in a task: what is shown for each names the line and fits on a screen."""

from __future__ import annotations

import importlib.util
import os
import traceback
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest

import pyfastenv

pytest.importorskip("numba")

FILE = '''
import math
import numpy as np
import mujoco
import pyfastenv

TABLE = {"low": 0.1}

def outside(x):
    return np.median(x)  # <- helper

class Cart(pyfastenv.Task):
    model = """<mujoco><worldbody><body name="cart">
      <joint name="slide" type="slide" axis="1 0 0"/><geom name="box" type="box" size=".1 .1 .1"/>
      <body name="pole" pos="0 0 .1"><joint name="hinge" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 .5" size=".02"/></body></body></worldbody>
      <actuator><motor name="push" joint="slide" ctrlrange="-1 1"/></actuator></mujoco>"""
    frame_skip = 2
    goal = 0.5
    limits = (-1.0, 1.0)
    name = "cart"
    count = pyfastenv.memory()
    last = pyfastenv.memory(2)
    speed = pyfastenv.command(low=0.0, high=1.0)

    def reset(self, data, rng, info):
        data.qpos[:] = rng.uniform(-0.1, 0.1, 2)
        info["x"] = data.qpos[0]
        {reset}

    def control(self, data, action, ctrl):
        ctrl[:] = action
        {control}

    def step(self, data, action, info, rng):
        {before}
        self.simulate(data)
        info["x"] = data.qpos[0]
        {after}
        return {returned}, abs(data.qpos[1]) > 1.0

    def observation(self, data, obs):
        obs["qpos"] = data.qpos
        {observation}
'''


class Mistake(NamedTuple):
    """What is written where, and a word that must be said about it."""

    name: str
    place: str
    code: str
    said: str
    line: str = ""  # a mark elsewhere than at the code itself


MISTAKES = [
    Mistake("typo_in_data", "after", "y = data.qposs[0]", "qposs"),
    Mistake("typo_in_body", "after", 'y = data.body("carrt").xpos[0]', "carrt"),
    Mistake("typo_in_sensor", "after", 'y = data.sensor("gyro").data[0]', "gyro"),
    Mistake("typo_in_self", "after", "y = self.gaol", "gaol"),
    Mistake("undefined_name", "after", "y = gaol", "gaol"),
    Mistake("typo_in_numpy", "after", "y = np.squrae(action)", "squrae"),
    Mistake("wrong_slice_length", "reset", "data.qpos[:] = rng.uniform(-1, 1, 3)", "shape"),
    Mistake("index_out_of_range", "after", "y = data.qpos[2]", "out of bounds"),
    Mistake("late_index", "after", "y = data.qpos[0 if data.time < 0.01 else 7]", "out of bounds"),
    Mistake("divide_by_zero", "after", "info['r'] = 1.0 / 0.0", "division"),
    Mistake("late_raise", "after", "if data.time > 0.01: raise ValueError(f'late {data.time}')",
            "late 0.0"),
    Mistake("late_assert", "after", "assert data.time < 0.01, 'too late'", "too late"),
    Mistake("nan_reward", "returned", "math.nan if data.time > 0.01 else 0.0", "finite"),
    Mistake("text_reward", "returned", "'great'", "great"),
    Mistake("array_reward", "returned", "action", "reward"),
    Mistake("forgotten_terminated", "after", "return 1.0", "must return"),
    Mistake("stale_read", "before", 'y = data.body("cart").xpos[0]', "before self.simulate"),
    Mistake("counter_in_self", "after", "self.steps = 1", "memory"),
    Mistake("parameter_changed", "after", "self.goal += 1.0", "memory"),
    Mistake("command_changed", "after", "self.speed = 1.0", "reset_task"),
    Mistake("vector_replaced", "after", "self.last = data.qpos", "self.last[:]"),
    Mistake("print", "after", "print(data.qpos)", "pyfastenv.debug"),
    Mistake("dict", "after", "d = {'a': 1.0}", "dict"),
    Mistake("global_dict", "after", "y = TABLE['low']", "TABLE"),
    Mistake("text_attribute", "after", "y = len(self.name)", "str"),
    Mistake("einsum", "after", "y = np.einsum('i,i->', action, action)", "NumPy's bits"),
    Mistake("median_in_helper", "after", "y = outside(data.qpos)", "median", "helper"),
    Mistake("std", "after", "y = data.qpos.std()", "std"),
    Mistake("builtin_sum", "after", "y = sum(data.qpos)", "np.sum"),
    Mistake("try", "after", "try: y = 1.0\n        except ValueError: y = 2.0", "try"),
    Mistake("lambda", "after", "f = lambda x: x", "lambda"),
    Mistake("local_import", "after", "import os", "import"),
    Mistake("generator", "after", "y = max(q for q in data.qpos)", "generator"),
    Mistake("f_string", "after", "t = f'{data.time}'", "f-string"),
    Mistake("writes_derived", "after", "data.xpos[0] = 0.0", "only read"),
    Mistake("writes_model", "after", "self.model.body_mass[1] = 2.0", "set_model_field"),
    Mistake("late_info", "after", "if data.time > 0.01: info['late'] = 1.0", "first run"),
    Mistake("growing_obs", "observation",
            "obs['more'] = data.qpos[:1] if data.time < 0.01 else data.qpos[:2]", "first run"),
    Mistake("text_obs", "observation", "obs['more'] = 'here'", "numbers"),
    Mistake("reads_obs", "observation", "y = obs['qpos']", "only written"),
    Mistake("wrong_ctrl", "before", "self.simulate(data, np.zeros(3), 1)", "3"),
    Mistake("simulate_in_reset", "reset", "self.simulate(data)", "belongs into step"),
    Mistake("control_remembers", "control", "self.count += 1", "ahead of time"),
    Mistake("control_reads_bodies", "control", 'y = data.body("cart").xpos[0]', "before"),
    Mistake("unknown_random", "reset", "y = rng.choice(3)", "rng.uniform"),
    Mistake("random_size", "reset", "y = rng.integers(0, 5, size=3)", "one number"),
    Mistake("global_random", "reset", "y = np.random.rand()", "np.random.rand"),
    Mistake("array_replaced", "after", "data.qpos = np.zeros(2)", "data.qpos[:]"),
    Mistake("unknown_engine", "after", "mujoco.mj_inverse(self.model, data)", "mj_forward"),
    Mistake("late_no_pair", "after", "if data.time > 0.01: return 1.0", "(reward, terminated)"),
    Mistake("late_typo", "after", "if data.time > 0.01: y = data.qposs", "qposs"),
    Mistake("loop_over_contacts", "after", "for c in data.contact: y = c.dist", "data.ncon"),
    Mistake("list_comprehension", "after", "y = [q for q in data.qpos]", "comprehension"),
    Mistake("shape_mismatch", "after", "y = data.body('cart').xpos + np.ones(2)", "broadcast"),
]  # fmt: skip


def write(folder: Path, mistake: Mistake, lines_above: int = 0) -> tuple[ModuleType, int]:
    """The file with this mistake in it, as a module, and the line that is to be named."""
    parts = dict.fromkeys(("reset", "control", "before", "after", "observation"), "pass")
    parts["returned"] = "1.0"
    parts[mistake.place] = mistake.code
    text = lines_above * "# above\n" + FILE
    for place, code in parts.items():
        text = text.replace("{" + place + "}", code)
    path = folder / f"mistake_{mistake.name}.py"
    path.write_text(text)
    mark = f"# <- {mistake.line}" if mistake.line else mistake.code.splitlines()[0]
    mark = f"return {mark}" if mistake.place == "returned" else mark
    line = next(i for i, t in enumerate(text.splitlines(), 1) if mark in t)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, line


def run(task: type[pyfastenv.Task], num_envs: int = 2) -> None:
    envs = pyfastenv.make_vec(task, num_envs, num_threads=1)
    envs.reset(seed=0)
    for _ in range(20):
        envs.step(np.zeros((num_envs, 1)))


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.name)
def test_what_is_shown_names_the_line(mistake: Mistake, tmp_path: Path) -> None:
    module, line = write(tmp_path, mistake)
    with pytest.raises(Exception) as caught:  # noqa: PT011 (of many kinds; the text is what counts)
        run(module.Cart)
    shown = "".join(traceback.format_exception(caught.value))
    message = str(caught.value)
    name = f"mistake_{mistake.name}.py"
    lines = range(line, line + mistake.code.count("\n") + 2)
    places = [f'{name}", line {n}' for n in lines] + [f"{name}:{n}" for n in lines]
    assert any(place in shown for place in places), shown
    assert os.pardir not in message, message
    assert mistake.said in message, message
    assert len(message.splitlines()) <= 12, message
    assert len(shown.splitlines()) <= 45, shown


def test_code_from_the_cache_names_the_line_where_it_stands_now(tmp_path: Path) -> None:
    mistake = next(each for each in MISTAKES if each.name == "stale_read")
    for folder, lines_above in (("first", 0), ("moved", 3)):
        (tmp_path / folder).mkdir()
        module, line = write(tmp_path / folder, mistake, lines_above)
        with pytest.raises(pyfastenv.EnvError) as caught:
            run(module.Cart)
        assert f"{tmp_path / folder / 'mistake_stale_read.py'}:{line}:" in str(caught.value)


def test_many_environments_say_the_same_once(tmp_path: Path) -> None:
    mistake = next(each for each in MISTAKES if each.name == "late_raise")
    module, _ = write(tmp_path, mistake)
    with pytest.raises(pyfastenv.EnvError) as caught:
        run(module.Cart, 100)
    message = str(caught.value)  # four are explained
    assert message.startswith("environments 0, 1, 2, 3: Cart.step: ")
    assert message.endswith("environments 4, 5, 6, 7 and 92 more: Cart.step raised an exception")
    assert message.count("late 0.0") == 1


def test_there_are_forty() -> None:
    assert len(MISTAKES) >= 40
