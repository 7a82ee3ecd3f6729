"""``fumehood snapshot python-doc``: builds a snapshot of Debian's Python documentation."""

from __future__ import annotations

import os
from pathlib import Path

import click

from fumehood_snapshots.build.options import Pace
from fumehood_snapshots.cli.build import say_built
from fumehood_snapshots.cli.showing import ShownProgress, json_option
from fumehood_snapshots.pythondoc.benchmark import NAME, build_python_docs
from fumehood_snapshots.pythondoc.source import INSTALLED


@click.command("python-doc")
@click.argument("out", type=click.Path(path_type=Path), default=NAME)
@click.option(
    "--html",
    type=click.Path(path_type=Path),
    default=INSTALLED,
    show_default=True,
    help="Folder of the documentation in HTML.",
)
@click.option(
    "--workers", type=click.IntRange(1, 256), help="Number of processes; default: one per core."
)
@json_option
def python_doc(out: Path, html: Path, workers: int | None, as_json: bool) -> None:
    """Build the snapshot OUT of Python's documentation.

    Its documents are sections of the package python3.11-doc. OUT is ./python-doc by default.
    Sixty questions with judgements and answers are bundled; `snapshot measure OUT --python-doc`
    uses them.
    """
    with ShownProgress() as progress:
        manifest = build_python_docs(
            out, html, Pace(workers=workers or os.cpu_count() or 1), progress
        )
    say_built(out, manifest, as_json=as_json)
