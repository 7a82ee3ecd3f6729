"""The worlds of attacks on third-party code: their initial states and packages."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.redteam.attacks import Attack

STATES: Mapping[str, JsonObject] = {
    "files": {"files": {"/a.txt": "x"}},
    "bfcl": {"initial_config": {}, "involved_classes": ["MathAPI"], "long_context": False},
}
"""World → its initial state."""
_PACKAGES = {"bfcl": "bfcl_eval"}
"""World → the package with its code."""


def installed_worlds() -> list[str]:
    """Return the worlds whose packages are installed."""
    return [world for world, package in _PACKAGES.items() if find_spec(package) is not None]


def require_world(attack: Attack) -> None:
    """Check that the code of an attack's world is installed.

    Raises:
        InputError: it is not.
    """
    package = _PACKAGES.get(attack.world)
    if package is not None and find_spec(package) is None:
        raise InputError(f"the world {attack.world} needs the package {package}, which is missing")
