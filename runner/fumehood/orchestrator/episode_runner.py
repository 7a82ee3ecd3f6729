"""Runs one episode, from its opening to its complete trace.

The plan states how the agents are reached: in boxes, inline inside the service, or by workers of
this process that use the seats' sockets, such as a replay.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import InfraError, SpecError
from fumehood.core.ledger import BudgetKind
from fumehood.core.outcome import Infra, InfraKind
from fumehood.core.trace import ModelExchange, Record, event_of
from fumehood.engines.engine import (
    BoxOutput,
    BoxSpec,
    BoxStarter,
    Exit,
    ExitReason,
    Image,
    Limits,
    Mount,
    Workspace,
)
from fumehood.orchestrator.episode_time import AwaitSlot, EpisodeTime
from fumehood.orchestrator.models import ModelRun
from fumehood.orchestrator.seat_boxes import SeatBox, SeatBoxes, counterpart_failure
from fumehood.orchestrator.service_pool import ServicePool
from fumehood.orchestrator.trace_receiver import GRACE_S, TraceReceiver, rejection_kind
from fumehood.orchestrator.workspaces.episode_boxes import EpisodeWorkspace
from fumehood.orchestrator.workspaces.plans import WorkspacePlan
from fumehood.scorers.verdict import Verdict
from fumehood.wire.control_client import ControlClient, OpenSeats
from fumehood.wire.ports import InlineAgent, PlayedInline
from fumehood_agent.errors import ServiceUnavailable
from fumehood_agent.session import Session

SeatWorker = Callable[[Session], bool]
"""Works at a seat; returns whether the seat's wall time is used up."""

REOPEN_TIMEOUT_S = 20.0
"""How long an attempt waits until the service has closed an earlier attempt at the episode."""
REOPEN_INTERVAL_S = 0.2
JOIN_TIMEOUT_S = 30.0
"""How long nothing of a trace may arrive after its episode was closed, until the attempt fails."""


STOPPED_MS_MIN = 1_000
"""Shorter stops do not explain that an agent left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxPlan:
    """Boxes for the seats of an episode: one for the tested agent, one for each counterpart."""

    engine: BoxStarter
    image: Image
    limits: Limits
    arguments: tuple[str, ...] = ()
    mounts: tuple[Mount, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    counterparts: Mapping[str, BoxPlan] = field(default_factory=dict)
    """Boxes of the seats that are not the tested agent's, such as a simulated user's, by seat."""
    grace_s: float = GRACE_S
    """How long a box may run after its seat's work has ended, seconds."""
    workspace: WorkspacePlan | None = None
    """The workspace of the episode; None for a world without one."""

    def box(self, seat: str, socket_dir: Path) -> BoxSpec:
        """Return the box to start for a seat.

        Args:
            seat: its name.
            socket_dir: folder of the seat's sockets on this host.
        """
        plan = self.counterparts.get(seat, self)
        return BoxSpec(
            image=plan.image,
            socket_dir=socket_dir,
            arguments=plan.arguments,
            mounts=plan.mounts,
            limits=plan.limits,
            labels=plan.labels,
            workspace=Workspace(terminals=self.workspace.terminals)
            if self.workspace and self.workspace.agent
            else None,
        )


@dataclass(frozen=True, slots=True)
class InlinePlan:
    """Built-in agents that play inside the service."""

    agents: tuple[InlineAgent, ...]
    """One per seat."""
    counterparts: frozenset[str] = frozenset()
    """Seats that are not the tested agent's."""


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """Workers in threads of this process, such as a replay."""

    workers: Mapping[str, SeatWorker]
    """By seat."""
    workspace: WorkspacePlan | None = None
    """The workspace of the episode; None for a world without one."""


OnExchange = Callable[[ModelExchange], None]

EpisodePlan = BoxPlan | InlinePlan | SessionPlan

InlineEpisode = tuple[EpisodeSpec, InlinePlan]


