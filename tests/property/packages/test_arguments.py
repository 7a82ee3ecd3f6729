"""Nothing that an agent can write gets past the wall unless it can be written down again."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from fumehood.core.outcome import Refusal, RefusalKind
from fumehood.service.seat_endpoint import SeatLimits, read_arguments, refuse_large
from tests.property.packages.values import OBJECTS, TEXT, bounded, same

LIMITS = SeatLimits(argument_bytes=2000, argument_depth=6)
FORMS = {RefusalKind.MALFORMED, RefusalKind.TOO_LARGE, RefusalKind.TOO_DEEP}

_PIECES = st.sampled_from(
    [
        *'{}[]:,"\\',
        *(
            "NaN",
            "Infinity",
            "-Infinity",
            "1e999",
            "-1e999",
            "9" * 400 + ".0",
            "9" * 4400,
            "1",
            "1.5",
            "-0",
        ),
        *(
            "null",
            "true",
            '"a"',
            '"\\ud800"',
            '"\\udc00\\ud800"',
            '"\\ud83d\\ude00"',
            '"\\uD8',
            "\ud800",
            "é",
        ),
        *('{"a":', '{"a":' * 8, "[" * 8, "[" * 1500, " " * 2500, "\0", "\ufeff"),
    ]
)
TEXTS = (
    st.lists(_PIECES, max_size=8).map("".join)
    | st.lists(_PIECES, max_size=5).map(lambda pieces: f'{{"a":{"".join(pieces)}}}')
    | st.lists(_PIECES, max_size=5).map(lambda pieces: f'{{"a":[{",".join(pieces)}]}}')
    | st.text(max_size=40)
)


@bounded
@given(TEXTS)
@example('{"a":' + "9" * 400 + ".0}")
@example('{"a":' * 990 + "1e5" + "}" * 990)
@example('{"a":"\\uD800"}')
@example('{"a":"\ud800"}')
@example('{"a":1e400}')
def test_every_text_is_a_json_object_or_is_refused(text: str) -> None:
    got = read_arguments(text, LIMITS)
    if isinstance(got, Refusal):
        assert got.kind in FORMS
        return
    written = json.dumps(got, ensure_ascii=False, allow_nan=False)
    assert same(json.loads(written.encode("utf-8")), got)
    assert len(text.encode("utf-8")) <= LIMITS.argument_bytes
    assert depth_of(got) <= LIMITS.argument_depth


@bounded
@given(OBJECTS)
def test_valid_arguments_are_received_unchanged(value: dict[str, Any]) -> None:
    text = json.dumps(value)
    got = read_arguments(text, SeatLimits())
    if not is_writable(value):
        assert got == Refusal(RefusalKind.MALFORMED)
    else:
        assert same(got, value)


@bounded
@given(
    st.integers(min_value=1, max_value=40), st.integers(min_value=1, max_value=40), st.booleans()
)
def test_depth_is_counted_in_levels(depth: int, limit: int, lists: bool) -> None:
    inner = (
        "[" * (depth - 1) + "]" * (depth - 1)
        if lists
        else '{"b":' * (depth - 1) + "1" + "}" * (depth - 1)
    )
    got = read_arguments(f'{{"a":{inner or 1}}}', SeatLimits(argument_depth=limit))
    if depth <= limit:
        assert not isinstance(got, Refusal)
    else:
        assert got == Refusal(RefusalKind.TOO_DEEP, limit, depth)


@bounded
@given(TEXT, st.integers(min_value=0, max_value=50))
def test_size_is_counted_in_bytes(text: str, limit: int) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    refusal = refuse_large(text, limit)
    assert refusal == (Refusal(RefusalKind.TOO_LARGE, limit, size) if size > limit else None)


@bounded
@given(st.floats())
def test_every_accepted_number_is_finite(number: float) -> None:
    got = read_arguments(json.dumps({"a": number}), SeatLimits())
    if math.isfinite(number):
        assert same(got, {"a": number})
    else:
        assert got == Refusal(RefusalKind.MALFORMED)


def is_writable(value: Any) -> bool:
    """Return whether a value contains no lone surrogate."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def depth_of(value: Any) -> int:
    """Return the levels of a value."""
    inner = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    )
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)
