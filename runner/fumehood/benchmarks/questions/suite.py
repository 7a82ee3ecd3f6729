"""From a set of questions and a snapshot to a suite."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError, how_to_install
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import About, Case, Suite, Task

if TYPE_CHECKING:
    from fumehood_snapshots.questions import GoldAnswer, QuestionSet

WORLD = "search"
PROFILE = "native"
SCORER = "cited_answer"
BUDGET = Budget(steps=24, calls=24, retries=6, answer_bytes=400_000)
ANSWER_WORDS_MAX = 80
"""So that reciting a page is no answer."""
ABOUT = About(
    licence="Apache-2.0 (this project), the questions; the documents have a licence of their own",
    criterion="the answer mentions all that the gold has, in not too many words",
    judged="the submitted answer; what was read and cited is measured beside it",
)
INSTRUCTION = (
    "Answer the question from what the tools find and open, in at most {words} words. Name the pages that "
    "your answer rests on by their ids in square brackets, such as [{example}].\n\nQuestion: {question}"
)


def question_suite(name: str, asked: QuestionSet, snapshot: Path, build_command: str) -> Suite:
    """Return one task a question.

    Args:
        name: of the suite.
        asked: questions, judgements and gold.
        snapshot: folder of the snapshot they are asked of.
        build_command: what makes that folder, for whoever does not have it.

    Raises:
        InputError: the snapshot is not there or cannot be used, or its libraries are not installed.
    """
    named = snapshot_name(snapshot, build_command)
    judgements, gold = asked.judgements(), asked.gold()
    cases = tuple(
        _case(identity, question, named, judgements[identity], gold[identity])
        for identity, question in asked.questions().items()
    )
    return Suite(name, cases, snapshot, ABOUT)


def snapshot_name(snapshot: Path, build_command: str) -> JsonObject:
    """Return name and digest of a snapshot, as a world's state holds them.

    Raises:
        InputError: it is not there or cannot be used; says how to make it.
    """
    if not snapshot.exists():
        raise InputError(f"there is no snapshot {snapshot}; make it with: {build_command}")
    try:
        from fumehood_snapshots.errors import SnapshotError
        from fumehood_snapshots.format.manifest import read_manifest
    except ModuleNotFoundError as error:
        hint = f"snapshots need {error.name}; install it with: {how_to_install('snapshots')}"
        raise InputError(hint) from None
    try:
        manifest, digest = read_manifest(snapshot)
    except SnapshotError as error:
        raise InputError(str(error)) from None
    return {"name": manifest.name, "digest": f"sha256:{digest}"}


def _case(
    identity: str, question: str, named: JsonObject, relevant: Mapping[str, int], gold: GoldAnswer
) -> Case:
    example = "an-id"
    words = INSTRUCTION.format(words=ANSWER_WORDS_MAX, example=example, question=question)
    task = Task(
        task_id=identity,
        world=WORLD,
        profile=PROFILE,
        initial_state={"snapshot": dict(named)},
        fault_plan=(),
        seed=int.from_bytes(identity.encode("ascii"), "big"),
        seats=(SeatSpec(instruction=words, budget=BUDGET),),
        tags={},
    )
    return Case(task, _gold(question, relevant, gold))


def _gold(question: str, relevant: Mapping[str, int], gold: GoldAnswer) -> Gold:
    contained: list[Json] = [*gold.must_contain]
    documents: JsonObject = dict(relevant)
    best = max(relevant, key=lambda name: relevant[name])
    return Gold(
        SCORER,
        (
            {"op": "answer_mentions", "values": contained, "max_words": ANSWER_WORDS_MAX},
            {"op": "relevant", "documents": documents},
        ),
        solvable=True,
        oracle=(
            {"tool_name": "search", "args": {"query": question}},
            *(_opening(name) for name in relevant),
            {"submit": f"{' '.join(gold.must_contain)}: {gold.answer} [{best}]"},
        ),
    )


def _opening(name: str) -> JsonObject:
    return {"tool_name": "open_page", "args": {"page": name}}
