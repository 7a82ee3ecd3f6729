"""``fumehood attribute``."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import click

from fumehood.core.json_values import JsonObject
from fumehood.orchestrator.rescore import rescore
from fumehood.records.run_folder import RunFolder
from fumehood.report.results import join_results
from fumehood.report.safe_text import safe
from fumehood.report.statistics.failures import LEVELS, TITLES, Attribution, Label
from fumehood.report.statistics.failures import attribute as attribute_result
from fumehood.report.traces import read_traces


@click.command()
@click.argument("run_dir", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--each", is_flag=True, help="A line for each failed episode.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def attribute(run_dir: Path, each: bool, as_json: bool) -> None:
    """Say why episodes of the run in DIR failed: by rule, from their traces, without a model.

    Every failed episode gets one primary label, and others that something speaks for. What no rule can
    tell is unattributed.
    """
    folder = RunFolder.open(run_dir)
    found: dict[str, Attribution] = {}
    for result, trace in read_traces(folder, join_results(rescore(folder), folder.suite())):
        why = attribute_result(result, trace.evidence)
        if why is not None:
            found[str(result.row.name)] = why
    if as_json:
        click.echo(json.dumps(_to_json(found), indent=2))
        return
    for line in _each(found) if each else _counted(found):
        click.echo(line)


def _counted(found: dict[str, Attribution]) -> list[str]:
    primary = Counter(why.primary for why in found.values())
    secondary = Counter(label for why in found.values() for label in why.secondary)
    lines = [f"{len(found)} failed episodes"]
    for label in Label:
        if primary[label] or secondary[label]:
            also = f"  (+{secondary[label]} secondary)" if secondary[label] else ""
            lines.append(
                f"  {LEVELS[label].value:<10} {TITLES[label]:<18} {primary[label]:>6}{also}"
            )
    return lines


def _each(found: dict[str, Attribution]) -> list[str]:
    return [
        f"{safe(name)}  {why.primary.value}  {safe('; '.join(sign.what for sign in why.signs))}"
        for name, why in found.items()
    ]


def _to_json(found: dict[str, Attribution]) -> JsonObject:
    primary = Counter(why.primary for why in found.values())
    secondary = Counter(label for why in found.values() for label in why.secondary)
    return {
        "failed": len(found),
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
                "signs": [{"label": sign.label.value, "what": sign.what} for sign in why.signs],
            }
            for name, why in found.items()
        },
    }
