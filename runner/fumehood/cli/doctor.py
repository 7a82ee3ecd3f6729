"""``fumehood doctor``."""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from fumehood.core.json_values import JsonObject
from fumehood.engines.engine import EngineOptions, Isolation
from fumehood.engines.registry import ENGINES
from fumehood.records.caches import last_probe, probe_summary, system_name
from fumehood.redteam.table import ATTACKS
from fumehood.version import __version__

NOTHING_HOLDS = 2
"""Exit status where no engine can hold an untrusted agent."""


@dataclass(frozen=True, slots=True)
class _Finding:
    engine: str
    """With its runtime, as one asks for a probe."""
    ready: bool
    isolation: str
    detail: str
    unenforced: tuple[str, ...]
    """Limits that a box can exceed."""
    last_probe: JsonObject | None
    """What came of the last attack on it."""

    def to_json(self) -> dict[str, object]:
        return {
            "engine": self.engine,
            "ready": self.ready,
            "isolation": self.isolation,
            "detail": self.detail,
            "unenforced": list(self.unenforced),
            "not_stopped": list(self.not_stopped()),
            "last_probe": self.last_probe,
        }

    def not_stopped(self) -> tuple[str, ...]:
        """Return the attacks that it cannot stop by what it says of itself."""
        if self.isolation.startswith(Isolation.NONE.value):
            return ()  # It stops none, and says so.
        return tuple(attack.name for attack in ATTACKS if attack.limit in self.unenforced)

    def notes(self) -> Iterator[str]:
        """Yield what there is to know."""
        yield self.detail
        if self.unenforced:
            yield f"does not enforce: {', '.join(self.unenforced)}"
        if self.not_stopped():
            yield f"so it does not stop: {', '.join(self.not_stopped())}"
        if self.ready and not self.isolation.startswith(Isolation.NONE.value):
            never = f"never; fumehood doctor --probe {self.engine}"
            yield f"attacked: {probe_summary(self.last_probe) or never}"


@click.command()
@click.option(
    "--runtime",
    default=None,
    help="Ask docker for this runtime too, such as runsc; those that bring a kernel are asked for anyway.",
)
@click.option(
    "--probe",
    "probed",
    multiple=True,
    metavar="ENGINE",
    help="Attack boxes of this engine (docker, docker/runsc, bubblewrap) and say what held. Repeatable.",
)
@click.option(
    "--attack", multiple=True, metavar="NAME", help="With --probe: this attack alone. Repeatable."
)
@click.option(
    "--page",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="With --probe: also write the table into this Markdown page, between its marks.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
def doctor(
    runtime: str | None,
    probed: tuple[str, ...],
    attack: tuple[str, ...],
    page: Path | None,
    as_json: bool,
) -> int:
    """Say which engines work here, which isolation each gives, and what to install.

    Exit status 2 where no engine can hold an untrusted agent. With --probe: 1 where an attack was not
    stopped.
    """
    if probed:
        from fumehood.cli.probe import probe

        return probe(probed, attack, page, as_json=as_json)
    findings = [_examine(name, asked) for name, asked in _asked(runtime)]
    holds = any(finding.ready and not finding.isolation.startswith("none") for finding in findings)
    if as_json:
        report = {
            "version": __version__,
            "python": platform.python_version(),
            "system": system_name(),
            "free_disk_bytes": shutil.disk_usage(".").free,
            "holds_untrusted_agents": holds,
            "engines": [finding.to_json() for finding in findings],
        }
        click.echo(json.dumps(report, indent=2))
    else:
        Console(soft_wrap=False).print(_table(findings))
    return 0 if holds else NOTHING_HOLDS


def _asked(runtime: str | None) -> Iterator[tuple[str, str | None]]:
    """Yield every engine, also with each runtime that brings a kernel and with the requested one."""
    for name in ENGINES:
        yield name, None
        engine = ENGINES.load(name)()
        if engine.has_runtimes:
            requested = [runtime] if runtime else []
            yield from (
                (name, other) for other in sorted({*engine.sandboxed_runtimes(), *requested})
            )
        engine.close()


def _examine(name: str, runtime: str | None) -> _Finding:
    engine = ENGINES.load(name)(EngineOptions(runtime=runtime))
    try:
        readiness = engine.check()
        isolation, detail = engine.isolation.value, readiness.detail
        probe = last_probe(name, detail) if readiness.ready else None
        asked = f"{name}/{runtime}" if runtime else name
        return _Finding(asked, readiness.ready, isolation, detail, tuple(engine.unenforced), probe)
    finally:
        engine.close()


def _table(findings: list[_Finding]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("engine", "ready", "isolation", "what to know"):
        table.add_column(column, overflow="fold")
    for finding in findings:
        ready = "yes" if finding.ready else "no"
        table.add_row(finding.engine, ready, finding.isolation, "\n".join(finding.notes()))
    return table
