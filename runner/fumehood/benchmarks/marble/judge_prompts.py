"""The rules of MARBLE that fill in the prompts of its judge and read the replies.

Source of all rules: ``marble/evaluator/evaluator.py`` of ulab-uiuc/MARBLE 9d6efe6.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from fumehood.benchmarks.marble.world_bargaining import SIDES

PLANNING, COMMUNICATION, MILESTONES = "planning", "communication", "milestones"
FIELD = re.compile(r"\{\{|\}\}|\{(\w+)\}")
"""A field of a prompt, or an escaped brace."""
RATINGS = {
    "research": ("innovation", "safety", "feasibility"),
    "coding": ("instruction_following", "executability", "consistency", "quality"),
}
"""Names of the ratings from 1 to 5 by scenario."""
SIDE_RATINGS = ("effectiveness_of_strategies", "progress_and_outcome", "interaction_dynamics")
"""Names of the ratings of one side of a bargain."""
RATING_MAX = 5
SCORE_DEFAULT = 3
"""Score of planning or communication if a reply has none."""


def filled(template: str, values: Mapping[str, str]) -> str:
    """Return a prompt with its fields filled in.

    Two of the published prompts contain single braces, on which ``str.format`` fails.
    """
    return FIELD.sub(
        lambda match: values[match[1]] if match[1] else match[0][0],
        template,
    )


def read_score(reply: str) -> int:
    """Return the score of planning or communication. Source: ``parse_score``."""
    text = reply.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    try:
        rating = _json_object(text)["rating"]
        score = int(rating)
    except (OverflowError, RecursionError):
        return SCORE_DEFAULT
    except (KeyError, TypeError, ValueError):
        score = 0
    if 1 <= score <= RATING_MAX:
        return score
    digits = re.findall(r"\b[1-5]\b", text)
    return int(digits[0]) if digits else SCORE_DEFAULT


def read_milestones(reply: str) -> list[Any]:
    """Return the milestones. Source: ``parse_milestones``."""
    text = reply.replace("\\n", "").strip()
    if text.startswith("```json") and text.endswith("```"):
        text = text[7:-3].strip()
    try:
        milestones = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return milestones if isinstance(milestones, list) else []


def read_ratings(reply: str, scenario: str) -> dict[str, int]:
    """Return the ratings of a research idea or of code; empty if the reply has none.

    Ratings of code are at least 1: one that cannot be read is 1. Source: ``parse_research_ratings``
    and ``parse_code_quality_scores``.
    """
    names = RATINGS[scenario]
    try:
        ratings = _json_object(reply)
        if scenario == "research":
            return {name: int(value) for name, value in ratings.items()}
        if all(name in ratings for name in names):
            return {name: _from_1_to_5(ratings[name]) for name in names}
    except (ValueError, TypeError, OverflowError, RecursionError):
        pass
    return {} if scenario == "research" else dict.fromkeys(names, 1)


def read_side_ratings(reply: str) -> dict[str, dict[str, int]]:
    """Return the ratings of both sides of a bargain, each -1 if the reply has none.

    Source: ``parse_task_world_evaluation``.
    """
    ratings = {side: dict.fromkeys(SIDE_RATINGS, -1) for side in SIDES}
    try:
        own = _json_object(reply)
        return ratings | {
            side: {name: int(own[side].get(name, -1)) for name in SIDE_RATINGS}
            for side in SIDES
            if side in own
        }
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return ratings


def _json_object(text: str) -> dict[str, Any]:
    """Return the value between the first and the last brace."""
    begin, end = text.find("{"), text.rfind("}") + 1
    value = json.loads(text[begin:end]) if 0 <= begin < end else {}
    return value if isinstance(value, dict) else {}


def _from_1_to_5(value: Any) -> int:
    try:
        score = int(value)
    except (ValueError, TypeError):
        return 1
    return score if 1 <= score <= RATING_MAX else 1


def contributions(milestones: list[Any]) -> dict[str, int]:
    """Return the number of milestones to which each agent contributed.

    The published prompt names the key ``agents``, and the original reads ``contributing_agents``.
    """
    counts: dict[str, int] = {}
    for milestone in milestones:
        match milestone:
            case {"agents": list(names)} | {"contributing_agents": list(names)}:
                for name in dict.fromkeys(map(str, names)):
                    counts[name] = counts.get(name, 0) + 1
    return counts


def requirements_of(task: str) -> str:
    """Return the requirements in the text of a coding task. Source: ``evaluate_code_quality``."""
    start, end = "1. Implementation requirements:\n", "\n\n2. Project structure:"
    return task[task.find(start) + len(start) : task.find(end)].strip()
