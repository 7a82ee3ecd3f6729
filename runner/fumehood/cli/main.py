"""The command ``fumehood``."""

from __future__ import annotations

import os
import re
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from fumehood.core.errors import InfraError, InputError, nearest
from fumehood.orchestrator.stop_signals import Stopped, exit_status
from fumehood.report.safe_text import one_line
from fumehood.version import __version__

if TYPE_CHECKING:
    from structlog.typing import EventDict

COMMANDS = {
    "agent": "fumehood.cli.agent:agent",
    "attribute": "fumehood.cli.attribute:attribute",
    "clean": "fumehood.cli.clean:clean",
    "compare": "fumehood.cli.compare:compare",
    "completion": "fumehood.cli.completion:completion",
    "doctor": "fumehood.cli.doctor:doctor",
    "export": "fumehood.cli.export:export",
    "experiment": "fumehood.cli.experiment:experiment",
    "images": "fumehood.cli.images:images",
    "keys": "fumehood.cli.keys:keys",
    "leaderboard": "fumehood.cli.leaderboard:leaderboard",
    "list": "fumehood.cli.listing:list_all",
    "merge": "fumehood.cli.merge:merge",
    "monitor": "fumehood.cli.monitor:monitor",
    "plugin": "fumehood.cli.plugin:plugin",
    "receipt": "fumehood.cli.receipt:receipt",
    "reliability": "fumehood.cli.reliability:reliability",
    "replay": "fumehood.cli.replay:replay",
    "report": "fumehood.cli.report:report",
    "reproduce": "fumehood.cli.reproduce:reproduce",
    "resume": "fumehood.cli.run:resume",
    "run": "fumehood.cli.run:run",
    "schema": "fumehood.cli.schema:schema",
    "score": "fumehood.cli.score:score",
    "serve": "fumehood.cli.serve:serve",
    "show": "fumehood.cli.show:show",
    "snapshot": "fumehood_snapshots.cli.group:snapshot",
    "suite": "fumehood.cli.suite:suite",
    "suites": "fumehood.cli.suites:suites",
    "verdict": "fumehood.cli.verdict:verdict",
    "verify": "fumehood.cli.verify:verify",
    "watch": "fumehood.cli.watch:watch",
}
"""Name → ``"module:command"``. A command is imported when it is called, so that --help is fast."""

SUMMARIES = {
    "Run": {
        "run": "Run agents on the tasks of SUITE.",
        "resume": "Finish an interrupted run or experiment.",
        "experiment": "Run all combinations of models, suites and conditions.",
        "merge": "Merge the shards of a run or an experiment into the folder OUT.",
        "agent": "Create an agent from a template, or check one.",
        "reproduce": "Reproduce the tables and figures of a paper.",
    },
    "Inspect": {
        "show": "Show an episode call by call, or list all episodes.",
        "report": "Write a report of one or more runs, or of an experiment.",
        "watch": "Serve the report page of a run or experiment while it goes on.",
        "attribute": "Show why episodes failed, by rules on their traces.",
        "score": "Score a run again, or compute metrics from a log of Inspect.",
        "replay": "Repeat the recorded calls of a run without its agents.",
        "verify": "Verify the seals of a run or experiment and list all damage.",
        "export": "Convert a run to a format of another tool.",
        "receipt": "Write or verify a signed receipt of a run or an EPISODE.",
        "keys": "List, add and remove the keys whose runs you accept.",
    },
    "Compare": {
        "compare": "Compare agents, scaffolds or conditions on the same tasks.",
        "leaderboard": "Rank the agents of runs within each suite.",
        "reliability": "Show how reliable agents are, in twelve metrics.",
        "verdict": "Decide whether agents keep the limits of a policy.",
        "monitor": "Play a monitor over recorded traces, and score its alarms.",
    },
    "Suites": {
        "suite": "Write, generate, validate and describe suites of tasks.",
        "suites": "List the domains of the paper 'A Unified Framework'.",
        "list": "List benchmarks, agents, engines, worlds and faults.",
        "schema": "Print the JSON Schema of a file format.",
        "plugin": "Write a package that adds a world or another extension.",
    },
    "Snapshots": {"snapshot": "Build, search and compare offline document sets."},
    "Machines": {
        "doctor": "Check which engines work here, and what to install.",
        "images": "Build the images of boxes.",
        "clean": "Remove containers, processes and folders of killed commands.",
        "serve": "Run one service process with sockets in DIRECTORY.",
        "completion": "Print the code that completes commands in a shell.",
    },
}
"""Group → name → first line of the help text. ``--help`` shows them without importing commands."""

BAD_INPUT = 2
"""Exit status of errors that the user can fix."""
INFRA = 3
"""Exit status of infrastructure failures."""


