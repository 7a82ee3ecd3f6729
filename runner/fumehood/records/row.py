"""One line about one episode: what tables and resumption need, without the trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fumehood.core.json_values import Json, JsonObject
from fumehood.core.outcome import Infra, Outcome, outcome_from_json, outcome_name, outcome_to_json
from fumehood.core.score import Score
from fumehood.records.episode_name import EpisodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRow:
    """An episode that is done."""

    name: EpisodeName
    seed: int
    outcome: Outcome
    score: Score
    trace: str
    """Where the trace lies within the run folder; empty where none was sealed."""
    trace_digest: str
    """Of the sealed trace; empty where there is none."""
    attempts: int
    """How often it was tried, failures of our side included."""
    wall_ms: int
    """Of the last attempt, the start of its box included."""
    stdout_bytes: int
    """What the box printed in all, kept or not."""
    stderr_bytes: int
    refusals: int
    """Messages that the wall did not let through."""
    data_mode: str | None = None
    """Where searches and pages came from; None where the task's world does not look outside."""

    @property
    def is_infra(self) -> bool:
        """True when our side failed, so that the episode counts nowhere."""
        return isinstance(self.outcome, Infra)

    def to_json(self) -> JsonObject:
        """Return the row as one JSON object."""
        around = {} if self.data_mode is None else {"data_mode": self.data_mode}
        return {
            **around,
            "episode": str(self.name),
            "agent": self.name.agent,
            "task": self.name.task,
            "trial": self.name.trial,
            "seed": str(self.seed),
            "outcome": outcome_name(self.outcome),
            "end": outcome_to_json(self.outcome),
            "success": self.score.success,
            "checks": dict(self.score.checks),
            "metrics": dict(self.score.metrics),
            "trace": self.trace,
            "trace_digest": self.trace_digest,
            "attempts": self.attempts,
            "wall_ms": self.wall_ms,
            "stdout_bytes": self.stdout_bytes,
            "stderr_bytes": self.stderr_bytes,
            "refusals": self.refusals,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Json]) -> EpisodeRow:
        """Return the row that :meth:`to_json` wrote.

        Raises:
            KeyError, TypeError, ValueError: it is not a row.
        """
        success, checks, metrics = value["success"], value["checks"], value["metrics"]
        if not isinstance(checks, dict) or not isinstance(metrics, dict):
            raise TypeError("checks and metrics are objects")
        return cls(
            name=EpisodeName(str(value["agent"]), str(value["task"]), _integer(value["trial"])),
            seed=_integer(value["seed"]),
            outcome=_outcome(value["end"]),
            score=Score(
                None if success is None else bool(success),
                {name: bool(verdict) for name, verdict in checks.items()},
                metrics,
            ),
            trace=str(value["trace"]),
            trace_digest=str(value["trace_digest"]),
            attempts=_integer(value["attempts"]),
            wall_ms=_integer(value["wall_ms"]),
            stdout_bytes=_integer(value["stdout_bytes"]),
            stderr_bytes=_integer(value["stderr_bytes"]),
            refusals=_integer(value["refusals"]),
            data_mode=None if value.get("data_mode") is None else str(value["data_mode"]),
        )


def _integer(value: Json) -> int:
    return int(value)  # type: ignore[arg-type]


def _outcome(value: Json) -> Outcome:
    if not isinstance(value, dict):
        raise TypeError("end is an object")
    return outcome_from_json(value)
