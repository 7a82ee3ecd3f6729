"""A run and its episodes, as all exporters read them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from fumehood.core.episode_spec import ONLY_SEAT, SeatSpec
from fumehood.core.evidence import read_evidence
from fumehood.core.json_values import Json, JsonObject, as_object
from fumehood.core.outcome import ROW_CHARACTERS_MAX, Finished
from fumehood.core.task import Case, Task
from fumehood.records.row import EpisodeName, EpisodeRow
from fumehood.records.run_reader import RunReader
from fumehood.report.model_texts import Conversation

NO_MODEL = "none/none"
"""Name of the model of an agent without one, as in Inspect."""


@dataclass(frozen=True, slots=True)
class TimedEvent:
    """One event of a trace."""

    position: int
    """Number of its line in the trace, from 1."""
    event: dict[str, Any]
    wall_ms: int
    """End of the event, milliseconds since the Unix epoch."""
    duration_us: int
    hash: str


@dataclass(frozen=True, slots=True)
class Message:
    """A text that a seat read or submitted."""

    seat: str
    role: str
    """``system``, ``user`` or ``assistant``."""
    text: str
    at: TimedEvent


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The reply of a model; the text is empty if the run did not record it."""

    seat: str
    text: str
    at: TimedEvent

    @property
    def model(self) -> str:
        """Name of the model."""
        return str(self.at.event["model"])

    def tokens(self, kind: str) -> int:
        """Return the number of ``input``, ``output`` or ``cached`` tokens; 0 if unknown."""
        return _integer(as_object(self.at.event["reported"]).get(kind))

    @property
    def cost_usd(self) -> float:
        """What the request was charged, US dollars."""
        return _integer(as_object(self.at.event["spent"]).get("model_microusd")) / 1e6


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call with its result."""

    at: TimedEvent

    @property
    def event(self) -> dict[str, Any]:
        """The event of the trace."""
        return self.at.event

    @property
    def seat(self) -> str:
        """The seat that made the call."""
        return str(self.event["seat"])

    @property
    def identifier(self) -> str:
        """Unique within the episode."""
        return f"call_{self.event['number']}"

    @property
    def failure(self) -> dict[str, Any] | None:
        """``code``, ``message``, ``kind`` and ``details`` of a failed call."""
        failure: dict[str, Any] | None = self.event.get("failure")
        return failure

    @property
    def result_text(self) -> str:
        """What the agent read, as JSON."""
        return json.dumps(self.event.get("output", self.failure), ensure_ascii=False)

    @property
    def facts(self) -> JsonObject:
        """What other formats have no field for."""
        names = ("faults", "state", "charged", "at_ms", "arguments_after")
        return {
            **{name: self.event[name] for name in names if name in self.event},
            "hash": self.at.hash,
        }


Step = Message | ModelReply | Call


@dataclass(frozen=True)
class ExportedEpisode:
    """One episode with its trace."""

    run: RunReader
    row: EpisodeRow
    case: Case | None
    """The task with its criteria; None if the suite of the run lacks it."""
    is_readable: bool = True
    """If false, an event of the trace has an unknown form, and nothing of the trace is exported."""

    @property
    def task(self) -> Task | None:
        """The task."""
        return self.case.task if self.case else None

    @cached_property
    def events(self) -> tuple[TimedEvent, ...]:
        """The trace; empty for an episode that failed before it began, or is not readable."""
        records = self.run.read_trace(self.row) if self.row.trace and self.is_readable else []
        return tuple(
            TimedEvent(
                position, json.loads(each.event_json), each.wall_ms, each.duration_us, each.hash
            )
            for position, each in enumerate(records, 1)
        )

    @property
    def instruction(self) -> str:
        """The instruction of the tested agent."""
        return self.task.seats[0].instruction if self.task else ""

    @property
    def model(self) -> str:
        """The model of the agent, or :data:`NO_MODEL`."""
        return str(self.row.identity.get("model") or NO_MODEL)

    @cached_property
    def answer(self) -> str:
        """The last answer of the agent; empty if there is none."""
        outcome, task = self.row.outcome, self.task
        if not isinstance(outcome, Finished):
            return ""
        is_cut = len(outcome.answer) == ROW_CHARACTERS_MAX
        if task and (is_cut or (not outcome.answer and task.conversation)) and self.events:
            # The row may contain only a part of the answer, or that of another seat.
            evidence = read_evidence(each.event for each in self.events)
            return evidence.final_answer(task.seats[0].name) or ""
        return outcome.answer

    @property
    def tested_seats(self) -> tuple[SeatSpec, ...]:
        """The seats of the agent under test."""
        counterparts = self.task.counterparts if self.task else {}
        seats = self.task.seats if self.task else ()
        return tuple(seat for seat in seats if seat.name not in counterparts)

    @property
    def failed_checks(self) -> list[str]:
        """Names of the checks that do not hold."""
        return [name for name, holds in self.row.score.checks.items() if not holds]

    def steps(self) -> Iterator[Step]:
        """Yield what the seats read, said and did, in the order of the trace."""
        said = Conversation(self.run.exchanges(self.row.name))
        for each in self.events:
            event = each.event
            match event["kind"]:
                case "opened":
                    for seat in self.tested_seats:
                        yield Message(seat.name, "user", seat.instruction, each)
                case "model_call":
                    yield from _said(said, each)
                case "call":
                    yield Call(each)
                case "turn_began" if event["turn"] > 1:
                    yield Message(event["seat"], "user", event["text"], each)
                case "turn_ended":
                    yield Message(event["seat"], "assistant", event["answer"], each)
                case "seat_ended":
                    end = event["end"]
                    if text := end.get("answer") or end.get("reason"):
                        yield Message(event["seat"], "assistant", text, each)


def _said(said: Conversation, each: TimedEvent) -> Iterator[Step]:
    seat = str(each.event["seat"])
    reply = ""
    for who, text in said.lines(seat, str(each.event["request"])):
        if who == "model":
            reply = text
        elif who in ("system", "user"):
            yield Message(seat, who, text, each)
    yield ModelReply(seat, reply, each)


class ExportedRun:
    """A verified run, or one that the reader accepts unverified."""

    def __init__(self, run: RunReader, rows: Sequence[EpisodeRow] | None = None) -> None:
        """Read the suite of a run.

        Args:
            run: the run.
            rows: the rows to export; None for all.
        """
        self.run = run
        self.rows = run.rows() if rows is None else rows
        self.is_whole = rows is None
        self.unreadable: list[EpisodeName] = []
        """Episodes with an event of unknown form; code of an agent that took over the process of
        its episode may have written it."""
        self.manifest = run.manifest()
        self.suite = str(self.manifest.get("suite"))
        self._cases = {case.task.task_id: case for case in run.suite().cases}

    @property
    def agents(self) -> tuple[str, ...]:
        """The labels of the agents, in the order of the rows."""
        return tuple(dict.fromkeys(row.name.agent for row in self.rows))

    def episodes(self, agent: str | None = None) -> Iterator[ExportedEpisode]:
        """Yield the episodes of one agent, or of all."""
        for row in self.rows:
            if agent in (None, row.name.agent):
                case, is_readable = self._cases.get(row.name.task), row.name not in self.unreadable
                yield ExportedEpisode(self.run, row, case, is_readable)

    @property
    def facts(self) -> JsonObject:
        """What other formats have no field for."""
        names = ("run", "suite_digest", "isolation", "engine")
        verified: JsonObject = {"verification": self.run.provenance.to_json()}
        return {**{name: self.manifest.get(name) for name in names}, **verified}


def iso_time(wall_ms: int) -> str:
    """Return a moment in ISO 8601 format.

    Args:
        wall_ms: milliseconds since the Unix epoch.
    """
    return datetime.fromtimestamp(wall_ms / 1000, UTC).isoformat(timespec="milliseconds")


def seat_prefix(episode: ExportedEpisode, seat: str) -> str:
    """Return a prefix for texts of a seat, empty if the episode has one seat."""
    several = episode.task is not None and len(episode.task.seats) > 1
    return f"[{seat}] " if several and seat != ONLY_SEAT else ""


def _integer(value: Json) -> int:
    return value if isinstance(value, int) else 0
