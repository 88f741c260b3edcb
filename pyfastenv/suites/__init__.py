"""Suites: other packages' environments, each the few lines that it is, as own tasks.

    envs = pyfastenv.make_vec("CheetahRun-v1", num_envs=64)

Their models come from these packages: ``pip install 'pyfastenv[dm-control]'`` or
``'pyfastenv[robotics]'``. Importing this module imports none of them: it holds the ids, and
registers them.
"""

from __future__ import annotations

from typing import Any

from gymnasium.envs.registration import register, registry

# id -> dm_control's domain and task. The class stands in pyfastenv.suites.dm_control, in the
# domain's file, and is named as the id is.
DM_CONTROL = {
    "AcrobotSwingup-v1": ("acrobot", "swingup"),
    "AcrobotSwingupSparse-v1": ("acrobot", "swingup_sparse"),
    "BallInCupCatch-v1": ("ball_in_cup", "catch"),
    "CartpoleBalance-v1": ("cartpole", "balance"),
    "CartpoleBalanceSparse-v1": ("cartpole", "balance_sparse"),
    "CartpoleSwingup-v1": ("cartpole", "swingup"),
    "CartpoleSwingupSparse-v1": ("cartpole", "swingup_sparse"),
    "CartpoleTwoPoles-v1": ("cartpole", "two_poles"),
    "CartpoleThreePoles-v1": ("cartpole", "three_poles"),
    "CheetahRun-v1": ("cheetah", "run"),
    "DogStand-v1": ("dog", "stand"),
    "DogWalk-v1": ("dog", "walk"),
    "DogTrot-v1": ("dog", "trot"),
    "DogRun-v1": ("dog", "run"),
    "DogFetch-v1": ("dog", "fetch"),
    "FingerSpin-v1": ("finger", "spin"),
    "FingerTurnEasy-v1": ("finger", "turn_easy"),
    "FingerTurnHard-v1": ("finger", "turn_hard"),
    "FishUpright-v1": ("fish", "upright"),
    "FishSwim-v1": ("fish", "swim"),
    "HopperStand-v1": ("hopper", "stand"),
    "HopperHop-v1": ("hopper", "hop"),
    "HumanoidStand-v1": ("humanoid", "stand"),
    "HumanoidWalk-v1": ("humanoid", "walk"),
    "HumanoidRun-v1": ("humanoid", "run"),
    "HumanoidRunPureState-v1": ("humanoid", "run_pure_state"),
    "HumanoidCMUStand-v1": ("humanoid_CMU", "stand"),
    "HumanoidCMUWalk-v1": ("humanoid_CMU", "walk"),
    "HumanoidCMURun-v1": ("humanoid_CMU", "run"),
    "LqrLqr21-v1": ("lqr", "lqr_2_1"),
    "LqrLqr62-v1": ("lqr", "lqr_6_2"),
    "ManipulatorBringBall-v1": ("manipulator", "bring_ball"),
    "ManipulatorBringPeg-v1": ("manipulator", "bring_peg"),
    "ManipulatorInsertBall-v1": ("manipulator", "insert_ball"),
    "ManipulatorInsertPeg-v1": ("manipulator", "insert_peg"),
    "PendulumSwingup-v1": ("pendulum", "swingup"),
    "PointMassEasy-v1": ("point_mass", "easy"),
    "PointMassHard-v1": ("point_mass", "hard"),
    "QuadrupedWalk-v1": ("quadruped", "walk"),
    "QuadrupedRun-v1": ("quadruped", "run"),
    "QuadrupedEscape-v1": ("quadruped", "escape"),
    "QuadrupedFetch-v1": ("quadruped", "fetch"),
    "ReacherEasy-v1": ("reacher", "easy"),
    "ReacherHard-v1": ("reacher", "hard"),
    "StackerStack2-v1": ("stacker", "stack_2"),
    "StackerStack4-v1": ("stacker", "stack_4"),
    "SwimmerSwimmer6-v1": ("swimmer", "swimmer6"),
    "SwimmerSwimmer15-v1": ("swimmer", "swimmer15"),
    "WalkerStand-v1": ("walker", "stand"),
    "WalkerWalk-v1": ("walker", "walk"),
    "WalkerRun-v1": ("walker", "run"),
}


# gymnasium-robotics' mazes, and where their episodes are truncated: PointMaze's, AntMaze's
MAZES = {
    "UMaze": (300, 700),
    "Open": (300, 700),
    "Open_Diverse_G": (300, 700),
    "Open_Diverse_GR": (300, 700),
    "Medium": (600, 1000),
    "Medium_Diverse_G": (600, 1000),
    "Medium_Diverse_GR": (600, 1000),
    "Large": (800, 1000),
    "Large_Diverse_G": (800, 1000),
    "Large_Diverse_GR": (800, 1000),
}


def robotics_ids() -> dict[str, dict[str, Any]]:
    """As :func:`tasks`, gymnasium-robotics' ids."""
    place = "pyfastenv.suites.robotics"
    found: dict[str, dict[str, Any]] = {}
    for name in ("FetchReach", "FetchPush", "FetchSlide", "FetchPickAndPlace"):
        for suffix, dense in (("", False), ("Dense", True)):
            found[f"{name}{suffix}-v4"] = {
                "task": f"{place}.fetch:{name}",
                "max_episode_steps": 50,
                "dense": dense,
            }
    for name in ("AdroitHandDoor", "AdroitHandHammer", "AdroitHandPen", "AdroitHandRelocate"):
        for suffix, dense in (("", True), ("Sparse", False)):
            found[f"{name}{suffix}-v1"] = {
                "task": f"{place}.adroit:{name}",
                "max_episode_steps": 200,
                "dense": dense,
            }
    for i, (name, version) in enumerate((("PointMaze", 3), ("AntMaze", 5))):
        for maze, limits in MAZES.items():
            for suffix, dense in (("", False), ("Dense", True)):
                found[f"{name}_{maze}{suffix}-v{version}"] = {
                    "task": f"{place}.maze:{name}",
                    "max_episode_steps": limits[i],
                    "maze": maze,
                    "dense": dense,
                }
    return found


# robots of our own: the task, and where its episodes are truncated
ROBOTS = {
    "RoughQuadruped-v0": ("pyfastenv.suites.robots.quadruped:RoughQuadruped", 750),
    "SmallHumanoid-v0": ("pyfastenv.suites.robots.humanoid:SmallHumanoid", 1000),
}


def tasks() -> dict[str, dict[str, Any]]:
    """Every suite's ids; where its ``"task"`` stands, as ``"module:Class"``, and its arguments.

    ``"max_episode_steps"`` is the class's own, which the registry has to know without importing it.
    """
    places = ROBOTS | {
        env_id: (
            f"pyfastenv.suites.dm_control.{domain.lower()}:{env_id.partition('-')[0]}",
            None if domain == "lqr" else 1000,
        )
        for env_id, (domain, _) in DM_CONTROL.items()
    }
    own = {
        env_id: {"task": place, "max_episode_steps": limit}
        for env_id, (place, limit) in places.items()
    }
    return own | robotics_ids()


def register_suites() -> None:
    """Registers ``pyfastenv/CheetahRun-v1`` and the others in gymnasium's registry."""
    for env_id, arguments in tasks().items():
        if f"pyfastenv/{env_id}" not in registry:
            register(
                id=f"pyfastenv/{env_id}",
                entry_point="pyfastenv.tasks.env:TaskEnv",
                vector_entry_point="pyfastenv.tasks.vector_env:TaskVectorEnv",
                max_episode_steps=arguments.pop("max_episode_steps"),
                kwargs=arguments,
            )
