"""``fumehood compare-env``."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click

from fumehood.cli.extra import report_extra
from fumehood.cli.run_or_resume import carried_out
from fumehood.core.errors import InputError
from fumehood.orchestrator.config import RunConfig, read_yaml, run_config
from fumehood.orchestrator.rescore import rescore

ARMS = ("offline", "live")


@click.command("compare-env")
@click.argument("suite")
@click.option(
    "--agents",
    "-a",
    "agents",
    multiple=True,
    required=True,
    help="As in `run`; several parted by commas, or repeated.",
)
@click.option(
    "--trials", "-n", type=int, default=1, show_default=True, help="Attempts per agent and task."
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="The same in both environments."
)
@click.option(
    "--config", type=click.Path(path_type=Path), help="YAML with `fetch`, `search` and the rest."
)
@click.option("--snapshot", type=click.Path(path_type=Path), help="Of the offline side.")
@click.option(
    "--recording", type=click.Path(path_type=Path), help="Keep all that the live side is answered."
)
@click.option("--engine", help="As in `run`.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder of both runs.  [default: runs/TIME]"
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def compare_env(
    suite: str, config: Path | None, out: Path | None, as_json: bool, **given: Any
) -> None:
    """Run agents on SUITE offline and live, paired by task and seed, and say what the environment did.

    Beside it stands what the agents did: how far they differ within each environment. Both runs are ordinary
    run folders, OUT/offline and OUT/live. What is done there already is not run again, so the comparison can
    be printed once more.
    """
    with report_extra():
        from fumehood.report.compare.by_data_mode import (
            divergence_table,
            effect_table,
            effects,
            effects_json,
            latency_table,
            page_table,
        )
        from fumehood.report.runs import join_run
    configs = [_config(arm, suite, config, given) for arm in ARMS]
    place = out or Path("runs") / time.strftime("%Y%m%d-%H%M%S")
    folders = [
        carried_out(told, place / arm, quiet=as_json)
        for arm, told in zip(ARMS, configs, strict=True)
    ]
    found = effects(*(join_run(folder, rescore(folder)) for folder in folders))
    if as_json:
        click.echo(
            json.dumps(
                {"runs": [str(folder.path) for folder in folders], **effects_json(found)}, indent=2
            )
        )
        return
    from fumehood.cli.reading import print_tables

    print_tables(
        effect_table(found), divergence_table(found), page_table(found), latency_table(found)
    )


def _config(arm: str, suite: str, file: Path | None, given: dict[str, Any]) -> RunConfig:
    settings: dict[str, Any] = read_yaml(file) if file else {}
    settings |= {name: value for name, value in given.items() if value is not None}
    settings["agents"] = [name for agents in given["agents"] for name in agents.split(",")]
    recording = settings.pop("recording", None)
    if arm == "live" and recording is not None:
        return run_config(
            {**settings, "suite": suite, "data_mode": "record", "recording": recording}
        )
    if arm == "live" and not settings.get("fetch"):
        raise InputError(
            "the live side needs to know which hosts it may ask: --config with fetch.hosts"
        )
    return run_config({**settings, "suite": suite, "data_mode": arm})
