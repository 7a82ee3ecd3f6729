"""Everything that a run folder stores is read back unchanged."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.core.errors import InputError
from fumehood.core.json_values import canonical_json
from fumehood.core.outcome import Outcome, outcome_from_json, outcome_name, outcome_to_json
from fumehood.core.task import Suite
from fumehood.records.frozen_suite import freeze_suite, read_frozen_suite
from fumehood.records.row import EpisodeName, EpisodeRow, file_name
from tests.property.packages.episodes import NAMES, OUTCOMES, ROWS, SUITES
from tests.property.packages.values import TEXT, bounded


@bounded
@given(OUTCOMES)
def test_an_outcome_is_read_as_it_was_stored(outcome: Outcome) -> None:
    frozen = json.loads(canonical_json(outcome_to_json(outcome)))
    assert outcome_from_json(frozen) == outcome
    assert outcome_name(outcome).split("(")[0] == frozen["outcome"]


@bounded
@given(ROWS)
def test_a_row_is_read_as_it_was_stored(row: EpisodeRow) -> None:
    assert EpisodeRow.from_json(json.loads(canonical_json(row.to_json()))) == row


@pytest.mark.slow
@bounded
@given(SUITES)
def test_a_suite_is_read_as_it_was_stored_with_the_order_of_its_keys(suite: Suite) -> None:
    frozen = freeze_suite(suite)
    read_suite = read_frozen_suite(suite.name, frozen.encode("ascii"))
    assert read_suite == suite
    assert freeze_suite(read_suite) == frozen
    for one, other in zip(read_suite.cases, suite.cases, strict=True):
        assert json.dumps(one.task.initial_state) == json.dumps(other.task.initial_state)
        for rule, frozen_rule in zip(one.task.fault_plan, other.task.fault_plan, strict=True):
            assert json.dumps(rule.to_json()) == json.dumps(frozen_rule.to_json())


@bounded
@given(TEXT, st.lists(TEXT, max_size=3))
def test_a_text_that_is_not_a_suite_is_an_input_error(name: str, lines: list[str]) -> None:
    text = "\n".join(lines)
    if text.strip():
        with pytest.raises(InputError, match=r"suite\.jsonl"):
            read_frozen_suite(name, text.encode())


@bounded
@given(st.text(max_size=200))
def test_a_file_name_is_safe_on_every_file_system(name: str) -> None:
    safe = file_name(name)
    assert 0 < len(safe.encode("ascii")) <= 100
    assert set(safe) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-~")
    assert safe not in (".", "..")
    assert not safe.startswith((".", "-", "~"))
    assert not safe.endswith(".")


@bounded
@given(
    st.lists(
        TEXT | st.sampled_from(["a", "A", "a.", "a~", "a/b", "a-b", "..", "", ".x", "é"]),
        unique=True,
    )
)
def test_two_names_never_share_a_file(names: list[str]) -> None:
    assert len({file_name(name) for name in names}) == len(names)


@bounded
@given(st.lists(TEXT))
def test_a_replacement_name_never_equals_a_safe_name(names: list[str]) -> None:
    replacements = {file_name(name) for name in names if file_name(name) != name}
    assert all(file_name(replacement) != replacement for replacement in replacements)


SLASHES = st.text(alphabet="ab/.~", max_size=4)


@bounded
@given(
    st.lists(
        NAMES | st.builds(EpisodeName, SLASHES, SLASHES, st.integers(0, 3)),
        unique=True,
        max_size=12,
    )
)
def test_two_episodes_never_share_an_identifier_or_a_file(names: list[EpisodeName]) -> None:
    for said in ("identifier", "trace_path", "output_path"):
        assert len({getattr(name, said) for name in names}) == len(names)
