"""``fumehood doctor --probe``: attacks this very set-up and says what held."""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console

from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.engines.engine import Engine, EngineOptions
from fumehood.engines.registry import choose_engine
from fumehood.records.caches import keep_probe, system_name
from fumehood.redteam.attack import Attack, Result, Verdict
from fumehood.redteam.page import attack_table, replace_table
from fumehood.redteam.probe import Probe
from fumehood.redteam.table import ATTACKS
from fumehood.report.safe_text import safe
from fumehood.version import __version__

BREACHED = 1
"""Exit status where an attack was not stopped, or nothing was proven."""
_STYLES = {Result.STOPPED: "green", Result.NOT_APPLICABLE: "dim"}


def probe(engines: Sequence[str], names: Sequence[str], page: Path | None, *, as_json: bool) -> int:
    """Attack each engine and return the exit status.

    Args:
        engines: ``NAME`` or ``NAME/RUNTIME``.
        names: of attacks; none means all.
        page: to write the table into, between its marks; None for none.
        as_json: print one JSON object instead of lines.

    Raises:
        InputError: there is no such engine or attack, or the engine is not ready.
    """
    attacks = _choose(names)
    console = Console(soft_wrap=True, quiet=as_json, highlight=False)
    verdicts = {engine: _attack(engine, attacks, console) for engine in engines}
    if page is not None:
        page.write_text(replace_table(page.read_text("utf-8"), attack_table(verdicts)), "utf-8")
    if as_json:
        click.echo(json.dumps(_report(verdicts), indent=2))
    fine = (Result.STOPPED, Result.NOT_APPLICABLE)
    held = all(verdict.result in fine for found in verdicts.values() for verdict in found)
    return 0 if held else BREACHED


def _choose(names: Sequence[str]) -> list[Attack]:
    unknown = sorted(set(names) - {attack.name for attack in ATTACKS})
    if unknown:
        known = ", ".join(attack.name for attack in ATTACKS)
        raise InputError(f"no attack is called {unknown[0]!r}; there are: {known}")
    return [attack for attack in ATTACKS if not names or attack.name in names]


def _attack(name: str, attacks: Sequence[Attack], console: Console) -> list[Verdict]:
    engine_name, _, runtime = name.partition("/")
    options = EngineOptions(runtime=runtime or None, progress=console.print)
    chosen = choose_engine(engine_name, options)
    console.print(f"{len(attacks)} attacks from boxes of {chosen.reason}", markup=False)
    if chosen.engine.isolation.is_none:
        raise InputError(f"the {engine_name} engine is no wall, so there is nothing to attack")
    found = []
    with closing(chosen.engine) as engine, Probe(engine) as session:
        for attack in attacks:
            found.append(session.attack(attack))
            _print(found[-1], console, {verdict.detail for verdict in found[:-1]})
        if len(found) == len(ATTACKS):
            _keep(engine, found, console)
    said = ", ".join(f"{count} {result}" for result, count in _counts(found).items() if count)
    console.print(f"{name}: {said}\n", markup=False)
    return found


def _counts(found: Sequence[Verdict]) -> dict[str, int]:
    return {result.value: sum(verdict.result is result for verdict in found) for result in Result}


def _keep(engine: Engine, found: Sequence[Verdict], console: Console) -> None:
    """Keep what a whole corpus came to, for the reports of runs to come."""
    counts: JsonObject = dict(_counts(found).items())
    report: JsonObject = {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "fumehood": __version__,
        "counts": counts,
        "attacks": [_verdict_json(verdict) for verdict in found],
    }
    try:
        keep_probe(engine.name, engine.check().detail, report)
    except OSError as error:
        console.print(f"not kept for reports: {error}", style="red", markup=False)


def _print(verdict: Verdict, console: Console, said: Container[str]) -> None:
    attack, style = verdict.attack, _STYLES.get(verdict.result, "bold red")
    console.print(f"  {verdict.result.value:<14}", style=style, end="")
    console.print(f" {attack.name:<17} {attack.wall.value}: {attack.by}", markup=False)
    if verdict.detail and verdict.detail not in said:
        console.print(f"{'':<16} {safe(verdict.detail)}", markup=False)


def _report(verdicts: dict[str, list[Verdict]]) -> dict[str, object]:
    return {
        "system": system_name(),
        "engines": [
            {"engine": engine, "attacks": [_verdict_json(one) for one in found]}
            for engine, found in verdicts.items()
        ],
    }


def _verdict_json(verdict: Verdict) -> JsonObject:
    attack = verdict.attack
    return {
        "attack": attack.name,
        "file": attack.file,
        "wall": attack.wall.value,
        "by": attack.by,
        "result": verdict.result.value,
        "detail": verdict.detail,
        "attempts": verdict.attempts,
        "wall_ms": verdict.wall_ms,
    }
