"""Asks a checkout of MARBLE for the end of games, the replies of its judge, and root causes."""

import ast
import importlib.util
import json
import logging
import os
import re
import sys
import tempfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from questions import answer


class _Absent(ModuleType):
    """A module of which nothing is used here."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__getattr__": lambda *_: ""})()


for _name in ("names", "yaml", "colorama", "marble.agent.werewolf_agent", "marble.utils.eventbus"):
    sys.modules[_name] = _Absent(_name)
_CHECKOUT = Path(os.environ["FUMEHOOD_ORIGINALS"], "MARBLE")
_FILE = _CHECKOUT / "marble/environments/werewolf_env.py"
_spec = importlib.util.spec_from_file_location("werewolf_env", _FILE)
_module = importlib.util.module_from_spec(_spec)  # type: ignore[arg-type]
_spec.loader.exec_module(_module)  # type: ignore[union-attr]
_FOLDER = tempfile.TemporaryDirectory()


_SIDES = ("seller", "buyer")
_SIDE_RATINGS = ("effectiveness_of_strategies", "progress_and_outcome", "interaction_dynamics")


def _readers() -> dict[str, Any]:
    """Return the evaluator's methods that read replies. Its file as a whole does not parse."""
    source = (_CHECKOUT / "marble/evaluator/evaluator.py").read_text(encoding="utf-8")
    # One ``except`` is indented one level too deep, which is the reason.
    source = re.sub(
        r"(return ratings_dict\n) {12}(except json.JSONDecodeError:\n) {16}(.*\n) {16}(return)",
        r"\1        \2            \3            \4",
        source,
    )
    names = {"json": json, "re": re, "Dict": dict, "List": list, "Any": Any}
    for method in source.split("\n    def ")[1:]:
        if method.startswith("parse_"):
            exec(f"def {method}", names)
    return names


_READ = _readers()
_EVALUATOR = SimpleNamespace(logger=logging.getLogger("marble"))
_EVALUATOR.logger.disabled = True
_READER_OF = {
    "score": "parse_score",
    "milestones": "parse_milestones",
    "sides": "parse_task_world_evaluation",
    "research": "parse_research_ratings",
    "coding": "parse_code_quality_scores",
}


def _shown(values: list[int]) -> str:
    return f"{int(bool(values) and sum(values) / len(values) >= 3)}:{','.join(map(str, values))}"


def _of_reply(kind: str, reply: str) -> str:
    value = _READ[_READER_OF[kind]](_EVALUATOR, reply)
    if kind == "score":
        return _shown([value])
    if kind == "milestones":
        return f"{int(len(value) > 0)}:{len(value)}"
    if kind == "sides":
        return _shown([value[side][name] for side in _SIDES for name in _SIDE_RATINGS])
    return _shown([value[name] for name in sorted(value)])


def _count_of_matches() -> Any:
    """Return the expression with which the original counts the right root causes."""
    source = (_CHECKOUT / "scripts/database/batch_eval.py").read_text(encoding="utf-8")
    assigned = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assign))
    (count,) = (node.value for node in assigned if ast.unparse(node.targets[0]) == "match_count")
    return compile(ast.Expression(count), "batch_eval.py", "eval")


_COUNT = _count_of_matches()


def _of_causes(causes: list[str], named: list[str]) -> str:
    share = eval(_COUNT, {"gold_labels": causes, "predicted_labels": named}) / len(causes)
    return f"{int(share == 1)}:{share:.2f}"


def verdict_of(question: dict[str, Any]) -> str:
    """Return the verdict on a game, a reply or names of causes."""
    match question.get("kind"):
        case None:
            return _of_game(question)
        case "causes":
            return _of_causes(question["causes"], question["named"])
        case kind:
            return _of_reply(kind, question["reply"])


def _of_game(question: dict[str, Any]) -> str:
    """Return the winning side and the result score, or "0" while the game goes on."""
    environment = object.__new__(_module.WerewolfEnv)
    environment.config = {}
    environment.scores = {"villager": {"total": 0}, "werewolf": {"total": 0}}
    # The environment renames the folder.
    environment.shared_memory_path = f"{tempfile.mkdtemp(dir=_FOLDER.name)}/shared_memory.json"
    environment._log_system = environment._log_event = lambda *_, **__: None
    players = {name: {"role": role} for name, role in question["roles"].items()}
    environment.shared_memory = {
        "public_state": {"alive_players": question["alive"]},
        "private_state": {"players": players},
    }
    result = environment.should_terminate()
    if not result["terminated"]:
        return "0"
    side = {"Villagers win": "villagers", "Werewolves win": "wolves"}[result["result"]]
    return f"1:{side}:{result['scores']['result_score']}"


if __name__ == "__main__":
    answer(verdict_of)
