"""
The compiled core of pyfastenv; use the pyfastenv package.
"""

from __future__ import annotations
import collections.abc
import typing

__all__: list[str] = [
    "Batch",
    "DefaultFloats",
    "EnsembleHyper",
    "EnsembleUpdate",
    "FlushDenormals",
    "MUJOCO_VERSION",
    "Policy",
    "PpoHyper",
    "PpoUpdate",
    "RenderAssets",
    "Renderer",
    "RolloutPool",
    "SacHyper",
    "SacUpdate",
    "UnitNetworks",
    "VectorEnv",
    "active_callback",
    "bfloat16_unit",
    "bin_cross_entropy",
    "column_moments",
    "data_field_size",
    "disturb_lanes",
    "engine_reason",
    "lane_width",
    "lanes_refusal",
    "least_of_bins",
    "linear_scan",
    "load_opengl",
    "model_field_size",
    "physics_limit",
    "registry",
    "render_refusal",
    "task_struct_layouts",
    "task_symbols",
    "write_model_field",
]

class Batch:
    """
    Simulations for pyfastenv.physics.Batch.
    """
    def __init__(self, **kwargs: typing.Any) -> None: ...
    def bind(self, name: str, array: typing.Any) -> None:
        """
        Copies a field of MjData into an array after every call.
        """
    def forward(
        self, ids: typing.Any, stage: typing.SupportsInt | typing.SupportsIndex
    ) -> list[tuple[int, str]]:
        """
        Computes what follows from the states; returns failures as step.
        """
    def has_sizes_of(self, model_address: typing.SupportsInt | typing.SupportsIndex) -> bool:
        """
        Whether a model's data and states are as large as the batch's.
        """
    def jac(
        self,
        ids: typing.Any,
        body: typing.Any,
        point: typing.Any,
        jacp: typing.Any,
        jacr: typing.Any,
    ) -> list[tuple[int, str]]:
        """
        Computes Jacobians; returns failures as step.
        """
    def lane_steps(self) -> tuple[int, int]:
        """
        Steps that lanes were asked for so far, and those of them that they left to mj_step.
        """
    def ray(self, **kwargs: typing.Any) -> list[tuple[int, str]]:
        """
        Casts rays; returns failures as step.
        """
    def reset(
        self,
        ids: typing.Any,
        keyframe: typing.Any,
        stage: typing.SupportsInt | typing.SupportsIndex,
    ) -> list[tuple[int, str]]:
        """
        Resets simulations to keyframes; returns failures as step.
        """
    def rollout(self, **kwargs: typing.Any) -> list[tuple[int, str]]:
        """
        The same with given controls and records.
        """
    def set_fields(self, arrays: collections.abc.Mapping[str, typing.Any]) -> None:
        """
        Gives every simulation its own values of these fields of MjModel, and of no others.
        """
    def set_models(
        self, addresses: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]
    ) -> None:
        """
        Runs every simulation on a model of its own; none: on the batch's.
        """
    def step(
        self,
        ids: typing.Any,
        nstep: typing.SupportsInt | typing.SupportsIndex,
        stage: typing.SupportsInt | typing.SupportsIndex,
    ) -> list[tuple[int, str]]:
        """
        Steps simulations; returns (simulation, message) of those in which MuJoCo raised.
        """

