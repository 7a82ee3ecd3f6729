"""What the boxes of a run were attacked with before, and what held: read from the run's own record.

Knows nothing about attacks but what a probe wrote down when it was made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fumehood.core.json_values import JsonObject
from fumehood.records.containment_cache import told_shortly
from fumehood.report.runs import Run
from fumehood.report.tables.reading import ReadingTable

NONE = "none"
_COPIED = "A probe lets hostile agents loose on an engine; the last one of the very set-up is copied into a run."


def probe_table(runs: Sequence[Run]) -> ReadingTable:
    """Return for each run which probe was last made of its engine, or how to make one."""
    header = ("Run", "Engine", "Attacks", "Probed", "With")
    rows = [(run.label, _engine(run.manifest), *_probe_cells(run.manifest)) for run in runs]
    return ReadingTable("What boxes were attacked with", header, rows, names=5, note=_COPIED)


def attack_table(runs: Sequence[Run]) -> ReadingTable:
    """Return attack × engine → how it went; empty where no engine was probed."""
    probes = {str(probe["detail"]): probe for run in runs if (probe := _probe(run.manifest))}
    by_attack: dict[tuple[str, str, str], dict[str, str]] = {}
    for detail, probe in probes.items():
        for found in _attacks(probe):
            key = (str(found["attack"]), str(found["wall"]), str(found["by"]))
            by_attack.setdefault(key, {})[detail] = _result(found)
    header = ("Attack", "Wall", "Stopped by", *(_engine_of(probe) for probe in probes.values()))
    rows = [(*key, *(results.get(one, "") for one in probes)) for key, results in by_attack.items()]
    return ReadingTable("Attack × engine", header, rows, names=len(header))


def _engine(manifest: JsonObject) -> str:
    config = manifest.get("config")
    runtime = config.get("runtime") if isinstance(config, dict) else None
    return f"{manifest.get('engine')}/{runtime}" if runtime else str(manifest.get("engine"))


def _engine_of(probe: JsonObject) -> str:
    return f"{probe['engine']} ({probe['detail']})"


def _probe_cells(manifest: JsonObject) -> tuple[str, str, str]:
    if manifest.get("isolation") == NONE:
        return ("no wall to attack", "", "")
    probe = _probe(manifest)
    if probe is None:
        return (f"never; fumehood doctor --probe {_engine(manifest)}", "", "")
    counts = told_shortly(probe).partition(" (")[0]
    made_with = f"fumehood {probe.get('fumehood')}, {probe.get('detail')}, {probe.get('system')}"
    return (counts, str(probe.get("made", "")), made_with)


def _probe(manifest: JsonObject) -> JsonObject | None:
    probe = manifest.get("containment")
    return probe if isinstance(probe, dict) and {"engine", "detail"} <= probe.keys() else None


def _attacks(probe: JsonObject) -> Iterator[JsonObject]:
    attacks = probe.get("attacks")
    for found in attacks if isinstance(attacks, list) else ():
        if isinstance(found, dict) and {"attack", "wall", "by", "result"} <= found.keys():
            yield found


def _result(found: JsonObject) -> str:
    detail = found.get("detail")
    return f"{found['result']}: {detail}" if detail else str(found["result"])
