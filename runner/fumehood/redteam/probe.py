"""Attacks one engine from its boxes, one attack at a time, against a real service and a real
episode.

A success that an agent reports counts as a breach. A reported failure does not count: the result
then depends on observations from outside. See ``docs/containment.md``.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

from fumehood.core.episode_spec import EpisodeSpec, SeatSpec
from fumehood.core.errors import InfraError, InputError
from fumehood.core.fault_plan import FaultRule
from fumehood.core.ledger import Budget
from fumehood.engines.engine import (
    AGENT_FOLDER,
    AgentKind,
    AgentSource,
    BoxOutput,
    Engine,
    Image,
    Isolation,
    Limits,
    Mount,
)
from fumehood.engines.images.helper import build_helper
from fumehood.engines.ownership import RUN, owner_labels
from fumehood.engines.state_folder import claim_folder, machine_folder
from fumehood.orchestrator.episode_runner import Attempt, BoxPlan, attempt_episode
from fumehood.orchestrator.service_pool import HttpOffer, ServiceOptions, ServicePool
from fumehood.redteam.agent_folder import fill_agent_folder
from fumehood.redteam.attacks import Attack, Boundary, Pair, Result, Verdict
from fumehood.redteam.box_usage import WatchedEngine, open_descriptors
from fumehood.redteam.breaches import (
    attempts_in,
    excess,
    infrastructure_damage,
    revealing_words_in,
    successes_in,
    surviving_processes,
)
from fumehood.redteam.canaries import Canaries
from fumehood.redteam.control_episodes import ControlEpisodes
from fumehood.redteam.judged_answer import judging_breaches
from fumehood.redteam.places import BoxesAt, Place
from fumehood.redteam.provider import TOKENS_MAX, ObedientProvider, breaches_of
from fumehood.redteam.record_checks import (
    forged_run_breaches,
    plain_reader_breaches,
    record_breaches,
)
from fumehood.redteam.victim import PROTOCOLS, Interference, Latencies
from fumehood.redteam.world_packages import STATES, installed_worlds, require_world

MIB = 1 << 20
LIMITS = Limits(
    memory_bytes=256 * MIB,
    cpus=0.5,
    processes=64,
    file_bytes=8 * MIB,
    tmp_bytes=16 * MIB,
    open_files=256,
    output_bytes=256 * 1024,
)
"""Limits of every attacking box, small so that exceeding them does no harm."""
TASKS_OF_AN_ENGINE = 8
"""Processes that an engine adds to a box."""
TASKS_OF_A_KERNEL = 256
"""Processes and threads that an engine with a separate kernel adds to a box."""
GROWTH_BYTES_MAX = 384 * MIB
"""Growth of the service's memory that one attack may cause; allocators keep freed memory."""
DESCRIPTORS_MAX = 64
"""File descriptors that the service may keep open after one attack."""
QUIET = Attack("quiet", "quiet.py", Boundary.BOX, "nothing", "wait")
"""The baseline of latencies: an agent that only waits."""
WARM_UP_S = 2.0
"""Time before a quiet measurement."""
INTERFERENCE_ATTEMPTS = 3
"""Runs of an attack that raises the latencies of a neighbour, until it counts as a breach."""
SETTLE_S = 0.4
"""Time until all effects of an attack are visible."""
MESSAGE_BYTES = 16
"""Of the message of one box to another."""
PREPARED_S = 1.0
"""How long a box that is started in advance runs before its episode begins."""
_LOCK_MODE = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """Protections that a probe removes for a control; none by default."""

    kept_output_bytes: int = LIMITS.output_bytes
    """Kept bytes of each stream of a box."""
    service_limits: Mapping[str, int] | None = None
    """Limits of the service that differ from its defaults, by name."""
    cpus: float = LIMITS.cpus
    """Processors that the usage of a box is compared with."""
    careless_judge: bool = False
    """Judge answers with a pattern of quadratic time."""
    plain_reader: bool = False
    """Read records with a reader that escapes nothing."""


