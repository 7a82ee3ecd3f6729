"""Records of MARBLE as they are published, of which not every key is read."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class _Published(BaseModel):
    """Keys that nothing reads are left alone: most are empty, or settings of a framework."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Participant(_Published):
    """Somebody with a profile."""

    agent_id: str = Field(pattern=r"^[a-z0-9_]{1,32}$")
    profile: str
    role: Literal["seller", "buyer"] | None = None


class TaskRecord(_Published):
    """What is to be done; labels where there are some."""

    content: str
    labels: tuple[str, ...] = ()
    root_causes: tuple[str, ...] = ()
    number_of_labels_pred: int = Field(default=2, ge=1)


class EnvironmentRecord(_Published):
    """What it is to be done on."""

    init_sql: str = ""


class Record(_Published):
    """One task."""

    scenario: str
    number: int = Field(alias="task_id")
    task: TaskRecord
    agents: tuple[Participant, ...] = Field(min_length=1)
    environment: EnvironmentRecord = EnvironmentRecord()

    @property
    def task_id(self) -> str:
        """Unique in its file."""
        return f"{self.scenario}_{self.number}"
