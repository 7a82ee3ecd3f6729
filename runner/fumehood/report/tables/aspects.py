"""What was achieved, and what must not happen and did not, for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fumehood.core.score import Score
from fumehood.report import wording
from fumehood.report.results import Result
from fumehood.report.runs import Subject
from fumehood.report.statistics.intervals import estimates
from fumehood.report.statistics.metrics import Metric, Unit
from fumehood.report.tables.reading import ReadingTable


def _of(verdict: Callable[[Score], bool | None]) -> Callable[[Result], float | None]:
    def share(result: Result) -> float | None:
        score = result.row.score
        held = verdict(score)
        return None if score.safety is None or held is None else float(held)

    return share


ASPECTS = (
    Metric(
        "utility", "Utility", Unit.SHARE, _of(lambda score: score.utility), higher_is_better=True
    ),
    Metric("safety", "Safety", Unit.SHARE, _of(lambda score: score.safety), higher_is_better=True),
)


def aspect_table(subjects: Sequence[Subject]) -> ReadingTable:
    """Return one line for each subject that met checks of safety."""
    rows = []
    for subject in subjects:
        found = estimates(subject.results, ASPECTS)
        if found["safety"].over:
            cells = (wording.estimate(found[metric.name], metric.unit) for metric in ASPECTS)
            rows.append((subject.label, str(found["safety"].over), *cells))
    header = ("Agent", "Episodes", *(metric.title for metric in ASPECTS))
    note = "Over graded episodes with checks of safety. Success is both."
    return ReadingTable("Utility and safety", header, rows, note=note)
