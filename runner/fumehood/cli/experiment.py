"""``fumehood experiment``."""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from glob import escape
from math import prod
from pathlib import Path
from random import Random
from statistics import fmean
from tempfile import TemporaryDirectory

import click

from fumehood.cli.findings import findings_of
from fumehood.cli.output import print_json, print_tables, report_extra, say
from fumehood.cli.progress import run_with_progress
from fumehood.cli.reading import mark_of, verification_of
from fumehood.cli.selection import on_option, on_settings, shard_option, trust_cluster_option
from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.orchestrator.bounds import Bounds, bounds_of
from fumehood.orchestrator.config import RunConfig, TaskSelection, machine_settings
from fumehood.orchestrator.experiment import (
    Plan,
    levels_of,
    own_plan,
    plan_of,
    read_experiment,
    run_plan,
)
from fumehood.orchestrator.rescore import rescore
from fumehood.orchestrator.setup import RunSetup
from fumehood.records.run_reader import RunReader, is_experiment
from fumehood.report.statistics.power import ASSUMPTIONS, detectable_difference
from fumehood.report.summary import ModelCosts, model_costs
from fumehood.report.text_table import TextTable
from fumehood.report.wording import NONE, dollars

FACTORS = ("suite", "model", "agent", "data_mode", "faults", "budget", "team", "prompts")


@click.command()
@click.argument("file", metavar="FILE|DIR", type=click.Path(path_type=Path, exists=True))
@click.option(
    "--out", type=click.Path(path_type=Path), help="Experiment folder.  [default: runs/NAME-TIME]"
)
@click.option("--dry-run", is_flag=True, help="Print the size and the bounds; run nothing.")
@click.option(
    "--estimate",
    type=click.IntRange(1),
    metavar="TASKS",
    help="Play this number of tasks of each run once, and print the estimated use of the "
    "experiment.",
)
@click.option(
    "--concurrency",
    "-j",
    type=click.IntRange(1),
    help="Concurrent episodes.  [default: as in the file]",
)
@shard_option
@on_option(default=None, of="the file")
@trust_cluster_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def experiment(
    file: Path,
    out: Path | None,
    dry_run: bool,
    estimate: int | None,
    concurrency: int | None,
    shard: str | None,
    on: str | None,
    i_trust_this_cluster: bool,
    as_json: bool,
) -> None:
    """Run all combinations of models, suites and conditions.

    Conditions are data modes, faults, budgets, teams and prompts. FILE is a YAML file; `fumehood
    schema experiment` prints its JSON Schema. DIR is the folder of an interrupted experiment of
    yours, which continues. The folder holds the frozen plan, one run folder per combination below
    `runs`, and the report. Variables such as FUMEHOOD_ENGINE override the settings in FILE.

    \b
    Examples:
      fumehood experiment models.yaml --dry-run
      fumehood experiment models.yaml --estimate 2
      fumehood experiment models.yaml --out runs/models
      fumehood experiment models.yaml --shard auto --out runs/shards/1
      fumehood experiment runs/models
    """
    plan, folder = _plan_and_folder(file, out, shard, is_estimated=estimate is not None)
    given: dict[str, object] = {} if concurrency is None else {"concurrency": concurrency}
    given |= on_settings(on, is_trusted=i_trust_this_cluster)
    plan = plan.with_settings(**{**machine_settings(os.environ), **given})
    setups = {cell.name: RunSetup.create(cell.config) for cell in plan.cells}
    if dry_run or estimate is not None:
        bounds = {name: bounds_of(setup) for name, setup in setups.items()}
        used = None if estimate is None else _estimate(setups, estimate, quiet=as_json)
        _print_size(setups, bounds, used, as_json=as_json)
        return
    with report_extra():
        from fumehood.report.dose_response import dose_data, dose_table, doses_in
        from fumehood.report.experiment import experiment_json, experiment_tables, records_of
        from fumehood.report.runs import join_run, subjects_of
        from fumehood.report.write import write_report

    for (suite, factor, *_), difference in () if as_json else _detectable(setups):
        say(f"{suite}: {factor}: detects differences from {difference * 100:.1f} pp", err=True)

    def run_cell(config: RunConfig, path: Path, title: str) -> RunReader:
        if not as_json:
            say(title, err=True)
        return run_with_progress(config, path, quiet=as_json)

    readers = list(run_plan(plan, folder, run_cell))
    if plan.shard is not None:
        if as_json:
            verification = verification_of(readers)
            print_json({"folder": str(folder), "shard": plan.shard, "verification": verification})
        else:
            say(f"{folder} is shard {plan.shard}; when all are finished, run fumehood merge")
        return
    runs = [join_run(reader, rescore(reader)) for reader in readers]
    findings = findings_of(runs, subjects_of(runs), None)
    page = write_report(findings, folder / "report")[0]
    doses = doses_in(findings)
    if as_json:
        result = {"folder": str(folder), "page": str(page), **experiment_json(findings)}
        result["dose_response"] = records_of(dose_data(doses))
        click.echo(json.dumps({**result, "verification": verification_of(readers)}, indent=2))
        return
    print_tables(*experiment_tables(findings), dose_table(doses), mark=mark_of(readers))
    say("")
    say(str(page))


