"""Physics that environments draw by name, by column and now and then, beside plain Python."""

from typing import Any

import numpy as np
import pytest
from plain_python import beside_plain

import pyfastenv
from pyfastenv.tasks.language.randomise import log_uniform, scale, shift, uniform

BIPED = """<mujoco><option timestep=".005"/>
  <worldbody><geom name="floor" type="plane" size="9 9 1"/>
    <body name="trunk" pos="0 0 .32"><freejoint name="root"/>
      <geom name="box" type="box" size=".1 .1 .05" mass="2"/><site name="imu" pos=".05 0 0"/>
      <body name="left" pos="0 .08 0"><joint name="left" axis="0 1 0" damping=".1"/>
        <geom name="left" type="capsule" fromto="0 0 0 0 0 -.25" size=".03" mass=".3"/></body>
      <body name="right" pos="0 -.08 0"><joint name="right" axis="0 1 0" damping=".1"/>
        <geom name="right" type="capsule" fromto="0 0 0 0 0 -.25" size=".03" mass=".3"/></body>
    </body></worldbody>
  <actuator><position name="l" joint="left" kp="20" kv=".5" ctrlrange="-1 1"/>
    <position name="r" joint="right" kp="20" kv=".5" ctrlrange="-1 1"/></actuator>
  <sensor><gyro site="imu"/></sensor></mujoco>"""


class Biped(pyfastenv.Task):
    model = BIPED
    frame_skip = 4
    max_episode_steps = None
    randomise = {
        "body_mass": [scale(0.5, 2.0, of="trunk"), shift(0.0, 0.2, of=("left", "right"))],
        "geom_friction": uniform(0.3, 1.2, of=("left", "right"), columns=0, together=True),
        "dof_damping": scale(0.5, 1.5),
        "dof_frictionloss": uniform(0.0, 0.1, of="right", every=(0.05, 0.2)),
        "site_pos": shift(-0.01, 0.01, of="imu", columns=(0, 2)),
        "dof_armature": log_uniform(1e-4, 1e-1),
        "qpos0": shift(-0.05, 0.05, of=("left", "right")),
    }

    def reset(self, data: Any, rng: Any) -> None:
        data.qvel[:3] = 0.2 * rng.standard_normal(3)

    def step(self, data: Any, action: Any) -> tuple[Any, Any]:
        self.simulate(data)
        return data.qvel[0], False

    def observation(self, data: Any, obs: Any) -> None:
        obs["qpos"] = data.qpos
        obs["gyro"] = data.sensordata
        obs["loss"] = self.model.joint("right").frictionloss


@pytest.mark.parametrize("engine", ["mujoco", "lanes"])
def test_compiled_code_draws_as_plain_python_does(engine: str) -> None:
    losses = set()
    for pair in beside_plain(Biped, 60, num_envs=9, pool={"engine": engine}):
        losses.add(pair.results[0][0, -1])
        at_work = pair.envs.get_model_field("dof_frictionloss")
        assert at_work[0, 7] == pair.results[0][0, -1]
    assert 5 < len(losses) < 30  # 1.2 s


def test_only_what_is_named_is_drawn_and_can_be_read() -> None:
    envs = pyfastenv.make_vec(Biped, 200)
    envs.reset(seed=0)
    model = envs.new_model()

    def check(field: str, drawn: Any, low: float, high: float) -> Any:
        values = envs.get_model_field(field)
        own = np.broadcast_to(getattr(model, field), values.shape)
        mask = np.zeros(own.shape[1:], bool)
        mask[drawn] = True
        np.testing.assert_array_equal(values[:, ~mask], own[:, ~mask])
        assert (low <= values[:, mask]).all()
        assert (values[:, mask] <= high).all()
        assert np.ptp(values[:, mask], axis=0).min() > 0.8 * (high - low)
        return values

    masses = envs.get_model_field("body_mass")
    assert 1.0 <= masses[:, 1].min() < 1.2 < 3.8 < masses[:, 1].max() <= 4.0
    assert 0.3 <= masses[:, 2:].min() < 0.32 < 0.48 < masses[:, 2:].max() <= 0.5
    friction = check("geom_friction", ([2, 3], 0), 0.3, 1.2)
    np.testing.assert_array_equal(friction[:, 2, 0], friction[:, 3, 0])
    check("dof_frictionloss", 7, 0.0, 0.1)
    check("qpos0", [7, 8], -0.05, 0.05)
    decades = np.log10(envs.get_model_field("dof_armature"))
    assert -4.0 <= decades.min() < -3.95 < -1.05 < decades.max() <= -1.0
    assert np.median(decades) == pytest.approx(-2.5, abs=0.2)
    place = envs.get_model_field("site_pos")
    assert np.ptp(place[:, 0, 0]) > 0.015
    assert (place[:, 0, 1] == 0.0).all()
    quiet = pyfastenv.make_vec(Biped, 2, randomise=False)
    quiet.reset(seed=0)
    np.testing.assert_array_equal(quiet.get_model_field("body_mass")[0], model.body_mass)


