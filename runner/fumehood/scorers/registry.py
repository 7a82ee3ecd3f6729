"""The protocols of scorers, the registry of all scorers, and the function that scores an
episode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from fumehood.core.evidence import Evidence
from fumehood.core.gold import Gold
from fumehood.core.outcome import Finished
from fumehood.core.registry import Registry
from fumehood.core.score import SEVERITY, UNDECIDED_SAFETY, Score, is_of_safety
from fumehood.core.task import Task
from fumehood.scorers.judges.question import Ask, Opinion, Question, no_judge
from fumehood.scorers.native_criteria import worst_severity

SCORABLE = "scorable"
"""Check of an attempt that cannot be scored within the limits, or that the judge cannot judge. The
metric ``not_scored`` is the reason."""
NOT_JUDGED = "judge"
"""Reason: the judge answers the question about an empty episode, but not about this one."""


class Scorer(Protocol):
    """Scores a finished episode from its evidence."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return the score.

        Args:
            task: that was attempted.
            gold: answers and criteria of the task.
            evidence: of the attempt, read from its trace.

        Raises:
            SpecError: a criterion is malformed and cannot be evaluated.
        """
        ...


@runtime_checkable
class JudgedScorer(Protocol):
    """A scorer that needs a judge for some criteria.

    The scorer states the questions; the caller asks the judge and passes the opinions back. Its
    ``score`` is the score without any opinion.
    """

    def questions(self, task: Task, gold: Gold, evidence: Evidence) -> Sequence[Question]:
        """Return the questions for a judge; empty if the score does not depend on them."""
        ...

    def score_with(
        self, task: Task, gold: Gold, evidence: Evidence, opinions: Mapping[str, Opinion]
    ) -> Score:
        """Return the score.

        Args:
            task: that was attempted.
            gold: answers and criteria of the task.
            evidence: of the attempt.
            opinions: question name → opinion.
        """
        ...


SCORERS: Registry[Callable[[], Scorer]] = Registry(
    "scorer",
    {
        "agentdojo": "fumehood.benchmarks.agentdojo.scorer:AgentDojo",
        "bfcl": "fumehood.benchmarks.bfcl.scorer:Bfcl",
        "browsecomp": "fumehood.benchmarks.browsecomp.scorer:BrowseComp",
        "card_game": "fumehood.benchmarks.cardgame.scorer:CardGame",
        "cited_answer": "fumehood.scorers.cited_answer:CitedAnswer",
        "dbbench": "fumehood.benchmarks.dbbench.scorer:DbBench",
        "injecagent": "fumehood.benchmarks.injecagent.scorer:InjecAgent",
        "knowledge_graph": "fumehood.benchmarks.knowledge.scorer:KnowledgeGraph",
        "lateral_thinking": "fumehood.benchmarks.lateral.scorer:LateralThinking",
        "marble": "fumehood.benchmarks.marble.scorer:Marble",
        "native": "fumehood.scorers.native:NativeScorer",
        "safetybench": "fumehood.benchmarks.safetybench.scorer:SafetyBench",
        "tau2": "fumehood.benchmarks.tau2.scorer:Tau2",
        "taubench": "fumehood.benchmarks.taubench.scorer:TauBench",
        "threatbench": "fumehood.benchmarks.threatbench.scorer:ThreatBench",
        "toolmisuse": "fumehood.benchmarks.toolmisuse.scorer:ToolMisuseScorer",
        "toolsandbox": "fumehood.benchmarks.toolsandbox.scorer:ToolSandbox",
        "webshop": "fumehood.benchmarks.webshop.scorer:WebShop",
        "workspace": "fumehood.scorers.verdict:WorkspaceScorer",
    },
)


def score_evidence(task: Task, gold: Gold, evidence: Evidence, ask: Ask = no_judge) -> Score:
    """Return the score by the scorer that the gold names.

    Args:
        task: that was attempted.
        gold: answers and criteria of the task.
        evidence: of the attempt.
        ask: answers the questions that need a judge.

    Raises:
        InputError: there is no such scorer.
        SpecError: a criterion is malformed and cannot be evaluated.
    """
    scorer = SCORERS.load(gold.scorer)()
    # An instance check of a Protocol takes longer than most scores.
    if not (hasattr(scorer, "questions") and isinstance(scorer, JudgedScorer)):
        return scorer.score(task, gold, evidence)
    questions = scorer.questions(task, gold, evidence)
    opinions = {question.name: ask(question) for question in questions}
    score = scorer.score_with(task, gold, evidence, opinions)
    unread = [question for question in questions if None in opinions[question.name].votes]
    undecided = [question for question in unread if opinions[question.name].answer is None]
    if not undecided:
        return score
    of_empty = scorer.questions(task, gold, empty(task))
    again, spent = _asked_again(undecided, opinions, of_empty, ask)
    if again:
        score = scorer.score_with(task, gold, evidence, opinions | again)
    blocked = [name for name, opinion in again.items() if opinion.is_blocked]
    return _with_blocked(_with_costs(score, spent), gold, blocked)


def empty(task: Task) -> Evidence:
    """Return the evidence of an episode with empty answers, no calls, and the initial state."""
    return Evidence(
        calls=(),
        refusals=(),
        ends={seat.name: Finished() for seat in task.seats},
        final_state=task.initial_state,
        fire_counts=(0,) * len(task.fault_plan),
        turn_answers={seat.name: ("",) * len(seat.further_turns) for seat in task.seats},
    )


def _asked_again(
    undecided: Sequence[Question],
    opinions: Mapping[str, Opinion],
    of_empty: Sequence[Question],
    ask: Ask,
) -> tuple[dict[str, Opinion], Counter[str]]:
    """Return new opinions on questions that a judge answers about another episode, and the cost.

    An opinion is blocked if the judge cannot be read only about this episode. If the judge did not
    answer at all, the question is asked again: another episode may have overloaded its provider.

    Args:
        undecided: questions of which the judge's reply could not be read.
        opinions: on these questions.
        of_empty: the questions about an episode in which the agent did nothing.
        ask: answers questions.
    """
    controls = {question.name: question for question in of_empty}
    again: dict[str, Opinion] = {}
    spent = Counter[str]()
    for question in undecided:
        opinion = opinions[question.name]
        without_texts = replace(question, texts=dict.fromkeys(question.texts, ""))
        control = ask(controls.get(question.name, without_texts))
        cost = Counter(control.spent)
        if control.answer is not None and opinion.is_lost:
            cost.update(opinion.spent)
            opinion = ask(question)
            if None not in opinion.votes:
                # Scoring from the stored replies finds this answer at once and asks no control.
                cost.clear()
        spent.update(cost)
        if control.answer is None:
            continue
        is_blocked = opinion.answer is None and None in opinion.votes
        again[question.name] = replace(opinion, is_blocked=is_blocked)
    return again, spent


def _with_costs(score: Score, spent: Mapping[str, int]) -> Score:
    metrics = dict(score.metrics)
    for kind, amount in spent.items():
        before = metrics.get(f"judge_{kind}", 0)
        metrics[f"judge_{kind}"] = amount + (before if isinstance(before, int) else 0)
    return replace(score, metrics=metrics)


def _with_blocked(score: Score, gold: Gold, blocked: Sequence[str]) -> Score:
    """Return a failure if an ungraded score lacks only answers to blocked questions.

    Otherwise an agent could avoid a failure with a text that the judge's provider refuses, or that
    makes the judge reply in another format. The safety checks of such questions do not hold.

    Args:
        score: without the answers to these questions.
        gold: answers and criteria of the task.
        blocked: questions that the judge does not answer because of what the agent did.
    """
    violated = dict.fromkeys(filter(is_of_safety, blocked), False)
    if not blocked or (score.success is not None and not violated):
        return score
    checks, metrics = {**score.checks, **violated}, dict(score.metrics)
    undecided = metrics.pop(UNDECIDED_SAFETY, 0)
    if isinstance(undecided, int) and (
        left := undecided - len(violated.keys() - score.checks.keys())
    ):
        metrics[UNDECIDED_SAFETY] = left
    if violated.keys() & gold.by_check().keys():
        metrics[SEVERITY] = worst_severity(gold.criteria, checks, [score.severity])
    if score.success is None:
        checks[SCORABLE] = False
        metrics["not_scored"] = NOT_JUDGED
    return Score(False, checks, metrics)
