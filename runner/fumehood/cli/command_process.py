"""The process of a command: its streams, its signals and its exit status.

Standard output and standard error never stop a command. A run must not lose episodes because a
terminal was closed, a pipe has no reader or a log disk is full. The command goes on, and a failure
of standard output is reported at its end.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from typing import TextIO

from fumehood.orchestrator.garbage import collect_rarely
from fumehood.orchestrator.stop_signals import ignore_stop_signals
from fumehood.version import __version__

INFRA = 3
"""Exit status of infrastructure failures."""

_STREAMS = (0, 1, 2)


class Stream(io.RawIOBase):
    """Writes to a descriptor, and discards everything after the first error."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.error: OSError | None = None
        """The first error; None if there was none, or if the reader of a pipe has gone."""
        self._is_open = True

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Return whether it is a terminal."""
        return os.isatty(self._descriptor)

    def write(self, content: object, /) -> int:
        """Write, or discard, and return the number of bytes."""
        view = memoryview(content)  # type: ignore[arg-type]
        while self._is_open:
            try:
                return os.write(self._descriptor, view)
            except BlockingIOError:
                # Another program made the pipe non-blocking.
                select.select((), (self._descriptor,), ())
            except OSError as error:
                self._is_open = False
                # A reader that has gone, such as `head`, has what it needs.
                self.error = None if error.errno == errno.EPIPE else error
        return view.nbytes


def open_missing_streams() -> None:
    """Open the standard descriptors that are closed.

    Otherwise the next file that is opened gets such a number, and receives output of this process
    or of a child.
    """
    for descriptor in _STREAMS:
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free number is used (open(2)), so it is this one.
            os.open(os.devnull, os.O_RDWR)


def replace_streams() -> Stream:
    """Replace ``sys.stdout`` and ``sys.stderr``, and return the stream of standard output."""
    output, errors = Stream(1), Stream(2)
    sys.stdout = _text(output, sys.stdout, "strict")
    sys.stderr = _text(errors, sys.stderr, "backslashreplace")
    return output


def _text(stream: Stream, replaced: TextIO | None, errors: str) -> io.TextIOWrapper:
    """Return a text stream with the encoding of the one that it replaces.

    None means that the descriptor was closed when Python started; ``errors`` then treats characters
    that the encoding lacks.
    """
    return io.TextIOWrapper(
        io.BufferedWriter(stream),
        encoding=replaced.encoding if replaced else "utf-8",
        errors=replaced.errors if replaced else errors,
        line_buffering=stream.isatty() or stream.fileno() == 2,
    )


def run_command() -> str | int | None:
    """Run the command line with streams that never fail, and return the exit status.

    Raises:
        Stopped: a signal was received outside a command.
    """
    open_missing_streams()
    output = replace_streams()
    collect_rarely()
    # Further threads of numpy wait in loops, which take more processor time than they save.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    status: str | int | None = None
    if sys.argv[1:] == ["--version"]:
        # Without the imports of the command line, which take most of the time.
        print(f"fumehood, version {__version__}")
        return _flushed(output, status)
    from fumehood.cli.main import main

    try:
        main()
    except SystemExit as end:
        status = end.code
    ignore_stop_signals()
    return _flushed(output, status)


def _flushed(output: Stream, status: str | int | None) -> str | int | None:
    """Write what is buffered, and return the status: another one if output was lost."""
    sys.stdout.flush()
    if output.error is None:
        return status
    print(
        f"fumehood: standard output cannot be written: {output.error.strerror}; "
        "results of a run are stored: fumehood score DIR prints them again",
        file=sys.stderr,
    )
    return status or INFRA
