"""The published record formats of ToolMisuseBench, and the oracle records of this project.

Unknown keys are refused; numbers are read leniently, as in the reference. See
docs/reference/toolmisuse.md, Records.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from fumehood.benchmarks.shared.records import StrictRecord

Split = Literal["train", "dev", "test_public"]
Difficulty = Literal["easy", "medium", "hard"]
Domain = Literal["crud", "retrieval", "files", "scheduling", "mixed"]
FaultType = Literal["timeout", "rate_limit", "schema_drift", "authz", "adversarial_error"]

SPLITS: tuple[Split, ...] = get_args(Split)


class _PublishedRecord(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class BudgetRecord(_PublishedRecord):
    """Limits of an agent."""

    max_steps: int = Field(ge=1)
    max_tool_calls: int = Field(ge=1)
    max_retries: int = Field(ge=0)
    timeout_ms: int = Field(ge=1)
    """Read but not used, as in the reference."""


class FaultRecord(_PublishedRecord):
    """One planned fault. Trigger and payload accept any keys."""

    fault_type: FaultType
    trigger: dict[str, Any]
    severity: Literal["soft", "hard"] = "soft"
    payload: dict[str, Any] = Field(default_factory=dict)


class TaskRecord(_PublishedRecord):
    """One line of a published file."""

    task_id: str
    split: Split
    difficulty: Difficulty
    domain: Domain
    instruction: str
    toolset_id: str
    """Read but not used: each domain has one fixed toolset."""
    tool_schemas: list[dict[str, Any]] = Field(default_factory=list)
    """Read but not used."""
    initial_state: dict[str, Any] = Field(default_factory=dict)
    success_criteria: list[dict[str, Any]] = Field(default_factory=list)
    budget: BudgetRecord
    fault_plan: list[FaultRecord] = Field(default_factory=list)
    gold_summary: str | None = None
    seed: int = 0


class OracleRecord(StrictRecord):
    """The proof that one task is solvable or not. Generated suites keep it in separate files."""

    task_id: str
    solvable: bool
    oracle: list[dict[str, Any]]
    """Moves that solve the task, or that end an unsolvable task correctly."""
