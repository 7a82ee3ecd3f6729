"""``fumehood run``."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from fumehood.cli.progress import RunProgress
from fumehood.cli.run_summary import finish
from fumehood.core.errors import InputError
from fumehood.orchestrator.config import RunConfig, read_yaml, run_config
from fumehood.orchestrator.launch import Progress, start_run

IN_FILES_ALONE = ("fetch", "judging", "limits", "messages", "models", "search", "seats")
"""Settings of several parts, which no flag could hold."""

_DEFAULTS = {name: field.default for name, field in RunConfig.model_fields.items()}


def _read_config(ctx: click.Context, _: click.Parameter, path: Path | None) -> Path | None:
    """Make a file's settings the defaults of all flags."""
    if path is not None:
        settings = read_yaml(path)
        ctx.default_map = {**settings, "agent": settings.get("agents", ())}
        ctx.obj = {name: settings[name] for name in IN_FILES_ALONE if name in settings}
    return path


def _setting(name: str) -> str:
    return str(RunConfig.model_fields[name].description)


@click.command(context_settings={"auto_envvar_prefix": "FUMEHOOD", "show_default": True})
@click.argument("suite", required=False)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    callback=_read_config,
    is_eager=True,
    expose_value=False,
    help="YAML file with any of these settings; `fumehood schema run` prints its JSON Schema.",
)
@click.option(
    "--agent", "-a", multiple=True, metavar="AGENT", help=f"{_setting('agents')} Repeatable."
)
@click.option("--trials", "-n", type=int, default=_DEFAULTS["trials"], help=_setting("trials"))
@click.option("--seed", type=int, default=_DEFAULTS["seed"], help=_setting("seed"))
@click.option(
    "--concurrency", "-j", type=int, default=_DEFAULTS["concurrency"], help=_setting("concurrency")
)
@click.option(
    "--service-workers",
    type=int,
    default=_DEFAULTS["service_workers"],
    help=_setting("service_workers"),
)
@click.option("--engine", default=_DEFAULTS["engine"], help=_setting("engine"))
@click.option("--runtime", default=None, help=_setting("runtime"))
@click.option(
    "--wall-time-s", type=float, default=_DEFAULTS["wall_time_s"], help=_setting("wall_time_s")
)
@click.option("--data-mode", default=_DEFAULTS["data_mode"], help=_setting("data_mode"))
@click.option(
    "--snapshot", type=click.Path(path_type=Path), default=None, help=_setting("snapshot")
)
@click.option(
    "--recording", type=click.Path(path_type=Path), default=None, help=_setting("recording")
)
@click.option("--faults", metavar="FILE", default=None, help=_setting("faults"))
@click.option("--model", default=None, help=_setting("model"))
@click.option("--judge", default=None, help=_setting("judge"))
@click.option(
    "--seat", multiple=True, metavar="SEAT=AGENT[,MODEL]", help=f"{_setting('seats')} Repeatable."
)
@click.option("--i-trust-this-agent", is_flag=True, help=_setting("i_trust_this_agent"))
@click.option(
    "--out", type=click.Path(path_type=Path), default=None, help="Run folder.  [default: runs/TIME]"
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@click.pass_context
def run(ctx: click.Context, /, out: Path | None, as_json: bool, **given: Any) -> int:
    """Run agents on the tasks of SUITE, each episode in a box of its own.

    SUITE is the name of a benchmark, such as `sample`, or a file or folder of tasks; `fumehood list` says
    which there are. A flag wins over FUMEHOOD_… in the environment, that over --config, that over defaults.

    \b
      fumehood run sample -a policy_aware -a schema_repair
      fumehood run sample -a my_agent:Agent --trials 5 -j 4
      fumehood run sample -a ./my-agent-in-any-language

    Exit status 2 also when an agent crashed, ran out of time, printed without end or sent what the wall
    refuses: one line each says so, and every episode is in the run folder all the same.
    """
    settings = {**given, "agents": given["agent"], **(ctx.obj or {})}
    settings.pop("agent")
    settings["seats"] = {**settings.get("seats", {}), **_seats(settings.pop("seat"))}
    if not settings["suite"]:
        raise InputError("name a suite, such as: fumehood run sample --agent policy_aware")
    if not settings["agents"]:
        raise InputError(
            "name at least one agent, such as: --agent policy_aware; see: fumehood list"
        )
    config = run_config(settings)
    folder_path = out or Path("runs") / time.strftime("%Y%m%d-%H%M%S")
    with RunProgress(Console(stderr=True), quiet=as_json) as progress:
        folder = start_run(
            config, folder_path, Progress(progress.start, progress.row, progress.wait)
        )
    return finish(folder, folder.rows(), as_json=as_json)


def _seats(given: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return who sits where, by seat."""
    seats = {}
    for text in given:
        seat, is_given, player = text.partition("=")
        agent, has_model, model = player.partition(",")
        if not (seat and is_given and agent):
            raise InputError(
                f"--seat {text}: say SEAT=AGENT or SEAT=AGENT,MODEL, such as user=react,some-model"
            )
        seats[seat] = {"agent": agent, **({"model": model} if has_model else {})}
    return seats
