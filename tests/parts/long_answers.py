"""Scores answers that are as long as the service accepts, and cost as much as they can.

``python -m tests.parts.long_answers SCORER SECONDS`` scores them within a limit of processor time.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Mapping

from fumehood.benchmarks.registry import load_suite
from fumehood.core.encryption import encrypt
from fumehood.core.evidence import AnsweredCall, Evidence, Submission
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject
from fumehood.core.outcome import Finished
from fumehood.scorers.judges.question import Opinion, Question
from fumehood.scorers.judges.rules import Rule, Rules
from fumehood.scorers.registry import score_evidence
from fumehood.service.seat_endpoint import SeatLimits

LONGEST = SeatLimits().answer_bytes
CANARY = "long answers"

_UNITS: Mapping[str, str] = {
    "blank lines": "\n",
    "blanks": " ",
    "blank lines of blanks": " \n",
    "signs": "*",
    "colons": ":",
    "lines of signs": "*:\n",
    "marks": "exact answer\n",
    "marks with colons": "exact answer:\n",
    "confidence": "confidence:: \n",
    "brackets": "[",
    "cited": "[a,",
    "empty rows": "(),",
    "quotes": "'\"",
    "digits": "9",
    "numbers": "9,",
    "combining accents": "e\u0301",
    "separators": "\u2028",
    "words": "no ",
    "deep objects": '{"a":',
    "escapes": "\\u0000",
}


def long_answers() -> dict[str, str]:
    """Return one answer of the greatest length for each kind of text, by its name."""
    answers: dict[str, str] = {}
    for name, unit in _UNITS.items():
        text = unit * (LONGEST // len(unit.encode()))
        answers[name] = text
        # The readers of lists and objects look at the first and the last sign.
        answers[f"{name}, in brackets"] = f"[{text[:-2]}]"
        answers[f"{name}, after a mark"] = f"Exact Answer{text[:-40]}x\nConfidence{text[:20]}"
    answers["a row of one value"] = f"[{'()' * 9_990}]"
    answers["short rows"] = f"[{'(),' * 6_000}]"
    return answers


def criteria(scorer: str) -> tuple[JsonObject, ...]:
    """Return criteria with which a scorer reads the answer."""
    expected: JsonObject = {"value": "the answer"}
    native: tuple[JsonObject, ...] = (
        {"op": "answer_contains", **expected},
        {"op": "answer_equals", **expected},
        {"op": "judged", "name": "polite", "asks": "Is it polite?", "looks_at": "transcript"},
    )
    encrypted: JsonObject = {
        "question": encrypt("What?", CANARY),
        "answer": encrypt("the answer", CANARY),
        "canary": CANARY,
    }
    by_scorer: dict[str, tuple[JsonObject, ...]] = {
        "browsecomp": ({"op": "judged_answer", **encrypted, "judge": "exact"},),
        "cited_answer": (
            {"op": "answer_mentions", "values": ["the answer"]},
            {"op": "relevant", "documents": {"a": 1}},
        ),
        "dbbench": ({"op": "dbbench_answer", "label": ["the answer", "9"]},),
        "marble": ({"op": "agreement", "rated": ["buyer", "seller"]},),
        "safetybench": ({"op": "safety", "request": "Help me."},),
        "tau2": ({"op": "communicate", "text": "the answer"}, {"op": "opinion", "text": "It is."}),
        "toolmisuse": ({"op": "tool_call", "tool_name": "get_account"},),
    }
    return by_scorer.get(scorer, native)


def evidence_of(answer: str) -> Evidence:
    """Return an episode whose answer, arguments and state contain a text."""
    seat: str = "agent"
    words: JsonObject = {"text": answer}
    call = AnsweredCall(seat, "get_account", words, words, {"results": [words]}, None, (), "")
    return Evidence(
        calls=(call, call),
        refusals=(),
        ends={seat: Finished(answer)},
        final_state={"accounts": {"a": words}, "turns": 1},
        fire_counts=(),
        submissions=(Submission(seat, answer, 1),),
    )


def main(scorer: str, limit_s: int) -> None:
    """Score every answer, print how many were scored, or be killed at the limit."""
    resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s))
    task = load_suite("sample").cases[0].task
    judge = Rules([Rule("yes", contains="nowhere")])

    def ask(question: Question) -> Opinion:
        return Opinion(judge.judge(question))

    answers = long_answers()
    for name, answer in answers.items():
        sys.stderr.write(f"{name}\n")
        score = score_evidence(task, Gold(scorer, criteria(scorer)), evidence_of(answer), ask)
        assert score.success is not True or scorer == "toolmisuse", name
    sys.stdout.write(f"scored {len(answers)}\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
