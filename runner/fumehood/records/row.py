"""The row of an episode: what tables and resuming need, without the trace."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from sys import intern

from fumehood.core.json_values import Json, JsonObject
from fumehood.core.outcome import (
    Infra,
    Outcome,
    outcome_from_json,
    outcome_name,
    outcome_to_json,
    shortened,
)
from fumehood.core.score import Score

IDENTITY = ("scaffold", "model", "model_parameters", "arguments")
"""What an agent is: built-in scaffold, its model, parameters of the model that differ from their
defaults, and keyword arguments of its class."""

_NUMBERS = ("attempts", "wall_ms", "stdout_bytes", "stderr_bytes", "refusals")
_NAMES_MAX = 65_536
"""Names of agents and tasks whose file names are kept: a run uses each several times."""
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


@lru_cache(_NAMES_MAX)
def file_name(name: str) -> str:
    """Return ``name`` if it is a safe file name, or else a readable substitute.

    The substitute ends in a digest of the name, so two names never share a file.
    """
    if _SAFE.fullmatch(name) and not name.endswith("."):
        return name
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:60] or "x"
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{readable}~{digest}"


@dataclass(frozen=True, slots=True)
class EpisodeName:
    """One attempt: agent × task × trial. Equal in every run of the same plan, on any machine."""

    agent: str
    """The agent's label in this run."""
    task: str
    trial: int
    """From 0."""

    def __str__(self) -> str:
        """Return a readable form; not unique if agents or tasks have slashes in their names."""
        return f"{self.agent}/{self.task}/{self.trial}"

    @property
    def identifier(self) -> str:
        """A text that is unique in the run."""
        return f"{file_name(self.agent)}/{file_name(self.task)}/{self.trial}"

    @property
    def trace_path(self) -> str:
        """Path of the trace, within the run folder."""
        return f"traces/{self._stem}.jsonl"

    @property
    def output_path(self) -> str:
        """Path of the output of the boxes, within the run folder, without the stream's suffix."""
        return f"output/{self._stem}"

    @property
    def checkpoint_path(self) -> str:
        """Path of the kept workspace, within the folder of ``--keep-workspaces``."""
        return f"{self._stem}.tar"

    @property
    def cassette_path(self) -> str:
        """Path of the episode's model exchanges, within the run folder."""
        return f"cassette/episodes/{file_name(self.identifier)}.jsonl"

    @property
    def judge_path(self) -> str:
        """Path of the judge's exchanges about the episode, within the run folder."""
        return f"judge/episodes/{file_name(self.identifier)}.jsonl"

    @property
    def _stem(self) -> str:
        return f"{file_name(self.agent)}/{file_name(self.task)}.{self.trial}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRow:
    """A finished episode."""

    name: EpisodeName
    seed: int
    outcome: Outcome
    """Long texts are cut: see :func:`fumehood.core.outcome.shortened`."""
    score: Score
    trace: str
    """Path of the trace within the run folder; empty if there is no sealed trace."""
    trace_digest: str
    """Hash of the sealed trace; empty if there is none."""
    attempts: int
    """Number of attempts, failures of the infrastructure included."""
    wall_ms: int
    """Duration of the last attempt, the start of its box included."""
    stdout_bytes: int
    """Bytes that the boxes printed, stored or not."""
    stderr_bytes: int
    refusals: int
    """Messages that the service refused."""
    data_mode: str | None = None
    """Source of searches and pages; None if the task's world needs none."""
    isolation: str = ""
    """Isolation of its boxes if a resume used another than ``run.json`` states; otherwise empty."""
    identity: Mapping[str, Json] = field(default_factory=dict)
    """By name, see :data:`IDENTITY`; a name that does not apply to the agent is missing."""
    lost_costs: Mapping[str, int] = field(default_factory=dict)
    """What model requests of attempts that ended as ``infra`` cost, by budget kind."""
    earlier_infra: int = 0
    """Attempts of replaced rows of the episode that ended as ``infra``, for example before a
    resume. Not stored: the run folder counts them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "outcome", shortened(self.outcome))

    @property
    def is_infra(self) -> bool:
        """True if the infrastructure failed; the episode is not scored."""
        return isinstance(self.outcome, Infra)

    @property
    def infra_attempts(self) -> int:
        """Attempts at the episode that ended as ``infra``, those of replaced rows included."""
        return self.earlier_infra + self.attempts - (not self.is_infra)

    def replacing(self, earlier: EpisodeRow | None) -> EpisodeRow:
        """Return this row with the attempts of the row that it replaces, if there is one."""
        return replace(self, earlier_infra=earlier.infra_attempts) if earlier else self

    def to_json(self) -> JsonObject:
        """Return the row as one JSON object."""
        further: JsonObject = {} if self.data_mode is None else {"data_mode": self.data_mode}
        if self.isolation:
            further["isolation"] = self.isolation
        if self.lost_costs:
            further["lost_costs"] = dict(self.lost_costs)
        return {
            **further,
            **self.identity,
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
            **{name: getattr(self, name) for name in _NUMBERS},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Json]) -> EpisodeRow:
        """Return the row that :meth:`to_json` wrote.

        Raises:
            KeyError, TypeError, ValueError: the value is not a row.
        """
        success, checks, metrics = value["success"], value["checks"], value["metrics"]
        if not isinstance(checks, dict) or not isinstance(metrics, dict):
            raise TypeError("checks and metrics must be objects")
        end = value["end"]
        if not isinstance(end, dict):
            raise TypeError("end must be an object")
        return cls(
            name=EpisodeName(str(value["agent"]), str(value["task"]), _integer(value["trial"])),
            seed=_integer(value["seed"]),
            outcome=outcome_from_json(end),
            # Thousands of rows have the same names, which are kept once.
            score=Score(
                None if success is None else bool(success),
                {intern(name): bool(passed) for name, passed in checks.items()},
                {intern(name): number for name, number in metrics.items()},
            ),
            trace=str(value["trace"]),
            trace_digest=str(value["trace_digest"]),
            **{name: _integer(value[name]) for name in _NUMBERS},
            data_mode=None if value.get("data_mode") is None else str(value["data_mode"]),
            isolation=str(value.get("isolation", "")),
            lost_costs=_units(value.get("lost_costs")),
            identity={name: value[name] for name in IDENTITY if name in value},
        )


def _units(value: Json) -> dict[str, int]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError("lost_costs must be an object")
    return {kind: _integer(units) for kind, units in value.items()}


def _integer(value: Json) -> int:
    return int(value)  # type: ignore[arg-type]
