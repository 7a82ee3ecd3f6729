"""Short constructors of tasks."""

from __future__ import annotations

from typing import Any

from fumehood.core.task import Task
from tests.parts.specs import ACCOUNTS, episode_spec


def crud_task(task_id: str = "t1", **change: Any) -> Task:
    """Return a task of the crud world without faults; ``change`` replaces fields."""
    plain: dict[str, Any] = {
        "task_id": task_id,
        "world": "crud",
        "harness_mode": "native",
        "initial_state": ACCOUNTS,
        "fault_plan": (),
        "seed": 5,
        "seats": episode_spec(steps=3).seats,
        "tags": {},
    }
    return Task(**{**plain, **change})
