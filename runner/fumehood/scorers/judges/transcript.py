"""The text of an episode for a judge: every call with its result and every message, in order.

Each entry is one line. Line breaks in untrusted text are replaced, so that an agent cannot forge
entries of other seats or of tools.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from fumehood.core.conversation import indent_continuation
from fumehood.core.evidence import AnsweredCall, Evidence
from fumehood.core.outcome import GaveUp

CHARS_MAX = 50_000
"""Limit of the transcript, below the limit of a judge's text. Every line of a longer transcript is
cut to the same share. Omitting the middle instead would let an agent hide its actions behind long
messages."""
CALL_CHARS_MAX = 4_000
"""Limit of the arguments and of the result of one call, each."""


def transcript_of(evidence: Evidence) -> str:
    """Return the episode as text, with one line for each call, result and message."""
    lines: list[str] = []
    messages = list(evidence.submissions)
    for number, call in enumerate(evidence.calls):
        while messages and messages[0].calls_before <= number:
            lines.append(_message(messages[0].seat, messages.pop(0).text))
        lines += _call(call)
    lines += [_message(message.seat, message.text) for message in messages]
    lines += [
        indent_continuation(f"{seat} gives up: {end.reason}") for seat, end in _gave_up(evidence)
    ]
    text = "\n".join(lines)
    return (
        text
        if len(text) <= CHARS_MAX
        else "\n".join(_cut(line, CHARS_MAX // len(lines)) for line in lines)
    )


def _gave_up(evidence: Evidence) -> Iterator[tuple[str, GaveUp]]:
    return ((seat, end) for seat, end in evidence.ends.items() if isinstance(end, GaveUp))


def _message(seat: str, text: str) -> str:
    return indent_continuation(f"{seat} says: {text}")


def _call(call: AnsweredCall) -> list[str]:
    if call.failure is None:
        outcome = f"result: {_short(call.output)}"
    else:
        outcome = f"error: {_short(call.failure.to_json())}"
    called = f"{call.seat} calls {call.tool_name}: {_short(dict(call.arguments_after))}"
    return [indent_continuation(called), indent_continuation(outcome)]


def _short(value: object) -> str:
    return _cut(json.dumps(value, ensure_ascii=False), CALL_CHARS_MAX)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} … {len(text) - most} characters omitted"
