"""Reward terms and the ten-line helpers: compiled as in plain Python, and as they say."""

import mujoco
import numpy as np
import pytest
from dict_tasks import Arm
from parity import assert_same
from plain_python import beside_plain

import pyfastenv
from pyfastenv.errors import TaskCodeError
from pyfastenv.tasks.language.helpers import (
    draw_noise,
    enqueue,
    in_frame,
    land,
    projected_gravity,
    push,
    touching,
)

SEED = 4  # of which episodes end


class Shaped(Arm):
    observation_dict = None
    late = pyfastenv.memory(3 * 2)
    noise = pyfastenv.memory(4)
    shove = 0.3

    def reset(self, data, rng, info):
        super().reset(data, rng, info)
        draw_noise(self.noise, rng, 0.01)

    def control(self, data, action, ctrl):
        ctrl[:] = self.late[:2]

    @pyfastenv.reward_terms(near=2.0, effort=-0.1, alive=1)
    def step(self, data, action, info, rng):
        push(data.qvel[:2], rng, 0.3, self.shove)
        self.simulate(data)
        enqueue(self.late, action)
        draw_noise(self.noise, rng, 0.01)
        distance = np.linalg.norm(data.site("tip").xpos[:2] - self.goal)
        info["is_success"] = 1.0 * (distance < self.near)
        if abs(data.qpos[1]) > 0.95:
            return {"effort": np.sum(np.square(action))}, True
        return {
            "near": np.exp(-distance),
            "effort": np.sum(np.square(action)),
            "alive": True,
        }, False

    def observation(self, data, obs):
        obs["state"] = np.concatenate((data.qpos, data.qvel)) + self.noise
        obs["late"] = self.late


@pytest.mark.parametrize("kwargs", [{}, {"effort_weight": -3, "alive_weight": 0.25}])
def test_plain_python_gives_the_same_bits(kwargs: dict[str, float]) -> None:
    weight, ended = kwargs.get("effort_weight", -0.1), 0
    for _, action, (_, *step), _ in beside_plain(Shaped, 200, num_envs=2, seed=SEED, **kwargs):
        if action is None:
            continue
        rewards, terminations, _, infos = step
        parts = [infos[f"reward_{name}"][0] for name in ("near", "effort", "alive")]
        np.testing.assert_allclose(sum(parts), rewards[0], rtol=1e-12)
        assert parts[1] == weight * np.sum(np.square(action))
        assert parts[2] == (0.0 if terminations[0] else kwargs.get("alive_weight", 1.0))
        ended += terminations[0]
    assert ended > 0


def test_what_is_drawn_is_part_of_snapshots() -> None:
    first, second = (pyfastenv.make_vec(Shaped, 3, num_threads=n) for n in (1, 2))
    first.reset(seed=1)
    second.reset(seed=2)
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (12, 3, 2))
    for action in actions[:6]:
        first.step(action)
    second.set_state(first.get_state())
    for action in actions[6:]:
        assert_same(first.step(action), second.step(action))


def test_an_action_arrives_so_many_steps_late() -> None:
    calm, still = (pyfastenv.make_vec(Shaped, 1, shove=0.0) for _ in range(2))
    calm.reset(seed=0)
    still.reset(seed=0)
    pushed = np.full((1, 2), 0.8)
    for step in range(6):
        obs, *_ = calm.step(pushed if step == 0 else np.zeros((1, 2)))
        expected, *_ = still.step(np.zeros((1, 2)))
        assert np.array_equal(obs[:, :4], expected[:, :4]) == (step < 3), step


def test_pushes_come_as_often_as_they_should() -> None:
    class Sum:
        def __init__(self) -> None:
            self.rng = np.random.default_rng(0)

    velocity, rng, pushes = np.zeros(2), Sum().rng, 0
    for _ in range(4000):
        before = velocity.copy()
        push(velocity, rng, 0.25, 0.5)
        change = velocity - before
        pushes += change.any()
        assert (np.abs(change) <= 0.5).all()
    assert 900 < pushes < 1100
    noise = np.zeros(20_000)
    draw_noise(noise, rng, 0.3)
    assert abs(noise.std() - 0.3) < 0.01


