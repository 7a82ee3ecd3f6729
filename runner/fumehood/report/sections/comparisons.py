"""Sections that compare agents on the same tasks: differences, and the tasks that flipped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fumehood.core.json_values import Json, JsonObject
from fumehood.report import pictures as vega
from fumehood.report import wording
from fumehood.report.data_table import ALL, DataTable, Row, integers, numbers, texts
from fumehood.report.findings import BaselineScores, Findings, Versus
from fumehood.report.pictures import Picture, Spec
from fumehood.report.results import CLEAN
from fumehood.report.runs import judges_note
from fumehood.report.safe_text import safe
from fumehood.report.sections.metrics import CATASTROPHIC, RECOVERED
from fumehood.report.sections.section import (
    FlipList,
    FlippedTask,
    FlippedTrial,
    Section,
    episode_address,
)
from fumehood.report.statistics.intervals import Estimate, ends
from fumehood.report.statistics.metrics import ASPECTS, METRICS, REWARDS, Unit
from fumehood.report.statistics.pairs import Comparison, Difference, Flips, Pair, Pairing
from fumehood.report.text_table import TextTable

FLIPS_MAX = 100
"""Flipped tasks of one comparison that a page lists; ``flips.csv`` has all of them."""
PICTURES_MAX = 6
"""Comparisons that get a picture of their flips; all have tables."""


def comparisons_section(findings: Findings) -> Section:
    """Return the difference in success of each agent against the baseline agent."""
    with_difference = [versus for versus in findings.versus if why_not_compared(versus) is None]
    return Section(
        label="Compared",
        title="Comparison on the same tasks",
        tables=[versus_table(findings.versus)],
        pictures=[differences(with_difference)] if with_difference else (),
        data=[comparison_data(findings)],
        is_open=True,
    )


def flips_section(findings: Findings) -> Section:
    """Return the tasks that only one of two agents solved."""
    flipped = [versus for versus in findings.versus if versus.comparison.flipped]
    details = [(difference_table(versus), flip_table(versus)) for versus in findings.versus]
    return Section(
        label="Flips",
        title="Flipped tasks",
        tables=[table for pair in details for table in pair],
        pictures=[
            flips_picture(versus, f"flips_{number}")
            for number, versus in enumerate(flipped[:PICTURES_MAX], 1)
        ],
        data=[comparison_data(findings), flip_data(findings), difference_data(findings)],
        flips=[_flip_list(versus) for versus in findings.versus],
    )


def _flip_list(versus: Versus) -> FlipList:
    by_task = _flipped_by_task(versus)
    listed = tuple(
        FlippedTask(*key, tuple(_flipped_trial(versus, pair) for pair in pairs))
        for key, pairs in list(by_task.items())[:FLIPS_MAX]
    )
    title = f"{versus.first.label} → {versus.second.label}"
    return FlipList(title, len(versus.comparison.flipped), len(by_task), listed)


def _flipped_trial(versus: Versus, pair: Pair) -> FlippedTrial:
    return FlippedTrial(
        pair.first.row.name.trial,
        episode_address(pair.first.row.name, versus.first.label),
        episode_address(pair.second.row.name, versus.second.label),
    )


def _flipped_by_task(versus: Versus) -> dict[tuple[str, str, str], list[Pair]]:
    """Return the flipped pairs by task, flip and faults, losses first."""
    groups: dict[tuple[str, str, str], list[Pair]] = {}
    for pair in versus.comparison.flipped:
        task, flip = pair.first.task, "won" if pair.change > 0 else "lost"
        key = (task.task_id, flip, ", ".join(task.families) or CLEAN)
        groups.setdefault(key, []).append(pair)
    return groups


def versus_table(versus: Sequence[Versus]) -> TextTable:
    """Return one row per comparison."""
    numbers = ("First", "Second", "Difference", "Won", "Lost", "p", "Left out")
    has_baselines = any(pair.baselines_on() != BaselineScores() for pair in versus)
    header = ("Compared", "Pairs", *BOUNDS[: 2 * has_baselines], *numbers)
    rows = [_versus_row(pair, has_baselines) for pair in versus]
    tests = sorted({pair.comparison.test.value for pair in versus})
    judges = judges_note(side for pair in versus for side in (pair.first, pair.second))
    note = f"{judges}Second minus first, paired by task and trial. p: {'; '.join(tests)}."
    return TextTable("Comparison on the same tasks", header, rows, note=note if rows else "")


BOUNDS = ("No-op", "Oracle")
"""Columns with the success of the baselines on the compared tasks."""


def _versus_row(versus: Versus, has_baselines: bool) -> tuple[str, ...]:
    comparison = versus.comparison
    name = f"{versus.first.label} → {versus.second.label}"
    pairs = f"{len(comparison.pairing.pairs):,}"
    bounds = wording.baseline_cells([versus.baselines_on()]) if has_baselines else ()
    blocked = why_not_compared(versus)
    if blocked is not None:
        return (name, pairs, *bounds, *[wording.NONE] * 6, blocked)
    left_out = _left_out(comparison.pairing) or wording.NONE
    return (name, pairs, *bounds, *success_cells(comparison), left_out)


def why_not_compared(versus: Versus) -> str | None:
    """Return why there is no headline difference; None if there is one."""
    for side in (versus.first, versus.second):
        if (unfinished := wording.why_unfinished(len(side.results), side.planned)) is not None:
            return f"{side.label}: {unfinished}"
    pairing = versus.comparison.pairing
    return wording.why_no_comparison(len(pairing.pairs), pairing.undecided)


def success_cells(comparison: Comparison) -> tuple[str, ...]:
    """Return success of both sides, its difference, the flips and the p value as text."""
    return (
        wording.amount(comparison.success.first, Unit.SHARE),
        wording.amount(comparison.success.second, Unit.SHARE),
        wording.change(comparison.success, Unit.SHARE),
        f"{comparison.flips.won:,}",
        f"{comparison.flips.lost:,}",
        wording.p_value(comparison.p_value),
    )


def _left_out(pairing: Pairing) -> str:
    parts = (
        (pairing.unmatched, "unmatched"),
        (pairing.differing, "of differing tasks"),
        (pairing.undecided, "undecided"),
    )
    return ", ".join(f"{number:,} {word}" for number, word in parts if number)


def comparison_data(findings: Findings) -> DataTable:
    """Return every comparison, as a whole and by fault family and domain."""
    columns = (
        *texts("first", "second", "grouping", "group"),
        *integers("pairs", "both", "lost", "won", "neither"),
        *numbers("first_success", "second_success", "difference", "low", "high", "p_value"),
        *texts("test"),
        *integers("unmatched", "differing", "undecided"),
    )
    return DataTable(
        "comparisons", columns, [row for versus in findings.versus for row in _versus_rows(versus)]
    )


def _versus_rows(versus: Versus) -> Iterator[Row]:
    comparison, labels = versus.comparison, (versus.first.label, versus.second.label)
    left_out = comparison.pairing
    counts = (left_out.unmatched, left_out.differing, left_out.undecided)
    tail = (comparison.p_value, comparison.test.value, *counts)
    yield (*labels, ALL, ALL, *_flip_cells(comparison.flips, comparison.success), *tail)
    for grouping, groups in (("fault", comparison.by_fault), ("domain", comparison.by_domain)):
        for name, (flips, difference) in groups.items():
            yield (*labels, grouping, name, *_flip_cells(flips, difference), *[None] * len(tail))


def _flip_cells(flips: Flips, difference: Difference) -> Row:
    counts = (difference.over, flips.both, flips.lost, flips.won, flips.neither)
    return (
        *counts,
        difference.first,
        difference.second,
        difference.value,
        *ends(difference.interval),
    )


SIGNS = ("better", "worse", "alike")


def differences(versus: Sequence[Versus]) -> Picture:
    """Return the differences in success."""
    rows = [_difference_row(pair) for pair in versus]
    first = safe(versus[0].first.label)
    caption = (
        f"Difference in success to {first} on the same tasks, in percentage points. Lines: 95 % "
        "intervals over tasks, grey if they contain zero."
    )

    def spec(width_px: int) -> Spec:
        colours = {"domain": list(SIGNS), "range": [vega.GOOD, vega.BAD, vega.QUIET]}
        shared = {
            "y": vega.field(
                "agent", "nominal", sort=[row["agent"] for row in rows], axis=vega.NO_TITLE
            ),
            "color": {"field": "sign", "scale": colours, "legend": None},
        }
        low = vega.field("low", axis={"title": None, "format": "+d", "tickCount": 5})
        zero = {
            "data": {"values": [{"at": 0}]},
            "mark": {"type": "rule", "color": vega.SOFT},
            "encoding": {"x": vega.field("at")},
        }
        line = {"x": low, "x2": {"field": "high"}, **shared}
        return vega.frame(
            width_px,
            rows,
            height={"step": 28},
            layer=[
                zero,
                vega.layer("rule", line, strokeWidth=3, strokeCap="round"),
                vega.dots(90, x=vega.field("value"), **shared),
            ],
        )

    return Picture("differences", f"Compared with {first}", caption, spec)


def _difference_row(versus: Versus) -> dict[str, Any]:
    success = versus.comparison.success
    value = success.value or 0.0
    low, high = vega.interval_ends(success)
    agent = safe(versus.second.label)
    return {
        "agent": agent,
        "value": value * 100,
        "low": low * 100,
        "high": high * 100,
        "sign": "better" if low > 0 else "worse" if high < 0 else "alike",
        "label_text": f"{agent}: {wording.change(success, Unit.SHARE)} on {success.over:,} pairs",
    }


def flip_table(versus: Versus) -> TextTable:
    """Return the numbers of pairs by which side succeeded, by fault."""
    has_baselines = versus.baselines_on() != BaselineScores()
    bounds = BOUNDS[: 2 * has_baselines]
    header = ("Fault", "Pairs", *bounds, "Both", "Lost", "Won", "Neither", "Difference")
    rows = [
        (
            name,
            f"{difference.over:,}",
            *(wording.baseline_cells([versus.baselines_on(name)]) if has_baselines else ()),
            *(f"{number:,}" for number in (flips.both, flips.lost, flips.won, flips.neither)),
            wording.change(difference, Unit.SHARE),
        )
        for name, (flips, difference) in versus.comparison.by_fault.items()
    ]
    return TextTable(f"{versus.first.label} → {versus.second.label}, by fault", header, rows)


def difference_table(versus: Versus) -> TextTable:
    """Return the difference in every metric."""
    header = ("Metric", "First", "Second", "Difference")
    rows = []
    for metric in (*METRICS, *ASPECTS, *REWARDS):
        difference = versus.comparison.metrics.get(metric.name)
        if difference is None:
            continue
        sides = (difference.first, difference.second)
        means = (wording.amount(side, metric.unit) for side in sides)
        rows.append((metric.title, *means, wording.change(difference, metric.unit)))
    title = f"{versus.first.label} → {versus.second.label}, by metric"
    notes = {"Recovered": RECOVERED, "Catastrophic": CATASTROPHIC, "S(4)": wording.S_OF_K}
    notes["S area"] = "S area: mean of S(k) from k = 4 to k = 32."
    note = " ".join(text for name, text in notes.items() if any(row[0] == name for row in rows))
    return TextTable(title, header, rows, note=note)


def flipped_table(versus: Versus, at_most: int) -> TextTable:
    """Return at most so many flipped tasks with their trials, losses first."""
    tasks = _flipped_by_task(versus)
    rows = [
        (task_id, flip, ", ".join(str(pair.first.row.name.trial) for pair in pairs), families)
        for (task_id, flip, families), pairs in list(tasks.items())[:at_most]
    ]
    note = f"{at_most} of {len(tasks):,}; --json prints all." if len(tasks) > at_most else ""
    header = ("Task", "Flip", "Trials", "Faults")
    return TextTable("Flipped tasks", header, rows, names=4, note=note)


def flip_data(findings: Findings) -> DataTable:
    """Return every task that only one of two agents solved."""
    columns = (
        *texts("first", "second", "task"),
        *integers("trial"),
        *texts("domain", "faults", "flip"),
    )
    rows = [
        (
            *(versus.first.label, versus.second.label),
            *(task.task_id, pair.first.row.name.trial, task.domain),
            "+".join(task.families) or CLEAN,
            "won" if pair.change > 0 else "lost",
        )
        for versus in findings.versus
        for pair in versus.comparison.flipped
        for task in (pair.first.task,)
    ]
    return DataTable("flips", columns, rows)


def flips_picture(versus: Versus, name: str) -> Picture:
    """Return the flipped tasks of two agents, by fault."""
    first, second = safe(versus.first.label), safe(versus.second.label)
    rows = [
        row
        for group, (fell, _) in versus.comparison.by_fault.items()
        for row in _flip_rows(safe(group), fell)
    ]
    groups = [safe(group) for group in versus.comparison.by_fault]
    caption = (
        f"Pairs of episodes that only one agent solved. Right: won, solved only by {second}. "
        f"Left: lost, solved only by {first}."
    )
    most = max((abs(row["pairs"]) for row in rows), default=0) or 1

    def spec(width_px: int) -> Spec:
        axis = {"title": None, "labelExpr": "format(abs(datum.value), ',d')", "tickMinStep": 1}
        scale = {"domain": [-most * 1.15, most * 1.15]}
        colours = {"domain": ["lost", "won"], "range": [vega.BAD, vega.GOOD]}
        return vega.frame(
            width_px,
            rows,
            height={"step": 28},
            encoding={
                "y": vega.field("group", "nominal", sort=groups, axis=vega.NO_TITLE),
                "x": vega.field("pairs", scale=scale, axis={**axis, "tickCount": 6}),
            },
            layer=[
                vega.layer("bar", {"color": {"field": "flip", "scale": colours}}, height=14),
                *(_flip_number(flip) for flip in ("won", "lost")),
            ],
        )

    return Picture(name, f"{first} → {second}", caption, spec)


def _flip_number(flip: str) -> dict[str, Any]:
    align, outward = ("left", 6) if flip == "won" else ("right", -6)
    text = {"text": vega.field("shown", "nominal")}
    return {
        "transform": [{"filter": f"datum.flip === '{flip}' && datum.pairs !== 0"}],
        **vega.layer("text", text, align=align, dx=outward),
    }


def _flip_rows(group: str, fell: Any) -> list[dict[str, Any]]:
    return [
        {
            "group": group,
            "flip": flip,
            "pairs": sign * number,
            "shown": f"{number:,}",
            "label_text": f"{group}: {number:,} {flip}",
        }
        for flip, sign, number in (("lost", -1, fell.lost), ("won", 1, fell.won))
    ]


def versus_json(versus: Versus) -> JsonObject:
    """Return a comparison as JSON."""
    comparison = versus.comparison
    pairing = comparison.pairing
    return {
        "first": {"run": str(versus.first.run.folder.path), "agent": versus.first.agent},
        "second": {"run": str(versus.second.run.folder.path), "agent": versus.second.agent},
        "headline": why_not_compared(versus) is None,
        "pairs": len(pairing.pairs),
        "unmatched": pairing.unmatched,
        "differing": pairing.differing,
        "undecided": pairing.undecided,
        "test": comparison.test.value,
        "p_value": comparison.p_value,
        **_flips_json(comparison.flips),
        "metrics": {
            name: difference_json(difference) for name, difference in comparison.metrics.items()
        },
        "by_fault": _groups_json(comparison.by_fault),
        "by_domain": _groups_json(comparison.by_domain),
        "flipped": [
            {
                "task": pair.first.task.task_id,
                "trial": pair.first.row.name.trial,
                "flip": "won" if pair.change > 0 else "lost",
                "faults": list(pair.first.task.families),
            }
            for pair in comparison.flipped
        ],
    }


def interval_json(own: Estimate | Difference) -> Json:
    """Return the ends of an interval; None if there is none."""
    return [own.interval.low, own.interval.high] if own.interval else None


def difference_json(difference: Difference) -> JsonObject:
    """Return a difference with its interval."""
    return {
        "first": difference.first,
        "second": difference.second,
        "difference": difference.value,
        "interval": interval_json(difference),
        "over": difference.over,
    }


def _groups_json(groups: dict[str, tuple[Flips, Difference]]) -> JsonObject:
    return {
        name: {**_flips_json(flips), "success": difference_json(difference)}
        for name, (flips, difference) in groups.items()
    }


def _flips_json(flips: Flips) -> JsonObject:
    return {"both": flips.both, "won": flips.won, "lost": flips.lost, "neither": flips.neither}


def difference_data(findings: Findings) -> DataTable:
    """Return the difference in every metric of each comparison."""
    columns = (
        *texts("first", "second", "metric"),
        *numbers("first_mean", "second_mean", "difference", "low", "high"),
        *integers("over"),
    )
    rows = [
        (
            *(versus.first.label, versus.second.label, name),
            *(difference.first, difference.second, difference.value),
            *(*ends(difference.interval), difference.over),
        )
        for versus in findings.versus
        for name, difference in versus.comparison.metrics.items()
    ]
    return DataTable("differences", columns, rows)
