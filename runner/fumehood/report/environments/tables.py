"""The two effects as tables for people and as JSON for programs."""

from __future__ import annotations

from fumehood.core.json_values import JsonObject
from fumehood.report import wording
from fumehood.report.environments.divergence import Way
from fumehood.report.environments.effects import Effects, EnvironmentEffect
from fumehood.report.findings import Versus
from fumehood.report.headline import why_no_comparison
from fumehood.report.statistics.metrics import Unit
from fumehood.report.tables.reading import ReadingTable


def effect_table(effects: Effects) -> ReadingTable:
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
    return ReadingTable(
        "What the environment does, and what the agent does", header, rows, names=2, note=note
    )


def divergence_table(effects: Effects) -> ReadingTable:
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
    return ReadingTable("Where episodes part", header, rows, note=note)


def page_table(effects: Effects) -> ReadingTable:
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
    return ReadingTable("Link rot", header, rows, names=2)


def latency_table(effects: Effects) -> ReadingTable:
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
    return ReadingTable("Latency", header, rows, names=3)


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
