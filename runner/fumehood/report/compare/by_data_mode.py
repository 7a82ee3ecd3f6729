"""Compares data modes: the same agents on the same tasks, and the agents within each mode."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations
from typing import Any

import numpy as np

from fumehood.core.errors import InputError
from fumehood.core.evidence import AnsweredCall
from fumehood.core.json_values import Json, JsonObject
from fumehood.report import wording
from fumehood.report.compare.costs import cost_change_table, cost_metrics
from fumehood.report.compare.dimension import Compared, CompareOptions, Target
from fumehood.report.findings import Versus
from fumehood.report.runs import Run, Subject, subjects_of
from fumehood.report.sections.comparisons import (
    difference_json,
    interval_json,
    success_cells,
    why_not_compared,
)
from fumehood.report.statistics.metrics import Unit
from fumehood.report.statistics.pairs import Difference, compare, difference
from fumehood.report.text_table import TextTable
from fumehood.report.traces import ReadTrace, read_traces


class ByDataMode:
    """Compares the same agents on the same tasks in two data modes, and the agents within each."""

    def arms(
        self, settings: Mapping[str, Any], options: CompareOptions
    ) -> Mapping[str, Mapping[str, Any]]:
        """Return an offline run and a live run, which is recorded if a recording is named."""
        if not options.agents:
            raise InputError("name at least one agent to run in both data modes: --agent AGENT")
        agents, recording = list(options.agents), settings.get("recording")
        live: dict[str, Any] = {"agents": agents, "data_mode": "live"}
        if recording is not None:
            live["data_mode"] = "record"
        elif not settings.get("fetch"):
            raise InputError(
                "name the hosts that the live run may contact: --config with fetch.hosts"
            )
        return {
            "offline": {"agents": agents, "data_mode": "offline", "recording": None},
            "live": live,
        }

    def compare(self, targets: Sequence[Target], options: CompareOptions) -> Compared:
        """Compare two runs of the same agents."""
        if len(targets) != 2:
            raise InputError(f"compare two runs, one of each data mode, not {len(targets)}")
        first, second = (target.run for target in targets)
        result = effects(first, second)
        return Compared(
            [
                effect_table(result),
                cost_table(result),
                divergence_table(result),
                page_table(result),
                latency_table(result),
            ],
            effects_json(result),
            subjects_of([first, second]),
        )


class DivergenceKind(Enum):
    """What differed first between two episodes."""

    CALL = "call"
    """The agent made another call after equal results."""
    ANSWER = "answer"
    """The same call had another result."""
    END = "end"
    """One episode ended and the other continued."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first difference between two episodes."""

    call: int
    """Number of the call, from 1."""
    kind: DivergenceKind


def first_divergence(
    first: Sequence[AnsweredCall], second: Sequence[AnsweredCall]
) -> Divergence | None:
    """Return the first difference between two lists of calls; None if they are equal."""
    for number, (left, right) in enumerate(zip(first, second, strict=False), 1):
        if (left.seat, left.tool_name, dict(left.sent)) != (
            right.seat,
            right.tool_name,
            dict(right.sent),
        ):
            return Divergence(number, DivergenceKind.CALL)
        if (left.output, left.failure) != (right.output, right.failure):
            return Divergence(number, DivergenceKind.ANSWER)
    if len(first) != len(second):
        return Divergence(min(len(first), len(second)) + 1, DivergenceKind.END)
    return None


OPEN_PAGE = "open_page"
SEARCH = "search"
LOST = frozenset({"fetch_failed", "not_found", "not_recorded"})
"""Failure codes of a page that is unavailable; other codes concern the call."""
REFUSED = frozenset({"bad_url", "host_not_allowed", "address_not_public", "robots_disallowed"})
"""Reasons of a page that the fetch policy refused; other reasons are link rot."""


@dataclass(frozen=True, slots=True)
class PageCounts:
    """The pages that an agent opened in one data mode."""

    opened: int
    """Calls that the library answered, or failed to answer although the policy allowed them. Calls
    on which a fault fired are left out."""
    lost: Mapping[str, int]
    """Unavailable pages by reason, such as ``timed_out`` or ``not_found``."""
    refused: Mapping[str, int]
    """Pages that the fetch policy refused, by reason, such as ``host_not_allowed``."""

    @property
    def read(self) -> int:
        """Number of pages that the library answered with."""
        return self.opened - sum(self.lost.values())

    @property
    def lost_share(self) -> float | None:
        """Share of unavailable pages (link rot); None if no page was opened."""
        return sum(self.lost.values()) / self.opened if self.opened else None


