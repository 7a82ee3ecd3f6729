"""Equal queries give equal bytes for any process, number of threads and chunks."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fumehood_snapshots.build.options import BuildOptions, Pace
from fumehood_snapshots.documents.urls import canonical_url
from fumehood_snapshots.format.hashing import canonical_json
from fumehood_snapshots.format.manifest import RankingSpec
from fumehood_snapshots.format.strings import StringTable, table_files, write_strings
from fumehood_snapshots.index.selection import SMALLEST, best
from fumehood_snapshots.snapshot import Snapshot, open_snapshot
from fumehood_snapshots.snippets import densest_span
from tests.unit.snapshots.building import build, contents

WORDS = st.sampled_from(
    [f"w{number}" for number in range(12)] + ["cats", "the", "Ünïcode", "x" * 70]
)
TEXTS = st.lists(WORDS, min_size=1, max_size=25).map(" ".join)
CORPORA = st.dictionaries(
    st.text("abcABC0é", min_size=1, max_size=3), TEXTS, min_size=1, max_size=25
)
PACES = st.builds(
    Pace,
    chunk_items=st.integers(1, 30),
    chunk_bytes=st.integers(1, 2000),
    merge_postings=st.integers(1, 200),
)
RANKINGS = st.builds(
    RankingSpec,
    method=st.sampled_from(["lucene", "okapi"]),
    k1=st.floats(0, 3),
    b=st.floats(0, 1),
    shard_documents=st.none() | st.integers(1, 10),
)

ANSWER_IN_ANOTHER_PROCESS = """
import json, sys
from pathlib import Path
from tests.property.snapshots.test_snapshot_properties import answers
from fumehood_snapshots.snapshot import open_snapshot

root, queries = json.load(sys.stdin)
sys.stdout.buffer.write(answers(open_snapshot(Path(root)), queries, 3))
"""


def answers(snapshot: Snapshot, queries: list[str], threads: int) -> bytes:
    """Return all search results as bytes."""
    with ThreadPoolExecutor(threads) as pool:
        results = list(pool.map(lambda query: snapshot.search(query, 7), queries))
    return canonical_json([[asdict(hit) for hit in hits] for hits in results])


def _records(corpus: dict[str, str]) -> list[dict[str, str]]:
    return [{"id": identity, "text": text, "title": text[:5]} for identity, text in corpus.items()]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    corpus=CORPORA,
    paces=st.tuples(PACES, PACES),
    ranking=RANKINGS,
    queries=st.lists(TEXTS, max_size=4),
)
def test_the_same_documents_give_the_same_bytes_and_results_for_any_chunks(
    corpus: dict[str, str], paces: tuple[Pace, Pace], ranking: RankingSpec, queries: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        roots = [Path(folder) / side / "snapshot" for side in ("left", "right")]
        for root, pace in zip(roots, paces, strict=True):
            build(root, _records(corpus), BuildOptions(ranking=ranking), pace)
        assert contents(roots[0]) == contents(roots[1])
        snapshot = open_snapshot(roots[0], verify=True)
        assert answers(snapshot, queries, 1) == answers(open_snapshot(roots[1]), queries, 4)
        for query in queries:
            scores = snapshot.scorer.scores(snapshot.analyzer.terms(query))
            expected = [
                n for n in np.lexsort((np.arange(len(scores)), -scores)).tolist() if scores[n] > 0
            ]
            assert [ranked.number for ranked in snapshot.rank(query, 7)] == expected[:7]


@pytest.mark.slow
def test_other_processes_give_the_same_bytes(tmp_path: Path) -> None:
    words = [f"w{number % 7} common w{number % 11}" for number in range(200)]
    build(
        tmp_path / "snapshot",
        [{"id": f"{number}", "text": text} for number, text in enumerate(words)],
    )
    queries = ["common", "w1 w2 w3", "w6 common", "absent"]
    here = answers(open_snapshot(tmp_path / "snapshot"), queries, 1)
    for hash_seed in ("0", "1"):
        there = subprocess.run(
            [sys.executable, "-c", ANSWER_IN_ANOTHER_PROCESS],
            input=json.dumps([str(tmp_path / "snapshot"), queries]).encode(),
            env={
                "PYTHONHASHSEED": hash_seed,
                "PYTHONPATH": ":".join(sys.path),
                "OMP_NUM_THREADS": "2",
            },
            capture_output=True,
            check=True,
        )
        assert there.stdout == here


@given(
    scores=st.lists(
        st.sampled_from([0.0, 0.5, 1.0, 1.25, 7.0]) | st.floats(0, 9, width=32), max_size=400
    ),
    k=st.integers(1, 50),
)
@example(scores=[1.0] * 300, k=2)
def test_the_best_results_equal_those_of_a_full_sort(scores: list[float], k: int) -> None:
    array = np.array(scores, dtype=np.float32)
    order = sorted(range(len(scores)), key=lambda number: (-array[number], number))
    assert (
        best(array, k).tolist()
        == [number for number in order if array[number] >= np.float32(SMALLEST)][:k]
    )


@pytest.mark.slow
@given(strings=st.sets(st.text(max_size=8), max_size=60), absent=st.text(max_size=8))
@settings(deadline=None)
def test_a_string_table_contains_its_strings_in_order(strings: set[str], absent: str) -> None:
    encodable = sorted(string for string in strings if string.isprintable() or string == "")
    with tempfile.TemporaryDirectory() as folder:
        write_strings(Path(folder), "t", encodable)
        table = StringTable(*(Path(folder) / name for name in table_files("t")))
        assert list(table) == encodable
        assert [table[number] for number in range(len(table))] == encodable
        assert [table.find(string) for string in encodable] == list(range(len(encodable)))
        assert (table.find(absent) is None) == (absent not in encodable)


@given(
    gaps=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 6)), max_size=40),
    limit=st.integers(6, 60),
)
def test_the_densest_span_is_the_best_of_all_spans(gaps: list[tuple[int, int]], limit: int) -> None:
    spans, place = [], 0
    for gap, length in gaps:
        spans.append((place + gap, place + gap + length))
        place += gap + length
    start, end = densest_span(spans, limit)

    def held(start: int, end: int) -> int:
        return sum(start <= left and right <= end for left, right in spans)

    candidates = [
        (left, right) for left, _ in spans for _, right in spans if 0 < right - left <= limit
    ]
    most = max((held(*candidate) for candidate in candidates), default=0)
    assert held(start, end) == most
    assert (start, end) == next((span for span in candidates if held(*span) == most), (0, 0))


@given(
    st.text(max_size=60)
    | st.builds("https://{}.example:{}/{}?{}#{}".format, *[st.text("aB%2fé:/?", max_size=6)] * 5)
)
def test_canonicalizing_a_url_twice_changes_nothing(url: str) -> None:
    assert canonical_url(canonical_url(url)) == canonical_url(url)
