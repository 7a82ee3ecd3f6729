"""``fumehood export``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click

from fumehood.cli.output import PATH, beside, print_json, say
from fumehood.cli.reading import find_episode, read_run, unverified_option, verification_of
from fumehood.core.errors import InputError
from fumehood.exports.exported import ExportedRun
from fumehood.exports.otlp_http import HEADERS, headers_from, send
from fumehood.exports.registry import export_files, exporters
from fumehood.records.files import write_export
from fumehood.report.wording import number_of

_FORMATS = {each.name: each.problem or each.about for each in exporters()}
_LIST = "\n".join(f"      {name:<8} {summary}" for name, summary in _FORMATS.items())


@click.command(
    help=f"""Convert a run to a format of another tool.

    \b
    Formats:
{_LIST}

    The files are written to a new folder. With the format otel and --otlp, everything is sent to a
    collector instead; its headers are read from {HEADERS}.

    \b
    Examples:
      fumehood export runs/20260101-120000 --to inspect
      fumehood export runs/20260101-120000 --to junit --out reports
      fumehood export runs/20260101-120000 --to otel --otlp http://localhost:4318
    """
)
@click.argument("run_dir", metavar="DIR", type=PATH)
@click.option("--to", "name", required=True, type=click.Choice([*_FORMATS]), help="The format.")
@click.option("--out", type=PATH, help="Output folder.  [default: DIR.FORMAT]")
@click.option("--episode", help="Only this episode: AGENT/TASK/TRIAL, or a part of it.")
@click.option("--otlp", metavar="URL", help="Send to this collector, with --to otel.")
@unverified_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def export(
    run_dir: Path,
    name: str,
    out: Path | None,
    episode: str | None,
    otlp: str | None,
    unverified: bool,
    as_json: bool,
) -> None:
    """Convert a run."""
    if otlp is not None and (name != "otel" or out is not None):
        raise InputError("--otlp sends telemetry; use it with --to otel and without --out")
    headers = headers_from(os.environ.get(HEADERS, "")) if otlp is not None else {}
    run = read_run(run_dir, unverified=unverified)
    rows = None if episode is None else [find_episode(run.rows(), episode, run_dir)]
    exported = ExportedRun(run, rows)
    number = len(exported.rows)
    written: list[Path] = []
    if otlp is not None:
        requests = send(exported, otlp, headers)
        line = f"{number} episodes sent to {otlp} in {requests} requests"
    else:
        folder = out or beside(run_dir, f".{name}")
        written += _write(exported, name, folder)
        line = f"{number_of(number, 'episode')}, {number_of(len(written), 'file')} in {folder}"
    for unreadable in exported.unreadable:
        line_of_one = (
            f"{unreadable} is exported without its trace, which has events of unknown form"
        )
        say(f"fumehood: {line_of_one}", err=True)
    if as_json:
        print_json(
            {
                "verification": verification_of([run]),
                "episodes": number,
                "files": list(map(str, written)),
                "without_trace": list(map(str, exported.unreadable)),
            }
        )
        return
    say(f"{run.provenance.mark}: {line}" if run.provenance.mark else line)


def _write(run: ExportedRun, name: str, folder: Path) -> Iterator[Path]:
    """Write the files of a format.

    Raises:
        InputError: the folder is not empty, or a file cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is not empty: name a new or empty folder with --out")
    for relative, content in export_files(run, name):
        path = folder / relative
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_export(path, content)
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}") from None
        yield path
