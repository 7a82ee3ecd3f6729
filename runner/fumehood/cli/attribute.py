"""``fumehood attribute``."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import click

from fumehood.cli.output import print_tables, say
from fumehood.cli.reading import read_run, unverified_option, verification_of
from fumehood.core.json_values import JsonObject
from fumehood.orchestrator.rescore import rescore
from fumehood.report.results import join_results
from fumehood.report.statistics.failures import LEVELS, TITLES, Attribution, Label
from fumehood.report.statistics.failures import attribute as attribute_result
from fumehood.report.text_table import TextTable
from fumehood.report.traces import read_traces

Attributions = dict[str, Attribution]
"""By episode name."""


@click.command()
@click.argument("run_dir", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--each", is_flag=True, help="Print one line per failed episode.")
@unverified_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def attribute(run_dir: Path, each: bool, unverified: bool, as_json: bool) -> None:
    """Show why episodes failed, by rules on their traces.

    Each failed episode gets one primary label, and secondary labels for other evidence. An episode
    that no rule explains is unattributed. No model is used.

    \b
    Example:
      fumehood attribute runs/20260101-120000 --each
    """
    folder = read_run(run_dir, unverified=unverified)
    mark = folder.provenance.mark
    attributions: Attributions = {}
    for result, trace in read_traces(folder, join_results(rescore(folder), folder.suite())):
        why = attribute_result(result, trace.evidence)
        if why is not None:
            attributions[str(result.row.name)] = why
    if as_json:
        click.echo(
            json.dumps(
                {"verification": verification_of([folder]), **_to_json(attributions)}, indent=2
            )
        )
        return
    if mark:
        say(mark)
    if each:
        for line in _lines(attributions):
            say(line)
        return
    say(f"{len(attributions)} failed episodes")
    print_tables(_label_table(attributions), mark=mark)


def _label_table(attributions: Attributions) -> TextTable:
    primary, secondary = _counts(attributions)
    rows = [
        (LEVELS[label].value, TITLES[label], str(primary[label]), str(secondary[label]))
        for label in Label
        if primary[label] or secondary[label]
    ]
    return TextTable("", ("level", "label", "primary", "secondary"), rows, names=2)


def _counts(attributions: Attributions) -> tuple[Counter[Label], Counter[Label]]:
    primary = Counter(why.primary for why in attributions.values())
    secondary = Counter(label for why in attributions.values() for label in why.secondary)
    return primary, secondary


def _lines(attributions: Attributions) -> list[str]:
    lines = []
    for name, why in attributions.items():
        signs = "; ".join(sign.description for sign in why.signs)
        lines.append(f"{name}  {why.primary.value}  {signs}")
    return lines


def _to_json(attributions: Attributions) -> JsonObject:
    primary, secondary = _counts(attributions)
    return {
        "failed": len(attributions),
        "labels": {
            label.value: {
                "level": LEVELS[label].value,
                "primary": primary[label],
                "secondary": secondary[label],
            }
            for label in Label
        },
        "episodes": {
            name: {
                "primary": why.primary.value,
                "secondary": [label.value for label in why.secondary],
                "signs": [
                    {"label": sign.label.value, "what": sign.description} for sign in why.signs
                ],
            }
            for name, why in attributions.items()
        },
    }