def count_pages(calls: Iterable[AnsweredCall], tool: str = OPEN_PAGE) -> PageCounts:
    """Count the opened pages, or the searches, and the unavailable ones by reason."""
    opened, failures = 0, Counter[str]()
    for call in calls:
        if call.tool_name != tool or call.fired_rules:
            continue
        if call.failure is None:
            opened += 1
        elif call.failure.code in LOST:
            failures[_reason(call.failure.code, call.failure.message)] += 1
    lost = {reason: count for reason, count in sorted(failures.items()) if reason not in REFUSED}
    refused = {reason: count for reason, count in sorted(failures.items()) if reason in REFUSED}
    return PageCounts(opened + sum(lost.values()), lost, refused)


def changed_pages(first: Iterable[AnsweredCall], second: Iterable[AnsweredCall]) -> tuple[int, int]:
    """Compare the pages whose beginning was read on both sides.

    Returns:
        How many there are, and how many have another text.
    """
    firsts, seconds = _texts(first), _texts(second)
    shared = firsts.keys() & seconds.keys()
    return len(shared), sum(firsts[name] != seconds[name] for name in shared)


def _reason(code: str, message: str) -> str:
    return message.partition(":")[0] if code == "fetch_failed" else code


def _texts(calls: Iterable[AnsweredCall]) -> dict[str, Json]:
    texts: dict[str, Json] = {}
    for call in calls:
        output = call.output or {}
        if call.tool_name == OPEN_PAGE and output.get("offset") == 0:
            texts.setdefault(str(output.get("url") or output.get("id")), output.get("text"))
    return texts


