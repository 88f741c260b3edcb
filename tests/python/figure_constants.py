"""Figures in README and docs that nobody measured: test_figures.py asks for no source."""

from __future__ import annotations

# Sizes, settings, versions, other people's; by page. A heading stands for all that is below it.
CONSTANTS: dict[str, list[str]] = {
    "README.md": [
        "PPO that reaches a return of 2,000",
        "20,000 random models: `make fuzz-lanes`",
        "Python ≥ 3.11",
        "8, 64 and 1,024 environments",
        "take 14.4 s per step?",
        "the rate of 32,000 environments",
    ],
    "docs/architecture.md": [
        "a row is 0.7 KB (HalfCheetah) to 1.6 KB",
        "MuJoCo 4.0 has",
        "about 10 µs of work at a time",
        "With 64 threads nothing is done 64 times",
        "Idle helpers spin for 40 µs",
        "(before 3.14)",
        "a segment of 0.05 to 16 ms",
        "within a segment (16 ms)",
        "gymnasium 1.0 removed",
    ],
    "docs/async.md": ["32,000 HalfCheetahs and hidden layers of 256 x 256"],
    "docs/lanes.md": [
        "whose error up to 0.85",
        "a plan tries 8,000",
        "less than 2 MiB of `<size memory>` (6 MiB with",
        "by more than 1.75 rad",
        "40,000 substeps of each of the 37",
        "on 10,000 states per robot, 100,000 substeps per robot",
        "but 7 in 20,000 of each",
        "of 20,000 substeps each no bit differed",
        # tests/lanes/self_check_test.cc, csrc/core/engine_choice.h
        "whenever a plan is made, 10 to 30 ms",
        "robot of gymnasium's takes 10 to 30 ms",
        "0x1.8p+0 (1.5) in lanes",
        "take 0.4 % of the time: a trial every 8,000 group steps",
        "fast, every 46,000 where it is 45 times",
        "if the other way is faster by 3 %",
        "Each is rolled out 16 times for 300 steps",
        "HumanoidStandup alone, 1.7 % of whose steps",
    ],
    # bench/python/scaling.py writes the tables
    "docs/scaling.md": [
        "# Many cores, on paper",
        "## What was measured",
        "## The model",
        "## `step`",
        "## `rollout` of 128 steps",
    ],
    "docs/flashsac.md": [
        "# FlashSAC",
        "## Published returns",
        # whole trainings by hand: 120 and 400 gradient steps, two rounds (the matrix unit off: one)
        "are 1.6 times as fast as PyTorch in bfloat16",
        "2.6 to 3.8 times with half the widths",
        "they are 1.15 and 1.5 times as fast",
        "so long that 300,000 of them",
        "after 130,000 steps | after 300,000 steps",
        "after 100,000 steps it has",
        "further than those of 64",
        "where minibatches of 64 learn",
        # bench/python/published.toml
        "| 512 | | 11,481 (theirs)",
        "| 512 | | 3,674 (theirs)",
        "| 512 | | 6,050 (theirs)",
    ],
    "docs/sac.md": [
        # bench/python/published.toml
        "12,139 ± 1,049 over ten seeds",
        "Tianshou has 3,542 ± 51",
        "Tianshou has 5,007 ± 252",
        "Tianshou has 5,850 ± 476 for Ant and 5,489 ± 81 for Humanoid",
        "which give 5 each",
        "a rate of 1e-3, a temperature of 0.2",
    ],
    # release/matrix.py writes the tables
    "docs/versions.md": ["# Versions of MuJoCo", "## Wheels", "## What was tried"],
    "docs/performance.md": [
        "| share of the physics limit | 8 environments | 64 | 1,024 | 32,000 |",
        "seconds to a return of 2,000",
        "3,000 Hopper steps of 20 updates each",
    ],
    "docs/integrations.md": [
        "dm_env (1.6)",
        "gymnasium 0.29's",
        "gymnasium 0.29 has",
        "gymnasium** 1.4's",
        "gymnasium 1.0 dropped",
        "gymnasium's vector wrappers (1.4.0)",
    ],
    "docs/mbpo.md": [
        "## The algorithm",
        "### With the coupled flow",
        "## Presets",
        "## What is different from the public programs, and why",
        "35,000 steps here are 30,000 of it",
        "about 3,100 is reported on Hopper at 75,000 steps",
        "At the usual discount of 0.99 MBPO's Hopper",
        "with a reward of 3.5 is worth 350",
        "0.995 looks twice as far",
        "(a friction of 0.9); v5's has 1.9. Here are",
        "(of one seed but for the preset) within 5,000 steps",
        "| around step | 40,000 | 60,000 | 80,000 | 100,000 |",
        "| the authors | 629 | 1,502 | 2,323 | 3,502 |",  # bench/python/published.toml
        "minibatches of 256, a discount of 0.99",
        "rises to 0.995 from 53,300 to 61,300",  # the cases' options
        "rises from 25,000 to 45,000",
        "above the curve until 85,000 steps",
        "François-Lavet et al. (2015, [1512.02011](https://arxiv.org/abs/1512.02011))",
    ],
    # the authors' settings and returns
    "docs/rollout.md": ["## Policies", "64×64 policy", "for 50 µs to 16 ms at a time"],
    "docs/physics.md": ["| robot | rollouts |", "two threads each", "has 50 steps"],
    "docs/experiments.md": [
        "160 and 32,000 HalfCheetahDir",
        "take 14 s per step",
        "the interval (90 %)",
    ],
    "docs/howto/deploy.md": ["on 1,000 observations"],
    "docs/suites.md": ["0.4 m/s by default"],
    "docs/training.md": [
        "in 20,000 steps",
        "buffer 10,000, σ 0.01",
        "at each of 1,000 steps",
        "1,000 steps on their own",
        "mean distance of gradients below 0.05",
    ],
    "docs/ten_minutes.md": ["## The walk"],
    "docs/start.md": ["Python 3.11 or later"],
    "docs/staging.md": ["of 1.1 GiB takes 2", "under way, 10 s at most"],
}
