"""Where other packages' files are."""

from importlib.util import find_spec
from pathlib import Path


def package_file(package: str, name: str, install: str) -> Path:
    """A file of an installed package, which is not imported.

    Args:
        package: Such as ``"dm_control"``.
        name: In its folder, such as ``"suite/cheetah.xml"``.
        install: The words after ``pip install`` that install the package.

    Raises:
        ImportError: There is no such package, or none with such a file.
    """
    found = find_spec(package)
    if found is None or found.submodule_search_locations is None:
        raise ImportError(
            f"this task takes its model from the package {package}: pip install {install}"
        )
    path = Path(found.submodule_search_locations[0]) / name
    if not path.is_file():
        raise ImportError(
            f"the {package} that is installed has no {name}: pip install --upgrade {install}"
        )
    return path
