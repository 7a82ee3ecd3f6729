"""Skips tests that need PostgreSQL on a machine without it."""

from __future__ import annotations

import os

import pytest

from fumehood.benchmarks.marble import postgresql
from fumehood.core.errors import InputError


def has_postgresql() -> bool:
    """Return whether PostgreSQL is installed."""
    try:
        postgresql.programs()
    except InputError:
        return False
    return True


def needs_postgresql() -> None:
    """Skip the calling module if PostgreSQL is missing, or fail it when ``CI`` is set."""
    if not has_postgresql():
        assert not os.environ.get("CI"), postgresql.INSTALL
        pytest.skip(
            "PostgreSQL is not installed: apt-get install postgresql", allow_module_level=True
        )