def _plan_and_folder(
    file: Path, out: Path | None, shard: str | None, *, is_estimated: bool
) -> tuple[Plan, Path]:
    if file.is_dir():
        if not is_experiment(file):
            raise InputError(f"{file} is not the folder of an experiment; name a YAML file")
        if given := [flag for flag, value in (("--out", out), ("--shard", shard)) if value]:
            raise InputError(f"{given[0]} has no effect: the experiment continues in {file}")
        return own_plan(file, is_estimated=is_estimated), file
    name = f"{file.stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    plan = plan_of(read_experiment(file)).with_settings(shard=shard)
    return plan, out or Path("runs") / name


@dataclass(frozen=True, slots=True)
class _Used:
    """The use of the played episodes, extrapolated to all planned episodes."""

    played: int
    """Episodes that were played; not extrapolated."""
    calls: float
    costs: ModelCosts
    seconds: float


def _estimate(setups: Mapping[str, RunSetup], tasks: int, *, quiet: bool) -> dict[str, _Used]:
    """Play some tasks of each cell once, in a temporary folder."""
    used = {}
    with TemporaryDirectory(prefix="fumehood-estimate-") as folder:
        for number, (name, setup) in enumerate(setups.items(), start=1):
            if not quiet:
                say(f"estimate {number} of {len(setups)}: {name}", err=True)
            names = [case.task.task_id for case in setup.suite.cases]
            drawn = Random(setup.config.seed).sample(names, min(tasks, len(names)))
            selection = TaskSelection(names=tuple(map(escape, drawn)))
            config = setup.config.model_copy(
                update={"tasks": selection, "trials": 1, "shard": None}
            )
            began_at = time.monotonic()
            run = run_with_progress(config, Path(folder) / name, quiet=quiet, is_kept=False)
            used[name] = _extrapolated(run, setup, time.monotonic() - began_at)
    return used


def _extrapolated(run: RunReader, setup: RunSetup, elapsed_s: float) -> _Used:
    rows = run.rows()
    costs = model_costs(run, rows) if setup.config.models else {}
    factor = len(setup.episodes) / max(1, len(rows))
    concurrency = setup.config.concurrency
    played_s = sum(row.wall_ms for row in rows) / 1000 / min(concurrency, max(1, len(rows)))
    start_s = max(0.0, elapsed_s - played_s)  # Each run starts once.
    episodes_s = sum(row.wall_ms for row in rows) / 1000 * factor / concurrency
    total = reduce(ModelCosts.plus, costs.values(), ModelCosts())
    calls = [row.score.metrics.get("tool_calls") for row in rows]
    numbers = [float(value) for value in calls if isinstance(value, int | float)]
    return _Used(
        played=len(rows),
        calls=fmean(numbers) * len(setup.episodes) if numbers else 0.0,
        costs=ModelCosts(
            calls=round(total.calls * factor),
            tokens=round(total.tokens * factor),
            microusd=round(total.microusd * factor),
        ),
        seconds=start_s + episodes_s,
    )


