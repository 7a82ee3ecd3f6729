"""Reads the prompts of MARBLE's judge from the user's checkout.

Source: ``marble/evaluator/evaluator.py`` of ulab-uiuc/MARBLE 9d6efe6. This source file does not
parse, so its one prompt is read as text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fumehood.benchmarks.marble.judge_prompts import COMMUNICATION, FIELD, MILESTONES, PLANNING
from fumehood.benchmarks.marble.world_bargaining import SIDES
from fumehood.benchmarks.shared.reading import read_json, read_text
from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject

PROMPTS_FILE = Path("marble/evaluator/evaluator_prompts.json")
EVALUATOR_FILE = Path("marble/evaluator/evaluator.py")
_CODE_PROMPT = re.compile(r'code_quality_prompt_template = """(.*?)"""', re.DOTALL)
_TEAM = {
    PLANNING: (("Graph", "Planning"), {"summary", "agent_profiles", "agent_tasks", "results"}),
    COMMUNICATION: (("Graph", "Communication"), {"task", "communications"}),
    MILESTONES: (("Graph", "KPI"), {"task", "agent_results"}),
}
_RESULT = {"task", "result"}


def read_prompts(checkout: Path, scenario: str) -> JsonObject:
    """Return the prompts for a scenario, by the name of the question.

    Raises:
        InputError: a file is missing, or a prompt is missing or lacks a field.
    """
    path = checkout / PROMPTS_FILE
    prompts = read_json(path)
    wanted = dict(_TEAM)
    if scenario == "research":
        wanted[scenario] = (("research", "task_evaluation"), _RESULT)
    texts = {
        name: _checked(_at(prompts, [*keys, "prompt"]), fields, f"{path}: {'.'.join(keys)}.prompt")
        for name, (keys, fields) in wanted.items()
    }
    if scenario == "bargaining":
        for side in SIDES:
            keys = ["world", "task_evaluation", f"{side}_prompt"]
            place = f"{path}: {'.'.join(keys)}"
            texts[f"rating_{side}"] = _checked(_at(prompts, keys), _RESULT, place)
    if scenario == "coding":
        source = checkout / EVALUATOR_FILE
        match = _CODE_PROMPT.search(read_text(source))
        fields = {"task_description", "requirements", "solution"}
        place = f"{source}: code_quality_prompt_template"
        texts[scenario] = _checked(match and match[1], fields, place)
    return {**texts}


def _at(value: Any, keys: list[str]) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _checked(template: Any, fields: set[str], place: str) -> str:
    named = set(FIELD.findall(template)) - {""} if isinstance(template, str) else set()
    if not isinstance(template, str) or named != fields:
        shown = ", ".join(f"{{{name}}}" for name in sorted(fields))
        raise InputError(
            f"{place} must be a text with the fields {shown}; use ulab-uiuc/MARBLE 9d6efe6"
        )
    return template
