"""Every change of a complete trace is detected."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fumehood.core.json_values import canonical_json
from fumehood.core.trace import GENESIS, BrokenTrace, Chain, Record, verify_chain
from tests.property.packages.values import FLAT_OBJECTS, bounded

EVENTS = st.lists(FLAT_OBJECTS, max_size=6)


def sealed(events: list[dict[str, Any]]) -> list[Record]:
    """Return a whole trace of these events."""
    chain = Chain()
    texts = [canonical_json(event) for event in events]
    records = [Record(text, chain.link(text), 1, 2) for text in texts]
    seal = chain.end_record()
    return [*records, Record(seal, chain.link(seal), 1, 2)]


def is_broken(records: list[Record]) -> bool:
    try:
        verify_chain(records)
    except BrokenTrace:
        return True
    return False


@bounded
@given(EVENTS)
def test_a_complete_trace_is_valid(events: list[dict[str, Any]]) -> None:
    records = sealed(events)
    assert verify_chain(records) == records[-1].hash


@bounded
@given(EVENTS, EVENTS)
def test_the_digest_identifies_the_events(
    one: list[dict[str, Any]], other: list[dict[str, Any]]
) -> None:
    same = [canonical_json(event) for event in one] == [canonical_json(event) for event in other]
    assert (verify_chain(sealed(one)) == verify_chain(sealed(other))) == same


@pytest.mark.slow
@bounded
@given(EVENTS, st.data())
def test_a_truncated_trace_is_found(events: list[dict[str, Any]], data: st.DataObject) -> None:
    records = sealed(events)
    start = data.draw(st.integers(min_value=0, max_value=len(records)))
    stop = data.draw(st.integers(min_value=start, max_value=len(records)))
    assume(start < stop)
    assert is_broken(records[:start] + records[stop:])


@bounded
@given(EVENTS, FLAT_OBJECTS, st.data())
def test_an_edited_event_is_found(
    events: list[dict[str, Any]], text: dict[str, Any], data: st.DataObject
) -> None:
    records = sealed(events)
    place = data.draw(st.integers(min_value=0, max_value=len(records) - 1))
    edited = canonical_json(text)
    assume(edited != records[place].event_json)
    for event_json in (edited, f"{records[place].event_json} ", "", "é", "\ud800"):
        changed = records[place]._replace(event_json=event_json)
        assert is_broken([*records[:place], changed, *records[place + 1 :]])


@bounded
@given(EVENTS, st.permutations(range(4)))
def test_reordered_events_are_found(events: list[dict[str, Any]], order: list[int]) -> None:
    records = sealed([{"n": 1}, {"n": 2}, *events])
    turned = [records[place] for place in order if place < len(records)] + records[4:]
    assume(turned != records)
    assert is_broken(turned)


@bounded
@given(EVENTS, FLAT_OBJECTS)
def test_an_appended_event_with_a_valid_hash_is_found(
    events: list[dict[str, Any]], more: dict[str, Any]
) -> None:
    records = sealed(events)
    chain = Chain()
    for record in records:
        chain.link(record.event_json)
    text = canonical_json(more)
    assert is_broken([*records, Record(text, chain.link(text), 1, 2)])
    assert is_broken([*records, *records])


@pytest.mark.slow
@bounded
@given(EVENTS)
def test_a_shorter_trace_sealed_with_the_same_count_is_found(events: list[dict[str, Any]]) -> None:
    assume(events)
    chain = Chain()
    texts = [canonical_json(event) for event in events[:-1]]
    records = [Record(text, chain.link(text), 1, 2) for text in texts]
    seal = canonical_json({"kind": "sealed", "events": len(events)})
    assert is_broken([*records, Record(seal, chain.link(seal), 1, 2)])


def test_the_hash_does_not_cover_times() -> None:
    records = sealed([{"a": 1}])
    later = [record._replace(wall_ms=99, duration_us=98) for record in records]
    assert verify_chain(later) == verify_chain(records)


def test_an_empty_list_is_not_a_trace() -> None:
    with pytest.raises(BrokenTrace, match="truncated"):
        verify_chain([])


def test_the_hash_chain_equals_the_documented_one() -> None:
    """SHA-256 of the previous hash followed by the event; the first record follows 64 zeros."""
    first, seal = sealed([{"a": 1}])
    assert GENESIS == "0" * 64
    assert first.hash == sha256(f'{"0" * 64}{{"a":1}}'.encode()).hexdigest()
    assert seal.event_json == '{"events":1,"kind":"sealed"}'
    assert seal.hash == sha256(f"{first.hash}{seal.event_json}".encode()).hexdigest()
