"""Workers of this process at the seats of one episode: each has a session on its seat's socket."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path

from fumehood.core.outcome import Infra, InfraKind
from fumehood.engines.engine import BoxOutput, Exit, ExitReason
from fumehood_agent.errors import ServiceUnavailable
from fumehood_agent.session import Session

SeatWorker = Callable[[Session], bool]
"""Works at a seat; returns whether the seat's wall time is used up."""


class SeatSessions:
    """Runs workers instead of boxes, for a replay or an agent under test. Not thread-safe."""

    def __init__(self, workers: Mapping[str, SeatWorker], socket_dirs: Mapping[str, Path]) -> None:
        """Create the sessions' runner; :meth:`play` starts the workers.

        Args:
            workers: one per seat, by its name.
            socket_dirs: folder of each seat's sockets.
        """
        self.infra: Infra | None = None
        """The failure of the infrastructure; None if there was none."""
        self.timed_out = False
        """Whether a seat's wall time was used up."""
        self.exit: Exit | None = Exit(0, ExitReason.EXITED)
        self.output: BoxOutput | None = None
        self._workers = workers
        self._socket_dirs = socket_dirs
        # In a conversation a call waits for its seat's turn, so each seat needs a thread.
        self._threads = ThreadPoolExecutor(len(socket_dirs), "seat")
        self._futures: list[Future[tuple[bool, bool]]] = []

    def play(self, wall_ms: int) -> None:
        """Return when all work has ended, or one worker cannot continue.

        Args:
            wall_ms: not used; a worker decides when its time is over.
        """
        self._futures = [self._threads.submit(self._work, seat) for seat in self._socket_dirs]
        for future in as_completed(self._futures):
            if future.exception() is not None:
                return
            timed_out, ended = future.result()
            self.timed_out = timed_out
            if timed_out or not ended:
                return

    def wait_for_end(self) -> None:
        """Wait for every worker; the episode must have been closed.

        Raises:
            Exception: a worker raised it.
        """
        self._threads.shutdown()
        for future in self._futures:
            error = future.exception()
            if isinstance(error, ServiceUnavailable):
                self.infra = Infra(InfraKind.SERVICE, str(error))
            elif error is not None:
                raise error

    def _work(self, seat: str) -> tuple[bool, bool]:
        with Session(self._socket_dirs[seat] / "grpc.sock") as session:
            timed_out = self._workers[seat](session)
            return timed_out, session.ended
