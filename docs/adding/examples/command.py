"""``fumehood outcomes``: counts the outcomes of a run."""

import json
from collections import Counter
from pathlib import Path

import click

from fumehood.cli.output import print_tables
from fumehood.cli.reading import read_run, unverified_option
from fumehood.core.outcome import outcome_name
from fumehood.report.text_table import TextTable


@click.command()
@click.argument("run_dir", metavar="DIR", type=click.Path(path_type=Path))
@unverified_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def outcomes(run_dir: Path, unverified: bool, as_json: bool) -> None:
    """Count the outcomes of a run.

    \b
    Example:
      fumehood outcomes runs/20260101-120000
    """
    rows = read_run(run_dir, unverified=unverified).rows()
    counts = Counter(outcome_name(row.outcome) for row in rows)
    if as_json:
        click.echo(json.dumps(dict(counts)))
        return
    lines = [(name, str(number)) for name, number in sorted(counts.items())]
    print_tables(TextTable("", ("outcome", "episodes"), lines))
