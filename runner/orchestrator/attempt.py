"""One attempt at one episode, from opening to closing: a service, a box, a trace."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread, Timer

from runner.core.chain import Record
from runner.core.episode_spec import EpisodeSpec
from runner.core.errors import InfraError, SpecError
from runner.core.model_calls import ModelExchange
from runner.core.outcome import Infra, InfraKind
from runner.engines.engine import Box, BoxOutput, BoxSpec, Engine, Exit, Image, Limits, Mount
from runner.orchestrator.service_pool import ServicePool
from runner.wire.control_client import ControlClient
from runner.wire.ports import (
    MODELS_FIELD,
    EpisodeMessage,
    Opened,
    Records,
    SeatWorkEnded,
    TimeGranted,
    Unhostable,
)

GRACE_S = 2.0
"""So long may a box go on after its seat's work has ended."""
JOIN_TIMEOUT_S = 30.0
"""From closing an episode until its sealed trace must have arrived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxPlan:
    """How the agent's box is started."""

    image: Image
    limits: Limits
    arguments: tuple[str, ...] = ()
    mounts: tuple[Mount, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    on_lane: bool = False
    """Whether its process may go on to the next episode: for trusted agents that keep nothing."""

    def box(self, gloves: Path, *further: str) -> BoxSpec:
        """Return the box to start.

        Args:
            gloves: folder of its seat's sockets on this host.
            further: arguments after those of the plan.
        """
        return BoxSpec(
            image=self.image,
            gloves=gloves,
            arguments=(*self.arguments, *further),
            mounts=self.mounts,
            limits=self.limits,
            labels=self.labels,
        )


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of it."""

    records: tuple[Record, ...]
    """The trace, as far as it arrived."""
    exit: Exit | None
    """How the agent's process ended; None when it had to be stopped."""
    output: BoxOutput | None
    """What the box printed; None when there was no box."""
    infra: Infra | None
    """What failed on our side; None when nothing did."""
    wall_ms: int
    """From opening to closing, the start of the box included."""
    exchanges: tuple[ModelExchange, ...] = ()
    """What models were asked and answered, where that is recorded."""


class _Watcher:
    """Reads an episode's stream in a thread of its own."""

    def __init__(self, messages: Iterator[EpisodeMessage]) -> None:
        self.records: list[Record] = []
        self.exchanges: list[ModelExchange] = []
        self.granted_ms = 0
        """Wall time that our side has used up so far."""
        self.infra: Infra | None = None
        self._box: Box | None = None
        self._box_must_go = False
        self._messages = messages
        self._timer: Timer | None = None
        self._thread = Thread(target=self._read, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def watch_over(self, box: Box) -> None:
        """Stop this box when its seat's work has ended or our side has failed."""
        self._box = box
        # What ends a box may have happened while it was starting.
        if self._box_must_go:
            box.kill()

    def join(self) -> None:
        self._thread.join(JOIN_TIMEOUT_S)
        if self._timer is not None:
            self._timer.cancel()
        if self._thread.is_alive():
            self.infra = Infra(InfraKind.SERVICE, f"the trace was not sealed within {JOIN_TIMEOUT_S:.0f} s")

    def _read(self) -> None:
        try:
            for message in self._messages:
                self._take(message)
        except InfraError as error:
            self.infra = Infra(InfraKind.SERVICE, str(error))
        # However the episode ended, its agent has nobody to talk to any more.
        self._end_box()

    def _take(self, message: EpisodeMessage) -> None:
        match message:
            case Records(records):
                self.records.extend(records)
            case SeatWorkEnded():
                self._timer = Timer(GRACE_S, self._end_box)
                self._timer.daemon = True
                self._timer.start()
            case Unhostable(where, reason):
                kind = InfraKind.MODELS if where == MODELS_FIELD else InfraKind.TASK
                self.infra = Infra(kind, f"{where}: {reason}")
            case ModelExchange():
                self.exchanges.append(message)
            case TimeGranted(_, granted_ms):
                self.granted_ms += granted_ms
            case Opened():
                pass

    def _end_box(self) -> None:
        self._box_must_go = True
        if self._box is not None:
            self._box.kill()


def attempt_episode(
    spec: EpisodeSpec,
    engine: Engine,
    box_plan: BoxPlan,
    pool: ServicePool,
    recorded: Sequence[ModelExchange] = (),
) -> Attempt:
    """Open the episode, run the agent's box against it, close both.

    A failure of ours is part of the returned attempt.

    Args:
        spec: one seat's episode.
        engine: makes the box.
        box_plan: what the box is like.
        pool: lends the service.
        recorded: what models answered before, where they are replayed.

    Raises:
        InputError: no box can be started from what the user named.
    """
    started = time.monotonic()
    try:
        with pool.lease() as client:
            messages = client.open_episode(spec, recorded)
            return _attempt(spec, engine, box_plan, client, messages, started)
    except SpecError as error:
        return failed(Infra(InfraKind.TASK, str(error)), started)
    except InfraError as error:
        return failed(Infra(InfraKind.SERVICE, str(error)), started)


def _attempt(
    spec: EpisodeSpec,
    engine: Engine,
    box_plan: BoxPlan,
    client: ControlClient,
    messages: Iterator[EpisodeMessage],
    started: float,
) -> Attempt:
    match next(messages, None):
        case Opened(seats):
            gloves = Path(seats[0].directory)
        case Unhostable(where, reason):
            return failed(Infra(InfraKind.TASK, f"{where}: {reason}"), started)
        case other:
            return failed(Infra(InfraKind.SERVICE, f"the service opened with {other!r}"), started)
    watcher = _Watcher(messages)
    watcher.start()
    ended: Exit | None = None
    output: BoxOutput | None = None
    infra: Infra | None = None
    timed_out = False
    try:
        ended, output = _run_box(engine, box_plan.box(gloves), wall_ms_of(spec), watcher)
        timed_out = ended is None
    except InfraError as error:
        infra = Infra(InfraKind.ENGINE, str(error))
    finally:
        # When the service is gone, the watcher knows.
        with suppress(InfraError):
            client.close_episode(spec.episode_id, timed_out=timed_out)
    watcher.join()
    return Attempt(
        tuple(watcher.records),
        ended,
        output,
        watcher.infra or infra,
        _ms_since(started),
        tuple(watcher.exchanges),
    )


def _run_box(
    engine: Engine, box_spec: BoxSpec, wall_ms: int, watcher: _Watcher
) -> tuple[Exit | None, BoxOutput]:
    """Start a box and wait for its end, at most its time; whatever happens, the box is removed."""
    box = engine.start(box_spec)
    try:
        watcher.watch_over(box)
        ended = _wait(box, wall_ms, watcher)
    finally:
        output = box.close()
    return ended, output


def _wait(box: Box, wall_ms: int, watcher: _Watcher) -> Exit | None:
    """Wait for the end of a box, for as long as it has, and then for as long as it was kept waiting."""
    ended, given_ms = box.wait(wall_ms), 0
    while ended is None and watcher.granted_ms > given_ms:
        more_ms = watcher.granted_ms - given_ms
        given_ms += more_ms
        ended = box.wait(more_ms)
    return ended


def wall_ms_of(spec: EpisodeSpec) -> int:
    """Return for how long an episode may go on, milliseconds."""
    bounds = [seat.budget.wall_ms for seat in spec.seats if seat.budget.wall_ms is not None]
    return max(bounds)


def failed(infra: Infra, started: float) -> Attempt:
    """Return an attempt of which nothing came.

    Args:
        infra: what failed on our side.
        started: when the attempt began, seconds of the monotonic clock.
    """
    return Attempt((), None, None, infra, _ms_since(started))


def _ms_since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
