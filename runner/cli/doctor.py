"""``glovebox doctor``."""

from __future__ import annotations

import json
import platform
import shutil
from dataclasses import dataclass

import click
from rich.console import Console
from rich.table import Table

from runner.engines.engine import EngineOptions
from runner.engines.table import ENGINES
from runner.version import __version__

NOTHING_HOLDS = 2
"""Exit status where no engine can hold an untrusted agent."""


@dataclass(frozen=True, slots=True)
class _Finding:
    engine: str
    ready: bool
    isolation: str
    detail: str
    unenforced: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        return {
            "engine": self.engine,
            "ready": self.ready,
            "isolation": self.isolation,
            "detail": self.detail,
            "unenforced": list(self.unenforced),
        }


@click.command()
@click.option("--runtime", default=None, help="Also ask docker for this runtime, such as runsc.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
def doctor(runtime: str | None, as_json: bool) -> int:
    """Say which engines work here, which isolation each gives, and what to install.

    Exit status 2 where no engine can hold an untrusted agent.
    """
    findings = [_examine(name, runtime if name == "docker" else None) for name in ENGINES]
    holds = any(finding.ready and finding.isolation != "none" for finding in findings)
    if as_json:
        report = {
            "version": __version__,
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "free_disk_bytes": shutil.disk_usage(".").free,
            "holds_untrusted_agents": holds,
            "engines": [finding.to_json() for finding in findings],
        }
        click.echo(json.dumps(report, indent=2))
    else:
        Console(soft_wrap=False).print(_table(findings))
    return 0 if holds else NOTHING_HOLDS


def _examine(name: str, runtime: str | None) -> _Finding:
    engine = ENGINES.load(name)(EngineOptions(runtime=runtime))
    try:
        readiness = engine.check()
        isolation = engine.isolation.value
        return _Finding(name, readiness.ready, isolation, readiness.detail, tuple(engine.unenforced))
    finally:
        engine.close()


def _table(findings: list[_Finding]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("engine", "ready", "isolation", "what to know"):
        table.add_column(column, overflow="fold")
    for finding in findings:
        notes = [finding.detail]
        if finding.unenforced:
            notes.append(f"does not enforce: {', '.join(finding.unenforced)}")
        table.add_row(finding.engine, "yes" if finding.ready else "no", finding.isolation, "\n".join(notes))
    return table
