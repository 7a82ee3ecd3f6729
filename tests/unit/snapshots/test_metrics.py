"""Retrieval metrics equal their standard definitions, and every question counts."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from fumehood_snapshots.errors import SnapshotInputError
from fumehood_snapshots.metrics.judgements import read_qrels, read_questions
from fumehood_snapshots.metrics.retrieval import (
    measure_rankings,
    measure_snapshot,
)
from tests.unit.snapshots.building import built


def test_measures_equal_their_definitions() -> None:
    judgements = {"q": {"a": 2, "b": 1, "c": 0}}
    quality = measure_rankings({"q": ["x", "b", "c", "a"]}, judgements, cuts=(2, 4))
    values = quality.by_question["q"]
    gain = 1 / math.log2(3)
    ideal = 2 + 1 / math.log2(3)
    assert values["R@2"] == pytest.approx(1 / 2)
    assert values["R@4"] == pytest.approx(1)
    assert values["RR"] == pytest.approx(1 / 2)
    assert values["nDCG@2"] == pytest.approx(gain / ideal)
    assert values["nDCG@4"] == pytest.approx((gain + 2 / math.log2(5)) / ideal)


def test_a_question_without_a_hit_counts_as_zero() -> None:
    judgements = {"found": {"a": 1}, "lost": {"a": 1}, "unasked": {"a": 1}}
    quality = measure_rankings({"found": ["a"], "lost": []}, judgements, cuts=(1,))
    assert quality.means == {"R@1": 0.5, "nDCG@1": 0.5, "RR": 0.5}
    assert set(quality.by_question) == {"found", "lost"}


def test_equal_scores_are_measured_in_result_order(tmp_path: Path) -> None:
    records = [{"id": identity, "text": "same words"} for identity in ("a", "b", "c")]
    snapshot = built(tmp_path / "snapshot", records)
    for wanted, reciprocal in (("a", 1), ("b", 1 / 2), ("c", 1 / 3)):
        quality = measure_snapshot(snapshot, {"q": "same"}, {"q": {wanted: 1}}, cuts=(3,))
        assert quality.means["RR"] == pytest.approx(reciprocal)


def test_a_question_without_a_judgement_is_refused() -> None:
    for judgements in ({}, {"q": {"a": 0}}):
        with pytest.raises(SnapshotInputError, match="question q has no relevant document"):
            measure_rankings({"q": ["a"]}, judgements)


def test_trec_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("q1 0 d1 2\nq1 Q0 d2 0\n\nq2 0 d1 -1\n", encoding="utf-8")
    (tmp_path / "questions").write_text("q1\tWhat is it?\nq2\tA\tB \n", encoding="utf-8")
    assert read_qrels(tmp_path / "qrels") == {"q1": {"d1": 2, "d2": 0}, "q2": {"d1": -1}}
    assert read_questions(tmp_path / "questions") == {"q1": "What is it?", "q2": "A\tB"}


@pytest.mark.parametrize("line", ["q d 1", "q 0 d x", "q 0 d 1 extra"])
def test_an_invalid_judgement_is_reported_with_its_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "qrels").write_text(f"q 0 d 1\n{line}\n", encoding="utf-8")
    with pytest.raises(SnapshotInputError, match="qrels:2"):
        read_qrels(tmp_path / "qrels")


@pytest.mark.parametrize("line", ["q2", "\tWhat?", "q2\t", "q1\ttwice"])
def test_an_invalid_question_is_reported_with_its_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "questions").write_text(f"q1\tWhat?\n{line}\n", encoding="utf-8")
    with pytest.raises(SnapshotInputError, match="questions:2"):
        read_questions(tmp_path / "questions")


def test_missing_and_binary_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name in ("absent", "binary"):
        with pytest.raises(SnapshotInputError, match=name):
            read_qrels(tmp_path / name)
