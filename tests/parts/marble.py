"""Writes a checkout of MARBLE with invented records and prompts, in the published form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fumehood.benchmarks.marble.prompt_files import EVALUATOR_FILE, PROMPTS_FILE

_REPLY = 'Reply with {"rating": X}.'
PROMPTS = {
    "Graph": {
        "Communication": {"prompt": f"Task {{task}}. They said {{communications}}. {_REPLY}"},
        "Planning": {
            "prompt": f"{{summary}} {{agent_profiles}} {{agent_tasks}} {{results}} {_REPLY}"
        },
        "KPI": {"prompt": 'For {task} they did {agent_results}. Reply [{{"milestone": ""}}]'},
    },
    "research": {"task_evaluation": {"prompt": "Rate {result} for {task}."}},
    "world": {
        "task_evaluation": {
            "seller_prompt": "Rate the sellers of {task}: {result}",
            "buyer_prompt": "Rate the buyers of {task}: {result}",
        }
    },
}
EVALUATOR = '''\
class Evaluator:
        except SyntaxError:
            code_quality_prompt_template = """
            Rate {solution} for {task_description} with {requirements}: {{"quality": score}}
            """
'''
"""Source that does not parse, as the published one."""


def record(scenario: str, number: int = 1, **changes: Any) -> dict[str, Any]:
    """Return a record of a team of three."""
    names = ["agent1", "agent2", "agent3"]
    pairs = [[a, b, "collaborate with"] for a in names for b in names if a < b]
    content = (
        "Software Development Task:\n1. Implementation requirements:\n   - Add numbers.\n\n"
        "2. Project structure:\n   - solution.py\n"
    )
    return {
        "scenario": scenario,
        "task_id": number,
        "coordinate_mode": "",
        "relationships": pairs,
        "environment": {"type": ""},
        "task": {"content": content, "output_format": "Any."},
        "agents": [{"agent_id": name, "profile": f"I am {name}."} for name in names],
        **changes,
    }


def write_checkout(folder: Path, *records: dict[str, Any]) -> Path:
    """Write a checkout with records of any scenarios."""
    for path, text in ((PROMPTS_FILE, json.dumps(PROMPTS)), (EVALUATOR_FILE, EVALUATOR)):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    for scenario in {one["scenario"] for one in records}:
        path = folder / f"multiagentbench/{scenario}/{scenario}_main.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(one) for one in records if one["scenario"] == scenario]
        path.write_text("\n".join(lines) + "\n")
    return folder
