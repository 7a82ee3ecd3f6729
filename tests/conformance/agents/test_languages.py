"""Every language runs every protocol case in a box."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import pytest

from fumehood.agent_check.cases import ProtocolCase, load_protocol_cases
from tests.conformance.agents.languages import LANGUAGES, Language
from tests.conformance.agents.page import PAGE, table, without_engines
from tests.conformance.agents.playing import Stage, stage

FEW = ("several_turns",)
"""Cases to run on every engine. `make conformance` runs all cases on all engines."""
OFTEN = (*FEW, "big_result", "numbers", "reconnect", "refusals")
"""Cases that CI runs in every language. In Python it runs all."""


@pytest.fixture(scope="module")
def bubblewrap() -> Iterator[Stage]:
    with stage("bubblewrap") as made:
        yield made


@pytest.fixture(
    scope="module",
    params=[
        "process",
        pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.image]),
        pytest.param(
            "docker/runsc", marks=[pytest.mark.runsc, pytest.mark.image, pytest.mark.release]
        ),
    ],
)
def elsewhere(request: pytest.FixtureRequest) -> Iterator[Stage]:
    with stage(request.param) as made:
        yield made


def _marks(language: Language, case: ProtocolCase) -> list[pytest.MarkDecorator]:
    if language.name == "Python":
        return []
    return [pytest.mark.slow if case.name in OFTEN else pytest.mark.release]


def each(cases: Sequence[ProtocolCase]) -> pytest.MarkDecorator:
    """Every language with each of the cases that it can carry out."""
    pairs = [
        pytest.param(
            language,
            case,
            id=f"{language.name}-{case.name}",
            marks=_marks(language, case),
        )
        for language in LANGUAGES
        for case in cases
        if case.name not in language.lacks
    ]
    return pytest.mark.parametrize(("language", "case"), pairs)


def require(language: Language) -> None:
    """Skip a test whose language needs a missing program; CI fails instead."""
    missing = language.missing()
    if missing is not None:
        message = f"{language.name} needs {missing}"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)


@pytest.mark.slow
@pytest.mark.bubblewrap
@each(load_protocol_cases())
def test_a_language_reports_the_expected_observations(
    bubblewrap: Stage, language: Language, case: ProtocolCase
) -> None:
    require(language)
    assert bubblewrap.play(language, case) == []


@pytest.mark.slow
@each([case for case in load_protocol_cases() if case.name in FEW])
def test_a_language_works_on_every_engine(
    elsewhere: Stage, language: Language, case: ProtocolCase
) -> None:
    require(language)
    assert elsewhere.play(language, case) == []


def test_the_table_has_every_language_and_every_protocol_case() -> None:
    expected = table(LANGUAGES, load_protocol_cases(), (), {})
    assert without_engines(PAGE.read_text(encoding="utf-8")) == without_engines(expected)


def test_an_excluded_protocol_case_exists_and_has_a_reason() -> None:
    names = {case.name for case in load_protocol_cases()}
    assert all(
        set(language.lacks) <= names and all(language.lacks.values()) for language in LANGUAGES
    )
