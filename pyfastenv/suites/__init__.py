"""Suites: other packages' environments, each the few lines that it is, as own tasks.

    envs = pyfastenv.make_vec("CheetahRun-v1", num_envs=64)

Their models come from these packages, or others: ``pip install 'pyfastenv[dm-control]'``,
``[robotics]``, ``[playground]``, ``[metaworld]``, ``[myosuite]``, and mjlab without what it asks
for. Importing this module imports none of them: it holds the ids, and registers them.
"""

from __future__ import annotations

from typing import Any

from gymnasium.envs.registration import register, registry

# dm_control's domains and their tasks
_DOMAINS = {
    "acrobot": "swingup swingup_sparse",
    "ball_in_cup": "catch",
    "cartpole": "balance balance_sparse swingup swingup_sparse two_poles three_poles",
    "cheetah": "run",
    "dog": "stand walk trot run fetch",
    "finger": "spin turn_easy turn_hard",
    "fish": "upright swim",
    "hopper": "stand hop",
    "humanoid": "stand walk run run_pure_state",
    "humanoid_CMU": "stand walk run",
    "lqr": "lqr_2_1 lqr_6_2",
    "manipulator": "bring_ball bring_peg insert_ball insert_peg",
    "pendulum": "swingup",
    "point_mass": "easy hard",
    "quadruped": "walk run escape fetch",
    "reacher": "easy hard",
    "stacker": "stack_2 stack_4",
    "swimmer": "swimmer6 swimmer15",
    "walker": "stand walk run",
}


def camel(*names: str) -> str:
    """``"BallInCupCatch"`` of ball_in_cup and catch."""
    parts = "_".join(names).split("_")
    return "".join(part[:1].upper() + part[1:] for part in parts)


# id -> dm_control's domain and task. The class stands in pyfastenv.suites.dm_control, in the
# domain's file, and is named as the id is.
DM_CONTROL = {
    f"{camel(domain, task)}-v1": (domain, task)
    for domain, tasks in _DOMAINS.items()
    for task in tasks.split()
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
    fetch = ("FetchReach", "FetchPush", "FetchSlide", "FetchPickAndPlace")
    adroit = ("AdroitHandDoor", "AdroitHandHammer", "AdroitHandPen", "AdroitHandRelocate")
    for names, file, limit, dense_by_end in (
        (fetch, "fetch", 50, {"-v4": False, "Dense-v4": True}),
        (adroit, "adroit", 200, {"-v1": True, "Sparse-v1": False}),
    ):
        for name in names:
            for end, dense in dense_by_end.items():
                about = {"max_episode_steps": limit, "dense": dense}
                found[f"{name}{end}"] = {"task": f"{place}.{file}:{name}", **about}
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
    "BerkeleyHumanoidWalk-v0": ("pyfastenv.suites.robots.bipeds:BerkeleyHumanoidWalk", 1000),
    "G1Walk-v0": ("pyfastenv.suites.robots.bipeds:G1Walk", 1000),
    "Go1Trot-v0": ("pyfastenv.suites.robots.go1:Go1Trot", 1000),
    "SmallHumanoid-v0": ("pyfastenv.suites.robots.humanoid:SmallHumanoid", 1000),
    "T1Walk-v0": ("pyfastenv.suites.robots.bipeds:T1Walk", 1000),
}

# robots of Playground's on ground of our own, likewise
ON_OUR_GROUND = {"Go1RoughTerrain-v0": ("pyfastenv.suites.robots.go1_rough:Go1RoughTerrain", 1000)}


# MuJoCo Playground's, by EnvPool's ids: the file in which the class stands, and where its episodes
# are truncated
PLAYGROUND = {
    "Go1JoystickFlatTerrain-v1": ("go1", 1000),
    "Go1JoystickRoughTerrain-v1": ("go1", 1000),
    "BerkeleyHumanoidJoystickFlatTerrain-v1": ("bipeds", 1000),
    "BerkeleyHumanoidJoystickRoughTerrain-v1": ("bipeds", 1000),
    "G1JoystickFlatTerrain-v1": ("bipeds", 1000),
    "G1JoystickRoughTerrain-v1": ("bipeds", 1000),
    "T1JoystickFlatTerrain-v1": ("bipeds", 1000),
    "T1JoystickRoughTerrain-v1": ("bipeds", 1000),
    "ApolloJoystickFlatTerrain-v1": ("apollo", 1000),
    "Go1Getup-v1": ("getup", 300),
    "Go1Handstand-v1": ("handstand", 500),
    "Go1Footstand-v1": ("handstand", 500),
    "H1InplaceGaitTracking-v1": ("gaits", 1000),
    "H1JoystickGaitTracking-v1": ("gaits", 1000),
    "SpotFlatTerrainJoystick-v1": ("spot", 1000),
    "SpotGetup-v1": ("getup", 300),
    "SpotJoystickGaitTracking-v1": ("gaits", 1000),
    "BarkourJoystick-v1": ("histories", 1000),
    "Op3Joystick-v1": ("histories", 1000),
    "PandaPickCube-v1": ("panda", 150),
    "PandaPickCubeOrientation-v1": ("panda", 150),
    "PandaPickCubeCartesian-v1": ("panda", 200),
    "PandaOpenCabinet-v1": ("panda", 150),
    "PandaRobotiqPushCube-v1": ("robotiq", 3000),
    "AlohaHandOver-v1": ("aloha", 250),
    "AlohaSinglePegInsertion-v1": ("aloha", 1000),
    "LeapCubeRotateZAxis-v1": ("hands", 500),
    "LeapCubeReorient-v1": ("hands", 1000),
    "AeroCubeRotateZAxis-v1": ("hands", 500),
}