class RolloutPool:
    """
    Threads for pyfastenv.physics.rollout.
    """
    def __init__(self, *, num_threads: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    def lane_steps(self) -> tuple[int, int]:
        """
        Steps that lanes were asked for so far, and those of them that they left to mj_step.
        """
    def rollout(self, **kwargs: typing.Any) -> list[tuple[int, str]]:
        """
        Runs rollouts into state and sensordata; returns (rollout, message) of those in which MuJoCo raised.
        """
    @property
    def num_threads(self) -> int: ...

class Policy:
    """
    A policy's parameters, copied; see pyfastenv.PolicySpec.
    """
    def __init__(self, **kwargs: typing.Any) -> None: ...
    @property
    def num_policies(self) -> int: ...

class PpoHyper:
    """
    What may change from epoch to epoch.
    """

    mirrored: bool
    normalize_advantages: bool
    def __init__(self) -> None: ...
    @property
    def beta1(self) -> float: ...
    @beta1.setter
    def beta1(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def beta2(self) -> float: ...
    @beta2.setter
    def beta2(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def clip(self) -> float: ...
    @clip.setter
    def clip(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def desired_kl(self) -> float: ...
    @desired_kl.setter
    def desired_kl(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def entropy_coef(self) -> float: ...
    @entropy_coef.setter
    def entropy_coef(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def eps(self) -> float: ...
    @eps.setter
    def eps(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def lr(self) -> float: ...
    @lr.setter
    def lr(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def max_grad_norm(self) -> float: ...
    @max_grad_norm.setter
    def max_grad_norm(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def max_lr(self) -> float: ...
    @max_lr.setter
    def max_lr(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def min_log_std(self) -> float: ...
    @min_log_std.setter
    def min_log_std(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def min_lr(self) -> float: ...
    @min_lr.setter
    def min_lr(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def minibatch_size(self) -> int: ...
    @minibatch_size.setter
    def minibatch_size(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    @property
    def value_clip(self) -> float: ...
    @value_clip.setter
    def value_clip(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def value_coef(self) -> float: ...
    @value_coef.setter
    def value_coef(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...

class PpoUpdate:
    """
    PPO's update on the CPU; see pyfastenv.algorithms.ppo.
    """
    def __init__(self, **kwargs: typing.Any) -> None: ...
    def gradient(
        self, samples: typing.Any, hyper: PpoHyper, parameters: typing.Any, gradient: typing.Any
    ) -> dict:
        """
        Writes the gradient of the loss of all samples, whose advantages count as they are; returns the metrics.
        """
    def run_epochs(
        self,
        samples: typing.Any,
        orders: typing.Any,
        hyper: PpoHyper,
        step: typing.SupportsInt | typing.SupportsIndex,
        parameters: typing.Any,
        mean: typing.Any,
        square: typing.Any,
    ) -> list: ...
    def values(self, obs: typing.Any, parameters: typing.Any) -> typing.Any:
        """
        The value network's outputs, (n,) float32.
        """

class RenderAssets:
    """
    A model's textures and meshes, ready to be drawn.
    """
    def __init__(self, model_address: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    def forget_heights(self) -> None:
        """
        Has the next picture read height fields from the model anew.
        """

class Renderer:
    """
    Draws scenes of one model; see pyfastenv.Renderer.
    """
    def __init__(
        self,
        assets: RenderAssets,
        *,
        height: typing.SupportsInt | typing.SupportsIndex,
        width: typing.SupportsInt | typing.SupportsIndex,
        samples: typing.SupportsInt | typing.SupportsIndex,
        kernels: str = "",
    ) -> None: ...
    def draw(self, scene: typing.Any, out: typing.Any) -> None:
        """
        Writes colours, (height, width, 3) uint8.
        """
    def draw_depth(self, scene: typing.Any, out: typing.Any) -> None:
        """
        Writes distances along the view, (height, width) float32 [m].
        """
    def segment(self, scene: typing.Any, out: typing.Any) -> None:
        """
        Writes objects' ids and types, (height, width, 2) int32.
        """

class SacHyper:
    """
    Settings of SAC's gradient steps.
    """

    learn_temperature: bool
    def __init__(self) -> None: ...
    @property
    def beta1(self) -> float: ...
    @beta1.setter
    def beta1(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def beta2(self) -> float: ...
    @beta2.setter
    def beta2(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def critic_lr(self) -> float: ...
    @critic_lr.setter
    def critic_lr(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def eps(self) -> float: ...
    @eps.setter
    def eps(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def gamma(self) -> float: ...
    @gamma.setter
    def gamma(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def log_std_max(self) -> float: ...
    @log_std_max.setter
    def log_std_max(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def log_std_min(self) -> float: ...
    @log_std_min.setter
    def log_std_min(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def policy_lr(self) -> float: ...
    @policy_lr.setter
    def policy_lr(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def target_entropy(self) -> float: ...
    @target_entropy.setter
    def target_entropy(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def tau(self) -> float: ...
    @tau.setter
    def tau(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...

class SacUpdate:
    """
    SAC's steps on the CPU; see pyfastenv.algorithms.sac.
    """
    def __init__(
        self,
        *,
        obs_size: typing.SupportsInt | typing.SupportsIndex,
        action_size: typing.SupportsInt | typing.SupportsIndex,
        hidden_sizes: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
        layer_norm: bool,
        bfloat16: bool,
        num_seeds: typing.SupportsInt | typing.SupportsIndex,
        batch_size: typing.SupportsInt | typing.SupportsIndex,
        num_threads: typing.SupportsInt | typing.SupportsIndex,
    ) -> None: ...
    def run(
        self,
        rows: typing.Any,
        noise: typing.Any,
        step: typing.SupportsInt | typing.SupportsIndex,
        hyper: SacHyper,
        policy: collections.abc.Sequence[typing.Any],
        critic: collections.abc.Sequence[typing.Any],
        target: typing.Any,
        log_temperature: typing.Any,
        metrics: typing.Any,
    ) -> None: ...

class EnsembleHyper:
    """
    Settings of an ensemble's training.
    """
    def __init__(self) -> None: ...
    @property
    def beta1(self) -> float: ...
    @beta1.setter
    def beta1(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def beta2(self) -> float: ...
    @beta2.setter
    def beta2(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def bound_coef(self) -> float: ...
    @bound_coef.setter
    def bound_coef(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def decays(self) -> list[float]: ...
    @decays.setter
    def decays(
        self, arg0: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex]
    ) -> None: ...
    @property
    def eps(self) -> float: ...
    @eps.setter
    def eps(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def lr(self) -> float: ...
    @lr.setter
    def lr(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...

class EnsembleUpdate:
    """
    An ensemble's training on the CPU; see pyfastenv.algorithms.mbpo.dynamics.
    """
    def __init__(
        self,
        *,
        num_inputs: typing.SupportsInt | typing.SupportsIndex,
        num_targets: typing.SupportsInt | typing.SupportsIndex,
        hidden_sizes: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
        bfloat16: bool,
        num_networks: typing.SupportsInt | typing.SupportsIndex,
        num_seeds: typing.SupportsInt | typing.SupportsIndex,
        batch_size: typing.SupportsInt | typing.SupportsIndex,
        num_threads: typing.SupportsInt | typing.SupportsIndex,
    ) -> None: ...
    def errors(self, samples: typing.Any, parameters: typing.Any, errors: typing.Any) -> None: ...
    def run_epoch(
        self,
        samples: typing.Any,
        order: typing.Any,
        step: typing.SupportsInt | typing.SupportsIndex,
        hyper: EnsembleHyper,
        vectors: collections.abc.Sequence[typing.Any],
    ) -> None: ...

class UnitNetworks:
    """
    FlashSAC's networks on the CPU; see pyfastenv.algorithms.flashsac.accelerated.
    """
    def __init__(
        self,
        *,
        num_inputs: typing.SupportsInt | typing.SupportsIndex,
        num_outputs: typing.SupportsInt | typing.SupportsIndex,
        width: typing.SupportsInt | typing.SupportsIndex,
        num_blocks: typing.SupportsInt | typing.SupportsIndex,
        num_networks: typing.SupportsInt | typing.SupportsIndex,
        max_rows: typing.SupportsInt | typing.SupportsIndex,
        num_threads: typing.SupportsInt | typing.SupportsIndex,
    ) -> None: ...
    def backward(
        self,
        number: typing.SupportsInt | typing.SupportsIndex,
        by_outputs: typing.Any,
        parameters: typing.Any,
        gradients: typing.Any,
        by_inputs: typing.Any,
    ) -> None:
        """
        Writes gradients of the latest pass; None: not wanted.
        """
    def forward(
        self,
        inputs: typing.Any,
        parameters: typing.Any,
        moments: typing.Any,
        by_batch: bool,
        outputs: typing.Any,
    ) -> int:
        """
        Writes the outputs; returns the pass's number, for backward().
        """
    def project(self, parameters: typing.Any) -> None:
        """
        Brings all norms back to what they are to be.
        """
    @property
    def num_moments(self) -> int:
        """
        Of a network.
        """
    @property
    def num_parameters(self) -> int:
        """
        Of a network.
        """

class DefaultFloats:
    """
    Within it, this thread rounds to nearest and keeps denormal numbers, whatever it has been told.
    """
    def __enter__(self) -> None: ...
    def __exit__(self, type: typing.Any, error: typing.Any, traceback: typing.Any) -> None: ...
    def __init__(self) -> None: ...

class FlushDenormals:
    """
    Within it, this thread takes numbers below a float's normal range for zero, on x86-64 and ARM.
    """
    def __enter__(self) -> None: ...
    def __exit__(self, type: typing.Any, error: typing.Any, traceback: typing.Any) -> None: ...
    def __init__(self) -> None: ...

class VectorEnv:
    """
    The compiled part of pyfastenv.FastVectorEnv.
    """
    def __init__(self, **kwargs: typing.Any) -> None: ...
    def act(self, policy: Policy, policy_ids: typing.Any, obs: typing.Any) -> tuple: ...
    def amend(self, env_ids: typing.Any, rewards: typing.Any, ended: typing.Any) -> None: ...
    def close(self) -> None: ...
    def episodes(self) -> tuple: ...
    def get_model_field(self, name: str) -> typing.Any: ...
    def get_state(self, env_ids: typing.Any) -> typing.Any: ...
    def get_tasks(self) -> typing.Any: ...
    def observations(self) -> typing.Any: ...
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
    def rollout(
        self,
        policy: Policy,
        policy_ids: typing.Any,
        num_steps: typing.SupportsInt | typing.SupportsIndex,
        out: dict,
    ) -> dict: ...
    def row(self, env_id: typing.SupportsInt | typing.SupportsIndex) -> tuple: ...
    def send(self, actions: typing.Any, env_ids: typing.Any) -> None: ...
    def send_reset(
        self,
        seeds: typing.Any,
        options: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex],
        env_ids: typing.Any,
    ) -> None: ...
    def set_model_field(self, name: str, values: typing.Any, env_ids: typing.Any) -> None: ...
    def set_random_state(
        self,
        env_id: typing.SupportsInt | typing.SupportsIndex,
        words: typing.Annotated[
            collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], "FixedSize(6)"
        ],
    ) -> None: ...
    def set_state(self, states: typing.Any, env_ids: typing.Any) -> None: ...
    def set_tasks(self, tasks: typing.Any, env_ids: typing.Any) -> None: ...
    def stats(self) -> dict: ...
    def step(self, actions: typing.Any) -> tuple: ...
    def use_buffers(
        self,
        buffers: collections.abc.Sequence[
            typing.Annotated[collections.abc.Sequence[typing.Any], "FixedSize(4)"]
        ],
    ) -> None: ...
    @property
    def action_high(self) -> list[float]: ...
    @property
    def action_low(self) -> list[float]: ...
    @property
    def closed(self) -> bool: ...
    @property
    def max_episode_steps(self) -> int: ...
    @property
    def model_path(self) -> str: ...
    @property
    def num_actions(self) -> int: ...
    @property
    def num_threads(self) -> int: ...
    @property
    def obs_bytes(self) -> int: ...
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

def active_callback() -> str | None:
    """
    Name of a callback of MuJoCo's that changes physics and is set; None if none is.
    """

def bfloat16_unit() -> str:
    """
    What multiplies bfloat16 numbers here: AMX, AVX512-BF16, or nothing.
    """

def bin_cross_entropy(
    found: typing.Any,
    target: typing.Any,
    rewards: typing.Any,
    discounts: typing.Any,
    bonus: typing.Any,
    bins: typing.Any,
) -> tuple:
    """
    Losses (K,) of critics and their gradient by found; logits (K, 2, 2 B, N) of both ends of B transitions: of the critics those where they begin count, of their targets where they end.
    """

def column_moments(samples: typing.Any) -> tuple:
    """
    Mean and sum of squared deviations of each column, float64.
    """

def data_field_size(
    model_address: typing.SupportsInt | typing.SupportsIndex, name: str
) -> int | None:
    """
    Bytes of a field of MjData whose size is fixed; None for other names.
    """

def disturb_lanes(on: bool) -> None:
    """
    For tests: while on, results of lanes are wrong in a bit, which must be found.
    """

def engine_reason(
    model_address: typing.SupportsInt | typing.SupportsIndex, *, sensordata: bool = True
) -> str:
    """
    The same, or that mj_step is faster in use; empty if lanes step the model now.
    """

def lane_width() -> int:
    """
    How many environments' physics this processor runs at once, one per SIMD lane.
    """

def lanes_refusal(
    model_address: typing.SupportsInt | typing.SupportsIndex,
    *,
    unchecked: bool = False,
    sensordata: bool = True,
) -> str:
    """
    Why a model, and its sensordata, is not stepped in lanes; empty if it is. Unchecked: without the trial against mj_step, to find where they differ.
    """

def least_of_bins(
    logits: typing.Any, bins: typing.Any, slope: typing.SupportsFloat | typing.SupportsIndex
) -> tuple:
    """
    The smaller mean (K, B) of two critics' distributions over bins, of logits (K, 2, B, N), and slope times its gradient by them.
    """

def linear_scan(values: typing.Any, decays: typing.Any) -> typing.Any:
    """
    x[t] = values[t] + decays[t] * x[t + 1], from the last row to the first.
    """

def load_opengl() -> None:
    """
    Has MuJoCo look up OpenGL's functions, once per process, in the context that is current in this thread. Never returns if an earlier attempt, which was not made by this, broke off in the middle.
    """

def model_field_size(
    model_address: typing.SupportsInt | typing.SupportsIndex, name: str
) -> int | None:
    """
    Bytes of a field of MjModel that simulations may have their own of; None for other names.
    """

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

def render_refusal(scene: typing.Any) -> str:
    """
    Why a mujoco.MjvScene is not drawn; empty if it is.
    """

def task_struct_layouts() -> dict:
    """
    Where compiled tasks find what: offsets, dtypes and sizes by struct and name.
    """

def task_symbols() -> dict:
    """
    Addresses of the functions that compiled tasks call, by name.
    """

def write_model_field(
    model_address: typing.SupportsInt | typing.SupportsIndex, name: str, values: typing.Any
) -> None:
    """
    Writes such a field, from an array of so many bytes.
    """

MUJOCO_VERSION: str = "4.0.0"
