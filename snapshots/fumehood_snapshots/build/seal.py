"""Merges finished chunks into a snapshot; writes hashes and the manifest last."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from fumehood_snapshots.analysis.spec import AnalysisSpec
from fumehood_snapshots.build.chunk import Chunk
from fumehood_snapshots.build.merge_documents import (
    merge_broken,
    merge_captures,
    merge_fields,
    merge_records,
)
from fumehood_snapshots.build.merge_index import merge_index
from fumehood_snapshots.build.options import BuildOptions, Progress
from fumehood_snapshots.build.order import order_documents
from fumehood_snapshots.extraction.main_text import extractor_release
from fumehood_snapshots.format import layout
from fumehood_snapshots.format.hashing import sha256_file
from fumehood_snapshots.format.manifest import (
    Counts,
    FileEntry,
    InputEntry,
    Manifest,
    Provenance,
    manifest_bytes,
)

DECIDING_PACKAGES = ("numpy", "PyStemmer", "warcio")


def seal(
    root: Path,
    chunk_folders: Sequence[Path],
    inputs: Sequence[InputEntry],
    extra_files: Sequence[tuple[str, Path]],
    options: BuildOptions,
    analysis: AnalysisSpec,
    postings_at_once: int,
    progress: Progress,
) -> Manifest:
    """Write a whole snapshot into the empty folder ``root``.

    Args:
        root: folder to create.
        chunk_folders: folders of all chunks, in input order.
        inputs: manifest entries of the inputs.
        extra_files: relative path in the snapshot → file to copy.
        options: options of the build.
        analysis: analysis settings of the chunks.
        postings_at_once: maximum number of postings sorted in memory.
        progress: receives each stage.
    """
    for folder in ("documents", "index", "fields"):
        (root / folder).mkdir(parents=True)
    chunks = [Chunk(folder) for folder in chunk_folders]
    order = order_documents(chunks)
    merge_records(root, chunks, order, progress)
    merge_fields(root, order)
    index = merge_index(root, chunks, order.numbers, options.ranking, postings_at_once, progress)
    counts = Counts(
        documents=len(order.ids),
        terms=index.terms,
        postings=index.postings,
        tokens=index.tokens,
        captures=merge_captures(root, chunks),
        broken=merge_broken(root, chunks, order),
    )
    for relative, source in extra_files:
        (root / relative).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, root / relative)
    manifest = Manifest(
        name=options.name,
        counts=counts,
        analysis=analysis,
        ranking=options.ranking,
        search=options.search,
        fields=tuple(sorted(order.fields)),
        provenance=_provenance(inputs, options),
        licences=options.licences,
        files=_hashed_files(root, progress),
    )
    (root / layout.MANIFEST).write_bytes(manifest_bytes(manifest))
    return manifest


def _provenance(inputs: Sequence[InputEntry], options: BuildOptions) -> Provenance:
    return Provenance(
        inputs=tuple(inputs),
        extractor=extractor_release(options.extractor),
        software={name: version(name) for name in DECIDING_PACKAGES},
        note=options.note,
    )


def _hashed_files(root: Path, progress: Progress) -> dict[str, FileEntry]:
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    entries = {}
    for done, path in enumerate(paths, start=1):
        entry = FileEntry(bytes=path.stat().st_size, sha256=sha256_file(path))
        entries[path.relative_to(root).as_posix()] = entry
        progress("hashing files", done, len(paths))
    return entries
