"""A distribution's package exports what its ``__all__`` lists; inner packages export nothing."""

from __future__ import annotations

import inspect
from importlib import import_module
from types import ModuleType

import pytest

from tests.architecture.project import PACKAGES, modules


def _modules() -> list[ModuleType]:
    return [import_module(name) for package in PACKAGES for name in modules(package)]


def _shown(module: ModuleType) -> set[str]:
    # A front can load its names when they are used, and lists them in its directory.
    return {
        name
        for name in dir(module)
        if name[0] != "_"
        and name not in ("annotations", "Any", "TYPE_CHECKING")
        and not inspect.ismodule(getattr(module, name))
    }


@pytest.mark.slow
def test_a_front_shows_what_it_lists_and_no_more() -> None:
    fronts = [module for module in _modules() if hasattr(module, "__all__")]
    assert fronts
    for module in fronts:
        assert _shown(module) == set(module.__all__), module
        assert list(module.__all__) == sorted(module.__all__), module


def test_a_package_has_a_docstring_and_exports_nothing() -> None:
    packages = [
        module
        for module in _modules()
        if hasattr(module, "__path__")
        and not hasattr(module, "__all__")
        and "builtin" not in module.__name__
    ]
    assert packages
    assert [module for module in packages if not module.__doc__] == []
    assert {module: shown for module in packages if (shown := _shown(module))} == {}
