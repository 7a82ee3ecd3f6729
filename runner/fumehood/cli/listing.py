"""``fumehood list``."""

from __future__ import annotations

import shutil
from textwrap import wrap

import click

from fumehood.benchmarks.registry import BENCHMARKS
from fumehood.cli.output import PIPE_COLUMNS, print_json, say
from fumehood.engines.registry import ENGINES
from fumehood.harness_modes.registry import HARNESS_MODES
from fumehood.layers.faults.registry import FAMILIES
from fumehood.scorers.registry import SCORERS
from fumehood.turn_policies.registry import TURN_POLICIES
from fumehood.worlds.registry import WORLDS
from fumehood_agent.builtin import BUILTIN
from fumehood_agent.scaffolds.table import WITH_MODEL

INDENT = 15


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_all(as_json: bool) -> None:
    """List benchmarks, agents, engines, worlds and faults.

    The list also has harness modes, turn policies, scorers, and the plugins of installed packages.

    \b
    Example:
      fumehood list
    """
    tables = {
        "benchmarks": sorted(BENCHMARKS),
        "agents": sorted((*BUILTIN, *WITH_MODEL)),
        "engines": sorted(ENGINES),
        "worlds": sorted(WORLDS),
        "faults": sorted(FAMILIES),
        "harness_modes": sorted(HARNESS_MODES),
        "turn_policies": sorted(TURN_POLICIES),
        "scorers": sorted(SCORERS),
    }
    if as_json:
        print_json(tables)
        return
    columns = shutil.get_terminal_size((PIPE_COLUMNS, 0)).columns
    for kind, names in tables.items():
        first, *others = wrap(", ".join(names), columns - INDENT, break_on_hyphens=False)
        say(f"{kind:<{INDENT}}{first}")
        for line in others:
            say(f"{'':<{INDENT}}{line}")
