"""The text of an episode for a judge: every call with its result and every message, in order.

Each entry is one line. Line breaks in untrusted text are replaced, so that an agent cannot forge
entries of other seats or of tools.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

from fumehood.core.conversation import indent_continuation
from fumehood.core.evidence import AnsweredCall, Evidence
from fumehood.core.outcome import GaveUp

CHARS_MAX = 50_000
"""Limit of the transcript, below the limit of a judge's text. Only the longest lines of a longer
transcript are cut, all to the same length. Omitting the middle instead would let an agent hide its
actions behind long messages, and so would cutting every line to the same share."""
CALL_CHARS_MAX = 4_000
"""Limit of the arguments and of the result of one call, each."""
TEXT_CHARS_MAX = 1_000
"""Limit of each text in the arguments and the result of a call that exceed their limit, so that no
text hides the arguments after it."""
_NOTE_CHARS_MIN = 100
"""Shorter texts are cut without a note of the omitted length."""


def transcript_of(evidence: Evidence) -> str:
    """Return the episode as text, with one line for each call, result and message."""
    lines = _lines(evidence, _short)
    longest = _longest(sorted(map(len, lines)))
    return "\n".join(_cut(line, longest) for line in lines)


def complete_transcript(evidence: Evidence) -> str | None:
    """Return the episode as text without any omission; None if it is too long for a judge."""
    lines = _lines(evidence, lambda value: json.dumps(value, ensure_ascii=False))
    text = "\n".join(lines)
    return text if len(text) <= CHARS_MAX else None


def _lines(evidence: Evidence, text_of: Callable[[object], str]) -> list[str]:
    lines: list[str] = []
    messages = list(evidence.submissions)
    for number, call in enumerate(evidence.calls):
        while messages and messages[0].calls_before <= number:
            lines.append(_message(messages[0].seat, messages.pop(0).text))
        lines += _call(call, text_of)
    lines += [_message(message.seat, message.text) for message in messages]
    lines += [
        indent_continuation(f"{seat} gives up: {end.reason}") for seat, end in _gave_up(evidence)
    ]
    return lines


def _longest(lengths: Sequence[int]) -> int:
    """Return the length to which lines are cut, so that all fit.

    Args:
        lengths: of all lines, in ascending order.
    """
    left = CHARS_MAX - len(lengths)
    for number, length in enumerate(lengths):
        share = left // (len(lengths) - number)
        if length > share:
            return max(share, 1)
        left -= length
    return CHARS_MAX


def _gave_up(evidence: Evidence) -> Iterator[tuple[str, GaveUp]]:
    return ((seat, end) for seat, end in evidence.ends.items() if isinstance(end, GaveUp))


def _message(seat: str, text: str) -> str:
    return indent_continuation(f"{seat} says: {text}")


def _call(call: AnsweredCall, text_of: Callable[[object], str]) -> list[str]:
    if call.failure is None:
        outcome = f"result: {text_of(call.output)}"
    else:
        outcome = f"error: {text_of(call.failure.to_json())}"
        if call.is_executed:
            outcome += " (the tool executed the call; only its result was withheld or lost)"
    called = f"{call.seat} calls {call.tool_name}: {text_of(dict(call.arguments_after))}"
    return [indent_continuation(called), indent_continuation(outcome)]


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > CALL_CHARS_MAX:
        text = json.dumps(_with_short_texts(value), ensure_ascii=False)
    return _cut(text, CALL_CHARS_MAX)


def _with_short_texts(value: object) -> object:
    if isinstance(value, str):
        return _cut(value, TEXT_CHARS_MAX)
    if isinstance(value, list):
        return [_with_short_texts(item) for item in value]
    if isinstance(value, dict):
        return {_cut(name, TEXT_CHARS_MAX): _with_short_texts(v) for name, v in value.items()}
    return value


def _cut(text: str, most: int) -> str:
    """Return the beginning and the end of a text that is longer than ``most`` characters."""
    if len(text) <= most:
        return text
    note = f" … {len(text) - most} characters omitted … " if most >= _NOTE_CHARS_MIN else "…"
    tail = max(most - len(note), 0) // 2
    head = max(most - len(note) - tail, 0)
    return f"{text[:head]}{note}{text[len(text) - tail :]}"[:most]