@dataclass(frozen=True, slots=True)
class Attempt:
    """The result of one attempt at an episode."""

    records: tuple[Record, ...]
    """The trace, as far as it arrived."""
    exit: Exit | None
    """How the agent's process ended; with several seats, the process that ended early, if any, as
    ``SeatExit``. None if it had to be stopped."""
    output: BoxOutput | None
    """The output of the agents; None if no agent ran."""
    infra: Infra | None
    """The failure of the infrastructure; None if there was none."""
    wall_ms: int
    """Time from opening to closing, including the start of boxes that are not started in
    advance."""
    verdict: Verdict | None = None
    """The verdict of the verifier; None without a workspace, and in a replay."""
    keep: Callable[[bool | None], None] = lambda _: None
    """Stores the model requests and responses of this attempt if the run keeps those of episodes
    with this success; may raise ``InfraError``."""


Play = Callable[
    [EpisodeSpec, EpisodePlan, Sequence[ModelExchange], OnExchange, AwaitSlot | None], Attempt
]
"""Plays one episode, such as :func:`attempt_episode` with a pool. Arguments: the episode, how its
agents are reached, earlier model responses, what receives new ones, and the slot that boxes wait
for."""

PlayInline = Callable[[Sequence[InlineEpisode]], list[Attempt]]
"""Plays several short episodes, as :func:`attempt_inline` with a pool."""


class EpisodeRunner:
    """Attempts the episodes of a run. Safe to use from several threads."""

    def __init__(self, play: Play, play_inline: PlayInline, models: ModelRun | None = None) -> None:
        """Create the runner.

        Args:
            play: plays one episode; called from several threads.
            play_inline: plays several short episodes; called from several threads.
            models: the run's models; None for a run without models.
        """
        self._play = play
        self._play_inline = play_inline
        self._models = models

    @classmethod
    def with_services(cls, pool: ServicePool, models: ModelRun | None = None) -> EpisodeRunner:
        """Return a runner that plays on this machine.

        Args:
            pool: lends services.
            models: the run's models; None for a run without models.
        """
        return cls(
            lambda spec, plan, *more: attempt_episode(spec, plan, pool, *more),
            lambda episodes: attempt_inline(episodes, pool),
            models,
        )

    def attempt(
        self, spec: EpisodeSpec, plan: EpisodePlan, await_slot: AwaitSlot | None = None
    ) -> Attempt:
        """Attempt one episode. An infrastructure failure is part of the result.

        Args:
            spec: the episode.
            plan: how its agents are reached.
            await_slot: called when the first box is started; None if the episode begins at once.

        Raises:
            InputError: no box can be started from the agent that the user named.
        """
        if self._models is None:
            return self._play(spec, plan, (), lambda _: None, await_slot)
        # The model budgets are part of the trace, which does not depend on the engine.
        spec = self._models.bounded(spec)
        recorded = self._models.recorded(spec)
        recording = self._models.recording(spec)
        add = partial(self._models.add, recording)
        attempt = self._play(spec, plan, recorded, add, await_slot)
        return replace(attempt, keep=partial(self._models.keep, recording))

    def attempt_all(self, episodes: Sequence[tuple[EpisodeSpec, EpisodePlan]]) -> list[Attempt]:
        """Attempt several episodes; those of one group are played together if all are inline.

        Raises:
            InputError: as :meth:`attempt`.
        """
        inline = [(spec, plan) for spec, plan in episodes if isinstance(plan, InlinePlan)]
        if len(inline) < len(episodes) or len(inline) == 1 or self._models is not None:
            return [self.attempt(spec, plan) for spec, plan in episodes]
        return self._play_inline(inline)


