"""Sections with the last probe of each run's engine: which attacks ran, and which were stopped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fumehood.core.json_values import JsonObject, as_object
from fumehood.records.caches import probe_summary
from fumehood.report.data_table import DataTable, texts
from fumehood.report.findings import Findings
from fumehood.report.runs import Run
from fumehood.report.sections.section import Section
from fumehood.report.text_table import TextTable


def containment_section(findings: Findings) -> Section:
    """Return the last probe of each run's engine, or the command that makes one."""
    table = probe_table(findings.runs)
    return Section(
        label="Containment",
        title="Containment",
        tables=[table],
        data=[_as_data("containment", table)],
        is_open=True,
    )


def attacks_section(findings: Findings) -> Section:
    """Return the result of each attack on each engine."""
    rows = [
        (
            _probe_name(probe),
            *(str(attack[key]) for key in ("attack", "boundary", "by", "result")),
            str(attack.get("detail") or ""),
        )
        for probe in _probes(findings.runs).values()
        for attack in _attacks(probe)
    ]
    columns = texts("engine", "attack", "boundary", "stopped_by", "result", "detail")
    return Section(
        label="Attacks",
        title="Attacks on these engines",
        tables=[attack_table(findings.runs)],
        data=[DataTable("attacks", columns, rows)],
    )


def _as_data(name: str, table: TextTable) -> DataTable:
    columns = texts(*(title.lower().replace(" ", "_") for title in table.header))
    return DataTable(name, columns, table.rows)


NONE = "none"

_NOTE = (
    "A probe runs red-team agents in boxes of an engine. A run stores the last probe of its engine."
)


def probe_table(runs: Sequence[Run]) -> TextTable:
    """Return the last probe of each run's engine, or the command that makes one."""
    header = ("Run", "Engine", "Attacks", "Probed", "Probed with")
    rows = [(run.label, _engine(run.manifest), *_probe_cells(run.manifest)) for run in runs]
    return TextTable("Last probe of each engine", header, rows, names=5, note=_NOTE)


def attack_table(runs: Sequence[Run]) -> TextTable:
    """Return the result of each attack on each engine; empty if no engine was probed."""
    probes = _probes(runs)
    by_attack: dict[tuple[str, str, str], dict[str, str]] = {}
    for detail, probe in probes.items():
        for attack in _attacks(probe):
            key = (str(attack["attack"]), str(attack["boundary"]), str(attack["by"]))
            by_attack.setdefault(key, {})[detail] = _result(attack)
    header = ("Attack", "Boundary", "Stopped by", *map(_probe_name, probes.values()))
    rows = [
        (*key, *(results.get(probe, "") for probe in probes)) for key, results in by_attack.items()
    ]
    return TextTable("Attacks by engine", header, rows, names=len(header))


def _probes(runs: Sequence[Run]) -> dict[str, JsonObject]:
    """Return the probes of the runs, each engine once."""
    return {str(probe["detail"]): probe for run in runs if (probe := _probe(run.manifest))}


def _engine(manifest: JsonObject) -> str:
    runtime = as_object(manifest.get("config")).get("runtime")
    return f"{manifest.get('engine')}/{runtime}" if runtime else str(manifest.get("engine"))


def _probe_name(probe: JsonObject) -> str:
    return f"{probe['engine']} ({probe['detail']})"


def _probe_cells(manifest: JsonObject) -> tuple[str, str, str]:
    if str(manifest.get("isolation")).startswith(NONE):
        return ("no isolation to attack", "", "")
    probe = _probe(manifest)
    if probe is None:
        return (f"never; run fumehood doctor --probe {_engine(manifest)}", "", "")
    counts = probe_summary(probe).partition(" (")[0]
    made_with = f"fumehood {probe.get('fumehood')}, {probe.get('detail')}, {probe.get('system')}"
    return (counts, str(probe.get("made", "")), made_with)


def _probe(manifest: JsonObject) -> JsonObject | None:
    probe = manifest.get("containment")
    return probe if isinstance(probe, dict) and {"engine", "detail"} <= probe.keys() else None


def _attacks(probe: JsonObject) -> Iterator[JsonObject]:
    attacks = probe.get("attacks")
    for attack in attacks if isinstance(attacks, list) else ():
        if isinstance(attack, dict) and {"attack", "boundary", "by", "result"} <= attack.keys():
            yield attack


def _result(attack: JsonObject) -> str:
    detail = attack.get("detail")
    return f"{attack['result']}: {detail}" if detail else str(attack["result"])