class Probe:
    """One engine under attack. A context manager."""

    def __init__(
        self,
        engine: Engine,
        removed: Removed | None = None,
        *,
        interference: bool = True,
        place: Place = Place.AGENT,
        prepared: bool = False,
    ) -> None:
        """Create the probe; entering it prepares the service and the image.

        Args:
            engine: an engine that is ready; the caller closes it.
            removed: protections to remove, for controls; None for none.
            interference: compare the latencies of a neighbour with a quiet baseline.
            place: the box in which attacks run; an engine of workspaces for others than the
                agent's.
            prepared: start boxes in advance, before their episodes begin.
        """
        self._place = place
        self._await_slot = partial(time.sleep, PREPARED_S) if prepared else None
        self._engine, self._watched = engine, WatchedEngine(engine)
        self._removed = removed or Removed()
        self._measures_interference = interference and not engine.isolation.is_none
        self._resources_to_close = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._image: Image = self._engine.prepare(AgentSource(AgentKind.BUILTIN, "noop"))
            self.agents = fill_agent_folder(
                Path(stack.enter_context(tempfile.TemporaryDirectory()))
            )
            self._canaries = stack.enter_context(
                Canaries(Path(stack.enter_context(tempfile.TemporaryDirectory())))
            )
            self._provider = stack.enter_context(ObedientProvider())
            self._boxes = stack.enter_context(BoxesAt(self._watched, self._place))
            self._helper = build_helper(lambda line: None)
            self._service = stack.enter_context(ExitStack())
            self._start_service()
            self._resources_to_close = stack.pop_all()
        return self

    def _start_service(self) -> None:
        """Start a service with its control episodes; replaces one that an attack has damaged."""
        self._service.close()
        self._quiet: list[dict[str, Latencies]] = []
        limits = self._removed.service_limits
        self._pool = self._service.enter_context(
            ServicePool(
                1,
                ServiceOptions(
                    http=HttpOffer(self._helper, self._provider.settings()),
                    limits=limits,
                    worlds=installed_worlds(),
                ),
            )
        )
        self.worker = self._pool.workers()[0]
        """The process of the attacked service."""
        self._controls = self._service.enter_context(
            ControlEpisodes(self.worker.client, interference=self._measures_interference)
        )

    def __exit__(self, *_: object) -> None:
        self._resources_to_close.close()

    def attack(self, attack: Attack) -> Verdict:
        """Run one attack and return its result.

        An attack whose only breach is a raised latency is repeated, each time with a new baseline,
        because other programs of the machine raise latencies too.
        """
        with _exclusive():
            for _ in range(INTERFERENCE_ATTEMPTS):
                verdict, interference = self._attack(attack)
                raised = list(interference.raised()) if interference else []
                if verdict.result is not Result.STOPPED or not raised:
                    break
                self._measure_quiet()
        verdict = replace(verdict, interference=interference)
        if verdict.result is Result.STOPPED and raised:
            return replace(verdict, result=Result.NOT_STOPPED, detail="; ".join(raised))
        return verdict

    def _attack(self, attack: Attack) -> tuple[Verdict, Interference | None]:
        quiet = self._quiet_latencies() if self._measures_interference else None
        for _ in self._canaries.touched():
            pass  # Discard accesses by an earlier attack of another probe.
        before = self._resources()
        self._controls.latencies()
        message = secrets.token_hex(MESSAGE_BYTES // 2)
        try:
            attempts = self._attempts(attack, message)
        except InputError as error:
            return Verdict(attack, Result.NOT_APPLICABLE, str(error), 0, 0), None
        interference = Interference(quiet, self._controls.latencies()) if quiet else None
        time.sleep(SETTLE_S)
        attempt = attempts[-1]
        breaches = [*self._breaches(attack, attempt), *self._damage(before)]
        breaches += [
            f"the infrastructure failed: {earlier.infra.detail}"
            for earlier in attempts[:-1]
            if earlier.infra
        ]
        if len(attempts) > 1 and _has_message(attempt, message):
            breaches.append("one box read the message of the other")
        if any("service" in breach or "not served" in breach for breach in breaches):
            # A stuck service would delay the end of its control episodes.
            self.worker.stop(timeout_s=0)
            self._start_service()
        return self._verdict(attack, attempt, breaches), interference

    def _quiet_latencies(self) -> dict[str, Latencies]:
        """Return the latencies of the working episode beside a box that only waits.

        Of several measurements each protocol has the median one.
        """
        if not self._quiet:
            self._measure_quiet()
        return {
            protocol: sorted((one[protocol] for one in self._quiet), key=lambda one: one.p99_ms)[
                len(self._quiet) // 2
            ]
            for protocol in PROTOCOLS
        }

    def _measure_quiet(self) -> None:
        # A new service loads what its first calls need; an attacked one works off what has arrived.
        time.sleep(WARM_UP_S)
        self._controls.latencies()
        self._attempts(QUIET, "")
        self._quiet.append(self._controls.latencies())

    def _attempts(self, attack: Attack, message: str) -> list[Attempt]:
        """Run the agent of an attack in its boxes, and return their attempts.

        Of two boxes the first has a message, and the second must not learn it.

        Raises:
            InputError: the agent cannot run here.
        """
        require_world(attack)
        command = self.agents.command(attack.file, self._image)
        if command is None:
            raise InputError(self.agents.missing_c)
        image = replace(
            self._image,
            command=command,
            mounts=(*self._image.mounts, Mount(self.agents.path, AGENT_FOLDER)),
        )

        def attempt(*arguments: str) -> Attempt:
            spec = self._spec(attack)
            if "role=write" in arguments:
                spec = replace(spec, episode_id=f"{spec.episode_id}-1")
            plan = self._box(image, attack, arguments)
            return attempt_episode(spec, plan, self._pool, await_slot=self._await_slot)

        with self._canaries.in_environment(), ThreadPoolExecutor(1) as executor:
            match attack.pair:
                case Pair.NONE:
                    return [attempt()]
                case Pair.LATER:
                    return [attempt("role=write", f"message={message}"), attempt("role=read")]
                case Pair.AT_ONCE:
                    writer = executor.submit(attempt, "role=write", f"message={message}")
                    reader = attempt("role=read")
                    return [writer.result(), reader]

    def _verdict(self, attack: Attack, attempt: Attempt, breaches: Sequence[str]) -> Verdict:
        stdout = attempt.output.stdout if attempt.output else b""
        attempts, successes = attempts_in(stdout), list(successes_in(stdout))
        if successes and attack.at_kernel and self._engine.isolation is Isolation.SANDBOXED_KERNEL:
            detail, successes = f"reached only the kernel of the box: {successes[0]}", []
        elif not attempts:
            return Verdict(attack, Result.NOT_RUN, _last_line(attempt), 0, attempt.wall_ms)
        else:
            detail = ""
        result = Result.STOPPED
        if successes or breaches:
            result, detail = Result.NOT_STOPPED, "; ".join([*successes, *breaches])
        elif attack.limit in self._engine.unenforced:
            result = Result.NOT_STOPPED
            detail = f"{self._engine.name} does not limit {attack.limit} of a box"
        return Verdict(attack, result, detail, attempts, attempt.wall_ms)

    def _breaches(self, attack: Attack, attempt: Attempt) -> Iterator[str]:
        output = attempt.output or BoxOutput(b"", b"", 0, 0)
        records = "".join(record.event_json for record in attempt.records).encode()
        yield from self._canaries.leaks(output.stdout + output.stderr)
        # The service itself writes the fault plan into the trace.
        yield from (leak for leak in self._canaries.leaks(records) if "plan" not in leak)
        yield from self._canaries.touched()
        yield from self._controls.harmed()
        asked = self._provider.take()
        yield from breaches_of(asked, voids=False)
        if self._place is not Place.AGENT and asked:
            yield "the model was reached"
        if self._place is not Place.AGENT and b'"kind":"call"' in records.replace(b" ", b""):
            yield "a call was made on the agent's seat"
        yield from infrastructure_damage(attack, attempt, LIMITS.output_bytes)
        if (watch := self._watched.watch) is not None:
            watch.end()
            yield from excess(attack, watch, self._limits(attack), self._tasks_spare())
            yield from surviving_processes(watch)
        if attack.repeats:
            yield from revealing_words_in(output.stdout)
            if attack.boundary is Boundary.SERVICE and self._controls.folder in output.stdout:
                yield "it learned the host path of its socket"
        if attempt.infra is not None:
            return
        if attack.judged:
            yield from judging_breaches(attempt, careless=self._removed.careless_judge)
        if attack.forged:
            unverified = self._removed.plain_reader
            yield from forged_run_breaches(self._spec(attack), attempt, unverified=unverified)
        if attack.recorded:
            if self._removed.plain_reader:
                yield from plain_reader_breaches(attempt)
            else:
                yield from record_breaches(self._spec(attack), attempt)

    def _damage(self, before: tuple[int, int]) -> Iterator[str]:
        if not self.worker.alive or self.worker is not self._pool.workers()[0]:
            yield "the service died"
            return
        try:
            resident_bytes, descriptors = self._resources()
        except InfraError as error:
            yield str(error)
            return
        if resident_bytes - before[0] > GROWTH_BYTES_MAX:
            yield f"the service grew by {(resident_bytes - before[0]) // MIB} MiB"
        if descriptors - before[1] > DESCRIPTORS_MAX:
            yield f"the service was left with {descriptors - before[1]} open connections"
        if RUN in self._remaining_labels():
            yield "its box was left behind"

    def _tasks_spare(self) -> int:
        has_kernel = self._engine.isolation is Isolation.SANDBOXED_KERNEL
        return TASKS_OF_A_KERNEL if has_kernel else TASKS_OF_AN_ENGINE

    def _remaining_labels(self) -> set[str]:
        """Return the labels of this run that remain on the host; remove nothing."""
        remaining: set[str] = set()
        run = self._canaries.secrets["run"]

        def note(labels: dict[str, str]) -> bool:
            remaining.update(name for name, value in labels.items() if value == run)
            return True

        list(self._engine.orphans(note))
        return remaining

    def _resources(self) -> tuple[int, int]:
        return self.worker.client.health().resident_bytes, open_descriptors(self.worker.pid)

    def _limits(self, attack: Attack) -> Limits:
        return replace(
            LIMITS,
            memory_bytes=attack.memory_mb * MIB,
            output_bytes=self._removed.kept_output_bytes,
            cpus=self._removed.cpus,
        )

    def _spec(self, attack: Attack) -> EpisodeSpec:
        secret = self._canaries.secrets
        budget = Budget(calls=attack.calls, wall_ms=attack.wall_ms, model_tokens=TOKENS_MAX)
        plan = FaultRule(0, "timeout", {"on_nth_call": 999_999}, "soft", {"note": secret["plan"]})
        return EpisodeSpec(
            episode_id=secret["episode"],
            world=attack.world,
            harness_mode="native",
            initial_state=STATES[attack.world],
            fault_plan=(plan,),
            seed=1,
            seats=(SeatSpec(instruction="Look.", budget=budget),),
        )

    def _box(self, image: Image, attack: Attack, more: Sequence[str]) -> BoxPlan:
        arguments: tuple[str, ...] = ()
        if not attack.repeats:
            limits = (
                *(f"memory={LIMITS.memory_bytes}", f"tmp={LIMITS.tmp_bytes}"),
                *(f"open_files={LIMITS.open_files}", f"calls={attack.calls}"),
            )
            arguments = (*self._canaries.arguments(), self._controls.argument(), *limits, *more)
            arguments = (*arguments, f"model={self._provider.address}")
            if attack.variant:
                arguments = (*arguments, f"variant={attack.variant}")
            if self._engine.isolation.is_none:
                arguments = (*arguments, "unboxed=yes")
        return BoxPlan(
            engine=self._boxes,
            image=image,
            limits=self._limits(attack),
            arguments=arguments,
            labels=owner_labels(self._canaries.secrets["run"]),
        )


def _has_message(attempt: Attempt, message: str) -> bool:
    """Return whether an agent learned a message, of which the page cache carries the beginning."""
    stdout = attempt.output.stdout if attempt.output else b""
    return re.search(rf": {message[:4]}".encode(), stdout) is not None


def _last_line(attempt: Attempt) -> str:
    if attempt.infra is not None:
        return attempt.infra.detail
    output = attempt.output.stderr if attempt.output else b""
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"it ended without output: {attempt.exit}"


@contextmanager
def _exclusive() -> Iterator[None]:
    """Run one attack at a time, because the canaries cannot tell two probes of a user apart."""
    folder = machine_folder("probe")
    claim_folder(folder)
    descriptor = os.open(folder / "lock", os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, _LOCK_MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
