"""Scores equal those of rank_bm25 and bm25s, up to 32-bit rounding."""

from __future__ import annotations

import random
from pathlib import Path

import bm25s
import numpy as np
import pytest
from rank_bm25 import BM25Okapi

from fumehood_snapshots.build.options import BuildOptions, Pace, profile
from fumehood_snapshots.format.manifest import RankingSpec
from fumehood_snapshots.snapshot import Snapshot
from tests.unit.snapshots.building import Record, built

ROUNDING = 1e-4


def _records(count: int) -> list[Record]:
    chance = random.Random(7)
    words = [f"w{int(chance.paretovariate(0.7)) % 900}" for _ in range(count * 30)]
    return [
        {
            "id": f"d{number:04d}",
            "text": " ".join(words[number * 30 : number * 30 + chance.randint(5, 30)]),
        }
        for number in range(count)
    ]


RECORDS = _records(400)
QUERIES = ["w1 w2", "w3 w17 w200", "w1 w1 w5", "w899 w4", "w11 w12 w13 w14 w15"]


def _tokens(snapshot: Snapshot) -> list[list[str]]:
    return [snapshot.analyzer.terms(str(record["text"])) for record in RECORDS]


def test_okapi_scores_equal_those_of_rank_bm25(tmp_path: Path) -> None:
    snapshot = built(tmp_path / "snapshot", RECORDS, profile("uniace"), Pace(chunk_items=37))
    reference = BM25Okapi(_tokens(snapshot))
    for query in QUERIES:
        terms = snapshot.analyzer.terms(query)
        expected = reference.get_scores(terms)
        assert snapshot.scorer.scores(terms) == pytest.approx(expected, abs=ROUNDING)
        cut = sorted(expected)[-10]
        clear = {number for number, score in enumerate(expected) if score > cut + ROUNDING}
        assert clear <= {ranked.number for ranked in snapshot.rank(query, 10)}


def test_a_word_in_most_documents_has_the_weight_of_rank_bm25(tmp_path: Path) -> None:
    records: list[Record] = [
        {"id": f"{n}", "text": "common " + f"rare{n} other{n} more{n}"} for n in range(9)
    ]
    snapshot = built(tmp_path / "snapshot", records, profile("uniace"))
    reference = BM25Okapi([snapshot.analyzer.terms(str(record["text"])) for record in records])
    assert snapshot.scorer.scores(["common"]) == pytest.approx(
        reference.get_scores(["common"]), abs=ROUNDING
    )


def test_lucene_scores_equal_those_of_bm25s(tmp_path: Path) -> None:
    options = BuildOptions(ranking=RankingSpec(method="lucene", k1=0.9, b=0.4))
    snapshot = built(tmp_path / "snapshot", RECORDS, options, Pace(chunk_items=37))
    reference = bm25s.BM25(k1=0.9, b=0.4, method="lucene")
    reference.index(_tokens(snapshot), show_progress=False)
    for query in QUERIES:
        terms = snapshot.analyzer.terms(query)
        assert snapshot.scorer.scores(terms) == pytest.approx(
            reference.get_scores(terms), abs=ROUNDING
        )


def test_bm25s_can_load_the_arrays_of_a_snapshot(tmp_path: Path) -> None:
    snapshot = built(tmp_path / "snapshot", RECORDS)
    index = tmp_path / "snapshot" / "index"
    reader = bm25s.BM25(backend="numpy")
    reader.nonoccurrence_array = None
    reader.vocab_dict = {term: number for number, term in enumerate(snapshot.scorer.terms)}
    reader.scores = {
        "data": np.load(index / "weights.npy"),
        "indices": np.load(index / "documents.npy"),
        "indptr": np.load(index / "offsets.npy"),
        "num_docs": len(RECORDS),
    }
    terms = sorted(snapshot.analyzer.terms("w3 w17 w200"))
    assert (reader.get_scores(terms) == snapshot.scorer.scores(terms)).all()