Trial = tuple[str, int]
"""Task and trial, which match episodes."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Time that the service took for the calls of one tool."""

    calls: int
    median_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class Side:
    """One agent in one data mode."""

    data_mode: str
    pages: PageCounts
    searches: PageCounts
    latency: Mapping[str, Latency]
    """By tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataModeEffect:
    """One agent in both data modes."""

    versus: Versus
    sides: tuple[Side, Side]
    divergences: Mapping[Trial, Divergence | None]
    """First difference of each pair of episodes with traces; None if they are equal."""
    cost_changes: Mapping[str, Difference]
    """By resource: the second data mode minus the first, on the same pairs."""
    shared_pages: int
    """Pages that were read in both episodes of a pair."""
    changed_pages: int
    """Shared pages whose text differs."""

    def diverged(self, kind: DivergenceKind) -> int:
        """Count the pairs whose first difference was of this kind."""
        return sum(
            divergence is not None and divergence.kind is kind
            for divergence in self.divergences.values()
        )


@dataclass(frozen=True, slots=True)
class Effects:
    """The effect of the data mode and the effect of the agent on success."""

    of_data_mode: tuple[DataModeEffect, ...]
    """For each agent: the second data mode against the first."""
    of_agent: tuple[tuple[str, Versus], ...]
    """With the data mode: every later agent against every earlier one."""


def effects(first: Run, second: Run) -> Effects:
    """Compare two runs of the same agents on the same tasks in two data modes.

    Raises:
        InputError: both runs have the same data mode, share no agent, or have an unreadable trace,
            or every page that one of them fetched failed.
    """
    modes = data_mode_of(first), data_mode_of(second)
    if modes[0] == modes[1]:
        raise InputError(f"both runs have the data mode {modes[0]}; compare runs of two data modes")
    firsts, seconds = (
        {subject.agent: subject for subject in subjects_of([run])} for run in (first, second)
    )
    if not firsts.keys() & seconds.keys():
        raise InputError(f"the runs share no agent: {', '.join(firsts)}; {', '.join(seconds)}")
    own = tuple(_effect(firsts[name], seconds[name]) for name in firsts if name in seconds)
    for run, position in ((first, 0), (second, 1)):
        sides = [effect.sides[position] for effect in own]
        _check_fetches(run, "pages", [side.pages for side in sides])
        _check_fetches(run, "searches", [side.searches for side in sides])
    between = tuple(
        (data_mode, Versus(baseline, other, compare(baseline.results, other.results)))
        for data_mode, subjects in zip(modes, (firsts, seconds), strict=True)
        for baseline, other in combinations(subjects.values(), 2)
    )
    return Effects(own, between)


def data_mode_of(run: Run) -> str:
    """Return the data mode of a run."""
    return str(run.config.get("data_mode", "offline"))


SETTINGS = {
    "pages": "fetch.hosts, fetch.private_hosts (both with the port)",
    "searches": "search.url, search.private (true for a private address), fetch.hosts",
}
"""Settings that can make fetches fail, by what was fetched."""


def _check_fetches(run: Run, what: str, pages: Sequence[PageCounts]) -> None:
    """Reject a run of which nothing could be fetched: its scores describe the network."""
    reasons = sum((Counter(page.lost) + Counter(page.refused) for page in pages), Counter[str]())
    failed = reasons.total()
    if data_mode_of(run) != "offline" and failed and not any(page.read for page in pages):
        counts = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
        raise InputError(
            f"{run.label}: all {failed} {what} that this {data_mode_of(run)} run fetched failed "
            f"({counts}), so no effect can be shown; correct {SETTINGS[what]} or the network, and "
            "run it again"
        )


def _effect(firsts: Subject, seconds: Subject) -> DataModeEffect:
    read = [_traces(subject) for subject in (firsts, seconds)]
    calls = [{trial: _calls(trace) for trial, trace in traces.items()} for traces in read]
    both = [trial for trial in calls[0] if trial in calls[1]]
    shared = [changed_pages(calls[0][trial], calls[1][trial]) for trial in both]
    comparison = compare(firsts.results, seconds.results)
    return DataModeEffect(
        versus=Versus(firsts, seconds, comparison),
        sides=(_side(firsts, read[0]), _side(seconds, read[1])),
        divergences={trial: first_divergence(calls[0][trial], calls[1][trial]) for trial in both},
        cost_changes={
            metric.name: difference(comparison.pairing.pairs, metric)
            for metric in cost_metrics([firsts, seconds])
        },
        shared_pages=sum(pages for pages, _ in shared),
        changed_pages=sum(changed for _, changed in shared),
    )


def _traces(subject: Subject) -> dict[Trial, ReadTrace]:
    traces = read_traces(subject.run.folder, subject.results)
    return {
        (result.row.name.task, result.row.name.trial): trace
        for result, trace in traces
        if trace.evidence is not None
    }


def _calls(trace: ReadTrace) -> Sequence[AnsweredCall]:
    return trace.evidence.calls if trace.evidence else ()


def _side(subject: Subject, traces: Mapping[Trial, ReadTrace]) -> Side:
    times_ms: dict[str, list[float]] = defaultdict(list)
    for trace in traces.values():
        for stamped in trace.events:
            if stamped.event["kind"] == "call":
                times_ms[str(stamped.event["tool"])].append(stamped.duration_us / 1000)
    calls = [call for trace in traces.values() for call in _calls(trace)]
    return Side(
        data_mode_of(subject.run),
        count_pages(calls),
        count_pages(calls, SEARCH),
        {tool: _latency(times_ms[tool]) for tool in sorted(times_ms)},
    )


def _latency(times_ms: Sequence[float]) -> Latency:
    median, p95 = np.quantile(times_ms, [0.5, 0.95])
    return Latency(len(times_ms), float(median), float(p95))


def effect_table(effects: Effects) -> TextTable:
    """Return both effects on success."""
    rows = []
    for effect in effects.of_data_mode:
        first, second = (side.data_mode for side in effect.sides)
        rows.append(
            (f"data mode: {first} → {second}", effect.versus.second.agent, *_success(effect.versus))
        )
    for data_mode, versus in effects.of_agent:
        rows.append(
            (f"agent: {versus.first.agent} → {versus.second.agent}", data_mode, *_success(versus))
        )
    header = ("Effect of", "With", "Pairs", "First", "Second", "Difference", "Won", "Lost", "p")
    tests = sorted({versus.comparison.test.value for versus in _all(effects)})
    note = f"Success; second minus first on the same task, trial and seed. p: {'; '.join(tests)}."
    return TextTable("Effect of the data mode and of the agent", header, rows, names=2, note=note)


def divergence_table(effects: Effects) -> TextTable:
    """Return where the episodes of a pair first differ."""
    kinds = ("First: other result", "First: other call", "First: one ended")
    header = ("Agent", "Pairs", "Same", *kinds, "At call (median)")
    rows = []
    for effect in effects.of_data_mode:
        calls = sorted(
            divergence.call for divergence in effect.divergences.values() if divergence is not None
        )
        median = str(calls[len(calls) // 2]) if calls else wording.NONE
        order = (DivergenceKind.ANSWER, DivergenceKind.CALL, DivergenceKind.END)
        counts = (str(effect.diverged(kind)) for kind in order)
        same = len(effect.divergences) - len(calls)
        rows.append(
            (effect.versus.second.agent, str(len(effect.divergences)), str(same), *counts, median)
        )
    note = (
        "What differed first in a pair. Other result: of the same call, such as other IDs of "
        "search results; the success can be equal. Another call after equal results is "
        "randomness of the agent."
    )
    return TextTable("First difference between episodes", header, rows, note=note)


def page_table(effects: Effects) -> TextTable:
    """Return how many pages were unavailable or changed."""
    pages = ("Pages opened", "Unavailable", "Refused", "Reasons")
    header = ("Agent", "Data mode", *pages, "Read in both", "Changed")
    rows = [
        (
            *(effect.versus.second.agent, side.data_mode, *_page_cells(side.pages)),
            *(str(effect.shared_pages), str(effect.changed_pages)),
        )
        for effect in effects.of_data_mode
        for side in effect.sides
    ]
    note = "Refused: pages that the fetch policy does not allow; they are not counted as opened."
    return TextTable("Link rot", header, rows, names=2, note=note)


def _page_cells(pages: PageCounts) -> tuple[str, ...]:
    reasons = {**pages.lost, **pages.refused}
    why = ", ".join(f"{reason} {count}" for reason, count in reasons.items())
    lost, refused = wording.amount(pages.lost_share, Unit.SHARE), sum(pages.refused.values())
    return (str(pages.opened), lost, str(refused), why or wording.NONE)


def cost_table(effects: Effects) -> TextTable:
    """Return the cost differences between the data modes, on the same tasks."""
    return cost_change_table(
        [
            (effect.versus.second.agent, effect.cost_changes)
            for effect in effects.of_data_mode
            if effect.versus.comparison.pairing.pairs
        ]
    )


def latency_table(effects: Effects) -> TextTable:
    """Return how long the service took for calls, by tool."""
    header = ("Agent", "Data mode", "Tool", "Calls", "Median", "p95")
    rows = [
        (
            effect.versus.second.agent,
            side.data_mode,
            tool,
            str(latency.calls),
            wording.quantity(latency.median_ms, "ms"),
            wording.quantity(latency.p95_ms, "ms"),
        )
        for effect in effects.of_data_mode
        for side in effect.sides
        for tool, latency in side.latency.items()
    ]
    return TextTable("Latency", header, rows, names=3)


def effects_json(effects: Effects) -> JsonObject:
    """Return everything that the tables show, and every pair's divergence."""
    return {
        "data_mode_effects": [_effect_json(effect) for effect in effects.of_data_mode],
        "agent_effects": [
            {
                "data_mode": data_mode,
                "first": versus.first.agent,
                "second": versus.second.agent,
                **_success_json(versus),
            }
            for data_mode, versus in effects.of_agent
        ],
    }


