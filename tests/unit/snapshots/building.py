"""Builds small snapshots and damages them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fumehood_snapshots.build.options import BuildOptions, Pace
from fumehood_snapshots.build.pipeline import build_snapshot
from fumehood_snapshots.format.manifest import Manifest
from fumehood_snapshots.snapshot import Snapshot, open_snapshot
from fumehood_snapshots.sources.jsonl import JsonLines

Record = Mapping[str, Any]

ANIMALS: tuple[Record, ...] = (
    {
        "id": "cat",
        "url": "https://zoo.example/cat",
        "title": "Cats",
        "text": "Cats purr. A cat sleeps all day.",
    },
    {
        "id": "dog",
        "url": "https://zoo.example/dog",
        "title": "Dogs",
        "text": "Dogs bark. A dog guards the house.",
    },
    {
        "id": "owl",
        "url": "https://birds.example/owl",
        "title": "Owls",
        "text": "Owls hunt mice at night.",
    },
    {
        "id": "fox",
        "url": "https://birds.example/fox",
        "title": "Foxes",
        "text": "A fox hunts mice, owls and cats.",
    },
)


def write_jsonl(path: Path, records: Iterable[Record]) -> Path:
    """Write one line per record."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def build(
    out: Path,
    records: Iterable[Record] = ANIMALS,
    options: BuildOptions | None = None,
    pace: Pace | None = None,
) -> Manifest:
    """Build a snapshot of ``records`` at ``out``, with a fixed input name, which is recorded."""
    out.parent.mkdir(parents=True, exist_ok=True)
    source = JsonLines(write_jsonl(out.parent / "input.jsonl", records))
    return build_snapshot([source], out, options or BuildOptions(), pace)


def built(
    out: Path,
    records: Iterable[Record] = ANIMALS,
    options: BuildOptions | None = None,
    pace: Pace | None = None,
) -> Snapshot:
    """Build a snapshot and open it."""
    build(out, records, options, pace)
    return open_snapshot(out, verify=True)


def contents(root: Path) -> dict[str, bytes]:
    """Return every file of a folder by its relative path."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }


def flip_byte(path: Path, position: int) -> None:
    """Change one byte."""
    content = bytearray(path.read_bytes())
    content[position] ^= 0x01
    path.write_bytes(content)


def change_manifest(root: Path, **changes: Any) -> None:
    """Rewrite top-level parts of a manifest."""
    path = root / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**manifest, **changes}), encoding="utf-8")
