"""MARBLE's scenarios: what of them a rule decides, and beside it what a judge thinks of how it was done."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fumehood.core.evidence import Evidence
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.outcome import Finished
from fumehood.core.score import Score
from fumehood.core.task import Task
from fumehood.scorers.judges.question import Opinion, Question
from fumehood.scorers.judges.transcript import transcript_of
from fumehood.scorers.judges.verdicts import judged_score
from fumehood.scorers.native import NativeScorer, task_metrics

OPS = ("root_causes", "agreement", "won")
RATINGS = ("1", "2", "3", "4", "5")
ASKS = (
    "Several parties bargain. How well did the {side}s pursue their own interest: by reasons, patience, and "
    "offers that fit what they were told to want? 1 is poor, 3 is what could be expected, 5 is excellent."
)
_NAMED = re.compile(r"^\W*root causes?\W*:\s*(.+)$", re.IGNORECASE | re.MULTILINE)


class Marble:
    """Success is by rule alone; ratings stand among the metrics."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return the verdict, without ratings."""
        return self.score_with(task, gold, evidence, {})

    def questions(self, task: Task, gold: Gold, evidence: Evidence) -> Sequence[Question]:
        """Ask how well each side did, where that is rated."""
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
        """Return the verdict, and what was rated."""
        criterion = _criterion(gold)
        if criterion is None:
            return NativeScorer().score(task, gold, evidence)
        success, metrics = _decided(criterion, task, evidence)
        # Whoever left did not win it, agree on it or find it out, whatever the others did then.
        success = success and isinstance(evidence.ends.get(task.seats[0].name), Finished)
        ratings: JsonObject = {
            name: None if opinion.answer is None else int(opinion.answer)
            for name, opinion in opinions.items()
        }
        told = {**task_metrics(task, evidence, success), **metrics, **ratings}
        return judged_score({str(criterion["op"]): success}, opinions.values(), told)


def _criterion(gold: Gold) -> Mapping[str, Json] | None:
    return next((each for each in gold.criteria if each.get("op") in OPS), None)


def _decided(
    criterion: Mapping[str, Json], task: Task, evidence: Evidence
) -> tuple[bool, JsonObject]:
    match criterion:
        case {
            "op": "root_causes",
            "wanted": list(wanted),
            "labels": list(labels),
            "most": int(most),
        }:
            named = named_causes(
                _last_words(task, evidence), [str(label) for label in labels], most
            )
            share = len({str(each) for each in wanted} & set(named)) / len(wanted)
            return share == 1.0, {"causes_found": share, "causes_named": len(named)}
        case {"op": "won", "side": side}:
            game = evidence.final_state.get("game")
            return _won(game if isinstance(game, dict) else {}, side)
    agreement = evidence.final_state.get("agreement")
    price = agreement.get("price") if isinstance(agreement, dict) else None
    return agreement is not None, {"price": price, "turns": evidence.final_state.get("turns", 0)}


def named_causes(text: str, labels: Sequence[str], most: int) -> tuple[str, ...]:
    """Return the labels of the last line "Root causes: …"; nothing where one is unknown or they are too many.

    Source: the original scores the share of the gold labels among those named; it has a model read them from
    the text.
    """
    lines = _NAMED.findall(text)
    words = [word.strip(" .*`'\"[]").upper() for word in lines[-1].split(",")] if lines else []
    known = {label.upper(): label for label in labels}
    named = dict.fromkeys(known.get(word, "") for word in words)
    return () if "" in named or len(named) > most else tuple(named)


def _won(game: Mapping[str, Json], side: Json) -> tuple[bool, JsonObject]:
    alive, deaths = game.get("alive"), game.get("deaths")
    counts: JsonObject = {
        "survivors": len(alive) if isinstance(alive, list) else 0,
        "deaths": len(deaths) if isinstance(deaths, list) else 0,
        "days": game.get("day", 0),
    }
    return game.get("winner") == side, {**counts, "winner": game.get("winner")}


def _last_words(task: Task, evidence: Evidence) -> str:
    first = task.seats[0].name
    return next((one.text for one in reversed(evidence.said) if one.seat == first), "")
