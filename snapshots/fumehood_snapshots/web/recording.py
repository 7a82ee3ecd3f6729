"""Recorded responses, keyed by canonical request and occurrence; replay never uses the network.

A recording is a folder::

    requests.jsonl    one line per request: request, occurrence and result
    responses.warc    every response, including redirects and robots.txt
    responses.jsonl   offset of each response

Lines are appended atomically, so several threads and processes can record together, and a killed
writer loses at most its last line.
"""

from __future__ import annotations

import fcntl
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from fumehood_snapshots.captures.capture import Capture
from fumehood_snapshots.captures.store import CaptureStore, append_capture
from fumehood_snapshots.documents.urls import canonical_url
from fumehood_snapshots.errors import (
    FetchFailed,
    FetchFailure,
    Refusal,
    RefusalCode,
    SnapshotDamagedError,
    SnapshotInputError,
)
from fumehood_snapshots.format.hashing import canonical_json, parse_json, sha256_bytes
from fumehood_snapshots.web.fetcher import Fetcher

REQUESTS = "requests.jsonl"
RESPONSES = "responses.warc"
RESPONSE_INDEX = "responses.jsonl"
LOCK = ".lock"
LINE_BYTES = 1024
"""Added to each request and response for its headers and its line in the index."""

Purpose = Literal["page", "search"]


def request_key(url: str) -> str:
    """Return the key of a request: the hash of its method and canonical URL."""
    return sha256_bytes(canonical_json(["GET", _encodable(canonical_url(url))]))


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One line of ``requests.jsonl``."""

    session: str
    """Name of the episode; occurrences are counted per session, so episodes stay separate."""
    key: str
    occurrence: int
    """Counted from 0."""
    url: str
    """The requested URL."""
    purpose: Purpose
    elapsed_ms: int
    """Duration of the recorded request."""
    capture: str | None
    """The ID of the final response; None if there was none."""
    failure: str | None = None
    reason: str | None = None

    def line(self) -> bytes:
        """Return the request as one line."""
        return canonical_json({name: getattr(self, name) for name in self.__slots__}) + b"\n"


class Recorder:
    """Appends to a recording. Threads may share it; processes may share its folder."""

    def __init__(
        self, folder: Path, bytes_max: int | None = None, folder_bytes_max: int | None = None
    ) -> None:
        """Create the folder if it does not exist.

        Args:
            folder: of the recording.
            bytes_max: what this recorder may append; None for no limit.
            folder_bytes_max: size of the whole recording; None for no limit.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._bytes_max = bytes_max
        self._folder_bytes_max = folder_bytes_max
        self._written_bytes = 0
        self._is_full = False
        self._counts: Counter[tuple[str, str]] = Counter()
        self._mutex = Lock()

    def keep(self, capture: Capture) -> None:
        """Append a response.

        Raises:
            FetchFailed: the recording would exceed its size.
        """
        with self._alone():
            self.take(len(capture.body))
            append_capture(self._folder / RESPONSES, self._folder / RESPONSE_INDEX, capture)

    def take(self, size_bytes: int) -> None:
        """Take space for a response or a request, with its headers. Once there is too little, there
        is none for smaller ones either.

        Raises:
            FetchFailed: the recording would exceed its size.
        """
        files = [self._folder / name for name in (REQUESTS, RESPONSES, RESPONSE_INDEX)]
        used_bytes = sum(file.stat().st_size for file in files if file.exists())
        for used, limit, whose in (
            (self._written_bytes, self._bytes_max, " of an episode"),
            (used_bytes, self._folder_bytes_max, ""),
        ):
            if limit is not None and used + size_bytes + LINE_BYTES > limit:
                self._is_full = True
            if self._is_full:
                reason = f"the recording{whose} may have at most {limit} bytes: raise recording_mb"
                raise FetchFailed(FetchFailure.TOO_LARGE, reason)
        self._written_bytes += size_bytes + LINE_BYTES

    def occurrence(self, session: str, key: str) -> int:
        """Return the number of earlier occurrences of this request in this session; count it."""
        with self._mutex:
            self._counts[session, key] += 1
            return self._counts[session, key] - 1

    def note(self, request: RecordedRequest) -> None:
        """Append the result of a request.

        Raises:
            FetchFailed: the recording would exceed its size.
        """
        line = request.line()
        with self._alone(), (self._folder / REQUESTS).open("ab") as stream:
            self.take(len(line))
            stream.write(line)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._mutex, (self._folder / LOCK).open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


