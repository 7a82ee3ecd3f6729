"""Sends thousands of messages that are refused, so that a careless server logs each of them."""

from __future__ import annotations

from attempts import say
from calls import call, open_channel

MESSAGES = 1_500

with open_channel() as channel:
    counts: dict[str, int] = {}
    for number in range(MESSAGES):
        answer = call(channel, "write_file", '{"x": NaN}' if number % 2 else "[" * 70 + "]" * 70)
        counts[answer] = counts.get(answer, 0) + 1
    for answer, count in counts.items():
        say(f"tried to be refused: {count} times {answer}")
