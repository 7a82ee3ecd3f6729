"""Summarises a run per agent, for ``run``, ``resume`` and ``score``. Standard library only."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from hashlib import sha256
from operator import add
from statistics import fmean
from typing import Any

from fumehood.core.json_values import JsonObject
from fumehood.core.outcome import AgentCrashed, TimedOut, outcome_name
from fumehood.core.score import SEVERITIES
from fumehood.records.row import EpisodeName, EpisodeRow
from fumehood.records.run_reader import RunReader
from fumehood.report.results import Results, as_number, by_domain, by_family, by_risk, count
from fumehood.report.statistics.infra import Attempts, attempts_of
from fumehood.report.statistics.metrics import ASPECTS, COMPLETION, means
from fumehood.report.wording import dollars
from fumehood.scorers.verdict import (
    AGENT_BOX,
    FORGEABLE_DIFFERENCE,
    FORGEABLE_REWARD,
    SHARED,
    SHARED_BOX,
    VERIFICATION,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSummary:
    """The summary of one agent. A mean over no episode is None, not 0."""

    agent: str
    episodes: int
    graded: int
    """Episodes with a score; every mean is over these."""
    successes: int
    infra: int
    """Infrastructure failures, which are part of no mean."""
    attempts: Attempts
    """All attempts, those included that ended as ``infra`` and were repeated."""
    recovered: int
    """Successful episodes in which a fault fired."""
    faulted: int
    """Graded episodes in which a fault fired."""
    tool_calls: float | None
    """Mean per graded episode."""
    invalid_calls: float | None
    """Mean per graded episode."""
    policy_violations: float | None
    """Mean per graded episode."""
    outcomes: dict[str, int]
    utility_rate: float | None = None
    """Share of graded episodes with safety checks in which all other checks passed."""
    safety_rate: float | None = None
    """Share of graded episodes with decided safety checks in which these passed."""
    safety_undecided: int = 0
    """Graded episodes without a violation in which a judge did not decide a safety check."""
    weighted_safety: float | None = None
    """Mean of 1 minus the weight of the most severe violation, over the same episodes."""
    task_completion: float | None = None
    """Mean task completion score per graded episode; None if no episode has one."""
    milestones: float | None = None
    """Mean per graded episode in which a judge was asked for milestones."""
    forgeable_reward: float | None = None
    """Mean reward of tests inside the workspace, over the graded episodes with such a reward in
    addition to that of a verifier."""
    forgeable_difference: float | None = None
    """Mean of this reward minus that of the verifier, over the same episodes."""
    scored_shared: int = 0
    """Graded episodes whose score is that of tests inside their workspace, which is forgeable."""
    shared_box: int = 0
    """Graded episodes whose agent ran inside its workspace."""

    @property
    def success_rate(self) -> float | None:
        """Share of graded episodes that succeeded."""
        return self.successes / self.graded if self.graded else None

    @property
    def denied_calls(self) -> float | None:
        """Mean denied calls per graded episode: policy violations without invalid calls."""
        if self.policy_violations is None or self.invalid_calls is None:
            return None
        return self.policy_violations - self.invalid_calls

    @property
    def recovery_rate(self) -> float | None:
        """Share of faulted episodes that succeeded."""
        return self.recovered / self.faulted if self.faulted else None

    def to_json(self) -> JsonObject:
        """Return the summary as a JSON object."""
        stored = {name: value for name, value in asdict(self).items() if name != "attempts"}
        rates = {"success_rate": self.success_rate, "recovery_rate": self.recovery_rate}
        return {**stored, **self.attempts.to_json(), **rates}


def summarize(rows: Sequence[EpisodeRow], agents: Iterable[str]) -> tuple[AgentSummary, ...]:
    """Return one summary per agent, in the order of ``agents``."""
    return tuple(
        _summarize(agent, [row for row in rows if row.name.agent == agent]) for agent in agents
    )


def run_digest(rows: Sequence[EpisodeRow], order: Iterable[str]) -> str:
    """Return the digest over the traces of all episodes, named in the order of the plan.

    A missing trace counts as empty.
    """
    digests = {str(row.name): row.trace_digest for row in rows}
    total = sha256()
    for episode in order:
        total.update(f"{episode}\n{digests.get(episode, '')}\n".encode("utf-8", "surrogatepass"))
    return total.hexdigest()


def _summarize(agent: str, rows: Sequence[EpisodeRow]) -> AgentSummary:
    graded = [row for row in rows if row.score.success is not None]
    faulted = [row for row in graded if row.score.metrics.get("fault_seen") is True]
    guarded = [row.score for row in graded if row.score.has_safety]
    decided = [score for score in guarded if score.safety is not None]
    return AgentSummary(
        agent=agent,
        episodes=len(rows),
        graded=len(graded),
        successes=sum(row.score.success is True for row in graded),
        infra=sum(row.is_infra for row in rows),
        attempts=attempts_of(rows),
        recovered=sum(row.score.success is True for row in faulted),
        faulted=len(faulted),
        tool_calls=_mean(graded, "tool_calls"),
        invalid_calls=_mean(graded, "invalid_calls"),
        policy_violations=_mean(graded, "policy_violations"),
        utility_rate=_share(score.utility for score in guarded if score.utility is not None),
        safety_rate=_share(score.safety is True for score in decided),
        safety_undecided=len(guarded) - len(decided),
        weighted_safety=_share(
            weighted for score in decided if (weighted := score.weighted_safety) is not None
        ),
        task_completion=_completion(graded),
        milestones=_mean(graded, "milestones"),
        forgeable_reward=_mean(graded, FORGEABLE_REWARD),
        forgeable_difference=_mean(graded, FORGEABLE_DIFFERENCE),
        scored_shared=sum(row.score.metrics.get(VERIFICATION) == SHARED for row in graded),
        shared_box=sum(row.score.metrics.get(AGENT_BOX) == SHARED_BOX for row in graded),
        outcomes=dict(sorted(Counter(outcome_name(row.outcome) for row in rows).items())),
    )


def _share(flags: Iterable[float]) -> float | None:
    values = list(flags)
    return fmean(values) if values else None


def _mean(rows: Sequence[EpisodeRow], metric: str) -> float | None:
    values = [as_number(row.score.metrics.get(metric)) for row in rows]
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _completion(rows: Sequence[EpisodeRow]) -> float | None:
    if _mean(rows, COMPLETION) is None:
        return None
    return _share(
        value
        for row in rows
        # A share that is null is unknown. Without one, success decides.
        if (value := as_number(row.score.metrics.get(COMPLETION, row.score.success is True)))
        is not None
    )


def breakdown(results: Results) -> JsonObject:
    """Return means and counts of an agent as JSON: all, ``by_fault``, ``by_domain``, and
    ``by_risk`` if a task has safety checks."""
    risks = by_risk(results)
    return {
        **_means_and_counts(results),
        "by_fault": {name: _means_and_counts(group) for name, group in by_family(results).items()},
        "by_domain": {name: _means_and_counts(group) for name, group in by_domain(results).items()},
        **({"by_risk": {name: _risk(group) for name, group in risks.items()}} if risks else {}),
    }


def _risk(results: Results) -> JsonObject:
    worst = Counter(result.row.score.severity for result in results)
    return {
        "episodes": len(results),
        **{name: mean.value for name, mean in means(results, ASPECTS).items()},
        "violations": {name: worst[name] for name in SEVERITIES},
    }


def _means_and_counts(results: Results) -> JsonObject:
    counts = count(results)
    return {
        "episodes": counts.episodes,
        "graded": counts.graded,
        "ungraded": counts.ungraded,
        "infra": counts.infra,
        "infra_attempts": counts.infra + counts.repeated,
        "metrics": {name: mean.value for name, mean in means(results).items()},
    }


NOT_RECORDED_STATUS = 412
"""Status of a model request of a replay without a recording."""


@dataclass(frozen=True, slots=True)
class ModelCosts:
    """What one agent spent on models, over all its episodes."""

    calls: int = 0
    tokens: int = 0
    microusd: int = 0
    """Millionths of a dollar; 0 if the price is unknown."""
    tokens_over: int = 0
    """Tokens beyond the bounds of episodes, together."""
    microusd_over: int = 0
    """Millionths of a dollar beyond the bounds of episodes, together."""
    not_recorded: int = 0
    """Requests of a replay without a recording."""
    refused: int = 0
    """Requests that were refused, or whose seat ended before the response."""
    failed: int = 0
    """Other requests with another status than 200."""

    def plus(self, other: ModelCosts) -> ModelCosts:
        """Return the sum of both."""
        return ModelCosts(*(map(add, astuple(self), astuple(other))))

    def to_json(self) -> JsonObject:
        """Return the costs as a JSON object."""
        return asdict(self)

    def __str__(self) -> str:
        money = f", {dollars(self.microusd)}" if self.microusd else ""
        over = [f"{self.tokens_over:,} tokens"] if self.tokens_over else []
        over += [dollars(self.microusd_over)] if self.microusd_over else []
        beyond = f"; {' and '.join(over)} beyond the budget" if over else ""
        missing = f"; {self.not_recorded:,} without a recording" if self.not_recorded else ""
        lost = [f"{self.refused:,} refused"] if self.refused else []
        lost += [f"{self.failed:,} failed"] if self.failed else []
        others = f"; {', '.join(lost)}" if lost else ""
        return f"{self.calls:,} calls, {self.tokens:,} tokens{money}{beyond}{missing}{others}"


def model_costs(folder: RunReader, rows: Iterable[EpisodeRow]) -> dict[str, ModelCosts]:
    """Return the model costs by agent; agents without model requests are left out.

    Costs of another seat than the first have a combined name, such as ``react/user``.

    Raises:
        InputError: a trace is missing or not a trace.
    """
    costs: dict[str, ModelCosts] = {}
    for row in rows:
        records = folder.read_trace(row) if row.trace else ()
        events = [json.loads(record.event_json) for record in records]
        seats: list[Any] = next(
            (event["seats"] for event in events if event["kind"] == "opened"), []
        )
        for at, seat in enumerate(seats):
            own = _seat_costs(events, seat)
            who = f"{row.name.agent}/{seat['name']}" if at else row.name.agent
            if own is not None:
                costs[who] = costs.get(who, ModelCosts()).plus(own)
    return costs


def _seat_costs(events: Iterable[JsonObject], seat: Mapping[str, Any]) -> ModelCosts | None:
    """Return the model costs of one seat in one episode; None if it made no model request."""
    own: list[Any] = [event for event in events if event.get("seat") == seat["name"]]
    calls = [event for event in own if event["kind"] == "model_call"]
    # The request of a response that is too large is one of the calls.
    refused = sum(
        event["kind"] == "model_refused" and event["reason"] != "response_too_large"
        for event in own
    )
    if not calls and not refused:
        return None
    tokens, microusd = (
        sum(call["spent"].get(kind, 0) for call in calls)
        for kind in ("model_tokens", "model_microusd")
    )
    bounds = seat["budget"]
    return ModelCosts(
        calls=sum(call["spent"].get("model_calls", 0) for call in calls),
        tokens=tokens,
        microusd=microusd,
        tokens_over=max(0, tokens - bounds.get("model_tokens", tokens)),
        microusd_over=max(0, microusd - bounds.get("model_microusd", microusd)),
        not_recorded=sum(call["status"] == NOT_RECORDED_STATUS for call in calls),
        refused=refused,
        failed=sum(call["status"] not in (200, NOT_RECORDED_STATUS) for call in calls),
    )


@dataclass(frozen=True, slots=True)
class ContractViolation:
    """One kind of contract violation of one agent."""

    agent: str
    kind: str
    """For example ``crashed (exit status 1)``."""
    count: int
    """Number of episodes with the violation."""
    episodes: int
    """Number of all episodes of the agent."""
    example: EpisodeName
    """The first episode with the violation."""

    def __str__(self) -> str:
        return f"agent {self.agent}: {self.kind} in {self.count} of {self.episodes} episodes"


def contract_violations(
    rows: Sequence[EpisodeRow], output_limit_bytes: int
) -> Iterator[ContractViolation]:
    """Yield one violation per agent and kind; ``output_limit_bytes`` is that of each stream."""
    episodes: dict[str, int] = defaultdict(int)
    examples: dict[tuple[str, str], list[EpisodeName]] = defaultdict(list)
    for row in rows:
        episodes[row.name.agent] += 1
        for kind in _kinds(row, output_limit_bytes):
            examples[row.name.agent, kind].append(row.name)
    for (agent, kind), names in examples.items():
        yield ContractViolation(agent, kind, len(names), episodes[agent], names[0])


def _kinds(row: EpisodeRow, output_limit_bytes: int) -> Iterator[str]:
    match row.outcome:
        case AgentCrashed(detail):
            yield f"crashed ({detail})"
        case TimedOut(wall_ms):
            yield f"not finished within its {wall_ms / 1000:g} s"
    for stream, size in (
        ("standard output", row.stdout_bytes),
        ("standard error", row.stderr_bytes),
    ):
        if size > output_limit_bytes:
            yield f"{stream} longer than the {output_limit_bytes} bytes that are kept"
    if row.refusals:
        yield "sent messages that the service refused"
