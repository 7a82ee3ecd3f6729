"""Extracts the calls from an instruction.

Phrases that the instruction parser misreads are rewritten first; then it parses each part. In
addition, an instruction may contain several requests, may forbid some, and may ask to look
something up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

from fumehood_agent.adapter import Action
from fumehood_agent.builtin.instruction_parser import read_call

_PLAINER: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r"(?<=\w)['’](?=[a-z]{1,2}\b)"), ""),  # it's, don't: no quotation begins there
    (re.compile(r"[\"“”‘’`]"), "'"),
    (
        re.compile(r"\b(job|command|reason|id)(?: named | called | ?[=:] ?| )'([\w-]+)'", re.I),
        r"\1 \2",
    ),
    (re.compile(r"\b(job|command|reason|id)(?: named| called| ?[=:]) ?(?=\w)", re.I), r"\1 "),
    (re.compile(r"\b(tier|plan|subscription)\b([^']*) (?:to|is) '(\w+)'", re.I), r"\1\2 to \3"),
    (re.compile(r"\btier ?[=:] ?'?(?=\w)", re.I), "tier is "),
    (re.compile(r"\bto the (?=\w)", re.I), "to "),
)
"""Phrase → equivalent phrase that the instruction parser reads. Applied in this order."""

_FORBIDDEN = re.compile(
    r"('[^']*')|,?\s*(?:\b(?:and|but)\s+)?\b(?:do not|dont|never|must not)\b[^',.;!?]*", re.I
)
"""A quotation, which stays, or a part of a sentence that forbids something."""

_CLAUSE = re.compile(r"(?:'[^']*'|(?![.;!?]\s|,?\s(?:and\s)?then\s).)+", re.S)
"""Separates the parts of an instruction; a quotation is never divided."""

_PATH = r"/[\w./-]*[\w/-]"
_ACCOUNT = r"\b[abn][a-z]?\d{4,6}\b"

_LOOK_UPS: Sequence[tuple[str, str, str | None, str]] = (
    (
        "get_account",
        r"\b(?:get|show|look up|fetch|read|inspect)\b.*\b(?:account|customer)",
        "id",
        _ACCOUNT,
    ),
    ("list_dir", r"\b(?:list|show)\b.*\b(?:dir|directory|folder|files|entries)\b", "path", _PATH),
    ("list_jobs", r"\b(?:list|show)\b.*\bjobs\b", None, ""),
)
"""Tool, pattern of its request in an instruction, its argument, and the pattern of that."""


def plan(instruction: str, tools: Set[str]) -> list[Action]:
    """Return the calls of known tools that ``instruction`` asks for, in order, if any."""
    text = _FORBIDDEN.sub(lambda found: found[1] or "", _plain(instruction))
    asked = _distinct([_read(clause, tools) for clause in _CLAUSE.findall(text)])
    return asked if len(asked) > 1 else _distinct([_read(text, tools)])


def _plain(text: str) -> str:
    for pattern, plainer in _PLAINER:
        text = pattern.sub(plainer, text)
    return text


def _read(text: str, tools: Set[str]) -> Action | None:
    return read_call(text, tools) or _look_up(text, tools)


def _look_up(text: str, tools: Set[str]) -> Action | None:
    for tool, asked, argument, written in _LOOK_UPS:
        if tool not in tools or not re.search(asked, text, re.I | re.S):
            continue
        if argument is None:
            return {"tool_name": tool, "args": {}}
        if found := re.search(written, text, re.I):
            return {"tool_name": tool, "args": {argument: found[0]}}
    return None


def _distinct(calls: Sequence[Action | None]) -> list[Action]:
    kept: list[Action] = []
    for call in calls:
        if call is not None and call not in kept:
            kept.append(call)
    return kept
