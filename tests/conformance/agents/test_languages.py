"""Every language, every vector, from inside a box."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from runner.agents.vector import Vector, load_vectors
from tests.conformance.agents.languages import LANGUAGES, Language
from tests.conformance.agents.playing import Stage, require, stage

FEW = {"values", "big_result", "several_turns"}
"""What is also proven where there is no box; all of it is in boxes."""


@pytest.fixture(scope="module")
def bubblewrap() -> Iterator[Stage]:
    with stage("bubblewrap") as made:
        yield made


@pytest.fixture(scope="module")
def process() -> Iterator[Stage]:
    with stage("process") as made:
        yield made


each_language = pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)


def each(vectors: Sequence[Vector]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("vector", vectors, ids=lambda vector: vector.name)


@pytest.mark.bubblewrap
@each(load_vectors())
@each_language
def test_a_language_observes_what_it_has_to(bubblewrap: Stage, language: Language, vector: Vector) -> None:
    require(language)
    assert bubblewrap.play(language, vector) == []


@each([vector for vector in load_vectors() if vector.name in FEW])
@each_language
def test_a_language_needs_no_box(process: Stage, language: Language, vector: Vector) -> None:
    require(language)
    assert process.play(language, vector) == []
