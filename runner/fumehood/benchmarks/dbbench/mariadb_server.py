"""A private MariaDB server of this process, with a Unix socket in a private folder and no port.

It starts on first use, in 0.3 s with 80 MB of disk, and ends with this process.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections import deque
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from fumehood.benchmarks.shared.private_server import SERVER_PATH, PrivateServer
from fumehood.core.errors import InfraError, InputError

if TYPE_CHECKING:
    from pymysql.connections import Connection

INSTALL = (
    "dbbench: MariaDB is not installed; run: apt-get install --no-install-recommends "
    "mariadb-server-core && pip install 'fumehood[mariadb]'"
)
STATEMENT_TIMEOUT_S = 5.0
"""Limit of a statement, enforced by the server."""
READ_TIMEOUT_S = 10.0
"""Limit of waiting for the server, which does not enforce its own limit for all statements."""
_MEMORY_KB_MAX = 3 << 20
"""Address space, of which the server uses 1.9 GiB from the start."""
_SESSION_MEMORY_BYTES_MAX = 64 << 20
"""Of one attempt, so that it does not use up the memory of the others."""
_OPTIONS = (
    "--no-defaults",
    "--skip-networking",
    "--skip-name-resolve",
    "--skip-log-bin",
    "--local-infile=0",
    "--character-set-server=utf8mb4",
    "--max-allowed-packet=1M",
    "--max-connections=512",
    # A transaction of an ended attempt may hold a lock.
    "--lock-wait-timeout=2",
    "--innodb-lock-wait-timeout=2",
    "--performance-schema=0",
    f"--max-session-mem-used={_SESSION_MEMORY_BYTES_MAX}",
    "--innodb-buffer-pool-size=16M",
    "--innodb-data-file-path=ibdata1:4M:autoextend",
    "--innodb-temp-data-file-path=ibtmp1:4M:autoextend",
    # The data are discarded, so they need not reach the disk.
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-flush-method=nosync",
    "--debug-no-sync",
    "--sync-frm=0",
)
STRICT = (
    "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO"
)
"""Default ``sql_mode`` of MySQL 8.0, on which the original runs, without NO_ENGINE_SUBSTITUTION:
all tables have the engine that this module enforces. Source: its reference manual, "Server SQL
Modes"."""
_SYSTEM_TABLES = ("mysql_system_tables.sql", "mysql_system_tables_data.sql")
_ADMIN = "admin"
_INIT_SQL = f"""\
CREATE USER {_ADMIN}@localhost;
GRANT ALL ON *.* TO {_ADMIN}@localhost WITH GRANT OPTION;
"""