class _Interrupted(Exception):
    """Passes a signal through click, which would print an empty line."""

    def __init__(self, number: int) -> None:
        self.number = number


class _Commands(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except Stopped as stopped:
            raise _Interrupted(stopped.number) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            hint = nearest(cmd_name, list(COMMANDS))
            raise click.UsageError(f"no command is called {cmd_name!r}; {hint}")
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group, summaries in SUMMARIES.items():
            with formatter.section(group):
                formatter.write_dl(list(summaries.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        summaries = {name: text for group in SUMMARIES.values() for name, text in group.items()}
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [CompletionItem(name, help=summaries[name]) for name in names] + options


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="fumehood")
def fumehood(**_: Any) -> None:
    """Run untrusted agents in sandboxes and score what they did.

    \b
    Examples:
      fumehood doctor                             check the engines of this machine
      fumehood run sample --agent policy_aware    run one agent on forty tasks
      fumehood show runs/DIR EPISODE              show an episode call by call

    Exit status: 0 success; 1 a difference, damage or failed check; 2 an error that you can fix,
    described in one line on standard error; 3 an infrastructure failure, such as a full disk;
    130, 143, 129 interrupted by SIGINT, SIGTERM, SIGHUP.
    """


def main() -> None:
    """Run the command line and exit."""
    # gRPC logs closed connections, which are normal here.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    if sys.argv[1:2] not in (["--version"], ["--help"], ["-h"]):
        _configure_logs()
    try:
        status = fumehood.main(standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(BAD_INPUT)
    except click.ClickException as error:
        click.echo(f"fumehood: {_one_line(_click_message(error))}", err=True)
        sys.exit(BAD_INPUT)
    except InputError as error:
        click.echo(f"fumehood: {_one_line(error)}", err=True)
        sys.exit(BAD_INPUT)
    except InfraError as error:
        click.echo(f"fumehood: {_one_line(error)}", err=True)
        sys.exit(INFRA)
    except _Interrupted as interrupted:
        click.echo("fumehood: interrupted; finished episodes are stored", err=True)
        sys.exit(exit_status(interrupted.number))
    except RecursionError:
        click.echo("fumehood: a folder or a text is nested too deeply: flatten it", err=True)
        sys.exit(BAD_INPUT)
    except OSError as error:
        # A disk, a descriptor limit or a permission; the modules that expect one name the remedy.
        where = f": {error.filename}" if error.filename else ""
        click.echo(f"fumehood: {_one_line(f'{error.strerror or error}{where}')}", err=True)
        sys.exit(INFRA)
    sys.exit(status if isinstance(status, int) else 0)


def _configure_logs() -> None:
    import structlog  # Its import takes longer than --help and --version.

    # Looked up for every line, because an embedding program may replace the stream.
    structlog.configure(
        processors=[_escape_values, *structlog.get_config()["processors"]],
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )


def _click_message(error: click.ClickException) -> str:
    """Return the message; it names the environment variable if the value came from one."""
    error = _in_plain_words(error)
    if isinstance(error, click.BadParameter) and error.ctx and error.param:
        name, prefix = str(error.param.name), error.ctx.auto_envvar_prefix
        if prefix and error.ctx.get_parameter_source(name) is ParameterSource.ENVIRONMENT:
            return f"Invalid value for the environment variable {prefix}_{name.upper()}: " + (
                error.message
            )
    message = error.format_message()
    if type(error) is click.UsageError and error.ctx:
        return f"{message}; see: {error.ctx.command_path} --help"
    return message


def _in_plain_words(error: click.ClickException) -> click.ClickException:
    """Return an error; that of a wrong whole number states its bounds."""
    if not (isinstance(error, click.BadParameter) and error.param):
        return error
    kind = error.param.type
    pattern = r"(.*) is not (?:a valid integer.*|in the range .*)\."
    wrong = re.fullmatch(pattern, error.message, re.DOTALL)
    if wrong is None or not isinstance(kind, click.types.IntParamType):
        return error
    low, high = (getattr(kind, name, None) for name in ("min", "max"))
    bounds = ("" if low is None else f" from {low}") + ("" if high is None else f" to {high}")
    message = f"must be a whole number{bounds}, not {wrong[1]}"
    return click.BadParameter(message, error.ctx, error.param, error.param_hint)


def _escape_values(_: object, __: str, event: EventDict) -> EventDict:
    """Escape the text of a log line, which may name agents, tasks and files."""
    return {
        name: one_line(value) if isinstance(value, str) else value for name, value in event.items()
    }


def _one_line(error: object) -> str:
    """Return an error on one line; it may quote file names and labels of other users."""
    return one_line(" ".join(str(error).split()))