def _print_size(
    setups: Mapping[str, RunSetup],
    bounds: Mapping[str, Bounds],
    used: Mapping[str, _Used] | None,
    *,
    as_json: bool,
) -> None:
    total = reduce(Bounds.plus, bounds.values(), Bounds())
    detectable = _detectable(setups)
    if as_json:
        result: JsonObject = {
            **total.to_json(),
            "runs": {name: own.to_json() for name, own in bounds.items()},
            "detectable_difference": [
                {"suite": suite, "factor": factor, "difference": difference}
                for (suite, factor, _, _, _), difference in detectable
            ],
        }
        if used is not None:
            result["estimate"] = {name: _used_json(own) for name, own in used.items()}
        click.echo(json.dumps(result, indent=2))
        return
    print_tables(_bounds_table({**bounds, "all": total}), _detectable_table(detectable))
    if used is not None:
        print_tables(_used_table(used))


def _bounds_table(bounds: Mapping[str, Bounds]) -> TextTable:
    header = ("Run", "Episodes", "Tool calls", "Model requests", "Tokens", "Money")
    rows = [
        (
            name,
            f"{own.episodes:,}",
            *map(_count, (own.calls, own.model_calls, own.tokens)),
            NONE if own.microusd is None else dollars(own.microusd),
        )
        for name, own in bounds.items()
    ]
    note = (
        f"Upper bounds. {NONE}: there is no bound; set models.budget, and models.prices for money."
    )
    return TextTable("Size of the experiment", header, rows, note=note)


def _count(value: int | None) -> str:
    return NONE if value is None else f"{value:,}"


_Comparison = tuple[str, str, int, int, int]
"""Suite, factor, tasks, pairs per task, comparisons."""


def _detectable(setups: Mapping[str, RunSetup]) -> list[tuple[_Comparison, float]]:
    """Return the detectable difference of each factor in each suite."""
    by_suite: dict[str, list[RunSetup]] = defaultdict(list)
    for setup in setups.values():
        by_suite[levels_of(setup.config)["suite"]].append(setup)
    detectable = []
    for suite, own in by_suite.items():
        levels = {factor: _level_count(own, factor) for factor in FACTORS[1:]}
        comparisons = sum(count - 1 for count in levels.values())
        for factor, count in levels.items():
            if count > 1:
                others = prod(number for name, number in levels.items() if name != factor)
                pairs = others * own[0].config.trials
                item = (suite, factor, len(own[0].suite.cases), pairs, comparisons)
                detectable.append((item, detectable_difference(*item[2:])))
    return detectable


def _level_count(setups: Iterable[RunSetup], factor: str) -> int:
    if factor == "agent":
        return len({agent.label for setup in setups for agent in setup.participants.agents})
    levels = {levels_of(setup.config)[factor] for setup in setups}
    return max(1, len(levels - {""}))


def _detectable_table(detectable: Sequence[tuple[_Comparison, float]]) -> TextTable:
    header = ("Suite", "Factor", "Tasks", "Pairs per task", "Detectable difference")
    rows = [
        (suite, factor, f"{tasks:,}", f"{pairs:,}", f"{difference * 100:.1f} pp")
        for (suite, factor, tasks, pairs, _), difference in detectable
    ]
    return TextTable("Detectable differences in success", header, rows, names=2, note=ASSUMPTIONS)


def _used_json(used: _Used) -> JsonObject:
    return {
        "played": used.played,
        "tool_calls": used.calls,
        "seconds": used.seconds,
        "model_calls": used.costs.calls,
        "tokens": used.costs.tokens,
        "microusd": used.costs.microusd,
    }


def _used_table(used: Mapping[str, _Used]) -> TextTable:
    header = ("Run", "Played", "Tool calls", "Model requests", "Tokens", "Money", "Minutes")
    own = [(name, item) for name, item in used.items()]
    total = _Used(
        sum(item.played for _, item in own),
        sum(item.calls for _, item in own),
        reduce(ModelCosts.plus, (item.costs for _, item in own), ModelCosts()),
        sum(item.seconds for _, item in own),
    )
    rows = [
        (
            name,
            f"{item.played:,}",
            f"{item.calls:,.0f}",
            f"{item.costs.calls:,}",
            f"{item.costs.tokens:,}",
            NONE if item.costs.calls and not item.costs.microusd else dollars(item.costs.microusd),
            f"{item.seconds / 60:,.1f}",
        )
        for name, item in (*own, ("all", total))
    ]
    note = (
        "Extrapolated from the played episodes; they are not part of the experiment. "
        f"{NONE}: no price is known; set models.prices."
    )
    return TextTable("Estimated use of the whole experiment", header, rows, note=note)
