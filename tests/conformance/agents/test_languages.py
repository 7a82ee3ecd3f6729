"""Every language, every vector, from inside a box."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import pytest

from runner.agents.vector import Vector, load_vectors
from tests.conformance.agents.languages import LANGUAGES, Language
from tests.conformance.agents.page import PAGE, shape_of, shape_written
from tests.conformance.agents.playing import Stage, stage

FEW = ("several_turns",)
"""Proven on every engine; all of them on one. `make conformance` proves all on all."""


@pytest.fixture(scope="module")
def bubblewrap() -> Iterator[Stage]:
    with stage("bubblewrap") as made:
        yield made


@pytest.fixture(
    scope="module",
    params=[
        "process",
        pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.image]),
        pytest.param("docker/runsc", marks=[pytest.mark.runsc, pytest.mark.image]),
    ],
)
def elsewhere(request: pytest.FixtureRequest) -> Iterator[Stage]:
    with stage(request.param) as made:
        yield made


each_language = pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)


def each(vectors: Sequence[Vector]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("vector", vectors, ids=lambda vector: vector.name)


def require(language: Language, vector: Vector) -> None:
    """Leave a test out where this machine lacks what a language needs, which CI does not allow."""
    if vector.name in language.lacks:
        pytest.skip(language.lacks[vector.name])
    missing = language.missing()
    if missing is not None:
        message = f"{language.name} needs {missing}"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)


@pytest.mark.bubblewrap
@each(load_vectors())
@each_language
def test_a_language_observes_what_it_has_to(bubblewrap: Stage, language: Language, vector: Vector) -> None:
    require(language, vector)
    assert bubblewrap.play(language, vector) == []


@each([vector for vector in load_vectors() if vector.name in FEW])
@each_language
def test_a_language_works_on_every_engine(elsewhere: Stage, language: Language, vector: Vector) -> None:
    require(language, vector)
    assert elsewhere.play(language, vector) == []


def test_the_table_has_every_language_and_every_vector() -> None:
    assert shape_written(PAGE.read_text(encoding="utf-8")) == shape_of(LANGUAGES, load_vectors())


def test_what_a_language_lacks_is_a_vector_and_has_a_reason() -> None:
    names = {vector.name for vector in load_vectors()}
    assert all(set(language.lacks) <= names and all(language.lacks.values()) for language in LANGUAGES)
