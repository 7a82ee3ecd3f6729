"""One attempt at one episode, from opening to closing: a service, a box, a trace."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import InfraError, SpecError
from fumehood.core.ledger import BudgetKind
from fumehood.core.outcome import Infra, InfraKind
from fumehood.core.trace import ModelExchange, Record
from fumehood.engines.engine import (
    BoxOutput,
    BoxSpec,
    Engine,
    Exit,
    ExitReason,
    Image,
    Limits,
    Mount,
)
from fumehood.orchestrator.seat_boxes import SeatBoxes
from fumehood.orchestrator.service_pool import ServicePool
from fumehood.orchestrator.trace_receiver import TraceReceiver
from fumehood.wire.control_client import ControlClient
from fumehood.wire.ports import EpisodeMessage, InlineAgent, Opened, SpecRejected

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
    others: Mapping[str, BoxPlan] = field(default_factory=dict)
    """By seat, the boxes of those who are not the agent: a simulated user, say."""

    def at(self, seat: str) -> BoxPlan:
        """Return the plan for the box at a seat."""
        return self.others.get(seat, self)

    def box(self, socket_dir: Path, *further: str) -> BoxSpec:
        """Return the box to start.

        Args:
            socket_dir: folder of its seat's sockets on this host.
            further: arguments after those of the plan.
        """
        return BoxSpec(
            image=self.image,
            socket_dir=socket_dir,
            arguments=(*self.arguments, *further),
            mounts=self.mounts,
            limits=self.limits,
            labels=self.labels,
        )


@dataclass(frozen=True, slots=True)
class InlinePlan:
    """The built-in agents that play an episode inside the service."""

    agents: tuple[InlineAgent, ...]
    """One per seat."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of it."""

    records: tuple[Record, ...]
    """The trace, as far as it arrived."""
    exit: Exit | None
    """How the agent's process ended, of several that which broke off; None when it had to be stopped."""
    output: BoxOutput | None
    """What the boxes printed; None when there was none."""
    infra: Infra | None
    """What failed on our side; None when nothing did."""
    wall_ms: int
    """From opening to closing, the start of the box included."""
    exchanges: tuple[ModelExchange, ...] = ()
    """What models were asked and answered, where that is recorded."""


def attempt_episode(
    spec: EpisodeSpec,
    engine: Engine,
    box_plan: BoxPlan,
    pool: ServicePool,
    recorded: Sequence[ModelExchange] = (),
) -> Attempt:
    """Open the episode, run a box for each of its seats, close all of them.

    A failure of ours is part of the returned attempt.

    Args:
        spec: the episode.
        engine: makes the boxes.
        box_plan: what they are like.
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


def attempt_inline(spec: EpisodeSpec, plan: InlinePlan, pool: ServicePool) -> Attempt:
    """Play one episode inside a service of a pool that was started for this.

    A failure of ours is part of the returned attempt.
    """
    started = time.monotonic()
    try:
        with pool.lease() as client:
            timeout_s = wall_ms_of(spec) / 1000 + JOIN_TIMEOUT_S
            played = client.play_inline(spec, plan.agents, timeout_s)
    except SpecError as error:
        return failed(Infra(InfraKind.TASK, str(error)), started)
    except InfraError as error:
        return failed(Infra(InfraKind.SERVICE, str(error)), started)
    if played.rejected is not None:
        reason = f"{played.rejected.field}: {played.rejected.reason}"
        return failed(Infra(InfraKind.TASK, reason), started)
    error_text = played.agent_error.encode()
    return Attempt(
        played.records,
        Exit(played.exit_status, ExitReason.EXITED),
        BoxOutput(b"", error_text, 0, len(error_text)),
        None,
        _ms_since(started),
    )


def _attempt(
    spec: EpisodeSpec,
    engine: Engine,
    box_plan: BoxPlan,
    client: ControlClient,
    messages: Iterator[EpisodeMessage],
    started: float,
) -> Attempt:
    match next(messages, None):
        case Opened(sockets):
            socket_dir = {seat.name: Path(seat.directory) for seat in sockets}
        case SpecRejected(where, reason):
            return failed(Infra(InfraKind.TASK, f"{where}: {reason}"), started)
        case other:
            return failed(Infra(InfraKind.SERVICE, f"the service opened with {other!r}"), started)
    watcher = TraceReceiver(messages, tuple(socket_dir), in_turn=spec.conversation is not None)
    watcher.start()
    boxes = SeatBoxes(
        engine, {name: box_plan.at(name).box(socket_dir[name]) for name in socket_dir}, watcher
    )
    try:
        boxes.play(wall_ms_of(spec))
    finally:
        # When the service is gone, the watcher knows.
        with suppress(InfraError):
            client.close_episode(spec.episode_id, timed_out=boxes.timed_out)
    watcher.join(JOIN_TIMEOUT_S)
    boxes.leave()
    return Attempt(
        tuple(watcher.records),
        boxes.exit,
        boxes.output,
        watcher.infra or boxes.infra or _lost_player(boxes, box_plan),
        _ms_since(started),
        tuple(watcher.exchanges),
    )


def _lost_player(boxes: SeatBoxes, plan: BoxPlan) -> Infra | None:
    """Return what is ours to answer for: that somebody left whom the agent had to talk to."""
    name = boxes.broke_off
    if name is None or name not in plan.others or boxes.exit is None:
        return None
    return Infra(
        InfraKind.COUNTERPART,
        f"seat {name}: {boxes.exit.reason.value}, exit status {boxes.exit.code}",
    )


def wall_ms_of(spec: EpisodeSpec) -> int:
    """Return for how long an episode may go on, milliseconds: of several seats, one works at a time."""
    return sum(seat.budget[BudgetKind.WALL_MS] or 0 for seat in spec.seats)


def failed(infra: Infra, started: float) -> Attempt:
    """Return an attempt of which nothing came.

    Args:
        infra: what failed on our side.
        started: when the attempt began, seconds of the monotonic clock.
    """
    return Attempt((), None, None, infra, _ms_since(started))


def _ms_since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
