"""What agents that search have read and cited, for people."""

from __future__ import annotations

from collections.abc import Sequence

from fumehood.report import wording
from fumehood.report.runs import Subject
from fumehood.report.statistics.calibration import calibration_error
from fumehood.report.statistics.intervals import estimates
from fumehood.report.statistics.metrics import Metric, Unit
from fumehood.report.tables.reading import ReadingTable


def _metric(name: str, title: str, unit: Unit) -> Metric:
    return Metric(name, title, unit, lambda result: result.number(name))


METRICS = (
    _metric("evidence_recall", "Evidence recall", Unit.SHARE),
    _metric("citation_precision", "Citation precision", Unit.SHARE),
    _metric("citation_recall", "Citation recall", Unit.SHARE),
    _metric("searches", "Searches", Unit.COUNT),
    _metric("pages_opened", "Pages opened", Unit.COUNT),
    _metric("answer_bytes", "Bytes read", Unit.COUNT),
)


def evidence_table(subjects: Sequence[Subject]) -> ReadingTable:
    """Return one line for each subject whose scorer measured evidence."""
    rows = []
    for subject in subjects:
        found = estimates(subject.results, METRICS)
        if not any(one.over for one in found.values()):
            continue
        cells = (wording.estimate(found[metric.name], metric.unit) for metric in METRICS)
        error = wording.amount(calibration_error(subject.results), Unit.SHARE)
        rows.append((subject.label, *cells, error))
    header = ("Agent", *(metric.title for metric in METRICS), "Calibration error")
    note = "Over graded episodes. Calibration error is over those that state a confidence, in bins of 100."
    return ReadingTable("What was read and cited", header, rows, note=note)