# mjlab's, by its names: the file and the class, and where its episodes are truncated
MJLAB = {
    "Mjlab-Velocity-Flat-Unitree-Go1": ("velocity:VelocityFlatGo1", 1000),
    "Mjlab-Velocity-Flat-Unitree-G1": ("velocity:VelocityFlatG1", 1000),
    "Mjlab-Velocity-Rough-Unitree-Go1": ("rough:VelocityRoughGo1", 1000),
    "Mjlab-Velocity-Rough-Unitree-G1": ("rough:VelocityRoughG1", 1000),
    "Mjlab-Tracking-Flat-Unitree-G1": ("tracking:TrackingFlatG1", 500),
    "Mjlab-Tracking-Flat-Unitree-G1-No-State-Estimation": (
        "tracking:TrackingFlatG1NoStateEstimation",
        500,
    ),
}


# MetaWorld's tasks by the files in which they stand; by their names: the file and the class
_METAWORLD = {
    "reach": "reach reach-wall",
    "push": "push push-wall push-back pick-place pick-place-wall hand-insert",
    "sweep": "sweep sweep-into soccer",
    "buttons": "button-press button-press-topdown button-press-topdown-wall button-press-wall "
    "coffee-button",
    "doors": "door-close door-lock door-open door-unlock",
    "drawers": "drawer-close drawer-open window-close window-open",
    "handles": "handle-press handle-press-side handle-pull handle-pull-side faucet-open "
    "faucet-close lever-pull dial-turn",
    "plates": "plate-slide plate-slide-side plate-slide-back plate-slide-back-side",
    "bins": "bin-picking pick-out-of-hole shelf-place basketball box-close peg-insert-side "
    "peg-unplug-side",
    "tools": "hammer assembly disassemble stick-push stick-pull coffee-pull coffee-push",
}
METAWORLD = {
    f"{name}-v3": f"{file}:{camel(*name.split('-'))}"
    for file, names in _METAWORLD.items()
    for name in names.split()
}


# MyoSuite's, by the files in which they stand and where their episodes are truncated
_MYOSUITE = {
    ("pose", 100): "ElbowPose1D6MFixed ElbowPose1D6MRandom ElbowPose1D6MExoFixed "
    "ElbowPose1D6MExoRandom FingerPoseFixed FingerPoseRandom HandPoseFixed HandPoseRandom",
    ("pose", 200): "MotorFingerPoseFixed MotorFingerPoseRandom TorsoPoseFixed TorsoExoPoseFixed",
    ("reach", 100): "FingerReachFixed FingerReachRandom HandReachFixed HandReachRandom",
    ("reach", 150): "ArmReachFixed ArmReachRandom",
    ("reach", 200): "MotorFingerReachFixed MotorFingerReachRandom",
    ("hand", 200): "HandKeyTurnFixed HandKeyTurnRandom",
    ("hand", 75): "HandObjHoldFixed HandObjHoldRandom",
    ("hand", 50): "HandPenTwirlFixed HandPenTwirlRandom",
    ("reorient", 50): "HandReorient8 HandReorient100 HandReorientID HandReorientOOD",
    ("legs", 150): "LegStandRandom",
    ("legs", 1000): "LegWalk LegHillyTerrainWalk LegStairTerrainWalk LegRoughTerrainWalk",
}

