"""The published task record (ToolMisuseBench, spec part 1): unknown keys refused, numbers read leniently."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Split = Literal["train", "dev", "test_public"]
Difficulty = Literal["easy", "medium", "hard"]
Domain = Literal["crud", "retrieval", "files", "scheduling", "mixed"]
FaultType = Literal["timeout", "rate_limit", "schema_drift", "authz", "adversarial_error"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class BudgetRecord(_Strict):
    """What an agent may spend on the task."""

    max_steps: int = Field(ge=1)
    max_tool_calls: int = Field(ge=1)
    max_retries: int = Field(ge=0)
    timeout_ms: int = Field(ge=1)
    """Read and never used, as in the reference."""


class FaultRecord(_Strict):
    """One planned fault; trigger and payload are open."""

    fault_type: FaultType
    trigger: dict[str, Any]
    severity: Literal["soft", "hard"] = "soft"
    payload: dict[str, Any] = Field(default_factory=dict)


class TaskRecord(_Strict):
    """One line of a published file."""

    task_id: str
    split: Split
    difficulty: Difficulty
    domain: Domain
    instruction: str
    toolset_id: str
    """Read and never used: each domain has its own fixed toolset."""
    tool_schemas: list[dict[str, Any]] = Field(default_factory=list)
    """Read and never used, likewise."""
    initial_state: dict[str, Any] = Field(default_factory=dict)
    success_criteria: list[dict[str, Any]] = Field(default_factory=list)
    budget: BudgetRecord
    fault_plan: list[FaultRecord] = Field(default_factory=list)
    gold_summary: str | None = None
    seed: int = 0
