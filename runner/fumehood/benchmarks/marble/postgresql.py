"""A private PostgreSQL server for one attempt, a client for its wire protocol, and the loads that
make it slow.

Statistics, locks and sessions belong to a whole server, so each attempt has its own.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from fumehood.benchmarks.marble.record import Anomaly
from fumehood.benchmarks.shared.private_server import (
    READ_TIMEOUT_S,
    RESULT_BYTES_MAX,
    SERVER_PATH,
    SERVER_UID,
    STATEMENT_TIMEOUT_S,
    PrivateServer,
)
from fumehood.core.errors import InfraError, InputError

INSTALL = (
    "marble:database: PostgreSQL 13 or later is not installed; run: apt-get install "
    "--no-install-recommends postgresql"
)
DEBIAN = Path("/usr/lib/postgresql")
"""Where Debian installs the programs, by version."""
ADMIN, OWNER, AGENT, DATABASE = "admin", "test", "agent", "sysbench"
"""Names of the users and of the database; the original has ``test`` and ``sysbench``.

The owner of the database executes the statements of a record, because another person wrote them:
the administrator could start programs with them. The agents' user can only read."""
LOAD_TIMEOUT_S = 60.0
ROWS_MAX = 100
"""Limit of the rows of one result."""
_MEMORY_KB_MAX = 512 << 10
_OPTIONS = {
    "listen_addresses": "",
    "max_connections": "40",
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "all",
    "shared_buffers": "16MB",
    "max_parallel_workers": "0",
    "temp_file_limit": "64MB",
    "max_wal_size": "64MB",
    "min_wal_size": "2MB",
    "jit": "off",
    # The data are discarded, so they need not reach the disk.
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum": "off",
}
_RIGHTS = f"""
CREATE EXTENSION pg_stat_statements;
CREATE USER {AGENT} CONNECTION LIMIT 5;
GRANT pg_monitor, pg_read_all_data TO {AGENT};
REVOKE TEMPORARY ON DATABASE {DATABASE} FROM PUBLIC;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
ALTER SCHEMA public OWNER TO {OWNER};
GRANT USAGE ON LANGUAGE plpgsql TO {OWNER};
GRANT EXECUTE ON FUNCTION pg_stat_statements_reset TO {OWNER};
REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION lo_creat(integer), lo_create(oid), lo_from_bytea(oid, bytea),
    lo_put(oid, bigint, bytea), lowrite(integer, bytea), pg_export_snapshot(),
    pg_notify(text, text) FROM PUBLIC;
ALTER USER {AGENT} SET statement_timeout = '{STATEMENT_TIMEOUT_S:.0f}s';
ALTER USER {AGENT} SET default_transaction_read_only = on;
ALTER USER {AGENT} SET work_mem = '4MB';
"""
_PROTOCOL = 3 << 16
"""Source: PostgreSQL's documentation, "Frontend/Backend Protocol"."""


