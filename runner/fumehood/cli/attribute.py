"""``fumehood attribute``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fumehood.cli.baselines import Solvability
from fumehood.cli.output import PATH, print_json, print_tables, say
from fumehood.cli.reading import read_run, unverified_option, verification_of
from fumehood.cli.score import other_judge
from fumehood.core.errors import InputError
from fumehood.core.evidence import Evidence
from fumehood.core.json_values import JsonObject
from fumehood.core.outcome import outcome_name
from fumehood.core.task import Task
from fumehood.orchestrator.rescore import rescore
from fumehood.records.run_reader import RunReader
from fumehood.report.results import Result, join_results
from fumehood.report.statistics.failures import (
    JUDGED,
    LEVELS,
    TITLES,
    Attribution,
    Label,
    Sign,
    meanings,
)
from fumehood.report.statistics.failures import attribute as attribute_result
from fumehood.report.text_table import TextTable
from fumehood.report.traces import read_traces
from fumehood.report.wording import number_of
from fumehood.scorers.judges.question import Opinion, Question, opinion_metrics
from fumehood.scorers.judges.transcript import transcript_of

if TYPE_CHECKING:
    from fumehood.orchestrator.judging import RunJudge


@dataclass(frozen=True, slots=True)
class Attributions:
    """The failed episodes of a run, by name."""

    by_name: dict[str, Attribution] = field(default_factory=dict)
    opinions: dict[str, Opinion] = field(default_factory=dict)
    """Opinions of the judge on episodes that no rule explains."""


@click.command()
@click.argument("run_dir", metavar="DIR", type=PATH)
@click.option("--each", is_flag=True, help="Print one line per failed episode.")
@click.option("--judge", help="Ask this judge about episodes that no rule explains.")
@click.option("--config", type=PATH, help="YAML file with `models` and `judging` for --judge.")
@unverified_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def attribute(
    run_dir: Path,
    each: bool,
    judge: str | None,
    config: Path | None,
    unverified: bool,
    as_json: bool,
) -> None:
    """Show why episodes failed, by rules on their traces.

    Each failed episode gets one primary label, secondary labels for other evidence, and a label for
    each seat. An episode that no rule explains is unattributed, unless --judge names a model that
    chooses its label. The judge's answers are not stored.

    \b
    Examples:
      fumehood attribute runs/20260101-120000 --each
      fumehood attribute runs/20260101-120000 --judge some-model --config models.yaml
    """
    folder = read_run(run_dir, unverified=unverified)
    if config is not None and judge is None:
        raise InputError("--config has no effect without --judge; add --judge or remove --config")
    judging = None if judge is None else other_judge(folder, judge, config)
    mark, why = folder.provenance.mark, _attributions(folder, judging)
    if as_json:
        verification = verification_of([folder])
        print_json({"verification": verification, **_to_json(why)})
        return
    if mark:
        say(mark)
    if each:
        for line in _lines(why.by_name):
            say(line)
        return
    say(number_of(len(why.by_name), "failed episode"))
    print_tables(_label_table(why.by_name), mark=mark)
    if judging is not None:
        say(_judged(why))


def _attributions(folder: RunReader, judge: RunJudge | None) -> Attributions:
    suite, found = folder.suite(), Attributions()
    tasks = {case.task.task_id: case.task for case in suite.cases}
    is_solvable = Solvability(suite)
    for result, trace in read_traces(folder, join_results(rescore(folder), suite)):
        why, name = attribute_result(result, trace.evidence, is_solvable), str(result.row.name)
        if why is None:
            continue
        if why.primary is Label.UNATTRIBUTED and judge is not None and trace.evidence is not None:
            task = tasks[result.task.task_id]
            ask = judge.ask_for(result.row.name.identifier, task.harness_mode)
            opinion = found.opinions[name] = ask(_question(result, task, trace.evidence))
            why = _with_opinion(why, opinion)
        found.by_name[name] = why
    return found


def _question(result: Result, task: Task, evidence: Evidence) -> Question:
    failed = [name for name, holds in result.row.score.checks.items() if not holds]
    labels = "; ".join(f"{label.value}: {meaning}" for label, meaning in JUDGED.items())
    return Question(
        name="failure",
        asks=f"An agent failed its task. What was the main cause? {labels}.",
        texts={
            "Task": task.seats[0].instruction,
            "Transcript": transcript_of(evidence),
            "Outcome": outcome_name(result.row.outcome),
            "Failed checks": ", ".join(failed),
        },
        answers=tuple(label.value for label in JUDGED),
    )


def _with_opinion(why: Attribution, opinion: Opinion) -> Attribution:
    if opinion.answer is None:
        return why
    votes = opinion.votes.count(opinion.answer)
    text = f"the judge, in {votes} of {len(opinion.votes)} samples"
    label = Label(opinion.answer)
    secondary = tuple(other for other in why.secondary if other is not label)
    return replace(
        why, primary=label, secondary=secondary, signs=(*why.signs, Sign(label, text, True))
    )


def _judged(why: Attributions) -> str:
    """Return how many episodes the judge labelled, and how far its samples agree."""
    metrics = opinion_metrics(why.opinions.values())
    decided = sum(opinion.answer is not None for opinion in why.opinions.values())
    text = f"judge: {decided} of {len(why.opinions)} episodes without a rule"
    agreement = metrics.get("judge_agreement")
    return f"{text}; agreement of samples {agreement:.2f}" if agreement is not None else text


def _label_table(attributions: Mapping[str, Attribution]) -> TextTable:
    primary, secondary = _counts(attributions)
    rows = [
        (LEVELS[label].value, TITLES[label], str(primary[label]), str(secondary[label]))
        for label in Label
        if primary[label] or secondary[label]
    ]
    note = meanings((*primary, *secondary))
    return TextTable("", ("level", "label", "primary", "secondary"), rows, names=2, note=note)


def _counts(attributions: Mapping[str, Attribution]) -> tuple[Counter[Label], Counter[Label]]:
    primary = Counter(why.primary for why in attributions.values())
    secondary = Counter(label for why in attributions.values() for label in why.secondary)
    return primary, secondary


def _lines(attributions: Mapping[str, Attribution]) -> Iterator[str]:
    for name, why in attributions.items():
        signs = "; ".join(sign.description for sign in why.signs)
        yield f"{name}  {why.primary.value}  {signs}"


def _to_json(attributions: Attributions) -> JsonObject:
    primary, secondary = _counts(attributions.by_name)
    return {
        "failed": len(attributions.by_name),
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
                "seats": {seat: label.value for seat, label in why.by_seat.items()},
                "signs": [
                    {"label": sign.label.value, "seat": sign.seat, "what": sign.description}
                    for sign in why.signs
                ],
            }
            for name, why in attributions.by_name.items()
        },
        "judge": opinion_metrics(attributions.opinions.values()),
    }
