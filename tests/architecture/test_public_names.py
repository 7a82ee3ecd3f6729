"""A distribution's package exports what its ``__all__`` lists; inner packages export nothing."""

from __future__ import annotations

import inspect
from importlib import import_module
from types import ModuleType

import pytest

from tests.architecture.project import PACKAGES, modules

ALL_MODULES = [name for package in PACKAGES for name in modules(package)]
FRONTS = [name for name in ALL_MODULES if hasattr(import_module(name), "__all__")]
PACKAGE_NAMES = [
    name
    for name in ALL_MODULES
    if name not in FRONTS and hasattr(import_module(name), "__path__") and "builtin" not in name
]


def _shown(module: ModuleType) -> set[str]:
    # A front can load its names when they are used, and lists them in its directory.
    return {
        name
        for name in dir(module)
        if name[0] != "_"
        and name not in ("annotations", "Any", "TYPE_CHECKING")
        and not inspect.ismodule(getattr(module, name))
    }


@pytest.mark.parametrize("name", FRONTS)
def test_a_front_shows_what_it_lists_and_no_more(name: str) -> None:
    module = import_module(name)
    assert _shown(module) == set(module.__all__)
    assert list(module.__all__) == sorted(module.__all__)


@pytest.mark.parametrize("name", PACKAGE_NAMES)
def test_a_package_has_a_docstring_and_exports_nothing(name: str) -> None:
    package = import_module(name)
    assert package.__doc__
    assert _shown(package) == set()
