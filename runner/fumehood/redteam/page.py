"""Writes the table of attacks and engines into a Markdown page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fumehood.core.errors import InputError
from fumehood.redteam.attacks import Attack, Result, Verdict
from fumehood.redteam.victim import PROTOCOLS

BEGIN, END = "<!-- attacks: begin -->", "<!-- attacks: end -->"
WORKSPACES_BEGIN = "<!-- workspaces: begin -->"
WORKSPACES_END = "<!-- workspaces: end -->"
_INTERFERENCE_TITLE = (
    "Latency of a neighbour's calls beside each attack, p50/p99 ms (quiet p50/p99):"
)
_AGENTS = "../runner/fumehood/redteam/agents"
_MARKS = {
    Result.STOPPED: "stopped",
    Result.NOT_STOPPED: "**not stopped**",
    Result.NOT_APPLICABLE: "–",
}


def attack_cells(attack: Attack) -> tuple[str, ...]:
    """Return the cells of an attack that do not depend on its result."""
    return (
        f"[{attack.name}]({_AGENTS}/{attack.file})",
        attack.aim,
        attack.by,
    )


def attack_table(verdicts: Mapping[str, Sequence[Verdict]]) -> str:
    """Return the table, with details of the results; each engine has the same order of attacks."""
    engines = list(verdicts)
    attacks = [verdict.attack for verdict in verdicts[engines[0]]]
    lines = [
        _row("attack", "tries to", "stopped by", *engines),
        _row(*["---"] * (3 + len(engines))),
    ]
    for number, attack in enumerate(attacks):
        results = (_MARKS.get(verdicts[engine][number].result, "not run") for engine in engines)
        lines.append(_row(*attack_cells(attack), *results))
    interference = (_INTERFERENCE_TITLE, "", interference_table(verdicts))
    return "\n".join([*lines, "", *_notes(verdicts), "", *interference])


def workspace_table(verdicts: Mapping[str, Mapping[str, Sequence[Verdict]]]) -> str:
    """Return the table of attacks from workspaces and verifiers.

    Args:
        verdicts: by engine and place; all have the same order of attacks.
    """
    columns = {
        f"{engine}, {place}": results
        for engine, places in verdicts.items()
        for place, results in places.items()
    }
    lines = [
        _row("attack", "tries to", "stopped by", *columns),
        _row(*["---"] * (3 + len(columns))),
    ]
    for number, verdict in enumerate(next(iter(columns.values()))):
        results = (_MARKS.get(each[number].result, "not run") for each in columns.values())
        lines.append(_row(*attack_cells(verdict.attack), *results))
    return "\n".join([*lines, "", *_notes(columns)])


def replace_table(page: str, table: str, begin: str = BEGIN, end: str = END) -> str:
    """Return ``page`` with ``table`` between its marks.

    Raises:
        InputError: the page lacks the marks.
    """
    before, found_begin, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise InputError(f"the page must contain {begin} and {end}, which enclose the table")
    return f"{before}{begin}\n{table}\n{end}{after}"


def _notes(verdicts: Mapping[str, Sequence[Verdict]]) -> list[str]:
    return [
        f"* {engine}, {verdict.attack.name}: {_plain(verdict.detail)}"
        for engine, results in verdicts.items()
        for verdict in results
        if verdict.detail
    ]


def interference_table(verdicts: Mapping[str, Sequence[Verdict]]) -> str:
    """Return the latency of a neighbour's calls beside each attack, p50/p99 in milliseconds."""
    engines = list(verdicts)
    columns = [f"{engine}, {protocol}" for engine in engines for protocol in PROTOCOLS]
    lines = [_row("attack", *columns), _row(*["---"] * (1 + len(columns)))]
    for number, verdict in enumerate(verdicts[engines[0]]):
        cells = (
            _percentiles(verdicts[engine][number], protocol)
            for engine in engines
            for protocol in PROTOCOLS
        )
        lines.append(_row(verdict.attack.name, *cells))
    return "\n".join(lines)


def _percentiles(verdict: Verdict, protocol: str) -> str:
    if verdict.interference is None:
        return "–"
    latencies = verdict.interference.attacked[protocol]
    quiet = verdict.interference.quiet[protocol]
    return f"{latencies.p50_ms:.1f}/{latencies.p99_ms:.0f} ({quiet.p50_ms:.1f}/{quiet.p99_ms:.0f})"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("<", "&lt;").replace("`", "'")
