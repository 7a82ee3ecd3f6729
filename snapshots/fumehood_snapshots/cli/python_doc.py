"""``fumehood snapshot python-doc``: something real to search, from a package of Debian's."""

from __future__ import annotations

import os
from pathlib import Path

import click

from fumehood_snapshots.build.options import Pace
from fumehood_snapshots.cli.build import say_built
from fumehood_snapshots.cli.showing import ShownProgress
from fumehood_snapshots.pythondoc.benchmark import NAME, build_python_docs
from fumehood_snapshots.pythondoc.source import INSTALLED


@click.command("python-doc")
@click.argument("out", type=click.Path(path_type=Path), default=NAME)
@click.option("--html", type=click.Path(path_type=Path), default=INSTALLED, show_default=True)
@click.option(
    "--workers", type=click.IntRange(1, 256), help="Processes; as many as there are cores."
)
def python_doc(out: Path, html: Path, workers: int | None) -> None:
    """Build the snapshot OUT, ./python-doc unless told, from the package python3.11-doc, section by section.

    Sixty questions, judgements and answers come with the program; `snapshot measure OUT --python-doc` asks
    them.
    """
    with ShownProgress() as progress:
        manifest = build_python_docs(
            out, html, Pace(workers=workers or os.cpu_count() or 1), progress
        )
    say_built(out, manifest)
