"""Reproduces the tables and figures of ToolMisuseBench's paper (arXiv 2604.01508)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fumehood.core.errors import InputError
from fumehood.report import wording
from fumehood.report.data_table import DataTable, integers, numbers, texts, write_csv
from fumehood.report.findings import Findings, GroupFindings
from fumehood.report.paper.published import AREA, TABLE_1, TABLE_2, TASKS
from fumehood.report.pictures import ARIA_LABEL, WIDE_PX, Picture, Spec, draw, field, in_light
from fumehood.report.sections.budget import budget_data, budgeted_success
from fumehood.report.sections.success import success_by_fault
from fumehood.report.statistics.intervals import Estimate, ends
from fumehood.report.statistics.metrics import BUDGETS, METRICS, Metric
from fumehood.report.text_table import TextTable, markdown_table, markdown_text
from fumehood.report.wording import why_no_headline


@dataclass(frozen=True, slots=True)
class Data:
    """The origin of the tasks."""

    path: str
    files: tuple[tuple[str, str], ...]
    """Name and hexadecimal SHA-256 of each task file."""
    tasks: int
    generated: str | None
    """Profile, release and seed of tasks that Fumehood generated, otherwise None."""
    is_calibrated: bool
    """Whether the tasks are of profile ``paper``."""
    published_as: str | None
    """Name of the published file with the same digest; None if there is none."""


def statements(data: Data) -> Iterator[str]:
    """Yield what readers must know before they compare numbers, one statement each."""
    yield from _about_tasks(data)
    if data.tasks != TASKS:
        yield f"The paper's split has {TASKS:,} tasks, this one {data.tasks:,}."
    yield (
        "The paper used release 0.1 of the benchmark. Fumehood follows the source of the next "
        "release and reproduces episodes that were recorded with it, call by call."
    )
    yield (
        "`heuristic` follows the paper's description, because its source is not public: it calls "
        "each tool once with default arguments and stops. `schema_repair` follows the public "
        "source."
    )
    yield (
        "`policy_layer` is the paper's `policy_aware`: schema repair behind a thin policy layer. "
        "The rules of this layer are not public; the paper states that they change no score. The "
        "`policy_aware` of this project is another, stronger agent, and the paper has no numbers "
        "of it."
    )


def _about_tasks(data: Data) -> Iterator[str]:
    if data.generated is not None:
        yield (
            f"The tasks are NOT the paper's: Fumehood generated them ({data.generated}), with the "
            "same format and fault families. Differences to the published numbers say nothing "
            "about agents or engine. To compare, pass the published files with `--data`."
        )
        if data.is_calibrated:
            yield (
                "Profile `paper` is calibrated to the published numbers, so agreement shows that "
                "engine, metrics and agents CAN give these numbers, not that the tasks are alike. "
                "The calibration interprets the rows of Table II as disjoint: 335 tasks with a "
                "timeout and 165 with drift then give every printed digit, and the other 500 "
                "tasks are never solved. The rows of the paper may overlap instead. (0.502 in the "
                "paper's Table II is its own 0.5015, rounded once more.)"
            )
    elif data.published_as is not None:
        yield (
            f"The tasks are those published as `{data.published_as}`, checked by SHA-256. The "
            "paper used the tasks of release 0.1, which are different."
        )
    else:
        yield (
            f"The tasks were read from `{data.path}`. No digest of the paper's files is known, so "
            "Fumehood cannot verify that these are the paper's tasks."
        )
    for name, digest in data.files:
        yield f"SHA-256 of `{name}`: `{digest}`."


_METRICS: Mapping[str, Metric] = {metric.name: metric for metric in METRICS}

OF_TABLE_1 = ("task_success", "policy_violations", "recovery_success", "tool_calls_used", "s_area")

OF_TABLE_2 = ("task_success", "recovery_success")


@dataclass(frozen=True, slots=True)
class Line:
    """One reproduced mean and the published value."""

    agent: str
    group: str
    metric: Metric
    reproduced: Estimate
    published: float | None

    @property
    def difference(self) -> float | None:
        """Reproduced minus published."""
        reproduced, published = self.reproduced.value, self.published
        return None if reproduced is None or published is None else reproduced - published

    @property
    def agreement(self) -> str:
        """Whether both values agree; empty if one of them is unknown."""
        difference, interval = self.difference, self.reproduced.interval
        if difference is None or self.published is None:
            return ""
        # The paper prints calls with two decimals, and all other means with three or more.
        if abs(difference) <= (0.005 if self.metric.name == "tool_calls_used" else 0.0005):
            return "equal, rounded"
        inside = interval is not None and interval.low <= self.published <= interval.high
        return "within interval" if inside else "differs"


def table_1(findings: Findings) -> list[Line]:
    """Return the lines of Table I: every agent on all tasks, and the area under S(k)."""
    return [
        line for agent in findings.subjects for line in _overall(agent.subject.agent, agent.whole)
    ]


def table_2(findings: Findings) -> list[Line]:
    """Return the lines of the paper's Table II: every agent by planned fault."""
    return [
        line
        for agent in findings.subjects
        for fault, group in agent.by_fault.items()
        for line in _of_fault(agent.subject.agent, fault, group)
    ]


