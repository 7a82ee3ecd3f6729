"""Recorded responses: kept by canonical request and occurrence, replayed exactly, never mixed with live ones.

A recording is a folder::

    requests.jsonl    one line per request: what was asked, the how-manieth time, and what came of it
    responses.warc    every response, redirects and robots.txt included
    responses.jsonl   where each response lies in it

Lines are only ever appended, each in one piece, so several threads and processes can record together, and a
writer that is killed costs at most its last line.
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

Purpose = Literal["page", "search"]


def request_key(url: str) -> str:
    """Return what names a request: the hash of its method and canonical URL."""
    return sha256_bytes(canonical_json(["GET", _encodable(canonical_url(url))]))


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One line of ``requests.jsonl``."""

    session: str
    """Whose request; occurrences are counted per session, so that parallel episodes do not mix."""
    key: str
    occurrence: int
    """From 0."""
    url: str
    """As asked."""
    purpose: Purpose
    elapsed_ms: int
    """How long it took then."""
    capture: str | None
    """The id of the response in the end; None when there was none."""
    failure: str | None = None
    reason: str | None = None

    def line(self) -> bytes:
        """Return the request as one line."""
        return canonical_json({name: getattr(self, name) for name in self.__slots__}) + b"\n"


class Recorder:
    """Appends to a recording; may be shared by threads, and its folder by processes."""

    def __init__(self, folder: Path) -> None:
        """Make the folder if it is not there."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._counts: Counter[tuple[str, str]] = Counter()
        self._mutex = Lock()

    def keep(self, capture: Capture) -> None:
        """Append a response."""
        with self._alone():
            append_capture(self._folder / RESPONSES, self._folder / RESPONSE_INDEX, capture)

    def occurrence(self, session: str, key: str) -> int:
        """Return how many times this request was made before in this session, and count it."""
        with self._mutex:
            self._counts[session, key] += 1
            return self._counts[session, key] - 1

    def note(self, request: RecordedRequest) -> None:
        """Append what came of a request."""
        with self._alone(), (self._folder / REQUESTS).open("ab") as stream:
            stream.write(request.line())

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._mutex, (self._folder / LOCK).open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


class RecordingFetcher:
    """Fetches through another fetcher and records what came of each request, failures included.

    The other fetcher must show its responses to :meth:`Recorder.keep`.
    """

    def __init__(
        self,
        live: Fetcher,
        recorder: Recorder,
        session: str,
        purpose: Purpose,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._live = live
        self._recorder = recorder
        self._session = session
        self._purpose = purpose
        self._clock = clock

    def fetch(self, url: str) -> Capture:
        """Return the page and record it.

        Raises:
            FetchFailed: it cannot be had; that is recorded too.
        """
        key = request_key(url)
        occurrence = self._recorder.occurrence(self._session, key)
        started = self._clock()
        capture, failed = None, None
        try:
            capture = self._live.fetch(url)
            return capture
        except FetchFailed as error:
            failed = error
            raise
        finally:
            # Also when something else went wrong: a request without an outcome is told apart by having none.
            request = RecordedRequest(
                session=self._session,
                key=key,
                occurrence=occurrence,
                url=_encodable(url),
                purpose=self._purpose,
                elapsed_ms=round((self._clock() - started) * 1000),
                capture=capture.record_id if capture else None,
                failure=failed.failure.value if failed else None,
                reason=failed.reason if failed else None,
            )
            self._recorder.note(request)


class Recording:
    """A finished recording, for replaying and for building from."""

    def __init__(self, folder: Path) -> None:
        """Read the list of requests.

        Raises:
            SnapshotInputError: the folder is no recording.
            SnapshotDamagedError: a line other than a torn last one cannot be read.
        """
        if not (folder / REQUESTS).is_file():
            raise SnapshotInputError(f"{folder} is not a recording: it holds no {REQUESTS}")
        self.requests = _read_requests(folder / REQUESTS)
        self.responses = CaptureStore(folder / RESPONSES, folder / RESPONSE_INDEX)


class ReplayingFetcher:
    """Answers from a recording, and from nothing else."""

    def __init__(self, recording: Recording, session: str) -> None:
        self._recording = recording
        self._session = session
        # Of a session that was recorded twice the later answers count.
        self._answers = {
            (request.session, request.key, request.occurrence): request
            for request in recording.requests
        }
        self._counts: Counter[str] = Counter()
        self._mutex = Lock()

    def fetch(self, url: str) -> Capture:
        """Return what was recorded for the same request at the same occurrence.

        Raises:
            FetchFailed: that is what was recorded.
            Refusal: nothing was.
        """
        key = request_key(url)
        with self._mutex:
            occurrence = self._counts[key]
            self._counts[key] += 1
        request = self._answers.get((self._session, key, occurrence))
        if request is None or (request.capture is None and request.failure is None):
            times = "" if occurrence == 0 else f" for the {occurrence + 1}. time"
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
