"""Foreign WARC files are read in bounded memory; written files have reproducible bytes."""

from __future__ import annotations

import gzip
import io
import tracemalloc
import zlib
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from fumehood_snapshots.build.options import BuildOptions
from fumehood_snapshots.build.pipeline import build_snapshot
from fumehood_snapshots.captures.capture import Capture
from fumehood_snapshots.captures.store import CaptureStore, append_capture
from fumehood_snapshots.captures.unpacking import (
    BoundedGunzip,
    PackingBombError,
    PackingError,
    unpack_content,
)
from fumehood_snapshots.captures.warc import (
    UnreadableRecordError,
    WarcError,
    encode_capture,
    read_captures,
)
from fumehood_snapshots.errors import SnapshotDamagedError, SnapshotInputError
from fumehood_snapshots.snapshot import open_snapshot
from fumehood_snapshots.sources.warc import WarcFile
from tests.unit.snapshots.test_extraction import ARTICLE

MIB = 1024 * 1024
DATE = "2026-01-31T12:00:00Z"


def _foreign(
    body: bytes,
    *,
    uri: str = "https://site.example/page",
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/html; charset=utf-8"),),
    status: str = "200 OK",
    packed: bool = True,
) -> bytes:
    out = io.BytesIO()
    writer = WARCWriter(out, gzip=packed)
    http = StatusAndHeaders(status, list(headers), protocol="HTTP/1.1")
    record = writer.create_warc_record(
        uri,
        "response",
        payload=io.BytesIO(body),
        length=len(body),
        http_headers=http,
        warc_headers_dict={"WARC-Date": DATE},
    )
    writer.write_record(record)
    return out.getvalue()


def _read(content: bytes, limit: int = MIB) -> list[Capture | UnreadableRecordError]:
    return list(read_captures(io.BytesIO(content), limit))


@pytest.mark.parametrize("packed", [True, False])
def test_records_of_other_writers_are_read(packed: bool) -> None:
    warc = _foreign(b"one", packed=packed) + _foreign(
        b"two", uri="https://site.example/2", packed=packed
    )
    first, second = _read(warc)
    assert isinstance(first, Capture)
    assert isinstance(second, Capture)
    assert (first.body, first.status, first.fetched_at) == (b"one", 200, DATE)
    assert (second.body, second.uri, second.content_type) == (
        b"two",
        "https://site.example/2",
        "text/html; charset=utf-8",
    )


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", lambda content: zlib.compress(content)[2:-4]),
        ("identity", bytes),
        ("gzip, deflate", lambda content: zlib.compress(gzip.compress(content))),
    ],
    ids=["gzip", "deflate", "bare deflate", "identity", "twice"],
)
def test_content_encodings_are_undone(encoding: str, pack: object) -> None:
    assert callable(pack)
    [capture] = _read(_foreign(pack(b"body " * 50), headers=(("Content-Encoding", encoding),)))
    assert isinstance(capture, Capture)
    assert capture.body == b"body " * 50


def test_chunked_bodies_are_joined() -> None:
    warc = _foreign(
        b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", headers=(("Transfer-Encoding", "chunked"),)
    )
    [capture] = _read(warc)
    assert isinstance(capture, Capture)
    assert capture.body == b"abcde"


