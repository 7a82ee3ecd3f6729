"""Folders and JSON Lines give documents with the intended IDs and URLs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fumehood_snapshots.build.options import BuildOptions, Pace
from fumehood_snapshots.build.pipeline import build_snapshot
from fumehood_snapshots.errors import SnapshotInputError
from fumehood_snapshots.snapshot import Snapshot, open_snapshot
from fumehood_snapshots.sources import pages
from fumehood_snapshots.sources.folder import Folder
from fumehood_snapshots.sources.jsonl import JsonLines
from fumehood_snapshots.sources.source import Source
from tests.unit.snapshots.building import write_jsonl
from tests.unit.snapshots.test_extraction import ARTICLE


def _built(tmp_path: Path, source: Source) -> Snapshot:
    build_snapshot([source], tmp_path / "snapshot", BuildOptions(extractor="resiliparse"), Pace())
    return open_snapshot(tmp_path / "snapshot", verify=True)


def test_a_folder_gives_one_document_a_file_with_its_raw_page(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "sub dir").mkdir(parents=True)
    (site / "index.html").write_text(ARTICLE, encoding="utf-8")
    (site / "sub dir" / "ünïcode.md").write_text("# Title\n\nBody", encoding="utf-8")
    (site / "paper.txt").write_text("A paper\n\fPage two", encoding="utf-8")
    (site / "logo.png").write_bytes(b"\x89PNG")
    snapshot = _built(tmp_path, Folder(site, "https://site.example/"))
    ids = ["index.html", "paper.txt", "sub%20dir/%C3%BCn%C3%AFcode.md"]
    assert [document.id for document in snapshot.documents] == ids
    page = snapshot.find("https://site.example/index.html")
    assert page is not None
    assert page.title == "Owls & mice"
    capture = snapshot.captures().read(page.capture)
    assert capture.body == ARTICLE.encode()
    assert (capture.sha256, capture.uri) == (page.raw_sha256, "https://site.example/index.html")


def test_a_file_that_cannot_be_read_as_text_is_listed(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "good.txt").write_text("good", encoding="utf-8")
    (site / "empty.html").write_text("", encoding="utf-8")
    Path(os.fsdecode(bytes(site) + b"/bad\xff.txt")).write_text(
        "text under an odd name", encoding="utf-8"
    )
    snapshot = _built(tmp_path, Folder(site))
    assert [document.id for document in snapshot.documents] == ["bad%FF.txt", "good.txt"]
    assert json.loads((snapshot.root / "documents" / "broken.jsonl").read_bytes()) == {
        "where": "empty.html",
        "reason": "contains no text",
    }


def test_a_link_that_leaves_a_folder_is_not_followed(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    (site / "innocent.txt").symlink_to(tmp_path / "secret.txt")
    (site / "own.txt").write_text("own", encoding="utf-8")
    assert [item.where for item in Folder(site).items()] == ["own.txt"]


def test_json_lines_may_use_other_keys(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "corpus.jsonl", [{"docid": 7, "contents": "Seven owls"}])
    snapshot = _built(tmp_path, JsonLines(path, {"id": "docid", "text": "contents"}))
    assert (snapshot.documents[0].id, snapshot.documents[0].text) == ("7", "Seven owls")


def test_html_in_json_lines_is_kept_raw(tmp_path: Path) -> None:
    record = {
        "id": "owl",
        "url": "https://e.example/owl",
        "html": ARTICLE,
        "fetched_at": "2026-01-31T12:00:00Z",
    }
    snapshot = _built(tmp_path, JsonLines(write_jsonl(tmp_path / "corpus.jsonl", [record])))
    document = snapshot.documents[0]
    assert (document.title, document.fetched_at) == ("Owls & mice", "2026-01-31T12:00:00Z")
    assert snapshot.captures().read(document.capture).body == ARTICLE.encode()


def test_a_url_with_line_ends_cannot_forge_headers_of_a_capture(tmp_path: Path) -> None:
    record = {"id": "x", "url": "https://e.example/\r\nWARC-Type: request\r\n", "html": ARTICLE}
    snapshot = _built(tmp_path, JsonLines(write_jsonl(tmp_path / "corpus.jsonl", [record])))
    warc = (snapshot.root / "captures" / "pages.warc").read_bytes()
    assert b"\r\nWARC-Type: request" not in warc
    assert b"WARC-Target-URI: https://e.example/%0D%0AWARC-Type:%20request%0D%0A\r\n" in warc


def test_a_line_that_is_too_long_is_refused_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fumehood_snapshots.sources.jsonl.PAGE_BYTES_MAX", 100)
    path = tmp_path / "corpus.jsonl"
    path.write_text(
        '{"id": "a", "text": "' + "x" * 1000 + '"}\n{"id": "b", "text": "fine"}\n', encoding="utf-8"
    )
    items = list(JsonLines(path).items())
    assert [item.size_bytes for item in items] == [101, 28]
    assert items[1].where == "corpus.jsonl:2"
    assert pages.PAGE_BYTES_MAX > 1_000_000


@pytest.mark.parametrize(
    "make",
    [
        lambda path: JsonLines(path / "absent.jsonl"),
        lambda path: Folder(path / "absent"),
        lambda path: JsonLines(path, {"identifier": "x"}),
    ],
)
def test_a_missing_input_is_refused(tmp_path: Path, make: object) -> None:
    assert callable(make)
    with pytest.raises(SnapshotInputError):
        make(tmp_path)
