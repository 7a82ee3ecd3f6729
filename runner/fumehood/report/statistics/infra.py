"""Counts attempts that ended as ``infra``, and tests whether agents differ in them.

An agent that could make its attempts end as ``infra`` would choose which of them count. Standard
library only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, lgamma

from fumehood.core.json_values import JsonObject
from fumehood.records.row import EpisodeRow

ALPHA = 0.05
"""Differences with a smaller probability are pointed out, after Bonferroni's correction."""
_ROUNDING = 1e-7
"""Tolerance with which two probabilities count as equal, as in R's ``fisher.test``."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """The attempts of one agent; an episode has several if the infrastructure failed."""

    graded: int
    """Episodes with a score."""
    successes: int
    ungraded: int
    """Episodes without a score and without a failure of the infrastructure."""
    infra: int
    """Attempts that ended as ``infra``: repeated ones and those of resumed runs included."""

    @property
    def total(self) -> int:
        """All attempts."""
        return self.graded + self.ungraded + self.infra

    @property
    def success_with_infra_failed(self) -> float | None:
        """Success rate in which each attempt that ended as ``infra`` counts as a failure."""
        counted = self.graded + self.infra
        return self.successes / counted if counted else None

    def to_json(self) -> JsonObject:
        """Return the counts and the rate as a JSON object."""
        return {
            "infra_attempts": self.infra,
            "ungraded": self.ungraded,
            "success_rate_with_infra_failed": self.success_with_infra_failed,
        }


def attempts_of(rows: Iterable[EpisodeRow]) -> Attempts:
    """Count the attempts of one agent's rows."""
    every = list(rows)
    graded = [row for row in every if row.score.success is not None]
    return Attempts(
        graded=len(graded),
        successes=sum(row.score.success is True for row in graded),
        ungraded=sum(row.score.success is None and not row.is_infra for row in every),
        infra=sum(row.infra_attempts for row in every),
    )


@dataclass(frozen=True, slots=True)
class InfraDifference:
    """An agent whose share of ``infra`` attempts differs from that of the other agents."""

    agent: str
    infra: int
    attempts: int
    infra_of_others: int
    attempts_of_others: int
    p_value: float
    """Two-sided, of Fisher's exact test."""

    def __str__(self) -> str:
        return (
            f"{self.agent}: {self.infra} of {self.attempts} attempts ended as infra; other agents: "
            f"{self.infra_of_others} of {self.attempts_of_others} "
            f"(Fisher's exact test, p = {self.p_value:.2g}). Compare the rates in which infra "
            "counts as a failure"
        )


def infra_differences(agents: Mapping[str, Attempts]) -> list[InfraDifference]:
    """Return the agents whose share of ``infra`` attempts differs from that of all others.

    Args:
        agents: attempts by agent, of one run.
    """
    if len(agents) < 2:
        return []
    infra = sum(own.infra for own in agents.values())
    total = sum(own.total for own in agents.values())
    differences = []
    for agent, own in agents.items():
        others = infra - own.infra, total - own.total
        p_value = fisher_exact(own.infra, own.total - own.infra, others[0], others[1] - others[0])
        if p_value < ALPHA / len(agents):
            differences.append(InfraDifference(agent, own.infra, own.total, *others, p_value))
    return differences


def fisher_exact(first: int, second: int, third: int, fourth: int) -> float:
    """Return the two-sided p value of Fisher's exact test for the table [[a, b], [c, d]].

    Source: R, ``fisher.test``: the sum of all tables with the same margins that are not more
    probable than the observed one.

    Args:
        first: a, a count.
        second: b, a count.
        third: c, a count.
        fourth: d, a count.
    """
    row, column, total = first + second, first + third, first + second + third + fourth
    observed = _log_probability(first, row, column, total)
    tables = range(max(0, row + column - total), min(row, column) + 1)
    logs = (_log_probability(count, row, column, total) for count in tables)
    return min(1.0, sum(exp(log) for log in logs if log <= observed + _ROUNDING))


def _log_probability(count: int, row: int, column: int, total: int) -> float:
    """Return the logarithm of the hypergeometric probability of a table's first cell."""
    return (
        _log_choose(column, count)
        + _log_choose(total - column, row - count)
        - _log_choose(total, row)
    )


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
