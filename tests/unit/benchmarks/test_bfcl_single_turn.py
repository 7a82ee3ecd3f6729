"""Tests of BFCL's single-turn categories: calls are compared with gold."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.benchmarks.bfcl.package import tools_of
from fumehood.benchmarks.bfcl.source_values import written_arguments
from fumehood.benchmarks.bfcl.tasks import SINGLE_TURN, UNSOLVABLE, Bfcl
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.core.ledger import BudgetKind
from fumehood.core.outcome import OutOfBudget
from fumehood.core.task import Case
from fumehood.third_party.process import QuestionFailed
from tests.parts.bfcl_gold import FAULTY, with_all_arguments
from tests.parts.installed import installed
from tests.unit.benchmarks.scoring import play, score_episode

installed("bfcl_eval", "mpmath")

PYTHON = {
    "simple_python": 400,
    "multiple": 200,
    "parallel": 200,
    "parallel_multiple": 200,
    "live_simple": 258,
    "live_multiple": 1053,
    "live_parallel": 16,
    "live_parallel_multiple": 24,
}
SOURCE_TEXT = {"simple_java": 100, "simple_javascript": 50}
CONVERTERS = "bfcl_eval.eval_checker.ast_eval.type_convertor"
NO_CALL: Move = {"submit": ""}


@pytest.mark.slow
@pytest.mark.parametrize(("category", "tasks"), {**PYTHON, **SOURCE_TEXT}.items())
def test_gold_calls_are_valid_and_the_no_op_is_not(category: str, tasks: int) -> None:
    cases = Bfcl().load(f"{category}").cases
    assert len(cases) == tasks
    for case in cases[:: 1 if category in SOURCE_TEXT else max(1, tasks // 5)]:
        is_solvable = case.task.task_id not in UNSOLVABLE
        assert play(case, case.gold.oracle or ()).success is is_solvable, case.task.task_id
        assert play(case, (NO_CALL,)).success is False, case.task.task_id


@pytest.mark.slow
def test_seven_tasks_are_marked_unsolvable() -> None:
    marked = {
        case.task.task_id
        for category in (*PYTHON, *SOURCE_TEXT)
        for case in Bfcl().load(category).cases
        if case.gold.solvable is False
    }
    assert marked == UNSOLVABLE
    assert len(UNSOLVABLE) == 7


@pytest.mark.parametrize("category", PYTHON)
def test_gold_with_all_arguments_fails_in_seven_tasks(category: str) -> None:
    suite = Bfcl().load(category)
    faulty = [case for case in suite.cases if case.task.task_id in FAULTY]
    sampled = replace(suite, cases=(*faulty, *suite.cases[:: max(1, len(suite.cases) // 20)]))
    for case in with_all_arguments(sampled).cases:
        right = case.task.task_id not in FAULTY
        assert play(case, case.gold.oracle or ()).success is right, case.task.task_id


def test_the_oracle_solves_three_of_the_seven() -> None:
    assert len(FAULTY) == 7
    assert {
        "parallel_multiple_12",
        "parallel_multiple_26",
        "live_multiple_507-149-4",
    } == FAULTY - UNSOLVABLE
    for category in ("parallel_multiple", "live_multiple"):
        for case in Bfcl().load(category).cases:
            if case.task.task_id in FAULTY - UNSOLVABLE:
                assert play(case, case.gold.oracle or ()).success is True


@pytest.mark.parametrize(
    ("category", "tasks"), {"irrelevance": 240, "live_irrelevance": 884}.items()
)
def test_irrelevance_requires_no_call(category: str, tasks: int) -> None:
    cases = Bfcl().load(category).cases
    assert len(cases) == tasks
    functions = cases[0].task.initial_state["functions"]
    assert isinstance(functions, list)
    assert isinstance(functions[0], dict)
    call: Move = {"tool_name": str(functions[0]["name"]), "args": {}}
    assert play(cases[0], (NO_CALL,)).success is True
    assert play(cases[0], (call, NO_CALL)).success is False


@pytest.mark.slow
def test_a_call_of_an_invented_function_counts() -> None:
    invented: Move = {"tool_name": "invented", "args": {}}
    irrelevant = Bfcl().load("irrelevance").cases[0]
    assert play(irrelevant, (invented, NO_CALL)).success is False
    relevant = Bfcl().load("live_relevance").cases[0]
    assert play(relevant, (invented, NO_CALL)).success is True
    simple = Bfcl().load("simple_python").cases[0]
    oracle = simple.gold.oracle or ()
    assert play(simple, oracle).success is True
    score = play(simple, (invented, *oracle))
    assert (score.success, score.metrics["error_type"]) == (
        False,
        "simple_function_checker:wrong_count",
    )


@pytest.mark.slow
def test_every_tool_has_a_name_that_providers_accept() -> None:
    for category in SINGLE_TURN:
        for case in Bfcl().load(category).cases:
            functions = case.task.initial_state["functions"]
            assert isinstance(functions, list)
            documents = [document for document in functions if isinstance(document, dict)]
            names = [tool.name for tool in tools_of(documents)]
            assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names)
            assert len(set(names)) == len(names)


def test_only_the_first_model_message_is_scored() -> None:
    simple = Bfcl().load("simple_python").cases[0]
    assert simple.task.seats[0].budget.to_json()["model_calls"] == 1
    calls = (simple.gold.oracle or ())[:-1]
    evidence = play_in_memory(simple.task, (*calls, {"give_up": "ends"}))
    for kind, replies, success in (
        (BudgetKind.MODEL_CALLS, 1, True),
        (BudgetKind.MODEL_CALLS, 0, False),
        (BudgetKind.STEPS, 1, False),
    ):
        ended = replace(
            evidence, ends={"agent": OutOfBudget(kind)}, model_replies={"agent": replies}
        )
        assert score_episode(simple.task, simple.gold, ended).success is success


def _case(category: str, number: int) -> Case:
    return Bfcl().load(category).cases[number]


def _success_with(case: Case, **changed: object) -> object:
    (call, *rest) = case.gold.oracle or ()
    arguments = call["args"]
    assert isinstance(arguments, dict)
    altered: Move = {"tool_name": call["tool_name"], "args": {**arguments, **changed}}  # type: ignore[dict-item]
    return play(case, (altered, *rest)).success


def test_parameters_of_java_and_javascript_are_texts_that_describe_their_type() -> None:
    for category, number, name, words in (
        ("simple_java", 24, "ids", "elements are of type integer"),
        ("simple_java", 1, "object", "any type of Java object"),
        ("simple_javascript", 20, "options", "JavaScript dict type"),
    ):
        functions = _case(category, number).task.initial_state["functions"]
        (tool,) = tools_of(functions)  # type: ignore[arg-type]
        properties = tool.parameters["properties"]
        assert isinstance(properties, dict)
        assert {parameter["type"] for parameter in properties.values()} == {"string"}  # type: ignore[index,call-overload]
        assert words in properties[name]["description"]  # type: ignore[index,call-overload,operator]
        assert "items" not in properties[name]  # type: ignore[operator]


def test_values_in_another_notation_of_the_language_are_accepted() -> None:
    java = _case("simple_java", 24)
    assert _success_with(java, ids="new ArrayList<Integer>() {{ add(101); add(102); add(103); }}")
    assert not _success_with(java, ids="[101, 102, 103]")
    assert not _success_with(java, ids=[101, 102, 103]), "a value is text"
    seconds = _case("simple_java", 34)
    assert _success_with(seconds, delay="5l")
    assert not _success_with(seconds, delay="5")
    script = _case("simple_javascript", 24)
    assert _success_with(script, array="new Array(3, 1, 2, 1, 4, 3)")
    assert not _success_with(script, array="[3, 1, 2, 1, 4, 3.5]")
    options = _case("simple_javascript", 20)
    assert _success_with(options, options="{'stopPropagation': true}")
    assert not _success_with(options, options="{'stopPropagation': false}")


@pytest.mark.release
def test_a_text_that_the_converter_reads_for_too_long_is_a_failure() -> None:
    case = _case("simple_javascript", 24)
    with pytest.raises(QuestionFailed, match="exceeded its processor time"):
        _success_with(case, array="[" + "[a]," * 60)


scalars = st.one_of(
    st.booleans(), st.integers(-(2**31), 2**31), st.from_regex(r"[a-z]{1,8}", fullmatch=True)
)


@given(number=st.integers(-(2**63), 2**63 - 1), part=st.floats(-1e6, 1e6), flag=st.booleans())
def test_written_scalars_are_read_as_the_same_values(number: int, part: float, flag: bool) -> None:
    java, script = _converters()
    for kind, value, written_in_java in (
        *(("integer", number, True), ("long", number, True), ("double", part, True)),
        *(("float", part, True), ("boolean", flag, True), ("integer", number, False)),
        *(("Bigint", number, False), ("Boolean", flag, False)),
    ):
        document = {"a": {"type": kind}}
        category = "simple_java" if written_in_java else "simple_javascript"
        written = written_arguments({"a": value}, document, category)["a"]
        assert (java if written_in_java else script)(written, kind) == value


@pytest.mark.slow
@given(
    numbers=st.lists(st.integers(-(2**31), 2**31), min_size=1),
    texts=st.lists(st.from_regex(r"[a-z -]{1,8}", fullmatch=True), min_size=1),
    members=st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), scalars, min_size=1),
)
def test_written_collections_are_read_as_the_same_values(
    numbers: list[int], texts: list[str], members: dict[str, object]
) -> None:
    java, script = _converters()
    for kind, items, value in (
        ("ArrayList", "integer", numbers),
        ("ArrayList", "long", numbers),
        ("ArrayList", "String", texts),
        ("Array", "integer", numbers),
    ):
        document = {"a": {"type": kind, "items": {"type": items}}}
        assert java(_written(value, document, "simple_java"), kind, items) == value
    for kind, items, value in (("array", "integer", numbers), ("array", "String", texts)):
        document = {"a": {"type": kind, "items": {"type": items}}}
        assert script(_written(value, document, "simple_javascript"), kind, items) == value
    map_document = {"a": {"type": "HashMap"}}
    assert java(_written(members, map_document, "simple_java"), "HashMap") == members


def _written(value: object, document: dict[str, Any], category: str) -> str:
    return str(written_arguments({"a": value}, document, category)["a"])


def _converters() -> tuple[Any, Any]:
    names = ("java", "js")
    modules = [import_module(f"{CONVERTERS}.{name}_type_converter") for name in names]
    return modules[0].java_type_converter, modules[1].js_type_converter
