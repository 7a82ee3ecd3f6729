"""Every language, every vector, from inside a box."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import pytest

from fumehood.agent_check.protocol_case import Vector, load_vectors
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


def each(vectors: Sequence[Vector]) -> pytest.MarkDecorator:
    """Every language with each of the vectors that it can carry out."""
    pairs = [
        pytest.param(language, vector, id=f"{language.name}-{vector.name}")
        for language in LANGUAGES
        for vector in vectors
        if vector.name not in language.lacks
    ]
    return pytest.mark.parametrize(("language", "vector"), pairs)


def require(language: Language) -> None:
    """Leave a test out where this machine lacks what a language needs, which CI does not allow."""
    missing = language.missing()
    if missing is not None:
        message = f"{language.name} needs {missing}"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)


@pytest.mark.bubblewrap
@each(load_vectors())
def test_a_language_observes_what_it_has_to(
    bubblewrap: Stage, language: Language, vector: Vector
) -> None:
    require(language)
    assert bubblewrap.play(language, vector) == []


@each([vector for vector in load_vectors() if vector.name in FEW])
def test_a_language_works_on_every_engine(
    elsewhere: Stage, language: Language, vector: Vector
) -> None:
    require(language)
    assert elsewhere.play(language, vector) == []


def test_the_table_has_every_language_and_every_vector() -> None:
    assert shape_written(PAGE.read_text(encoding="utf-8")) == shape_of(LANGUAGES, load_vectors())


def test_what_a_language_lacks_is_a_vector_and_has_a_reason() -> None:
    names = {vector.name for vector in load_vectors()}
    assert all(
        set(language.lacks) <= names and all(language.lacks.values()) for language in LANGUAGES
    )
