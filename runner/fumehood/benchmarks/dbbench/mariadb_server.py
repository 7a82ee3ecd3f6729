"""A private MariaDB server for one attempt, with a Unix socket in a private folder and no port.

It starts in 0.15 s of processor time with 20 MB of disk and 80 MB of memory, and ends with the
attempt or this process. Locks, memory and sessions belong to a whole server, so each attempt has
its own.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from zlib import compress, decompress

from fumehood.benchmarks.shared.private_server import (
    READ_TIMEOUT_S,
    SERVER_PATH,
    STATEMENT_TIMEOUT_S,
    PrivateServer,
)
from fumehood.core.errors import InfraError, InputError

if TYPE_CHECKING:
    from pymysql.connections import Connection

INSTALL = (
    "dbbench: MariaDB is not installed; run: apt-get install --no-install-recommends "
    "mariadb-server-core && pip install 'fumehood[mariadb]'"
)
SESSIONS_MAX = 5
"""Sessions of the agent's user. A statement that ignores its time limit keeps its session."""
_MEMORY_KB_MAX = 2 << 20
"""Address space, of which the server uses 1.3 GiB from the start."""
_SESSION_MEMORY_BYTES_MAX = 64 << 20
_TEMPORARY_BYTES_MAX = 256 << 20
"""Size of the temporary tables of a statement on the disk, and of the system tables."""
_OPTIONS = (
    "--no-defaults",
    "--skip-networking",
    "--skip-name-resolve",
    "--skip-log-bin",
    "--local-infile=0",
    "--character-set-server=utf8mb4",
    "--max-allowed-packet=1M",
    "--max-connections=8",
    # An interrupted statement may hold a lock.
    "--lock-wait-timeout=2",
    "--innodb-lock-wait-timeout=2",
    "--performance-schema=0",
    f"--max-session-mem-used={_SESSION_MEMORY_BYTES_MAX}",
    f"--tmp-disk-table-size={_TEMPORARY_BYTES_MAX}",
    "--innodb-buffer-pool-size=16M",
    "--innodb-log-file-size=4M",
    "--innodb-autoextend-increment=1",
    f"--innodb-data-file-path=ibdata1:4M:autoextend:max:{_TEMPORARY_BYTES_MAX}",
    f"--innodb-temp-data-file-path=ibtmp1:4M:autoextend:max:{_TEMPORARY_BYTES_MAX}",
    "--aria-log-file-size=8M",
    "--aria-pagecache-buffer-size=8M",
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
DATABASE, AGENT, _ADMIN = "task", "agent", "admin"
"""Names of the database and of the users."""
RIGHTS = (
    "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, REFERENCES, CREATE VIEW, SHOW VIEW"
)
"""Of an agent on its database. Without routines, triggers and events, which a statement could start
beyond its own limit of time."""
_SYSTEM_TABLES = ("mysql_system_tables.sql", "mysql_system_tables_data.sql")
_INIT_SQL = f"""\
CREATE USER {_ADMIN}@localhost;
GRANT ALL ON *.* TO {_ADMIN}@localhost WITH GRANT OPTION;
CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4;
CREATE USER {AGENT}@localhost
    WITH MAX_STATEMENT_TIME {STATEMENT_TIMEOUT_S} MAX_USER_CONNECTIONS {SESSIONS_MAX};
GRANT {RIGHTS} ON {DATABASE}.* TO {AGENT}@localhost;
"""


class MariaDbServer:
    """A running server with an empty database. Use it from one thread at a time."""

    def __init__(self, sql_mode: str = STRICT) -> None:
        """Start the server.

        Args:
            sql_mode: of the sessions of the agent.

        Raises:
            InputError: MariaDB is not installed.
            InfraError: MariaDB does not start.
        """
        binary = mariadbd()
        self._sql_mode = sql_mode
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
        _prepare(self._server, binary, options)
        self._admin: Connection | None = None
        self._agent: Connection | None = None
        self._server.start(
            # The disk space of other engines would not be counted.
            [binary, *options, f"--init-file={init_file}", "--enforce-storage-engine=InnoDB"],
            memory_kb_max=_MEMORY_KB_MAX,
            # The server executes the file with the users before it accepts sessions.
            socket=self._socket,
            connect=self._open_admin,
        )

    @property
    def alive(self) -> bool:
        """Whether the server is running."""
        return self._server.alive

    def trusted(self, *statements: str, bytes_max: int | None = None) -> list[tuple[object, ...]]:
        """Execute statements of this project and return the rows of the last one.

        Args:
            statements: the statements.
            bytes_max: size of the texts of the rows; None for no limit.

        Raises:
            InfraError: the server rejects a statement, does not answer in time, or the rows are too
                large.
        """
        pymysql = import_module("pymysql")
        admin = self._admin or self._open_admin()
        cursor = admin.cursor(pymysql.cursors.SSCursor)
        try:
            for statement in statements:
                cursor.execute(statement)
            return list(read_rows(cursor, bytes_max=bytes_max))
        except (pymysql.err.Error, LargeResult) as error:
            if isinstance(error, LargeResult) or not admin.open:
                abandon(admin, cursor)
                self._admin = None
            raise InfraError(f"MariaDB: {error}") from None

    def session(self) -> Connection:
        """Return the agent's session, which is opened if necessary.

        Raises:
            InfraError: the server has ended, or too many sessions of the agent do not end.
        """
        if self._agent is None:
            self._agent = self._connect(AGENT, DATABASE, self._sql_mode)
        return self._agent

    def end_session(self, cursor: Any = None) -> None:
        """Kill and close the agent's session, if it is open.

        Args:
            cursor: whose rows have not all been read; None for none.
        """
        session, self._agent = self._agent, None
        if session is not None:
            number: int = session.thread_id()  # type: ignore[no-untyped-call]
            with suppress(InfraError):  # It may have ended already.
                self.trusted(f"KILL {number}")
            abandon(session, cursor)

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
                # Functions such as SYSDATE and UUID ignore these values.
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
            raise InfraError(f"MariaDB accepts no session: {error}") from None
        return connection

    def stop(self) -> None:
        """Stop the server and remove its folder."""
        self._server.stop()
        for connection in (self._admin, self._agent):
            if connection is not None:
                abandon(connection)
        self._admin = self._agent = None

    def _open_admin(self) -> Connection:
        self._admin = self._connect(_ADMIN)
        return self._admin


class LargeResult(Exception):
    """The rows of a statement are larger than permitted."""


def read_rows(
    cursor: Any, rows_max: int | None = None, bytes_max: int | None = None
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a cursor that does not store them.

    Args:
        cursor: of the class ``SSCursor``.
        rows_max: number of rows; None for no limit.
        bytes_max: size of their texts; None for no limit.

    Raises:
        LargeResult: there are more, which have not been read.
    """
    rows = size_bytes = 0
    while cursor.description and (row := cursor.fetchone()) is not None:
        rows += 1
        size_bytes += sum(len(str(cell)) for cell in row)
        if rows_max is not None and rows > rows_max:
            raise LargeResult(f"more than {rows_max} rows")
        yield row
        if bytes_max is not None and size_bytes > bytes_max:
            raise LargeResult(f"more than {bytes_max} bytes")
    cursor.close()


def abandon(connection: Connection, cursor: Any = None) -> None:
    """Close a connection without reading the remaining rows of its cursor."""
    if cursor is not None and cursor._result is not None:
        # Otherwise PyMySQL reads them.
        cursor._result.unbuffered_active = False
    with suppress(import_module("pymysql").err.Error):  # It may be closed already.
        connection.close()


_data: dict[str, bytes] = {}
"""Compressed files of the first server of this process before its start, by path."""
_preparing = Lock()


def _prepare(server: PrivateServer, binary: Path, options: Sequence[str]) -> None:
    """Create the system tables, or write those of an earlier server, which takes a third of the
    time."""
    with _preparing:
        if not _data:
            server.give_away()
            server.prepare([binary, *options, "--bootstrap"], _system_tables(binary))
            paths = [path for path in server.folder.glob("data/**/*") if path.is_file()]
            names = [str(path.relative_to(server.folder)) for path in paths]
            contents = [compress(path.read_bytes(), 1) for path in paths]
            _data.update(zip(names, contents, strict=True))
            return
    server.write((name, decompress(content)) for name, content in _data.items())
    server.give_away()


def _system_tables(binary: Path) -> str:
    """Return the script that creates the server's system tables."""
    share = binary.parents[1] / "share" / "mysql"
    script = "".join((share / name).read_text(encoding="utf-8") for name in _SYSTEM_TABLES)
    return f"CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\n{script}"


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
