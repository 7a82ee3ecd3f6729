"""Calls the third-party code of a world with arguments that make it hang or fail."""

from __future__ import annotations

import json

from attempts import GIVEN, say
from calls import call, open_channel

DIGITS_MAX = 4_200
"""The product has twice as many digits, which is more than Python turns into text."""
CALLS: dict[str, list[tuple[str, dict[str, object]]]] = {
    "hang": [
        ("round_number", {"number": 7, "decimal_places": -(10**19)}),
        ("round_number", {"number": 7, "decimal_places": -(5 * 10**6)}),
    ],
    "crash": [
        ("multiply", {"a": int("9" * DIGITS_MAX), "b": int("9" * DIGITS_MAX)}),
        ("power", {"base": 10**11, "exponent": 9999}),
        ("mean", {"numbers": [10**4000, 1]}),
        ("round_number", {"number": 1e308, "decimal_places": -400}),
    ],
}

say("tried foreign code: begun")
with open_channel() as channel:
    for tool, arguments in CALLS[GIVEN.get("variant", "hang")]:
        say(f"tried {tool}: {call(channel, tool, json.dumps(arguments))}")
    say(f"tried to be answered afterwards: {call(channel, 'add', json.dumps({'a': 1, 'b': 2}))}")
