"""Late actions, histories, motors and learned actuators: compiled as in plain Python."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain_python import beside_plain

import pyfastenv
from pyfastenv.tasks.language.helpers import dc_motor, delayed, enqueue, refill
from pyfastenv.tasks.language.networks import ACTIVATIONS, load_mlp, mlp

LEGS = """<mujoco><option timestep=".005"/><worldbody>
  <body name="a"><joint name="a" axis="0 1 0" damping=".1"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".03"/>
    <body name="b" pos="0 0 -.3"><joint name="b" axis="0 1 0" damping=".1"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".03"/></body></body></worldbody>
  <actuator><motor joint="a"/><motor joint="b"/></actuator></mujoco>"""


class Late(pyfastenv.Task):
    """Actions arrive up to two steps late, in the next one within it; angles are seen late."""

    model = LEGS
    frame_skip = 4
    control_every = 1
    max_episode_steps = None
    action_space = None

    limit, stall = 5.0, 8.0
    late, unseen, began = pyfastenv.memory(), pyfastenv.memory(), pyfastenv.memory()
    sent, seen = pyfastenv.memory(3 * 2), pyfastenv.memory(4 * 2)

    def reset(self, data: Any, rng: Any) -> None:
        data.qpos[:] = rng.uniform(-0.5, 0.5, 2)
        self.late = rng.integers(0, 3)
        self.unseen = rng.integers(0, 4)
        refill(self.seen, data.qpos)

    def control(self, data: Any, action: Any, ctrl: Any) -> None:
        has_passed = data.time - self.began > 1.5 * self.model.opt.timestep
        target = delayed(self.sent, action, self.late + (0 if has_passed else 1))
        wanted = 20.0 * (target - data.qpos) - 0.5 * data.qvel
        ctrl[:] = dc_motor(wanted, data.qvel, self.limit, self.stall, 6.0)

    def step(self, data: Any, action: Any) -> tuple[Any, Any]:
        self.simulate(data)
        enqueue(self.sent, action)
        enqueue(self.seen, data.qpos)
        self.began = data.time
        return data.qpos[0], False

    def observation(self, data: Any, obs: Any) -> None:
        obs["history"] = self.seen
        obs["angles"] = delayed(self.seen[:-2], self.seen[-2:], self.unseen)
        obs["late"] = self.late, self.unseen


@pytest.mark.parametrize("engine", ["mujoco", "lanes"])
def test_late_actions_and_angles_are_those_of_plain_python(engine: str) -> None:
    past: list[Any] = []
    for pair in beside_plain(Late, 30, num_envs=9, pool={"engine": engine}):
        history, angles, unseen = (
            np.split(pair.results[0], [8, 10, 11], axis=1)[i] for i in (0, 1, 3)
        )
        past.append(history[:, -2:])
        for i, late in enumerate(unseen[:, 0].astype(int)):
            np.testing.assert_array_equal(angles[i], past[max(len(past) - 1 - late, 0)][i])
    assert pair.envs.stats()["engine"] == engine
    assert len(np.unique(unseen)) > 1


def test_an_action_moves_the_robot_when_it_arrives() -> None:
    envs, still = (pyfastenv.make_vec(Late, 30, limit=1e3, stall=1e6) for _ in range(2))
    obs, _ = envs.reset(seed=0)
    still.reset(seed=0)
    moved = np.full(30, -1)
    for step in range(4):
        ours = envs.step(np.full((30, 2), 0.5 if step == 0 else 0.0))[0][:, :8]
        differs = (ours != still.step(np.zeros((30, 2)))[0][:, :8]).any(axis=1)
        moved[differs & (moved < 0)] = step
    np.testing.assert_array_equal(moved, obs[:, 10])
    assert set(moved) == {0, 1, 2}


def test_a_delay_beyond_its_queue_is_refused() -> None:
    queue = np.arange(4.0)
    np.testing.assert_array_equal(delayed(queue, np.ones(2), 2), [0.0, 1.0])
    for late in (3, -1):
        with pytest.raises(ValueError, match="as many steps as the queue has"):
            delayed(queue, np.ones(2), late)


def test_motors_give_what_isaac_labs_give() -> None:
    limit, stall, speed = 3.0, 5.0, 10.0
    rng = np.random.default_rng(0)
    torque, velocity = rng.uniform(-8, 8, 500), rng.uniform(-15, 15, 500)
    most = np.clip(stall * (1.0 - velocity / speed), 0.0, limit)  # DCMotor._clip_effort
    least = np.clip(stall * (-1.0 - velocity / speed), -limit, 0.0)
    given = dc_motor(torque, velocity, limit, stall, speed)
    np.testing.assert_array_equal(given, np.clip(torque, least, most))
    assert dc_motor(np.ones(1), np.full(1, 10.0), limit, stall, speed)[0] == 0.0


RNG = np.random.default_rng(3)
LAYERS = {
    f"{i}.{name}": 0.5 * RNG.normal(size=shape)
    for i, n in enumerate([(8, 6), (8, 8), (1, 8)])
    for name, shape in (("weight", n), ("bias", n[:1]))
}


class Learned(pyfastenv.Task):
    model = LEGS
    frame_skip = 4
    max_episode_steps = None
    past = pyfastenv.memory(3 * 4)

    def setup(self) -> None:
        self.motor = load_mlp(LAYERS, ACTIVATIONS[0])

    def reset(self, data: Any, rng: Any) -> None:
        data.qpos[:] = rng.uniform(-0.5, 0.5, 2)

    def step(self, data: Any, action: Any) -> tuple[Any, Any]:
        for _ in range(self.frame_skip):
            enqueue(self.past, np.concatenate((0.3 * action - data.qpos, data.qvel)))
            seen = np.ascontiguousarray(self.past.reshape((6, 2)).T)
            self.simulate(data, mlp(self.motor, seen)[:, 0], 1)
        return data.qpos[0], False

    def observation(self, data: Any, obs: Any) -> None:
        obs["state"] = np.concatenate((data.qpos, data.qvel))
        obs["past"] = self.past


@pytest.mark.parametrize("activation", range(len(ACTIVATIONS)))
def test_a_learned_actuator_is_that_of_plain_python(activation: int) -> None:
    class Own(Learned):
        def setup(self) -> None:
            self.motor = load_mlp(LAYERS, ACTIVATIONS[activation])

    *_, last = beside_plain(Own, 20)
    assert np.ptp(last.results[0]) > 0.01


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_networks_are_torchs(activation: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    kind = {"softsign": "Softsign", "tanh": "Tanh", "relu": "ReLU", "elu": "ELU"}[activation]
    act = getattr(torch.nn, kind)
    net = torch.nn.Sequential(
        torch.nn.Linear(6, 16), act(), torch.nn.Linear(16, 4), act(), torch.nn.Linear(4, 1)
    ).double()
    x = np.random.default_rng(0).normal(size=(12, 6))
    expected = net(torch.from_numpy(x)).detach().numpy()
    torch.save(net.state_dict(), tmp_path / "net.pt")
    torch.jit.script(net).save(str(tmp_path / "script.pt"))
    np.savez(tmp_path / "net.npz", **{n: v.numpy() for n, v in net.state_dict().items()})
    for name in ("net.pt", "script.pt", "net.npz"):
        given = mlp(load_mlp(tmp_path / name, activation), x)
        np.testing.assert_allclose(given, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("layers", "activation", "said"),
    [
        (LAYERS, "gelu", "expected one of 'softsign', 'tanh', 'relu', 'elu', got 'gelu'"),
        ({}, "tanh", "got nothing"),
        ({"weight": np.ones((2, 3))}, "tanh", "got weight \\(2, 3\\)"),
        ({"w": np.ones((2, 3)), "b": np.ones(3)}, "tanh", "expected weights \\(outputs, inputs\\)"),
        ("nowhere.pt", "tanh", "there is no file nowhere.pt"),
    ],
)
def test_bad_networks_are_refused(layers: Any, activation: str, said: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=said):
        load_mlp(layers, activation)
