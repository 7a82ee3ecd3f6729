"""A MariaDB server of this process's own, which ends with it: no port, a socket that nobody else can reach.

Started at its first use, from Debian's package, in a new folder: a third of a second and 80 MB of disk.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections import deque
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from fumehood.core.errors import InfraError, InputError

if TYPE_CHECKING:
    from pymysql.connections import Connection

NEEDS = (
    "MariaDB is needed: apt-get install --no-install-recommends mariadb-server-core "
    "&& pip install 'fumehood[mariadb]'"
)
SERVER_UID = 65531
"""User and group of a server that root starts; not the service's, not a checker's, not a box's."""
START_TIMEOUT_S = 30.0
STATEMENT_TIMEOUT_S = 5.0
"""Of one statement, by the server's own count."""
SILENCE_TIMEOUT_S = 10.0
"""Until a server that says nothing is not waited for any more: some statements it does not count."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MEMORY_KB_MAX = 2 << 20
_KEEPER = f"""
ulimit -c 0; ulimit -v {_MEMORY_KB_MAX}
exec 3<&0
"$@" >errors 2>&1 3<&- &
server=$!
(cat <&3 >/dev/null; kill -KILL $server) &
watch=$!
exec 3<&-
wait $server
kill $watch
cd / && rm -rf "$FOLDER"
"""
"""Outlives whoever started it by a moment: its standard input ends with them, and then it ends the server. If
the server ends by itself, so does this."""
_OPTIONS = (
    "--no-defaults",
    "--skip-networking",
    "--skip-name-resolve",
    "--skip-log-bin",
    "--local-infile=0",
    "--sql-mode=",
    "--character-set-server=utf8mb4",
    "--max-allowed-packet=1M",
    "--max-connections=512",
    # Of a table that a transaction holds which has outlived its attempt.
    "--lock-wait-timeout=2",
    "--innodb-lock-wait-timeout=2",
    "--performance-schema=0",
    "--innodb-buffer-pool-size=16M",
    "--innodb-data-file-path=ibdata1:4M:autoextend",
    "--innodb-temp-data-file-path=ibtmp1:4M:autoextend",
    # What is in it is thrown away: nothing is lost that was not written to the disk.
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-flush-method=nosync",
    "--debug-no-sync",
    "--sync-frm=0",
)
_MADE_BY = ("mysql_system_tables.sql", "mysql_system_tables_data.sql")
_KEEPER_USER = "keeper"
_FIRST = f"""\
CREATE USER {_KEEPER_USER}@localhost;
GRANT ALL ON *.* TO {_KEEPER_USER}@localhost WITH GRANT OPTION;
"""


class MariaDbServer:
    """Safe to use from several threads."""

    def __init__(self) -> None:
        """Start it.

        Raises:
            InputError: it is not installed.
            InfraError: it does not start.
        """
        binary = mariadbd()
        self._folder = Path(tempfile.mkdtemp(prefix="gb-mariadb-"))
        self._socket = self._folder / "socket"
        told = [*_OPTIONS, f"--datadir={self._folder / 'data'}", f"--socket={self._socket}"]
        told += [f"--tmpdir={self._folder}", f"--pid-file={self._folder / 'pid'}"]
        # Where files may be read and written by statements: nowhere.
        told += [f"--secure-file-priv={self._folder / 'nowhere'}"]
        for inside in ("data", "nowhere"):
            (self._folder / inside).mkdir()
        self._give_away()
        self._fill(binary, told)
        first = self._folder / "first.sql"
        first.write_text(_FIRST, encoding="ascii")
        first.chmod(0o644)
        self._keeper = subprocess.Popen(
            ["/bin/sh", "-c", _KEEPER, "mariadb", str(binary), *told, f"--init-file={first}"],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._folder,
            env={"PATH": _PATH, "FOLDER": str(self._folder)},
            start_new_session=True,
            **_as_user(),
        )
        atexit.register(self.stop)
        self._lock = Lock()
        self._numbers = 0
        self._connections: dict[str, Connection] = {}
        self.over: deque[str] = deque()
        """Names of attempts that are over. What is theirs is dropped when the next begins, because whatever
        notices that one is over may run in the middle of anything."""
        self._wait()

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self._keeper.poll() is None

    def begin(self, may: str) -> str:
        """Make a database and a user of one name, for one attempt, and drop those of attempts that are over.

        Args:
            may: rights of the user on that database.

        Raises:
            InfraError: the server does not.
        """
        while self.over:
            name = self.over.popleft()
            self.leave(name)
            with suppress(
                InfraError
            ):  # Where it cannot be dropped it stays, and is in nobody's way.
                self.trusted(
                    f"DROP USER IF EXISTS {name}@localhost", f"DROP DATABASE IF EXISTS {name}"
                )
        with self._lock:
            self._numbers += 1
            name = f"attempt{self._numbers:06}"
        self.trusted(
            f"CREATE DATABASE {name} CHARACTER SET utf8mb4",
            f"CREATE USER {name}@localhost WITH MAX_STATEMENT_TIME {STATEMENT_TIMEOUT_S}",
            f"GRANT {may} ON {name}.* TO {name}@localhost",
        )
        return name

    def trusted(self, *statements: str) -> list[tuple[object, ...]]:
        """Execute statements of our own and return the rows of the last.

        Raises:
            InfraError: the server does not carry them out.
        """
        errors = import_module("pymysql").err
        with self._lock, self._connections[_KEEPER_USER].cursor() as cursor:
            try:
                for statement in statements:
                    cursor.execute(statement)
                return list(cursor.fetchall())
            except errors.Error as error:
                if not self._connections[_KEEPER_USER].open:
                    self._connections[_KEEPER_USER] = self._connect(_KEEPER_USER)
                raise InfraError(f"MariaDB: {error}") from None

    def connection(self, name: str) -> Connection:
        """Return the connection of an attempt, a new one where it has none.

        Raises:
            InfraError: the server is gone.
        """
        if name not in self._connections:
            self._connections[name] = self._connect(name, name)
        return self._connections[name]

    def leave(self, name: str) -> None:
        """Close the connection of an attempt, whatever it does just now."""
        connection = self._connections.pop(name, None)
        if connection is not None:
            number: int = connection.thread_id()  # type: ignore[no-untyped-call]
            with suppress(InfraError):  # It may have ended by itself.
                self.trusted(f"KILL {number}")
            with suppress(import_module("pymysql").err.Error):  # Or be closed.
                connection.close()

    def _connect(self, user: str, database: str | None = None) -> Connection:
        if not self.alive:
            raise InfraError("MariaDB is gone")
        pymysql = import_module("pymysql")
        road = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            road.connect(str(self._socket))
            connection: Connection = pymysql.Connection(
                defer_connect=True,
                user=user,
                database=database,
                charset="utf8mb4",
                autocommit=True,
                ssl_disabled=True,
                read_timeout=SILENCE_TIMEOUT_S,
                # Clock and chance of a connection stand still, as long as nobody sets them.
                init_command="SET timestamp = 1735732800, rand_seed1 = 1, rand_seed2 = 2",
            )
            connection.connect(road)
        except (OSError, pymysql.err.Error) as error:
            # A reader that PyMySQL leaves behind would keep it open until somebody collects it.
            if (left := road.detach()) >= 0:
                os.close(left)
            raise InfraError(f"MariaDB is gone: {error}") from None
        return connection

    def stop(self) -> None:
        """End the server and remove its folder."""
        assert self._keeper.stdin is not None
        with suppress(OSError):  # It may have ended by itself.
            self._keeper.stdin.close()
        self._keeper.wait()
        for connection in self._connections.values():
            with suppress(import_module("pymysql").err.Error):
                connection.close()

    def _give_away(self) -> None:
        if os.geteuid() == 0:
            for path in (self._folder, *self._folder.iterdir()):
                os.chown(path, SERVER_UID, SERVER_UID)

    def _fill(self, binary: Path, told: list[str]) -> None:
        """Make the tables that every server has."""
        share = binary.parents[1] / "share" / "mysql"
        made = "".join((share / name).read_text(encoding="utf-8") for name in _MADE_BY)
        done = subprocess.run(
            [binary, *told, "--bootstrap"],
            input=f"CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\n{made}",
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=START_TIMEOUT_S,
            check=False,
            **_as_user(),
        )
        if done.returncode != 0:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise InfraError(f"MariaDB does not start: {' '.join(done.stderr.split())[-500:]}")

    def _wait(self) -> None:
        patience = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                if self._socket.exists():
                    self._connections[_KEEPER_USER] = self._connect(_KEEPER_USER)
                    return
            except InfraError:
                pass
            if time.monotonic() > patience or self._keeper.poll() is not None:
                self.stop()
                raise InfraError("MariaDB does not answer")
            time.sleep(0.01)


_servers: list[MariaDbServer] = []
"""Of this process: one, or none yet."""
_starting = Lock()


def server() -> MariaDbServer:
    """Return the server of this process, started at its first use, and anew where it is gone."""
    with _starting:
        if _servers and not _servers[-1].alive:
            _servers.pop().stop()
        if not _servers:
            _servers.append(MariaDbServer())
        return _servers[-1]


def mariadbd() -> Path:
    """Return where the server's program is.

    Raises:
        InputError: it, or its client, is not installed.
    """
    found = shutil.which("mariadbd", path=_PATH)
    if found is None or find_spec("pymysql") is None:
        raise InputError(NEEDS)
    return Path(found)


def _as_user() -> dict[str, Any]:
    """Return how a child becomes another user; only root's has to."""
    if os.geteuid() != 0:
        return {}
    return {"user": SERVER_UID, "group": SERVER_UID, "extra_groups": []}