def figure_1(findings: Findings) -> list[Line]:
    """Return the points of the paper's figure of success by planned fault."""
    faults = dict.fromkeys(fault for rows in TABLE_2.values() for fault in rows)
    return [
        line
        for line in table_2(findings)
        if line.metric.name == "task_success" and line.group in faults
    ]


def figure_2(findings: Findings) -> list[Line]:
    """Return the points of the paper's figure of S(k)."""
    return [
        Line(agent, "all", _METRICS[f"s_{budget}"], estimates[f"s_{budget}"], AREA.get(agent))
        for agent, estimates in (
            (part.subject.agent, part.whole.estimates) for part in findings.subjects
        )
        for budget in BUDGETS
    ]


def as_data(name: str, lines: Sequence[Line]) -> DataTable:
    """Return lines as a data table."""
    columns = (
        *texts("agent", "group", "metric"),
        *numbers("reproduced", "low", "high", "published", "difference"),
        *integers("episodes", "tasks"),
        *texts("agreement"),
    )
    rows = [
        (
            *(line.agent, line.group, line.metric.name, line.reproduced.value),
            *ends(line.reproduced.interval),
            *(line.published, line.difference, line.reproduced.over, line.reproduced.tasks),
            line.agreement,
        )
        for line in lines
    ]
    return DataTable(name, columns, rows)


def as_reading(title: str, lines: Sequence[Line]) -> TextTable:
    """Return lines as a text table."""
    header = ("Agent", "Tasks", "Metric", "Published", "Reproduced", "Difference", "Agreement")
    rows = [
        (
            line.agent,
            line.group,
            line.metric.title,
            _decimal(line.published),
            _interval_text(line.reproduced),
            wording.NONE if line.difference is None else f"{line.difference:+.4f}",
            line.agreement or wording.NONE,
        )
        for line in lines
    ]
    note = (
        "In brackets: 95 % bootstrap intervals over tasks. A dash: not in the paper. Agreement: "
        "equal with the digits of the paper, or the paper's number is within the interval."
    )
    return TextTable(title, header, rows, names=3, note=note)


def _overall(agent: str, group: GroupFindings) -> Iterator[Line]:
    published = {**TABLE_1.get(agent, {}), **({"s_area": AREA[agent]} if agent in AREA else {})}
    for name in OF_TABLE_1:
        yield Line(agent, "all", _METRICS[name], group.estimates[name], published.get(name))


def _of_fault(agent: str, fault: str, group: GroupFindings) -> Iterator[Line]:
    published = TABLE_2.get(agent, {}).get(fault, {})
    for name in OF_TABLE_2:
        yield Line(agent, fault, _METRICS[name], group.estimates[name], published.get(name))


def _interval_text(own: Estimate) -> str:
    interval = own.interval
    text = _decimal(own.value)
    return f"{text} [{interval.low:.3f}, {interval.high:.3f}]" if interval else text


def _decimal(value: float | None) -> str:
    """Return a number in the format of the paper."""
    return wording.NONE if value is None else f"{value:.4f}"


def figures(findings: Findings) -> tuple[Picture, ...]:
    """Return all figures."""
    return _with_rings(success_by_fault(findings), _by_fault()), _with_rings(
        budgeted_success(findings), _by_budget()
    )


