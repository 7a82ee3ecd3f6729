"""Runs every protocol case in every language on every available engine, and updates the table in
the documentation."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from fumehood.agent_check.cases import ProtocolCase, load_protocol_cases
from fumehood.core.errors import InfraError, InputError
from fumehood.engines.engine import EngineOptions
from fumehood.engines.registry import choose_engine
from tests.conformance.agents.languages import LANGUAGES, Language
from tests.conformance.agents.page import PAGE, table, written
from tests.conformance.agents.playing import Stage, engine_and_runtime, stage

ENGINES = ("process", "bubblewrap", "docker", "docker/runsc")


def main() -> int:
    """Return 0 if all cases pass."""
    failed: dict[tuple[str, str], str] = {}
    engines = [engine for engine in ENGINES if _is_ready(engine)]
    for engine in engines:
        failed |= _play_all(engine, LANGUAGES)
    page = written(
        PAGE.read_text("utf-8"), table(LANGUAGES, load_protocol_cases(), engines, failed)
    )
    PAGE.write_text(page, "utf-8")
    for (case, language), problem in failed.items():
        print(f"{language}, {case}: {problem}")
    tried = len(engines) * sum(
        len(load_protocol_cases()) - len(language.lacks) for language in LANGUAGES
    )
    print(
        f"{tried - len(failed)} of {tried} passed, on {', '.join(engines)}; "
        f"the table is in {PAGE.name}"
    )
    return 1 if failed else 0


def _is_ready(engine: str) -> bool:
    name, runtime = engine_and_runtime(engine)
    try:
        choose_engine(name, EngineOptions(runtime=runtime, trust=True)).engine.close()
    except InputError as error:
        print(f"{engine} is skipped: {error}")
        return False
    return True


def _play_all(engine: str, languages: Sequence[Language]) -> dict[tuple[str, str], str]:
    failed = {}
    with stage(engine) as boxes:
        for language in languages:
            for case in load_protocol_cases():
                problems = _problems(boxes, language, case)
                if problems:
                    failed[case.name, language.name] = f"on {engine}: {'; '.join(problems)}"
            print(f"{engine}: {language.name} is done", flush=True)
    return failed


def _problems(boxes: Stage, language: Language, case: ProtocolCase) -> list[str]:
    if case.name in language.lacks:
        return []
    missing = language.missing()
    if missing is not None:
        return [f"needs {missing}"]
    try:
        return boxes.play(language, case)
    except InfraError as error:
        return [f"the infrastructure failed: {error}"]


if __name__ == "__main__":
    sys.exit(main())
