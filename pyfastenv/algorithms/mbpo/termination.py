"""Which observations end an episode: the environments' own rules, as functions of tensors.

For algorithms that roll out a learned model (MBPO: Janner et al. 2019, arXiv:1906.08253): the model
predicts observations, and these rules say which of them are terminal. Knows no model and no buffer.

The rules are those of gymnasium/envs/mujoco/<name>_v5.py (``is_healthy``, ``step``; v4 has the
same), classic_control/continuous_mountain_car.py and csrc/envs/mujoco/ant_meta.cc. They equal the
environments' ``terminations`` exactly, but for what the observation leaves out:

- Rounding, with float32 observations: a state within 1e-7 (relative) of a threshold may differ.
- Hopper also wants every velocity inside ``healthy_state_range`` (±100 by default), and observes
  them clipped to ±10. The rule checks what it is given. Random actions reach 33 at most (300,000
  steps, also from tumbled starts), so ±100 is never missed; ranges that would be are refused.
- Ant wants x and y finite too, which the observation may not have. Its contact forces are checked
  in their place, like everything else that is observed.
- InvertedDoublePendulum reads the tip's height from MuJoCo's last Runge-Kutta stage, which is not
  quite the state that it observes. 4 of 320,000 random steps differ, by 14 µm of height at most.
- Diverged physics (``infos["diverged"]``) terminates with the observation of a healthy default
  pose; no function of the observation sees that.
- Models changed by ``xml_file`` keep gymnasium's rule, which names coordinates; those of
  InvertedDoublePendulum are refused, as its rule needs the poles' lengths. What
  ``set_model_field`` changes is not looked at.

To add one: a function here, and its line in ``_RULES``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from pyfastenv.vector import specs
from pyfastenv.vector.vector_env import FastVectorEnv

Rule = Callable[[Tensor], Tensor]  # (..., obs_size) -> (...) bool


class _NotObservable(Exception):
    """With these arguments the observation does not say it; the message is the reason."""


def has_termination_rule(env_id: str) -> bool:
    """Whether :func:`termination_rule` knows the environment (with its default arguments)."""
    return env_id.removeprefix("pyfastenv/") in _ids()


def termination_rule(envs: FastVectorEnv) -> Rule:
    """The environments' termination rule, with the arguments that they were made with.

    Args:
        envs: Only their id and arguments are read.

    Returns:
        A pure function of the next observations, ``(…, obs_size)`` float32 or float64 on any
        device, not normalised; it returns ``(…)`` bool, True where the episode terminates. Time
        limits are no part of it.

    Raises:
        ValueError: The id has no rule, or not with these arguments.
    """
    kwargs = envs._env_kwargs
    try:
        if not has_termination_rule(envs.env_id):
            raise _NotObservable(f"none is written for it; these ids have one: {', '.join(_ids())}")
        if envs.frame_stack > 1:
            raise _NotObservable(f"frame_stack is {envs.frame_stack}, and it reads one observation")
        if not kwargs.get("terminate_when_unhealthy", True):
            return _never()
        return _RULES[_family(envs.env_id)](**kwargs)
    except _NotObservable as reason:
        raise ValueError(f"{envs.env_id}: no termination rule, because {reason}") from None


def _ids() -> list[str]:
    return [env_id for env_id in specs.env_ids() if _family(env_id) in _RULES]


def _family(env_id: str) -> str:
    return env_id.rpartition("-")[0]


# ---- the rules, with gymnasium's arguments and defaults ------------------------------------------


def _never(**_: Any) -> Rule:
    def rule(obs: Tensor) -> Tensor:
        return torch.zeros(obs.shape[:-1], dtype=torch.bool, device=obs.device)

    return rule


def _ant(
    *,
    healthy_z_range: Iterable[float] = (0.2, 1.0),
    exclude_current_positions_from_observation: bool = True,
    **_: Any,
) -> Rule:
    """The rule of ant_v5.py: the state is finite, and ``min_z <= z <= max_z``."""
    low, high = _bounds(healthy_z_range)
    height = 0 if exclude_current_positions_from_observation else 2

    def rule(obs: Tensor) -> Tensor:
        z = obs[..., height]
        return ~(obs.isfinite().all(-1) & (low <= z) & (z <= high))

    return rule


# hopper_v5.py, _get_obs: velocities are clipped to ±10
_CLIP = 10.0
_UNREACHED = 100.0


def _hopper(
    *,
    healthy_state_range: Iterable[float] = (-100.0, 100.0),
    healthy_z_range: Iterable[float] = (0.7, math.inf),
    healthy_angle_range: Iterable[float] = (-0.2, 0.2),
    exclude_current_positions_from_observation: bool = True,
    **_: Any,
) -> Rule:
    """The rule of hopper_v5.py: z, the torso's angle, qpos[2:] and qvel are inside their ranges."""
    states, heights, angles = map(
        _bounds, (healthy_state_range, healthy_z_range, healthy_angle_range)
    )
    if any(_CLIP < abs(bound) < _UNREACHED for bound in states):
        raise _NotObservable(
            f"velocities are clipped to ±{_CLIP:g} in the observation, and healthy_state_range="
            f"{states} has a bound between {_CLIP:g} and {_UNREACHED:g}"
        )
    height = 0 if exclude_current_positions_from_observation else 1

    def rule(obs: Tensor) -> Tensor:
        healthy = _inside(obs[..., height + 1 :], states).all(-1)
        healthy &= _inside(obs[..., height], heights)
        healthy &= _inside(obs[..., height + 1], angles)
        return ~healthy

    return rule


