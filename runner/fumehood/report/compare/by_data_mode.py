"""Compares data modes: the same agents on the same tasks in two data modes, and agents within each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations

import numpy as np

from fumehood.core.errors import InputError
from fumehood.core.evidence import Exchange
from fumehood.core.json_values import Json, JsonObject
from fumehood.report import wording
from fumehood.report.findings import Versus
from fumehood.report.runs import Run, Subject, subjects_of
from fumehood.report.statistics.metrics import Unit
from fumehood.report.statistics.pairs import compare
from fumehood.report.text_table import TextTable
from fumehood.report.traces import ReadTrace, read_traces
from fumehood.report.wording import why_no_comparison


class Way(Enum):
    """What differed first."""

    CALL = "call"
    """The agent asked for something else, though it had been told the same."""
    ANSWER = "answer"
    """The same call was answered otherwise."""
    END = "end"
    """One stopped where the other went on."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first difference."""

    call: int
    """Number of the call, from 1."""
    way: Way


def first_divergence(first: Sequence[Exchange], second: Sequence[Exchange]) -> Divergence | None:
    """Return where two lists of calls part; None where they are the same."""
    for number, (one, other) in enumerate(zip(first, second, strict=False), 1):
        if (one.seat, one.tool_name, dict(one.sent)) != (
            other.seat,
            other.tool_name,
            dict(other.sent),
        ):
            return Divergence(number, Way.CALL)
        if (one.output, one.failure) != (other.output, other.failure):
            return Divergence(number, Way.ANSWER)
    if len(first) != len(second):
        return Divergence(min(len(first), len(second)) + 1, Way.END)
    return None


OPENING = "open_page"


LOST = frozenset({"fetch_failed", "not_found", "not_recorded"})
"""Codes of the library that say that a page cannot be had; others are about the call."""


@dataclass(frozen=True, slots=True)
class PageCounts:
    """Of the pages that were opened in one environment."""

    opened: int
    """Calls that a library answered or said no to; a fault's answer says nothing about a page."""
    lost: Mapping[str, int]
    """By reason, such as ``timed_out`` or ``not_found``."""

    @property
    def lost_share(self) -> float | None:
        """Link rot: the share that could not be had; None where no page was opened."""
        return sum(self.lost.values()) / self.opened if self.opened else None


def count_pages(calls: Iterable[Exchange]) -> PageCounts:
    """Count the pages that were opened, and why some could not be had."""
    opened, lost = 0, Counter[str]()
    for call in calls:
        if call.tool_name != OPENING or call.strikes:
            continue
        if call.failure is None:
            opened += 1
        elif call.failure.code in LOST:
            opened += 1
            lost[_reason(call.failure.code, call.failure.message)] += 1
    return PageCounts(opened, dict(sorted(lost.items())))


def changed_pages(first: Iterable[Exchange], second: Iterable[Exchange]) -> tuple[int, int]:
    """Return how many pages were read from their beginning on both sides, and how many read otherwise."""
    ours, theirs = _texts(first), _texts(second)
    shared = ours.keys() & theirs.keys()
    return len(shared), sum(ours[name] != theirs[name] for name in shared)


def _reason(code: str, message: str) -> str:
    return message.partition(":")[0] if code == "fetch_failed" else code


def _texts(calls: Iterable[Exchange]) -> dict[str, Json]:
    texts: dict[str, Json] = {}
    for call in calls:
        output = call.output or {}
        if call.tool_name == OPENING and output.get("offset") == 0:
            texts.setdefault(str(output.get("url") or output.get("id")), output.get("text"))
    return texts