class MariaDbServer:
    """A running server. It may be used from several threads."""

    def __init__(self) -> None:
        """Start the server.

        Raises:
            InputError: MariaDB is not installed.
            InfraError: MariaDB does not start.
        """
        binary = mariadbd()
        self._server = PrivateServer("MariaDB", "data", "nowhere")
        folder = self._server.folder
        self._socket = folder / "socket"
        options = [*_OPTIONS, f"--datadir={folder / 'data'}", f"--socket={self._socket}"]
        options += [f"--tmpdir={folder}", f"--pid-file={folder / 'pid'}"]
        # Statements may read and write files only in this empty folder.
        options += [f"--secure-file-priv={folder / 'nowhere'}"]
        init_file = folder / "init.sql"
        init_file.write_text(_INIT_SQL, encoding="ascii")
        init_file.chmod(0o644)
        self._server.give_away()
        self._server.prepare([binary, *options, "--bootstrap"], _system_tables(binary))
        self._lock = Lock()
        self._numbers = 0
        self._connections: dict[str, Connection] = {}
        self.ended_attempts: deque[str] = deque()
        """Names of ended attempts. Their databases are dropped when the next attempt starts,
        because the finalizer can run at any point."""
        self._server.start(
            # The disk space of other engines would not be counted.
            [binary, *options, f"--init-file={init_file}", "--enforce-storage-engine=InnoDB"],
            memory_kb_max=_MEMORY_KB_MAX,
            is_ready=self._is_ready,
        )

    @property
    def alive(self) -> bool:
        """Whether the server is running."""
        return self._server.alive

    def begin_attempt(self, rights: str) -> str:
        """Create a database and a user with the same name, and drop those of ended attempts.

        Args:
            rights: The user's rights on the database.

        Raises:
            InfraError: The server fails.
        """
        while self.ended_attempts:
            name = self.ended_attempts.popleft()
            self.disconnect(name)
            with suppress(InfraError):  # A database that cannot be dropped is left until the end.
                self.trusted(
                    f"DROP USER IF EXISTS {name}@localhost", f"DROP DATABASE IF EXISTS {name}"
                )
        with self._lock:
            self._numbers += 1
            name = f"attempt{self._numbers:06}"
        self.trusted(
            f"CREATE DATABASE {name} CHARACTER SET utf8mb4",
            f"CREATE USER {name}@localhost WITH MAX_STATEMENT_TIME {STATEMENT_TIMEOUT_S}",
            f"GRANT {rights} ON {name}.* TO {name}@localhost",
        )
        return name

    def trusted(self, *statements: str) -> list[tuple[object, ...]]:
        """Execute statements of this project and return the rows of the last one.

        Raises:
            InfraError: The server rejects a statement.
        """
        errors = import_module("pymysql").err
        with self._lock, self._connections[_ADMIN].cursor() as cursor:
            try:
                for statement in statements:
                    cursor.execute(statement)
                return list(cursor.fetchall())
            except errors.Error as error:
                if not self._connections[_ADMIN].open:
                    self._connections[_ADMIN] = self._connect(_ADMIN)
                raise InfraError(f"MariaDB: {error}") from None

    def connection(self, name: str, sql_mode: str = STRICT) -> Connection:
        """Return the connection of an attempt, which is opened if necessary.

        Raises:
            InfraError: The server has ended.
        """
        if name not in self._connections:
            self._connections[name] = self._connect(name, name, sql_mode)
        return self._connections[name]

    def disconnect(self, name: str) -> None:
        """Kill and close the connection of an attempt."""
        connection = self._connections.pop(name, None)
        if connection is not None:
            number: int = connection.thread_id()  # type: ignore[no-untyped-call]
            with suppress(InfraError):  # It may have ended already.
                self.trusted(f"KILL {number}")
            with suppress(import_module("pymysql").err.Error):  # It may be closed already.
                connection.close()

    def _connect(self, user: str, database: str | None = None, sql_mode: str = "") -> Connection:
        if not self.alive:
            raise InfraError("MariaDB has ended")
        pymysql = import_module("pymysql")
        unix_socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            unix_socket.connect(str(self._socket))
            connection: Connection = pymysql.Connection(
                defer_connect=True,
                user=user,
                database=database,
                charset="utf8mb4",
                autocommit=True,
                ssl_disabled=True,
                read_timeout=READ_TIMEOUT_S,
                # Fixed clock and random numbers, unless a statement sets them.
                init_command=(
                    "SET timestamp = 1735732800, rand_seed1 = 1, rand_seed2 = 2, "
                    f"sql_mode = '{sql_mode}'"
                ),
            )
            connection.connect(unix_socket)
        except (OSError, pymysql.err.Error) as error:
            # PyMySQL's reader would keep the descriptor open until it is garbage-collected.
            if (descriptor := unix_socket.detach()) >= 0:
                os.close(descriptor)
            raise InfraError(f"MariaDB has ended: {error}") from None
        return connection

    def stop(self) -> None:
        """Stop the server and remove its folder."""
        self._server.stop()
        for connection in self._connections.values():
            with suppress(import_module("pymysql").err.Error):
                connection.close()

    def _is_ready(self) -> bool:
        if self._socket.exists():
            self._connections[_ADMIN] = self._connect(_ADMIN)
        return _ADMIN in self._connections


def _system_tables(binary: Path) -> str:
    """Return the script that creates the server's system tables."""
    share = binary.parents[1] / "share" / "mysql"
    script = "".join((share / name).read_text(encoding="utf-8") for name in _SYSTEM_TABLES)
    return f"CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\n{script}"


_servers: list[MariaDbServer] = []
"""The server of this process, if it has started."""
_starting = Lock()


def server() -> MariaDbServer:
    """Return the server of this process, which is started if it is not running."""
    with _starting:
        if _servers and not _servers[-1].alive:
            _servers.pop().stop()
        if not _servers:
            _servers.append(MariaDbServer())
        return _servers[-1]


def mariadbd() -> Path:
    """Return the path of the server's program.

    Raises:
        InputError: The server or its Python client is not installed.
    """
    program = shutil.which("mariadbd", path=SERVER_PATH)
    if program is None or find_spec("pymysql") is None:
        raise InputError(INSTALL)
    return Path(program)


def has_mariadb() -> bool:
    """Return whether the server and its Python client are installed."""
    try:
        mariadbd()
    except InputError:
        return False
    return True
