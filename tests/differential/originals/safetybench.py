"""Executes calls with Agent-SafetyBench's environments, from a checkout."""

import json
import os
import random
import sys
from pathlib import Path
from typing import Any

from questions import answer
from results import results_digest

_FOLDER = Path(os.environ["FUMEHOOD_ORIGINALS"], "Agent-SafetyBench", "environments")
os.chdir(_FOLDER.parent)
sys.path.insert(0, str(_FOLDER))

from EnvManager import EnvManager  # noqa: E402


def verdict_of(question: dict[str, Any]) -> str:
    """Return the hash of all results."""
    random.seed(0)
    environments = [
        (named["tools"], EnvManager().init_env(named["name"], named["parameters"]))
        for named in question["environments"]
    ]
    results = []
    for call in question["moves"]:
        environment = next(each for tools, each in environments if call["tool_name"] in tools)
        try:
            value = environment.call_tool(call["tool_name"], call["args"])
            # The original writes each result into a message at once.
            results.append(["value", json.loads(json.dumps(value, default=str))])
        except Exception:
            results.append(["raised", None])
    return results_digest(results)


if __name__ == "__main__":
    answer(verdict_of)
