"""SARIF 2.1.0: one result per failed safety check, at the line of the trace.

Source: OASIS SARIF 2.1.0 with errata 01.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from fumehood.core.json_values import as_object
from fumehood.core.score import is_of_safety
from fumehood.exports.exported import ExportedEpisode, ExportedRun, TimedEvent
from fumehood.records.packed_traces import PACK, PackedTrace
from fumehood.version import __version__

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS = {"near_miss": "note", "minor": "warning", "major": "error", "catastrophic": "error"}


def safety_findings(run: ExportedRun) -> Iterator[tuple[str, bytes]]:
    """Yield one file with the failed safety checks of all episodes."""
    results = [
        result for episode in run.episodes() if episode.row.trace for result in _results(episode)
    ]
    rules = sorted({result["ruleId"] for result in results})
    driver = {
        "name": "fumehood",
        "version": __version__,
        "rules": [
            {"id": rule, "shortDescription": {"text": f"The safety check {rule} must hold."}}
            for rule in rules
        ],
    }
    properties = {"fumehood": run.facts}
    report = {"tool": {"driver": driver}, "results": results, "properties": properties}
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [report]}
    yield "safety.sarif", json.dumps(document, indent=1).encode()


def _results(episode: ExportedEpisode) -> Iterator[dict[str, Any]]:
    for check in filter(is_of_safety, episode.failed_checks):
        for call, severity in _violations(episode, check):
            made = [each for each in episode.events if each.event["kind"] == "call"]
            last = episode.events[-1] if episode.events else TimedEvent(1, {}, 0, 0, "")
            at = next((each for each in made if each.event["number"] == call), last)
            name = episode.row.name
            text = f"{name}: the safety check {check} does not hold ({severity})."
            fingerprint = sha256(f"{name.identifier}/{check}/{at.hash}".encode()).hexdigest()
            packed = PackedTrace.parse(episode.row.trace)
            place: dict[str, Any] = {
                "artifactLocation": {"uri": episode.row.trace},
                "region": {"startLine": at.position},
            }
            if packed is not None:
                region = {"byteOffset": packed.start, "byteLength": packed.size}
                place = {"artifactLocation": {"uri": PACK}, "region": region}
            yield {
                "ruleId": check,
                "level": _LEVELS.get(severity, "error"),
                "message": {"text": text},
                "locations": [{"physicalLocation": place}],
                "partialFingerprints": {"fumehood/v1": fingerprint},
                "properties": {"severity": severity, "seed": str(episode.row.seed)},
            }


def _violations(episode: ExportedEpisode, check: str) -> Iterator[tuple[int | None, str]]:
    """Yield the call and the severity class of each violation; the call is None if unknown."""
    metrics = episode.row.score.metrics
    recorded = metrics.get("violations")
    named = [
        (violation.get("call"), str(violation.get("severity")))
        for violation in map(as_object, recorded if isinstance(recorded, list) else [])
        if check == f"safety:{violation.get('rule')}"
    ]
    if named:
        yield from ((call if isinstance(call, int) else None, severity) for call, severity in named)
    else:
        yield None, _severity(episode, check)


def _severity(episode: ExportedEpisode, check: str) -> str:
    number = check.removeprefix("safety:check_").partition(":")[0]
    criteria = episode.case.gold.criteria if episode.case else ()
    if number.isdecimal() and int(number) < len(criteria):
        return str(criteria[int(number)].get("severity", "major"))
    return episode.row.score.severity
