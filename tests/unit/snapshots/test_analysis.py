"""Text is cut into the same terms in a document and in a query."""

from __future__ import annotations

import pytest

from fumehood_snapshots.analysis.analyzer import Analyzer
from fumehood_snapshots.analysis.spec import PROBE_WORDS, AnalysisSpec, analysis_spec, check_stemmer
from fumehood_snapshots.errors import SnapshotInputError, SnapshotVersionError

ENGLISH = Analyzer(analysis_spec())


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The cats' pyjamas", ["cat", "pyjama"]),
        ("os.path.join(a_b, 'c')", ["os", "path", "join", "b", "c"]),
        ("C3PO isn't R2-D2", ["c3po", "isn", "t", "r2", "d2"]),
        ("Crème brûlée", ["crème", "brûlée"]),
        ("ﬁnally ½", ["final", "1", "2"]),
        ("Straße STRASSE", ["straße", "strass"]),
        ("日本語 テスト", ["日本語", "テスト"]),
        ("non\u00a0breaking\u2014dash\u200bed", ["non", "break", "dash", "ed"]),
        ("x" * 65 + " ok", ["ok"]),
        ("", []),
    ],
)
def test_words_are_converted_to_terms(text: str, terms: list[str]) -> None:
    assert ENGLISH.terms(text) == terms


def test_composed_and_decomposed_accents_are_equal() -> None:
    assert ENGLISH.terms("cafe\u0301") == ENGLISH.terms("caf\u00e9")


def test_stop_words_are_dropped_before_stemming() -> None:
    assert Analyzer(analysis_spec(stop_word_list="english-long")).terms(
        "being doing does owls"
    ) == ["owl"]
    assert Analyzer(analysis_spec(stop_word_list="none")).terms("the owls") == ["the", "owl"]


def test_porter_and_its_successor_differ() -> None:
    assert Analyzer(analysis_spec(stemmer="porter")).terms("generously") == ["gener"]
    assert Analyzer(analysis_spec(stemmer="english")).terms("generously") == ["generous"]
    assert Analyzer(analysis_spec(stemmer="none")).terms("generously") == ["generously"]


def test_case_can_be_kept() -> None:
    assert Analyzer(AnalysisSpec(lowercase=False)).terms("Cat cat") == ["Cat", "cat"]


@pytest.mark.parametrize("word", PROBE_WORDS)
def test_a_stemmer_is_checked_with_whole_words(word: str) -> None:
    assert Analyzer(AnalysisSpec()).terms(word) == [word]


def test_a_stemmer_is_checked_by_its_results() -> None:
    check_stemmer("porter", analysis_spec(stemmer="porter").stems)
    with pytest.raises(SnapshotVersionError, match="install the PyStemmer release"):
        check_stemmer("english", analysis_spec(stemmer="porter").stems)
    with pytest.raises(SnapshotInputError, match="unknown stemmer"):
        check_stemmer("klingon", {"a": "a"})
