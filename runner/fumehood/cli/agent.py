"""``fumehood agent``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from fumehood.agent_check.check import Check, Finding, Verdict
from fumehood.agent_check.init import create_agent, languages, next_commands
from fumehood.cli.engine_name import EngineName
from fumehood.cli.output import print_json, say
from fumehood.core.errors import InputError
from fumehood.engines.engine import EngineOptions

FAILED = 1
WALL_TIME_MIN_S, WALL_TIME_MAX_S = 0.001, 86_400


@click.group()
def agent() -> None:
    """Create an agent from a template, or check one."""


@agent.command()
@click.option(
    "--language", type=click.Choice(languages()), required=True, help="Language of the template."
)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def init(language: str, folder: Path, as_json: bool) -> None:
    """Write an agent template into FOLDER.

    The template is a small working agent with a Dockerfile, a test and a task.

    \b
    Example:
      fumehood agent init --language python my-agent
      cd my-agent
      fumehood agent check .
    """
    files = create_agent(language, folder)
    if as_json:
        commands = list(next_commands(language))
        click.echo(json.dumps({"folder": str(folder), "files": list(files), "next": commands}))
        return
    say(f"Wrote {', '.join(files)} to {folder}. Next:")
    say(f"  cd {folder}")
    for command in next_commands(language):
        say(f"  {command}")


@agent.command()
@click.argument("agent_name", metavar="AGENT")
@click.option("--scripts", is_flag=True, help="AGENT executes scripts: run the protocol cases.")
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    help="Only this robustness or protocol case. Repeatable.",
)
@click.option(
    "--engine", type=EngineName(), default="auto", show_default=True, help="Engine of the boxes."
)
@click.option("--runtime", default=None, help="Container runtime of docker or oci, such as runsc.")
@click.option("--wall-time-s", default=60.0, show_default=True, help="Time limit of each case.")
@click.option("--i-trust-this-agent", is_flag=True, help="Allow AGENT on the process engine.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(
    agent_name: str,
    scripts: bool,
    only: tuple[str, ...],
    engine: str,
    runtime: str | None,
    wall_time_s: float,
    i_trust_this_agent: bool,
    as_json: bool,
) -> int:
    """Run AGENT on all robustness cases.

    AGENT is as in `fumehood run --agent`: a folder with a Dockerfile, an image, module:Class or a
    built-in name. The agent must not crash or send invalid messages, and its process must end. Its
    answers are not checked. A stub model answers its model requests: two tool calls, then the end.

    \b
    Examples:
      fumehood agent check --only big_result noop
      fumehood agent check ./my-agent
      fumehood agent check my_agent:Agent --engine bubblewrap --only big_result

    "not reached" means that the situation did not occur: an agent without tool calls sees no tool
    failure. Exit status 1 if a case failed.
    """

    def print_step(line: str) -> None:
        say(line, err=True)

    if not WALL_TIME_MIN_S <= wall_time_s <= WALL_TIME_MAX_S:
        raise InputError(
            f"--wall-time-s must be from {WALL_TIME_MIN_S} to {WALL_TIME_MAX_S}, not {wall_time_s}"
        )
    options = EngineOptions(runtime=runtime, trust=i_trust_this_agent, progress=print_step)
    findings = []
    with Check.of(agent_name, engine, options, round(wall_time_s * 1000), print_step) as cases:
        for finding in cases.protocol(only) if scripts else cases.robustness(only):
            findings.append(finding)
            if not as_json:
                say(_line(finding))
    failed = sum(finding.verdict is Verdict.FAILS for finding in findings)
    if as_json:
        print_json({"agent": agent_name, "failed": failed, "findings": _to_json(findings)})
    else:
        say(_summary(findings, failed))
    return FAILED if failed else 0


def _line(finding: Finding) -> str:
    return f"{finding.verdict.value:12}{finding.name:18}{finding.behaviour}: {finding.detail}"


def _summary(findings: list[Finding], failed: int) -> str:
    held = sum(finding.verdict is Verdict.HOLDS for finding in findings)
    not_reached = len(findings) - held - failed
    return f"{held} of {len(findings)} passed, {failed} failed" + (
        f", {not_reached} not reached" if not_reached else ""
    )


def _to_json(findings: list[Finding]) -> list[dict[str, object]]:
    return [{**asdict(finding), "verdict": finding.verdict.value} for finding in findings]