@dataclass(frozen=True, slots=True)
class RecordingFetcher:
    """Fetches through another fetcher and records each result, including failures.

    The other fetcher must pass its responses to :meth:`Recorder.keep`.
    """

    live: Fetcher
    recorder: Recorder
    session: str
    purpose: Purpose
    clock: Callable[[], float] = time.monotonic

    def fetch(self, url: str) -> Capture:
        """Return the page and record it.

        Raises:
            FetchFailed: the fetch failed; the failure is recorded.
        """
        key = request_key(url)
        self.recorder.take(len(url))  # Nothing is fetched that cannot be recorded.
        occurrence = self.recorder.occurrence(self.session, key)
        started = self.clock()
        capture, failed = None, None
        try:
            capture = self.live.fetch(url)
            return capture
        except FetchFailed as error:
            failed = error
            raise
        finally:
            # Also after other errors: such a request is recorded without a result.
            request = RecordedRequest(
                session=self.session,
                key=key,
                occurrence=occurrence,
                url=_encodable(url),
                purpose=self.purpose,
                elapsed_ms=round((self.clock() - started) * 1000),
                capture=capture.record_id if capture else None,
                failure=failed.failure.value if failed else None,
                reason=failed.reason if failed else None,
            )
            self.recorder.note(request)


class Recording:
    """A finished recording, for replay and for builds."""

    def __init__(self, folder: Path) -> None:
        """Read the list of requests.

        Raises:
            SnapshotInputError: the folder is not a recording.
            SnapshotDamagedError: a line other than an incomplete last line cannot be read.
        """
        if not (folder / REQUESTS).is_file():
            raise SnapshotInputError(f"{folder} is not a recording: it contains no {REQUESTS}")
        self.requests = _read_requests(folder / REQUESTS)
        self.responses = CaptureStore(folder / RESPONSES, folder / RESPONSE_INDEX)


class ReplayingFetcher:
    """Answers from a recording only."""

    def __init__(self, recording: Recording, session: str) -> None:
        self._recording = recording
        self._session = session
        # The later answers of a session that was recorded twice count.
        self._answers = {
            (request.session, request.key, request.occurrence): request
            for request in recording.requests
        }
        self._counts: Counter[str] = Counter()
        self._mutex = Lock()

    def fetch(self, url: str) -> Capture:
        """Return the recorded response to the same occurrence of the same request.

        Raises:
            FetchFailed: the recorded result is a failure.
            Refusal: nothing was recorded.
        """
        key = request_key(url)
        with self._mutex:
            occurrence = self._counts[key]
            self._counts[key] += 1
        request = self._answers.get((self._session, key, occurrence))
        if request is None or (request.capture is None and request.failure is None):
            times = "" if occurrence == 0 else f" for occurrence {occurrence + 1}"
            raise Refusal(RefusalCode.NOT_RECORDED, f"this page was not recorded{times}")
        if request.failure is not None:
            raise FetchFailed(FetchFailure(request.failure), request.reason or "")
        try:
            return self._recording.responses.read(request.capture or "")
        except KeyError as error:
            raise SnapshotDamagedError(
                f"the recording lacks the response {request.capture}"
            ) from error


def _read_requests(path: Path) -> list[RecordedRequest]:
    lines = path.read_bytes().splitlines(keepends=True)
    if lines and not lines[-1].endswith(b"\n"):
        lines.pop()
    try:
        return [_request(parse_json(line)) for line in lines]
    except (ValueError, TypeError, AttributeError) as error:
        raise SnapshotDamagedError(f"{path.name} cannot be read: {error}") from error


def _request(record: dict[str, Any]) -> RecordedRequest:
    if record.get("failure") is not None:
        FetchFailure(record["failure"])
    return RecordedRequest(**record)