def _by_fault() -> dict[str, Any]:
    rows = [
        {
            "agent": agent,
            "group": fault,
            "value": metrics["task_success"],
            "label_text": f"{agent}, {fault}: published",
        }
        for agent, faults in TABLE_2.items()
        for fault, metrics in faults.items()
    ]
    return {"data": {"values": rows}, "encoding": {"x": field("value")}}


def _by_budget() -> dict[str, Any]:
    # The published curve is flat, so its height is the published area.
    rows = [
        {"agent": agent, "k": budget, "s": area, "label_text": f"{agent}, S({budget}): published"}
        for agent, area in AREA.items()
        for budget in BUDGETS
    ]
    encoding = {"x": field("k"), "y": field("s")}
    return {"data": {"values": rows}, "encoding": encoding}


def _with_rings(picture: Picture, layer: dict[str, Any]) -> Picture:
    ring = {"type": "point", "filled": False, "size": 190, "strokeWidth": 1.2, "opacity": 1}
    rings = {**layer, "mark": ring, "encoding": {**layer["encoding"], **ARIA_LABEL}}

    def spec(width_px: int) -> Spec:
        drawn = dict(picture.spec(width_px))
        return {**drawn, "layer": [*drawn["layer"], rings]}

    caption = f"{picture.caption} Rings are the published numbers."
    return Picture(f"figure_{picture.name}", picture.title, caption, spec)


def cells(findings: Findings) -> Mapping[str, tuple[str, list[Line]]]:
    """Return the title and the lines of both tables and both figures, by file name."""
    return {
        "table_1": ("Table I: all tasks", table_1(findings)),
        "table_2": ("Table II: by planned fault", table_2(findings)),
        "figure_1": ("Figure: success by planned fault", figure_1(findings)),
        "figure_2": ("Figure: success within a budget of k tool calls", figure_2(findings)),
    }


def reading_tables(findings: Findings) -> list[TextTable]:
    """Return both tables and the points of both figures as text tables."""
    return [as_reading(title, lines) for title, lines in cells(findings).values()]


def write_reproduction(findings: Findings, data: Data, run: str, out: Path) -> list[Path]:
    """Write the reproduction and return its files, the page first.

    Args:
        findings: of the run.
        data: the origin of the tasks.
        run: path of the run folder for the page.
        out: an existing folder.

    Raises:
        InputError: it cannot be written.
    """
    pictures = figures(findings)
    try:
        tables = [
            *(write_csv(as_data(name, lines), out) for name, (_, lines) in cells(findings).items()),
            write_csv(budget_data(findings), out),
        ]
        drawn = []
        for picture in pictures:
            drawn.append(out / f"{picture.name}.svg")
            drawn[-1].write_text(in_light(draw(picture, WIDE_PX)), encoding="utf-8")
        page = out / "reproduction.md"
        page.write_text(
            _markdown_page(findings, data, run, [path.name for path in drawn]), encoding="utf-8"
        )
    except OSError as error:
        raise InputError(f"{error.filename or out} cannot be written: {error.strerror}") from None
    return [page, *tables, *drawn]


def _markdown_page(findings: Findings, data: Data, run: str, drawn: list[str]) -> str:
    parts = ["# Reproduction of ToolMisuseBench\n", "## Before comparing\n"]
    parts.append("\n".join(f"* {statement}" for statement in statements(data)) + "\n")
    for agent in findings.subjects:
        blocked = why_no_headline(agent.whole.counts, agent.subject.planned)
        if blocked is not None:
            parts.append(f"**{markdown_text(agent.subject.label)}**: {markdown_text(blocked)}\n")
    parts.append("## Tables\n")
    parts += [markdown_table(table) for table in reading_tables(findings)]
    parts.append("## Figures\n")
    for name, picture in zip(drawn, figures(findings), strict=True):
        parts.append(
            f"![{markdown_text(picture.title)}]({name})\n\n{markdown_text(picture.caption)}\n"
        )
    parts.append(
        "The data of the figures is in `figure_1.csv`, `figure_2.csv` and `budgeted_success.csv`. "
        "All numbers "
        f"come from the run folder `{run}`; `fumehood score {run} --json` prints the same means "
        "under `agents`.\n"
    )
    return "\n".join(parts)
