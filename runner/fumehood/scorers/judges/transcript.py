"""What a judge gets to read of an episode: every call with its answer, and every word, in order.

Each begins a line, and nothing that an agent wrote does: else it could write what others said, and what tools
answered.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from fumehood.core.conversation import one_voice
from fumehood.core.evidence import Evidence, Exchange
from fumehood.core.outcome import GaveUp

CHARS_MAX = 50_000
"""Of all together, less than of any text that a judge reads. In a longer transcript everything has the same
share: were its middle left out, an agent could talk until what it did there is not seen."""
CALL_CHARS_MAX = 4_000
"""Of the arguments, and of the answer, of one call."""


def transcript_of(evidence: Evidence) -> str:
    """Return the episode as text, a line for each call, answer and message."""
    lines: list[str] = []
    told = list(evidence.said)
    for number, exchange in enumerate(evidence.exchanges):
        while told and told[0].calls_before <= number:
            lines.append(_message(told[0].seat, told.pop(0).text))
        lines += _call(exchange)
    lines += [_message(one.seat, one.text) for one in told]
    lines += [one_voice(f"{seat} gives up: {end.reason}") for seat, end in _gave_up(evidence)]
    text = "\n".join(lines)
    return (
        text
        if len(text) <= CHARS_MAX
        else "\n".join(_cut(line, CHARS_MAX // len(lines)) for line in lines)
    )


def _gave_up(evidence: Evidence) -> Iterator[tuple[str, GaveUp]]:
    return ((seat, end) for seat, end in evidence.ends.items() if isinstance(end, GaveUp))


def _message(seat: str, text: str) -> str:
    return one_voice(f"{seat} says: {text}")


def _call(exchange: Exchange) -> list[str]:
    if exchange.failure is None:
        came = f"result: {_short(exchange.output)}"
    else:
        came = f"error: {_short(exchange.failure.to_json())}"
    called = f"{exchange.seat} calls {exchange.tool_name}: {_short(dict(exchange.delivered))}"
    return [one_voice(called), one_voice(came)]


def _short(value: object) -> str:
    return _cut(json.dumps(value, ensure_ascii=False), CALL_CHARS_MAX)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} … {len(text) - most} characters left out"
