"""A hundred careless mistakes in a task: what is shown for each names the line, in few lines."""

import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest
from scripts import module_of

import pyfastenv
from pyfastenv import cli

FILE = '''
import math
import random
import numpy as np
import mujoco
import pyfastenv
from pyfastenv.tasks.language.helpers import dc_motor, delayed, enqueue, refill, touching
from pyfastenv.tasks.language.networks import load_mlp, mlp
from pyfastenv.tasks.language.noise import normal
from pyfastenv.tasks.language.randomise import scale

TABLE = {"low": 0.1}

def outside(x):
    return np.median(x)  # <- helper

def noise():
    return np.random.rand()  # <- noise

def moved(state):
    state.qpos[0] = 0.5

def inner(x):
    return x ** 3  # <- inner

def outer(x):
    return np.sum(inner(2.0 * x))

def factorial(n):
    return n if n <= 1 else n * factorial(n - 1)  # <- itself

def ping(n):
    return 0.0 if n < 1 else pong(n - 1.0)

def pong(n):
    return ping(n)  # <- mutual

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
    target = pyfastenv.command(2, low=-1.0, high=1.0)

    _stand = 0.3

    @property
    def half(self):
        return 0.5

    @classmethod
    def twice(cls, x):
        return 2.0 * x

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
    """A mistake, where it is written, and a word that must be said about it."""

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
    Mistake("underscored", "after", "y = self._stand", "names that begin with _ are no parameters"),
    Mistake("setting", "after", "y = self.max_episode_steps", "it is a setting"),
    Mistake("property", "after", "y = self.half", "make it a method"),
    Mistake("class_method", "after", "y = self.twice(data.time)", "a class method is not compiled"),
    Mistake("identity", "after", "y = data.time is True", "the same object"),
    Mistake("output", "before", "np.add(self.last, data.qpos, self.last)", "write x[:] = …"),
    Mistake("text_attribute", "after", "y = len(self.name)", "str"),
    Mistake("einsum", "after", "y = np.einsum('i,i->', action, action)", "NumPy's bits"),
    Mistake("median_in_helper", "after", "y = outside(data.qpos)", "median", "# <- helper"),
    Mistake("std", "after", "y = data.qpos.std()", "std"),
    Mistake("builtin_sum", "after", "y = sum(data.qpos)", "np.sum"),
    Mistake("try", "after", "try: y = 1.0\n        except ValueError: y = 2.0", "try"),
    Mistake("lambda", "after", "f = lambda x: x", "lambda"),
    Mistake("local_import", "after", "import os", "import"),
    Mistake("generator", "after", "y = max(q for q in data.qpos)", "generator"),
    Mistake("f_string", "after", "t = f'{data.time}'", "f-string"),
    Mistake("writes_derived", "after", "data.xpos[0] = 0.0", "only read"),
    Mistake("writes_model", "after", "self.model.body_mass[1] = 2.0", "set_model_field"),
    Mistake("action_in_place", "before", "action *= 0.5", "scaled = action * 0.5"),
    Mistake("action_element", "before", "action[0] = 0.5", "scaled = action * 0.5"),
    Mistake("action_by_another_name", "before", "a = action\n        a *= 0.5", "x = x.copy()",
            "a *= 0.5"),
    Mistake("body_mass", "reset", "self.model.body('pole').mass *= 2.0",
            "model_fields = ('body_mass',)"),
    Mistake("joint_damping", "reset", "self.model.joint('hinge').damping[0] = 2.0",
            "model_fields = ('dof_damping',)"),
    Mistake("model_array", "reset", "self.model.body_mass *= 2.0", "model_fields = ('body_mass',)"),
    Mistake("model_option", "reset", "self.model.opt.timestep *= 2.0", "in setup"),
    Mistake("named_position", "reset", "data.joint('slide').qpos *= 2.0", ".qpos[:] = …"),
    Mistake("named_derived", "after", "data.body('cart').xpos[0] = 2.0", "only read"),
    Mistake("command_element", "after", "self.target[0] = 1.0", "envs.reset_task sets it"),
    Mistake("command_in_place", "after", "self.target[:] *= 2.0", "envs.reset_task sets it"),
    Mistake("late_parameter", "after", "if data.time > 0.01: self.limits[0] = 1.0",
            "the same for all environments"),
    Mistake("late_info", "after", "if data.time > 0.01: info['late'] = 1.0", "first run"),
    Mistake("growing_obs", "observation",
            "obs['more'] = data.qpos[:1] if data.time < 0.01 else data.qpos[:2]", "first run"),
    Mistake("text_obs", "observation", "obs['more'] = 'here'", "numbers"),
    Mistake("reads_obs", "observation", "y = obs['qpos']", "only written"),
    Mistake("wrong_ctrl", "before", "self.simulate(data, np.zeros(3), 1)", "3"),
    Mistake("wrong_argument", "before", "self.simulate(data, n=1)", "Task.simulate() got an"),
    Mistake("simulate_in_reset", "reset", "self.simulate(data)", "belongs into step"),
    Mistake("control_remembers", "control", "self.count += 1", "ahead of time"),
    Mistake("control_moves_joints", "control", "data.joint('slide').qpos[0] = 0.5",
            "in control a memory and the state"),
    Mistake("control_moves_a_view", "control", "q = data.qvel\n        q[:] = 0.0",
            "in control a memory and the state", "q[:] = 0.0"),
    Mistake("control_moves_by_a_function", "control", "moved(data)",
            "in control a memory and the state", "state.qpos[0] = 0.5"),
    Mistake("control_sets_the_time", "control", "d = data\n        d.time = 1.0",
            "it may only write ctrl", "def control"),
    Mistake("control_fills_the_state", "control", "mujoco.mju_normalize3(data.xfrc_applied[1, :3])",
            "that is only read"),
    Mistake("control_reads_bodies", "control", 'y = data.body("cart").xpos[0]', "before"),
    Mistake("unknown_random", "reset", "y = rng.choice(3)", "rng.uniform"),
    Mistake("random_dtype", "reset", "y = rng.random(3, dtype=np.float32)", "leave it out"),
    Mistake("random_bounds", "after", "y = rng.uniform(data.qpos, data.qpos - data.time)",
            "high - low"),
    Mistake("global_random", "reset", "y = np.random.rand()", "np.random.rand"),
    Mistake("global_uniform", "after", "y = np.random.uniform(-1.0, 1.0)", "use rng, "),
    Mistake("global_normal", "reset", "y = np.random.randn()", "rng.standard_normal(…)"),
    Mistake("new_generator", "reset", "y = np.random.default_rng(0)", "use rng, "),
    Mistake("pythons_random", "after", "y = random.gauss(0.0, 1.0)", "rng.normal(…)"),
    Mistake("random_in_observation", "observation", "obs['noise'] = np.random.uniform()",
            "it is for reset and step"),
    Mistake("random_in_helper", "after", "y = noise()", "noise is handed rng", "# <- noise"),
    Mistake("array_replaced", "after", "data.qpos = np.zeros(2)", "data.qpos[:]"),
    Mistake("narrow_result", "after", "f = np.zeros(6, np.float32)\n        if data.ncon > 0: "
            "mujoco.mj_contactForce(self.model, data, 0, f)", "a contiguous float64 vector of 6"),
    Mistake("strided_result", "after", "f = np.zeros(12)[::2]\n        if data.ncon > 0: "
            "mujoco.mj_contactForce(self.model, data, 0, f)", "a contiguous float64 vector of 6"),
    Mistake("unknown_engine", "after", "mujoco.mj_inverse(self.model, data)", "mj_forward"),
    Mistake("late_no_pair", "after", "if data.time > 0.01: return 1.0", "(reward, terminated)"),
    Mistake("late_typo", "after", "if data.time > 0.01: y = data.qposs", "qposs"),
    Mistake("loop_over_contacts", "after", "for c in data.contact: y = c.dist", "data.ncon"),
    Mistake("list_comprehension", "after", "y = [q for q in data.qpos]", "comprehension"),
    Mistake("starred", "after", "y, *z = data.qpos", "x[1:]"),
    Mistake("reversed", "after", "for y in reversed(data.qpos): pass", "x[::-1]"),
    Mistake("rows_of_two_kinds", "after", "y = np.array([[data.time, 1.0], [1, 2]])",
            "is of one kind"),
    Mistake("reshaped", "after", "y = (np.ones((2, 3)) * data.time).T.reshape(6)",
            "np.ascontiguousarray"),
    Mistake("reshaped_by_numpy", "after", "y = np.reshape(np.ones((2, 3)).T, -1)",
            "np.ascontiguousarray"),
    Mistake("in_a_helper_of_a_helper", "after", "y = outer(data.qpos)", "np.power", "# <- inner"),
    Mistake("recursion", "after", "y = factorial(5)", "write the loop", "# <- itself"),
    Mistake("mutual_recursion", "after", "y = ping(5.0)", "write the loop", "# <- mutual"),
    Mistake("recursive_method", "observation", "y = self.down(3.0)\n\n    def down(self, n): "
            "return n if n < 1 else self.down(n - 1.0)", "write the loop", "def down"),
    # delays, motors, networks
    Mistake("queue_in_control", "control", "enqueue(self.last, action)", "in control a memory"),
    Mistake("refill_in_control", "control", "refill(self.last, action)", "in control a memory"),
    Mistake("delay_beyond_queue", "after", "y = delayed(self.last, action, 3)",
            "as many steps as the queue has"),
    Mistake("late_delay_beyond_queue", "control",
            "ctrl[:] = delayed(self.last, action, 3.0 if data.time > 0.01 else 0.0)",
            "as many steps as the queue has"),
    Mistake("delay_by_name", "after", "y = delayed(self.last, action, 'one')", "'one'"),
    Mistake("queue_is_a_number", "after", "enqueue(self.count, action)", "'float'"),
    Mistake("queue_replaced", "after", "self.last = enqueue(self.last, action)", "self.last[:]"),
    Mistake("feet_by_name", "after", "y = touching(data, ('box',))", "'box'"),
    Mistake("motor_without_speed", "after", "y = dc_motor(action, action, 1.0, 2.0)", "'speed'"),
    Mistake("motor_of_other_joints", "after", "y = dc_motor(data.qvel, action, 1.0, 2.0, 3.0)",
            "out of bounds"),
    Mistake("network_of_other_width", "after", "y = mlp(load_mlp({'w': np.ones((1, 3)), "
            "'b': np.ones(1)}), data.qpos)", "mismatch"),
    Mistake("network_in_step", "after", "y = load_mlp({'w': np.ones((1, 2)), 'b': np.ones(1)})",
            "load_mlp: it belongs into setup(self)"),
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
    mark = mistake.line or mistake.code.splitlines()[0]
    mark = f"return {mark}" if mistake.place == "returned" else mark
    line = next(i for i, t in enumerate(text.splitlines(), 1) if mark in t)
    return module_of(folder / f"mistake_{mistake.name}.py", text), line


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


def test_a_file_that_was_edited_since_its_import_is_refused(tmp_path: Path) -> None:
    """A training's later environments would have other rewards than those before."""
    mistake = Mistake("none", "after", "self.count += 1.0", "")
    module, _ = write(tmp_path, mistake)
    run(module.Cart)
    file = tmp_path / "mistake_none.py"
    file.write_text(file.read_text().replace("self.count += 1.0", "self.count += 1.0  # once"))
    pyfastenv.make_vec(module.Cart, 1)
    file.write_text(file.read_text().replace("self.count += 1.0", "self.count += 2.0"))
    with pytest.raises(pyfastenv.TaskCodeError, match=r"Cart\.step: .*changed since it was imp"):
        pyfastenv.make_vec(module.Cart, 1)
    run(module_of(file, file.read_text()).Cart)


def test_many_environments_say_the_same_once(tmp_path: Path) -> None:
    mistake = next(each for each in MISTAKES if each.name == "late_raise")
    module, _ = write(tmp_path, mistake)
    with pytest.raises(pyfastenv.EnvError) as caught:
        run(module.Cart, 100)
    message = str(caught.value)  # four are explained
    assert message.startswith("environments 0, 1, 2, 3: Cart.step: ")
    assert message.endswith("environments 4, 5, 6, 7 and 92 more: Cart.step raised an exception")
    assert message.count("late 0.0") == 1


# ---- on the command line -------------------------------------------------------------------------


class Slip(NamedTuple):
    """A slip: the text it stands for, the text in the file, and what ``pyfastenv check`` says."""

    name: str
    old: str
    new: str
    said: str
    line: str | None = ""  # a piece of the line that is named: the code itself; None: no line


_LATE = "if data.time > 0.05: "


def _step(terms: str, *lines: str, ended: str = "False", weights: str = "near=1.0") -> str:
    """A step of these lines that returns these terms, in the place of the file's."""
    body = "".join(f"        {line}\n" for line in lines)
    return (
        f"@pyfastenv.reward_terms({weights})\n    def step(self, data, action, info):\n"
        f"        self.simulate(data)\n        info['x'] = 0.0\n{body}"
        f"        return {terms}, {ended}\n\n    def observation("
    )


SLIPS = [
    # settings and methods that would be parameters and helpers
    Slip("frameskip", "frame_skip = 2", "frameskip = 2", "did you mean frame_skip?"),
    Slip("limit", "frame_skip = 2", "max_episode_step = 50", "did you mean max_episode_steps?"),
    Slip("decimation", "frame_skip = 2", "decimation = 4", "did you mean frame_skip?"),
    Slip("horizon", "frame_skip = 2", "horizon = 50", "did you mean max_episode_steps?"),
    Slip("dt", "frame_skip = 2", "dt = 0.02", "a step is frame_skip times the model's timestep"),
    Slip("init_qpos", "frame_skip = 2", "init_qpos = np.ones(2)", "reset writes data.qpos[:] = …"),
    Slip("no_physics", "self.simulate(data)", "pass", "Cart.step never steps the physics: it calls "
         "self.simulate(data)", "def step"),
    Slip("no_call", "self.simulate(data)", "self.simulate", "never steps the physics", "def step"),
    Slip("american", "frame_skip = 2", "randomize = {}", "did you mean randomise?"),
    Slip("in_setup", "def reset(", "def setup(self):\n        self.up_todate = True\n\n    "
         "def reset(", "did you mean up_to_date?", "class Cart"),
    Slip("method", "def control(", "def contol(", "did you mean control?"),
    Slip("anothers_method", "def observation(", "def reward(self, data):\n        return 0.0\n\n"
         "    def observation(", "did you mean step?", "def reward"),
    Slip("legged_gym", "frame_skip = 2", "max_episode_length = 50",
         "did you mean max_episode_steps?"),
    Slip("needed", "def observation(", "def observe(", "did you mean 'observe'?", "class Cart"),
    Slip("setting_in_setup", "def reset(", "def setup(self):\n        self.frame_skip = 4\n\n    "
         "def reset(", "when dt is known already", "def setup"),
    Slip("dtype", "frame_skip = 2", "action_dtype = 'flaot32'", "got 'flaot32'", None),
    Slip("command_bounds", "low=-1.0, high=1.0)", "low=[-1.0, 0.0], high=[1.0, 1.0])",
         "low: expected one number, for all elements alike, got [-1.0, 0.0]", "target ="),
    Slip("command_arrays", "low=-1.0, high=1.0)", "low=np.zeros(2), high=1.0)",
         "low: expected one number", "target ="),
    Slip("command_text", "low=-1.0, high=1.0)", "low=0.0, high='1')", "high: expected a number",
         "target ="),
    Slip("command_sizes", "high=1.0)", "high=(1.0, 1.0), every=2, standing=(0.1, 0.1, 0.1))",
         "expected as many numbers of each, or one", "speed ="),
    Slip("command_chance", "high=1.0)", "high=1.0, every=2, standing=1.5)",
         "expected a probability, got 1.5", "speed ="),
    # what is declared by name
    Slip("noise_name", "frame_skip = 2", "observation_noise = {'qops': normal(0.1)}",
         "no obs['qops']; observation writes qpos; did you mean 'qpos'?"),
    Slip("noise_number", "frame_skip = 2", "observation_noise = {'qpos': 0.1}",
         "expected a dict such as {'gyro': normal(0.1)}"),
    Slip("random_field", "frame_skip = 2", "randomise = {'body_mas': scale(0.9, 1.1)}",
         "did you mean 'body_mass'?"),
    Slip("random_body", "frame_skip = 2", "randomise = {'body_mass': scale(0.9, 1.1, of='polle')}",
         "no body 'polle'; there are world, cart, pole; did you mean 'pole'?"),
    Slip("random_column", "frame_skip = 2", "randomise = {'geom_size': scale(0.9, 1.1, columns=3)}",
         "columns: expected 0 to 2, got 3"),
    Slip("random_argument", "frame_skip = 2", "randomise = {'body_mass': scale(0.9, 1.1, evry=3)}",
         "scale() got an unexpected keyword argument 'evry'"),
    Slip("random_numbers", "frame_skip = 2", "randomise = {'body_mass': (0.9, 1.1)}",
         "expected a dict such as {'body_mass': scale(0.8, 1.2)}"),
    Slip("term_name", "def observation(", _step("{'naer': 1.0}"),
         "no weight for 'naer'; reward_terms has near; did you mean 'near'?", "'naer'"),
    Slip("term_array", "def observation(", _step("{'near': np.ones(2)}"),
         "'near': expected a number, got array([1., 1.])", "np.ones(2)}"),
    Slip("late_term", "def observation(", _step("{'near': math.nan if data.time > 0.05 else 1.0}"),
         "the reward term 'near' is not finite: nan", "math.nan"),
    Slip("terms_number", "def observation(", _step("1.0"),
         "must return ({…}, terminated), got 1.0", None),
    Slip("no_terms", "def observation(", _step("{}"),
         "must return ({…}, terminated), got {}", None),
    Slip("term_sometimes", "def observation(", _step("terms", "terms = {'near': 1.0}",
         "if data.qpos[1] > 0.0: terms['more'] = 1.0", weights="near=1.0, more=1.0"),
         "terms['more']: every step has the same terms: write it before, as 0.0", "terms['more']"),
    Slip("terms_handed_on", "def observation(", _step("terms", "terms = {'near': 1.0}",
         "others = terms", ended="bool(others['near'] > 2.0)"),
         "terms: the terms' dict is only used as terms['name'], and returned", "others = terms"),
    Slip("term_read_too_soon", "def observation(", _step("terms", "terms = {}",
         "if data.time < 0.0: terms['near'] += 1.0", "terms['near'] = 1.0"),
         "terms['near']: it is read before it is written", "+= 1.0"),
    Slip("terms_begun_twice", "def observation(", _step("terms", "terms = {'near': 1.0}",
         "if data.time > 1.0: terms = {'near': 2.0}"),
         "terms: the terms' dict begins once, and in every step", "{'near': 2.0}"),
    Slip("term_name_computed", "def observation(", _step("terms", "terms = {'ne' + 'ar': 1.0}"),
         "terms: a term's name is a text, written out", "'ne' +"),
    Slip("endings_without_terms", "{returned}, abs(data.qpos[1]) > 1.0", "1.0, {'fallen': False}",
         "names are for @pyfastenv.reward_terms"),
    Slip("no_endings", "def observation(", _step("{'near': 1.0}", ended="{}"),
         "expected terminated as True or False, or by names", None),
    Slip("ending_number", "def observation(", _step("{'near': 1.0}",
         ended="{'fallen': data.qpos[0]}"),
         "'fallen': expected True or False, got np.float64", None),
    Slip("ending_with_a_space", "def observation(", _step("{'near': 1.0}",
         ended="{'has fallen': False}"), "got 'has fallen'", None),
    Slip("ending_sometimes", "def observation(", _step("{'near': 1.0}", "ended = {'away': False}",
         "if data.qpos[0] > 10.0: ended['fallen'] = True", ended="ended"),
         "ended['fallen']: every step has the same terms", "ended['fallen']"),
    Slip("network_file", "def reset(", "def setup(self):\n        self.net = load_mlp('no.npz')\n\n"
         "    def reset(", "no.npz", "load_mlp('no.npz')"),
    Slip("network_layers", "def reset(", "def setup(self):\n        self.net = load_mlp({'w': "
         "np.ones((2, 3))})\n\n    def reset(", "expected weights (outputs, inputs) and bias",
         "load_mlp({"),
    # how methods are written
    Slip("no_self", "def reset(self, data,", "def reset(data,", "first argument must be self"),
    Slip("argument", "(self, data, rng, info)", "(self, data, rand, info)", "cannot give rand"),
    Slip("init", "def reset(", "def __init__(self):\n        self.x = 1.0\n\n    def reset(",
         "belongs into setup(self)", "def __init__"),
    Slip("returns", "obs[\"qpos\"] = data.qpos", "return data.qpos", "obs['name'] = …",
         "def observation"),
    # what plain Python says, with a suggestion
    Slip("joint", "{after}", "y = data.joint('slid').qpos[0]", "Valid names: ['hinge', 'slide']"),
    Slip("self_typo", "{after}", "y = self.gaol", "did you mean 'goal'?"),
    Slip("late_self_typo", "{after}", f"{_LATE}y = self.gaol", "did you mean 'goal'?"),
    Slip("self_forgotten", "{before}", "simulate(data)", "did you mean 'self.simulate'?"),
    Slip("argument_forgotten", "def reset(self, data, rng, info)", "def reset(self, data, info)",
         "write def reset(self, …, rng)", "data.qpos[:] = rng"),
    Slip("no_effect", "ctrl[:] = action", "pass", "no action changes an observation", None),
    Slip("ctrl_size", "{before}", "self.simulate(data, np.zeros(3), 1)", "shape (3,)"),
    # what is met later
    Slip("late_nan", "{returned}", "np.nan if data.time > 0.05 else 1.0", "not finite: nan"),
    Slip("late_index", "{after}", f"{_LATE}y = data.qpos[7]", "out of bounds"),
    Slip("late_index_in_obs", "{observation}", f"{_LATE}y = data.qpos[7]", "out of bounds"),
    Slip("late_size_in_obs", "{observation}",
         "obs['more'] = data.qpos[: 2 if data.time < 0.05 else 1]", "expected 2 numbers"),
    Slip("late_assert", "{after}", "assert data.time < 0.05, 'too late'", "too late"),
    Slip("stale", "{before}", "y = data.site('tip').xpos[0]", "is read before self.simulate"),
    Slip("division", "{after}", "y = 1.0 / (0.05 - min(data.time, 0.05))", "division by zero"),
    Slip("nan_obs", "{observation}",
         "obs['more'] = np.nan if data.time > 0.05 else 1.0", "obs['more'] is NaN", None),
    # the file itself, and the model
    Slip("syntax", "info, rng):", "info, rng)", "SyntaxError: expected ':'"),
    Slip("import", "import math", "import maht", "No module named 'maht'"),
    Slip("class_body", "frame_skip = 2", "frame_skip = two", "'two' is not defined"),
    Slip("no_task", "(pyfastenv.Task)", "", "expected a subclass of pyfastenv.Task", None),
    Slip("xml", "<worldbody>", "<wordbody>", "Cart.model: XML", None),
]  # fmt: skip


@pytest.fixture
def cart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder for a file ``cart.py``, where commands are run."""
    path = list(sys.path)
    monkeypatch.chdir(tmp_path)
    yield tmp_path / "cart.py"
    sys.path[:] = path
    sys.modules.pop("cart", None)


def slipped(slip: Slip) -> str:
    """The file with this slip in it."""
    text = FILE.replace('<body name="pole"', '<site name="tip"/><body name="pole"')
    assert slip.old in text, slip.name
    text = text.replace(slip.old, slip.new, 1)
    for place in ("reset", "control", "before", "after", "observation"):
        text = text.replace("{" + place + "}", "pass")
    return text.replace("{returned}", "1.0")


def line_with(text: str, piece: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if piece in line)


@pytest.mark.parametrize("slip", SLIPS, ids=lambda s: s.name)
def test_check_says_what_to_mend_and_where(
    slip: Slip, cart: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cart.write_text(text := slipped(slip))
    assert cli.main(["check", "cart:Cart"]) == 1
    out, err = capsys.readouterr()
    said = "".join(line + "\n" for line in out.splitlines() if not line.startswith("ok")) + err
    assert slip.said in said, said
    if slip.line is not None:
        line = line_with(text, slip.line or slip.new.splitlines()[0])
        assert f"cart.py:{line}" in said, said
    assert "Traceback" not in said and "plain Python does" not in said
    assert len(said.splitlines()) <= 5, said


@pytest.mark.parametrize("name", ["frameskip", "self_typo", "late_index", "late_nan", "syntax"])
def test_training_says_it_too(name: str, cart: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    slip = next(each for each in SLIPS if each.name == name)
    cart.write_text(text := slipped(slip))
    options = ["--total-steps", "4096", "--num-envs", "4", "--run-dir", "run"]
    assert cli.main(["train", "ppo", "--env-id", "cart:Cart", *options]) == 1
    err = capsys.readouterr().err
    assert slip.said in err and f"cart.py:{line_with(text, slip.new)}" in err, err
    assert "env_kwargs" not in err and len(err.splitlines()) <= 5


UNHARMED = Slip("", "frame_skip = 2", "frame_skip = 2", "")


def test_parameters_may_have_names_like_settings(cart: Path) -> None:
    """Those that a method reads, and those that are like none."""
    numbers = "external_force = action_scale = max_speed = model_name = 0.5"
    text = slipped(Slip("", "frame_skip = 2", f"frame_skip = 2\n    {numbers}", ""))
    cart.write_text(text.replace('info["x"] = ', 'info["x"] = self.external_force * '))
    envs = pyfastenv.make_vec("cart:Cart", 1, max_speed=2.0)
    assert envs.task.params["max_speed"] == 2.0  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match=r"no argument 'max_sped'.* did you mean 'max_speed'\?"):
        pyfastenv.make_vec("cart:Cart", 1, max_sped=2.0)


def test_settings_of_other_packages_may_be_parameters(cart: Path) -> None:
    """Those that a method reads, and those beside the setting of the same meaning."""
    text = slipped(Slip("", "frame_skip = 2", "frame_skip = 2; decimation = 4; horizon = 9", ""))
    cart.write_text(text.replace('info["x"] = ', 'info["x"] = self.horizon * '))
    envs = pyfastenv.make_vec("cart:Cart", 1)
    assert (envs.task.frame_skip, envs.task.decimation) == (2, 4)  # type: ignore[attr-defined]


def test_physics_may_be_stepped_by_a_helper_and_by_mujoco(cart: Path) -> None:
    text = slipped(Slip("", "self.simulate(data)", "self.advance(data)", ""))
    for call in ("self.simulate(data)", "mujoco.mj_step(self.model, data)"):
        cart.write_text(f"{text}\n\n    def advance(self, data):\n        {call}\n")
        sys.modules.pop("cart", None)
        envs = pyfastenv.make_vec("cart:Cart", 1)
        envs.reset(seed=0)
        before = envs.step(np.ones((1, 1)))[4]["x"][0]
        assert envs.step(np.ones((1, 1)))[4]["x"][0] != before


def test_what_check_says_of_settings(cart: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cart.write_text(slipped(UNHARMED))
    assert cli.main(["check", "cart:Cart"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    steps = "a step is 0.004 s (frame_skip 2), an episode 1000 steps"
    assert first.endswith(f"{steps}, parameters: goal, limits")


def test_parameters_may_be_arrays_where_a_class_calls_super(cart: Path) -> None:
    """And what is written into new arrays is the task's own."""
    text = slipped(UNHARMED)
    cart.write_text(
        f"""{text}

class Heavier(Cart):
    table = np.array([1.0, 2.0, 3.0])

    def step(self, data, action, info, rng):
        action = action * 0.5
        action *= 0.5
        reward, terminated = super().step(data, action, info, rng)
        return reward + self.table[1], terminated
"""
    )
    envs = pyfastenv.make_vec("cart:Heavier", 2)
    envs.reset(seed=0)
    assert envs.step(np.ones((2, 1)))[1].tolist() == [3.0, 3.0]


READING = """
import numpy as np
import pyfastenv

def scaled(task, x):
    return task.used_by_a_helper * x

class Slide(pyfastenv.Task):
    model = '''<mujoco><worldbody><body><joint name="a" type="slide"/><geom size=".1"/></body>
      </worldbody><actuator><motor joint="a" ctrlrange="-1 1"/></actuator></mujoco>'''
    gain = 2.0
    frames = 4
    used_by_a_helper = 3.0

    def reset(self, data, rng):
        data.qpos[:] = rng.uniform(-0.1, 0.1, 1)

    @pyfastenv.reward_terms(near=1.0)
    def step(self, data, action, info):
        self.simulate(data, self.gain * action)
        return {"near": scaled(self, data.qpos[0])}, False

    def observation(self, data, obs):
        obs["qpos"] = data.qpos
"""


def test_check_names_parameters_that_no_method_reads(
    cart: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cart.write_text(READING)
    assert cli.main(["check", "cart.py:Slide"]) == 0
    line = line_with(READING, "frames = 4")
    out = capsys.readouterr().out.splitlines()
    assert f"ok    no method reads frames (cart.py:{line}); is that meant to be a setting?" in out


def test_plain_python_is_named_where_it_has_done_the_same(cart: Path) -> None:
    """Python's whole numbers have no end; compiled ones have 64 bits."""
    slip = Slip("", "{after}", "self.last[0] = int(1e30)", "")
    cart.write_text(slipped(slip))
    envs = pyfastenv.make_vec("cart:Cart", 1)
    envs.reset(seed=0)
    with pytest.raises(pyfastenv.EnvError, match="plain Python does the same step"):
        envs.step(np.zeros((1, 1)))


def test_actions_are_named_in_the_tasks_dtype(cart: Path) -> None:
    text = slipped(UNHARMED)
    cart.write_text(text + "\n\nclass Narrow(Cart):\n    action_dtype = 'float32'\n")
    for name, dtype in (("Cart", "float64"), ("Narrow", "float32")):
        envs = pyfastenv.make_vec(f"cart:{name}", 2)
        envs.reset(seed=0)
        with pytest.raises(ValueError, match=rf"expected \(2, 1\) {dtype}, got \(2, 3\)"):
            envs.step(np.zeros((2, 3)))


# ---- where it stands -----------------------------------------------------------------------------


def test_a_run_can_be_used_from_another_folder(cart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from pyfastenv.algorithms import ppo
    from pyfastenv.runs.folder import env_name

    (cart.parent / "mine").mkdir()
    file = cart.parent / "mine" / "cart.py"
    file.write_text(slipped(UNHARMED))
    model = slipped(UNHARMED).partition('"""')[2].partition('"""')[0]
    (cart.parent / "own.xml").write_text(model)
    (file.parent / "beside.xml").write_text(model)
    for given, recorded in (("own.xml", f"{cart.parent / 'own.xml'}"), ("beside.xml",) * 2):
        config = ppo.Config(env_id="mine/cart.py:Cart", env_kwargs={"model": given})
        config.check()
        assert config.env_kwargs == {"model": recorded}
        assert config.env_id == f"{file}:Cart" and env_name(config.env_id) == "cart.py-Cart"
    assert env_name("pyfastenv/Hopper-v5") == "Hopper-v5"
    text = model.replace("<worldbody>", f"<!--{'x' * 5_000}--><worldbody>")  # no file's name
    config = ppo.Config(env_id="mine/cart.py:Cart", env_kwargs={"model": text})
    config.check()
    assert config.env_kwargs == {"model": text}
    monkeypatch.chdir(file.parent)
    for given, recorded in (("cart", file), ("json", "json")):  # a file here, a package
        assert ppo.Config(env_id=f"{given}:Cart").env_id == f"{recorded}:Cart"


def test_a_file_is_named_by_its_path(cart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cart.parent / "mine").mkdir()
    file = cart.parent / "mine" / "cart.py"
    file.write_text(slipped(UNHARMED))
    (cart.parent / "elsewhere").mkdir()
    results = []
    for place in ("mine/cart.py:Cart", f"{file}:Cart"):
        envs = pyfastenv.make_vec(place, 2)
        envs.reset(seed=0)
        results.append(envs.step(np.ones((2, 1)))[0])
    np.testing.assert_array_equal(*results)
    assert pyfastenv.debug("mine/cart.py:Cart").reset(seed=0)[0].shape == (2,)
    monkeypatch.chdir(cart.parent / "elsewhere")
    assert cli.main(["check", "../mine/cart.py:Cart"]) == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("cart:Cart", "there is no module 'cart' in {here} or among the installed packages; a file "
         "elsewhere is named as path/to/cart.py:Cart"),
        ("other/cart:Cart", "a file elsewhere is named as other/cart.py:Cart"),
        ("other/cart.py:Cart", "there is no file {here}/other/cart.py"),
        ("mine/cart.py:Crat", "mine/cart.py has no 'Crat'; its tasks: mine/cart.py:Cart"),
        ("mine/cart.py", "which task? its tasks: mine/cart.py:Cart"),
        ("mine/cart.py:TABLE", "its tasks: mine/cart.py:Cart"),
        ("mine/json.py:Cart", "Python takes the name 'json' for"),
        ("Cart", "expected a pyfastenv.Task or where one stands (my_tasks:Arm, "
         "path/to/my_tasks.py:Arm) or a task's id, got 'Cart'"),
    ],
)  # fmt: skip
def test_a_wrong_place_says_where_it_was_looked_for(
    given: str, said: str, cart: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (cart.parent / "mine").mkdir()
    for name in ("cart", "json"):
        (cart.parent / "mine" / f"{name}.py").write_text(slipped(UNHARMED))
    assert cli.main(["check", given]) == 1
    out, err = capsys.readouterr()
    assert out == "" and said.format(here=cart.parent) in err and err.count("\n") == 1, err
