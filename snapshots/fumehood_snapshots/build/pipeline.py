"""Builds a snapshot from sources: chunks in parallel, then one merge.

``.NAME.building`` beside the new snapshot holds the finished chunks. An interrupted build with the
same inputs and options continues from them. The snapshot appears complete, by one rename, or not at
all.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from fumehood_snapshots.analysis.spec import AnalysisSpec, analysis_spec
from fumehood_snapshots.build.chunk import ChunkJob, make_chunk, make_chunk_in_worker
from fumehood_snapshots.build.options import BuildOptions, Pace, Progress, silent
from fumehood_snapshots.build.seal import seal
from fumehood_snapshots.errors import SnapshotBuildError, SnapshotInputError
from fumehood_snapshots.extraction.main_text import main_text_extractor
from fumehood_snapshots.format.hashing import canonical_json
from fumehood_snapshots.format.layout import BROKEN
from fumehood_snapshots.format.manifest import InputEntry, Manifest
from fumehood_snapshots.index.counting import TermCounter
from fumehood_snapshots.sources.source import Item, Source

PLAN = "plan.json"
IN_FLIGHT_PER_WORKER = 2


def build_snapshot(
    sources: Sequence[Source],
    out: Path,
    options: BuildOptions,
    pace: Pace | None = None,
    progress: Progress = silent,
    extra_files: Sequence[tuple[str, Path]] = (),
) -> Manifest:
    """Build a snapshot.

    Args:
        sources: read one after another.
        out: folder to create; must not exist.
        options: options that determine the bytes.
        pace: workers and sizes; None means one worker.
        progress: receives each stage.
        extra_files: relative path in the snapshot → file to copy, such as recorded requests.

    Returns:
        The manifest of the snapshot.

    Raises:
        SnapshotInputError: an input or option cannot be used, no page can be read, or ``out``
            exists.
        SnapshotBuildError: a worker died, or another build is running; finished chunks are kept.
    """
    pace = pace or Pace()
    if out.exists():
        raise SnapshotInputError(f"{out} exists; name another folder or remove it first")
    main_text_extractor(options.extractor)
    analysis = analysis_spec(stop_word_list=options.stop_word_list, stemmer=options.stemmer)
    inputs = [source.entry() for source in sources]
    with _workshop(out, _plan(inputs, options, pace)) as workshop:
        total = sum(entry.bytes for entry in inputs)
        jobs = _jobs(sources, workshop, options, analysis, pace)
        folders = _make_chunks(jobs, pace.workers, analysis, total, progress)
        root = workshop / "sealed"
        shutil.rmtree(root, ignore_errors=True)
        manifest = seal(
            root, folders, inputs, extra_files, options, analysis, pace.merge_postings, progress
        )
        nothing = manifest.counts.broken and not manifest.counts.documents
        complaint = _nothing_readable(root, manifest.counts.broken) if nothing else ""
        if not complaint:
            root.rename(out)
    if complaint:
        raise SnapshotInputError(complaint)
    return manifest


def _nothing_readable(root: Path, broken: int) -> str:
    with (root / BROKEN).open("rb") as listed:
        first = json.loads(listed.readline())
    return (
        f"nothing to build from: all {broken} pages are broken; {first['where']}: {first['reason']}"
    )


def _plan(inputs: Sequence[InputEntry], options: BuildOptions, pace: Pace) -> bytes:
    """Return a text that is equal for builds with equal chunks."""
    sizes = [pace.chunk_items, pace.chunk_bytes]
    return canonical_json(
        [[entry.model_dump() for entry in inputs], options.model_dump(mode="json"), sizes]
    )


@contextmanager
def _workshop(out: Path, plan: bytes) -> Iterator[Path]:
    """Lock the folder of unfinished work; empty it if the plan differs; remove it at the end."""
    folder = out.parent / f".{out.name}.building"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SnapshotBuildError(f"another build of {out} is running") from error
        if not (folder / PLAN).exists() or (folder / PLAN).read_bytes() != plan:
            shutil.rmtree(folder / "chunks", ignore_errors=True)
            (folder / PLAN).write_bytes(plan)
        (folder / "chunks").mkdir(exist_ok=True)
        yield folder
        shutil.rmtree(folder)


def _jobs(
    sources: Sequence[Source],
    workshop: Path,
    options: BuildOptions,
    analysis: AnalysisSpec,
    pace: Pace,
) -> Iterator[tuple[ChunkJob, int]]:
    """Yield the chunks, each with its number of input bytes."""
    items = (item for source in sources for item in source.items())
    for number, batch in enumerate(_batches(items, pace)):
        folder = workshop / "chunks" / f"{number:06d}"
        yield (
            ChunkJob(folder, batch, options.extractor, analysis),
            sum(item.size_bytes for item in batch),
        )


def _batches(items: Iterator[Item], pace: Pace) -> Iterator[list[Item]]:
    batch: list[Item] = []
    size = 0
    for item in items:
        batch.append(item)
        size += item.size_bytes
        if len(batch) >= pace.chunk_items or size >= pace.chunk_bytes:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _make_chunks(
    jobs: Iterator[tuple[ChunkJob, int]],
    workers: int,
    analysis: AnalysisSpec,
    total: int,
    progress: Progress,
) -> list[Path]:
    """Make the missing chunks; return all folders, in order."""
    folders: list[Path] = []
    with _Workers(workers, analysis) as workers_pool:
        done = 0
        for job, size in jobs:
            folders.append(job.folder)
            if not job.folder.exists():
                workers_pool.make(job)
            done += size
            progress("reading", min(done, total), total)
    if not folders:
        raise SnapshotInputError("the inputs contain no document")
    return folders


class _Workers:
    """Worker processes with a bounded queue; a single worker is this process."""

    def __init__(self, workers: int, analysis: AnalysisSpec) -> None:
        # Spawned, because forking a process with threads can leave locks held.
        context = get_context("spawn")
        self._pool = ProcessPoolExecutor(workers, mp_context=context) if workers > 1 else None
        self._in_flight_max = workers * IN_FLIGHT_PER_WORKER
        self._in_flight: set[Future[Path]] = set()
        self._counter = TermCounter(analysis)

    def make(self, job: ChunkJob) -> None:
        """Queue a chunk; block while the queue is full."""
        if self._pool is None:
            make_chunk(job, self._counter)
            return
        if len(self._in_flight) >= self._in_flight_max:
            self._settle(FIRST_COMPLETED)
        self._in_flight.add(self._pool.submit(make_chunk_in_worker, job))

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._pool is None:
            return
        try:
            if kind is None:
                self._settle("ALL_COMPLETED")
        finally:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def _settle(self, until: str) -> None:
        finished, self._in_flight = wait(self._in_flight, return_when=until)
        for future in finished:
            try:
                future.result()
            except BrokenProcessPool as error:
                raise SnapshotBuildError(
                    "a worker process died, perhaps for lack of memory; resume with fewer workers"
                ) from error
            except OSError as error:
                raise SnapshotBuildError(f"a chunk could not be written: {error}") from error
