"""A private database server of this process, in a private folder, with a Unix socket and no port.

It ends with this process, and its folder is then removed. In a service, the folder of temporary
files belongs to the run, and later commands clean it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from fumehood.core.errors import InfraError

SERVER_UID = 65531
"""User and group of a server that root starts. No other part of Fumehood uses them."""
START_TIMEOUT_S = 60.0
STATEMENT_TIMEOUT_S = 5.0
"""Limit of a statement, enforced by the server."""
READ_TIMEOUT_S = 10.0
"""Limit of waiting for the server, which does not enforce its own limit for all statements."""
RESULT_BYTES_MAX = 1 << 20
"""Size of the rows of a statement that are read."""
QUESTION_BYTES_MAX = 8 << 20
"""A statement is one argument of a call, and a character has up to six bytes in JSON."""
FILE_BYTES_MAX = 1 << 30
"""Size of one file of a server. A file with texts of statements has no other limit."""
SERVER_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SUPERVISOR = """
ulimit -c 0; ulimit -v "$MEMORY_KB_MAX"; ulimit -f "$FILE_BLOCKS_MAX"
exec 3<&0 4>&2 2>/dev/null
nice -n "$NICE" "$@" >/dev/null 2>&4 3<&- 4>&- &
server=$!
exec 4>&-
(cat <&3 >/dev/null; kill "-$SIGNAL" $server) &
watch=$!
exec 3<&-
wait $server
kill $watch
cd / && rm -rf "$FOLDER"
"""
"""Shell script that runs the server and kills it when standard input ends, that is, when the
process that started it has ended. It then removes the folder. Of the server's messages only the
first ones are kept, in a pipe, because statements of an agent can cause them without end."""
_MESSAGE_BYTES = 1 << 16
_MESSAGE_CHARS = 300
"""Of the last message that an error quotes."""


class PrivateServer:
    """The folder of a server, and its process once it has started."""

    def __init__(self, name: str, *folders: str) -> None:
        """Create the folder.

        Args:
            name: of the server, for messages and the name of the folder.
            folders: created inside.
        """
        self._name = name
        self.folder = Path(tempfile.mkdtemp(prefix=f"fumehood-{name.lower()}-"))
        for folder in folders:
            (self.folder / folder).mkdir()
        self._process: subprocess.Popen[bytes] | None = None
        self._messages: int | None = None
        """Descriptor of what the server has reported."""

    def give_away(self) -> None:
        """Make the folder the server's, which could from now on replace its files with links."""
        if os.geteuid() == 0:
            for path in (self.folder, *self.folder.rglob("*")):
                os.chown(path, SERVER_UID, SERVER_UID)

    def prepare(self, command: Sequence[str | Path], script: str = "") -> None:
        """Run a command of the server's user that prepares the folder.

        Args:
            command: program and arguments.
            script: its standard input.

        Raises:
            InfraError: it fails; the folder is removed.
        """
        try:
            result = subprocess.run(
                [*_as_user(), *command],
                input=script,
                cwd=self.folder,
                env={"PATH": SERVER_PATH},
                capture_output=True,
                text=True,
                timeout=START_TIMEOUT_S,
                check=False,
            )
            error = result.stderr if result.returncode else None
        except (OSError, subprocess.TimeoutExpired) as failure:
            error = str(failure)
        if error is not None:
            raise self._discarded(error)

    def write(self, files: Iterable[tuple[str, bytes]]) -> None:
        """Write files, by their path in the folder.

        Raises:
            InfraError: one cannot be written; the folder is removed.
        """
        try:
            for name, content in files:
                path = self.folder / name
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(content)
        except OSError as error:
            raise self._discarded(str(error)) from None

    def _discarded(self, reason: str) -> InfraError:
        """Remove the folder of a server that cannot start, and return the error."""
        shutil.rmtree(self.folder, ignore_errors=True)
        return InfraError(f"{self._name} does not start: {' '.join(reason.split())[-500:]}")

    def start(
        self,
        command: Sequence[str | Path],
        *,
        memory_kb_max: int,
        socket: Path,
        connect: Callable[[], object],
        end_signal: str = "KILL",
    ) -> None:
        """Start the server and wait until it answers.

        Args:
            command: program and arguments.
            memory_kb_max: address space of each of its processes.
            socket: on which it answers.
            connect: called when the socket exists; raises ``InfraError`` if it does not answer.
            end_signal: ends it at once.

        Raises:
            InfraError: it ends, or does not answer in time.
        """
        # A service runs before boxes; statements of an agent must not.
        nice = max(0, -os.getpriority(os.PRIO_PROCESS, 0))
        settings = {
            "FOLDER": str(self.folder),
            "MEMORY_KB_MAX": str(memory_kb_max),
            "FILE_BLOCKS_MAX": str(FILE_BYTES_MAX // 512),
            "SIGNAL": end_signal,
            "NICE": str(nice),
        }
        self._messages, their_end = os.pipe()
        # The server must not wait when the pipe is full.
        for end in (self._messages, their_end):
            os.set_blocking(end, False)
        try:
            self._process = subprocess.Popen(
                [*_as_user(), "/bin/sh", "-c", _SUPERVISOR, self._name, *map(str, command)],
                stdin=subprocess.PIPE,
                stderr=their_end,
                cwd=self.folder,
                env={"PATH": SERVER_PATH, **settings},
                start_new_session=True,
            )
        finally:
            os.close(their_end)
        atexit.register(self.stop)
        deadline, problem = time.monotonic() + START_TIMEOUT_S, "it has no socket"
        while True:
            try:
                if socket.exists():
                    connect()
                    return
            except InfraError as error:
                problem = str(error)
            if not self.alive:
                problem = f"it ended: {self._last_message()}"
            elif time.monotonic() > deadline:
                problem = f"within {START_TIMEOUT_S} s {problem}: {self._last_message()}"
            else:
                time.sleep(0.01)
                continue
            self.stop()
            raise InfraError(f"{self._name} does not start: {problem}")

    def _last_message(self) -> str:
        """Return the last message of the server, of those that were kept."""
        assert self._messages is not None
        with suppress(BlockingIOError):
            text = os.read(self._messages, _MESSAGE_BYTES).decode("utf-8", "replace").strip()
            return text.rpartition("\n")[2][-_MESSAGE_CHARS:] or "no message"
        return "no message"

    @property
    def alive(self) -> bool:
        """Whether the server is running."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """Stop the server and remove its folder."""
        atexit.unregister(self.stop)
        if self._process is not None:
            assert self._process.stdin is not None
            with suppress(OSError):  # It may have ended already.
                self._process.stdin.close()
            self._process.wait()
        if self._messages is not None:
            os.close(self._messages)
            self._messages = None


def _as_user() -> tuple[str, ...]:
    """Return the beginning of a command that root starts as another user.

    With the arguments of ``Popen`` instead, the child would call the handlers that libraries have
    registered for a fork. Those of gRPC crash if its threads are busy.
    """
    if os.geteuid() != 0:
        return ()
    return ("setpriv", f"--reuid={SERVER_UID}", f"--regid={SERVER_UID}", "--clear-groups", "--")
