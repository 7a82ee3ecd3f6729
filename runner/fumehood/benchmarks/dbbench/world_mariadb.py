"""The world ``sql`` over MariaDB, for parity: the dialect is MariaDB's own, and so are the clock and chance.

State and tool are those of ``sql``.
"""

from __future__ import annotations

from importlib import import_module

from fumehood.benchmarks.dbbench.mariadb_attempt import MariaDbAttempt
from fumehood.benchmarks.dbbench.mariadb_server import mariadbd, server
from fumehood.benchmarks.dbbench.world import Sql
from fumehood.core.json_values import JsonObject


def preload() -> None:
    """See that there is a server to start, and import its client, before a process may no longer read it."""
    mariadbd()
    import_module("pymysql.cursors")


class MariaDbSql(Sql):
    """State: as that of ``sql``; tables of an agent's own come last, by name."""

    toolset_id = "sql_mariadb_v1"

    def __init__(self, state: JsonObject) -> None:
        """Take over ``state``, in a new database.

        Raises:
            SpecError: ``tables`` is there and is no list of tables.
            InputError: MariaDB is not installed.
            InfraError: it does not start.
        """
        preload()
        super().__init__(state, MariaDbAttempt(server()))