@pytest.mark.parametrize(
    ("body", "encoding", "reason"),
    [
        (b"not gzip", "gzip", "broken gzip"),
        (gzip.compress(b"x" * 1000)[:-12], "gzip", "is truncated"),
        (b"x", "br", "content encoding 'br'"),
        (b"x", "gzip, gzip, gzip", "more than two"),
        (gzip.compress(bytes(64 * MIB), 1), "gzip", "unpacks to more than"),
        (bytes(2 * MIB), "identity", "larger than"),
    ],
    ids=["broken", "cut", "unknown", "many", "bomb", "large"],
)
def test_reading_continues_after_a_bad_record(body: bytes, encoding: str, reason: str) -> None:
    bad, good = _read(_foreign(body, headers=(("Content-Encoding", encoding),)) + _foreign(b"good"))
    assert isinstance(bad, UnreadableRecordError)
    assert reason in str(bad)
    assert isinstance(good, Capture)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (gzip.compress(bytes(64 * MIB), 1), "not a WARC file"),
        (gzip.compress(b"WARC/1.0\r\n" + b"X: y\r\n" * MIB, 1), "headers do not end"),
        (_foreign(bytes(64 * MIB)), "packing bomb"),
        (gzip.compress(gzip.compress(b"WARC/1.0\r\n")), "not a WARC file"),
        (_foreign(b"x" * 1000)[:-20], "is truncated"),
        (b"\x1f\x8bnonsense", "not gzip"),
        (b"hello there\r\n", "not a WARC file"),
        (b"PK\x03\x04" + bytes(100), "not a WARC file"),
    ],
    ids=["zeros", "endless headers", "zeros in a record", "nested", "cut", "broken", "text", "zip"],
)
def test_an_invalid_warc_is_refused_in_bounded_memory(content: bytes, reason: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(WarcError, match=reason):
            _read(content)
        assert tracemalloc.get_traced_memory()[1] < 32 * MIB
    finally:
        tracemalloc.stop()


def test_gunzip_reads_several_members_and_padding() -> None:
    packed = gzip.compress(b"one ") + gzip.compress(b"") + gzip.compress(b"two") + bytes(512)
    stream = BoundedGunzip(io.BytesIO(packed))
    assert b"".join(iter(lambda: stream.read(2), b"")) == b"one two"


def test_unpacking_is_bounded_by_size_and_by_ratio() -> None:
    with pytest.raises(PackingBombError, match="more than 100 bytes"):
        unpack_content(gzip.compress(b"x" * 101), "gzip", 100)
    with pytest.raises(PackingBombError, match="times its size"):
        unpack_content(gzip.compress(bytes(8 * MIB)), "gzip", 16 * MIB)
    with pytest.raises(PackingError):
        unpack_content(b"", "gzip", 100)


CAPTURE = Capture(
    uri="https://site.example/a b",
    fetched_at=DATE,
    body=ARTICLE.encode(),
    content_type="text/html",
    status=200,
    headers=(("Content-Type", "text/html"), ("Content-Encoding", "gzip"), ("X-Kept", "yes")),
)


def test_captures_are_written_reproducibly_and_other_readers_read_them() -> None:
    record = encode_capture(CAPTURE)
    assert record == encode_capture(CAPTURE)
    [read] = ArchiveIterator(io.BytesIO(record))
    assert read.rec_headers.get_header("WARC-Record-ID") == CAPTURE.record_id
    assert read.rec_headers.get_header("WARC-Target-URI") == "https://site.example/a%20b"
    assert read.http_headers.headers == [("Content-Type", "text/html"), ("X-Kept", "yes")]


def test_different_captures_have_different_ids() -> None:
    other = Capture(
        uri=CAPTURE.uri, fetched_at=DATE, body=b"other", content_type="text/html", status=200
    )
    assert other.record_id != CAPTURE.record_id


def test_captures_are_read_back_by_id(tmp_path: Path) -> None:
    warc, index = tmp_path / "pages.warc", tmp_path / "pages.jsonl"
    file = Capture(uri="urn:file:x", fetched_at="", body=b"\0raw", content_type="text/plain")
    for capture in (CAPTURE, file):
        append_capture(warc, index, capture)
    with index.open("ab") as stream:
        stream.write(b'{"torn": ')
    store = CaptureStore(warc, index)
    assert len(store) == 2
    assert store.read(file.record_id) == file
    assert store.read(CAPTURE.record_id).body == CAPTURE.body
    with pytest.raises(KeyError):
        store.read("<urn:uuid:absent>")
    warc.write_bytes(b"")
    with pytest.raises(SnapshotDamagedError, match="cannot be read"):
        store.read(file.record_id)


def test_a_snapshot_of_a_warc_keeps_good_pages_and_lists_the_others(tmp_path: Path) -> None:
    warc = tmp_path / "crawl.warc.gz"
    warc.write_bytes(
        _foreign(ARTICLE.encode())
        + _foreign(b"gone", uri="https://site.example/gone", status="404 Not Found")
        + _foreign(
            b"\x89PNG", uri="https://site.example/i.png", headers=(("Content-Type", "image/png"),)
        )
        + _foreign(ARTICLE.replace("mice", "voles").encode())
    )
    options = BuildOptions(extractor="resiliparse")
    manifest = build_snapshot([WarcFile(warc)], tmp_path / "snapshot", options)
    assert (manifest.counts.documents, manifest.counts.broken) == (1, 3)
    snapshot = open_snapshot(tmp_path / "snapshot", verify=True)
    page = snapshot.find("https://site.example/page")
    assert page is not None
    assert "mice" in page.text
    assert len(page.id) == 12
    assert snapshot.captures().read(page.capture).body == ARTICLE.encode()
    broken = (tmp_path / "snapshot" / "documents" / "broken.jsonl").read_text(encoding="utf-8")
    assert "the server answered 404" in broken
    assert "image/png is not text" in broken
    assert "is already used by" in broken


def test_a_gzip_bomb_stops_a_build_with_one_line_of_error(tmp_path: Path) -> None:
    warc = tmp_path / "bomb.warc.gz"
    warc.write_bytes(_foreign(bytes(64 * MIB)))
    with pytest.raises(SnapshotInputError, match=r"bomb\.warc\.gz: a packing bomb") as caught:
        build_snapshot([WarcFile(warc)], tmp_path / "snapshot", BuildOptions())
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "snapshot").exists()
