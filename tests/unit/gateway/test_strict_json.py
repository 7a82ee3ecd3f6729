"""A request that the gateway accepts means the same to every parser."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.gateway.strict_json import (
    DEPTH_MAX,
    VALUES_MAX,
    InvalidJson,
    StructureScan,
    parse_object,
    to_bytes,
)

TEXT = '{"model": "m"}'


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"model": "cheap", "model": "dear"}', "'model' occurs twice"),
        (b'{"a": [{"b": 1, "\\u0062": 2}]}', "'b' occurs twice"),
        (b'{"stream": 1, "model": "cheap", "model": "dear"}', "'model' occurs twice"),
        (b'{"model": "cheap", "MODEL": "dear"}', "'model' and 'MODEL' differ only by case"),
        ('{"max_tokens": 1, "max_to\u212aens": 2}'.encode(), "differ only by case"),
        ('{"stream": 1, "\u017ftream": 2}'.encode(), "differ only by case"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (TEXT.encode("utf-16"), "not UTF-8: byte 0"),
        (TEXT.encode("utf-16-le"), "not JSON"),
        (TEXT.encode("utf-32"), "not UTF-8: byte 0"),
        (b'{"model": "\xff"}', "not UTF-8: byte 11"),
        (b'{"model": "\xed\xa0\x80"}', "not UTF-8"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": [Infinity]}', "Infinity is not a JSON number"),
        (b'{"a": -Infinity}', "-Infinity is not a JSON number"),
        (b'{"a": 1e999}', "1e999 is too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "too many digits"),
        (b"[]", "must be one JSON object"),
        (b'"text"', "must be one JSON object"),
        (b"", "not JSON"),
        (b'{"a": 1} {"a": 2}', "not JSON"),
        (b'{"a": "\n"}', "not JSON"),
        (b'{"a": ' + b"[" * DEPTH_MAX + b"]" * DEPTH_MAX + b"}", f"more than {DEPTH_MAX} levels"),
        (b'{"a": ' * 50_000, f"more than {DEPTH_MAX} levels"),
    ],
)
def test_an_ambiguous_request_is_refused_with_one_line(body: bytes, reason: str) -> None:
    with pytest.raises(InvalidJson, match=reason) as raised:
        parse_object(body)
    message = str(raised.value)
    assert message.isascii()
    assert message.isprintable()
    assert len(message) < 300


@pytest.mark.parametrize("text", [r'{"model": "\ud800"}', r'{"\udc00": 1}', r'{"a": ["\ud83d"]}'])
def test_half_of_a_surrogate_pair_is_refused(text: str) -> None:
    with pytest.raises(InvalidJson, match="surrogate"):
        to_bytes(parse_object(text.encode()))


def test_the_deepest_request_is_accepted() -> None:
    inner = DEPTH_MAX - 1
    value = parse_object(b'{"a": ' + b"[" * inner + b"]" * inner + b"}")
    assert to_bytes(value).count(b"[") == inner


def test_the_order_of_keys_is_kept() -> None:
    assert to_bytes(parse_object(b'{ "z": 1.0, "a": [ "\\u00e9" ] }')) == (
        '{"z":1.0,"a":["é"]}'.encode()
    )


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("abcdef"), inner),
    max_leaves=20,
)  # fmt: skip


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from("abcdef"), values), st.booleans(), st.integers(0, 3))
def test_a_written_request_has_the_same_value(
    request: dict[str, object], ascii_only: bool, indent: int
) -> None:
    body = json.dumps(request, ensure_ascii=ascii_only, indent=indent).encode()
    written = to_bytes(parse_object(body))
    assert json.loads(written) == request
    assert to_bytes(parse_object(written)) == written


@pytest.mark.slow
@given(values, st.integers(1, 7))
def test_the_count_of_values_does_not_depend_on_the_parts(value: object, size: int) -> None:
    body = json.dumps(value).encode()
    whole, parts = StructureScan(), StructureScan()
    assert whole.take(body)
    for start in range(0, len(body), size):
        assert parts.take(body[start : start + size])
    assert whole.values == parts.values >= count(value)


def count(value: object) -> int:
    """Return the number of values in a value, without the keys."""
    if isinstance(value, dict):
        return 1 + sum(map(count, value.values()))
    return 1 + sum(map(count, value)) if isinstance(value, list) else 1


def test_too_many_values_are_found_before_the_end() -> None:
    scan = StructureScan()
    assert scan.take(b'{"a": [')
    assert not scan.take(b"[]," * VALUES_MAX)


def test_text_is_not_counted_as_values() -> None:
    scan = StructureScan()
    assert scan.take(b'{"a": "' + rb"[,{\"\\" * VALUES_MAX + b'"}')
    assert scan.values < 10