def test_snapshots_have_what_was_drawn_and_when_it_is_drawn_again() -> None:
    envs, other = (pyfastenv.make_vec(Biped, 3, num_threads=n) for n in (1, 2))
    envs.reset(seed=0)
    other.reset(seed=1)
    for _ in range(5):
        envs.step(np.ones((3, 2)))
    other.set_state(envs.get_state())
    for _ in range(30):
        action = np.ones((3, 2))
        np.testing.assert_array_equal(envs.step(action)[0], other.step(action)[0])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dof_damping": scale(1, 2, of="knee")}, "no joint 'knee'; there are root, left, right"),
        ({"dof_damping": scale(1, 2, columns=0)}, "columns: it has none"),
        ({"key_qpos": scale(1, 2, of="home")}, "no real-valued array"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_said_with_its_line(given: Any, said: str) -> None:
    task = type("Wrong", (Biped,), {"randomise": given})
    with pytest.raises((TypeError, ValueError)) as caught:
        pyfastenv.make_vec(task, 1)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"every": (3, 1)}, "every: expected seconds above 0"),
        ({"every": 0}, "every: expected seconds above 0"),
        ({"every": (1, 2, 3)}, "scale: every: expected a number, or the least and the most, got"),
        ({"of": (1, 2)}, "of: expected names"),
        ({"columns": "x"}, "columns: expected whole numbers"),
        ({"column": 0}, "unexpected keyword argument 'column'"),
        ({"high": np.inf}, "expected low <= high"),
    ],
)
def test_bad_draws_are_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match="log_uniform: expected low above 0, got 0"):
        log_uniform(0.0, 1.0)
    with pytest.raises((TypeError, ValueError), match=said):
        scale(**{"low": 0.5, "high": 1.0, **arguments})


def test_inertia_that_would_not_follow_is_warned_of() -> None:
    """MuJoCo takes a lone body's from dof_M0."""

    class Ball(pyfastenv.Task):
        model = """<mujoco><worldbody><body name="ball" pos="0 0 1"><freejoint/>
          <geom size="0.1" mass="1"/></body></worldbody></mujoco>"""
        randomise = {"body_mass": scale(0.5, 2.0)}

        def reset(self, data: Any, rng: Any) -> None:
            pass

        def step(self, data: Any, action: Any, info: Any) -> Any:
            self.simulate(data)
            return 0.0, False

        def observation(self, data: Any, obs: Any) -> None:
            obs["speed"] = data.qvel[2]

    class Followed(Ball):
        model_fields = ("dof_M0",)

        def reset(self, data: Any, rng: Any) -> None:
            self.model.dof_M0[:3] = self.model.body_mass[1]

    with pytest.warns(
        UserWarning, match=r"randomise\['body_mass'\]: .* inertia of ball from dof_M0"
    ):
        pyfastenv.make_vec(Ball, 1).close()
    envs = pyfastenv.make_vec(Followed, 4)
    envs.reset(seed=0)
    obs = envs.step(np.zeros(envs.action_space.shape))[0]
    assert len(set(envs.get_model_field("body_mass")[:, 1])) == 4
    np.testing.assert_allclose(obs, -9.81 * envs.task.dt, rtol=1e-12)
    envs.close()