def _humanoid(
    *,
    healthy_z_range: Iterable[float] = (1.0, 2.0),
    exclude_current_positions_from_observation: bool = True,
    **_: Any,
) -> Rule:
    """The rule of humanoid_v5.py: ``min_z < z < max_z``."""
    heights = _bounds(healthy_z_range)
    height = 0 if exclude_current_positions_from_observation else 2

    def rule(obs: Tensor) -> Tensor:
        return ~_inside(obs[..., height], heights)

    return rule


# inverted_double_pendulum.xml: body "pole2" stands 0.6 above the first hinge (pos="0 0 0.6"), site
# "tip" 0.6 above the second one (pos="0 0 .6"); both turn about y, and the rail is at height 0
_POLE_LENGTH = 0.6


def _inverted_double_pendulum(*, xml_file: Any = "inverted_double_pendulum.xml", **_: Any) -> Rule:
    """The rule of inverted_double_pendulum_v5.py: the tip's height is at most 1.

    Observed are (x, sin θ1, sin θ2, cos θ1, cos θ2, …), θ2 relative to the first pole, so the
    height is ``l * cos θ1 + l * cos(θ1 + θ2)``. As in gymnasium, NaN does not terminate.
    """
    known = specs.resolve_xml_file("inverted_double_pendulum.xml")
    if specs.resolve_xml_file(xml_file) != known:
        raise _NotObservable("the lengths of the poles in another xml_file are not observed")

    def rule(obs: Tensor) -> Tensor:
        sin1, sin2, cos1, cos2 = obs[..., 1:5].unbind(-1)
        return _POLE_LENGTH * (cos1 + (cos1 * cos2 - sin1 * sin2)) <= 1.0

    return rule


def _inverted_pendulum(**_: Any) -> Rule:
    """The rule of inverted_pendulum_v5.py: the observation is finite, the angle within ±0.2."""

    def rule(obs: Tensor) -> Tensor:
        return ~obs.isfinite().all(-1) | (obs[..., 1].abs() > 0.2)

    return rule


def _mountain_car_continuous(*, goal_velocity: float = 0.0, **_: Any) -> Rule:
    """The rule of continuous_mountain_car.py, which keeps its state and compares it in float32."""
    goal_velocity = float(goal_velocity)

    def rule(obs: Tensor) -> Tensor:
        position, velocity = obs.float().unbind(-1)
        return (position >= 0.45) & (velocity >= goal_velocity)

    return rule


def _walker2d(
    *,
    healthy_z_range: Iterable[float] = (0.8, 2.0),
    healthy_angle_range: Iterable[float] = (-1.0, 1.0),
    exclude_current_positions_from_observation: bool = True,
    **_: Any,
) -> Rule:
    """The rule of walker2d_v5.py: z and the torso's angle are inside their ranges."""
    heights, angles = _bounds(healthy_z_range), _bounds(healthy_angle_range)
    height = 0 if exclude_current_positions_from_observation else 1

    def rule(obs: Tensor) -> Tensor:
        return ~(_inside(obs[..., height], heights) & _inside(obs[..., height + 1], angles))

    return rule


def _bounds(pair: Iterable[float]) -> tuple[float, float]:
    low, high = pair
    return float(low), float(high)


def _inside(x: Tensor, bounds: tuple[float, float]) -> Tensor:
    """In the open interval; NaN is not."""
    low, high = bounds
    return (low < x) & (x < high)


# AntDir, AntVel and AntGoal observe all of qpos
_ant_meta = partial(_ant, exclude_current_positions_from_observation=False)

# an id without its version -> what makes the rule of the environment's keyword arguments
_RULES: dict[str, Callable[..., Rule]] = {
    "Ant": _ant,
    "AntDir": _ant_meta,
    "AntGoal": _ant_meta,
    "AntVel": _ant_meta,
    "HalfCheetah": _never,
    "HalfCheetahDir": _never,
    "HalfCheetahVel": _never,
    "Hopper": _hopper,
    "Humanoid": _humanoid,
    "HumanoidStandup": _never,
    "InvertedDoublePendulum": _inverted_double_pendulum,
    "InvertedPendulum": _inverted_pendulum,
    "MountainCarContinuous": _mountain_car_continuous,
    "Pendulum": _never,
    "Pusher": _never,
    "Reacher": _never,
    "Swimmer": _never,
    "Walker2d": _walker2d,
}