# MyoDex's things, and the motions that were recorded of each
_THINGS = """
    airplane fly1 lift pass1, alarmclock lift see1 pass1, apple lift pass1, banana pass1,
    binoculars pass1, bowl drink2 pass1, camera pass1, coffeemug, cubelarge pass1,
    cubemedium inspect1, cubesmall pass1 lift, cup drink1 pass1 pour1, cylinderlarge inspect1,
    cylindermedium lift pass1, cylindersmall inspect1 pass1, duck inspect1 lift pass1,
    elephant lift pass1, eyeglasses pass1, flashlight lift on1 on2 pass1, flute pass1,
    gamecontroller pass1, hammer use1 pass1, hand inspect1, headphones pass1, knife chop1,
    lightbulb pass1, mouse lift use1 pass1, mug drink3 lift pass1, phone lift,
    piggybank use1 pass1, pyramidlarge pass1, pyramidmedium pass1, pyramidsmall inspect1,
    scissors use1, spherelarge pass1, spheremedium lift inspect1,
    spheresmall inspect1 lift pass1, stamp stamp1 lift, stanfordbunny inspect1 pass1,
    stapler lift staple1 staple2, teapot pour2, toothbrush brush1 lift,
    toothpaste lift squeeze1, toruslarge inspect1 lift, torusmedium lift pass1,
    torussmall lift pass1, train play1, watch lift pass1, waterbottle shake1 lift pass1,
    wineglass drink2 lift toast1 pass1
"""
_MYODEX = {thing: motions for thing, *motions in map(str.split, _THINGS.split(","))}
# those whose ids are not the thing and the motion without its 1
_MYODEX_IDS = {
    "cubemedium_inspect1": "CubemediumLInspect",
    "flashlight_on1": "Flashlight1On",
    "flashlight_on2": "Flashlight2On",
    "stapler_staple1": "StaplerStaple1",
    "toothbrush_brush1": "ToothbrushBrush1",
    "toothpaste_squeeze1": "ToothpasteSqueeze1",
    "wineglass_toast1": "WineglassToast1",
}


def _myodex_ids() -> dict[str, dict[str, Any]]:
    place = "pyfastenv.suites.myosuite.track"
    found: dict[str, dict[str, Any]] = {}
    for thing, motions in _MYODEX.items():
        for kind in ("Fixed", "Random"):
            found[f"myosuite/MyoHand{thing.title()}{kind}-v0"] = {
                "task": f"{place}:{kind}",
                "max_episode_steps": 50,
                "thing": thing,
            }
        for name in (f"{thing}_{motion}" for motion in motions):
            word = _MYODEX_IDS.get(name, name.removesuffix("1").title().replace("_", ""))
            found[f"myosuite/MyoHand{word}-v0"] = {
                "task": f"{place}:Motion",
                "max_episode_steps": 75,
                # MyoSuite passes a wine glass along the piggy bank's motion
                "thing": "wineglass" if name == "piggybank_pass1" else thing,
                "motion": name,
            }
    return found


def myosuite_ids() -> dict[str, dict[str, Any]]:
    """As :func:`tasks`, MyoSuite's ids: tasks, and variants of those with muscles."""
    found: dict[str, dict[str, Any]] = {}
    for (file, limit), names in _MYOSUITE.items():
        for name in names.split():
            task = {
                "task": f"pyfastenv.suites.myosuite.{file}:{name}",
                "max_episode_steps": limit,
            }
            if name.startswith("Motor"):
                found[f"myosuite/motor{name[5:]}-v0"] = task
                continue
            signs: dict[str, dict[str, Any]] = {name: {}}
            if name == "HandPoseFixed":
                signs |= {f"HandPose{i}Fixed": {"numeral": i} for i in range(10)}
            conditions = {"": "", "Sarc": "sarcopenia", "Fati": "fatigue"}
            if name.startswith("Hand"):
                conditions["Reaf"] = "reafferentation"
            for short, condition in conditions.items():
                for sign, arguments in signs.items():
                    variant = {"condition": condition} if condition else {}
                    found[f"myosuite/myo{short}{sign}-v0"] = task | arguments | variant
    return found | _myodex_ids()


def tasks() -> dict[str, dict[str, Any]]:
    """Every suite's ids; where its ``"task"`` stands, as ``"module:Class"``, and its arguments.

    ``"max_episode_steps"`` is the class's own, which the registry has to know without importing it.
    """
    places = {**ROBOTS, **ON_OUR_GROUND} | {
        env_id: (
            f"pyfastenv.suites.dm_control.{domain.lower()}:{env_id.partition('-')[0]}",
            None if domain == "lqr" else 1000,
        )
        for env_id, (domain, _) in DM_CONTROL.items()
    }
    places |= {
        env_id: (f"pyfastenv.suites.playground.{file}:{env_id.partition('-')[0]}", limit)
        for env_id, (file, limit) in PLAYGROUND.items()
    }
    places |= {
        env_id: (f"pyfastenv.suites.mjlab.{place}", limit)
        for env_id, (place, limit) in MJLAB.items()
    }
    places |= {
        f"metaworld/{name}": (f"pyfastenv.suites.metaworld.{place}", 500)
        for name, place in METAWORLD.items()
    }
    own = {
        env_id: {"task": place, "max_episode_steps": limit}
        for env_id, (place, limit) in places.items()
    }
    return own | robotics_ids() | myosuite_ids()


def register_suites() -> None:
    """Registers ``pyfastenv/CheetahRun-v1`` and the others in gymnasium's registry."""
    for name, arguments in tasks().items():
        env_id = name if "/" in name else f"pyfastenv/{name}"
        if env_id not in registry:
            register(
                id=env_id,
                entry_point="pyfastenv.tasks.pool.env:TaskEnv",
                vector_entry_point="pyfastenv.tasks.pool.vector_env:TaskVectorEnv",
                max_episode_steps=arguments.pop("max_episode_steps"),
                kwargs=arguments,
            )
