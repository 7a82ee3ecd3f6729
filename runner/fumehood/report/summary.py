"""What a run says in a few numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from statistics import fmean

from fumehood.core.json_values import Json, JsonObject
from fumehood.core.outcome import outcome_name
from fumehood.records.row import EpisodeRow


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSummary:
    """One agent's line in the table. A mean over nothing is None, never 0."""

    agent: str
    episodes: int
    graded: int
    """Episodes that have a verdict; every mean is over these."""
    successes: int
    infra: int
    """Episodes that failed on our side and count nowhere."""
    recovered: int
    """Successes in episodes in which a planned fault was delivered."""
    faulted: int
    """Graded episodes in which a planned fault was delivered."""
    tool_calls: float | None
    """Mean per graded episode."""
    invalid_calls: float | None
    """Mean per graded episode."""
    policy_violations: float | None
    """Mean per graded episode."""
    outcomes: dict[str, int]
    utility_rate: float | None = None
    """Share of graded episodes of tasks with checks of safety in which all others held."""
    safety_rate: float | None = None
    """Share of the same in which those of safety held."""

    @property
    def success_rate(self) -> float | None:
        """Share of graded episodes that succeeded."""
        return self.successes / self.graded if self.graded else None

    @property
    def denied_calls(self) -> float | None:
        """Mean calls per graded episode that were denied: policy violations that were no invalid calls."""
        if self.policy_violations is None or self.invalid_calls is None:
            return None
        return self.policy_violations - self.invalid_calls

    @property
    def recovery_rate(self) -> float | None:
        """Share of faulted episodes that succeeded."""
        return self.recovered / self.faulted if self.faulted else None

    def to_json(self) -> JsonObject:
        """Return the line as a JSON object."""
        outcomes: JsonObject = dict(self.outcomes)
        return {
            "agent": self.agent,
            "episodes": self.episodes,
            "graded": self.graded,
            "successes": self.successes,
            "success_rate": self.success_rate,
            "infra": self.infra,
            "faulted": self.faulted,
            "recovered": self.recovered,
            "recovery_rate": self.recovery_rate,
            "tool_calls": self.tool_calls,
            "invalid_calls": self.invalid_calls,
            "policy_violations": self.policy_violations,
            "utility_rate": self.utility_rate,
            "safety_rate": self.safety_rate,
            "outcomes": outcomes,
        }


def summarize(rows: Sequence[EpisodeRow], agents: Iterable[str]) -> tuple[AgentSummary, ...]:
    """Return one line an agent, in the order of ``agents``."""
    return tuple(
        _summarize(agent, [row for row in rows if row.name.agent == agent]) for agent in agents
    )


def run_digest(rows: Sequence[EpisodeRow], order: Iterable[str]) -> str:
    """Return one digest over the traces of all episodes.

    Args:
        rows: what is done.
        order: episode names as planned; an episode that is missing or has no trace counts as empty.
    """
    digests = {str(row.name): row.trace_digest for row in rows}
    total = sha256()
    for episode in order:
        total.update(f"{episode}\n{digests.get(episode, '')}\n".encode("utf-8", "surrogatepass"))
    return total.hexdigest()


def _summarize(agent: str, rows: Sequence[EpisodeRow]) -> AgentSummary:
    graded = [row for row in rows if row.score.success is not None]
    faulted = [row for row in graded if row.score.metrics.get("fault_seen") is True]
    guarded = [row.score for row in graded if row.score.safety is not None]
    return AgentSummary(
        agent=agent,
        episodes=len(rows),
        graded=len(graded),
        successes=sum(row.score.success is True for row in graded),
        infra=sum(row.is_infra for row in rows),
        recovered=sum(row.score.success is True for row in faulted),
        faulted=len(faulted),
        tool_calls=_mean(graded, "tool_calls"),
        invalid_calls=_mean(graded, "invalid_calls"),
        policy_violations=_mean(graded, "policy_violations"),
        utility_rate=_share(score.utility for score in guarded if score.utility is not None),
        safety_rate=_share(score.safety is True for score in guarded),
        outcomes=dict(sorted(Counter(outcome_name(row.outcome) for row in rows).items())),
    )


def _share(verdicts: Iterable[bool]) -> float | None:
    told = list(verdicts)
    return fmean(told) if told else None


def _mean(rows: Sequence[EpisodeRow], metric: str) -> float | None:
    values = [_number(row.score.metrics.get(metric)) for row in rows]
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _number(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) else None
