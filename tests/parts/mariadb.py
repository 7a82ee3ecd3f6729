"""Skips tests that need MariaDB on a machine without it."""

from __future__ import annotations

import os

import pytest

from fumehood.benchmarks.dbbench import mariadb_server


def has_mariadb() -> bool:
    """Return whether MariaDB is installed; raises an error if it is missing and ``CI`` is set."""
    installed = mariadb_server.has_mariadb()
    if not installed and os.environ.get("CI"):
        raise AssertionError(mariadb_server.INSTALL)
    return installed


def needs_mariadb() -> None:
    """Skip the calling module if MariaDB is missing, or fail it when ``CI`` is set."""
    if not has_mariadb():
        pytest.skip(
            "MariaDB is not installed: apt-get install mariadb-server-core", allow_module_level=True
        )
