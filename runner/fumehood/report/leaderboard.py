"""A leaderboard: the agents of many runs, ranked within each suite, with the score of the no-op baseline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fumehood.core.json_values import JsonObject
from fumehood.report import wording
from fumehood.report.results import Counts, count
from fumehood.report.runs import Subject
from fumehood.report.statistics.intervals import Estimate, estimates
from fumehood.report.statistics.metrics import THE_EIGHT, Unit
from fumehood.report.text_table import TextTable
from fumehood.report.wording import why_no_headline

SUCCESS = THE_EIGHT[0]


DIGEST_CHARS = 8


NOTE = (
    "In brackets: 95 % bootstrap intervals over tasks, Wilson's where all tasks agree. No-op: what doing "
    "nothing scores. Suites of one name that differ are told apart by their digest."
)


@dataclass(frozen=True, slots=True)
class Standing:
    """One agent of one run."""

    subject: Subject
    success: Estimate
    counts: Counts
    noop: float | None
    """What doing nothing scores on the same tasks; None where nobody can tell."""

    @property
    def why_no_headline(self) -> str | None:
        """Why this is no result to speak of; None where it is one."""
        return why_no_headline(self.counts) or (
            None if self.counts.episodes else "no episode is done"
        )

    @property
    def suite(self) -> tuple[str, str]:
        """Name and digest of the suite."""
        run = self.subject.run
        return run.suite.name, str(run.manifest.get("suite_digest", ""))

    def to_json(self) -> JsonObject:
        """Return the line with whole numbers and both ends of its interval."""
        name, digest = self.suite
        ends = self.success.interval
        return {
            "suite": name,
            "suite_digest": digest,
            "agent": self.subject.agent,
            "run": str(self.subject.run.folder.path),
            "success_rate": self.success.value,
            "interval": [ends.low, ends.high] if ends else None,
            "noop": self.noop,
            "episodes": self.counts.episodes,
            "planned": self.subject.run.planned // max(1, _agents(self.subject)),
            "graded": self.counts.graded,
            "ungraded": self.counts.ungraded,
            "infra": self.counts.infra,
            "headline": self.why_no_headline is None,
        }


def standing(subject: Subject, noop: float | None) -> Standing:
    """Return how one agent did."""
    found = estimates(subject.results, (SUCCESS,))[SUCCESS.name]
    return Standing(subject, found, count(subject.results), noop)


def ranked(standings: Iterable[Standing]) -> list[Standing]:
    """Return lines by suite, best first; what is no result to speak of stands last."""
    return sorted(
        standings,
        key=lambda one: (
            one.suite,
            one.why_no_headline is not None,
            -(one.success.value or 0.0),
            one.subject.label,
        ),
    )


def leaderboard_table(standings: Iterable[Standing]) -> TextTable:
    """Return lines, in the order in which they come, for people."""
    lines = list(standings)
    digests: dict[str, set[str]] = {}
    for one in lines:
        digests.setdefault(one.suite[0], set()).add(one.suite[1])
    rows = [(_suite(one, len(digests[one.suite[0]]) > 1), *_cells(one)) for one in lines]
    header = ("Suite", "Agent", "Run", "Success", "No-op", "Over", "Graded")
    return TextTable("Leaderboard", header, rows, names=3, note=NOTE)


def _suite(one: Standing, ambiguous: bool) -> str:
    name, digest = one.suite
    return f"{name} ({digest[:DIGEST_CHARS]})" if ambiguous else name


def _cells(one: Standing) -> tuple[str, ...]:
    counts, noop = one.counts, one.noop
    left_out = wording.missing(counts)
    graded = f"{counts.graded:,} of {counts.episodes:,}" + (f" ({left_out})" if left_out else "")
    names = (one.subject.agent, one.subject.run.label)
    if one.why_no_headline is not None:
        return (*names, wording.NONE, wording.amount(noop, Unit.SHARE), wording.NONE, graded)
    value = one.success.value
    over = wording.NONE if value is None or noop is None else f"{(value - noop) * 100:+.1f} pp"
    told = wording.estimate(one.success, Unit.SHARE)
    return (*names, told, wording.amount(noop, Unit.SHARE), over, graded)


def _agents(subject: Subject) -> int:
    agents = subject.run.manifest.get("agents")
    return len(agents) if isinstance(agents, list) else 1
