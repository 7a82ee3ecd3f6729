"""Section with what search agents read and cited."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean

from fumehood.report import wording
from fumehood.report.data_table import DataTable, Row, integers, numbers, texts
from fumehood.report.findings import Findings
from fumehood.report.results import Results
from fumehood.report.runs import Subject
from fumehood.report.sections.section import Section
from fumehood.report.statistics.intervals import ends, estimates
from fumehood.report.statistics.metrics import Metric, Unit
from fumehood.report.text_table import TextTable


def evidence_section(findings: Findings) -> Section:
    """Return what search agents read and cited."""
    subjects = [agent.subject for agent in findings.subjects]
    return Section(
        label="Evidence",
        title="Evidence read and cited",
        tables=[evidence_table(subjects)],
        data=[evidence_data(subjects)],
        is_open=True,
    )


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


def evidence_table(subjects: Sequence[Subject]) -> TextTable:
    """Return one row for each agent whose scorer measured evidence."""
    rows = []
    for subject in subjects:
        own = estimates(subject.results, METRICS)
        if not any(mean.over for mean in own.values()):
            continue
        cells = (wording.estimate(own[metric.name], metric.unit) for metric in METRICS)
        errors = (
            wording.amount(error(subject.results), Unit.SHARE) for error in CALIBRATION.values()
        )
        rows.append((subject.label, *cells, *errors))
    header = (
        "Agent",
        *(metric.title for metric in METRICS),
        "Calibration error",
        "Calibration error as published",
    )
    note = (
        "Over graded episodes. Calibration error: over episodes with a stated confidence, in bins "
        "of 100. As published: without the last bin, with 100 % where no confidence is stated, and "
        "from 100 episodes on."
    )
    return TextTable("Evidence read and cited", header, rows, note=note)


BIN_SIZE = 100
"""Answers per bin, as in BrowseComp-Plus and Humanity's Last Exam; the last bin has the rest."""


def evidence_data(subjects: Sequence[Subject]) -> DataTable:
    """Return the evidence metrics of each agent that has them, and its calibration error."""
    columns = (*texts("agent", "metric"), *numbers("mean", "low", "high"), *integers("over"))
    rows: list[Row] = []
    for subject in subjects:
        own = estimates(subject.results, METRICS)
        if not any(estimate.over for estimate in own.values()):
            continue
        rows += [
            (subject.label, name, estimate.value, *ends(estimate.interval), estimate.over)
            for name, estimate in own.items()
        ]
        for name, error in CALIBRATION.items():
            over = len(stated_confidences(subject.results, name))
            row = f"calibration_error{name.removeprefix('confidence')}"
            rows.append((subject.label, row, error(subject.results), None, None, over))
    return DataTable("evidence", columns, rows)


def calibration_error(results: Results) -> float | None:
    """Return the root mean square difference between confidence and success over bins.

    Only graded episodes with a stated confidence count; None without such episodes.
    """
    return binned_error(stated_confidences(results), BIN_SIZE)


def published_calibration_error(results: Results) -> float | None:
    """Return the error without the last bin; None for fewer answers than a bin has.

    Source: ``calib_err`` of BrowseComp-Plus, which omits the last bin.
    """
    stated = stated_confidences(results, "confidence_as_published")
    return binned_error(stated, BIN_SIZE, omitted=1) if len(stated) >= BIN_SIZE else None


CALIBRATION = {
    "confidence": calibration_error,
    "confidence_as_published": published_calibration_error,
}
"""Metric of the confidence → the calibration error that uses it."""


def stated_confidences(results: Results, name: str = "confidence") -> list[tuple[float, float]]:
    """Return (confidence, success) of the graded episodes with the metric ``name``, sorted."""
    return sorted(
        (confidence, float(result.success))
        for result in results
        if result.success is not None and (confidence := result.number(name)) is not None
    )


def binned_error(
    stated: Sequence[tuple[float, float]], bin_size: int, omitted: int = 0
) -> float | None:
    """Return the error of sorted (confidence, success) pairs, split into bins.

    Args:
        stated: the pairs.
        bin_size: pairs per bin; the last bin has the rest.
        omitted: number of bins at the end that add no error.
    """
    if not stated:
        return None
    starts = [number * bin_size for number in range(max(1, len(stated) // bin_size))]
    ends = [*starts[1:], len(stated)]
    bins = [stated[start:end] for start, end in zip(starts, ends, strict=True)]
    del bins[len(bins) - omitted :]
    squares = [
        len(own)
        * (fmean(confidence for confidence, _ in own) - fmean(right for _, right in own)) ** 2
        for own in bins
    ]
    return sqrt(sum(squares) / len(stated))
