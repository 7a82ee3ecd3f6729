"""The service's side of episodes that run in separate processes."""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread, Timer
from typing import NamedTuple, Protocol

from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import InfraError, InputError, SpecError
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.trace import ModelExchange
from fumehood.gateway.settings import GatewaySettings, settings_to_line, without_keys
from fumehood.harness_modes.registry import open_outside, readable_paths
from fumehood.monitors.host import EpisodeMonitors, MonitorHost, serve_reviews
from fumehood.service.checked_messages import CONFIRMED_CHARACTERS_MAX, CheckedMessages
from fumehood.service.message_limits import MessageLimits
from fumehood.supervised.fork_server import Child, ForkServer, ServerProcess
from fumehood.supervised.frames import receive_bounded, receive_frame, send_frame
from fumehood.supervised.limits import Access, End, Limits
from fumehood.supervised.progress import Progress, is_running, read_progress
from fumehood.supervised.slow_messages import parsing
from fumehood.third_party.outside import Outside, answer_questions
from fumehood.wire.episode_channel import (
    BEGIN,
    close_to_bytes,
    message_from_bytes,
    opening_to_bytes,
)
from fumehood.wire.ports import (
    GRANTED_MS_MAX,
    MODELS_FIELD,
    MONITORS_FIELD,
    EpisodeMessage,
    Opened,
    SeatSockets,
    SpecRejected,
    TimeGranted,
)

ENTRY = "episode"
SPARES = 2
"""Processes that wait for the specification of an episode. Starting one takes longer than opening
an episode in it."""
MEMORY_BYTES_MAX = 1536 << 20
"""Private memory of one episode's process, with what it shares with the fork server."""
CPU_S_MAX = 3600
"""Processor time of one episode's process, over all its calls."""
PREFERRED_CPU_S = 1.0
"""Processor time beyond a share, until which the process of an episode runs before boxes."""
CLOSE_TIMEOUT_S = 10.0
"""Time for a process to close its episode; it needs milliseconds."""
CLOSE_CHECK_S = 2.0
"""Interval at which a process that closes its episode is checked."""
CLOSE_CPU_S = 1.0
"""Processor time for which a process may close its episode after ``CLOSE_TIMEOUT_S``, however long
it waits for a processor."""
LAST_MESSAGES_S = 120.0
"""Time for this service and the orchestrator to take the last messages of a process before it
counts as stuck."""
OPEN_TIMEOUT_S = 30.0
"""Time for a new process to confirm that it cannot open an episode."""
END_TIMEOUT_S = 10.0
"""Time from the end of a process's socket until the end of the process is reported."""
TRACE_SPARE_BYTES = 64 << 20
"""What the trace may need beyond its limit: the work that goes on while its seats are closed, and
the final state."""
EXCHANGE_BYTES = 512
"""Size of the other parts of a stored request and response."""
EXCHANGE_FACTOR, EXCHANGE_SPARE_BYTES = 4, 64 << 20
"""A process may report requests and responses of so many times the size that was sent or is
replayed, and so much more: the gateway writes requests anew."""
_SETTINGS = GatewaySettings()
EXCHANGE_BYTES_MAX = _SETTINGS.body_bytes_max + _SETTINGS.response_bytes_max + (1 << 20)
"""Size of the message with one request and its response, at most."""
REASON_CHARACTERS_MAX = 200
"""Part of the text of a rejection that a trace quotes."""
_STUCK = f"did not close its episode within {CLOSE_TIMEOUT_S:.0f} s"

OnOver = Callable[["ForkedEpisode"], object]


class ModelEvidence(Protocol):
    """What this service itself knows about the model requests of one process."""

    waited_ms: int
    """For how long at least one of them waited for a provider."""
    has_provider_failed: bool
    """Whether a check showed that a provider does not work."""
    passed_bytes: int
    """Size of the requests and responses."""


class ModelConnection(ModelEvidence, Protocol):
    """Sends the model requests of one process."""

    def limit(self, budgets: Mapping[str, Budget]) -> None:
        """Permit the model requests of an episode, within the budget of each seat."""
        ...


