"""Scores lateral thinking puzzles by the original's measures."""

from __future__ import annotations

from typing import Any

from fumehood.core.evidence import Evidence
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject
from fumehood.core.score import Score
from fumehood.core.task import Task
from fumehood.scorers.native import NativeScorer, task_metrics

OP = "key_points"


class LateralThinking:
    """Scorer of lateral thinking puzzles: success is that all key points are hit."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return the score."""
        criterion: Any = gold.criterion(OP)
        if criterion is None:
            return NativeScorer().score(task, gold, evidence)
        game: Any = evidence.final_state.get("game") or {}
        rounds = criterion["rounds"]
        hits = len(game.get("hits", []))
        finish = game.get("finish_round")
        success = "hits" in game and not game["left"]
        metrics: JsonObject = {
            "progress": hits / criterion["key_count"],
            "accuracy": game.get("yes", 0) / rounds,
            "relevance": game.get("relevant", 0) / rounds,
            "efficiency": 1 - (finish or rounds) / rounds,
            "finished": finish is not None,
            "rounds": game.get("round", 0),
        }
        return Score(success, {OP: success}, {**task_metrics(task, evidence, success), **metrics})