def _effect_json(effect: DataModeEffect) -> JsonObject:
    return {
        "agent": effect.versus.second.agent,
        "first": effect.sides[0].data_mode,
        "second": effect.sides[1].data_mode,
        **_success_json(effect.versus),
        "shared_pages": effect.shared_pages,
        "changed_pages": effect.changed_pages,
        "pages": {
            side.data_mode: {
                "opened": side.pages.opened,
                "lost": dict(side.pages.lost),
                "refused": dict(side.pages.refused),
            }
            for side in effect.sides
        },
        "cost_changes": {
            name: difference_json(change) for name, change in effect.cost_changes.items()
        },
        "latency_ms": {
            side.data_mode: {
                tool: {"calls": latency.calls, "median": latency.median_ms, "p95": latency.p95_ms}
                for tool, latency in side.latency.items()
            }
            for side in effect.sides
        },
        "divergences": [
            {
                "task": task,
                "trial": trial,
                "call": divergence.call if divergence else None,
                "kind": divergence.kind.value if divergence else None,
            }
            for (task, trial), divergence in effect.divergences.items()
        ],
    }


def _success_json(versus: Versus) -> JsonObject:
    comparison = versus.comparison
    return {
        "pairs": len(comparison.pairing.pairs),
        "undecided": comparison.pairing.undecided,
        "unmatched": comparison.pairing.unmatched,
        "success": [comparison.success.first, comparison.success.second],
        "difference": comparison.success.value,
        "interval": interval_json(comparison.success),
        "won": comparison.flips.won,
        "lost": comparison.flips.lost,
        "p_value": comparison.p_value,
        "test": comparison.test.value,
    }


def _success(versus: Versus) -> tuple[str, ...]:
    pairs, blocked = str(len(versus.comparison.pairing.pairs)), why_not_compared(versus)
    if blocked is not None:
        return (pairs, *[wording.NONE] * 2, blocked, *[wording.NONE] * 3)
    return (pairs, *success_cells(versus.comparison))


def _all(effects: Effects) -> list[Versus]:
    return [
        *(effect.versus for effect in effects.of_data_mode),
        *(versus for _, versus in effects.of_agent),
    ]
