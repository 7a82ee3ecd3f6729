"""The table of languages and behaviours in the documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fumehood.agent_check.cases import ProtocolCase
from tests.architecture.project import ROOT
from tests.conformance.agents.languages import Language

PAGE = ROOT / "docs" / "agent_conformance.md"
BEGIN, END = "<!-- table: make conformance -->", "<!-- end of table -->"
TRIED = "Every agent was run on "


def table(
    languages: Sequence[Language],
    cases: Sequence[ProtocolCase],
    engines: Sequence[str],
    failed: Mapping[tuple[str, str], str],
) -> str:
    """Return the list of languages and the table of cases.

    Args:
        languages: with a conformance agent.
        cases: the rows.
        engines: on which every agent was run.
        failed: problem by case and language.
    """
    agents = [f"* {language.name}: {language.connection}" for language in languages]
    rows = [
        f"| `{case.name}` | {case.behaviour} | {_exceptions(case, languages, failed)} |"
        for case in cases
    ]
    head = ["| case | behaviour | not passed by |", "| --- | --- | --- |"]
    reasons = sorted(
        f"* {language.name}, `{name}`: {reason}"
        for language in languages
        for name, reason in language.lacks.items()
    )
    blocks = [agents, [*head, *rows], reasons, [f"{TRIED}{', '.join(engines)}."]]
    return "\n\n".join([BEGIN, *("\n".join(lines) for lines in blocks if lines), END])


def written(page: str, new_table: str) -> str:
    """Return the page with the new table."""
    before, _, rest = page.partition(BEGIN)
    return before + new_table + rest.partition(END)[2]


def without_engines(page: str) -> list[str]:
    """Return the lines of a page's table, except the line that names the engines."""
    lines = page.partition(BEGIN)[2].partition(END)[0].strip().splitlines()
    return [line for line in lines if not line.startswith(TRIED)]


def _exceptions(
    case: ProtocolCase, languages: Sequence[Language], failed: Mapping[tuple[str, str], str]
) -> str:
    lacking = [language.name for language in languages if case.name in language.lacks]
    failing = [
        f"**{language.name}**" for language in languages if (case.name, language.name) in failed
    ]
    return ", ".join([*lacking, *failing])
