"""Imports modules that Python imports at first use, when a confined process may not read them."""

from __future__ import annotations

from importlib import import_module

_MODULES = (
    *("_strptime", "concurrent.futures.process", "concurrent.futures.thread", "traceback"),
    *("encodings.ascii", "encodings.idna", "encodings.unicode_escape"),
)


def import_late(*names: str) -> None:
    """Import modules of the standard library, and those with the given names."""
    for name in (*_MODULES, *names):
        import_module(name)
