"""``fumehood suite``: generates, validates and describes suites of tasks."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import click

from fumehood.benchmarks.native.calibration import Durations, Fit, fits_of, read_durations
from fumehood.benchmarks.native.suite_file import STARTER
from fumehood.benchmarks.native.tasks import NativeRecords
from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.generator import GENERATORS
from fumehood.benchmarks.shared.manifest import read_manifest, verify_files
from fumehood.benchmarks.shared.proof import Undecided, prove_not_free, prove_solvable
from fumehood.benchmarks.shared.quality import QualityReport, quality_report
from fumehood.benchmarks.shared.reading import YAML_SUFFIXES, Mistakes
from fumehood.cli.baselines import describe, noop_of, oracle_of
from fumehood.cli.output import PATH, print_json, print_tables, print_text, say
from fumehood.cli.progress import part_progress
from fumehood.cli.reading import read_run
from fumehood.cli.selection import only_selected, task_options
from fumehood.core.errors import InputError
from fumehood.core.json_values import Json, JsonObject, as_object
from fumehood.core.task import Suite
from fumehood.report.text_table import TextTable
from fumehood.scorers.registry import score_evidence

DEFAULT_SEED = 42

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
folder_argument = click.argument("folder", metavar="DIR", type=PATH)


@click.group()
def suite() -> None:
    """Write, generate, validate and describe suites of tasks."""


@suite.command()
@click.argument("family", type=click.Choice(sorted(GENERATORS)))
@click.option("--profile", default="default", show_default=True, help="Size of the suite.")
@click.option(
    "--seed", default=DEFAULT_SEED, show_default=True, help="Equal seeds give equal files."
)
@click.option("--out", required=True, metavar="DIR", type=PATH, help="A new folder.")
@click.option("--train", type=click.IntRange(min=0), help="Number of tasks in train.")
@click.option("--dev", type=click.IntRange(min=0), help="Number of tasks in dev.")
@click.option(
    "--test", "test_public", type=click.IntRange(min=0), help="Number of tasks in test_public."
)
@as_json_option
def generate(
    family: str,
    profile: str,
    seed: int,
    out: Path,
    train: int | None,
    dev: int | None,
    test_public: int | None,
    as_json: bool,
) -> None:
    """Generate a suite of FAMILY into a new folder.

    Each task is validated, and its oracle is run. Profiles are small, default and large; native and
    toolmisuse also have medium, and toolmisuse also v0.2_large and paper.

    \b
    Examples:
      fumehood suite generate native --profile small --out my-suite
      fumehood suite generate safety --profile large --seed 7 --out my-suite
    """
    sizes = {"train": train, "dev": dev, "test_public": test_public}
    splits = {split: size for split, size in sizes.items() if size is not None}

    def print_split(split: str, ready: int, total: int) -> None:
        if not as_json and ready == total:
            say(f"{split}: {ready} task{'' if ready == 1 else 's'}, all validated", err=True)

    manifest = GENERATORS.load(family)(
        profile, seed, out, splits=splits, score_episode=score_evidence, progress=print_split
    )
    if as_json:
        print_json(manifest.model_dump())
        return
    say(f"{out}: {family} {profile}, release {manifest.release}, seed {seed}")


@suite.command()
@folder_argument
@as_json_option
def quality(folder: Path, as_json: bool) -> None:
    """Measure how diverse and balanced the tasks of a suite are.

    \b
    Example:
      fumehood suite quality my-suite
    """
    report = quality_report(folder)
    if as_json:
        print_json(report.to_json())
        return
    print_tables(_quality_table(report))


@suite.command()
@click.argument("file", metavar="FILE", type=PATH)
@as_json_option
def init(file: Path, as_json: bool) -> None:
    """Write a suite to start from: a small world and three tasks.

    \b
    Example:
      fumehood suite init my-suite.yaml
    """
    if file.suffix not in YAML_SUFFIXES:
        raise InputError(f"{file}: the name of a suite must end in .yaml")
    _write_new(file, STARTER.read_text(encoding="utf-8"))
    commands = [f"fumehood suite validate {file}", f"fumehood run {file} --agent AGENT"]
    if as_json:
        print_json({"file": str(file), "next": commands})
        return
    say(f"{file}: written; next: {commands[0]}")


@suite.command()
@click.argument("log", type=PATH)
@click.option("--out", metavar="FILE", type=PATH, help="A new YAML file.")
@as_json_option
def calibrate(log: Path, out: Path | None, as_json: bool) -> None:
    """Fit the latencies of a scenario to recorded calls.

    LOG is a CSV or JSONL file with `tool`, and `duration_ms` or `duration_s`, or the folder of a
    run; the wall times of its calls are used. Prints a block for `time` of a scenario.

    \b
    Examples:
      fumehood suite calibrate calls.csv
      fumehood suite calibrate runs/20260101-120000 --out latency.yaml
    """
    fits = fits_of(_durations_of_run(log) if log.is_dir() else read_durations(log))
    lines = ["latency:"]
    lines += [
        f"  {json.dumps(fit.tool)}: {json.dumps(fit.latency)} # {fit.remark()}" for fit in fits
    ]
    if out is not None:
        _write_new(out, "\n".join(lines) + "\n")
    if as_json:
        print_json({"file": None if out is None else str(out), "fits": [*map(Fit.to_json, fits)]})
    elif out is None:
        print_text("\n".join(lines))
    else:
        say(f"{out}: written; copy its content into `time` of the scenario")


def _durations_of_run(folder: Path) -> Durations:
    durations: dict[str, list[float]] = defaultdict(list)
    run = read_run(folder, unverified=False)
    for row in run.rows():
        for record in run.read_trace(row) if row.trace else ():
            event = json.loads(record.event_json)
            if event["kind"] == "call":
                durations[event["tool"]].append(record.duration_us / 1000)
    if not durations:
        raise InputError(f"{folder}: no episode has a call")
    return durations


def _write_new(file: Path, text: str) -> None:
    try:
        with file.open("x", encoding="utf-8") as new_file:
            new_file.write(text)
    except FileExistsError:
        raise InputError(f"{file}: exists already; name a new file") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be written: {error.strerror}") from None


@suite.command()
@click.argument("argument", metavar="SUITE")
@task_options
@as_json_option
def validate(argument: str, as_json: bool, **options: Any) -> None:
    """Validate every task, and run its oracle and a no-op agent.

    The no-op agent must fail. Each mistake is one line, with its file and line or its task. If the
    files have no mistake, the oracle and the no-op agent play each task that has no workspace.

    SUITE is as in `fumehood run`: NAME[:ARGUMENT] or a path.

    \b
    Example:
      fumehood suite validate tasks.jsonl
    """
    try:
        loaded = only_selected(load_suite(argument), options)
        with part_progress(
            "playing the oracles", len(loaded.cases), "tasks", quiet=as_json
        ) as on_task:
            proven, undecided = _prove(loaded, argument, on_task)
    except InputError as error:
        mistakes = error.mistakes if isinstance(error, Mistakes) else (error,)
        lines: list[Json] = [str(mistake) for mistake in mistakes]
        if as_json:
            print_json({"suite": argument, "mistakes": lines})
        for line in lines[:-1]:
            say(f"fumehood: {line}", err=True)
        raise mistakes[-1] from None
    plural = " is" if len(loaded.cases) == 1 else "s are"
    tasks = len(loaded.cases)
    result: JsonObject = {
        "suite": loaded.name,
        "tasks": tasks,
        "oracles_proven": proven,
        "oracles_undecided": undecided,
        "mistakes": [],
    }
    judged = f", {undecided} not proven: only a judge or a run decides" if undecided else ""
    if as_json:
        print_json(result)
        return
    say(f"{loaded.name}: {tasks} task{plural} valid, {proven} solved by the oracle{judged}")


@suite.command()
@click.argument("argument", metavar="SUITE")
@task_options
@as_json_option
def info(argument: str, as_json: bool, **options: Any) -> None:
    """Describe a suite and score its no-op and oracle baselines.

    Prints tasks, licence, scoring rules, worlds and faults. Both baselines run on every task, in
    memory.

    \b
    Examples:
      fumehood suite info sample
      fumehood suite info sample --tag difficulty=easy
    """
    loaded = only_selected(load_suite(argument), options)
    described: JsonObject = {**_info(loaded), **_made_from(argument)}
    total = 2 * len(loaded.cases)
    with part_progress("playing the baselines", total, "tasks", quiet=as_json) as on_task:
        baselines = {"noop": noop_of(loaded, on_task), "oracle": oracle_of(loaded, on_task)}
    if as_json:
        scores = {name: baseline.to_json() for name, baseline in baselines.items()}
        print_json({**described, **scores})
        return
    for key, value in described.items():
        say(f"{key:<10} {_text(value)}")
    for key, baseline in baselines.items():
        say(f"{key:<10} {describe(baseline)}")


def _prove(loaded: Suite, argument: str, on_task: Callable[[], None]) -> tuple[int, int]:
    """Return how many tasks their oracles solve, and how many need a judge."""
    proven = undecided = 0
    mistakes: dict[str, InputError] = {}
    for case in loaded.cases:
        try:
            prove_not_free(case, score_evidence)
            # An unsolvable task may have an oracle that only documents this.
            if case.gold.oracle and (case.gold.solvable or case.gold.scorer == "native"):
                prove_solvable(case, score_evidence)
                proven += 1
        except Undecided:
            undecided += 1
        except InputError as mistake:
            mistakes[case.task.task_id] = mistake
        on_task()
    if mistakes:
        raise Mistakes(_with_places(mistakes, loaded, argument))
    return proven, undecided


def _with_places(mistakes: dict[str, InputError], loaded: Suite, argument: str) -> list[InputError]:
    """Return mistakes of tasks with the file and line of each native task."""
    if any(case.task.tags.get("benchmark") != "native" for case in loaded.cases):
        return list(mistakes.values())
    places = NativeRecords().places(argument.removeprefix("native:"))
    return [InputError(f"{places[task_id]}: {mistake}") for task_id, mistake in mistakes.items()]


def _text(value: Json) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {count}" for name, count in value.items())
    return "not stated by the benchmark" if value is None else str(value)


def _info(loaded: Suite) -> JsonObject:
    words = {True: "solvable", False: "not_solvable", None: "unknown"}
    tasks = [case.task for case in loaded.cases]
    faults = [{rule.family for rule in task.fault_plan} or {"clean"} for task in tasks]
    return {
        "suite": loaded.name,
        "tasks": len(tasks),
        "licence": loaded.about.licence if loaded.about else None,
        "criterion": loaded.about.criterion if loaded.about else None,
        "scored_on": loaded.about.scored_on if loaded.about else None,
        "worlds": dict(Counter(task.world for task in tasks)),
        "faults": dict(sorted(Counter(chain.from_iterable(faults)).items())),
        "oracles": dict(Counter(words[case.gold.solvable] for case in loaded.cases)),
    }


def _made_from(argument: str) -> JsonObject:
    """Return how a suite was generated, after verifying its files; empty for other suites."""
    path = next(
        (Path(part) for part in (argument, *argument.split(":")) if Path(part).is_dir()), None
    )
    manifest = None if path is None else read_manifest(path)
    if path is None or manifest is None:
        return {}
    verify_files(path, manifest)
    return {"profile": manifest.profile, "release": manifest.release, "seed": manifest.seed}


def _quality_table(report: QualityReport) -> TextTable:
    columns = [split.to_json() for split in report.splits.values()]
    rows: list[tuple[str, ...]] = []
    for key, first in columns[0].items():
        if not isinstance(first, dict):
            rows.append((key, *(str(column[key]) for column in columns)))
            continue
        rows.append((key, *("" for _ in columns)))
        names = dict.fromkeys(name for column in columns for name in as_object(column[key]))
        rows += [
            (f"  {name}", *(str(as_object(column[key]).get(name, 0)) for column in columns))
            for name in names
        ]
    return TextTable("", ("", *report.splits), rows)
