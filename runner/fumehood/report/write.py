"""Writes a report: page, Markdown, pictures, CSV and Parquet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fumehood.core.errors import InputError
from fumehood.records.files import write_export
from fumehood.report.data_table import write_csv, write_parquet
from fumehood.report.findings import Findings, SubjectFindings
from fumehood.report.page.render import VOLUMES, render
from fumehood.report.pictures import WIDE_PX, Picture, draw, in_light
from fumehood.report.sections.registry import build_sections, data_tables
from fumehood.report.sections.section import Section
from fumehood.report.statistics.metrics import Unit
from fumehood.report.text_table import markdown_table, markdown_text
from fumehood.report.wording import baselines, estimate, why_no_headline

FIGURES, TABLES = "figures", "tables"


def write_report(findings: Findings, out: Path) -> list[Path]:
    """Write a report and return its files, the page first.

    Files of an earlier report are replaced.

    Raises:
        InputError: ``out`` cannot be written.
    """
    sections = build_sections(findings)
    pictures = [picture for section in sections.values() for picture in section.pictures]
    try:
        for folder in (out, out / FIGURES, out / TABLES):
            _make_folder(folder)
        pages = [_write(out / page.path, page.html) for page in render(findings, sections)]
        figures = _write_figures(pictures, findings.mark, out / FIGURES)
        tables = [
            write(table, out / TABLES)
            for table in data_tables(sections)
            for write in (write_csv, write_parquet)
        ]
        markdown = _write(out / "report.md", _markdown(findings, sections))
    except OSError as error:
        raise InputError(f"{error.filename or out} cannot be written: {error.strerror}") from None
    return [*pages, markdown, *figures, *tables]


def _make_folder(folder: Path) -> None:
    # The default folder is inside a run folder, whose author could name any folder with a link.
    if folder.is_symlink():
        raise InputError(f"{folder} is a link; remove it, or choose another --out")
    folder.mkdir(parents=True, exist_ok=True)


def _write(path: Path, text: str) -> Path:
    if path.parent.name == VOLUMES:
        _make_folder(path.parent)
    write_export(path, text.encode())
    return path


def _write_figures(pictures: Sequence[Picture], mark: str, folder: Path) -> list[Path]:
    return [
        _write(folder / f"{picture.name}.svg", in_light(draw(picture, WIDE_PX, mark)))
        for picture in pictures
    ]


def _markdown(findings: Findings, sections: Mapping[str, Section]) -> str:
    title = ", ".join(dict.fromkeys(run.suite.name for run in findings.runs))
    parts = [f"# {markdown_text(title)}\n"]
    for notice in filter(None, (findings.mark, findings.unfinished)):
        parts.append(f"**{markdown_text(notice)}**\n")
    parts.append(f"{markdown_text(_in_one_line(findings))}\n")
    for agent in findings.subjects:
        blocked = why_no_headline(agent.whole.counts, agent.subject.planned)
        if blocked is not None:
            parts.append(f"**{markdown_text(agent.subject.label)}**: {markdown_text(blocked)}\n")
    for section in sections.values():
        if section.is_empty:
            continue
        parts.append(f"## {markdown_text(section.title)}\n")
        for picture in section.pictures:
            name, path = markdown_text(picture.title), f"{FIGURES}/{picture.name}.svg"
            parts.append(f"![{name}]({path})\n\n{markdown_text(picture.caption)}\n")
        parts += [markdown_table(table) for table in section.tables]
    parts.append(f"The folder `{TABLES}/` has the numbers as CSV and Parquet.\n")
    return "\n".join(parts)


def _in_one_line(findings: Findings) -> str:
    """Return the success of each agent that has a headline number."""
    successes = [
        f"{agent.subject.label} "
        f"{estimate(agent.whole.estimates['task_success'], Unit.SHARE)} of "
        f"{agent.whole.counts.graded:,}{_between(agent)}"
        for agent in findings.subjects
        if why_no_headline(agent.whole.counts, agent.subject.planned) is None
    ]
    return f"Success: {'; '.join(successes) or 'not known'}."


def _between(agent: SubjectFindings) -> str:
    text = baselines(agent.whole.baselines)
    return f" ({text})" if text else ""
