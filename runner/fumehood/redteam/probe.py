"""Attacks one engine's boxes, one attack after the other, each against a real service and a real episode.

The agent is believed when it says it got something, and never when it says it did not: what counts then is
what is seen from outside. See ``docs/containment.md``.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from fumehood.core.episode_spec import EpisodeSpec, SeatSpec
from fumehood.core.errors import InputError
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
from fumehood.engines.ownership import RUN, owner_labels
from fumehood.orchestrator.episode_runner import Attempt, BoxPlan, attempt_episode
from fumehood.orchestrator.service_pool import HttpOffer, ServicePool
from fumehood.redteam.attack import Attack, Result, Verdict, Wall
from fumehood.redteam.box_usage import open_descriptors
from fumehood.redteam.breaches import (
    attempts_of,
    excess,
    leftovers,
    machinery_trouble,
    prizes,
    telling_words,
)
from fumehood.redteam.canaries import Baits
from fumehood.redteam.control_episodes import Bystanders
from fumehood.redteam.kit import lay_out_kit
from fumehood.redteam.readers import misled
from fumehood.redteam.turns import one_at_a_time
from fumehood.redteam.watched_engine import WatchedEngine

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
"""Of every box that is attacked from: small, so that what exceeds them does no harm."""
TASKS_OF_AN_ENGINE = 8
"""Processes that an engine has in a box besides the agent's."""
TASKS_OF_A_KERNEL = 256
"""The same of an engine that brings a kernel, its threads included."""
GROWTH_BYTES_MAX = 384 * MIB
"""By which the service may grow over one attack; it keeps what it may need again."""
DESCRIPTORS_MAX = 64
"""That the service may keep open after one attack."""
SETTLE_S = 0.4
"""Until what an attack did has arrived everywhere."""


