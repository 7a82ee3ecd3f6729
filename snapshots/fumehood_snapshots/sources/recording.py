"""A recording as a source: each fetched page becomes a document with all its URLs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from fumehood_snapshots.format import layout
from fumehood_snapshots.format.hashing import canonical_json, sha256_file
from fumehood_snapshots.format.manifest import InputEntry
from fumehood_snapshots.sources.pages import PageItem
from fumehood_snapshots.sources.source import Item
from fumehood_snapshots.sources.warc import LostRecord, page_id
from fumehood_snapshots.web.recording import REQUESTS, RESPONSE_INDEX, RESPONSES, Recording

FILES = (REQUESTS, RESPONSES, RESPONSE_INDEX)


class RecordingFolder:
    """A recording. The first successful copy of a page counts."""

    def __init__(self, folder: Path) -> None:
        """Read the list of requests.

        Raises:
            SnapshotInputError: the folder is not a recording.
            SnapshotDamagedError: its list of requests cannot be read.
        """
        self._folder = folder
        self._recording = Recording(folder)

    def entry(self) -> InputEntry:
        """Return the manifest entry: one hash over the files."""
        paths = [self._folder / name for name in FILES if (self._folder / name).exists()]
        digest = hashlib.sha256(
            canonical_json([[path.name, sha256_file(path)] for path in paths])
        ).hexdigest()
        size = sum(path.stat().st_size for path in paths)
        return InputEntry(
            kind="recording", name=self._folder.resolve().name, bytes=size, sha256=digest
        )

    def items(self) -> Iterator[Item]:
        """Yield the pages in order of their first fetch, then the failures."""
        aliases: dict[str, set[str]] = {}
        chosen: dict[str, tuple[str, bool]] = {}
        lost = []
        for request in self._recording.requests:
            if request.purpose != "page":
                continue
            if request.capture is None:
                lost.append(LostRecord(request.url, f"{request.failure}: {request.reason}"))
                continue
            # The capture is read for its URL now and again later: a recording may exceed memory.
            capture = self._recording.responses.read(request.capture)
            aliases.setdefault(capture.uri, set()).add(request.url)
            good = capture.status == 200
            if capture.uri not in chosen or (good and not chosen[capture.uri][1]):
                chosen[capture.uri] = (request.capture, good)
        for url, (record_id, _) in chosen.items():
            capture = self._recording.responses.read(record_id)
            also = tuple(sorted(aliases[url] - {url}))
            yield PageItem(where=url, id=page_id(url), url=url, capture=capture, aliases=also)
        yield from lost

    def replay_files(self) -> list[tuple[str, Path]]:
        """Return the files of the recording that a snapshot keeps for replay."""
        paths = [self._folder / name for name in FILES]
        return [(f"{layout.RECORDED}/{path.name}", path) for path in paths if path.exists()]