def attempt_episode(
    spec: EpisodeSpec,
    plan: EpisodePlan,
    pool: ServicePool,
    recorded: Sequence[ModelExchange] = (),
    on_exchange: OnExchange = lambda _: None,
    await_slot: AwaitSlot | None = None,
) -> Attempt:
    """Open the episode, let its agents work, close it and return the trace.

    An infrastructure failure is part of the result.

    Args:
        spec: the episode.
        plan: how its agents are reached. An inline plan needs a pool of inline services.
        pool: lends the service.
        recorded: earlier model responses, in a replay of models.
        on_exchange: receives model requests with their responses; must not raise.
        await_slot: called when the first box is started; None if the episode begins at once.

    Raises:
        InputError: no box can be started from the agent that the user named.
        Exception: a worker of a session plan raised it.
    """
    started = time.monotonic()
    try:
        if isinstance(plan, InlinePlan):
            with pool.lease() as client:
                return _attempt_inline(spec, plan, client, started)
        if plan.workspace is None:
            with pool.lease() as client:
                seats = _open_seats(client, spec, recorded, is_held=await_slot is not None)
                begin = partial(client.begin_episode, spec.episode_id)
                times = EpisodeTime(started, pool.stalls, await_slot, begin)
                return _attempt_over_sockets(spec, plan, client, seats, times, on_exchange)
        with EpisodeWorkspace(plan.workspace, lambda: pool.is_abandoned) as workspace:
            try:
                with pool.lease() as client:
                    spec = workspace.add_to(spec)
                    seats = _open_seats(client, spec, recorded)
                    times = EpisodeTime(started, pool.stalls)
                    attempt = _attempt_over_sockets(
                        spec, plan, client, seats, times, on_exchange, workspace
                    )
            except InfraError:
                if workspace.infra is None:
                    raise
                return failed_attempt(workspace.infra, started)
            if attempt.infra is None and isinstance(plan, BoxPlan):
                attempt = replace(attempt, verdict=workspace.verify(_answer(attempt)))
        return replace(attempt, infra=workspace.infra or attempt.infra)
    except SpecError as error:
        return failed_attempt(Infra(rejection_kind(error.field), str(error)), started)
    except InfraError as error:
        return failed_attempt(Infra(InfraKind.SERVICE, str(error)), started)


def _answer(attempt: Attempt) -> str | None:
    """Return the answer of the first seat; None if it submitted none.

    Other events are not parsed: they can take 50 times the memory of their text.
    """
    answers: dict[str, str | None] = {}
    for record in attempt.records:
        if '"seat_ended"' in record.event_json:
            match event_of(record.event_json):
                case {"kind": "seat_ended", "seat": str(seat), "end": dict(end)}:
                    answer = end.get("answer")
                    answers[seat] = answer if isinstance(answer, str) else None
    return next(iter(answers.values()), None)


def attempt_inline(episodes: Sequence[InlineEpisode], pool: ServicePool) -> list[Attempt]:
    """Play several short episodes inside one service, and return their attempts in order.

    If one of them fails, each is attempted by itself.

    Args:
        episodes: their specifications and plans.
        pool: lends an inline service.
    """
    wall_s = max(wall_ms_of(spec) for spec, _ in episodes) / 1000
    try:
        with pool.lease() as client:
            requests = [(spec, plan.agents) for spec, plan in episodes]
            played = client.play_inline(requests, wall_s + JOIN_TIMEOUT_S)
        pairs = zip(episodes, played, strict=True)
        return [_inline_attempt(plan, result) for (_, plan), result in pairs]
    except (SpecError, InfraError):
        return [attempt_episode(spec, plan, pool) for spec, plan in episodes]


def _open_seats(
    client: ControlClient,
    spec: EpisodeSpec,
    recorded: Sequence[ModelExchange],
    *,
    is_held: bool = False,
) -> OpenSeats:
    """Open the episode, after an earlier attempt that lost its connection is closed."""
    deadline = time.monotonic() + REOPEN_TIMEOUT_S
    while True:
        try:
            return client.open_seats(spec, recorded, is_held=is_held)
        except SpecError as error:
            if error.field != "episode_id":
                raise
            if time.monotonic() > deadline:
                raise InfraError(f"an earlier attempt is still open: {error}") from None
        client.close_episode(spec.episode_id, timed_out=False)
        time.sleep(REOPEN_INTERVAL_S)


def _attempt_inline(
    spec: EpisodeSpec, plan: InlinePlan, client: ControlClient, started: float
) -> Attempt:
    timeout_s = wall_ms_of(spec) / 1000 + JOIN_TIMEOUT_S
    (played,) = client.play_inline([(spec, plan.agents)], timeout_s)
    return replace(_inline_attempt(plan, played), wall_ms=_ms_since(started))


