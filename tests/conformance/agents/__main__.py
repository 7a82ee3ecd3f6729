"""Plays every vector in every language on every engine that is ready here, and writes the table down."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from fumehood.agent_check.protocol_case import Vector, load_vectors
from fumehood.core.errors import InfraError, InputError
from fumehood.engines.engine import EngineOptions
from fumehood.engines.registry import choose_engine
from tests.conformance.agents.languages import LANGUAGES, Language
from tests.conformance.agents.page import PAGE, table, written
from tests.conformance.agents.playing import Stage, stage, words_of

ENGINES = ("process", "bubblewrap", "docker", "docker/runsc")


def main() -> int:
    """Return 0 when everything held that can be tried here."""
    failed: dict[tuple[str, str], str] = {}
    engines = [engine for engine in ENGINES if _is_ready(engine)]
    for engine in engines:
        failed |= _play_all(engine, LANGUAGES)
    page = written(PAGE.read_text("utf-8"), table(LANGUAGES, load_vectors(), engines, failed))
    PAGE.write_text(page, "utf-8")
    for (vector, language), what in failed.items():
        print(f"{language}, {vector}: {what}")
    tried = len(engines) * sum(len(load_vectors()) - len(language.lacks) for language in LANGUAGES)
    print(
        f"{tried - len(failed)} of {tried} held, on {', '.join(engines)}; the table is in {PAGE.name}"
    )
    return 1 if failed else 0


def _is_ready(engine: str) -> bool:
    name, runtime = words_of(engine)
    try:
        choose_engine(name, EngineOptions(runtime=runtime, trust=True)).engine.close()
    except InputError as error:
        print(f"{engine} is left out: {error}")
        return False
    return True


def _play_all(engine: str, languages: Sequence[Language]) -> dict[tuple[str, str], str]:
    failed = {}
    with stage(engine) as boxes:
        for language in languages:
            for vector in load_vectors():
                wrong = _wrong(boxes, language, vector)
                if wrong:
                    failed[vector.name, language.name] = f"on {engine}: {'; '.join(wrong)}"
            print(f"{engine}: {language.name} is through", flush=True)
    return failed


def _wrong(boxes: Stage, language: Language, vector: Vector) -> list[str]:
    if vector.name in language.lacks:
        return []
    missing = language.missing()
    if missing is not None:
        return [f"needs {missing}"]
    try:
        return boxes.play(language, vector)
    except InfraError as error:
        return [f"our side failed: {error}"]


if __name__ == "__main__":
    sys.exit(main())
