"""Numbers as people read them. A dash stands where there is no number."""

from __future__ import annotations

from fumehood.report.money import dollars
from fumehood.report.results import Counts
from fumehood.report.statistics.intervals import Estimate, Interval
from fumehood.report.statistics.metrics import Unit
from fumehood.report.statistics.pairs import Difference

NONE = "–"


def amount(value: float | None, unit: Unit) -> str:
    """Return one number: a share as per cent, a count with two decimals."""
    if value is None:
        return NONE
    return f"{value:.1%}" if unit is Unit.SHARE else f"{value:,.2f}"


def span(interval: Interval | None, unit: Unit) -> str:
    """Return an interval in brackets; empty where there is none."""
    if interval is None:
        return ""
    if unit is Unit.SHARE:
        return f"[{interval.low * 100:.1f}, {interval.high * 100:.1f}]"
    return f"[{interval.low:,.2f}, {interval.high:,.2f}]"


def estimate(found: Estimate, unit: Unit) -> str:
    """Return a mean and its interval."""
    return f"{amount(found.value, unit)} {span(found.interval, unit)}".strip()


def change(found: Difference, unit: Unit) -> str:
    """Return a difference with its sign and its interval; of shares in percentage points."""
    if found.value is None:
        return NONE
    if unit is Unit.SHARE:
        return f"{found.value * 100:+.1f} pp {span(found.interval, unit)}".strip()
    return f"{found.value:+,.2f} {span(found.interval, unit)}".strip()


def p_value(value: float | None) -> str:
    """Return a probability, never as zero."""
    if value is None:
        return NONE
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def missing(counts: Counts) -> str:
    """Return what is missing from a mean; empty where nothing is."""
    parts = [(counts.ungraded, "ungraded"), (counts.infra, "infra")]
    return ", ".join(f"{number:,} {word}" for number, word in parts if number)


def quantity(value: float, unit: str) -> str:
    """Return an amount of a resource in the unit that reads best."""
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
