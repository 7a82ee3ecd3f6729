"""Converts captures to WARC records and WARC files to captures, with ``warcio``.

Output is uncompressed WARC 1.0, so equal captures give equal bytes with every release of zlib, and
a record is found by its offset. Input may be compressed and untrusted, so every read is bounded.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, BinaryIO, cast
from urllib.parse import quote

from fumehood_snapshots.captures.capture import Capture, Headers
from fumehood_snapshots.captures.unpacking import (
    GZIP_MAGIC,
    BoundedGunzip,
    PackingBombError,
    PackingError,
    unpack_content,
)

UNKNOWN_DATE = "1970-01-01T00:00:00Z"
"""Replaces an unknown date, because WARC requires one."""

UNDONE_HEADERS = frozenset({"content-encoding", "transfer-encoding", "content-length"})
"""Headers that are invalid for an unpacked body."""

LINE_BYTES_MAX = 64 * 1024
HEADER_BYTES_MAX = 256 * 1024

_URI_SAFE = "".join(chr(code) for code in range(0x21, 0x7F))


class WarcError(Exception):
    """A file is not a WARC file, or is damaged."""


class UnreadableRecordError(Exception):
    """One record cannot be used; reading continues with the next."""

    def __init__(self, uri: str, reason: str) -> None:
        super().__init__(reason)
        self.uri = uri


def encode_capture(capture: Capture) -> bytes:
    """Return the WARC record of a capture: ``response`` for an HTTP response, else ``resource``."""
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

    out = io.BytesIO()
    writer = WARCWriter(out, gzip=False)
    http_headers = None
    if capture.status is not None:
        kept = [
            (name, value) for name, value in capture.headers if name.lower() not in UNDONE_HEADERS
        ]
        http_headers = StatusAndHeaders(f"{capture.status} ", kept, protocol="HTTP/1.1")
    record = writer.create_warc_record(
        quote(capture.uri, safe=_URI_SAFE),
        "resource" if capture.status is None else "response",
        payload=io.BytesIO(capture.body),
        length=len(capture.body),
        warc_content_type=capture.content_type if capture.status is None else "",
        warc_headers_dict={
            "WARC-Record-ID": capture.record_id,
            "WARC-Date": capture.fetched_at or UNKNOWN_DATE,
        },
        http_headers=http_headers,
    )
    writer.write_record(record)
    return out.getvalue()


def read_captures(
    stream: BinaryIO, body_bytes_max: int
) -> Iterator[Capture | UnreadableRecordError]:
    """Yield every response and resource of a seekable WARC file, compressed or not, in order.

    A larger body makes its record unreadable; each unusable record is an
    :class:`UnreadableRecordError`.

    Raises:
        WarcError: the file is not a WARC file, is truncated, or exceeds the expansion ratio.
    """
    from warcio.archiveiterator import ArchiveIterator
    from warcio.exceptions import ArchiveLoadFailed
    from warcio.statusandheaders import StatusAndHeadersParserException

    try:
        records = ArchiveIterator(_unpacked(stream))
        records.reader = _bounded_reader(records.fh)
        for record in records:
            if record.rec_type in {"response", "resource"}:
                yield _capture_or_error(record, body_bytes_max)
    except PackingBombError as error:
        raise WarcError(f"a packing bomb: it {error}") from error
    except PackingError as error:
        raise WarcError(str(error)) from error
    except (ArchiveLoadFailed, StatusAndHeadersParserException, EOFError, UnicodeError) as error:
        raise WarcError("not a WARC file, or damaged: a record has no valid beginning") from error


def _unpacked(stream: BinaryIO) -> BinaryIO:
    magic = stream.read(2)
    stream.seek(0)
    if magic != GZIP_MAGIC:
        return stream
    return cast(BinaryIO, BoundedGunzip(stream))


def _bounded_reader(stream: BinaryIO) -> Any:
    """Return warcio's reader without unpacking and with bounded headers."""
    from warcio.bufferedreaders import BufferedReader

    class BoundedReader(BufferedReader):  # type: ignore[misc]
        header_bytes = 0

        def read(self, length: int | None = None) -> bytes:
            self.header_bytes = 0
            content: bytes = super().read(length)
            return content

        def readline(self, length: int | None = None) -> bytes:
            # The original concatenates parts of a line, which takes quadratic time for an endless
            # line.
            line: bytes = super().readline(min(length or LINE_BYTES_MAX, LINE_BYTES_MAX))
            self.header_bytes += len(line)
            if len(line) >= LINE_BYTES_MAX or self.header_bytes > HEADER_BYTES_MAX:
                raise WarcError("not a WARC file: its headers do not end")
            return line

    return BoundedReader(stream)


def _capture_or_error(record: Any, body_bytes_max: int) -> Capture | UnreadableRecordError:
    uri = record.rec_headers.get_header("WARC-Target-URI") or ""
    try:
        return _capture(record, uri, body_bytes_max)
    except (PackingBombError, PackingError, ValueError) as error:
        return UnreadableRecordError(uri, str(error))


def _capture(record: Any, uri: str, body_bytes_max: int) -> Capture:
    packed = record.raw_stream.read(body_bytes_max + 1)
    if len(packed) > body_bytes_max:
        raise ValueError(f"larger than {body_bytes_max} bytes")
    date = record.rec_headers.get_header("WARC-Date") or ""
    http = record.http_headers
    headers: Headers = (
        tuple((str(name), str(value)) for name, value in http.headers) if http else ()
    )
    if http is None:
        content_type = record.rec_headers.get_header("Content-Type") or ""
        status = None
    else:
        content_type = http.get_header("Content-Type") or ""
        status = int(http.get_statuscode())
        if "chunked" in (http.get_header("Transfer-Encoding") or "").lower():
            packed = _joined_chunks(packed)
        packed = unpack_content(packed, http.get_header("Content-Encoding") or "", body_bytes_max)
    return Capture(
        uri=uri,
        fetched_at="" if date == UNKNOWN_DATE else date,
        body=packed,
        content_type=content_type,
        status=status,
        headers=headers,
    )


def _joined_chunks(content: bytes) -> bytes:
    from warcio.bufferedreaders import ChunkedDataReader

    # Crawlers often store a joined body with a chunked header; the reader accepts that.
    joined: bytes = ChunkedDataReader(io.BytesIO(content)).read()
    return joined
