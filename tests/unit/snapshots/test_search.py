"""Search results, their order, filters and snippets."""

from __future__ import annotations

from pathlib import Path

import pytest

from fumehood_snapshots.build.options import BuildOptions, profile
from fumehood_snapshots.errors import Refusal, RefusalCode, SnapshotInputError
from fumehood_snapshots.format.manifest import RankingSpec
from fumehood_snapshots.snapshot import Snapshot
from tests.unit.snapshots.building import Record, built


@pytest.fixture(scope="module")
def animals(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return built(tmp_path_factory.mktemp("animals") / "snapshot")


def test_the_best_document_comes_first_with_its_metadata(animals: Snapshot) -> None:
    hit = animals.search("sleeping cats")[0]
    assert (hit.id, hit.url, hit.title) == ("cat", "https://zoo.example/cat", "Cats")
    assert hit.snippet == "Cats purr. A cat sleeps all day."
    assert hit.score > 0


def test_only_documents_with_a_word_of_the_query_are_found(animals: Snapshot) -> None:
    assert {hit.id for hit in animals.search("mice")} == {"owl", "fox"}
    assert animals.search("zebra") == []
    assert animals.search("the of and") == []
    assert animals.search("") == []
    assert animals.search("\ud800") == []


def test_words_are_found_in_any_of_their_forms(animals: Snapshot) -> None:
    assert {hit.id for hit in animals.search("HUNTING")} == {"owl", "fox"}


def test_titles_are_searched_too(tmp_path: Path) -> None:
    snapshot = built(
        tmp_path / "snapshot", [{"id": "x", "title": "Zanzibar", "text": "An island."}]
    )
    assert [hit.id for hit in snapshot.search("zanzibar")] == ["x"]


def test_equal_scores_are_ordered_by_id(tmp_path: Path) -> None:
    records: list[Record] = [
        {"id": f"t{number:03d}", "text": "same words here"} for number in range(300)
    ]
    records.append({"id": "zz", "text": "same same words"})
    snapshot = built(tmp_path / "snapshot", reversed(records))
    expected = ["zz", *(f"t{number:03d}" for number in range(300))]
    for k in (1, 2, 5, 64, 200, 301, 1000):
        assert [ranked.id for ranked in snapshot.rank("same", k)] == expected[:k]


def test_a_filter_keeps_only_matching_documents(animals: Snapshot) -> None:
    assert [hit.id for hit in animals.search("cat dog mice", wanted={"host": "birds.example"})] == [
        "fox",
        "owl",
    ]
    either = {"host": ["birds.example", "zoo.example"]}
    assert len(animals.search("cat dog mice", wanted=either)) == 4
    assert animals.search("cat", wanted={"host": "nowhere.example"}) == []
    assert animals.search("cat", wanted={"host": []}) == []


def test_a_filter_by_an_unknown_field_is_refused_with_the_known_ones(animals: Snapshot) -> None:
    with pytest.raises(Refusal, match="available: host") as caught:
        animals.search("cat", wanted={"colour": "red"})
    assert caught.value.code is RefusalCode.INVALID_ARGUMENT


def test_documents_have_fields(tmp_path: Path) -> None:
    records: list[Record] = [
        {"id": "a", "text": "word", "fields": {"lang": "en"}},
        {"id": "b", "text": "word", "fields": {"lang": "de", "../year": "1999"}},
        {"id": "c", "text": "word"},
    ]
    snapshot = built(tmp_path / "snapshot", records)
    assert snapshot.manifest.fields == ("../year", "lang")
    assert [hit.id for hit in snapshot.search("word", wanted={"lang": "de"})] == ["b"]
    assert [
        hit.id for hit in snapshot.search("word", wanted={"lang": ["de", "en"], "../year": "1999"})
    ] == ["b"]


def test_a_page_is_found_by_id_and_by_any_spelling_of_its_url(animals: Snapshot) -> None:
    for reference in ("cat", "https://zoo.example/cat", "HTTPS://Zoo.Example:443/%63at#top"):
        document = animals.find(reference)
        assert document is not None
        assert document.id == "cat"
    assert animals.find("https://zoo.example/cow") is None
    assert animals.find("\ud800") is None


def test_a_snippet_has_the_requested_length(tmp_path: Path) -> None:
    text = "filler " * 500 + "the needle lies here " + "filler " * 500
    snapshot = built(tmp_path / "snapshot", [{"id": "x", "text": text}])
    [hit] = snapshot.search("needle", snippet_chars=100)
    assert len(hit.snippet) == 100
    assert "needle" in hit.snippet
    assert text[hit.snippet_start :].startswith(hit.snippet)


def test_term_statistics_can_be_counted_per_shard_as_in_the_paper(tmp_path: Path) -> None:
    # "b" is rare among the first two documents and common among the last two: by shard its weight
    # differs.
    records: list[Record] = [
        {"id": "1", "text": "b x x y"},
        {"id": "2", "text": "x y z w"},
        {"id": "3", "text": "b x x y"},
        {"id": "4", "text": "b b b b"},
    ]
    one = built(
        tmp_path / "a" / "snapshot", records, BuildOptions(ranking=RankingSpec(shard_documents=4))
    )
    plain = built(tmp_path / "b" / "snapshot", records, BuildOptions())
    two = built(
        tmp_path / "c" / "snapshot", records, BuildOptions(ranking=RankingSpec(shard_documents=2))
    )
    assert one.rank("b", 4) == plain.rank("b", 4)
    by_id = {ranked.id: ranked.score for ranked in two.rank("b", 4)}
    assert by_id["1"] > by_id["3"]
    assert profile("uniace-sharded").ranking.shard_documents == 20_000


def test_unknown_names_are_refused_with_the_known_ones(tmp_path: Path) -> None:
    for options, known in (
        (BuildOptions(stemmer="klingon"), "porter"),
        (BuildOptions(stop_word_list="all"), "english-long"),
        (BuildOptions(extractor="guess"), "trafilatura"),
    ):
        with pytest.raises(SnapshotInputError, match=known):
            built(tmp_path / "snapshot", options=options)
