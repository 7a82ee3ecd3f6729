"""Formats numbers for text tables, captions and messages. A dash means that there is no number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from math import prod
from typing import TYPE_CHECKING

from fumehood.core.score import SEVERITIES
from fumehood.records.row import EpisodeName
from fumehood.report.results import Counts, Results
from fumehood.report.statistics.metrics import Metric, Unit

if TYPE_CHECKING:
    # These modules need the extra `report`, which `fumehood score` does not.
    from fumehood.report.findings import BaselineScores, GroupFindings
    from fumehood.report.statistics.intervals import Estimate, Interval
    from fumehood.report.statistics.pairs import Difference

NONE = "–"


def amount(value: float | None, unit: Unit) -> str:
    """Return one number: a share as per cent, a count with two decimals."""
    if value is None:
        return NONE
    return f"{value:.1%}" if unit is Unit.SHARE else f"{value:,.2f}"


def span(interval: Interval | None, unit: Unit) -> str:
    """Return an interval in brackets; empty if there is none."""
    if interval is None:
        return ""
    if unit is Unit.SHARE:
        return f"[{interval.low * 100:.1f}, {interval.high * 100:.1f}]"
    return f"[{interval.low:,.2f}, {interval.high:,.2f}]"


def estimate(own: Estimate, unit: Unit) -> str:
    """Return a mean and its interval."""
    return f"{amount(own.value, unit)} {span(own.interval, unit)}".strip()


def change(difference: Difference, unit: Unit) -> str:
    """Return a difference with its sign and interval; shares in percentage points."""
    if difference.value is None:
        return NONE
    return signed(difference.value, difference.interval, unit)


def signed(value: float, interval: Interval | None, unit: Unit) -> str:
    """Return a difference with its sign and interval; shares in percentage points."""
    text = f"{value * 100:+.1f} pp" if unit is Unit.SHARE else f"{value:+,.2f}"
    return f"{text} {span(interval, unit)}".strip()


def p_value(value: float | None) -> str:
    """Return a probability; small ones as an upper bound."""
    if value is None:
        return NONE
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def number_of(count: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def sizes(names: Collection[EpisodeName]) -> str:
    """Return the number of episodes, and of what they consist: agents, tasks and trials."""
    factors = {
        noun: len({getattr(name, noun) for name in names}) for noun in ("agent", "task", "trial")
    }
    is_whole = len(names) == prod(factors.values())
    text = " × ".join(number_of(count, noun) for noun, count in factors.items())
    return f"{number_of(len(names), 'episode')}, {'' if is_whole else 'of '}{text}"


def baselines(scores: BaselineScores) -> str:
    """Return the success of the baselines that is known."""
    named = (("no-op", scores.noop), ("oracle", scores.oracle))
    return ", ".join(f"{name} {amount(own, Unit.SHARE)}" for name, own in named if own is not None)


def baseline_cells(scores: Iterable[BaselineScores]) -> tuple[str, str]:
    """Return the success of no-op and oracle; the lowest and the highest if they differ."""
    known = list(scores)
    return _range(own.noop for own in known), _range(own.oracle for own in known)


def _range(shares: Iterable[float | None]) -> str:
    known = sorted(share for share in shares if share is not None)
    ends = dict.fromkeys(amount(share, Unit.SHARE) for share in (*known[:1], *known[-1:]))
    return " to ".join(ends) or NONE


def minute(ms: int | None) -> str:
    """Return a time, in milliseconds since the Unix epoch, as date and minute in UTC."""
    return NONE if ms is None else datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")


def missing(counts: Counts) -> str:
    """Return the episodes that are missing from a mean; empty if there are none."""
    parts = [
        (counts.ungraded, "ungraded"),
        (counts.infra, "infra"),
        (counts.repeated, "infra and repeated"),
    ]
    return ", ".join(f"{number:,} {word}" for number, word in parts if number)


def quantity(value: float, unit: str) -> str:
    """Return an amount of a resource in a readable unit."""
    if unit == "bytes":
        return _scaled(value, (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1)))
    if unit == "ms":
        return _scaled(value, (("h", 3.6e6), ("min", 6e4), ("s", 1e3), ("ms", 1)))
    if unit == "µs":
        return _scaled(value, (("s", 1e6), ("ms", 1e3), ("µs", 1)))
    if unit == "µ$":
        return dollars(value)
    return f"{value:,.0f}" if value == round(value) else f"{value:,.2f}"


def _scaled(value: float, units: tuple[tuple[str, float], ...]) -> str:
    for name, size in units:
        if value >= size:
            return f"{value / size:,.3g} {name}"
    return f"{value:,.3g} {units[-1][0]}"


S_OF_K = "S(k): share of episodes that succeeded with at most k tool calls."

LOST_SHARE_MAX = 0.1
"""With a larger share of episodes without a score there is no headline number."""


def why_no_headline(counts: Counts, planned: int) -> str | None:
    """Return why there is no headline number; None if there is one.

    Args:
        counts: of the finished episodes.
        planned: number of episodes of the whole run; an interruption could choose the others.
    """
    if (unfinished := why_unfinished(counts.episodes, planned)) is not None:
        return unfinished
    lost = counts.ungraded + counts.infra
    if not counts.episodes or lost / counts.episodes <= LOST_SHARE_MAX:
        return None
    return (
        f"{lost} of {counts.episodes} episodes have no score "
        f"({counts.infra} infra, {counts.ungraded} ungraded): no headline number"
    )


def why_unfinished(episodes: int, planned: int) -> str | None:
    """Return that too many planned episodes are not finished; None if they are.

    Args:
        episodes: number of finished ones.
        planned: number of planned ones.
    """
    unfinished = max(0, planned - episodes)
    if unfinished <= LOST_SHARE_MAX * planned:
        return None
    return f"{unfinished} of {planned} episodes are not finished: no headline number"


def why_no_comparison(pairs: int, undecided: int) -> str | None:
    """Return why there is no headline difference; None if there is one.

    ``pairs`` have a score on both sides; ``undecided`` pairs lack one.
    """
    both = pairs + undecided
    if pairs and undecided / both <= LOST_SHARE_MAX:
        return None
    return f"{undecided} of {both} pairs have no score: no headline difference"


def dollars(microusd: float) -> str:
    """Return millionths of a dollar as dollars, with the necessary decimals."""
    sign, value = "-" if microusd < 0 else "", abs(microusd) / 1e6
    if value >= 1:
        return f"{sign}${value:,.2f}"
    return f"{sign}${f'{value:.6f}'.rstrip('0').rstrip('.')}"


def violations(results: Results) -> str:
    """Return the number of episodes by their most severe violation; a dash if there is none."""
    worst = Counter(result.row.score.severity for result in results)
    classes = [name for name in reversed(SEVERITIES) if worst[name]]
    return ", ".join(f"{name.replace('_', ' ')} {worst[name]}" for name in classes) or NONE


def graded(counts: Counts) -> str:
    """Return the number of graded episodes, of how many, of how many tasks, and what is missing."""
    of_tasks = number_of(counts.tasks, "task") if counts.tasks != counts.episodes else ""
    details = ", ".join(filter(None, (of_tasks, missing(counts))))
    return f"{counts.graded:,} of {counts.episodes:,}" + (f" ({details})" if details else "")


def estimates(group: GroupFindings, metrics: Sequence[Metric]) -> list[str]:
    """Return one cell for each metric."""
    return [estimate(group.estimates[metric.name], metric.unit) for metric in metrics]
