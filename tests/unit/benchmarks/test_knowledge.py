"""Tests of the knowledge graph on this project's questions, with a small SPARQL endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fumehood.benchmarks.knowledge.graph import ONTOLOGY, QueryFailed, select
from fumehood.benchmarks.knowledge.world import PARAMETERS
from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.core.errors import InfraError, InputError
from fumehood.core.task import Case
from tests.parts.benchmark_slices import play as play_through_service
from tests.parts.folders import short_folder
from tests.parts.knowledge import endpoint, records, write_checkout
from tests.unit.benchmarks.scoring import play


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with endpoint() as address:
        yield address


@pytest.fixture
def checkout() -> Iterator[Path]:
    with short_folder() as folder:
        yield write_checkout(Path(folder) / "a checkout")


@pytest.fixture
def case(checkout: Path, url: str) -> Case:
    return load_suite(f"knowledge-graph:{checkout}:dev:{url}").cases[0]


def call(name: str, *values: str) -> Move:
    return {"tool_name": name, "args": dict(zip(PARAMETERS[name], values, strict=True))}


def codes(case: Case, *moves: Move) -> list[str | None]:
    evidence = play_in_memory(case.task, moves)
    return [each.failure.code if each.failure else None for each in evidence.calls]


FILMS = call("get_neighbors", "actor0", "film.actor.film")


def test_the_gold_calls_solve_all_questions_and_doing_nothing_solves_none(
    checkout: Path, url: str
) -> None:
    cases = load_suite(f"knowledge-graph:{checkout}:{url}").cases
    assert len(cases) == len(records()) >= 20
    for case in cases:
        right = play(case, case.gold.oracle or ())
        assert (right.success, right.metrics["f1"]) == (True, 1.0), case.task.task_id
        assert play(case, [{"submit": ""}]).success is False


@pytest.mark.slow
def test_real_services_reach_the_endpoint(checkout: Path, url: str, tmp_path: Path) -> None:
    suite = load_suite(f"knowledge-graph:{checkout}:dev:{url}")
    rows = play_through_service(tmp_path / "run", suite, ("oracle", "noop"))
    assert sorted(row.score.success is True for row in rows) == [False, False, True, True]
    assert {row.score.success for row in rows} == {True, False}


def test_relations_are_those_of_the_ontology_in_order(case: Case) -> None:
    evidence = play_in_memory(
        case.task,
        [FILMS, call("get_relations", "#0"), call("get_attributes", "#0"), call("count", "#0")],
    )
    assert [each.output for each in evidence.calls] == [
        {"variable": "#0", "type": "film.film"},
        {"relations": ["film.film.actor", "film.film.director"]},
        {"attributes": ["film.film.year"]},
        {"variable": "#1", "type": "type.int"},
    ]


def test_a_part_of_the_answer_counts_in_f1_only(case: Case) -> None:
    moves = [
        FILMS,
        call("argmax", "#0", "film.film.year"),
        {"submit": "So this is it. Final Answer: #1"},
    ]
    score = play(case, moves)
    assert score.success is False
    assert score.metrics["f1"] == pytest.approx(2 / (3 + 1))


def test_wrong_calls_are_rejected(case: Case) -> None:
    assert codes(
        case,
        FILMS,
        call("get_relations", "Paris"),
        call("get_relations", "m.a . ?x ?y ?z"),
        call("get_neighbors", "m.actor0", "film.film.actor"),
        call("get_neighbors", "#1", "film.film.actor"),
        call("get_attributes", "m.actor0"),
        call("argmax", "#0", "film.film.actor"),
        call("intersection", "#0", "m.actor1"),
        call("get_neighbors", "#0", "film.film.actor"),
        call("intersection", "#0", "#1"),
        {"tool_name": "count", "args": {"set": "#0"}},
    ) == [
        None,
        *["invalid_variable"] * 2,
        "invalid_relation",
        *["invalid_variable"] * 2,
        "invalid_attribute",
        "invalid_variable",
        None,
        "different_types",
        "missing_argument",
    ]


def test_the_members_of_a_number_cannot_be_queried(case: Case) -> None:
    moves = [FILMS, call("count", "#0"), call("get_relations", "#1"), call("count", "#1")]
    assert codes(case, *moves)[2] == "query_failed"
    assert play(case, [*moves, {"submit": "Final Answer: #2"}]).success is False


def test_a_text_without_an_answer_is_returned_and_a_wrong_number_ends_the_task(case: Case) -> None:
    evidence = play_in_memory(
        case.task, [{"submit": "I think"}, FILMS, {"submit": "Final Answer: #7"}, FILMS]
    )
    assert (len(evidence.calls), evidence.final_state["answer"]) == (1, None)
    talk: list[Move] = [{"submit": "I think"}] * 30
    assert play_in_memory(case.task, talk).final_state["rounds"] == 15


@pytest.mark.parametrize("first", ["argmax", "argmin"])
def test_steps_of_which_the_original_makes_no_query_fail(first: str) -> None:
    inner = [first, ["join", "r.a", "m.1"], "r.n"]
    for program in (["count", inner], ["argmax", inner, "r.n"], ["count", ["count", inner]]):
        with pytest.raises(QueryFailed):
            select(program)


def test_queries_exclude_the_entities_of_the_question() -> None:
    query = select(["join", "r.b", ["and", ["join", "r.a", "m.1"], ["join", "r.a", "m.2"]]])
    assert query.count("FILTER ( ?x != ns:m.") == 2
    assert "ns:m.1 ns:r.a ?y1 . ns:m.2 ns:r.a ?y1 . ?y1 ns:r.b ?x ." in query


@pytest.mark.parametrize(
    ("replaced", "complaint"),
    [
        ({"std": []}, "contains no records"),
        (
            {"std": [{**records()[0], "answer": [{}]}]},
            r"std.json\[0\]: answer\[0\].answer_argument",
        ),
        ({"std": [{**records()[0], "actions": ["fly(#0)"]}]}, r"\[0\]: actions: 'fly"),
        ({"std": [{**records()[0], "actions": ["count(#0,#1)"]}]}, "must have the arguments"),
        ({"std": [{**records()[0], "entities": {"Bo": "m.none"}}]}, r"knows no relation of m.none"),
    ],
)
def test_wrong_data_is_one_line_with_its_place(
    tmp_path: Path, url: str, replaced: dict[str, Any], complaint: str
) -> None:
    checkout = write_checkout(tmp_path / "checkout", **replaced)
    with pytest.raises(InputError, match=complaint) as refusal:
        load_suite(f"knowledge-graph:{checkout}:{url}")
    assert "\n" not in str(refusal.value)


def test_a_missing_endpoint_and_a_missing_ontology_are_refused(checkout: Path, url: str) -> None:
    with pytest.raises(InputError, match="address of a SPARQL endpoint is missing"):
        load_suite(f"knowledge-graph:{checkout}")
    with pytest.raises(InputError, match="no SPARQL endpoint answers"):
        load_suite(f"knowledge-graph:{checkout}:http://127.0.0.1:9/sparql")
    with pytest.raises(InputError, match="status 404"):
        load_suite(f"knowledge-graph:{checkout}:{url}/wrong")
    with pytest.raises(InputError, match="without a user name"):
        load_suite(f"knowledge-graph:{checkout}:http://me:secret@127.0.0.1/sparql")
    other = write_checkout(checkout.parent / "other")
    (other / ONTOLOGY / "fb_roles").unlink()
    with pytest.raises(InputError, match=r"needs vocab\.json and fb_roles"):
        load_suite(f"knowledge-graph:{other}:{url}")


def test_a_query_on_which_the_endpoint_hangs_up_is_a_failed_call(case: Case) -> None:
    doubled = [call("intersection", f"#{number}", f"#{number}") for number in range(9)]
    assert codes(case, FILMS, *doubled, call("get_relations", "#9"))[-1] == "query_failed"


@pytest.mark.slow
def test_an_endpoint_that_ends_during_an_episode_is_no_failure_of_the_agent(checkout: Path) -> None:
    with endpoint() as address:
        case = load_suite(f"knowledge-graph:{checkout}:{address}").cases[0]
    with pytest.raises(InfraError, match="no SPARQL endpoint answers"):
        play_in_memory(case.task, [FILMS])
