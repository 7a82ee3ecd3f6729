"""Scores MARBLE's scenarios by rule and by the ratings of a judge."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from statistics import fmean, median

from fumehood.benchmarks.marble.judge_prompts import (
    COMMUNICATION,
    MILESTONES,
    PLANNING,
    RATING_MAX,
    RATINGS,
    contributions,
    filled,
    read_milestones,
    read_ratings,
    read_score,
    read_side_ratings,
)
from fumehood.benchmarks.marble.team_result import SOLUTION, result_of_team
from fumehood.benchmarks.marble.world_bargaining import SIDES
from fumehood.benchmarks.marble.world_werewolf import WOLF
from fumehood.core.conversation import indent_continuation
from fumehood.core.errors import SpecError
from fumehood.core.evidence import Evidence
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.outcome import Finished
from fumehood.core.score import Score
from fumehood.core.task import Task
from fumehood.scorers.judges.prompt import TEXT_CHARS_MAX
from fumehood.scorers.judges.question import Opinion, Question, judged_score
from fumehood.scorers.judges.transcript import transcript_of
from fumehood.scorers.native import NativeScorer, task_metrics

RATED = ("research", "coding")
COMPLETION = "task_completion"
"""Metric: the task completion score; None if no rating is known."""
OPS = ("agreement", "won", "root_causes", *RATED)
ANSWERS = ("1", "2", "3", "4", "5")
ASKS = (
    "Several parties negotiate. How well did the {side}s pursue their own interest? Consider their "
    "reasons, their patience, and whether their offers fit their instructions. 1 is poor, 3 is "
    "average, 5 is excellent."
)
SUCCESS_MEAN = 3.0
"""Least mean rating of a task that succeeds. MARBLE defines no success; its scales call 3 average
or good."""
AGENT_RESULTS_CHARS_MAX = 7200
"""Limit of the text from which milestones are read. Source: ``evaluate_kpi``."""
_ROOT_CAUSES = re.compile(r"^[^\w\n]*root causes?[^\w\n]*:(.*)$", re.IGNORECASE | re.MULTILINE)
"""An agent wrote the text, so the time must be linear."""


class Marble:
    """Scorer of MARBLE. Rules decide success, or a judge's ratings in research and coding."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return the score without ratings."""
        return self.score_with(task, gold, evidence, {})

    def questions(self, task: Task, gold: Gold, evidence: Evidence) -> Sequence[Question]:
        """Return the questions of the published prompts, and else one question per rated side."""
        criterion = _criterion(gold) or {}
        prompts = criterion.get("prompts")
        if isinstance(prompts, dict) and prompts:
            return _published_questions(criterion, prompts, evidence)
        rated = criterion.get("rated")
        dialogue = {"dialogue": transcript_of(evidence)} if rated else {}
        return tuple(
            Question(
                name=f"rating_{side}", asks=ASKS.format(side=side), texts=dialogue, answers=ANSWERS
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
        op = str(criterion["op"])
        success: bool | None
        if op in RATED:
            success, metrics = _rated(op, evidence, opinions)
        elif op == "root_causes":
            success, metrics = score_causes(criterion, _result(op, evidence))
        else:
            success, metrics = _apply_rule(criterion, evidence)
            metrics |= _side_ratings(criterion, opinions)
        # A seat that left its episode does not succeed, even if the others reach the goal.
        if not isinstance(evidence.ends.get(task.seats[0].name), Finished):
            success = False
        metrics |= _team_metrics(len(task.seats), opinions)
        metrics = {**task_metrics(task, evidence, success is True), **metrics}
        return judged_score({op: success}, opinions.values(), metrics)


def _criterion(gold: Gold) -> Mapping[str, Json] | None:
    return next((item for item in gold.criteria if item.get("op") in OPS), None)


def _last_text(evidence: Evidence) -> str:
    return evidence.submissions[-1].text if evidence.submissions else ""


def _result(op: str, evidence: Evidence) -> str:
    """Return what the team states as its result, or its program; empty if there is none."""
    stated = result_of_team(_last_text(evidence))
    files = evidence.final_state.get("files")
    program = files.get(SOLUTION) if isinstance(files, dict) else None
    return stated if op != "coding" else str(program or "").strip()


def _published_questions(
    criterion: Mapping[str, Json], prompts: Mapping[str, Json], evidence: Evidence
) -> tuple[Question, ...]:
    op, task = str(criterion["op"]), str(criterion.get("task"))
    transcript = transcript_of(evidence)
    said = "\n".join(
        indent_continuation(f"{message.seat}: {message.text}") for message in evidence.submissions
    )
    result = _result(op, evidence) if op != "agreement" else transcript
    results = transcript[:AGENT_RESULTS_CHARS_MAX]
    values = {
        "task": task,
        "task_description": task,
        "requirements": str(criterion.get("requirements")),
        "result": result,
        "solution": result,
        "summary": result,
        "agent_profiles": str(criterion.get("profiles")),
        "agent_tasks": f"All agents: {task}",
        "results": transcript,
        "agent_results": results if results == transcript else f"{results}...",
        "communications": said,
    }
    values = {name: text[:TEXT_CHARS_MAX] for name, text in values.items()}
    return tuple(
        Question(
            name=name,
            asks=name,
            texts={"result": values["result"], "transcript": transcript},
            answers=(),
            published=filled(str(template), values),
        )
        for name, template in prompts.items()
    )


def _rated(
    op: str, evidence: Evidence, opinions: Mapping[str, Opinion]
) -> tuple[bool | None, JsonObject]:
    """Return whether the mean rating is high enough; None without a judge's reply. A reply that is
    missing because of the agent gives zero."""
    zero: JsonObject = {
        **dict.fromkeys((f"rating_{name}" for name in RATINGS[op]), 0),
        COMPLETION: 0.0,
    }
    if not _result(op, evidence):
        return False, zero
    reply = _reply(opinions[op]) if op in opinions else None
    if reply is None:
        return None, {}
    if opinions[op].is_blocked:
        return False, zero
    ratings = read_ratings(reply, op)
    own = [ratings.get(name, 0) for name in RATINGS[op]]
    if not all(1 <= rating <= RATING_MAX for rating in own):
        return False, zero
    metrics: JsonObject = {f"rating_{name}": ratings[name] for name in RATINGS[op]}
    return fmean(own) >= SUCCESS_MEAN, {**metrics, **_completion(own)}


def _side_ratings(criterion: Mapping[str, Json], opinions: Mapping[str, Opinion]) -> JsonObject:
    ratings: JsonObject = {}
    for side in SIDES:
        name = f"rating_{side}"
        if name not in opinions:
            continue
        answer = _reply(opinions[name])
        if answer is None:
            ratings[name] = None if criterion.get("prompts") else _median(opinions[name])
        elif criterion.get("prompts"):
            # A text of the agent can make a reply unreadable.
            own = read_side_ratings(answer)[side].values()
            ratings[name] = fmean(own) if all(1 <= one <= RATING_MAX for one in own) else 0.0
        else:
            ratings[name] = int(answer or 0)
    rated = [rating for rating in ratings.values() if isinstance(rating, int | float)]
    if not ratings:
        return {}
    # Without one of the ratings, the share is unknown; success does not show it.
    return ratings | (_completion(rated) if len(rated) == len(ratings) else {COMPLETION: None})


def _median(opinion: Opinion) -> float | None:
    """Return the median of votes that differ; None if one could not be read."""
    ratings = [int(vote) for vote in opinion.votes if vote is not None]
    return median(ratings) if ratings and len(ratings) == len(opinion.votes) else None


def _reply(opinion: Opinion) -> str | None:
    """Return the reply of the judge; an empty one if the agent caused that there is none."""
    return "" if opinion.answer is None and opinion.is_blocked else opinion.answer


def _completion(ratings: Sequence[float]) -> JsonObject:
    """Return the task completion score. Source: *A Unified Framework*, equation 8."""
    return {COMPLETION: fmean(ratings) / RATING_MAX}


def _team_metrics(seats: int, opinions: Mapping[str, Opinion]) -> JsonObject:
    """Return the milestones and the scores of the team's work, if the judge was asked for them.

    Source of ``milestone_kpi``, the mean share of the milestones to which an agent contributed, and
    of ``coordination``: MultiAgentBench (arXiv 2503.01935), section 3.3.
    """
    replies = {name: _reply(opinion) for name, opinion in opinions.items()}
    metrics: JsonObject = {}
    scores = []
    for name in (PLANNING, COMMUNICATION):
        if (reply := replies.get(name)) is not None:
            scores.append(0 if opinions[name].is_blocked else read_score(reply))
            metrics[f"rating_{name}"] = scores[-1]
    if scores:
        metrics["rating_coordination"] = fmean(scores)
    if (reply := replies.get(MILESTONES)) is not None:
        milestones = read_milestones(reply)
        metrics["milestones"] = len(milestones)
        # Without milestones, no agent contributed. A mean over good attempts only would be wrong.
        shares = sum(contributions(milestones).values()) / max(1, len(milestones))
        metrics["milestone_kpi"] = min(1.0, shares / seats)
    return metrics


def score_causes(criterion: Mapping[str, Json], text: str) -> tuple[bool, JsonObject]:
    """Return whether all root causes are named in the last line "Root causes: …" of a text.

    A line with another name, or with more names than permitted, names none. Source: the original's
    ``scripts/database/batch_eval.py`` counts the share of the root causes among the names, which a
    model reads from the text; *A Unified Framework*, equation 9.
    """
    match criterion:
        case {"labels": list(labels), "root_causes": list(causes), "names_max": int(names_max)}:
            lines = _ROOT_CAUSES.findall(text)
            words = (
                [word.strip(" .*`'\"[]").upper() for word in lines[-1].split(",")] if lines else []
            )
            named = set(words)
            if not named <= set(map(str, labels)) or len(named) > names_max:
                named = set()
            share = len(named & set(map(str, causes))) / len(causes)
            return share == 1.0, {COMPLETION: share, "causes_named": len(named)}
    raise SpecError("criteria.root_causes", "needs labels, root_causes and names_max")


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
