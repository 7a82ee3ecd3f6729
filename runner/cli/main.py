"""The command ``glovebox``."""

from __future__ import annotations

import difflib
import os
import sys
from importlib import import_module
from typing import Any

import click
import structlog

from runner.core.errors import InfraError, InputError
from runner.version import __version__

COMMANDS = {
    "agent": "runner.cli.agent:agent",
    "attribute": "runner.cli.attribute:attribute",
    "board": "runner.cli.board:board",
    "clean": "runner.cli.clean:clean",
    "compare": "runner.cli.compare:compare",
    "compare-env": "runner.cli.compare_env:compare_env",
    "compare-scaffolds": "runner.cli.compare_scaffolds:compare_scaffolds",
    "doctor": "runner.cli.doctor:doctor",
    "images": "runner.cli.images:images",
    "list": "runner.cli.listing:list_all",
    "replay": "runner.cli.replay:replay",
    "report": "runner.cli.report:report",
    "reproduce": "runner.cli.reproduce:reproduce",
    "resume": "runner.cli.resume:resume",
    "run": "runner.cli.run:run",
    "schema": "runner.cli.schema:schema",
    "score": "runner.cli.score:score",
    "serve": "runner.cli.serve:serve",
    "show": "runner.cli.show:show",
    "snapshot": "snapshots.cli.group:snapshot",
    "suite": "runner.cli.suite:suite",
    "vectors": "runner.cli.vectors:vectors",
    "verify": "runner.cli.verify:verify",
}
"""Name → ``"module:command"``, imported when it is asked for, so that --help is quick."""

BAD_INPUT = 2
"""Exit status when the user has to mend something."""
INFRA = 3
"""Exit status when our own machinery failed."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            near = difflib.get_close_matches(cmd_name, COMMANDS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(COMMANDS)}"
            raise click.UsageError(f"no command is called {cmd_name!r}; {hint}")
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="glovebox")
def glovebox(**_: Any) -> None:
    """Run untrusted agents in boxes, behind one socket, and judge what they did.

    \b
    Try it:
      glovebox doctor                              what this machine can do
      glovebox run sample --agent policy_aware     forty tasks, one agent, a table
      glovebox show runs/… EPISODE                 what the agent did, call by call

    Exit status: 0 done; 2 something of yours has to be mended, in one line on standard error, nothing is
    lost; 3 our own machinery failed and says so.
    """


def main() -> None:
    """Run the command line and exit."""
    # gRPC's own log speaks of connections that close, which is what they are meant to do here.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # Looked up for every line: who runs this in a process of their own may put another stream there.
    structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))
    try:
        status = glovebox.main(standalone_mode=False)
    except click.ClickException as error:
        click.echo("glovebox: " + error.format_message().replace("\n\t", " "), err=True)
        sys.exit(BAD_INPUT)
    except InputError as error:
        click.echo(f"glovebox: {_one_line(error)}", err=True)
        sys.exit(BAD_INPUT)
    except InfraError as error:
        click.echo(f"glovebox: {_one_line(error)}", err=True)
        sys.exit(INFRA)
    except (click.Abort, KeyboardInterrupt):
        click.echo("glovebox: interrupted; what is done is written down", err=True)
        sys.exit(130)
    sys.exit(status if isinstance(status, int) else 0)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
