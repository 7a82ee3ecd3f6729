"""Which pictures a report has: those that have something to show."""

from __future__ import annotations

from fumehood.report.findings import Findings
from fumehood.report.pictures.budget import budgeted_success
from fumehood.report.pictures.calls import calls_and_verdicts, effort_and_success
from fumehood.report.pictures.differences import differences, tells_a_difference
from fumehood.report.pictures.failures import failure_taxonomy
from fumehood.report.pictures.flips import flips
from fumehood.report.pictures.picture import Picture
from fumehood.report.pictures.success import success_by_domain, success_by_fault
from fumehood.report.pictures.trials import repeated_trials

VERSUS_MAX = 6
"""So many comparisons get a picture; all have their row in a table."""


def gallery(findings: Findings) -> tuple[Picture, ...]:
    """Return the pictures of a report in the order in which they are looked at."""
    pictures: list[Picture] = []
    if any(found.whole.counts.graded for found in findings.subjects):
        pictures += [
            success_by_fault(findings),
            success_by_domain(findings),
            budgeted_success(findings),
        ]
        pictures.append(calls_and_verdicts(findings))
    if sum(found.whole.counts.graded > 0 for found in findings.subjects) > 1:
        pictures.append(effort_and_success(findings))
    if any(rate.k > 1 for found in findings.subjects for rate in found.trials.pass_at):
        pictures.append(repeated_trials(findings))
    telling = [versus for versus in findings.versus if tells_a_difference(versus)]
    if telling:
        pictures.append(differences(telling))
    compared = [versus for versus in findings.versus if versus.comparison.flipped]
    pictures += [flips(versus, f"flips_{at}") for at, versus in enumerate(compared[:VERSUS_MAX], 1)]
    if any(found.attributions for found in findings.subjects):
        pictures.append(failure_taxonomy(findings))
    return tuple(pictures)
