"""A report shows the last probe of each engine, or the command that makes one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fumehood.records.run_reader import RunReader
from fumehood.report.sections.containment import attack_table, probe_table
from fumehood.report.sections.registry import build_sections
from tests.parts.reading import sign_again, verified
from tests.unit.report.runs import findings_of, played

PROBE = {
    "format": "fumehood.probe/1",
    "engine": "bubblewrap",
    "detail": "namespaces",
    "system": "Linux 6",
    "made": "2026-01-02T03:04:05+00:00",
    "fumehood": "0.1.0",
    "counts": {"stopped": 1, "not stopped": 1},
    "attacks": [
        {
            "attack": "egress",
            "boundary": "box",
            "by": "no network device",
            "result": "stopped",
            "detail": "",
        },
        {
            "attack": "spin",
            "boundary": "box",
            "by": "limit",
            "result": "not stopped",
            "detail": "two <processors>",
        },
    ],
}


def _run(path: Path, runtime: str | None = None, **said: Any) -> RunReader:
    folder = played(path, "noop", tasks=1)
    manifest = json.loads((path / "run.json").read_text(encoding="utf-8"))
    config = {**manifest["config"], "runtime": runtime}
    manifest |= {"engine": "docker", "isolation": "container", "config": config, **said}
    (path / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
    return verified(sign_again(folder.path))


def test_each_attack_has_its_result_and_the_layer_that_stopped_it(tmp_path: Path) -> None:
    findings = findings_of(_run(tmp_path / "run", containment=PROBE))
    ((_, engine, counts, made, made_with),) = probe_table(findings.runs).rows
    assert (engine, counts, made) == ("docker", "1 stopped, 1 not stopped", PROBE["made"])
    assert made_with == "fumehood 0.1.0, namespaces, Linux 6"
    table = attack_table(findings.runs)
    assert table.header[-1] == "bubblewrap (namespaces)"
    assert table.rows == [
        ("egress", "box", "no network device", "stopped"),
        ("spin", "box", "limit", "not stopped: two <processors>"),
    ]
    sections = build_sections(findings)
    assert sections["attacks"].tables == [table]
    assert sections["attacks"].data[0].rows[1][1:] == (
        *("spin", "box", "limit", "not stopped"),
        "two <processors>",
    )


def test_an_engine_without_a_probe_shows_the_command(tmp_path: Path) -> None:
    findings = findings_of(_run(tmp_path / "run", containment=None, runtime="runsc"))
    ((_, engine, counts, *_),) = probe_table(findings.runs).rows
    assert engine == "docker/runsc"
    assert counts == "never; run fumehood doctor --probe docker/runsc"
    assert not attack_table(findings.runs).rows


def test_an_engine_without_isolation_has_nothing_to_attack(tmp_path: Path) -> None:
    findings = findings_of(_run(tmp_path / "run", isolation="none", engine="process"))
    assert probe_table(findings.runs).rows[0][2] == "no isolation to attack"


def test_an_unknown_probe_format_does_not_stop_the_report(tmp_path: Path) -> None:
    odd = {"engine": "x", "detail": "y", "attacks": [1, {"attack": "egress"}], "counts": 7}
    findings = findings_of(_run(tmp_path / "run", containment=odd))
    assert probe_table(findings.runs).rows[0][2] == ""
    assert not attack_table(findings.runs).rows
