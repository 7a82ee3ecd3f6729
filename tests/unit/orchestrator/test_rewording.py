"""Reworded instructions demand the same: values, quotes, numbers, names and code survive."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.generator import GENERATORS
from fumehood.core.task import Case
from fumehood.orchestrator.instructions import Instructions
from fumehood.orchestrator.rewording import values_in, variants
from fumehood.scorers.registry import score_evidence
from tests.architecture.project import ROOT

COUNT = 4
_TOKENS = re.compile(r"(?<!\w)'[^'\n]*'(?!\w)|\"[^\"\n]*\"|`[^`\n]*`|\S*[\d/_@\\]\S*")
_WORDS = ["Do not", "close", "account", "a1.", "If", "'do not'", "x_y", "/a/b.txt", "until", "Set"]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Case, ...]:
    folder = tmp_path_factory.mktemp("suite") / "native"
    GENERATORS.load("native")(
        "small",
        5,
        folder,
        splits={"train": 60, "dev": 0, "test_public": 0},
        score_episode=score_evidence,
        progress=lambda *_: None,
    )
    return load_suite(f"native:{folder}").cases


def _check(case: Case) -> None:
    text = case.task.seats[0].instruction
    changes = Instructions(prompt_variants=COUNT, seed=3)
    values = values_in(text, case.gold.criteria, case.gold.oracle, case.task.initial_state)
    texts = [changes.of(case, trial)[0].instruction for trial in range(COUNT)]
    assert texts == [changes.of(case, trial)[0].instruction for trial in range(COUNT)]
    assert len({text, *texts}) == COUNT + 1, "the variants differ"
    for reworded in texts:
        assert all(value in reworded for value in values)
        assert Counter(_TOKENS.findall(reworded)) == Counter(_TOKENS.findall(text))


@pytest.mark.parametrize("case", load_suite("sample").cases, ids=lambda case: case.task.task_id)
def test_the_values_of_a_sample_task_survive(case: Case) -> None:
    _check(case)


@pytest.mark.parametrize("name", ["library", "payments", "support", "water_works"])
def test_the_values_of_an_example_survive(name: str) -> None:
    for case in load_suite(str(ROOT / "examples" / f"{name}.yaml")).cases:
        _check(case)


@pytest.mark.slow
def test_the_values_of_generated_tasks_survive(generated: tuple[Case, ...]) -> None:
    for case in generated:
        _check(case)


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.lists(st.sampled_from(_WORDS) | st.text(max_size=8), max_size=12),
    st.frozensets(st.sampled_from(_WORDS), max_size=3),
    st.text(max_size=5),
)
def test_any_text_keeps_its_values_and_tokens(
    parts: list[str], fixed: frozenset[str], key: str
) -> None:
    text = " ".join(parts)
    values = frozenset(value for value in fixed if value in text)
    first = variants(text, values, key, 3)
    variants.cache_clear()
    assert variants(text, values, key, 3) == first
    for reworded in first:
        assert all(value in reworded for value in values)
        assert len(re.findall(r"\d+", reworded)) == len(re.findall(r"\d+", text))


@pytest.mark.parametrize(
    ("text", "forbidden"),
    [
        ("Order o1 is late.", "order o1"),
        ("Open tickets are listed.", "open tickets"),
        ("Write 'do not' to /a/do.txt.", "'don't'"),
        ("Answer with the word until.", "till."),
    ],
)
def test_words_that_are_no_request_or_a_value_stay(text: str, forbidden: str) -> None:
    values = frozenset({"until"}) if "until" in text else frozenset[str]()
    assert not any(forbidden in reworded for reworded in variants(text, values, "k", 30))


def test_only_sentences_without_references_change_places() -> None:
    free = "Look at it. If the gate is shut, open valve v1. If the pump is loud, stop pump p1."
    bound = "Close v1. If it fails, stop. If they ask again, then wait."
    texts = variants(free, frozenset(), "k", 40)
    assert {text.index("gate") < text.index("pump is") for text in texts} == {True, False}
    assert all(
        text.index("fails") < text.index("ask again")
        for text in variants(bound, frozenset(), "k", 40)
    )
