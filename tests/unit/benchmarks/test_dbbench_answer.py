"""Tests of dbbench's comparison of answers, which evaluates no expression."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.benchmarks.dbbench.scorer import read_answer, same_answer, tables_digest
from fumehood.core.json_values import JsonObject


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("Grey Point", ["Grey Point"]),
        ('["Grey Point"]', ["Grey Point"]),
        ("[('Grey Point',)]", ["Grey Point"]),
        ("1,204", ["1204.0"]),
        ("33.33", ["33.336"]),
        ("12%", ["12.0"]),
        ("['b', 'a', 'a']", ["a", "b"]),
        ("[3, 1.0, 2]", ["1", "2", "3"]),
        ("[Grey Point, Ox Head]", ["Ox Head", "Grey Point"]),
        ("[(Decimal,)]", ["Decimal"]),
        ("None", ["0"]),
        ("[None, 2]", ["2", "0"]),
    ],
)
def test_equal_answers(answer: str, label: list[str]) -> None:
    assert same_answer(answer, label)


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("grey point", ["Grey Point"]),
        ("33.3", ["33.336"]),
        ("[1, 1]", ["1"]),
        ("['a']", ["a", "b"]),
        ("[('a', 'b')]", ["a"]),
        ("", ["Grey Point"]),
        ("[1+1]", ["2"]),
    ],
)
def test_different_answers(answer: str, label: list[str]) -> None:
    assert not same_answer(answer, label)


def test_an_expression_is_not_evaluated(tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    program = f"[open({str(trace)!r}, 'w')]"
    assert read_answer(program)
    assert not trace.exists()


@given(st.text() | st.text(alphabet="[](),'\"x0\\ ").map(lambda inner: f"[{inner}]"))
def test_any_text_can_be_read(answer: str) -> None:
    assert all(isinstance(value, str) for value in read_answer(answer))


def test_deeply_nested_text_is_split_without_parsing() -> None:
    assert read_answer("[" * 5000 + "]" * 5000)
    assert read_answer(f"[0x{'f' * 5000}]")


def test_the_order_of_rows_does_not_count_and_columns_are_selected_by_name() -> None:
    expected = [("t", ("a", "b"))]
    one: JsonObject = {"name": "t", "columns": ["a", "b"], "rows": [["1", "2"], ["3", None]]}
    other: JsonObject = {
        "name": "t",
        "columns": ["b", "new", "a"],
        "rows": [[None, "", "3"], ["2", "", "1"]],
    }
    assert tables_digest([one], expected) == tables_digest([other], expected) is not None
    assert tables_digest([{**one, "name": "other"}], expected) is None
    assert tables_digest([{**one, "columns": ["a", "c"]}], expected) is None
