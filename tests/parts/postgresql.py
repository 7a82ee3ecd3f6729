"""Skips tests that need PostgreSQL on a machine without it."""

from __future__ import annotations

import os

import pytest

from fumehood.benchmarks.marble import postgresql


def needs_postgresql() -> None:
    """Skip the calling module if PostgreSQL is missing, or fail it when ``CI`` is set."""
    if not postgresql.has_postgresql():
        assert not os.environ.get("CI"), postgresql.INSTALL
        pytest.skip(
            "PostgreSQL is not installed: apt-get install postgresql", allow_module_level=True
        )
