"""MARBLE's published records, and where a checkout has them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from fumehood.benchmarks.shared.published_record import PublishedRecord
from fumehood.core.errors import SpecError
from fumehood.core.ledger import Budget

BUDGET = Budget(steps=40, calls=40, retries=10)
"""Of each seat of a conversation of which no part of the original bounds the calls."""


class Participant(PublishedRecord):
    """One agent of a task."""

    agent_id: str = Field(pattern=r"^[a-z0-9_]{1,32}$")
    profile: str
    role: Literal["seller", "buyer"] | None = None


class TaskRecord(PublishedRecord):
    """The task's text, and the labels of a database's problem."""

    content: str
    output_format: str = ""
    labels: tuple[str, ...] = ()
    root_causes: tuple[str, ...] = ()
    number_of_labels_pred: int = Field(2, ge=1)


class Anomaly(PublishedRecord):
    """One load that makes a database slow."""

    name: str = Field(alias="anomaly")
    columns: int = Field(20, ge=1, le=100, alias="ncolumn")
    width: int = Field(100, ge=1, le=1000, alias="colsize")


class Environment(PublishedRecord):
    """The database of a task."""

    init_sql: str = ""
    anomalies: tuple[Anomaly, ...] = ()


class Record(PublishedRecord):
    """One published task."""

    scenario: str
    number: int = Field(alias="task_id")
    coordinate_mode: str = ""
    relationships: tuple[tuple[str, str, str], ...] = ()
    """First agent, second agent, and the name of their relationship."""
    environment: Environment = Environment()
    task: TaskRecord
    agents: tuple[Participant, ...] = Field(min_length=1)

    @property
    def task_id(self) -> str:
        """Identifier that is unique within a file."""
        return f"{self.scenario}_{self.number}"

    @property
    def names(self) -> tuple[str, ...]:
        """The agents' names.

        Raises:
            SpecError: Two agents have the same name, or a relationship names no agent.
        """
        names = tuple(agent.agent_id for agent in self.agents)
        if len(set(names)) < len(names):
            raise SpecError("agents", "two agents have the same agent_id")
        for first, second, _ in self.relationships:
            if not {first, second} <= set(names):
                raise SpecError("relationships", f"{first} and {second} must both be agents")
        return names


def records_path(path: Path, scenario: str) -> Path:
    """Return the file of records: ``path`` itself, or the file of the checkout ``path``."""
    return path / f"multiagentbench/{scenario}/{scenario}_main.jsonl" if path.is_dir() else path
