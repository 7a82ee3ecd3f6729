"""Renders the HTML pages of a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fumehood.core.json_values import JsonObject
from fumehood.records.grants import model_grants, monitors_of
from fumehood.records.trust import SHOWN_DIGITS
from fumehood.report import wording
from fumehood.report.findings import Findings, SubjectFindings
from fumehood.report.page.assets import content_security_policy, script, style
from fumehood.report.page.contents import Chunk, embedded_json, index_and_chunks
from fumehood.report.pictures import NARROW_PX, SERIES, WIDE_PX, Picture, draw
from fumehood.report.safe_text import safe
from fumehood.report.sections.section import Section
from fumehood.report.statistics.metrics import Unit
from fumehood.report.wording import amount, missing, span, why_no_headline

INLINE_CHARS_MAX = 8_000_000
"""If the chunks are longer, they are written to separate pages."""
VOLUMES = "report_episodes"
"""The folder of the separate pages."""


@dataclass(frozen=True, slots=True)
class _DrawnPicture:
    title: str
    caption: str
    wide: Markup
    narrow: Markup


@dataclass(frozen=True, slots=True)
class Page:
    """One file."""

    path: str
    """Relative to the report folder."""
    html: str


def render(
    findings: Findings, sections: Mapping[str, Section], live: JsonObject | None = None
) -> list[Page]:
    """Return the main page, and separate pages of episodes if there are too many for one file.

    Args:
        findings: of the report.
        sections: of the page.
        live: state of a page that follows its run, see ``fumehood watch``; None for a file.
    """
    index, chunks = index_and_chunks(findings)
    if live is not None:
        index["version"] = live["version"]
    if sum(len(chunk.packed) for chunk in chunks) <= INLINE_CHARS_MAX:
        return [_first(findings, sections, {**index, "pages": [""] * len(chunks)}, chunks, live)]
    volumes = _volumes(chunks)
    page_of = {
        number: _volume_path(at) for at, volume in enumerate(volumes, 1) for number in volume
    }
    index["pages"] = [page_of[number] for number in range(len(chunks))]
    first = _first(findings, sections, index, [], live)
    return [
        first,
        *(
            _volume(index, chunks, volume, at, findings.mark)
            for at, volume in enumerate(volumes, 1)
        ),
    ]


def _first(
    findings: Findings,
    sections: Mapping[str, Section],
    index: dict[str, Any],
    chunks: Sequence[Chunk],
    live: JsonObject | None,
) -> Page:
    html = (
        environment()
        .get_template("report.html.j2")
        .render(
            **_frame(index, dict(enumerate(chunks)), findings.mark, live),
            title=", ".join(dict.fromkeys(run.suite.name for run in findings.runs)),
            unfinished="" if live is not None else findings.unfinished,
            facts=_facts(findings),
            agents=[
                _agent(agent, at) for at, agent in enumerate(findings.subjects) if findings.are_few
            ],
            sections=[
                (anchor, section, [_drawn(picture) for picture in section.pictures])
                for anchor, section in sections.items()
                if not section.is_empty
            ],
        )
    )
    return Page("report.html", html)


def _drawn(picture: Picture) -> _DrawnPicture:
    # The drawing library escapes all text, and the page's policy runs no script but its own.
    wide, narrow = Markup(draw(picture, WIDE_PX)), Markup(draw(picture, NARROW_PX))
    return _DrawnPicture(picture.title, picture.caption, wide, narrow)


def _volume(
    index: dict[str, Any], chunks: Sequence[Chunk], volume: Sequence[int], at: int, mark: str
) -> Page:
    tasks = {task for number in volume for task in chunks[number].tasks}
    own_index = _only(index, tasks)
    own_index["pages"] = ["" if number in volume else None for number in range(len(chunks))]
    own_index["home"] = "../report.html"
    html = (
        environment()
        .get_template("volume.html.j2")
        .render(
            **_frame(own_index, {number: chunks[number] for number in volume}, mark),
            title=f"Episodes, part {at}",
        )
    )
    return Page(_volume_path(at), html)


def _only(index: dict[str, Any], tasks: set[int]) -> dict[str, Any]:
    """Return the index with the episodes of some tasks; positions do not change."""
    kept_positions = [at for at, task in enumerate(index["task"]) if task in tasks]
    columns = ("task", "agent", "trial", "score", "outcome", "calls", "wall", "failure")
    return {**index, **{name: [index[name][at] for at in kept_positions] for name in columns}}


def _volumes(chunks: Sequence[Chunk]) -> list[list[int]]:
    volumes: list[list[int]] = [[]]
    chars = 0
    for number, chunk in enumerate(chunks):
        if volumes[-1] and chars + len(chunk.packed) > INLINE_CHARS_MAX:
            volumes.append([])
            chars = 0
        volumes[-1].append(number)
        chars += len(chunk.packed)
    return volumes


def _volume_path(at: int) -> str:
    return f"{VOLUMES}/{at}.html"


def _frame(
    index: dict[str, Any], chunks: dict[int, Chunk], mark: str, live: JsonObject | None = None
) -> dict[str, Any]:
    return {
        "mark": mark,
        "policy": content_security_policy(style(), script(), live=live is not None),
        "live": live,
        "style": Markup(style()),
        "script": Markup(script()),
        "index": embedded_json(index),
        "chunks": {number: chunk.packed for number, chunk in chunks.items()},
    }


@cache
def environment() -> Environment:
    """Return the templates, which escape all text."""
    return Environment(
        loader=PackageLoader("fumehood.report.page", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_harmless,
    )


def _harmless(value: Any) -> Any:
    """Escape control characters in text; autoescape then escapes markup."""
    return safe(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _facts(findings: Findings) -> tuple[list[str], list[str]]:
    """Return what was run, and how."""
    episodes = sum(agent.whole.counts.episodes for agent in findings.subjects)
    planned = sum(run.planned for run in findings.runs)
    tasks = {
        (r.task.task_id, r.task.digest)
        for agent in findings.subjects
        for r in agent.subject.results
    }
    isolations = dict.fromkeys(run.folder.isolation() for run in findings.runs)
    grants = dict.fromkeys(name for run in findings.runs for name in model_grants(run.manifest))
    monitors = dict.fromkeys(name for run in findings.runs for name in monitors_of(run.manifest))
    sizes = [
        wording.number_of(len(findings.subjects), "agent"),
        wording.number_of(len(tasks), "task"),
        wording.number_of(episodes, "episode")
        if episodes == planned
        else f"{episodes:,} of {planned:,} planned episodes",
    ]
    models = _listed(agent.subject.model for agent in findings.subjects)
    return sizes, [
        f"started {_between([agent.started_ms for agent in findings.subjects])}",
        *([f"model {models}"] if models else ()),
        f"seed {_listed(str(run.seed) for run in findings.runs)}",
        f"engine {_listed(str(run.manifest.get('engine', 'unknown')) for run in findings.runs)}",
        f"isolation: {', '.join(isolations)}",
        _signers(findings),
        *([f"model requests may use: {', '.join(grants)}"] if grants else ()),
        *([f"monitors: {', '.join(monitors)}"] if monitors else ()),
    ]


NAMES_MAX = 6
"""Models, seeds or engines that the head of a page names."""


def _listed(names: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(filter(None, names)))
    more = f" and {len(distinct) - NAMES_MAX} more" if len(distinct) > NAMES_MAX else ""
    return f"{', '.join(distinct[:NAMES_MAX])}{more}"


def _between(times_ms: Iterable[int | None]) -> str:
    known = sorted(ms for ms in times_ms if ms is not None)
    first, last = (wording.minute(ms) for ms in (known[0], known[-1])) if known else ("–", "–")
    return f"{first} UTC" if first == last else f"{first} to {last} UTC"


def _signers(findings: Findings) -> str:
    keys = dict.fromkeys(
        run.folder.provenance.key[:SHOWN_DIGITS]
        for run in findings.runs
        if not run.folder.provenance.problem
    )
    return f"verified, signed with {', '.join(f'{key}…' for key in keys)}" if keys else "unverified"


def _agent(agent: SubjectFindings, at: int) -> dict[str, Any]:
    own, counts = agent.whole.estimates["task_success"], agent.whole.counts
    ends = own.interval
    return {
        "label": agent.subject.label,
        "colour": SERIES[at % len(SERIES)],
        "blocked": why_no_headline(counts, agent.subject.planned),
        "success": amount(own.value, Unit.SHARE),
        "interval": span(ends, Unit.SHARE),
        "value": 100 * (own.value or 0.0),
        "low": 100 * ends.low if ends else None,
        "width": 100 * (ends.high - ends.low) if ends else None,
        "graded": f"{counts.graded:,} of {counts.episodes:,} graded",
        "missing": missing(counts),
        "marks": [100 * own for own in astuple(agent.whole.baselines) if own is not None],
        "baselines": wording.baselines(agent.whole.baselines),
        "calls": amount(agent.whole.estimates["tool_calls_used"].value, Unit.COUNT),
    }
