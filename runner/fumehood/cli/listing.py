"""``fumehood list``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import click

from fumehood.benchmarks.registry import BENCHMARKS
from fumehood.benchmarks.shared.generator import GENERATORS
from fumehood.cli.output import paged, print_json, print_tables, report_extra
from fumehood.core.errors import InputError
from fumehood.core.registry import Extension, Registry, about
from fumehood.engines.images.recipe import RECIPES
from fumehood.engines.registry import ENGINES
from fumehood.exports.registry import exporters
from fumehood.harness_modes.registry import HARNESS_MODES
from fumehood.layers.faults.registry import FAMILIES
from fumehood.monitors.registry import MONITORS
from fumehood.orchestrator.agents import ACP
from fumehood.report.text_table import TextTable
from fumehood.scorers.judges.registry import JUDGES
from fumehood.scorers.registry import SCORERS
from fumehood.turn_policies.registry import BY_TIME, BY_WORLD, TURN_POLICIES
from fumehood.worlds.registry import WORLDS
from fumehood_agent.builtin import BUILTIN
from fumehood_agent.scaffolds.table import WITH_MODEL

REGISTRIES: Mapping[str, Registry[Any]] = {
    "benchmarks": BENCHMARKS,
    "engines": ENGINES,
    "worlds": WORLDS,
    "faults": FAMILIES,
    "harness_modes": HARNESS_MODES,
    "turn_policies": TURN_POLICIES,
    "scorers": SCORERS,
    "judges": JUDGES,
    "monitors": MONITORS,
    "generators": GENERATORS,
}
SECTIONS = "report_sections"
KINDS = ("agents", *REGISTRIES, "exporters", SECTIONS)


@click.command("list")
@click.argument("kinds", metavar="[KIND]...", nargs=-1, type=click.Choice(KINDS))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_all(kinds: tuple[str, ...], as_json: bool) -> None:
    """List benchmarks, agents, engines, worlds and faults.

    KIND is one of agents, benchmarks, engines, worlds, faults, harness_modes, turn_policies,
    scorers, judges, monitors, generators, exporters and report_sections. The list also has plugins,
    with the distribution that installed each, and why one cannot be used.

    \b
    Examples:
      fumehood list
      fumehood list worlds faults
    """
    tables = {kind: sorted(_extensions(kind)) for kind in kinds or KINDS}
    if as_json:
        print_json(
            {kind: [each._asdict() for each in extensions] for kind, extensions in tables.items()}
        )
        return
    with paged():
        print_tables(*(_table(kind, extensions) for kind, extensions in tables.items()))


def _extensions(kind: str) -> Iterator[Extension]:
    if kind == "benchmarks":
        for each in BENCHMARKS.extensions():
            source = "" if each.problem else str(getattr(BENCHMARKS.load(each.name), "source", ""))
            yield each._replace(about=source or each.about)
    elif kind in REGISTRIES:
        yield from REGISTRIES[kind].extensions()
    if kind == "turn_policies":
        yield Extension(BY_TIME, "Seats act at the same time in a world with virtual time.")
        yield Extension(BY_WORLD, "The world is the turn policy.")
    if kind == "exporters":
        yield from exporters()
    if kind == "agents":
        for name, path in {**BUILTIN, **WITH_MODEL}.items():
            module, _, attribute = path.partition(":")
            yield Extension(name, about(getattr(import_module(module), attribute)))
        for name in RECIPES:
            yield Extension(f"{ACP}{name}", f"{name} from npm, over the Agent Client Protocol.")
    if kind == SECTIONS:
        try:
            with report_extra():
                from fumehood.report.sections.registry import SECTIONS as REPORT_SECTIONS
        except InputError:  # Other kinds are listed without the extra.
            return
        yield from REPORT_SECTIONS.extensions()


def _table(kind: str, extensions: list[Extension]) -> TextTable:
    rows = []
    for each in extensions:
        origin = f" (plugin of {each.distribution})" if each.distribution else ""
        rows.append((each.name, f"{each.problem or each.about}{origin}"))
    return TextTable(kind, ("name", "description"), rows, trailing_text=1)