class NoModels:
    """The connection of a process that cannot send model requests."""

    waited_ms = 0
    has_provider_failed = False
    passed_bytes = 0

    def limit(self, budgets: Mapping[str, Budget]) -> None:
        """Do nothing."""


class _Process(NamedTuple):
    child: Child
    models: ModelConnection
    questions: socket.socket
    """Carries its questions to what it cannot reach."""
    reviews: socket.socket
    """Carries its questions to the monitors."""


class EpisodeProcesses:
    """Forks a process for each episode. Safe to use from several threads."""

    def __init__(
        self,
        server: ServerProcess | None,
        directory: Path,
        limits: MessageLimits,
        *,
        has_http: bool,
        helper: Path | None,
        models: GatewaySettings | None = None,
        monitors: MonitorHost | None = None,
    ) -> None:
        """Send the fork server its settings.

        Args:
            server: has the rights of the user who started this service, because each process gets
                its own user, and has imported what episodes need. None for a new interpreter.
            directory: for the folders of episodes.
            limits: limits of agents' messages and connections.
            has_http: whether seats have HTTP sockets.
            helper: the program that boxes see as ``bin/fumehood``; None for no program.
            models: settings of the gateway; None for no models. The keys stay here.
            monitors: the monitors of the run; None for none.
        """
        self._monitors = monitors
        settings: JsonObject = {
            "folder": str(directory),
            "limits": limits.to_json(),
            "http": has_http,
            "helper": str(helper) if helper else None,
            "models": settings_to_line(without_keys(models)) if models else None,
        }
        module = "fumehood.service.episode_process"
        self._trace_bytes_max = limits.seat.trace_bytes + TRACE_SPARE_BYTES
        self._spares = deque[tuple[Access, _Process]]()
        """Each with what it may reach."""
        self._serve_broker: Callable[[socket.socket], ModelConnection] | None = None
        self._server = ForkServer(
            {ENTRY: f"{module}:run_episode"},
            prepare=(f"{module}:prepare", settings),
            folder=directory,
            process=server,
            wait=False,
        )

    def start(self, serve_broker: Callable[[socket.socket], ModelConnection] | None = None) -> None:
        """Wait until the fork server can fork, and prepare the first processes.

        ``serve_broker`` sends the model requests of a process; None for no models.

        Raises:
            InfraError: the fork server does not start.
        """
        self._serve_broker = serve_broker
        self._server.wait_until_ready()
        self._prepare(Access(folder=True))

    def open(
        self,
        spec: EpisodeSpec,
        exchanges: Sequence[ModelExchange],
        on_over: OnOver,
        *,
        is_held: bool = False,
    ) -> ForkedEpisode:
        """Fork a process that hosts one episode; its sockets are listening.

        Args:
            spec: the episode.
            exchanges: recorded model requests with their responses, if models are replayed.
            on_over: called when the stream of messages has ended.
            is_held: messages of agents wait until :meth:`ForkedEpisode.begin`.

        Raises:
            SpecError: the specification cannot be hosted.
            InfraError: the process does not open the episode.
        """
        opening = opening_to_bytes(spec, exchanges, is_held=is_held)
        access = Access(folder=True, readable=readable_paths(spec))
        process, outside, monitors = self._served(spec, lambda: self._take(access))
        process.models.limit({seat.name: seat.budget for seat in spec.seats})
        try:
            return ForkedEpisode(
                spec,
                process.child,
                opening,
                on_over,
                self._trace_bytes_max,
                process.models,
                lambda: self._rejection(opening, access, spec),
                outside,
                len(opening),
                monitors,
            )
        except BaseException:
            release(process.child)
            raise
        finally:
            # The next episode probably has the same data source.
            self._prepare(access)

    def _served(
        self, spec: EpisodeSpec, take: Callable[[], _Process]
    ) -> tuple[_Process, Outside | None, EpisodeMonitors | None]:
        """Return a process whose questions to the data source and the monitors of an episode are
        answered, with both."""
        outside, monitors = open_outside(spec), self._reviewer(spec)
        try:
            process = take()
        except InfraError:
            if outside is not None:
                outside.close()
            if monitors is not None:
                monitors.release()
            raise
        _serve_questions(process.questions, outside)
        _serve_reviews(process.reviews, monitors)
        return process, outside, monitors

    def _rejection(self, opening: bytes, access: Access, spec: EpisodeSpec) -> SpecRejected | None:
        """Return the answer of a new process, which no agent reaches, if it rejects an episode."""
        try:
            process, _, _ = self._served(spec, lambda: self._fork(access))
        except (InfraError, InputError) as error:
            return SpecRejected("world", str(error))
        child = process.child
        try:
            child.wait_until_started()
            child.channel.settimeout(OPEN_TIMEOUT_S)
            send_frame(child.channel, opening)
            frame = receive_frame(child.channel)
            message = message_from_bytes(frame) if frame is not None else None
        except (OSError, InfraError):
            return None
        finally:
            release(child)
        return message if isinstance(message, SpecRejected) else None

    def _reviewer(self, spec: EpisodeSpec) -> EpisodeMonitors | None:
        names = spec.monitors if spec.recorded_decisions is None else ()
        if not names:
            return None
        if self._monitors is None:
            raise SpecError(MONITORS_FIELD, "the service was started without monitors")
        return self._monitors.reviewer(names)

    def _take(self, access: Access) -> _Process:
        """Return a process for an episode, if possible one that is prepared."""
        with suppress(IndexError):
            while True:
                prepared_for, process = self._spares.popleft()
                if prepared_for == access and process.child.wait(0) is None:
                    with suppress(InfraError):
                        process.child.wait_until_started()
                        return process
                _discard(process)
        process = self._fork(access)
        process.child.wait_until_started()
        return process

    def _prepare(self, access: Access) -> None:
        with suppress(InfraError):
            while len(self._spares) < SPARES:
                self._spares.append((access, self._fork(access)))

    def _fork(self, access: Access) -> _Process:
        limits = Limits(
            memory_bytes=MEMORY_BYTES_MAX,
            cpu_s=CPU_S_MAX,
            open_files=1024,
            preferred_cpu_s=PREFERRED_CPU_S,
        )
        with ExitStack() as stack:
            questions, process_end = socket.socketpair()
            files = [stack.enter_context(process_end).fileno()]
            reviews, process_end = socket.socketpair()
            files.append(stack.enter_context(process_end).fileno())
            models: ModelConnection = NoModels()
            if self._serve_broker is not None:
                broker_end, process_end = socket.socketpair()
                files.append(stack.enter_context(process_end).fileno())
                models = self._serve_broker(broker_end)
            try:
                child = self._server.start(ENTRY, {}, limits, access, files, wait=False)
            except BaseException:
                questions.close()
                reviews.close()
                raise
            return _Process(child, models, questions, reviews)

    def stop(self) -> None:
        """End every process and the fork server."""
        for _, process in self._spares:
            _discard(process)
        self._server.close()


