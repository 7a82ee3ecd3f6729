"""Episodes of a trusted agent, one after another in one process over one connection."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from threading import Lock

from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import InfraError, SpecError
from fumehood.core.outcome import Infra, InfraKind
from fumehood.engines.engine import BOX_SOCKET_DIR, Engine, Exit, ExitReason, Mount
from fumehood.orchestrator.episode_runner import Attempt, BoxPlan, failed, wall_ms_of
from fumehood.orchestrator.service_pool import ServicePool
from fumehood.wire.lane_client import LaneClient
from fumehood.wire.ports import Played

END_TIMEOUT_S = 30.0
"""From stopping an agent until the service must have sealed its trace."""
LOOK_S = 0.5
"""Between two looks whether the agent's process is still there."""
EXIT_TIMEOUT_MS = 2_000
"""From an agent's hanging up until its process must have ended."""

_STILL_THERE = Exit(0, ExitReason.EXITED)
"""How an agent stands that went on to the next episode: it ended this one as a process would by exiting."""


class Lane:
    """One agent's process and its lane through a service. For one thread at a time."""

    def __init__(self, engine: Engine, plan: BoxPlan, pool: ServicePool) -> None:
        """Open the lane and start the process.

        Raises:
            InfraError: the service or the engine fails.
        """
        self._stack = ExitStack()
        with ExitStack() as opening:
            client = opening.enter_context(pool.lease())
            self._wire: LaneClient = client.open_lane()
            opening.callback(self._wire.close)
            self._mounts = tuple(_own_copy(mount, opening) for mount in plan.mounts)
            own = replace(plan, mounts=self._mounts)
            self._box = engine.start(
                own.box(Path(self._wire.agent_directory), "--lane", f"{BOX_SOCKET_DIR}/lane.sock")
            )
            opening.callback(self._box.close)
            self._stack = opening.pop_all()
        self.is_over = False
        """True when no further episode can be played."""
        self._was_stopped = False

    def attempt(self, spec: EpisodeSpec, mounts: Sequence[Mount] = ()) -> Attempt:
        """Play one episode; a failure of ours is part of what is returned.

        Args:
            spec: one seat's episode.
            mounts: files that its agent reads, as many as the lane was opened with. The agent reads them
                when it has its task, so they are laid where it looks before that.
        """
        started = time.monotonic()
        for mine, theirs in zip(self._mounts, mounts, strict=False):
            mine.source.write_bytes(theirs.source.read_bytes())
        try:
            self._wire.begin(spec)
            played = self._wait(wall_ms_of(spec) / 1000)
        except SpecError as error:
            return failed(Infra(InfraKind.TASK, str(error)), started)
        except InfraError as error:
            self.is_over = True
            return failed(Infra(InfraKind.SERVICE, str(error)), started)
        if played.unhostable is not None:
            self.is_over = played.agent_gone
            reason = f"{played.unhostable.field}: {played.unhostable.reason}"
            return failed(Infra(InfraKind.TASK, reason), started)
        try:
            return self._attempt(played, started)
        except InfraError as error:
            return failed(Infra(InfraKind.ENGINE, str(error)), started)

    def close(self) -> None:
        """End the process, hang up, give the service back; whoever is still playing is stopped."""
        self.is_over = True
        self._stack.close()

    def _wait(self, wall_s: float) -> Played:
        deadline = time.monotonic() + wall_s
        while (left_s := deadline - time.monotonic()) > 0:
            played = self._wire.wait(min(left_s, LOOK_S))
            if played is not None:
                return played
            # An agent that dies hangs up. One that died before it came has nothing to hang up with.
            if self._box.wait(0) is not None:
                self._wire.stand_in_for_agent()
                break
        else:
            self._was_stopped = self.is_over = True
            self._wire.say_time_is_over()
            self._box.kill()
            self._wire.stand_in_for_agent()
        played = self._wire.wait(END_TIMEOUT_S)
        if played is None:
            raise InfraError(f"the trace was not sealed within {END_TIMEOUT_S:.0f} s")
        return played

    def _attempt(self, played: Played, started: float) -> Attempt:
        ended: Exit | None = _STILL_THERE
        output = None
        if played.agent_gone:
            self.is_over = True
            ended = None if self._was_stopped else self._exit()
            output = self._box.close()
        wall_ms = round((time.monotonic() - started) * 1000)
        return Attempt(played.records, ended, output, None, wall_ms)

    def _exit(self) -> Exit | None:
        """Return how the process ended, which has hung up or was hung up on; one that stays is killed."""
        ended = self._box.wait(EXIT_TIMEOUT_MS)
        if ended is None:
            self._box.kill()
            ended = self._box.wait(EXIT_TIMEOUT_MS)
        return ended


class Lanes:
    """Lanes that are open, lent to one thread at a time. Safe to use from several threads."""

    def __init__(self, engine: Engine, pool: ServicePool) -> None:
        self._engine = engine
        self._pool = pool
        self._idle: dict[tuple[str, ...], list[Lane]] = {}
        self._lock = Lock()

    def attempt(self, spec: EpisodeSpec, plan: BoxPlan) -> Attempt:
        """Play one episode on a lane of this agent, opened when none is idle.

        Raises:
            InputError: no process can be started from what the user named.
        """
        started = time.monotonic()
        try:
            lane = self._take(plan)
        except InfraError as error:
            return failed(Infra(InfraKind.ENGINE, str(error)), started)
        try:
            return lane.attempt(spec, plan.mounts)
        finally:
            self._give_back(plan, lane)

    def close(self) -> None:
        """Close every idle lane; to be called when nobody plays any more."""
        for lane in [lane for idle in self._idle.values() for lane in idle]:
            lane.close()
        self._idle.clear()

    def _take(self, plan: BoxPlan) -> Lane:
        with self._lock:
            idle = self._idle.get(plan.image.command)
            if idle:
                return idle.pop()
        return Lane(self._engine, plan, self._pool)

    def _give_back(self, plan: BoxPlan, lane: Lane) -> None:
        if lane.is_over:
            lane.close()
            return
        with self._lock:
            self._idle.setdefault(plan.image.command, []).append(lane)


def _own_copy(mount: Mount, closing: ExitStack) -> Mount:
    source = mount.source.with_suffix(f".{token_hex(4)}.lane")
    shutil.copy(mount.source, source)
    closing.callback(source.unlink, missing_ok=True)
    return Mount(source, mount.target)
