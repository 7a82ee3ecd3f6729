"""Scores MARBLE's scenarios by rule and adds a judge's ratings as metrics."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from statistics import fmean

from fumehood.benchmarks.marble.world_werewolf import WOLF
from fumehood.core.evidence import Evidence
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.outcome import Finished
from fumehood.core.score import Score
from fumehood.core.task import Task
from fumehood.scorers.judges.question import Opinion, Question, judged_score
from fumehood.scorers.judges.transcript import transcript_of
from fumehood.scorers.native import NativeScorer, task_metrics

OPS = ("agreement", "won")
RATINGS = ("1", "2", "3", "4", "5")
ASKS = (
    "Several parties negotiate. How well did the {side}s pursue their own interest? Consider their "
    "reasons, their patience, and whether their offers fit their instructions. 1 is poor, 3 is "
    "average, 5 is excellent."
)


class Marble:
    """Scorer of MARBLE. Rules decide success; a judge's ratings are metrics."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return the score without ratings."""
        return self.score_with(task, gold, evidence, {})

    def questions(self, task: Task, gold: Gold, evidence: Evidence) -> Sequence[Question]:
        """Return one question per rated side."""
        rated = (_criterion(gold) or {}).get("rated")
        dialogue = {"dialogue": transcript_of(evidence)} if rated else {}
        return tuple(
            Question(
                name=f"rating_{side}", asks=ASKS.format(side=side), texts=dialogue, answers=RATINGS
            )
            for side in (rated if isinstance(rated, list) else ())
        )

    def score_with(
        self, task: Task, gold: Gold, evidence: Evidence, opinions: Mapping[str, Opinion]
    ) -> Score:
        """Return the score with the judge's ratings."""
        criterion = _criterion(gold)
        if criterion is None:
            return NativeScorer().score(task, gold, evidence)
        success, metrics = _apply_rule(criterion, evidence)
        # A seat that left its episode does not succeed, even if the others reach the goal.
        success = success and isinstance(evidence.ends.get(task.seats[0].name), Finished)
        ratings: JsonObject = {
            name: None if opinion.answer is None else int(opinion.answer)
            for name, opinion in opinions.items()
        }
        rated = [rating for rating in ratings.values() if isinstance(rating, int)]
        if rated:
            metrics["task_completion"] = fmean(rated) / len(RATINGS)
        all_metrics = {**task_metrics(task, evidence, success), **metrics, **ratings}
        return judged_score({str(criterion["op"]): success}, opinions.values(), all_metrics)


def _criterion(gold: Gold) -> Mapping[str, Json] | None:
    return next((item for item in gold.criteria if item.get("op") in OPS), None)


def _apply_rule(criterion: Mapping[str, Json], evidence: Evidence) -> tuple[bool, JsonObject]:
    if criterion["op"] == "won":
        game = evidence.final_state.get("game")
        players = evidence.final_state.get("players")
        wolves = {
            player.get("name")
            for player in (players if isinstance(players, list) else ())
            if isinstance(player, dict) and player.get("role") == WOLF
        }
        return score_game(game if isinstance(game, dict) else {}, criterion.get("side"), wolves)
    agreement = evidence.final_state.get("agreement")
    price = agreement.get("price") if isinstance(agreement, dict) else None
    return agreement is not None, {"price": price, "turns": evidence.final_state.get("turns", 0)}


def score_game(
    game: Mapping[str, Json], side: Json, wolves: Collection[Json]
) -> tuple[bool, JsonObject]:
    """Return whether ``side`` won a game of werewolf, and its metrics.

    Args:
        game: The state of the game at its end.
        side: One of ``SIDES``.
        wolves: Names of the players who are wolves.
    """
    deaths, tenths = game.get("deaths"), game.get("tenths")
    living = game.get("alive")
    alive = living if isinstance(living, list) else []
    living_wolves = len([name for name in alive if name in wolves])
    counts: JsonObject = {
        "survivors": len(alive),
        "result_score": len(alive) - 2 * living_wolves,
        **{
            f"process_score_{name}": amount / 10
            for name, amount in (tenths.items() if isinstance(tenths, dict) else ())
            if isinstance(amount, int)
        },
        "deaths": len(deaths) if isinstance(deaths, list) else 0,
        "days": game.get("day", 0),
    }
    return game.get("winner") == side, {**counts, "winner": game.get("winner")}
