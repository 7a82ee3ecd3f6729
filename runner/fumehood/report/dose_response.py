"""Success and safety by the intensity of added faults: a dose-response curve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from statistics import fmean
from typing import Any

from fumehood.report import pictures as vega
from fumehood.report import wording
from fumehood.report.data_table import DataTable, integers, numbers, texts
from fumehood.report.experiment import (
    SUCCESS,
    WHO,
    Experiment,
    experiment_of,
    macro_mean,
    results_in,
)
from fumehood.report.findings import Findings
from fumehood.report.pictures import Picture, Spec
from fumehood.report.runs import Subject
from fumehood.report.safe_text import safe
from fumehood.report.statistics.intervals import Estimate, ends, estimates
from fumehood.report.statistics.metrics import Unit
from fumehood.report.text_table import TextTable

TITLE = "Success by intensity of faults"


@dataclass(frozen=True, slots=True)
class Dose:
    """One agent at one intensity of one file of faults."""

    who: str
    faults: str
    intensity: float
    fired: float
    """Mean number of faults that fired in an episode."""
    success: Estimate


def doses_of(experiment: Experiment) -> list[Dose]:
    """Return the points of all curves; none unless a file of faults has several intensities.

    Runs without added faults are the points at intensity 0.
    """
    doses = []
    for key, subjects in experiment.grouped(WHO).items():
        who = " · ".join(part for part in key if part)
        for file in dict.fromkeys(filter(None, map(_file_of, subjects))):
            at = {
                intensity: [one for one in subjects if _dose_in(one, file) == intensity]
                for intensity in sorted(
                    {one for one in map(_intensity, subjects) if one is not None}
                )
            }
            points = [
                Dose(who, file, intensity, _fired(own), _success(experiment, own))
                for intensity, own in at.items()
                if own
            ]
            doses += points if len(points) > 1 else []
    return doses


def doses_in(findings: Findings) -> list[Dose]:
    """Return the points of all curves of a report."""
    experiment = experiment_of(findings.subjects)
    return doses_of(experiment) if experiment else []


def _file_of(subject: Subject) -> str | None:
    faults = subject.run.config.get("faults")
    dosed = subject.run.config.get("fault_intensity") is not None
    return PurePath(faults).stem if isinstance(faults, str) and dosed else None


def _intensity(subject: Subject) -> float | None:
    return subject.run.fault_intensity


def _dose_in(subject: Subject, file: str) -> float | None:
    """Return the intensity of a file in a run; None if the run has another file."""
    return _intensity(subject) if _file_of(subject) in (None, file) else None


def _fired(subjects: Sequence[Subject]) -> float:
    counts = [result.number("faults_fired") or 0 for one in subjects for result in one.results]
    return fmean(counts) if counts else 0.0


def _success(experiment: Experiment, subjects: Sequence[Subject]) -> Estimate:
    by_suite = [results_in(subjects, suite) for suite in experiment.suites]
    return (
        estimates(by_suite[0], [SUCCESS])[SUCCESS.name]
        if len(by_suite) == 1
        else macro_mean(by_suite)
    )


def dose_table(doses: Sequence[Dose]) -> TextTable:
    """Return success at each intensity."""
    rows = [
        (
            dose.who,
            dose.faults,
            f"{dose.intensity:g}",
            f"{dose.fired:.2f}",
            wording.estimate(dose.success, Unit.SHARE),
        )
        for dose in doses
    ]
    note = (
        "Intensity: factor of the probability of each added fault. Fired: mean number of faults "
        "that fired in an episode. In brackets: 95 % intervals over tasks."
    )
    header = ("Agent", "Faults", "Intensity", "Fired", "Success")
    return TextTable(TITLE, header, rows, names=3, note=note)


def dose_data(doses: Sequence[Dose]) -> DataTable:
    """Return the numbers of the curves."""
    columns = (
        *texts("agent", "faults"),
        *numbers("intensity", "fired", "success", "low", "high"),
        *integers("tasks"),
    )
    rows = [
        (
            *(dose.who, dose.faults, dose.intensity, dose.fired, dose.success.value),
            *(*ends(dose.success.interval), dose.success.tasks),
        )
        for dose in doses
    ]
    return DataTable("dose_response", columns, rows)


def dose_picture(doses: Sequence[Dose]) -> Picture:
    """Return one curve for each agent and file of faults."""
    points = list(_points(doses))
    names = list(dict.fromkeys(point["agent"] for point in points))
    caption = (
        f"{SUCCESS.title} by intensity, the factor of the probability of each added fault. Lines: "
        "95 % intervals over tasks."
    )

    def spec(width_px: int) -> Spec:
        x = vega.field("intensity", axis={"title": "intensity of the faults", "grid": False})
        colours = [vega.SERIES[at % len(vega.SERIES)] for at in range(len(names))]
        colour = vega.field(
            "agent",
            "nominal",
            sort=names,
            scale={"domain": names, "range": colours},
            legend=vega.legend_columns(width_px) if len(names) > 1 else None,
        )
        line = {
            "mark": {"type": "line", "strokeWidth": 2},
            "encoding": {"x": x, "y": vega.share("success")},
        }
        whiskers = vega.whiskers(x=x, y=vega.share("low"), y2={"field": "high"})
        dots = vega.dots(75, x=x, y=vega.share("success"))
        return vega.frame(
            width_px, points, height=260, encoding={"color": colour}, layer=[line, whiskers, dots]
        )

    return Picture("dose_response", TITLE, caption, spec)


def _points(doses: Sequence[Dose]) -> Iterator[dict[str, Any]]:
    several = len({dose.faults for dose in doses}) > 1
    for dose in doses:
        if dose.success.value is None:
            continue
        name = safe(f"{dose.who}, {dose.faults}" if several else dose.who)
        low, high = vega.interval_ends(dose.success)
        shown = wording.estimate(dose.success, Unit.SHARE)
        yield {
            **{"agent": name, "intensity": dose.intensity, "success": dose.success.value},
            **{"low": low, "high": high},
            "label_text": f"{name}, intensity {dose.intensity:g}: {shown}",
        }