def _serve_questions(questions: socket.socket, outside: Outside | None) -> None:
    if outside is None:
        questions.close()
    else:
        Thread(target=answer_questions, args=(questions, outside), daemon=True).start()


def _serve_reviews(reviews: socket.socket, monitors: EpisodeMonitors | None) -> None:
    if monitors is None:
        reviews.close()
    else:
        serve_reviews(reviews, monitors)


def _discard(process: _Process) -> None:
    release(process.child)
    process.questions.close()
    process.reviews.close()


class ForkedEpisode:
    """One episode in its own process; implements the wire's ``EpisodePort``. Thread-safe."""

    def __init__(
        self,
        spec: EpisodeSpec,
        child: Child,
        opening: bytes,
        on_over: OnOver,
        trace_bytes_max: int,
        models: ModelEvidence | None = None,
        reject: Callable[[], SpecRejected | None] = lambda: None,
        outside: Outside | None = None,
        replayed_bytes: int = 0,
        monitors: EpisodeMonitors | None = None,
    ) -> None:
        """Open the episode in the process, and wait until its sockets are listening.

        Args:
            spec: the episode.
            child: a new process.
            opening: the specification as bytes.
            on_over: called when the stream of messages has ended.
            trace_bytes_max: size of all events, each with ``RECORD_BYTES``. A process that sends
                more is killed.
            models: what this service knows about the process's model requests; None for no models.
            reject: opens the episode in a new process; returns its rejection, if it rejects it.
            outside: what the process cannot reach itself; None for nothing.
            replayed_bytes: size of recorded model requests and responses.
            monitors: the monitors of the episode; None for none.

        Raises:
            SpecError: the specification cannot be hosted.
            InfraError: the process ended.
        """
        self.episode_id = spec.episode_id
        self.child = child
        self._spec = spec
        self._on_over = on_over
        self._checked = CheckedMessages(spec, trace_bytes_max)
        self._models = models or NoModels()
        self._reject = reject
        self._outside = outside
        self._replayed_bytes = replayed_bytes
        self._monitors = monitors
        self._exchanged_bytes = 0
        self._granted_ms = 0
        self._closing: Timer | None = None
        self._closed_s = 0.0
        """The monotonic time at which the process was asked to close."""
        self._is_over = False
        self._awaits_message = True
        """Whether this service has passed on everything that it received from the process."""
        self._own_fault = ""
        """Why this service killed the process; empty if the process was not the cause."""
        self._opened = self._open(opening)

    def messages(self) -> Iterator[EpisodeMessage]:
        """Yield the sockets, then the messages until the episode is closed.

        If the process causes its own end before that, the trace is completed.
        """
        try:
            yield self._opened
            while (message := self._receive()) is not None:
                yield from self._believed(message)
            # The process and its folder are gone when the stream ends.
            end = self.child.wait(END_TIMEOUT_S) or self._end_silent()
            if not self._checked.is_complete:
                yield from self._completed(end)
        finally:
            self._is_over = True
            if self._closing is not None:
                self._closing.cancel()
            release(self.child)
            self._on_over(self)

    def abandon(self) -> None:
        """End the process and ``messages``, without an end record."""
        self.child.kill()

    def begin(self) -> None:
        """Let the messages of agents through, if the episode was held."""
        with suppress(OSError):  # The process has ended, which the stream reports.
            send_frame(self.child.channel, BEGIN)

    def close(self, *, timed_out: bool) -> None:
        """Ask the process to end all work and the trace; ``messages`` yields the rest."""
        self._closed_s = time.monotonic()
        self._check_later(read_progress(self.child.pid), self._closed_s)
        if self._monitors is not None:
            self._monitors.close()
        with suppress(OSError):  # The process has ended, which the stream reports.
            send_frame(self.child.channel, close_to_bytes(timed_out=timed_out))

    def _believed(self, message: EpisodeMessage) -> Iterator[EpisodeMessage]:
        """Yield what this service can confirm: an agent may have taken over the process."""
        match message:
            case TimeGranted(seat, granted_ms):
                monitored_ms = self._monitors.waited_ms if self._monitors else 0
                waited_ms = min(self._models.waited_ms + monitored_ms, GRANTED_MS_MAX)
                believed_ms = min(granted_ms, waited_ms - self._granted_ms)
                if believed_ms > 0:
                    self._granted_ms += believed_ms
                    yield TimeGranted(seat, believed_ms)
            case SpecRejected(field, reason):
                short = SpecRejected(field, reason[:CONFIRMED_CHARACTERS_MAX])
                confirmed = short if self._is_confirmed(field) else self._reject()
                if confirmed is not None:
                    self._checked.is_complete = True
                    yield confirmed
                    return
                text = f"{field}: {reason}"[:REASON_CHARACTERS_MAX]
                self._own_fault = f"rejected its task after a message of an agent: {text}"
            case ModelExchange(request=request, response=response, content_type=content_type):
                size_bytes = len(request) + len(response) + len(content_type)
                self._exchanged_bytes += size_bytes + EXCHANGE_BYTES
                passed_bytes = self._models.passed_bytes + self._replayed_bytes
                if self._exchanged_bytes > EXCHANGE_FACTOR * passed_bytes + EXCHANGE_SPARE_BYTES:
                    # They are stored on the disk, in the mode ``record`` without another limit.
                    self._own_fault = "reported model requests that were not sent"
                    self.child.kill()
                    return
                yield message
            case _:
                yield message

    def _is_confirmed(self, field: str) -> bool:
        if field == MODELS_FIELD:
            return self._models.has_provider_failed
        if field == MONITORS_FIELD:
            return self._monitors is not None and self._monitors.has_failed
        return self._outside is not None and self._outside.has_failed

    def _open(self, opening: bytes) -> Opened:
        with suppress(OSError):  # The process has ended, which the stream reports.
            send_frame(self.child.channel, opening)
        message = self._receive()
        match message:
            case Opened():
                return self._opened_in_own_folder(message)
            case SpecRejected(field, reason):
                raise SpecError(field, reason)
        end = self.child.wait(END_TIMEOUT_S)
        raise InfraError(f"the process of an episode {end or 'does not open its episode'}")

    def _opened_in_own_folder(self, opened: Opened) -> Opened:
        """Fix the folders of the seats before an agent sends its first message.

        Otherwise the process could replace one by a link, before the box of that seat starts.
        """
        folder = self.child.folder
        if folder is None:
            return opened
        self.child.seal_folder()
        seats = [seat.name for seat in self._spec.seats]
        return Opened(tuple(SeatSockets(name, str(folder / name)) for name in seats))

    def _receive(self) -> EpisodeMessage | None:
        try:
            self._awaits_message = True
            # The trace, or the final state alone, can be one message of the size of its limit.
            bytes_max = max(self._checked.bytes_left, EXCHANGE_BYTES_MAX)
            frame = receive_bounded(self.child.channel, bytes_max)
            if frame is None:
                return None
            self._awaits_message = False
            with parsing(len(frame)):
                message = message_from_bytes(frame)
                self._checked.add(message)
        except OSError:
            return None
        except (ValueError, RecursionError) as error:
            # Messages of an agent may have taken over the process.
            self._own_fault = f"sent a message that is not valid: {error}"
            self.child.kill()
            return None
        return message

    def _end_silent(self) -> End | None:
        """End a process that closed its connection and goes on; return how it ended."""
        if is_running(self.child.pid):
            self._own_fault = self._own_fault or "closed its connection and did not end"
        self.child.kill()
        return self.child.wait(CLOSE_TIMEOUT_S)

    def _completed(self, end: End | None) -> Iterator[EpisodeMessage]:
        if self._own_fault or (end is not None and end.is_own_fault):
            yield from self._checked.complete(
                f"the process of the episode {self._own_fault or end}"
            )

    def _check_later(self, before: Progress | None, since: float) -> None:
        if before is not None:
            self._closing = Timer(CLOSE_CHECK_S, self._kill_if_stuck, (before, since))
            self._closing.daemon = True
            self._closing.start()

    def _kill_if_stuck(self, before: Progress, since: float) -> None:
        now = read_progress(self.child.pid)
        if now is None or self._is_over:
            return
        if not self._awaits_message and time.monotonic() - self._closed_s < LAST_MESSAGES_S:
            # The process may be waiting until this service, or the orchestrator, takes a message.
            self._check_later(now, time.monotonic())
            return
        if not is_stuck(before, now, time.monotonic() - since):
            self._check_later(before, since)
            return
        self._own_fault = _STUCK
        self.child.kill()


def is_stuck(before: Progress, now: Progress, closing_s: float) -> bool:
    """Return whether a process itself is the reason that it does not close its episode.

    A process that is stopped, or waits for a processor, is not. If it got enough processor time, it
    is, however busy the machine is: otherwise an agent could lose an attempt with a call that never
    ends.

    Args:
        before: the progress of the process when it was asked to close.
        now: its progress.
        closing_s: time in between, seconds.
    """
    if now.is_stopped or closing_s < CLOSE_TIMEOUT_S:
        return False
    is_starved = now.waited_s(before) > closing_s / 2
    return not is_starved or now.ran_s - before.ran_s > CLOSE_CPU_S


def release(child: Child) -> None:
    """Kill a process if it has not ended, and close the connection to it."""
    child.kill()
    child.channel.close()
