"""MyoSuite as own tasks: its numbers from the first reset on, and its ids."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import gymnasium
import numpy as np
import pytest
from myosuite_suite import NAMES, compare, mend

import pyfastenv
from pyfastenv.suites import myosuite_ids
from pyfastenv.suites.myosuite.reorient import HandReorientOOD, thing_sizes

if find_spec("myosuite") is None:  # importing it takes what mend stands in for
    pytest.skip("myosuite is not installed", allow_module_level=True)

# a motor and a weight beside muscles; tiredness; a moved tendon; things of many kinds; forces, and
# ground of one's own; a thing that is tracked
FEW = [
    "myoElbowPose1D6MExoRandom-v0",
    "myoFatiHandReachRandom-v0",
    "myoReafHandPenTwirlRandom-v0",
    "myoFatiHandReorientOOD-v0",
    "myoSarcLegRoughTerrainWalk-v0",
    "MyoHandCupDrink-v0",
]


@pytest.mark.parametrize("name", FEW)
def test_equals_myosuite(name: str) -> None:
    counted = compare(name, 80, length=25)
    assert counted["numbers"] > 1_000
    assert counted["episodes"] >= 4


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", NAMES)
def test_equals_myosuite_for_1_000_steps(name: str) -> None:
    assert compare(name, 1_000, seed=2)["episodes"] >= 10


def test_ids_are_myosuites() -> None:
    mend()
    for env_id, arguments in myosuite_ids().items():
        spec: Any = gymnasium.registry[env_id.partition("/")[2]]
        assert spec.max_episode_steps == arguments["max_episode_steps"], env_id
        condition = arguments.get("condition", "")
        assert spec.kwargs.get("muscle_condition", "") == condition, env_id
    theirs = [name for name in gymnasium.registry if name.startswith(("myo", "motor", "MyoHand"))]
    apart = {name for name in theirs if name not in NAMES and "/" not in name}
    assert all("Challenge" in name for name in apart), apart


def test_things_to_reorient_are_of_all_kinds_and_sizes() -> None:
    counts = {"Geometries8EnvV0": 2, "Geometries100EnvV0": 25, "OutofDistribution": 250}
    assert [thing_sizes(name).shape for name in counts] == [(4, n, 3) for n in counts.values()]
    env: Any = pyfastenv.debug(HandReorientOOD)
    model, seen = env.unwrapped.task.model, set()
    for seed in range(40):
        env.reset(seed=seed)
        geoms = [model.geom(name) for name in ("obj", "target")]
        assert geoms[0].type == geoms[1].type
        np.testing.assert_array_equal(geoms[0].size, geoms[1].size)
        seen.add((int(geoms[0].type[0]), *geoms[0].size))
    assert {kind for kind, *_ in seen} == {3, 4, 5, 6}
    assert len(seen) > 30
    with pytest.raises(ImportError, match="has no sizes of Stones: pip install --no-deps myosuite"):
        thing_sizes("Stones")


def test_a_target_may_be_given() -> None:
    place = (0.2, 0.0, 0.2)
    envs = pyfastenv.make_vec(
        "myosuite/myoFingerReachRandom-v0", 3, target_low=place, target_high=place
    )
    obs, _ = envs.reset(seed=0)
    tip, error = (obs[:, envs.observation_groups[name]] for name in ("tip_pos", "reach_err"))
    np.testing.assert_allclose(tip + error, np.broadcast_to(place, (3, 3)), rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        (
            "myoHandPoseRandom",
            {"condition": "gout"},
            "condition: expected one of '', 'sarcopenia',",
        ),
        ("myoLegWalk", {"condition": "reafferentation"}, "there is no EIP here"),
        ("myoHandPose3Fixed", {"numeral": 10}, "numeral: expected -1 to 9, got 10"),
    ],
)
def test_wrong_arguments_are_named(name: str, arguments: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        pyfastenv.make_vec(f"myosuite/{name}-v0", 2, **arguments)
