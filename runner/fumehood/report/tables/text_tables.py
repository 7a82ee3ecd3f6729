"""What was found, as tables for people: a number with its interval in one cell, what is missing beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fumehood.report import wording
from fumehood.report.findings import Findings, GroupFindings, SubjectFindings, Versus
from fumehood.report.headline import why_no_comparison
from fumehood.report.results import CLEAN, Counts
from fumehood.report.statistics.failure_labels import LEVELS, TITLES, Label
from fumehood.report.statistics.metrics import BUDGETED, METRICS, THE_EIGHT, Metric, Unit
from fumehood.report.statistics.pairs import Pairing
from fumehood.report.statistics.resources import RESOURCES, WHOLE_EPISODE, Resource, Spread
from fumehood.report.tables.aspects import aspect_table
from fumehood.report.tables.containment import attack_table, probe_table
from fumehood.report.tables.evidence import evidence_table
from fumehood.report.tables.reading import ReadingTable

INTERVALS = "In brackets: 95 % bootstrap intervals over tasks; Wilson's where all tasks agree."
SUCCESS = THE_EIGHT[0]
NOT_ZERO = frozenset("123456789")


def metric_table(findings: Findings) -> ReadingTable:
    """Return the paper's eight for every subject."""
    header = ("Agent", "Graded", *(metric.title for metric in THE_EIGHT))
    rows = [
        (found.subject.label, _graded(found.whole.counts), *_estimates(found.whole, THE_EIGHT))
        for found in findings.subjects
    ]
    return ReadingTable("The eight metrics", header, rows, note=INTERVALS)


def budget_table(findings: Findings) -> ReadingTable:
    """Return S(k) and the area under it."""
    header = ("Agent", *(metric.title for metric in BUDGETED))
    rows = [
        (found.subject.label, *_estimates(found.whole, BUDGETED)) for found in findings.subjects
    ]
    note = "S(k): share of episodes solved with at most k tool calls; no episode was run again with that cap."
    return ReadingTable("Success within a budget of calls", header, rows, note=note)


def group_table(findings: Findings, grouping: str, title: str) -> ReadingTable:
    """Return success by group: a row a group, a column a subject.

    Args:
        findings: what was found.
        grouping: ``by_fault`` or ``by_domain``.
        title: of the table.
    """
    header = (title, *(found.subject.label for found in findings.subjects))
    rows = [
        (name, *(_success_of(getattr(found, grouping), name) for found in findings.subjects))
        for name in findings.groups(grouping)
    ]
    note = (
        "A task with several planned faults is in the row of each."
        if grouping == "by_fault"
        else ""
    )
    return ReadingTable(f"Success by {title.lower()}", header, rows, note=note)


def trial_table(findings: Findings) -> ReadingTable:
    """Return pass@k and pass^k; empty where every task had one trial."""
    ks = list(dict.fromkeys(rate.k for found in findings.subjects for rate in found.trials.pass_at))
    header = ("Agent", "", *(f"k = {k}" for k in ks))
    rows = []
    for found in findings.subjects:
        for name, rates in (("pass@k", found.trials.pass_at), ("pass^k", found.trials.pass_all)):
            by_k = {
                rate.k: f"{rate.value:.1%} {wording.span(rate.interval, Unit.SHARE)}".strip()
                for rate in rates
            }
            rows.append((found.subject.label, name, *(by_k.get(k, wording.NONE) for k in ks)))
    note = "pass@k: at least one of k trials succeeds. pass^k: all k do. Over tasks with k graded trials."
    return ReadingTable(
        "Repeated trials", header, rows if max(ks, default=1) > 1 else (), names=2, note=note
    )


def resource_table(findings: Findings) -> ReadingTable:
    """Return what episodes cost."""
    header = ("Resource", "Agent", "Mean", "Median", "p95", "Total")
    rows = [
        row
        for resource in RESOURCES
        for found in findings.subjects
        for row in _resource_rows(found, resource)
    ]
    telling = {row[0] for row in rows if any(NOT_ZERO & set(cell) for cell in row[2:])}
    rows = [row for row in rows if row[0] in telling]
    note = "Per episode. Wall time includes the start of the box; time in calls is the service's alone."
    return ReadingTable("Resources", header, rows, names=2, note=note)


def failure_table(findings: Findings) -> ReadingTable:
    """Return failed episodes by primary label, and in brackets those it is secondary to."""
    counted = [(found, found.primaries(), found.secondaries()) for found in findings.subjects]
    present = [
        label
        for label in Label
        if any(label in first or label in second for _, first, second in counted)
    ]
    header = ("Level", "Label", *(found.subject.label for found in findings.subjects))
    rows = [
        (
            LEVELS[label].value,
            TITLES[label],
            *(_counted(first, second, label) for _, first, second in counted),
        )
        for label in present
    ]
    note = "Failed episodes by what ended them, or else by what went wrong; in brackets: also, but not first."
    return ReadingTable("Why episodes fail", header, rows, names=2, note=note)


def versus_table(versus: Sequence[Versus]) -> ReadingTable:
    """Return each second subject against its first."""
    header = ("Compared", "Pairs", "First", "Second", "Difference", "Won", "Lost", "p", "Left out")
    rows = [_versus_row(one) for one in versus]
    tests = sorted({one.comparison.test.value for one in versus})
    note = f"Second minus first on the same tasks, paired. p: {'; '.join(tests)}."
    return ReadingTable("Compared on the same tasks", header, rows, note=note if rows else "")