class Probe:
    """One engine under attack. A context manager."""

    def __init__(self, engine: Engine) -> None:
        """Prepare nothing yet.

        Args:
            engine: must be ready; stays the caller's.
        """
        self._engine = WatchedEngine(engine)
        self._cleaning = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._image: Image = self._engine.prepare(AgentSource(AgentKind.BUILTIN, "noop"))
            self._kit = lay_out_kit(Path(stack.enter_context(tempfile.TemporaryDirectory())))
            self._baits = stack.enter_context(
                Baits(Path(stack.enter_context(tempfile.TemporaryDirectory())))
            )
            self._pool = stack.enter_context(ServicePool(1, HttpOffer()))
            self._worker = self._pool.workers()[0]
            self._bystanders = stack.enter_context(Bystanders(self._worker.client))
            self._cleaning = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._cleaning.close()

    @property
    def service_pid(self) -> int:
        """Number of the process that is attacked."""
        return self._worker.pid

    @property
    def kit_folder(self) -> Path:
        """Where the agents lie that are shown in boxes."""
        return self._kit.folder

    def attack(self, attack: Attack) -> Verdict:
        """Let one hostile agent do its worst and return how it went."""
        command = self._kit.command(attack.file, self._image)
        if command is None:
            return Verdict(attack, Result.NOT_APPLICABLE, self._kit.without_c, 0, 0)
        image = replace(
            self._image,
            command=command,
            mounts=(*self._image.mounts, Mount(self._kit.folder, AGENT_FOLDER)),
        )
        with one_at_a_time():
            return self._attack(attack, image)

    def _attack(self, attack: Attack, image: Image) -> Verdict:
        for _ in self._baits.touched():
            pass  # By an attack of another probe, before this one began.
        before = self._resources()
        try:
            attempt = attempt_episode(self._spec(attack), self._box(image, attack), self._pool)
        except InputError as error:
            return Verdict(attack, Result.NOT_APPLICABLE, str(error), 0, 0)
        time.sleep(SETTLE_S)
        breaches = [*self._breaches(attack, attempt), *self._damage(before)]
        return self._verdict(attack, attempt, breaches)

    def _verdict(self, attack: Attack, attempt: Attempt, breaches: Sequence[str]) -> Verdict:
        tries = attempts_of(attempt)
        won = list(prizes(attempt))
        if won and attack.at_kernel and self._engine.isolation is Isolation.SANDBOXED_KERNEL:
            detail, won = f"met the box's own kernel: {won[0]}", []
        elif not tries:
            return Verdict(attack, Result.NOT_RUN, _last_words(attempt), 0, attempt.wall_ms)
        else:
            detail = ""
        if won or breaches:
            return Verdict(
                attack, Result.NOT_STOPPED, "; ".join([*won, *breaches]), tries, attempt.wall_ms
            )
        if attack.limit in self._engine.unenforced:
            detail = f"{self._engine.name} does not limit {attack.limit} of a box"
            return Verdict(attack, Result.NOT_STOPPED, detail, tries, attempt.wall_ms)
        return Verdict(attack, Result.STOPPED, detail, tries, attempt.wall_ms)

    def _breaches(self, attack: Attack, attempt: Attempt) -> Iterator[str]:
        output = attempt.output or BoxOutput(b"", b"", 0, 0)
        records = "".join(record.event_json for record in attempt.records).encode()
        yield from self._baits.found_in(output.stdout + output.stderr)
        # What was planned stands in the trace because we write it there.
        yield from (found for found in self._baits.found_in(records) if "plan" not in found)
        yield from self._baits.touched()
        yield from self._bystanders.harmed()
        yield from machinery_trouble(attack, attempt, LIMITS.output_bytes)
        if self._engine.watch is not None:
            self._engine.watch.end()
            yield from excess(attack, self._engine.watch, _limits(attack), self._tasks_spare())
            yield from leftovers(self._engine.watch)
        if attack.repeats:
            yield from telling_words(attempt)
        if (
            attack.repeats
            and attack.wall is Wall.SERVICE
            and self._bystanders.folder in output.stdout
        ):
            yield "it was told where its socket lies on the host"
        if attack.recorded and attempt.infra is None:
            yield from misled(self._spec(attack), attempt)

    def _damage(self, before: tuple[int, int]) -> Iterator[str]:
        if not self._worker.alive or self._worker is not self._pool.workers()[0]:
            yield "the service died"
            return
        resident_bytes, descriptors = self._resources()
        if resident_bytes - before[0] > GROWTH_BYTES_MAX:
            yield f"the service grew by {(resident_bytes - before[0]) // MIB} MiB"
        if descriptors - before[1] > DESCRIPTORS_MAX:
            yield f"the service was left with {descriptors - before[1]} open connections"
        if RUN in self._left_behind():
            yield "its box was left behind"

    def _tasks_spare(self) -> int:
        own_kernel = self._engine.isolation is Isolation.SANDBOXED_KERNEL
        return TASKS_OF_A_KERNEL if own_kernel else TASKS_OF_AN_ENGINE

    def _left_behind(self) -> set[str]:
        """Return which labels of our run are still to be found on the host; removes nothing."""
        found: set[str] = set()

        def note(labels: dict[str, str]) -> bool:
            found.update(
                name for name, value in labels.items() if value == self._baits.secrets["run"]
            )
            return True

        list(self._engine.orphans(note))
        return found

    def _resources(self) -> tuple[int, int]:
        return self._worker.client.health().resident_bytes, open_descriptors(self._worker.pid)

    def _spec(self, attack: Attack) -> EpisodeSpec:
        secret = self._baits.secrets
        plan = FaultRule(0, "timeout", {"on_nth_call": 999_999}, "soft", {"note": secret["plan"]})
        return EpisodeSpec(
            episode_id=secret["episode"],
            world="files",
            harness_mode="native",
            initial_state={"files": {"/a.txt": "x"}},
            fault_plan=(plan,),
            seed=1,
            seats=(
                SeatSpec(
                    instruction="Look.", budget=Budget(calls=attack.calls, wall_ms=attack.wall_ms)
                ),
            ),
        )

    def _box(self, image: Image, attack: Attack) -> BoxPlan:
        arguments: tuple[str, ...] = ()
        if not attack.repeats:
            limits = (
                *(f"memory={LIMITS.memory_bytes}", f"tmp={LIMITS.tmp_bytes}"),
                *(f"open_files={LIMITS.open_files}", f"calls={attack.calls}"),
            )
            arguments = (*self._baits.arguments(), self._bystanders.argument(), *limits)
            if self._engine.isolation.is_none:
                arguments = (*arguments, "unboxed=yes")
        labels = owner_labels(self._baits.secrets["run"])
        return BoxPlan(
            engine=self._engine,
            image=image,
            limits=_limits(attack),
            arguments=arguments,
            labels=labels,
        )


def _limits(attack: Attack) -> Limits:
    return replace(LIMITS, memory_bytes=attack.memory_mb * MIB)


def _last_words(attempt: Attempt) -> str:
    if attempt.infra is not None:
        return attempt.infra.detail
    output = attempt.output.stderr if attempt.output else b""
    said = output.decode(errors="replace").strip().splitlines()
    return said[-1] if said else f"it ended without a word: {attempt.exit}"