def _inline_attempt(plan: InlinePlan, played: PlayedInline) -> Attempt:
    """Return the attempt; its duration is that of its trace.

    Raises:
        SpecError: the service rejected the specification.
    """
    if played.rejected is not None:
        raise SpecError(played.rejected.field, played.rejected.reason)
    error = played.agent_error.encode()
    ended = Exit(played.exit_status, ExitReason.EXITED)
    infra = None
    if played.failed_seat in plan.counterparts:
        # The agent cannot be the cause: built-in agents attack nothing.
        infra = counterpart_failure(played.failed_seat, ended)
    times = [record.wall_ms for record in played.records]
    return Attempt(
        played.records,
        ended,
        BoxOutput(b"", error, 0, len(error)),
        infra,
        times[-1] - times[0] if times else 0,
    )


def _attempt_over_sockets(
    spec: EpisodeSpec,
    plan: BoxPlan | SessionPlan,
    client: ControlClient,
    seats: OpenSeats,
    times: EpisodeTime,
    on_exchange: OnExchange,
    workspace: EpisodeWorkspace | None = None,
) -> Attempt:
    socket_dirs = seats.directories
    receiver = TraceReceiver(
        seats.messages,
        tuple(socket_dirs),
        in_turn=spec.conversation is not None,
        on_exchange=on_exchange,
        grace_s=plan.grace_s if isinstance(plan, BoxPlan) else GRACE_S,
    )
    receiver.start()
    agents: SeatBoxes | SeatSessions
    if isinstance(plan, BoxPlan):
        is_inside = workspace is not None and plan.workspace and plan.workspace.agent
        start = workspace.start_agent if workspace and is_inside else plan.engine.start
        boxes = {
            seat: SeatBox(plan.box(seat, folder), start, seat in plan.counterparts)
            for seat, folder in socket_dirs.items()
        }
        agents = SeatBoxes(boxes, receiver, times)
    else:
        agents = SeatSessions(plan.workers, socket_dirs)
    try:
        if workspace is not None:
            workspace.start()
        agents.play(wall_ms_of(spec))
    finally:
        if workspace is not None:
            # A call that still runs would delay the end of the episode.
            workspace.stop()
        # The receiver reports a service that is gone.
        with suppress(InfraError):
            client.close_episode(spec.episode_id, timed_out=agents.timed_out)
    receiver.join(JOIN_TIMEOUT_S, partial(_answers, client))
    agents.wait_for_end()
    infra = receiver.infra or agents.infra
    if infra is None and agents.exit is not None and not receiver.all_work_ended:
        infra = _unreachable_service(times.stopped_ms())
    return Attempt(
        times.not_before(receiver.records),
        agents.exit,
        agents.output,
        infra,
        _ms_since(times.begun_s),
    )


def _answers(client: ControlClient) -> bool:
    """Return whether the service answers."""
    try:
        client.health()
    except InfraError:
        return False
    return True


def _unreachable_service(stopped_ms: int) -> Infra | None:
    """Return the failure of an attempt whose agent left early while a process was stopped.

    The agent may have left because its socket did not answer. Its exit status is no evidence,
    because an agent can exit with any status; that this project's processes were stopped is.
    """
    if stopped_ms < STOPPED_MS_MIN:
        return None
    detail = f"the service or the orchestrator was stopped for {stopped_ms} ms, and the agent left"
    return Infra(InfraKind.SERVICE, detail)


def wall_ms_of(spec: EpisodeSpec) -> int:
    """Return the wall time of an episode, milliseconds: the sum of its seats, which act in turn."""
    return sum(seat.budget[BudgetKind.WALL_MS] or 0 for seat in spec.seats)


def failed_attempt(infra: Infra, started: float) -> Attempt:
    """Return an attempt without a trace.

    Args:
        infra: what failed.
        started: the monotonic time at its start, seconds.
    """
    return Attempt((), None, None, infra, _ms_since(started))


def _ms_since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)


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
