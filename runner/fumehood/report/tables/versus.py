"""A comparison as JSON for programs."""

from __future__ import annotations

from fumehood.core.json_values import JsonObject
from fumehood.report.findings import Versus
from fumehood.report.headline import why_no_comparison
from fumehood.report.statistics.pairs import Difference, Flips


def versus_json(versus: Versus) -> JsonObject:
    """Return all that is known of a comparison."""
    found = versus.comparison
    pairing = found.pairing
    return {
        "first": {"run": str(versus.first.run.folder.path), "agent": versus.first.agent},
        "second": {"run": str(versus.second.run.folder.path), "agent": versus.second.agent},
        "headline": why_no_comparison(len(pairing.pairs), pairing.undecided) is None,
        "pairs": len(pairing.pairs),
        "unmatched": pairing.unmatched,
        "differing": pairing.differing,
        "undecided": pairing.undecided,
        "test": found.test.value,
        "p_value": found.p_value,
        **_flips_json(found.flips),
        "metrics": {
            name: difference_json(difference) for name, difference in found.metrics.items()
        },
        "by_fault": _groups_json(found.by_fault),
        "by_domain": _groups_json(found.by_domain),
        "flipped": [
            {
                "task": pair.first.task.task_id,
                "trial": pair.first.row.name.trial,
                "flip": "won" if pair.change > 0 else "lost",
                "faults": list(pair.first.task.families),
            }
            for pair in found.flipped
        ],
    }


def difference_json(found: Difference) -> JsonObject:
    """Return a difference with its interval."""
    ends = found.interval
    return {
        "first": found.first,
        "second": found.second,
        "difference": found.value,
        "interval": [ends.low, ends.high] if ends else None,
        "over": found.over,
    }


def _groups_json(groups: dict[str, tuple[Flips, Difference]]) -> JsonObject:
    return {
        name: {**_flips_json(flips), "success": difference_json(difference)}
        for name, (flips, difference) in groups.items()
    }


def _flips_json(flips: Flips) -> JsonObject:
    return {"both": flips.both, "won": flips.won, "lost": flips.lost, "neither": flips.neither}
