"""One measurement a function, each run in a separate process; all return plain numbers.

Times are processor time of the one process, but opening, which is wall time, as most of it is
waiting.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from scripts.bench.snapshots.corpus import queries, read_texts

STATUS = Path("/proc/self/status")

K = 10
QUERIES = 200
SLOW_QUERIES = 20
Numbers = dict[str, Any]


def rank_bm25(corpus: Path, snapshot: Path) -> Numbers:
    """Build and query ``rank_bm25`` with this project's analyzer; compare the first ten hits."""
    from rank_bm25 import BM25Okapi

    from fumehood_snapshots.snapshot import open_snapshot

    opened = open_snapshot(snapshot)
    with Peak() as peak:
        started = time.process_time()
        index = BM25Okapi([opened.analyzer.terms(text) for text in read_texts(corpus)])
        build_s = time.process_time() - started
    asked = queries(corpus, SLOW_QUERIES)
    terms = [opened.analyzer.terms(query) for query in asked]
    query_ms = _each_ms(lambda query: index.get_scores(opened.analyzer.terms(query)), asked)
    disagreements = 0
    for query, of_query in zip(asked, terms, strict=True):
        scores = index.get_scores(of_query)
        cut = sorted(scores)[-K]
        clear = {number for number, score in enumerate(scores) if score > cut + 1e-4}
        disagreements += not clear <= {ranked.number for ranked in opened.rank(query, K)}
    return {
        "build_s": build_s,
        "query_ms": query_ms,
        "own_mb": peak.megabytes - peak.before,
        "disagreements": disagreements,
    }


def rank_bm25_plain(corpus: Path, snapshot: Path) -> Numbers:
    """Build ``rank_bm25`` with the usual preprocessing; the library itself has none."""
    import re

    from rank_bm25 import BM25Okapi
    from Stemmer import Stemmer

    from fumehood_snapshots.snapshot import open_snapshot

    stop_words = frozenset(open_snapshot(snapshot).manifest.analysis.stop_words)
    stemmer = Stemmer("porter")

    def tokens(text: str) -> list[str]:
        words = re.findall(r"\w+", text.lower())
        return list(stemmer.stemWords([word for word in words if word not in stop_words]))

    with Peak() as peak:
        started = time.process_time()
        BM25Okapi([tokens(text) for text in read_texts(corpus)])
        build_s = time.process_time() - started
    return {"build_s": build_s, "own_mb": peak.megabytes - peak.before}


def bm25s(corpus: Path, snapshot: Path) -> Numbers:
    """Build and ask bare ``bm25s``, with its own tokenizer."""
    import bm25s as library
    import Stemmer

    stemmer = Stemmer.Stemmer("porter")

    def tokens(text: str | Sequence[str], **options: Any) -> Any:
        return library.tokenize(
            text, stopwords="en_plus", stemmer=stemmer, show_progress=False, **options
        )

    with Peak() as peak:
        started = time.process_time()
        index = library.BM25(k1=1.5, b=0.75, backend="numpy", csc_backend="numpy")
        index.index(tokens(read_texts(corpus)), show_progress=False)
        build_s = time.process_time() - started
    asked = queries(corpus, QUERIES)
    query_ms = _each_ms(
        lambda query: index.retrieve(tokens(query, return_ids=False), k=K, show_progress=False),
        asked,
    )
    return {"build_s": build_s, "query_ms": query_ms, "own_mb": peak.megabytes - peak.before}


def build(corpus: Path, snapshot: Path) -> Numbers:
    """Build a snapshot with one process, from the file to the sealed folder."""
    from fumehood_snapshots.build.options import profile
    from fumehood_snapshots.build.pipeline import build_snapshot
    from fumehood_snapshots.sources.jsonl import JsonLines

    with Peak() as peak:
        started = time.process_time()
        manifest = build_snapshot([JsonLines(corpus)], snapshot, profile("uniace"))
        build_s = time.process_time() - started
    index_bytes = sum(
        entry.bytes for name, entry in manifest.files.items() if name.startswith("index/")
    )
    return {
        "build_s": build_s,
        "own_mb": peak.megabytes - peak.before,
        "index_mb": index_bytes / 2**20,
        "whole_mb": sum(entry.bytes for entry in manifest.files.values()) / 2**20,
        "postings": manifest.counts.postings,
    }


def search(corpus: Path, snapshot: Path) -> Numbers:
    """Open a snapshot and ask it."""
    import bm25s as _imported_before_memory_is_counted  # noqa: F401

    from fumehood_snapshots.snapshot import open_snapshot

    own, resident = own_megabytes(), resident_megabytes()
    started = time.perf_counter()
    opened = open_snapshot(snapshot)
    opened.rank("warm", 1)
    open_ms = (time.perf_counter() - started) * 1000
    own_after, resident_after = own_megabytes() - own, resident_megabytes() - resident
    asked = queries(corpus, QUERIES)
    return {
        "open_ms": open_ms,
        "open_own_mb": own_after,
        "open_resident_mb": resident_after,
        "query_ms": _each_ms(lambda query: opened.rank(query, K), asked),
        "search_ms": _each_ms(lambda query: opened.search(query, K), asked),
        "asked_resident_mb": resident_megabytes() - resident,
    }


def snippets(corpus: Path, snapshot: Path) -> Numbers:
    """Take snippets from ever longer documents."""
    from fumehood_snapshots.snapshot import open_snapshot
    from fumehood_snapshots.snippets import QueryWords, best_snippet

    analyzer = open_snapshot(snapshot).analyzer
    text = " ".join(read_texts(corpus)[:600])
    query = QueryWords(analyzer.terms(queries(corpus, 1)[0]), analyzer)
    numbers: Numbers = {}
    for size in (10_000, 100_000, 1_000_000):
        document = text[:size]
        best_snippet(document, query, 2000)
        numbers[f"{size // 1000}k_chars_ms"] = _each_ms(
            lambda part: best_snippet(part, query, 2000), [document] * 5
        )
    return numbers


def _each_ms(act: Callable[[str], object], arguments: Sequence[str]) -> float:
    """Return the mean milliseconds of processor time of one call, after a warm-up call."""
    act(arguments[0])
    started = time.process_time()
    for argument in arguments:
        act(argument)
    return (time.process_time() - started) / len(arguments) * 1000


MEASUREMENTS: dict[str, Callable[[Path, Path], Numbers]] = {
    "build": build,
    "search": search,
    "bm25s": bm25s,
    "rank_bm25": rank_bm25,
    "rank_bm25_plain": rank_bm25_plain,
    "snippets": snippets,
}
"""Name → function; ``build`` makes the snapshot that the others open."""


def own_megabytes() -> float:
    """Return the anonymous memory of this process, without mapped files."""
    return _field("RssAnon")


def resident_megabytes() -> float:
    """Return all memory of this process that is present, mapped files included."""
    return _field("VmRSS")


def _field(name: str) -> float:
    line = next(
        line for line in STATUS.read_text(encoding="ascii").splitlines() if line.startswith(name)
    )
    return int(line.split()[1]) / 1024


class Peak:
    """Watches the process's own memory while a block runs. A context manager."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.before = own_megabytes()
        self.megabytes = self.before
        """The most that was seen."""

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.02):
            self.megabytes = max(self.megabytes, own_megabytes())