def flipped_table(versus: Versus, at_most: int) -> ReadingTable:
    """Return the tasks that flipped, losses first.

    Args:
        versus: the comparison.
        at_most: so many are listed.
    """
    flipped = versus.comparison.flipped
    rows = [
        (
            pair.first.task.task_id,
            str(pair.first.row.name.trial),
            "won" if pair.change > 0 else "lost",
            ", ".join(pair.first.task.families) or CLEAN,
        )
        for pair in flipped[:at_most]
    ]
    note = f"{at_most} of {len(flipped):,}; --json lists all." if len(flipped) > at_most else ""
    return ReadingTable(
        "What flipped", ("Task", "Trial", "Flip", "Faults"), rows, names=4, note=note
    )


def flip_table(versus: Versus) -> ReadingTable:
    """Return how pairs fell, by fault."""
    header = ("Fault", "Pairs", "Both", "Lost", "Won", "Neither", "Difference")
    rows = [
        (
            name,
            f"{difference.over:,}",
            *(f"{number:,}" for number in (flips.both, flips.lost, flips.won, flips.neither)),
            wording.change(difference, Unit.SHARE),
        )
        for name, (flips, difference) in versus.comparison.by_fault.items()
    ]
    return ReadingTable(f"{versus.first.label} → {versus.second.label}, by fault", header, rows)


def difference_table(versus: Versus) -> ReadingTable:
    """Return the difference in every metric."""
    header = ("Metric", "First", "Second", "Difference")
    rows = []
    for metric in METRICS:
        found = versus.comparison.metrics[metric.name]
        first, second = (
            wording.amount(found.first, metric.unit),
            wording.amount(found.second, metric.unit),
        )
        rows.append((metric.title, first, second, wording.change(found, metric.unit)))
    title = f"{versus.first.label} → {versus.second.label}, by metric"
    return ReadingTable(title, header, rows)


def text_tables(findings: Findings) -> list[ReadingTable]:
    """Return all that have rows, in the order in which they are read."""
    tables = [
        metric_table(findings),
        aspect_table([found.subject for found in findings.subjects]),
        group_table(findings, "by_fault", "Fault"),
        group_table(findings, "by_domain", "Domain"),
        budget_table(findings),
        trial_table(findings),
        versus_table(findings.versus),
        *(flip_table(versus) for versus in findings.versus),
        evidence_table([found.subject for found in findings.subjects]),
        failure_table(findings),
        resource_table(findings),
        probe_table(findings.runs),
        attack_table(findings.runs),
    ]
    return [table for table in tables if table.rows]


def _graded(counts: Counts) -> str:
    left_out = wording.missing(counts)
    return f"{counts.graded:,} of {counts.episodes:,}" + (f" ({left_out})" if left_out else "")


def _estimates(group: GroupFindings, metrics: tuple[Metric, ...]) -> list[str]:
    return [wording.estimate(group.estimates[metric.name], metric.unit) for metric in metrics]


def _success_of(groups: Mapping[str, GroupFindings], name: str) -> str:
    if name not in groups:
        return wording.NONE
    group = groups[name]
    told = wording.estimate(group.estimates[SUCCESS.name], Unit.SHARE)
    left_out = wording.missing(group.counts)
    return f"{told} of {group.counts.graded:,}" + (f" ({left_out})" if left_out else "")


def _resource_rows(found: SubjectFindings, resource: Resource) -> Iterator[tuple[str, ...]]:
    seats = [
        seat for seat in dict.fromkeys(seat for seat, _ in found.spreads) if seat != WHOLE_EPISODE
    ]
    for seat in (*seats, WHOLE_EPISODE):
        spread = found.spreads.get((seat, resource.name))
        if spread is not None:
            title = f"{resource.title} ({seat})" if len(seats) > 1 and seat else resource.title
            yield (title, found.subject.label, *_spread(spread, resource.unit))


def _spread(spread: Spread, unit: str) -> list[str]:
    amounts = (spread.mean, spread.median, spread.p95, spread.total)
    return [wording.quantity(amount, unit) for amount in amounts]


def _counted(first: Mapping[Label, int], second: Mapping[Label, int], label: Label) -> str:
    also = f" (+{second[label]:,})" if label in second else ""
    return f"{first.get(label, 0):,}{also}"


def _versus_row(versus: Versus) -> tuple[str, ...]:
    found = versus.comparison
    pairing = found.pairing
    name = f"{versus.first.label} → {versus.second.label}"
    blocked = why_no_comparison(len(pairing.pairs), pairing.undecided)
    if blocked is not None:
        return (name, f"{len(pairing.pairs):,}", *[wording.NONE] * 6, blocked)
    return (
        name,
        f"{len(pairing.pairs):,}",
        wording.amount(found.success.first, Unit.SHARE),
        wording.amount(found.success.second, Unit.SHARE),
        wording.change(found.success, Unit.SHARE),
        f"{found.flips.won:,}",
        f"{found.flips.lost:,}",
        wording.p_value(found.p_value),
        _left_out(pairing) or wording.NONE,
    )


def _left_out(pairing: Pairing) -> str:
    parts = (
        (pairing.unmatched, "unmatched"),
        (pairing.differing, "of differing tasks"),
        (pairing.undecided, "undecided"),
    )
    return ", ".join(f"{number:,} {word}" for number, word in parts if number)
