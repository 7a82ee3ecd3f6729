"""Section with the results of an experiment: runs whose models, suites or conditions differ."""

from __future__ import annotations

from fumehood.report.dose_response import dose_data, dose_picture, dose_table, doses_in
from fumehood.report.experiment import data_of, experiment_of, tables_of
from fumehood.report.findings import Findings
from fumehood.report.sections.section import Section


def experiment_section(findings: Findings) -> Section:
    """Return success by model, suite and domain, and the effects; empty for other reports."""
    experiment = experiment_of(findings.subjects)
    doses = doses_in(findings)
    return Section(
        label="Experiment",
        title="Models, suites and effects",
        tables=[*tables_of(experiment), dose_table(doses)] if experiment else (),
        pictures=[dose_picture(doses)] if doses else (),
        data=[*data_of(experiment), *([dose_data(doses)] if doses else [])] if experiment else (),
        is_open=True,
    )
