"""``fumehood merge``."""

from __future__ import annotations

from pathlib import Path

import click

from fumehood.cli.output import PATH, print_json, say
from fumehood.cli.reading import read_run
from fumehood.cli.run_summary import finish
from fumehood.orchestrator.experiment import runs_in
from fumehood.orchestrator.merge import merge as merge_shards
from fumehood.orchestrator.rescore import rescore
from fumehood.records.run_reader import is_experiment
from fumehood.records.trust import Trust


@click.command()
@click.argument("out", metavar="OUT", type=PATH)
@click.argument("shards", metavar="SHARD...", nargs=-1, required=True, type=PATH)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def merge(out: Path, shards: tuple[Path, ...], as_json: bool) -> int:
    """Merge the shards of a run or an experiment into the folder OUT.

    SHARDs are the folders of all shards that `run --shard K/N` or `experiment --shard K/N` played,
    in any order. Their signers must be you or in `fumehood keys list`. Your key signs the merged
    run, which has the trace digest of a run on one machine. The shards are not changed.

    \b
    Examples:
      fumehood merge runs/all runs/shards/*
      fumehood merge runs/all runs/shards/1 runs/shards/2 --json
    """
    merge_shards(out, shards, Trust.of_user())
    if is_experiment(out):
        runs = [str(path) for path in runs_in(out)]
        if as_json:
            print_json({"folder": str(out), "shards": len(shards), "runs": runs})
        else:
            say(f"merged {len(shards)} shards of {len(runs)} runs; compute the results with:")
            say(f"fumehood experiment {out}")
        return 0
    run = read_run(out, unverified=False)
    return finish(run, rescore(run), as_json=as_json)
