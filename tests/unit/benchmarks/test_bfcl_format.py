"""Tests of BFCL's format_sensitivity: calls as text, in 26 forms of prompt."""

from __future__ import annotations

import pytest

from fumehood.benchmarks.bfcl.format_tasks import FORMS
from fumehood.benchmarks.bfcl.prompting import calculate
from fumehood.benchmarks.bfcl.tasks import Bfcl
from fumehood.core.task import Case
from tests.parts.installed import installed
from tests.unit.benchmarks.scoring import play

installed("bfcl_eval", "mpmath")


@pytest.fixture(scope="module")
def cases() -> tuple[Case, ...]:
    return tuple(Bfcl().load("format_sensitivity").cases)


@pytest.mark.slow
def test_each_of_the_200_entries_has_every_form(cases: tuple[Case, ...]) -> None:
    assert len(FORMS) == 26
    assert len(cases) == 200 * len(FORMS)
    assert [case.task.tags["form"] for case in cases[:26]] == list(FORMS)
    assert len({case.task.task_id for case in cases}) == len(cases)


@pytest.mark.slow
def test_gold_is_valid_in_every_form_and_in_no_other_form(cases: tuple[Case, ...]) -> None:
    by_form = dict(zip(FORMS, cases[:26], strict=True))
    for form, case in by_form.items():
        (move,) = case.gold.oracle or ()
        assert play(case, (move,)).success is True, form
        assert play(case, ({"submit": ""},)).success is False, form
    python, json = by_form[FORMS[0]], by_form[FORMS[6]]
    score = play(json, python.gold.oracle or ())
    assert (score.success, score.metrics["error_type"]) == (
        False,
        "simple_function_checker:wrong_count",
    )
    untagged = by_form[FORMS[3]]
    score = play(python, untagged.gold.oracle or ())
    assert (score.success, score.metrics["error_type"]) == (False, "ast_decoder:decoder_failed")


def test_prompts_contain_original_names_and_the_sentence_twice(cases: tuple[Case, ...]) -> None:
    prompt = cases[0].task.seats[0].instruction
    assert "math.gcd" in prompt
    assert prompt.count("Note that the provided function is in Python 3 syntax.") == 2


def test_code_in_an_answer_is_not_executed(cases: tuple[Case, ...]) -> None:
    case = next(case for case in cases if case.task.tags["form"] == FORMS[3])
    score = play(case, ({"submit": "[math.gcd(num1=20 + 20, num2=50)]"},))
    assert score.success is True, "arithmetic is calculated, as in the original"
    score = play(case, ({"submit": "[math.gcd(num1=__import__('os').getpid() + 1, num2=50)]"},))
    assert score.metrics["error_type"] == "ast_decoder:decoder_failed"


def test_only_arithmetic_and_sums_of_texts_are_calculated() -> None:
    assert calculate("-2 * (3 + 4)") == -14
    assert calculate("'a' + 'b'") == "ab"
    for source in ("'a' * 10", "9 ** 9", "open('x')", "'%9d' % 1", "a + 1", "[1] + [2]"):
        with pytest.raises(ValueError, match="not arithmetic"):
            calculate(source)
