"""DrQ-v2: stacks of replayed pictures, shifts, what is learned by whom, mistakes, learning."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from algorithms import make, small
from torch import Tensor
from trainings import assert_equal, assert_learns, through_a_file

import pyfastenv
from pyfastenv.algorithms import drqv2, sac
from pyfastenv.nn.functional import random_shift
from pyfastenv.runs import saved
from pyfastenv.sampling.exploration import ActionBox, explore
from pyfastenv.sampling.frames import FramePool
from pyfastenv.training import collecting

SLIDER = str(Path(__file__).with_name("slider_task.py")) + ":Slider"


# ---- stored once ---------------------------------------------------------------------------------

K, E, S, CAPACITY = 2, 3, 3, 40


def new_pool(capacity: int = CAPACITY) -> FramePool:
    return FramePool(K, E, capacity, (2, 1, 1), S)


def test_stacks_are_those_of_a_slow_program_over_ends_and_a_full_ring() -> None:
    torch.manual_seed(1)
    pool, again = new_pool(), new_pool()
    shown = [[[0] * S for _ in range(E)] for _ in range(K)]  # pictures of what each shows
    known: list[list[tuple[Tensor, Tensor, list[int], list[int]]]] = [[] for _ in range(K)]
    pictures = [0] * K  # that are different
    begins = torch.ones(K, E, dtype=torch.bool)
    newest = iter(range(1, 100_000))

    def stacks() -> Tensor:  # two channels: both say which picture it is
        numbers = torch.tensor(shown).repeat_interleave(2, -1)
        numbers[..., 1::2] //= 256
        return numbers.to(torch.uint8)[..., None, None]

    for step in range(60):
        for k, e in begins.nonzero().tolist():
            shown[k][e] = [next(newest)] * S
            pictures[k] += 1
        obs, before = stacks(), [[[*one] for one in each] for each in shown]
        for k in range(K):
            for e in range(E):
                shown[k][e] = [*shown[k][e][1:], next(newest)]
                pictures[k] += 1
        ended = torch.rand(K, E) < (0.9 if 20 < step < 30 else 0.2)
        numbers, next_numbers = pool.add(obs, stacks(), ended)
        for k in range(K):
            for e in range(E):
                known[k].append((numbers[k, e], next_numbers[k, e], before[k][e], [*shown[k][e]]))
        begins = ended
        intact = pool.intact.tolist()
        for k in range(K):
            # an episode takes a picture more than it has steps, and no picture is there twice
            assert pool.state_dict()["count"][k] == pictures[k]
            assert min(len(known[k]), CAPACITY // 2 - E * (S + 1)) <= intact[k] <= len(known[k])
            for mine in known[k][-intact[k] :]:
                for at, wanted in ((mine[0], mine[2]), (mine[1], mine[3])):
                    found = pool.take(at.expand(K, 1, S))[k, 0, :, 0, 0].view(S, 2).long()
                    assert (found[:, 0] + 256 * found[:, 1]).tolist() == wanted
    again.load_state_dict(through_a_file(pool.state_dict()))
    assert_equal(again.state_dict(), pool.state_dict())


def test_a_ring_of_pictures_has_a_size_that_can_be() -> None:
    for capacity in (2 * E * (S + 1) - 1, 2**24 + 1):
        with pytest.raises(
            ValueError, match="buffer_size: expected 24 to 16,777,216 pictures, got"
        ):
            new_pool(capacity)


@pytest.mark.parametrize("going_on", range(E))
def test_the_smallest_ring_is_enough_where_episodes_end_at_every_step(going_on: int) -> None:
    pool = new_pool(2 * E * (S + 1))
    obs = torch.zeros(K, E, 2 * S, 1, 1, dtype=torch.uint8)
    ended = (torch.arange(E) != going_on).expand(K, E)
    for _ in range(40):
        pool.add(obs, obs, ended)
        assert pool.intact.min() >= E


def test_replayed_pictures_are_what_environments_have_shown() -> None:
    pixels = {"height": 17, "width": 15, "frame_stack": 2, "depth": 3.0}  # rows of 272 bytes
    kwargs = {"max_episode_steps": 7, "pixels": pixels}
    algorithm = make(
        small(
            "drqv2", env_kwargs=kwargs, num_seeds=2, num_envs=3, buffer_size=90, strides=(2, 2, 1)
        )
    )
    shown: list[tuple[Tensor, Tensor]] = []
    rows_of = algorithm.collector._rows

    def watched(new: Any) -> Tensor:
        views = algorithm.envs.obs_views
        pair = (views.of(obs.clone()).view(-1, 2, 3, 17, 15, 8) for obs in (new.obs, new.next_obs))
        shown.extend(zip(*pair, strict=True))
        rows: Tensor = rows_of(new)
        return rows

    algorithm.collector._rows = watched
    while algorithm.global_step < 150:
        algorithm.iterate()
    intact = algorithm.newest()
    assert (intact >= 60).all() and (intact < 90).all()
    ages = torch.arange(int(intact.min())).expand(2, -1)
    indices = algorithm.env_pool.indices((ages + 0.5) / intact[:, None].double(), intact)
    rows = algorithm.env_pool.take(indices)
    layout, frames = algorithm.layout, algorithm.collector.frames
    for part, numbers in enumerate((layout.obs(rows), layout.next_obs(rows))):
        found = frames.take(numbers).movedim(2, -1)  # (K, n, H, W, C), the latest first
        wanted = torch.cat([step[part].flip(1) for step in reversed(shown)], 1)
        assert torch.equal(found, wanted[:, : found.shape[1]])


# ---- shifted -------------------------------------------------------------------------------------


def test_shifts_are_those_of_a_slow_program() -> None:
    pictures = torch.randint(256, (81, 2, 6, 9), dtype=torch.uint8)
    offsets = torch.cartesian_prod(torch.arange(9), torch.arange(9))
    shifted = random_shift(pictures, offsets, 4)
    for picture, (down, right), found in zip(pictures, offsets.tolist(), shifted, strict=True):
        for y in range(6):
            for x in range(9):
                row, column = min(max(y + down - 4, 0), 5), min(max(x + right - 4, 0), 8)
                assert torch.equal(found[:, y, x], picture[:, row, column])


def test_each_shift_is_as_likely_as_any_other() -> None:
    algorithm = make(small("drqv2", shift=2))
    seen: list[Tensor] = []

    def augment(pictures: Tensor, offsets: Tensor, shift: int) -> Tensor:
        seen.append(offsets)
        return random_shift(pictures, offsets, shift)

    learner = algorithm.learner
    learner.functions = learner.functions._replace(augment=augment)
    with torch.no_grad():
        learner.encode(torch.zeros(1, 2_000, 2), torch.randn(1, 2_000, 2))
    counts = torch.bincount(seen[0].flatten(), minlength=5)
    assert len(counts) == 5 and counts.min() > 700 and counts.max() < 900  # 800 ± 25


# ---- learned -------------------------------------------------------------------------------------


def test_losses_are_those_of_plain_networks_and_the_encoder_is_the_critics() -> None:
    algorithm = make(small("drqv2", shift=0, noise=0.0, final_noise=0.0, learning_starts=60))
    algorithm.iterate()
    learner, layout = algorithm.learner, algorithm.layout
    learner.options = drqv2.spec.replace(learner.options, target_noise=0.0)
    ((rows,), (noise,)) = algorithm.draw(1)
    (encoder,), (actor,) = learner.encoder.networks, learner.actor.networks
    critics, targets = learner.critic.networks, learner.target_critic.networks
    with torch.no_grad():
        obs, next_obs = (
            encoder(algorithm.collector.frames.take(part)[0])
            for part in (layout.obs(rows), layout.next_obs(rows))
        )
        following = torch.cat((next_obs, actor(next_obs).tanh()), 1)
        value = torch.stack([target(following)[:, 0] for target in targets]).amin(0)
        goal = layout.rewards(rows)[0] + 0.99 * layout.continues(rows)[0] * value
        taken = torch.cat((obs, rows[0, :, 2:3]), 1)
        errors = [(critic(taken)[:, 0] - goal).square().mean() for critic in critics]
    metrics = torch.zeros(2, 1)

    def copies() -> list[Tensor]:
        modules = (learner.encoder, learner.critic, learner.actor, learner.target_critic)
        return [torch.nn.utils.parameters_to_vector(each.parameters()).clone() for each in modules]

    start = copies()
    learner.critic_optimizer.lr = 0.0
    learner.update(rows, noise, metrics)
    torch.testing.assert_close(metrics[0, 0], errors[0] + errors[1])
    with torch.no_grad():  # by critics that have not moved, for a policy that had not
        learner.actor.networks[0].load_state_dict(actor.state_dict())
    first = copies()
    moved = [not torch.equal(a, b) for a, b in zip(start, first, strict=True)]
    assert moved == [False, False, True, False]
    learner.critic_optimizer.lr, learner.policy_optimizer.lr = 1e-3, 0.0
    learner.update(rows, noise, metrics)
    moved = [not torch.equal(a, b) for a, b in zip(first, copies(), strict=True)]
    assert moved == [True, True, False, True]
    with torch.no_grad():
        chosen = torch.cat((obs, actor(obs).tanh()), 1)
        value = torch.stack([critic(chosen)[:, 0] for critic in critics]).amin(0)
    torch.testing.assert_close(metrics[1, 0], -value.mean())


def test_exploring_holds_the_pictures_of_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []

    def counted(envs: Any, actions: Any, num_steps: int, draw: Any) -> Any:
        held.append(num_steps)
        return explore(envs, actions, num_steps, draw)

    monkeypatch.setattr(collecting, "explore", counted)
    states = []
    for most in (collecting._EXPLORE, 10**6):
        monkeypatch.setattr(collecting, "_EXPLORE", most)
        algorithm = make(small("drqv2", learning_starts=140, n_step=3))
        algorithm.iterate()
        states.append(through_a_file(algorithm.state_dict()))
    assert held == [50, 20, 70]
    assert_equal(*states)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exploring_keeps_what_a_later_step_overwrites(dtype: str) -> None:
    def explored(copy: bool) -> list[torch.Tensor]:
        envs = pyfastenv.make_vec(
            "Hopper-v5", 3, autoreset_mode="SameStep", obs_dtype=dtype, copy=copy
        )
        envs.reset(seed=0)
        generator = torch.Generator().manual_seed(0)
        box = ActionBox(envs.single_action_space)
        return list(explore(envs, box, 20, lambda: torch.rand(3, 3, generator=generator)))

    for kept, overwritten in zip(explored(True), explored(False), strict=True):
        assert torch.equal(kept, overwritten)


def test_noise_falls_along_a_line() -> None:
    config = small("drqv2", noise=1.0, final_noise=0.2, noise_steps=100)
    assert [config.noise_at(step) for step in (0, 50, 100, 10**6)] == pytest.approx(
        [1, 0.6, 0.2, 0.2]
    )
    algorithm = make(config)
    while algorithm.global_step < 70:
        algorithm.iterate()
    assert algorithm.learner.options.target_noise == config.noise_at(algorithm.global_step - 2)


def test_it_learns() -> None:
    camera = {"lookat": (0.0, 0.0, 0.0), "distance": 3.0, "azimuth": 90, "elevation": 0}
    pixels = {"height": 16, "width": 16, "frame_stack": 2, "camera": camera, "samples": 1}
    options = {
        "num_envs": 4, "total_steps": 3_000, "learning_starts": 200, "buffer_size": 4_000,
        "log_every": 40, "learning_rate": 2e-3, "gamma": 0.8, "noise_steps": 600, "channels": 8,
        "strides": (2, 2, 1), "updates_per_step": 0.5,
    }  # fmt: skip
    config = small("drqv2", env_id=SLIDER, env_kwargs={"pixels": pixels}, **options)
    # a policy that has not learned slides out of sight; 12 is the middle from the first step on
    assert_learns(make(config), 4, first=8.0, last=10.0)


# ---- mistakes ------------------------------------------------------------------------------------

PIXELS = {"height": 16, "width": 16}


@pytest.mark.parametrize(
    ("env_kwargs", "message"),
    [
        ({}, "pixels: drqv2 learns from pictures; expected their size, .*got None"),
        ({"pixels": {"height": 4, "width": 40}}, "pixels: expected pictures of which .*height 4"),
        ({"pixels": {**PIXELS, "channels": "first"}}, "channels: drqv2 expected 'last', got 'firs"),
        ({"pixels": {**PIXELS, "with_state": True}}, "with_state: drqv2 expected False, got True"),
        ({"pixels": {**PIXELS, "render_every": 2}}, "render_every: drqv2 expected 1, got 2"),
        ({"pixels": {**PIXELS, "frame_stack": 90}}, "buffer_size: expected 364 to .*got 150"),
    ],
)
def test_what_cannot_be_learned_from_is_said(
    env_kwargs: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        drqv2.train(small("drqv2", env_kwargs=env_kwargs, run_dir=tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_who_learns_from_numbers_takes_no_pictures() -> None:
    with pytest.raises(ValueError, match=r"pixels: sac learns from numbers; .*drqv2 learns from"):
        sac.train(small("sac", env_id="Hopper-v5", env_kwargs={"pixels": PIXELS}))


def test_a_saved_policy_draws_as_at_its_step(tmp_path: Path) -> None:
    config = small("drqv2", run_dir=tmp_path / "run", total_steps=80, noise_steps=100)
    drqv2.train(config)
    policy = saved.load_policy(tmp_path / "run")
    assert policy.policy[0].noise == config.noise_at(policy.step) < config.noise


def test_a_saved_policy_takes_the_pictures_that_environments_show(tmp_path: Path) -> None:
    drqv2.train(small("drqv2", run_dir=tmp_path / "run", total_steps=80))
    policy = saved.load_policy(tmp_path / "run")
    envs = policy.make_envs(3)
    obs, _ = envs.reset(seed=1)
    actions = policy.act(obs)
    assert actions.shape == (3, 1) and math.isclose(
        policy.act(obs[1])[0], actions[1, 0], rel_tol=1e-4
    )
    with pytest.raises(
        ValueError, match=r"obs: expected \(16, 16, 6\) or \(B, 16, 16, 6\), got \(3,"
    ):
        policy.act(obs.reshape(3, -1))
    envs.close()
