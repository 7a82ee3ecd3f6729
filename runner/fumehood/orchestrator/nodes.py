"""The nodes that play the episodes of a run, as the run sees them.

A node that does not answer is lost: its episodes fail as infrastructure failures, so the run
attempts them again, and another node takes its place. Answers of a lost node are never read.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from threading import Condition, Thread, Timer
from typing import Any

import structlog

from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import InfraError, InputError, SpecError
from fumehood.core.outcome import Infra, InfraKind
from fumehood.core.trace import ModelExchange
from fumehood.engines.code_digest import code_digest
from fumehood.engines.engine import Box, BoxSpec
from fumehood.orchestrator.episode_runner import (
    Attempt,
    EpisodePlan,
    InlineEpisode,
    OnExchange,
    failed_attempt,
    wall_ms_of,
)
from fumehood.orchestrator.machine import Needs
from fumehood.orchestrator.node import INPUT
from fumehood.orchestrator.node_messages import (
    Object,
    Reply,
    reply_from_json,
    request_to_bytes,
    source_name,
    to_bytes,
)
from fumehood.orchestrator.ray_cluster import RayCluster
from fumehood.orchestrator.trace_receiver import rejection_kind
from fumehood.version import __version__
from fumehood.wire.ports import GRANTED_MS_MAX

START_TIMEOUT_S = 600.0
"""Time from the request for a node until it is ready, seconds; a node may build images."""
LOST_TIMEOUT_S = 120.0
"""How long a run without any node waits for one, seconds."""
RESTART_S = 1.0
"""Time until a lost node is replaced, seconds."""
REPLACEMENTS_MAX = 20
"""How many starts in a row may fail before a node is given up."""
ANSWER_TIMEOUT_S = 600.0
"""How long a node may take to answer beyond twice the wall time of its episodes, seconds."""
PROGRESS_EVERY_S = 10.0
"""Interval of the lines that state how many nodes are ready, if their number does not change."""
PING_INTERVAL_S = 60.0
"""Interval at which a node that plays an episode must show that it answers, seconds."""
PING_TIMEOUT_S = 120.0
"""How long a node on a busy machine may take to answer, seconds."""
STOP_TIMEOUT_S = 30.0
"""How long the nodes may take to remove their boxes at the end of a run, seconds."""
LOOK_S = 0.2

_SENT = "engine forked_starts i_trust_this_agent runtime service_workers limits messages models"
"""Settings of a run that a node gets."""

_log = structlog.get_logger("fumehood.nodes")


@dataclass(slots=True, eq=False)
class _Slot:
    node: Any = None
    is_ready: bool = False
    is_given_up: bool = False
    playing: int = 0
    failures: int = 0


class NodeStarter:
    """The engine of plans that another machine carries out."""

    def start(self, spec: BoxSpec) -> Box:
        """Fail, because only nodes start boxes."""
        raise InfraError(f"{spec.image.reference} is started by nodes only")


def node_settings(needs: Needs, models: Collection[str], judge: str | None, nodes: int) -> bytes:
    """Return what a node must know of a run: neither keys nor gold.

    Args:
        needs: of the run.
        models: names of models that the run names.
        judge: model that judges on this machine.
        nodes: number of nodes, which share the limits of providers equally.
    """
    config = needs.config.model_dump(mode="json", include=set(_SENT.split()))
    return to_bytes(
        {
            "version": __version__,
            "folder": os.getcwd(),
            "config": config,
            "agents": {
                source_name(agent.source): [code_digest(agent.source), agent.speaks_acp]
                for agent in needs.agents
            },
            "boxes": needs.boxes,
            "worlds": list(needs.worlds),
            "monitors": [spec.to_json() for spec in needs.monitors],
            "models": sorted(models),
            "judge": judge,
            "shares": needs.config.shards * nodes,
        }
    )


def answer_timeout_s(specs: Sequence[EpisodeSpec], *, has_waits: bool) -> float:
    """Return after which time a node that plays episodes counts as lost, seconds.

    Args:
        specs: the episodes.
        has_waits: whether they wait for models or monitors. A node adds these waits to the wall
            time.
    """
    granted_ms = GRANTED_MS_MAX * len(specs) if has_waits else 0
    return (2 * sum(map(wall_ms_of, specs)) + granted_ms) / 1000 + ANSWER_TIMEOUT_S


class Nodes:
    """The nodes of a run. Safe to use from several threads."""

    def __init__(
        self, cluster: RayCluster, settings: bytes, at_once: int, *, has_waits: bool = False
    ) -> None:
        """Create it; :meth:`start` starts the nodes.

        Args:
            cluster: runs them.
            settings: of :func:`node_settings`.
            at_once: episodes, or groups of short ones, that each node plays at once.
            has_waits: whether episodes wait for models or monitors, and get time for that.
        """
        self._cluster = cluster
        self._settings = settings
        self._at_once = at_once
        self._has_waits = has_waits
        self._slots = [_Slot() for _ in range(cluster.size)]
        self._changed = Condition()
        self.facts: list[Object] = []
        """What the nodes stated at their start."""
        self._error: InputError | None = None
        self._is_abandoned = self._is_closed = False

    @property
    def at_once(self) -> int:
        """Episodes, or groups of short ones, that all nodes play at once."""
        return self._at_once * len(self._slots)

    def start(self, progress: Callable[[str], None]) -> None:
        """Start the nodes and wait until they are ready.

        It does not wait for a node that the cluster no longer has space for. Such a node starts
        when a machine is added.

        Args:
            progress: called with one line when the number of ready nodes changes, and at intervals.

        Raises:
            InputError: a node cannot play the run.
            InfraError: no node starts.
        """
        for slot in self._slots:
            self._begin(slot)
        began, shown, shown_at = time.monotonic(), -1, 0.0
        space = len(self._slots)
        while True:
            with self._changed:
                ready = sum(slot.is_ready for slot in self._slots)
                done = ready + sum(slot.is_given_up for slot in self._slots)
                now = time.monotonic()
                if self._error is not None:
                    raise self._error
                if done == len(self._slots) or now - began > START_TIMEOUT_S:
                    break
                if ready and done >= space:
                    break
            if is_due := ready != shown or now - shown_at >= PROGRESS_EVERY_S:
                shown, shown_at = ready, now
                progress(_waiting(ready, len(self._slots), now - began))
            if is_due and ready:
                # Without the lock, because the cluster may answer late.
                space = self._cluster.space()
            with self._changed:
                self._changed.wait(LOOK_S)
        if not ready:
            raise InfraError("no node of the cluster became ready")
        if ready != shown:
            progress(_waiting(ready, len(self._slots), now - began))

    def play(
        self,
        spec: EpisodeSpec,
        plan: EpisodePlan,
        recorded: Sequence[ModelExchange],
        on_exchange: OnExchange,
    ) -> Attempt:
        """Play one episode on a node; an infrastructure failure is part of the result.

        Raises:
            InputError: no box can be started from the agent that the user named.
            InfraError: no node is left.
        """
        started = time.monotonic()
        try:
            request = request_to_bytes([(spec, plan)], recorded)
        except SpecError as error:
            return failed_attempt(Infra(rejection_kind(error.field), str(error)), started)
        reply = self._ask(request, [spec], started)
        for exchange in reply.exchanges:
            on_exchange(exchange)
        return reply.attempts[0]

    def play_inline(self, episodes: Sequence[InlineEpisode]) -> list[Attempt]:
        """Play several short episodes on one node.

        Raises:
            InfraError: no node is left.
        """
        started = time.monotonic()
        try:
            request = request_to_bytes(episodes)
        except SpecError:
            return [self.play(spec, plan, (), lambda _: None) for spec, plan in episodes]
        return self._ask(request, [spec for spec, _ in episodes], started).attempts

    def abandon(self) -> None:
        """Fail every running episode at once, and play no further ones."""
        with self._changed:
            self._is_abandoned = True
            nodes = [slot.node for slot in self._slots if slot.is_ready]
            self._changed.notify_all()
        for node in nodes:
            with suppress(InfraError):
                self._cluster.call(node, "abandon")

    def close(self) -> None:
        """End the nodes, which remove their boxes."""
        with self._changed:
            self._is_closed = True
            slots = [slot for slot in self._slots if slot.node is not None]
        with suppress(InfraError):
            ending = [self._cluster.call(slot.node, "close") for slot in slots if slot.is_ready]
            deadline = time.monotonic() + STOP_TIMEOUT_S
            for future in ending:
                with suppress(Exception):
                    future.result(max(0.0, deadline - time.monotonic()))
        for slot in slots:
            self._cluster.kill(slot.node)

    def _ask(self, request: bytes, specs: Sequence[EpisodeSpec], started: float) -> Reply:
        timeout_s = answer_timeout_s(specs, has_waits=self._has_waits)
        try:
            with self._lease() as slot:
                node = slot.node
                future = self._cluster.call(node, "play", request)
                try:
                    answer = self._answer(node, future, time.monotonic() + timeout_s)
                except Exception as error:
                    self._lose(slot, node, error)
                    raise _Lost from None
        except _Lost:
            infra = Infra(InfraKind.ENGINE, "the node that played the episode was lost")
            return Reply([failed_attempt(infra, started) for _ in specs], [])
        try:
            return _reply_of(json.loads(answer), specs, started)
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            problem = f"an answer of a node cannot be read: {type(error).__name__}"
            infra = Infra(InfraKind.ENGINE, problem)
            return Reply([failed_attempt(infra, started) for _ in specs], [])

    def _answer(self, node: Any, future: Future[bytes], deadline: float) -> bytes:
        """Return the answer of a node that plays episodes. Any exception means that it is lost."""
        while True:
            left_s = deadline - time.monotonic()
            with suppress(TimeoutError):
                return future.result(min(left_s, PING_INTERVAL_S))
            if left_s < PING_INTERVAL_S:
                raise TimeoutError("no answer in time")
            # The cluster does not notice a process that is stopped or hangs.
            self._cluster.call(node, "ping").result(PING_TIMEOUT_S)

    @contextmanager
    def _lease(self) -> Iterator[_Slot]:
        deadline = None
        with self._changed:
            while True:
                if self._is_abandoned:
                    raise InfraError("the run was stopped")
                ready = [slot for slot in self._slots if slot.is_ready]
                free = [slot for slot in ready if slot.playing < self._at_once]
                if free:
                    break
                now = time.monotonic()
                deadline = None if ready else deadline or now + LOST_TIMEOUT_S
                if all(slot.is_given_up for slot in self._slots) or (deadline and now > deadline):
                    raise InfraError("all nodes were lost; continue with fumehood resume")
                self._changed.wait(1.0)
            slot = min(free, key=lambda slot: slot.playing)
            slot.playing += 1
        node = slot.node
        try:
            yield slot
        finally:
            with self._changed:
                if slot.node is node:
                    slot.playing -= 1
                self._changed.notify()

    def _begin(self, slot: _Slot) -> None:
        """Start a node; :meth:`_started` receives the result."""
        with self._changed:
            if self._is_closed:
                return
        try:
            # Two more, so that abandoning and closing do not wait for episodes.
            node = self._cluster.new_node(self._at_once + 2)
            started = self._cluster.call(node, "start", self._settings)
        except InfraError as error:
            _log.warning("no node", error=str(error))
            with self._changed:
                slot.is_given_up = True
                self._changed.notify_all()
            return
        with self._changed:
            slot.node, slot.playing = node, 0
            is_closed = self._is_closed
        if is_closed:
            self._cluster.kill(node)
            return
        started.add_done_callback(partial(self._started, slot, node))

    def _started(self, slot: _Slot, node: Any, started: Future[bytes]) -> None:
        try:
            value = json.loads(started.result())
        except Exception as error:
            # In another thread: Ray calls back in the thread that receives the answers of the
            # cluster, and ending a node waits for such an answer.
            Thread(target=self._lose, args=(slot, node, error), daemon=True).start()
            return
        with self._changed:
            problem = self._problem_of(value)
            if not problem:
                self.facts.append(value)
                slot.is_ready, slot.failures = True, 0
            else:
                slot.is_given_up = True
                self._error = self._error or InputError(problem)
                _log.warning("node cannot be used", reason=problem)
            self._changed.notify_all()

    def _problem_of(self, value: Object) -> str:
        """Return why a node cannot play this run; empty if it can."""
        if "error" in value:
            return f"a node of the cluster: {value['error'][1]}"
        for first in self.facts[:1]:
            for name in ("engine", "isolation"):
                if first["facts"][name] != value["facts"][name]:
                    return (
                        f"the nodes differ: {name} is {first['facts'][name]} and "
                        f"{value['facts'][name]}; name one --engine that all have"
                    )
        return ""

    def _lose(self, slot: _Slot, node: Any, error: Exception) -> None:
        """Replace a node that is lost."""
        with self._changed:
            if slot.node is not node or self._is_closed:
                return
            slot.node, slot.is_ready = None, False
            slot.failures += 1
            slot.is_given_up = slot.failures > REPLACEMENTS_MAX
            self._changed.notify_all()
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        _log.warning("node lost", reason=reason)
        # A node that is only unreachable must not play on.
        self._cluster.kill(node)
        if not slot.is_given_up:
            timer = Timer(RESTART_S, self._begin, (slot,))
            timer.daemon = True
            timer.start()


def _reply_of(value: Object, specs: Sequence[EpisodeSpec], started: float) -> Reply:
    """Return the attempts of an answer, or failed ones if it states an error.

    Raises:
        InputError: the answer states one.
        ValueError: it has another number of attempts. A malformed answer can also raise other
            errors, such as ``LookupError``.
    """
    if "error" in value:
        kind, text = value["error"]
        if kind == INPUT:
            raise InputError(text)
        infra = Infra(InfraKind.ENGINE, str(text))
        return Reply([failed_attempt(infra, started) for _ in specs], [])
    reply = reply_from_json(value)
    if len(reply.attempts) != len(specs):
        raise ValueError(f"{len(reply.attempts)} of {len(specs)} episodes")
    return reply


def _waiting(ready: int, nodes: int, elapsed_s: float) -> str:
    return f"waiting for the nodes: {ready} of {nodes} ready, {elapsed_s:.0f} s elapsed"


class _Lost(Exception):
    """The node that played an episode is lost."""
