"""``fumehood snapshot measure``: measures retrieval against judgements."""

from __future__ import annotations

import json
from pathlib import Path

import click

from fumehood_snapshots.errors import SnapshotInputError
from fumehood_snapshots.metrics.judgements import read_qrels, read_questions
from fumehood_snapshots.metrics.retrieval import measure_snapshot
from fumehood_snapshots.pythondoc.benchmark import QUESTIONS
from fumehood_snapshots.snapshot import open_snapshot


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--questions", type=click.Path(path_type=Path), help="ID, tab, question; one per line."
)
@click.option("--qrels", type=click.Path(path_type=Path), help="Judgements in TREC format.")
@click.option(
    "--python-doc", is_flag=True, help="Use the sixty questions about Python's documentation."
)
@click.option("--json", "as_json", is_flag=True, help="Print means and every question.")
def measure(
    path: Path, questions: Path | None, qrels: Path | None, python_doc: bool, as_json: bool
) -> None:
    """Measure how well searches rank relevant documents.

    Computes recall, nDCG and the reciprocal rank in the snapshot PATH.
    """
    if python_doc:
        asked, judged = QUESTIONS.questions(), QUESTIONS.judgements()
    elif questions is not None and qrels is not None:
        asked, judged = read_questions(questions), read_qrels(qrels)
    else:
        raise SnapshotInputError("give --questions and --qrels, or --python-doc")
    quality = measure_snapshot(open_snapshot(path), asked, judged)
    if as_json:
        click.echo(
            json.dumps({"means": quality.means, "by_question": quality.by_question}, indent=2)
        )
        return
    for name, value in quality.means.items():
        click.echo(f"{name:<10} {value:.4f}")
