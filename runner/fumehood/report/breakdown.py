"""All means of one agent's results, whole and by group, as JSON: what ``--json`` gives beside the table."""

from __future__ import annotations

from fumehood.core.json_values import JsonObject
from fumehood.report.results import Results, by_domain, by_family, count
from fumehood.report.statistics.metrics import means


def breakdown(results: Results) -> JsonObject:
    """Return means and counts: of all results, ``by_fault`` (by membership) and ``by_domain``."""
    return {
        **_means(results),
        "by_fault": {name: _means(group) for name, group in by_family(results).items()},
        "by_domain": {name: _means(group) for name, group in by_domain(results).items()},
    }


def _means(results: Results) -> JsonObject:
    counts = count(results)
    return {
        "episodes": counts.episodes,
        "graded": counts.graded,
        "ungraded": counts.ungraded,
        "infra": counts.infra,
        "metrics": {name: mean.value for name, mean in means(results).items()},
    }
