"""
The compiled core of pyfastenv; use the pyfastenv package.
"""

from __future__ import annotations
import collections.abc
import typing

__all__: list[str] = ["MUJOCO_VERSION", "VectorEnv", "physics_limit", "registry"]

class VectorEnv:
    """
    The compiled part of pyfastenv.FastVectorEnv.
    """
    def __init__(
        self,
        *,
        env_id: str,
        kwargs: dict,
        assets_dir: str,
        num_envs: typing.SupportsInt | typing.SupportsIndex,
        num_threads: typing.SupportsInt | typing.SupportsIndex,
        autoreset_mode: str,
        obs_dtype: str,
        max_episode_steps: typing.SupportsInt | typing.SupportsIndex | None,
        copy: bool,
        infos: bool,
        seeds: list,
    ) -> None: ...
    def close(self) -> None: ...
    def get_model_field(self, name: str) -> typing.Any: ...
    def get_state(self, env_ids: typing.Any) -> typing.Any: ...
    def get_tasks(self) -> typing.Any: ...
    def random_state(self, env_id: typing.SupportsInt | typing.SupportsIndex) -> tuple: ...
    def recv(
        self,
        min_envs: typing.SupportsInt | typing.SupportsIndex | None,
        max_envs: typing.SupportsInt | typing.SupportsIndex | None,
        timeout: typing.SupportsFloat | typing.SupportsIndex | None,
    ) -> tuple: ...
    def reset(
        self,
        seeds: typing.Any,
        mask: typing.Any,
        options: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex],
    ) -> tuple: ...
    def row(self, env_id: typing.SupportsInt | typing.SupportsIndex) -> typing.Any: ...
    def send(self, actions: typing.Any, env_ids: typing.Any) -> None: ...
    def send_reset(
        self,
        seeds: typing.Any,
        options: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex],
        env_ids: typing.Any,
    ) -> None: ...
    def set_model_field(self, name: str, values: typing.Any, env_ids: typing.Any) -> None: ...
    def set_state(self, states: typing.Any, env_ids: typing.Any) -> None: ...
    def set_tasks(self, tasks: typing.Any, env_ids: typing.Any) -> None: ...
    def stats(self) -> dict: ...
    def step(self, actions: typing.Any) -> tuple: ...
    @property
    def action_high(self) -> list[float]: ...
    @property
    def action_low(self) -> list[float]: ...
    @property
    def closed(self) -> bool: ...
    @property
    def fields(self) -> list[tuple[str, int, list[int]]]: ...
    @property
    def max_episode_steps(self) -> int: ...
    @property
    def model_path(self) -> str: ...
    @property
    def num_actions(self) -> int: ...
    @property
    def num_threads(self) -> int: ...
    @property
    def obs_dtype(self) -> str: ...
    @property
    def obs_high(self) -> list[float]: ...
    @property
    def obs_low(self) -> list[float]: ...
    @property
    def render_fps(self) -> float: ...
    @property
    def reset_options(self) -> list[tuple[str, float]]: ...
    @property
    def state_bytes(self) -> int: ...
    @property
    def tasks(self) -> list: ...

def physics_limit(
    *,
    env_id: str,
    assets_dir: str,
    actions: typing.Any,
    num_threads: typing.SupportsInt | typing.SupportsIndex,
    seed: typing.SupportsInt | typing.SupportsIndex = 0,
) -> float:
    """
    Environment calls per second of a bare mj_step loop over state rows (no barrier, observation, reward or Python) with these actions and the resets they lead to.
    """

def registry() -> list:
    """
    All environments: (id, max_episode_steps, reward_threshold or None).
    """

MUJOCO_VERSION: str = "4.0.0"
