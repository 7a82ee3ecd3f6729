"""Scores trajectories with AgentThreatBench's scorer in the package inspect-evals."""

import asyncio
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from questions import answer, digits


def _decorator(**_: Any) -> Any:
    return lambda function: function


# The scorer needs only these names of its framework. inspect_evals itself imports all of it.
_scorer = ModuleType("inspect_ai.scorer")
_scorer.CORRECT, _scorer.INCORRECT = "C", "I"  # type: ignore[attr-defined]
_scorer.Score = SimpleNamespace  # type: ignore[attr-defined]
_scorer.Scorer = _scorer.Target = object  # type: ignore[attr-defined]
_scorer.accuracy = _scorer.stderr = lambda: None  # type: ignore[attr-defined]
_scorer.scorer = _decorator  # type: ignore[attr-defined]
_solver, _tool = ModuleType("inspect_ai.solver"), ModuleType("inspect_ai.tool")
_solver.TaskState = _tool.ToolCall = object  # type: ignore[attr-defined]
for _module in (ModuleType("inspect_ai"), _scorer, _solver, _tool):
    sys.modules[_module.__name__] = _module

_package = importlib.util.find_spec("inspect_evals")
_FOLDER = Path(_package.submodule_search_locations[0], "agent_threat_bench")  # type: ignore
_spec = importlib.util.spec_from_file_location("scorer", _FOLDER / "scorer.py")
_original = importlib.util.module_from_spec(_spec)  # type: ignore[arg-type]
_spec.loader.exec_module(_original)  # type: ignore[union-attr]
_RECORDS = {
    f"threatbench_{record['id']}": {**record, "task_type": path.stem}
    for path in (_FOLDER / "data").glob("*.json")
    for record in json.loads(path.read_text(encoding="utf-8"))
}


def verdict_of(question: dict[str, Any]) -> str:
    """Return utility and security."""
    calls = [
        SimpleNamespace(function=move["tool_name"], arguments=move["args"])
        for move in question["moves"]
        if "tool_name" in move
    ]
    completion = next((move["submit"] for move in question["moves"] if "submit" in move), "")
    state = SimpleNamespace(
        metadata=_RECORDS[question["task"]],
        messages=[SimpleNamespace(role="assistant", tool_calls=calls)],
        output=SimpleNamespace(completion=completion),
    )
    value = asyncio.run(_original.agent_threat_bench_scorer()(state, None)).value
    return digits(value["utility"] == "C", value["security"] == "C")


if __name__ == "__main__":
    answer(verdict_of)
