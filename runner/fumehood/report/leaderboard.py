"""A leaderboard: agents of many runs, ranked within each suite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, dataclass

from fumehood.core.json_values import JsonObject
from fumehood.records.row import IDENTITY
from fumehood.report import wording
from fumehood.report.findings import BaselineScores
from fumehood.report.results import Counts, count
from fumehood.report.runs import NO_TEAM, Subject, judges_note
from fumehood.report.statistics.infra import Attempts, attempts_of
from fumehood.report.statistics.intervals import Estimate, estimates
from fumehood.report.statistics.metrics import ASPECTS, COMPLETION, THE_EIGHT, Unit, metrics_of
from fumehood.report.text_table import TextTable
from fumehood.report.wording import why_no_headline

SUCCESS = THE_EIGHT[0]

EXTRA = {
    **{metric.name: (metric.title, metric.unit) for metric in ASPECTS},
    COMPLETION: ("Completion", Unit.SHARE),
    "milestones": ("Milestones", Unit.COUNT),
}
"""Further scores that have a column, with its title and unit."""
DIGEST_CHARS = 8

NOTE = (
    "In brackets: 95 % bootstrap intervals over tasks; Wilson intervals if all tasks agree. "
    "No-op, oracle: success of the baselines. Infra as failure: each attempt that ended as infra "
    "is one more failure. No success is shown if over 10 % of the planned episodes have no score. "
    "Different suites of one name show their digest. Completion: task completion score. Weighted "
    "safety: 1 minus the mean weight of the most severe violation."
)


@dataclass(frozen=True, slots=True)
class LeaderboardEntry:
    """One agent of one run, with its score."""

    subject: Subject
    success: Estimate
    counts: Counts
    baselines: BaselineScores
    """Success of the baselines on the same tasks."""
    attempts: Attempts
    """All attempts, those included that ended as ``infra``."""
    suite_digest: str
    """That of the tasks of one agent if a team plays them."""
    extra: Mapping[str, Estimate]
    """Utility and safety, task completion score and milestones, if episodes have them."""

    @property
    def why_no_headline(self) -> str | None:
        """Why there is no headline number; None if there is one."""
        return why_no_headline(self.counts, self.planned)

    @property
    def planned(self) -> int:
        """Number of planned episodes of this agent."""
        return self.subject.planned

    @property
    def unfinished(self) -> int:
        """Number of planned episodes without a row; an interruption could choose them."""
        return max(0, self.planned - self.counts.episodes)

    @property
    def is_unfinished(self) -> bool:
        """Whether too many planned episodes have no row for any share of episodes."""
        return wording.why_unfinished(self.counts.episodes, self.planned) is not None

    @property
    def suite(self) -> tuple[str, str]:
        """Name and digest of the suite."""
        return self.subject.run.suite.name, self.suite_digest

    def to_json(self) -> JsonObject:
        """Return the entry with exact numbers."""
        name, digest = self.suite
        ends = self.success.interval
        return {
            "suite": name,
            "suite_digest": digest,
            "agent": self.subject.agent,
            "team": self.subject.run.team,
            "judge": self.subject.judge or None,
            **{name: self.subject.identity.get(name) for name in IDENTITY},
            "run": str(self.subject.run.folder.path),
            "verification": self.subject.run.folder.provenance.to_json(),
            "success_rate": self.success.value,
            "interval": [ends.low, ends.high] if ends else None,
            **asdict(self.baselines),
            "episodes": self.counts.episodes,
            "planned": self.planned,
            "graded": self.counts.graded,
            "ungraded": self.counts.ungraded,
            "infra": self.counts.infra,
            **self.attempts.to_json(),
            **{metric: own.value for metric, own in self.extra.items()},
            "headline": self.why_no_headline is None,
        }


def entry(subject: Subject, baselines: BaselineScores) -> LeaderboardEntry:
    """Return the entry of one agent."""
    own = estimates(subject.results, (SUCCESS,))[SUCCESS.name]
    attempts = attempts_of(result.row for result in subject.results)
    digest = subject.run.suite_digest
    given = [metric for metric in metrics_of(subject.results) if metric.name in EXTRA]
    extra = estimates(subject.results, given)
    return LeaderboardEntry(
        subject, own, count(subject.results), baselines, attempts, digest, extra
    )


def ranked(entries: Iterable[LeaderboardEntry]) -> list[LeaderboardEntry]:
    """Sort entries by suite and success; entries without a headline number come last."""
    return sorted(
        entries,
        key=lambda line: (
            line.suite,
            line.why_no_headline is not None,
            -(line.success.value or 0.0),
            line.subject.label,
        ),
    )


def leaderboard_table(entries: Iterable[LeaderboardEntry]) -> TextTable:
    """Return the table of entries in the given order."""
    lines = list(entries)
    digests: dict[str, set[str]] = {}
    for line in lines:
        digests.setdefault(line.suite[0], set()).add(line.suite[1])
    rows = [(_suite(line, len(digests[line.suite[0]]) > 1), *_cells(line)) for line in lines]
    names, shares = ("Suite", "Agent", "Model", "Run"), ("Success", "No-op", "Oracle", "Over no-op")
    extra = [name for name in EXTRA if any(name in line.extra for line in lines)]
    rows = [
        (*row, *(_extra(line, name) for name in extra))
        for row, line in zip(rows, lines, strict=True)
    ]
    titles = (EXTRA[name][0] for name in extra)
    header = (*names, *shares, "Infra as failure", "Graded", *titles)
    note = f"{judges_note(line.subject for line in lines)}{NOTE}"
    return TextTable("Leaderboard", header, rows, names=4, note=note)


def _extra(line: LeaderboardEntry, name: str) -> str:
    own = None if line.is_unfinished else line.extra.get(name)
    return wording.NONE if own is None else wording.estimate(own, EXTRA[name][1])


def _suite(line: LeaderboardEntry, ambiguous: bool) -> str:
    name, digest = line.suite
    return f"{name} ({digest[:DIGEST_CHARS]})" if ambiguous else name


def _cells(line: LeaderboardEntry) -> tuple[str, ...]:
    counts, noop = line.counts, line.baselines.noop
    graded = wording.graded(counts)
    if line.unfinished:
        graded += f", {line.unfinished} not finished"
    lost = None if line.is_unfinished else line.attempts.success_with_infra_failed
    failed = wording.amount(lost, Unit.SHARE)
    agent, team = line.subject.agent, line.subject.run.team
    agent = agent if team == NO_TEAM else f"{agent} ({team})"
    names = (agent, line.subject.model or wording.NONE, line.subject.run.label)
    success = over = wording.NONE
    if line.why_no_headline is None:
        success, value = wording.estimate(line.success, Unit.SHARE), line.success.value
        if value is not None and noop is not None:
            over = f"{(value - noop) * 100:+.1f} pp"
    bounds = (wording.amount(own, Unit.SHARE) for own in astuple(line.baselines))
    return (*names, success, *bounds, over, failed, graded)
