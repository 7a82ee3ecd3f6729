"""``fumehood run`` and ``fumehood resume``."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console

from fumehood.benchmarks.registry import BENCHMARKS
from fumehood.cli.completion import values
from fumehood.cli.engine_name import EngineName
from fumehood.cli.experiment import experiment
from fumehood.cli.output import PATH, print_text, say
from fumehood.cli.progress import RunProgress
from fumehood.cli.run_summary import finish
from fumehood.cli.selection import (
    on_option,
    on_settings,
    shard_option,
    task_options,
    trust_cluster_option,
    with_selection,
)
from fumehood.core.errors import InputError
from fumehood.orchestrator.config import RunConfig, machine_settings, read_yaml, run_config
from fumehood.orchestrator.launch import Progress, resume_run, start_run
from fumehood.records.row import EpisodeRow
from fumehood.records.run_reader import is_experiment
from fumehood_agent.builtin import BUILTIN
from fumehood_agent.scaffolds.table import WITH_MODEL

FILE_ONLY = "budget fetch judging levels limits messages models monitors search seats tasks team"
"""Structured settings, which have no flag with all of their content."""

PROCESS = "process"
"""Engine that runs only agents that the user trusts."""

_DEFAULTS = {name: field.default for name, field in RunConfig.model_fields.items()}


def _read_config(ctx: click.Context, _: click.Parameter, path: Path | None) -> Path | None:
    """Use the settings of a file as the defaults of the flags."""
    if path is not None:
        settings = read_yaml(path)
        agents = [_agent_text(agent) for agent in settings.get("agents", ())]
        ctx.default_map = {**settings, "agent": agents}
        ctx.obj = {name: settings[name] for name in FILE_ONLY.split() if name in settings}
    return path


def _agent_text(agent: str | dict[str, Any]) -> str:
    """Return an agent of a file in the form of the flag."""
    if isinstance(agent, str):
        return agent
    label = f"{agent['label']}=" if agent.get("label") else ""
    arguments = json.dumps(agent["arguments"]) if agent.get("arguments") else ""
    return f"{label}{agent['agent']}{arguments}"


def _setting(name: str) -> str:
    return str(RunConfig.model_fields[name].description)


@click.command(context_settings={"auto_envvar_prefix": "FUMEHOOD", "show_default": True})
@click.argument("suite", required=False, shell_complete=values(lambda: BENCHMARKS))
@click.option(
    "--config",
    type=PATH,
    callback=_read_config,
    is_eager=True,
    expose_value=False,
    help="YAML file with settings; `fumehood schema run` prints its JSON Schema.",
)
@click.option(
    "--agent",
    "-a",
    multiple=True,
    metavar="AGENT",
    help=f"{_setting('agents')} Repeatable.",
    shell_complete=values(lambda: sorted((*BUILTIN, *WITH_MODEL))),
)
@task_options
@click.option("--trials", "-n", type=int, default=_DEFAULTS["trials"], help=_setting("trials"))
@click.option("--seed", type=int, default=_DEFAULTS["seed"], help=_setting("seed"))
@click.option(
    "--concurrency", "-j", type=int, default=_DEFAULTS["concurrency"], help=_setting("concurrency")
)
@click.option(
    "--prepare",
    type=int,
    metavar="N",
    default=_DEFAULTS["prepare"],
    help=_setting("prepare"),
)
@click.option(
    "--service-workers",
    type=int,
    default=_DEFAULTS["service_workers"],
    help=_setting("service_workers"),
)
@click.option(
    "--engine",
    type=EngineName(),
    default=_DEFAULTS["engine"],
    help="Engine of the boxes; auto takes oci if an agent is an image archive; otherwise docker, "
    "then bubblewrap, then inline if all agents are built-in.",
)
@click.option("--runtime", default=None, help=_setting("runtime"))
@click.option(
    "--forked-starts/--no-forked-starts",
    default=_DEFAULTS["forked_starts"],
    help=_setting("forked_starts"),
)
@click.option(
    "--wall-time-s", type=float, default=_DEFAULTS["wall_time_s"], help=_setting("wall_time_s")
)
@click.option("--data-mode", default=_DEFAULTS["data_mode"], help=_setting("data_mode"))
@click.option("--snapshot", type=PATH, default=None, help=_setting("snapshot"))
@click.option("--recording", type=PATH, default=None, help=_setting("recording"))
@click.option("--faults", metavar="FILE", default=None, help=_setting("faults"))
@click.option("--fault-intensity", type=float, default=None, help=_setting("fault_intensity"))
@click.option("--ask-confidence", is_flag=True, help=_setting("ask_confidence"))
@click.option(
    "--prompt-variants",
    type=int,
    metavar="N",
    default=_DEFAULTS["prompt_variants"],
    help=_setting("prompt_variants"),
)
@click.option("--reword-published", is_flag=True, help=_setting("reword_published"))
@click.option("--shared-score", is_flag=True, help=_setting("shared_score"))
@click.option("--keep-workspaces", type=PATH, default=None, help=_setting("keep_workspaces"))
@click.option("--from-workspace", type=PATH, default=None, help=_setting("from_workspace"))
@click.option("--model", default=None, help=_setting("model"))
@click.option("--judge", default=None, help=_setting("judge"))
@click.option(
    "--seat", multiple=True, metavar="SEAT=AGENT[,MODEL]", help=f"{_setting('seats')} Repeatable."
)
@click.option(
    "--grant",
    multiple=True,
    metavar="NAME",
    help="What a model request may ask of a provider beyond text, such as web_search; adds to "
    "models.grants. Repeatable.",
)
@click.option(
    "--monitor",
    multiple=True,
    metavar="MONITOR",
    help="Monitor that decides about each step: FILE.yaml, FILE.py:Class, module:Class, "
    "model:NAME or person; replaces `monitors` of --config. Repeatable: a monitor decides only if "
    "the one before it escalates.",
)
@click.option("--i-trust-this-agent", is_flag=True, help=_setting("i_trust_this_agent"))
@shard_option
@on_option(default=_DEFAULTS["on"])
@trust_cluster_option
@click.option("--otlp", metavar="URL", help="Send each finished episode to this collector.")
@click.option("--out", type=PATH, default=None, help="Run folder.  [default: runs/TIME]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def run(
    ctx: click.Context, /, otlp: str | None, out: Path | None, as_json: bool, **flags: Any
) -> int:
    """Run agents on the tasks of SUITE.

    SUITE is a benchmark, such as `sample`, or a file or folder of tasks; `fumehood list` lists the
    benchmarks. Each episode runs in a separate box. A flag overrides the environment variable
    FUMEHOOD_NAME, which overrides --config. Settings without a flag are in --config.

    \b
    Examples:
      fumehood run sample -a policy_aware -a schema_repair
      fumehood run sample -a my_agent:Agent --trials 5 -j 4
      fumehood run sample -a policy_aware --tag difficulty=easy --limit 3
      fumehood run sample -a ./my-agent-in-any-language
      fumehood run sample -a policy_aware --monitor rules.yaml
      fumehood run sample -a policy_aware --shard 1/2 --out runs/shards/1
      fumehood run sample -a policy_aware --on ray://head.example:10001 -j 8

    The exit status is also 2 if an agent crashed, timed out, printed too much or sent invalid
    messages. One line reports each; the episodes are in the run folder.
    """
    settings = {**flags, "agents": flags["agent"], **(ctx.obj or {})}
    settings.pop("agent")
    settings["seats"] = {**settings.get("seats", {}), **_seats(settings.pop("seat"))}
    settings = with_selection(_with_grants(settings))
    if monitors := settings.pop("monitor"):
        settings["monitors"] = monitors
    if not settings["suite"]:
        print_text(ctx.get_help())
        raise InputError("name a suite, for example: fumehood run sample --agent policy_aware")
    if not settings["agents"]:
        raise InputError(
            "name at least one agent, for example: --agent policy_aware; see: fumehood list"
        )
    config = run_config(settings, _variables(ctx, flags))
    has_trust = ctx.get_parameter_source("i_trust_this_agent") is ParameterSource.COMMANDLINE
    _check_trust(config.engine, is_set=has_trust)
    folder_path = out or Path("runs") / time.strftime("%Y%m%d-%H%M%S")
    with (
        RunProgress(Console(stderr=True), quiet=as_json) as progress,
        _sent_to(otlp, progress.callbacks()) as callbacks,
    ):
        folder = start_run(config, folder_path, callbacks)
    return finish(folder, folder.rows(), as_json=as_json)


@click.command()
@click.argument("run_dir", metavar="DIR", type=PATH)
@click.option(
    "--concurrency",
    "-j",
    type=click.IntRange(1),
    help=f"{_setting('concurrency')}  [default: as in the run]",
)
@click.option(
    "--prepare",
    type=click.IntRange(0),
    metavar="N",
    help=f"{_setting('prepare')}  [default: as in the run]",
)
@click.option(
    "--engine",
    type=EngineName(),
    help="Engine of the boxes.  [default: as in the run]",
)
@click.option("--runtime", help=_setting("runtime"))
@click.option("--i-trust-this-agent", is_flag=True, help=_setting("i_trust_this_agent"))
@on_option(default=None, of="the run")
@trust_cluster_option
@click.option("--otlp", metavar="URL", help="Send each finished episode to this collector.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def resume(
    ctx: click.Context,
    run_dir: Path,
    concurrency: int | None,
    prepare: int | None,
    engine: str | None,
    runtime: str | None,
    i_trust_this_agent: bool,
    on: str | None,
    i_trust_this_cluster: bool,
    otlp: str | None,
    as_json: bool,
) -> int | None:
    """Finish an interrupted run or experiment.

    Runs the episodes that are missing, and those that failed as infra. Finished episodes are not
    repeated. A signed run that was changed is rejected. With another engine, the rows of the
    episodes state its isolation.

    \b
    Examples:
      fumehood resume runs/20260101-120000
      fumehood resume runs/20260101-120000 -j 8 --engine bubblewrap
    """
    given = {"concurrency": concurrency, "prepare": prepare}
    changes: dict[str, object] = {name: n for name, n in given.items() if n is not None}
    if engine is not None:
        _check_trust(engine, is_set=i_trust_this_agent)
        # A runtime belongs to an engine.
        changes |= {"engine": engine, "runtime": runtime, "i_trust_this_agent": i_trust_this_agent}
    elif runtime or i_trust_this_agent:
        raise InputError("--runtime and --i-trust-this-agent need --engine")
    changes |= on_settings(on, is_trusted=i_trust_this_cluster)
    if is_experiment(run_dir):
        if engine is not None:
            raise InputError(f"--engine has no effect on an experiment: resume runs of {run_dir}")
        if prepare is not None:
            raise InputError(f"--prepare has no effect on an experiment: resume runs of {run_dir}")
        if otlp is not None:
            raise InputError(f"--otlp has no effect on an experiment: resume runs of {run_dir}")
        ctx.invoke(
            experiment,
            file=run_dir,
            concurrency=concurrency,
            on=on,
            i_trust_this_cluster=i_trust_this_cluster,
            as_json=as_json,
        )
        return None
    with (
        RunProgress(Console(stderr=True), quiet=as_json) as progress,
        _sent_to(otlp, progress.callbacks()) as callbacks,
    ):
        folder = resume_run(run_dir, callbacks, {**_machine_changes(), **changes})
    return finish(folder, folder.rows(), as_json=as_json)


@contextmanager
def _sent_to(otlp: str | None, callbacks: Progress) -> Iterator[Progress]:
    """Yield callbacks that also send each finished episode to a collector, if there is one."""
    if otlp is None:
        yield callbacks
        return
    from fumehood.exports.otlp_http import HEADERS, headers_from
    from fumehood.exports.otlp_live import LiveTelemetry

    telemetry = LiveTelemetry(otlp, headers_from(os.environ.get(HEADERS, "")))

    def on_start(folder: Path, *facts: Any) -> None:
        telemetry.start(folder)
        callbacks.on_start(folder, *facts)

    def on_row(row: EpisodeRow) -> None:
        telemetry.row(row)
        callbacks.on_row(row)

    try:
        yield replace(callbacks, on_start=on_start, on_row=on_row)
    finally:
        say(f"fumehood: {telemetry.close()}", err=True)


def _machine_changes() -> dict[str, object]:
    """Return the settings of environment variables such as ``FUMEHOOD_ENGINE``."""
    given = machine_settings(os.environ)
    # A runtime belongs to an engine.
    return {"runtime": None, **given} if "engine" in given else given


def _check_trust(engine: str, *, is_set: bool) -> None:
    if is_set and engine != PROCESS:
        raise InputError(
            f"--i-trust-this-agent has no effect on the engine {engine}: remove it, or add "
            f"--engine {PROCESS}"
        )


def _variables(ctx: click.Context, flags: Iterable[str]) -> dict[str, str]:
    """Return the environment variable of each setting that came from one."""
    return {
        "agents" if name == "agent" else name: f"{ctx.auto_envvar_prefix}_{name.upper()}"
        for name in flags
        if ctx.get_parameter_source(name) is ParameterSource.ENVIRONMENT
    }


def _with_grants(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings in which ``models.grants`` includes the flags."""
    flags, models = settings.pop("grant"), settings.get("models")
    if not flags:
        return settings
    if not isinstance(models, dict):
        raise InputError(f"--grant {flags[0]}: add model providers under `models` in --config")
    grants = dict.fromkeys((*models.get("grants", ()), *flags))
    return {**settings, "models": {**models, "grants": tuple(grants)}}


def _seats(assignments: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the agent and model of each seat."""
    seats = {}
    for text in assignments:
        seat, has_agent, participant = text.partition("=")
        agent, has_model, model = participant.partition(",")
        if not (seat and has_agent and agent):
            raise InputError(
                f"--seat {text}: use SEAT=AGENT or SEAT=AGENT,MODEL, such as user=react,some-model"
            )
        seats[seat] = {"agent": agent, **({"model": model} if has_model else {})}
    return seats