Trial = tuple[str, int]
"""A task and a trial: what pairs episodes."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Of the calls of one tool, milliseconds, as the service took them."""

    calls: int
    median_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class Side:
    """One environment of one agent."""

    environment: str
    pages: PageCounts
    latency: Mapping[str, Latency]
    """By tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentEffect:
    """One agent, in one environment and in the other."""

    versus: Versus
    sides: tuple[Side, Side]
    divergences: Mapping[Trial, Divergence | None]
    """Of every pair of episodes with traces; None where both went the same way."""
    shared_pages: int
    """Pages read in both environments of one pair."""
    changed_pages: int
    """Those of them whose text was not the same."""

    def parted(self, way: Way) -> int:
        """Count the pairs whose first difference was of this kind."""
        return sum(found is not None and found.way is way for found in self.divergences.values())


@dataclass(frozen=True, slots=True)
class Effects:
    """Both effects that a score mixes."""

    of_environment: tuple[EnvironmentEffect, ...]
    """One an agent: the second environment against the first."""
    of_agent: tuple[tuple[str, Versus], ...]
    """By environment: every later agent against every earlier one."""


def effects(first: Run, second: Run) -> Effects:
    """Compare two runs of the same agents on the same tasks in different environments.

    Raises:
        InputError: no agent is in both, both are of one environment, or a trace cannot be read.
    """
    environments = environment_of(first), environment_of(second)
    if environments[0] == environments[1]:
        raise InputError(f"both runs are {environments[0]}: there is no environment to compare")
    ours, theirs = ({one.agent: one for one in subjects_of([run])} for run in (first, second))
    if not ours.keys() & theirs.keys():
        raise InputError(f"no agent is in both: {', '.join(ours)}; {', '.join(theirs)}")
    own = tuple(_effect(ours[name], theirs[name]) for name in ours if name in theirs)
    between = tuple(
        (environment, Versus(one, other, compare(one.results, other.results)))
        for environment, subjects in zip(environments, (ours, theirs), strict=True)
        for one, other in combinations(subjects.values(), 2)
    )
    return Effects(own, between)


def environment_of(run: Run) -> str:
    """Return the environment of a run, as its configuration says."""
    config = run.manifest.get("config")
    return str(config.get("data_mode", "offline")) if isinstance(config, dict) else "offline"


def _effect(ours: Subject, theirs: Subject) -> EnvironmentEffect:
    read = [_traces(subject) for subject in (ours, theirs)]
    calls = [{trial: _calls(trace) for trial, trace in traces.items()} for traces in read]
    both = [trial for trial in calls[0] if trial in calls[1]]
    shared = [changed_pages(calls[0][trial], calls[1][trial]) for trial in both]
    return EnvironmentEffect(
        versus=Versus(ours, theirs, compare(ours.results, theirs.results)),
        sides=(_side(ours, read[0]), _side(theirs, read[1])),
        divergences={trial: first_divergence(calls[0][trial], calls[1][trial]) for trial in both},
        shared_pages=sum(pages for pages, _ in shared),
        changed_pages=sum(changed for _, changed in shared),
    )


def _traces(subject: Subject) -> dict[Trial, ReadTrace]:
    found = read_traces(subject.run.folder, subject.results)
    return {
        (result.row.name.task, result.row.name.trial): trace
        for result, trace in found
        if trace.evidence is not None
    }


def _calls(trace: ReadTrace) -> Sequence[Exchange]:
    return trace.evidence.exchanges if trace.evidence else ()


def _side(subject: Subject, traces: Mapping[Trial, ReadTrace]) -> Side:
    times_ms: dict[str, list[float]] = defaultdict(list)
    for trace in traces.values():
        for stamped in trace.events:
            if stamped.event["kind"] == "call":
                times_ms[str(stamped.event["tool"])].append(stamped.duration_us / 1000)
    pages = count_pages(call for trace in traces.values() for call in _calls(trace))
    return Side(
        environment_of(subject.run),
        pages,
        {tool: _latency(times_ms[tool]) for tool in sorted(times_ms)},
    )


def _latency(times_ms: Sequence[float]) -> Latency:
    median, p95 = np.quantile(times_ms, [0.5, 0.95])
    return Latency(len(times_ms), float(median), float(p95))


def effect_table(effects: Effects) -> TextTable:
    """Return both effects on success, one below the other."""
    rows = []
    for one in effects.of_environment:
        first, second = (side.environment for side in one.sides)
        rows.append(
            (f"environment: {first} → {second}", one.versus.second.agent, *_success(one.versus))
        )
    for environment, versus in effects.of_agent:
        rows.append(
            (f"agent: {versus.first.agent} → {versus.second.agent}", environment, *_success(versus))
        )
    header = ("Effect of", "With", "Pairs", "First", "Second", "Difference", "Won", "Lost", "p")
    tests = sorted({versus.comparison.test.value for versus in _all(effects)})
    note = f"Success; second minus first on the same task, trial and seed. p: {'; '.join(tests)}."
    return TextTable(
        "What the environment does, and what the agent does", header, rows, names=2, note=note
    )


def divergence_table(effects: Effects) -> TextTable:
    """Return where pairs of episodes parted."""
    header = (
        "Agent",
        "Pairs",
        "Same",
        "Other answer first",
        "Other call first",
        "Stopped first",
        "At call (median)",
    )
    rows = []
    for one in effects.of_environment:
        found = sorted(each.call for each in one.divergences.values() if each is not None)
        median = str(found[len(found) // 2]) if found else wording.NONE
        ways = (str(one.parted(way)) for way in (Way.ANSWER, Way.CALL, Way.END))
        same = len(one.divergences) - len(found)
        rows.append((one.versus.second.agent, str(len(one.divergences)), str(same), *ways, median))
    note = "What differed first in a pair. Another call first, after equal answers, is the agent's own chance."
    return TextTable("Where episodes part", header, rows, note=note)


def page_table(effects: Effects) -> TextTable:
    """Return what became of pages: link rot and change."""
    header = (
        "Agent",
        "Environment",
        "Pages opened",
        "Could not be had",
        "Why",
        "Read in both",
        "Changed",
    )
    rows = []
    for one in effects.of_environment:
        for side in one.sides:
            why = (
                ", ".join(f"{reason} {count}" for reason, count in side.pages.lost.items())
                or wording.NONE
            )
            lost = wording.amount(side.pages.lost_share, Unit.SHARE)
            shared = (str(one.shared_pages), str(one.changed_pages))
            rows.append(
                (
                    one.versus.second.agent,
                    side.environment,
                    str(side.pages.opened),
                    lost,
                    why,
                    *shared,
                )
            )
    return TextTable("Link rot", header, rows, names=2)


def latency_table(effects: Effects) -> TextTable:
    """Return how long calls took, as the service saw them."""
    header = ("Agent", "Environment", "Tool", "Calls", "Median", "95 %")
    rows = [
        (
            one.versus.second.agent,
            side.environment,
            tool,
            str(found.calls),
            wording.quantity(found.median_ms, "ms"),
            wording.quantity(found.p95_ms, "ms"),
        )
        for one in effects.of_environment
        for side in one.sides
        for tool, found in side.latency.items()
    ]
    return TextTable("Latency", header, rows, names=3)


def effects_json(effects: Effects) -> JsonObject:
    """Return everything that the tables show, and every pair's divergence."""
    return {
        "environment_effects": [_effect_json(one) for one in effects.of_environment],
        "agent_effects": [
            {
                "environment": environment,
                "first": one.first.agent,
                "second": one.second.agent,
                **_success_json(one),
            }
            for environment, one in effects.of_agent
        ],
    }


