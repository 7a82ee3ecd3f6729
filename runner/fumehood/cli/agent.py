"""``fumehood agent``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from fumehood.agent_check.check import Check, Finding, Verdict
from fumehood.agent_check.init import languages, lay_out, next_commands
from fumehood.core.errors import InputError
from fumehood.engines.engine import EngineOptions
from fumehood.report.safe_text import safe

FAILED = 1
MOMENT_S, DAY_S = 0.001, 86_400


@click.group()
def agent() -> None:
    """Begin an agent of your own, in any language, and try it."""


@agent.command()
@click.option("--language", type=click.Choice(languages()), required=True, help="Of the agent.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def init(language: str, folder: Path) -> None:
    """Write a small working agent into FOLDER: its program, a Dockerfile and a test.

    \b
      fumehood agent init --language python my-agent
      cd my-agent
      fumehood agent check .
    """
    files = lay_out(language, folder)
    click.echo(f"{folder} holds {', '.join(files)}. Next:")
    click.echo(f"  cd {folder}")
    for command in next_commands(language):
        click.echo(f"  {command}")


@agent.command()
@click.argument("agent_name", metavar="AGENT")
@click.option(
    "--scripts", is_flag=True, help="AGENT carries out scripts: compare what it observes."
)
@click.option(
    "--only", multiple=True, metavar="NAME", help="Only this condition, or vector. Repeatable."
)
@click.option(
    "--engine", default="auto", show_default=True, help="docker, bubblewrap, process, or auto."
)
@click.option(
    "--runtime", default=None, help="Container runtime of the docker engine, such as runsc."
)
@click.option("--wall-time-s", default=60.0, show_default=True, help="For each, seconds.")
@click.option("--i-trust-this-agent", is_flag=True, help="Let the process engine run any agent.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
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
    """Put AGENT under every condition that a seat may bring, and say how it came through.

    AGENT is what `fumehood run --agent` takes: a folder with a Dockerfile, an image, module:Class, a
    built-in name. It is looked at from outside: it has to end by itself, to end its work or to have it
    ended, to send nothing that the wall refuses, and not to crash. What it answers is its own business.
    Whatever model it asks for, a stand-in answers that needs no key: it asks for a tool twice and is done.

    \b
      fumehood agent check ./my-agent
      fumehood agent check my_agent:Agent --engine bubblewrap --only big_result

    "not met" is a condition that the agent did not bring about: one that calls no tool meets no failure.
    Exit status 1 when something failed.
    """

    def say(line: str) -> None:
        click.echo(line, err=True)

    if not MOMENT_S <= wall_time_s <= DAY_S:
        raise InputError(f"--wall-time-s must be from {MOMENT_S} to {DAY_S}, not {wall_time_s}")
    options = EngineOptions(runtime=runtime, trust=i_trust_this_agent, progress=say)
    findings = []
    with Check.of(agent_name, engine, options, round(wall_time_s * 1000), say) as made:
        for finding in made.by_scripts(only) if scripts else made.under_conditions(only):
            findings.append(finding)
            if not as_json:
                click.echo(_line(finding))
    failed = sum(finding.verdict is Verdict.FAILS for finding in findings)
    if as_json:
        click.echo(
            json.dumps(
                {"agent": agent_name, "failed": failed, "findings": _told(findings)}, indent=2
            )
        )
    else:
        click.echo(_summary(findings, failed))
    return FAILED if failed else 0


def _line(finding: Finding) -> str:
    return f"{finding.verdict.value:8}{finding.name:18}{finding.behaviour}: {safe(finding.detail)}"


def _summary(findings: list[Finding], failed: int) -> str:
    held = sum(finding.verdict is Verdict.HOLDS for finding in findings)
    unmet = len(findings) - held - failed
    return f"{held} of {len(findings)} held, {failed} failed" + (
        f", {unmet} not met" if unmet else ""
    )


def _told(findings: list[Finding]) -> list[dict[str, object]]:
    return [{**asdict(finding), "verdict": finding.verdict.value} for finding in findings]
