"""MariaDB, which whoever runs the tests may not have."""

from __future__ import annotations

import os

import pytest

from fumehood.benchmarks.dbbench.mariadb_server import mariadbd
from fumehood.core.errors import InputError


def has_mariadb() -> bool:
    """Tell whether there is a server to start; fail where there must be, because ``CI`` is set."""
    try:
        mariadbd()
    except InputError as error:
        if os.environ.get("CI"):
            raise AssertionError(str(error)) from None
        return False
    return True


def needs_mariadb() -> None:
    """Go on where there is a server to start; else skip the calling module, or fail it when ``CI`` is set."""
    if not has_mariadb():
        pytest.skip("no MariaDB: apt-get install mariadb-server-core", allow_module_level=True)