def test_feet_that_stand_and_come_down() -> None:
    xml = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
    <body pos="0 0 .1"><freejoint/><geom name="low" size=".1"/></body>
    <body pos="1 0 .5"><freejoint/><geom name="high" size=".1"/></body>
    <body pos="2 0 .105"><freejoint/><geom name="near" size=".1" margin=".01"/></body>
    </worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    geoms = np.array([model.geom(name).id for name in ("high", "low", "near")])
    assert data.ncon == 2  # one of them with a gap
    assert touching(data, geoms).tolist() == [0.0, 1.0, 0.0]
    air_time = np.zeros(2)
    contacts = [(1, 1), (1, 0), (0, 0), (1, 0), (1, 1)]
    landed = [land(air_time, np.array(each), 0.5).tolist() for each in contacts]
    assert landed == [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.5, 0.0], [0.0, 1.5]]
    assert air_time.tolist() == [0.0, 0.0]


def test_vectors_in_a_bodys_frame() -> None:
    quat, vector = np.array([0.5, 0.1, -0.7, 0.5]), np.array([1.0, -2.0, 0.5])
    quat /= np.linalg.norm(quat)
    frame = np.zeros(9)
    mujoco.mju_quat2Mat(frame, quat)
    frame = frame.reshape(3, 3)
    np.testing.assert_allclose(in_frame(quat, vector), frame.T @ vector, atol=1e-15)
    np.testing.assert_allclose(projected_gravity(quat), -frame[2], atol=1e-15)


class Reweighted(Shaped):
    alive_weight = 7.0

    @pyfastenv.reward_terms(near=5.0, alive=6.0)
    def step(self, data, action, info):
        self.simulate(data)
        info["is_success"] = 0.0
        return {"near": 1.0, "alive": 1.0}, False


def test_a_subclass_has_weights_of_its_own() -> None:
    envs = pyfastenv.make_vec(Reweighted, 1)
    envs.reset(seed=0)
    assert envs.step(np.zeros((1, 2)))[1] == [12.0]
    assert pyfastenv.debug(Reweighted, near_weight=1.0).unwrapped.task.near_weight == 1.0
    assert Shaped.near_weight == 2.0


class Gathered(Shaped):
    """The same terms, in a dict that is made first and returned later."""

    @pyfastenv.reward_terms(near=2.0, effort=-0.1, alive=1)
    def step(self, data, action, info, rng):
        push(data.qvel[:2], rng, 0.3, self.shove)
        self.simulate(data)
        enqueue(self.late, action)
        draw_noise(self.noise, rng, 0.01)
        distance = np.linalg.norm(data.site("tip").xpos[:2] - self.goal)
        info["is_success"] = 1.0 * (distance < self.near)
        last: dict[str, float] = {"effort": np.sum(np.square(action))}
        if abs(data.qpos[1]) > 0.95:
            return last, True
        terms = {"near": -distance, "effort": 0.0}
        terms["alive"] = terms["effort"] + 1.0
        terms["near"] = np.exp(terms["near"])
        for each in action:
            terms["effort"] += each * each
        return terms, False


def test_terms_may_be_gathered_in_a_dict() -> None:
    ended = 0
    pairs = (beside_plain(task, 200, num_envs=2, seed=SEED) for task in (Gathered, Shaped))
    for gathered, shaped in zip(*pairs, strict=True):
        assert_same(gathered.results, shaped.results)
        ended += gathered.action is not None and gathered.results[2][0]
    assert ended > 0


class Handed(Arm):
    """Plain Python takes a dict that another function has made; compiled code has no dicts."""

    @pyfastenv.reward_terms(near=1.0)
    def step(self, data, action, info):
        self.simulate(data)
        info["is_success"] = 0.0
        return terms_of(1.0), False


def terms_of(near):
    return {"near": near}


def test_mistakes_at_decoration_and_in_compiled_code() -> None:
    with pytest.raises(TypeError, match="expected weights, such as"):
        pyfastenv.reward_terms()
    with pytest.raises(TypeError, match="expected a number as the least reward, got nan"):
        pyfastenv.reward_terms(np.nan, near=1.0)
    with pytest.raises(TypeError, match=r"expected names of added terms, as \['near'\]"):
        pyfastenv.reward_terms(0.0, "near", near=1.0)
    with pytest.raises(TypeError, match="added: no weight for 'far'; reward_terms has near"):
        pyfastenv.reward_terms(0.0, ["far"], near=1.0)
    with pytest.raises(TypeError, match="near_per_step is what the infos have of near: expected"):
        pyfastenv.reward_terms(near=1.0, near_per_step=1.0)
    with pytest.raises(TypeError, match="must ask for info"):
        pyfastenv.reward_terms(near=1.0)(lambda self, data: ({"near": 1.0}, False))
    with pytest.raises(
        TaskCodeError,
        match=r"test_task_helpers.py:\d+, in step: what step returns: reward_terms needs",
    ):
        pyfastenv.make_vec(Handed, 1)