def _effect_json(one: EnvironmentEffect) -> JsonObject:
    return {
        "agent": one.versus.second.agent,
        "first": one.sides[0].environment,
        "second": one.sides[1].environment,
        **_success_json(one.versus),
        "shared_pages": one.shared_pages,
        "changed_pages": one.changed_pages,
        "pages": {
            side.environment: {"opened": side.pages.opened, "lost": dict(side.pages.lost)}
            for side in one.sides
        },
        "latency_ms": {
            side.environment: {
                tool: {"calls": found.calls, "median": found.median_ms, "p95": found.p95_ms}
                for tool, found in side.latency.items()
            }
            for side in one.sides
        },
        "divergences": [
            {
                "task": task,
                "trial": trial,
                "call": found.call if found else None,
                "way": found.way.value if found else None,
            }
            for (task, trial), found in one.divergences.items()
        ],
    }


def _success_json(versus: Versus) -> JsonObject:
    found = versus.comparison
    ends = found.success.interval
    return {
        "pairs": len(found.pairing.pairs),
        "undecided": found.pairing.undecided,
        "unmatched": found.pairing.unmatched,
        "success": [found.success.first, found.success.second],
        "difference": found.success.value,
        "interval": [ends.low, ends.high] if ends else None,
        "won": found.flips.won,
        "lost": found.flips.lost,
        "p_value": found.p_value,
        "test": found.test.value,
    }


def _success(versus: Versus) -> tuple[str, ...]:
    found = versus.comparison
    blocked = why_no_comparison(len(found.pairing.pairs), found.pairing.undecided)
    if blocked is not None:
        return (str(len(found.pairing.pairs)), *[wording.NONE] * 2, blocked, *[wording.NONE] * 3)
    return (
        str(len(found.pairing.pairs)),
        wording.amount(found.success.first, Unit.SHARE),
        wording.amount(found.success.second, Unit.SHARE),
        wording.change(found.success, Unit.SHARE),
        str(found.flips.won),
        str(found.flips.lost),
        wording.p_value(found.p_value),
    )


def _all(effects: Effects) -> list[Versus]:
    return [
        *(one.versus for one in effects.of_environment),
        *(versus for _, versus in effects.of_agent),
    ]
