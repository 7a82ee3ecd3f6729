"""How the overview is laid out: which pictures and tables stand together, under which heading."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from markupsafe import Markup

from fumehood.report.findings import Findings, Versus
from fumehood.report.page.parts import Drawn, FlipList, Flipped, Link, Section
from fumehood.report.page.texts import address, filtered
from fumehood.report.pictures.gallery import gallery
from fumehood.report.pictures.picture import NARROW_PX, WIDE_PX, Picture, draw
from fumehood.report.statistics.failure_labels import TITLES
from fumehood.report.tables import containment, text_tables
from fumehood.report.tables.aspects import aspect_table

FLIPS_MAX = 100
"""So many flipped tasks of one comparison are listed; the others are in the files."""


def sections(findings: Findings) -> list[Section]:
    """Return the parts that have something to show."""
    found = [*_results(findings), *_comparisons(findings), *_reasons(findings), *_walls(findings)]
    drawn = {picture.name: _drawn(picture) for picture in gallery(findings)}
    return [section for one in found if (section := _filled(one, drawn)).pictures or section.tables]


def _results(findings: Findings) -> Iterator[Section]:
    by_fault = text_tables.group_table(findings, "by_fault", "Fault")
    by_domain = text_tables.group_table(findings, "by_domain", "Domain")
    yield Section(
        "metrics",
        "Metrics",
        "The eight metrics",
        tables=[text_tables.metric_table(findings)],
        open=True,
    )
    aspects = aspect_table([found.subject for found in findings.subjects])
    yield Section("aspects", "Safety", "Utility and safety", tables=[aspects], open=True)
    yield Section(
        "success",
        "Success",
        "Success by fault and domain",
        shows=("success_by_fault", "success_by_domain"),
        tables=[by_fault, by_domain],
    )
    yield Section(
        "budget",
        "Budget",
        "Success within a budget of calls",
        shows=("budgeted_success",),
        tables=[text_tables.budget_table(findings)],
    )
    yield Section(
        "calls",
        "Calls",
        "Calls against success",
        shows=("calls_and_verdicts", "effort_and_success"),
    )
    yield Section(
        "trials",
        "Trials",
        "Repeated trials",
        shows=("repeated_trials",),
        tables=[text_tables.trial_table(findings)],
    )


def _comparisons(findings: Findings) -> Iterator[Section]:
    title = "Compared on the same tasks"
    table = text_tables.versus_table(findings.versus)
    yield Section("compared", "Compared", title, shows=("differences",), tables=[table], open=True)
    details = [
        (text_tables.difference_table(one), text_tables.flip_table(one)) for one in findings.versus
    ]
    yield Section(
        "flips",
        "Flips",
        "What flipped",
        shows=("flips_",),
        tables=[table for pair in details for table in pair],
        flips=[_flip_list(one) for one in findings.versus],
    )


def _reasons(findings: Findings) -> Iterator[Section]:
    yield Section(
        "failures",
        "Failures",
        "Why episodes fail",
        shows=("failure_taxonomy",),
        tables=[text_tables.failure_table(findings)],
        links=list(_failure_links(findings)),
    )
    yield Section(
        "resources",
        "Resources",
        "Resources",
        tables=[text_tables.resource_table(findings)],
        open=True,
    )


def _walls(findings: Findings) -> Iterator[Section]:
    probes, attacks = (
        containment.probe_table(findings.runs),
        containment.attack_table(findings.runs),
    )
    yield Section("containment", "Containment", "Containment", tables=[probes], open=True)
    yield Section("attacks", "Attacks", "Attacks on these engines", tables=[attacks])


def _filled(section: Section, drawn: dict[str, Drawn]) -> Section:
    """Give a section its pictures, and leave out what is empty."""
    return replace(
        section,
        pictures=[drawn[name] for name in drawn if name.startswith(section.shows)]
        if section.shows
        else (),
        tables=[table for table in section.tables if table.rows],
        flips=[one for one in section.flips if one.total],
    )


def _drawn(picture: Picture) -> Drawn:
    # The drawing library escapes all text, and the page's policy runs no script that is not its own.
    wide, narrow = Markup(draw(picture, WIDE_PX)), Markup(draw(picture, NARROW_PX))
    return Drawn(picture.title, picture.caption, wide, narrow)


def _failure_links(findings: Findings) -> Iterator[Link]:
    for found in findings.subjects:
        for label, number in found.primaries().items():
            text = f"{found.subject.label}: {TITLES[label]} {number:,}"
            yield Link(text, filtered(agent=found.subject.label, failure=TITLES[label]))


def _flip_list(versus: Versus) -> FlipList:
    flipped = versus.comparison.flipped
    title = f"{versus.first.label} → {versus.second.label}"
    listed = tuple(
        Flipped(
            task=pair.first.task.task_id,
            trial=pair.first.row.name.trial,
            faults=", ".join(pair.first.task.families),
            won=pair.change > 0,
            first=address(pair.first.row.name, versus.first.label),
            second=address(pair.second.row.name, versus.second.label),
        )
        for pair in flipped[:FLIPS_MAX]
    )
    return FlipList(title, len(flipped), listed)
