"""Arguments that break JSON parsers: depth, digits, constants, surrogates, duplicate and malicious
keys."""

from __future__ import annotations

import grpc
from attempts import attempt, say
from calls import call, open_channel

CALL = '{"path": "/x", "content": %s}'
MALFORMED = {
    "not a number": "NaN",
    "infinity": "Infinity",
    "minus infinity": "-Infinity",
    "a number beyond numbers": "1e999999",
    "half a pair": '"\\ud800"',
    "the other half": '"\\udfff\\ud800"',
    "a million digits": "1" * 1_000_000,
    "no value": "",
    "a comment": "/* */ 1",
    "single quotes": "'x'",
    "a comma too many": "[1,]",
    "a bare word": "undefined",
    "a sign": "+1",
    "a zero in front": "007",
    "a line's end in text": '"a\nb"',
}
DEEP = {
    "lists": "[" * 100_000 + "]" * 100_000,
    "objects": '{"a":' * 50_000 + "1" + "}" * 50_000,
    "lists that never end": "[" * 900_000,
    "sixty-five levels": "[" * 65 + "]" * 65,
}
ODD = {
    "four thousand digits": "1" * 4_000,
    "a fraction of a thousand digits": "0." + "1" * 1_000,
    "a key twice": '"a", "content": "b"',
    "the path twice": '"a", "path": "/etc/shadow"',
    "zeros": '"\\u0000\\u0000"',
    "a hundred thousand keys": "{" + ",".join(f'"k{n}":1' for n in range(70_000)) + "}",
    "names of code": (
        '{"__class__": 1, "__proto__": {"x": 1}, "constructor": 1, "py/object": "os.system"}'
    ),
}


NO_OBJECTS = {
    "a list": "[]",
    "a text": '"x"',
    "nothing": "null",
    "two": "{}{}",
    "a mark": "\ufeff{}",
}


def smuggle(channel: grpc.Channel, tool: str, arguments: str) -> str:
    """Send arguments that the service must refuse, so that no tool receives them."""
    return "a tool saw it" if call(channel, tool, arguments) == "value" else ""


with open_channel() as channel:
    for what, content in (MALFORMED | DEEP).items():
        attempt(what, smuggle, channel, "write_file", CALL % content)
    for what, arguments in NO_OBJECTS.items():
        attempt(f"{what} for arguments", smuggle, channel, "list_dir", arguments)
    for what, content in ODD.items():
        say(f"tried {what}: {call(channel, 'write_file', CALL % content)}")
    say(f"tried to be answered afterwards: {call(channel, 'list_dir', '{}')}")
