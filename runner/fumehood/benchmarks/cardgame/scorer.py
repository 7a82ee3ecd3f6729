"""Scores the card game by the original's measure."""

from __future__ import annotations

from typing import Any

from fumehood.benchmarks.cardgame.rules import HP, living
from fumehood.core.evidence import Evidence
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject
from fumehood.core.score import Score
from fumehood.core.task import Task
from fumehood.scorers.native import NativeScorer, task_metrics

OP = "game_won"


class CardGame:
    """Scorer of the card game: success is a won game."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return the score. Source: ``judger/cal_metric.py`` and ``task.py`` of the original."""
        criterion = gold.criterion(OP)
        if criterion is None:
            return NativeScorer().score(task, gold, evidence)
        side: Any = criterion["side"]
        game: Any = evidence.final_state.get("game") or {"winner": None, "teams": [[], []]}
        won = game["winner"] == side
        enemies = game["teams"][1 - side]
        damage = sum(HP - max(fish["hp"], 0) for fish in enemies)
        metrics: JsonObject = {
            "score": 0.7 * won + min(0.3, 0.3 * damage / (4 * HP)),
            "damage": damage,
            "defeated": len(enemies) - len(living(enemies)),
            "forfeited": bool(game.get("forfeited")) and not won,
            "game_turns": game.get("turns", 0),
        }
        return Score(won, {OP: won}, {**task_metrics(task, evidence, won), **metrics})