class StatementFailed(Exception):
    """The server rejected a statement. The message is its own."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The result of a statement."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str | None, ...], ...] = ()
    are_complete: bool = True


class Connection:
    """A session. Not for several threads."""

    def __init__(self, path: Path, user: str, database: str, timeout_s: float) -> None:
        """Connect to a server's socket.

        Raises:
            InfraError: the server does not accept the session.
        """
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._timeout_s = timeout_s
        self._received = bytearray()
        self._allow_reply()
        parameters = f"user\0{user}\0database\0{database}\0client_encoding\0UTF8\0\0".encode()
        body = struct.pack("!i", _PROTOCOL) + parameters
        try:
            self._socket.connect(str(path))
            self._socket.sendall(struct.pack("!i", len(body) + 4) + body)
            self._rows()
        except (OSError, StatementFailed) as error:
            self.close()
            raise InfraError(f"PostgreSQL: {error}") from None

    def run(self, script: str) -> Rows:
        """Execute statements of this project; the owner also executes those of a record.

        Raises:
            StatementFailed: the server rejects one.
            InfraError: the connection is lost.
        """
        return self._ask(_message(b"Q", script.encode() + b"\0"))

    def begin(self, statement: str) -> None:
        """Send a statement without waiting for its end."""
        self._socket.sendall(_message(b"Q", statement.encode() + b"\0"))

    def query(self, statement: str) -> Rows:
        """Execute one statement and return at most ``ROWS_MAX`` rows.

        Raises:
            StatementFailed: the server rejects it, or its result is too large.
            InfraError: the connection is lost; it must be closed.
        """
        # The extended protocol accepts one statement only, and ends after a number of rows.
        text = statement.replace("\0", "").encode("utf-8", "replace")
        return self._ask(
            _message(b"P", b"\0" + text + b"\0\0\0")
            + _message(b"B", bytes(8))
            + _message(b"D", b"P\0")
            + _message(b"E", b"\0" + struct.pack("!i", ROWS_MAX))
            + _message(b"S", b"")
        )

    def close(self) -> None:
        """End the session."""
        self._socket.close()

    def _ask(self, messages: bytes) -> Rows:
        self._allow_reply()
        try:
            self._socket.sendall(messages)
            return self._rows()
        except OSError as error:
            raise InfraError(f"PostgreSQL: {error}") from None

    def _allow_reply(self) -> None:
        """Begin the time and the size of a reply."""
        self._deadline = time.monotonic() + self._timeout_s
        self._bytes_left = RESULT_BYTES_MAX

    def _rows(self) -> Rows:
        """Read until the server is ready."""
        columns: tuple[str, ...] = ()
        rows: list[tuple[str | None, ...]] = []
        are_complete = True
        failed: str | None = None
        while True:
            kind, body = self._receive()
            match kind:
                case b"T":
                    columns, rows = _columns(body), []
                case b"D" if len(rows) < ROWS_MAX:
                    rows.append(_cells(body))
                case b"s":
                    are_complete = False
                case b"E":
                    failed = failed or _error(body)
                case b"Z":
                    if failed is not None:
                        raise StatementFailed(failed)
                    return Rows(columns, tuple(rows), are_complete)

    def _receive(self) -> tuple[bytes, bytes]:
        head = self._exactly(5)
        size = struct.unpack("!i", head[1:])[0] - 4
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise OSError(f"the result has more than {RESULT_BYTES_MAX} bytes")
        return head[:1], self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        while len(self._received) < size:
            self._socket.settimeout(max(0.001, self._deadline - time.monotonic()))
            part = self._socket.recv(1 << 16)
            if not part:
                raise OSError("the server has closed the connection")
            self._received += part
        content = bytes(self._received[:size])
        del self._received[:size]
        return content


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def _columns(body: bytes) -> tuple[str, ...]:
    names, at = [], 2
    for _ in range(struct.unpack_from("!h", body)[0]):
        end = body.index(b"\0", at)
        names.append(body[at:end].decode("utf-8", "replace"))
        at = end + 19
    return tuple(names)


def _cells(body: bytes) -> tuple[str | None, ...]:
    cells: list[str | None] = []
    at = 2
    for _ in range(struct.unpack_from("!h", body)[0]):
        (size,) = struct.unpack_from("!i", body, at)
        at += 4
        cells.append(None if size < 0 else body[at : at + size].decode("utf-8", "replace"))
        at += max(size, 0)
    return tuple(cells)


def _error(body: bytes) -> str:
    fields = {part[:1]: part[1:].decode("utf-8", "replace") for part in body.split(b"\0") if part}
    return f"{fields.get(b'S', 'ERROR')}: {fields.get(b'M', '')} ({fields.get(b'C', '')})"


def programs() -> Path:
    """Return the folder of the server's programs: the newest version.

    Raises:
        InputError: PostgreSQL is not installed.
    """
    installed = sorted(DEBIAN.glob("*/bin/postgres"), key=lambda path: _number(path.parts[-3]))
    found = shutil.which("postgres", path=SERVER_PATH)
    if not installed and found is None:
        raise InputError(INSTALL)
    program = installed[-1] if installed else Path(str(found)).resolve()
    if not (program.parent / "initdb").exists():
        raise InputError(INSTALL)
    return program.parent


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


class PostgreSqlServer:
    """A running server with one database, for one attempt. Not for several threads."""

    def __init__(self, init_sql: str, anomalies: Sequence[Anomaly]) -> None:
        """Start the server, create the tables and execute the loads.

        Args:
            init_sql: statements that create and fill the tables.
            anomalies: the loads, executed one after the other.

        Raises:
            InputError: PostgreSQL is not installed.
            InfraError: PostgreSQL does not start, or rejects the statements.
        """
        folder_of_programs = programs()
        self.process = PrivateServer("PostgreSQL")
        folder = self.process.folder
        self.process.give_away()
        data = folder / "data"
        self.process.prepare(
            [
                *_as_known_user(),
                folder_of_programs / "initdb",
                *("-D", data, "-U", ADMIN, "-A", "trust", "-E", "UTF8", "--locale=C"),
                *("--no-sync", "--wal-segsize=1", "--no-instructions"),
            ]
        )
        options = {**_OPTIONS, "unix_socket_directories": str(folder)}
        settings = [part for item in options.items() for part in ("-c", "=".join(item))]
        self._path = folder / ".s.PGSQL.5432"
        self.process.start(
            [folder_of_programs / "postgres", "-D", data, *settings],
            memory_kb_max=_MEMORY_KB_MAX,
            socket=self._path,
            connect=lambda: self._admin().close(),
            end_signal="QUIT",
        )
        self._agent: Connection | None = None
        self._waiting: list[Connection] = []
        try:
            self._create_database(init_sql, anomalies)
        except BaseException as error:
            self.stop()
            if isinstance(error, StatementFailed):
                raise InfraError(f"the database cannot be created: {error}") from None
            raise

    def _create_database(self, init_sql: str, anomalies: Sequence[Anomaly]) -> None:
        with closing(self._admin()) as admin:
            admin.run(f"CREATE USER {OWNER}")
            admin.run(f"CREATE DATABASE {DATABASE} OWNER {OWNER}")
        # Later, objects of the owner could replace functions that the administrator calls.
        with closing(self._admin(DATABASE)) as admin:
            admin.run(_RIGHTS)
        with closing(self._owner()) as owner:
            owner.run(init_sql)
            owner.run("SELECT pg_stat_statements_reset()")
            for number, anomaly in enumerate(anomalies, 1):
                LOADS[anomaly.name](_Load(self, owner, anomaly, f"table{number}"))

    def query(self, statement: str) -> Rows:
        """Execute a statement of an agent, whose user may read everything and change nothing.

        Raises:
            StatementFailed: the server rejects it, or it takes too long.
            InfraError: the server has ended.
        """
        try:
            if self._agent is None:
                self._agent = Connection(self._path, AGENT, DATABASE, READ_TIMEOUT_S)
            return self._agent.query(statement)
        except InfraError as error:
            if self._agent is not None:
                self._agent.close()
                self._agent = None
            if not self.process.alive:
                raise
            # Sessions in a long calculation do not end, and reach the limit of their number. A
            # server that recovers from the crash of a session refuses new ones.
            with suppress(InfraError, StatementFailed), closing(self._admin()) as admin:
                admin.run(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    f"WHERE usename = '{AGENT}'"
                )
            raise StatementFailed(str(error)) from None

    def stop(self) -> None:
        """Stop the server and end all sessions."""
        self.process.stop()
        for connection in (*self._waiting, *([self._agent] if self._agent else [])):
            connection.close()

    def hold_lock(self, statement: str) -> None:
        """Leave a session that holds a lock, and three that wait for it."""
        holder = self._owner()
        holder.run(f"BEGIN; {statement}")
        self._waiting.append(holder)
        for _ in range(3):
            waiter = self._owner()
            waiter.begin(statement)
            self._waiting.append(waiter)

    def repeat(self, statements: Sequence[str]) -> None:
        """Execute statements in each of several sessions at the same time.

        Raises:
            StatementFailed: the server rejects one.
            InfraError: a session is lost.
        """
        failures: list[Exception] = []

        def work() -> None:
            try:
                with closing(self._owner()) as connection:
                    for statement in statements:
                        connection.run(statement)
            except (InfraError, StatementFailed) as error:
                failures.append(error)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(SESSIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def _admin(self, database: str = "postgres") -> Connection:
        return Connection(self._path, ADMIN, database, LOAD_TIMEOUT_S)

    def _owner(self) -> Connection:
        return Connection(self._path, OWNER, DATABASE, LOAD_TIMEOUT_S)


_NAMED_UID = 65534
"""Every Linux distribution has a user with this number, who owns nothing."""


def _as_known_user() -> tuple[str, ...]:
    """Return the command with which initdb runs as a user with a name, which it needs.

    The owner of its files stays the same.
    """
    with suppress(KeyError):
        pwd.getpwuid(os.geteuid() or SERVER_UID)
        return ()
    return ("unshare", "-U", f"--map-user={_NAMED_UID}", f"--map-group={_NAMED_UID}")


SESSIONS = 4
ROUNDS = 50


@dataclass(frozen=True, slots=True)
class _Load:
    """One load, on its own table. The statements are like those of the original's scripts in
    ``db_env_docker/anomaly_trigger``, in a fixed number instead of for a minute."""

    server: PostgreSqlServer
    owner: Connection
    anomaly: Anomaly
    table: str

    @property
    def columns(self) -> int:
        return self.anomaly.columns

    @property
    def _text(self) -> str:
        return f"(SELECT substr(md5(random()::text), 1, {self.anomaly.width}))"

    def insertion(self) -> str:
        """Create the table, and return the statement that adds a hundred rows."""
        names = ", ".join(f"name{number} varchar({self.anomaly.width})" for number in self.numbers)
        self.owner.run(f"CREATE TABLE {self.table} (id int, {names}, time timestamp)")
        texts = ", ".join([self._text] * self.columns)
        return f"INSERT INTO {self.table} SELECT generate_series(1, 100), {texts}, now()"

    @property
    def numbers(self) -> range:
        return range(self.columns)

    def updates(self) -> list[str]:
        """Return statements that change a few rows again and again."""
        return [
            f"UPDATE {self.table} SET name{number % self.columns} = {self._text} "
            f"WHERE id = {number % 5 + 1}"
            for number in range(2 * ROUNDS)
        ]


def _insert_large_data(load: _Load) -> None:
    load.server.repeat([load.insertion()] * ROUNDS)


def _lock_contention(load: _Load) -> None:
    load.owner.run(load.insertion())
    updates = load.updates()
    load.server.repeat(updates)
    load.server.hold_lock(updates[0])


def _vacuum(load: _Load) -> None:
    load.owner.run(load.insertion())
    load.owner.run(f"ALTER TABLE {load.table} SET (autovacuum_enabled = false)")
    load.owner.run(f"DELETE FROM {load.table} WHERE id < 90")
    for _ in range(ROUNDS):
        load.owner.run(f"VACUUM FULL {load.table}")


def _redundant_index(load: _Load) -> None:
    load.owner.run(load.insertion())
    for number in range(load.columns // 2):
        name = f"index_{load.table}_{number}"
        load.owner.run(f"CREATE INDEX {name} ON {load.table}(name{number})")
    load.owner.run(f"CREATE INDEX index_{load.table}_id ON {load.table}(id)")
    load.server.repeat(load.updates())


def _fetch_large_data(load: _Load) -> None:
    load.owner.run(f"CREATE TABLE {load.table} (orderkey int, priority varchar(15), day date)")
    load.owner.run(
        f"INSERT INTO {load.table} SELECT generate_series(1, 10000), '5-LOW', "
        "date '1996-03-01' + (random() * 900)::int"
    )
    load.server.repeat([f"SELECT * FROM {load.table} LIMIT 500"] * ROUNDS)


LOADS: Mapping[str, Callable[[_Load], None]] = {
    "INSERT_LARGE_DATA": _insert_large_data,
    "LOCK_CONTENTION": _lock_contention,
    "VACUUM": _vacuum,
    "REDUNDANT_INDEX": _redundant_index,
    "FETCH_LARGE_DATA": _fetch_large_data,
}
"""By the name of the anomaly."""
