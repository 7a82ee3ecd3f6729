"""From findings to pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fumehood.core.json_values import Json, JsonObject
from fumehood.report.findings import Findings, SubjectFindings
from fumehood.report.headline import why_no_headline
from fumehood.report.page.assets import script, style
from fumehood.report.page.contents import Chunk, index_and_chunks
from fumehood.report.page.packing import embedded_json
from fumehood.report.page.policy import content_security_policy
from fumehood.report.page.sections import sections
from fumehood.report.page.texts import shown
from fumehood.report.pictures.theme import SERIES
from fumehood.report.runs import Run
from fumehood.report.safe_text import safe
from fumehood.report.statistics.metrics import Unit
from fumehood.report.wording import amount, missing, span

INLINE_CHARS_MAX = 8_000_000
"""Bodies longer than this in all stand in pages of their own, beside the first."""
VOLUMES = "report_episodes"
"""The folder of those pages."""


@dataclass(frozen=True, slots=True)
class Page:
    """One file."""

    path: str
    """Relative to where the report is written."""
    html: str


def render(findings: Findings) -> list[Page]:
    """Return the report, and the pages beside it where bodies are too many for one file.

    Raises:
        InputError: a trace is missing or not a trace.
    """
    index, chunks = index_and_chunks(findings)
    if sum(len(chunk.packed) for chunk in chunks) <= INLINE_CHARS_MAX:
        return [_first(findings, {**index, "pages": [""] * len(chunks)}, chunks)]
    volumes = _volumes(chunks)
    page_of = {
        number: _volume_path(at) for at, volume in enumerate(volumes, 1) for number in volume
    }
    index["pages"] = [page_of[number] for number in range(len(chunks))]
    first = _first(findings, index, [])
    return [first, *(_volume(index, chunks, volume, at) for at, volume in enumerate(volumes, 1))]


def _first(findings: Findings, index: dict[str, Any], chunks: Sequence[Chunk]) -> Page:
    html = (
        _environment()
        .get_template("report.html.j2")
        .render(
            **_frame(index, dict(enumerate(chunks))),
            title=", ".join(dict.fromkeys(run.suite.name for run in findings.runs)),
            facts=_facts(findings),
            agents=[_agent(found, at) for at, found in enumerate(findings.subjects)],
            sections=sections(findings),
            runs=[_run(run) for run in findings.runs],
        )
    )
    return Page("report.html", html)


def _volume(index: dict[str, Any], chunks: Sequence[Chunk], volume: Sequence[int], at: int) -> Page:
    tasks = {task for number in volume for task in chunks[number].tasks}
    own = _only(index, tasks)
    own["pages"] = ["" if number in volume else None for number in range(len(chunks))]
    own["home"] = "../report.html"
    html = (
        _environment()
        .get_template("volume.html.j2")
        .render(
            **_frame(own, {number: chunks[number] for number in volume}),
            title=f"Episodes, part {at}",
        )
    )
    return Page(_volume_path(at), html)


def _only(index: dict[str, Any], tasks: set[int]) -> dict[str, Any]:
    """Return the index without the episodes of other tasks; positions of tasks and chunks stay."""
    kept = [at for at, task in enumerate(index["task"]) if task in tasks]
    columns = ("task", "agent", "trial", "verdict", "outcome", "calls", "wall", "failure")
    return {**index, **{name: [index[name][at] for at in kept] for name in columns}}


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


def _frame(index: dict[str, Any], chunks: dict[int, Chunk]) -> dict[str, Any]:
    return {
        "policy": content_security_policy(style(), script()),
        "style": Markup(style()),
        "script": Markup(script()),
        "index": embedded_json(index),
        "chunks": {number: chunk.packed for number, chunk in chunks.items()},
    }


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("fumehood.report.page", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_harmless,
    )


def _harmless(value: Any) -> Any:
    """Make every text harmless that is not markup of ours; autoescape comes after."""
    return safe(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _facts(findings: Findings) -> list[str]:
    episodes = sum(found.whole.counts.episodes for found in findings.subjects)
    planned = sum(run.planned for run in findings.runs)
    tasks = {
        (r.task.task_id, r.task.digest)
        for found in findings.subjects
        for r in found.subject.results
    }
    isolations = dict.fromkeys(
        str(run.manifest.get("isolation", "unknown")) for run in findings.runs
    )
    return [
        _plural(len(findings.subjects), "agent"),
        _plural(len(tasks), "task"),
        _plural(episodes, "episode")
        if episodes == planned
        else f"{episodes:,} of {planned:,} planned episodes",
        f"isolation: {', '.join(isolations)}",
    ]


def _plural(number: int, word: str) -> str:
    return f"{number:,} {word}" + ("" if number == 1 else "s")


def _agent(found: SubjectFindings, at: int) -> dict[str, Any]:
    own, counts = found.whole.estimates["task_success"], found.whole.counts
    ends = own.interval
    return {
        "label": found.subject.label,
        "colour": SERIES[at % len(SERIES)],
        "blocked": why_no_headline(counts),
        "success": amount(own.value, Unit.SHARE),
        "interval": span(ends, Unit.SHARE),
        "value": 100 * (own.value or 0.0),
        "low": 100 * ends.low if ends else None,
        "width": 100 * (ends.high - ends.low) if ends else None,
        "graded": f"{counts.graded:,} of {counts.episodes:,} graded",
        "missing": missing(counts),
        "calls": amount(found.whole.estimates["tool_calls_used"].value, Unit.COUNT),
    }


def _run(run: Run) -> dict[str, str]:
    manifest = run.manifest
    config, versions = _object(manifest.get("config")), _object(manifest.get("versions"))
    return {
        "Folder": shown(str(run.folder.path)),
        "Run": str(manifest.get("run", "")),
        "Suite": f"{run.suite.name}, SHA-256 {str(manifest.get('suite_digest', ''))[:16]}…",
        "Engine": f"{manifest.get('engine', '')}, isolation: {manifest.get('isolation', '')}",
        "Seed": str(config.get("seed", 0)),
        "Trials": str(config.get("trials", 1)),
        "Versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}
