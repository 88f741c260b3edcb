"""A task that is written for a model passes check, trains, and is never written over."""

from pathlib import Path

import pytest
from algorithms import small

from pyfastenv import cli
from pyfastenv.algorithms import ppo
from pyfastenv.tasks.check.check import check_task

LEG = """<body pos="{x} 0 0"><joint axis="0 1 0" range="-60 60" damping="1"/>
<geom type="capsule" fromto="0 0 0 0 0 -0.25" size="0.03"/>
<geom name="{name}" pos="0 0 -0.27" size="0.04"/></body>"""
XML = f"""<mujoco><option timestep="0.005" cone="elliptic"/><worldbody>
<body name="trunk" pos="0 0 0.31"><freejoint/><geom type="box" size="0.2 0.2 0.05"/>
{LEG.format(name="front", x=0.15)}{LEG.format(name="hind", x=-0.15)}</body></worldbody>
<actuator><position joint="{{0}}" kp="20"/><{{1}} joint="{{2}}"/></actuator></mujoco>"""
NAMED = XML.replace("<joint ", '<joint name="a" ', 1).replace("<joint axis", '<joint name="b" axis')


def test_it_passes_check_and_trains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, output = tmp_path / "biped.xml", tmp_path / "my_biped.py"
    model.write_text(NAMED.format("a", 'position kp="20"', "b"))
    command = ["new-task", "velocity", "--model", str(model), "--output", str(output)]
    assert cli.main(command) == 0
    assert capsys.readouterr().out.startswith(f"{output}:MyBiped; next: pyfastenv check")
    written = output.read_text()
    assert "FEET = ('front', 'hind')" in written and "frame_skip, max_episode_steps = 4" in written
    for finding in check_task(f"{output}:MyBiped"):
        assert finding.ok, finding
        if "its physics runs in lanes" in finding.what:  # what follows measures costs
            break
    else:
        raise AssertionError("it does not ride lanes")
    config = small("ppo", env_id=f"{output}:MyBiped", run_dir=tmp_path / "run", total_steps=300)
    assert ppo.train(config).evaluation["eval/reward_ahead"] > 0.0

    assert cli.main(command) == 1
    assert "exists: a task that was edited is not replaced" in capsys.readouterr().err
    assert output.read_text() == written


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            NAMED.format("a", "motor", "b"),
            "2 actuators move joints [1, 2] of 3, and 1 are position",
        ),
        (
            NAMED.format("b", 'position kp="1"', "a"),
            "in their order; 2 actuators move joints [2, 1]",
        ),
        (
            NAMED.format("a", 'position kp="1"', "b").replace("<freejoint/>", ""),
            "a free joint first",
        ),
        (NAMED.format("a", 'position kp="1"', "b").replace('name="hind"', ""), "geoms with names"),
    ],
)
def test_other_robots_are_refused(
    changed: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, output = tmp_path / "model.xml", tmp_path / "task.py"
    model.write_text(changed)
    assert cli.main(["new-task", "velocity", "--model", str(model), "--output", str(output)]) == 1
    assert said in capsys.readouterr().err
    model = model.rename(tmp_path / "model.py")
    assert cli.main(["new-task", "velocity", "--model", str(model), "--output", str(output)]) == 1
    assert f"got Python; a task in a file goes by {model}:Class" in capsys.readouterr().err
    assert not output.exists()
