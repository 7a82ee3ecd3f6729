"""Imports modules of the package bfcl-eval while modules that they need are replaced.

The package imports clients, parsers, models, and file helpers that create folders. Its checkers and
simulators use none of them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from threading import RLock
from types import ModuleType
from typing import Any

UTILS = "bfcl_eval.utils"
CONFIG = "bfcl_eval.constants.eval_config"
"""Creates folders beside the package when imported."""
_lock = RLock()
_imported: dict[str, Any] = {}


def import_with(name: str, replaced: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return a module that was imported while other modules were replaced.

    Args:
        name: Of the module. Later imports of a replaced module find the original.
        replaced: Name of a module → its attributes. All other attributes are None.
    """
    with _lock:
        if name not in _imported:
            _imported[name] = _import(name, replaced)
        return _imported[name]


def _import(name: str, replaced: Mapping[str, Mapping[str, Any]]) -> Any:
    before = {each: sys.modules.get(each) for each in replaced}
    for each, attributes in replaced.items():
        sys.modules[each] = ModuleType(each)
        vars(sys.modules[each]).update({"__getattr__": _absent, **attributes})
    try:
        return import_module(name)
    finally:
        for each, original in before.items():
            sys.modules.pop(each)
            if original is not None:
                sys.modules[each] = original


def _absent(name: str) -> None:
    if name.startswith("__"):
        raise AttributeError(name)
