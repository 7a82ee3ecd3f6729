"""``fumehood snapshot build``: builds a snapshot from inputs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from fumehood_snapshots.build.options import PROFILES, Pace, profile
from fumehood_snapshots.build.pipeline import build_snapshot
from fumehood_snapshots.cli.showing import ShownProgress, json_option, plain, print_json
from fumehood_snapshots.errors import SnapshotInputError
from fumehood_snapshots.extraction.main_text import DEFAULT, EXTRACTORS
from fumehood_snapshots.format.manifest import Manifest, read_manifest
from fumehood_snapshots.sources.folder import Folder
from fumehood_snapshots.sources.jsonl import JsonLines
from fumehood_snapshots.sources.recording import RecordingFolder
from fumehood_snapshots.sources.source import Source
from fumehood_snapshots.sources.warc import WarcFile

A_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("out", type=A_PATH)
@click.option("--jsonl", type=A_PATH, multiple=True, help="A JSON Lines file; may be repeated.")
@click.option(
    "--key",
    multiple=True,
    metavar="PART=NAME",
    help="Key of a part in the lines, such as id=docid.",
)
@click.option(
    "--folder", type=A_PATH, multiple=True, help="A folder of HTML, Markdown and text files."
)
@click.option("--base-url", default="", help="URL of the published folder.")
@click.option("--warc", type=A_PATH, multiple=True, help="A WARC file, compressed or not.")
@click.option(
    "--recording",
    type=A_PATH,
    help="A recording of `snapshot record` or of a run with data_mode record.",
)
@click.option("--name", default="snapshot", show_default=True, help="Name of the snapshot.")
@click.option(
    "--profile",
    "profile_name",
    type=click.Choice(sorted(PROFILES)),
    default="standard",
    help="Settings of the search.",
)
@click.option(
    "--extractor",
    type=click.Choice(sorted(EXTRACTORS)),
    default=DEFAULT,
    show_default=True,
    help="Program that extracts text from HTML.",
)
@click.option("--licence", multiple=True, help="A note on the licence of the documents.")
@click.option("--note", default="", help="A note on the origin of the documents.")
@click.option(
    "--workers", type=click.IntRange(1, 256), help="Number of processes; default: one per core."
)
@json_option
def build(
    out: Path,
    jsonl: Sequence[Path],
    key: Sequence[str],
    folder: Sequence[Path],
    base_url: str,
    warc: Sequence[Path],
    recording: Path | None,
    name: str,
    profile_name: str,
    extractor: str,
    licence: Sequence[str],
    note: str,
    workers: int | None,
    as_json: bool,
) -> None:
    """Build the snapshot OUT from files.

    Equal inputs and options give equal bytes. Unreadable pages are listed in the snapshot. Run the
    command again to continue an interrupted build.
    """
    sources: list[Source] = [JsonLines(path, _names(key)) for path in jsonl]
    sources += [Folder(path, base_url) for path in folder]
    sources += [WarcFile(path) for path in warc]
    extra_files: list[tuple[str, Path]] = []
    if recording is not None:
        recorded = RecordingFolder(recording)
        sources.append(recorded)
        extra_files = recorded.replay_files()
    if not sources:
        raise SnapshotInputError(
            "nothing to build from: give --jsonl, --folder, --warc or --recording"
        )
    options = profile(
        profile_name, name=name, extractor=extractor, licences=tuple(licence), note=note
    )
    pace = Pace(workers=workers or os.cpu_count() or 1)
    with ShownProgress() as progress:
        manifest = build_snapshot(sources, out, options, pace, progress, extra_files)
    say_built(out, manifest, as_json=as_json)


def say_built(out: Path, manifest: Manifest, *, as_json: bool) -> None:
    """Print the result of a build."""
    counts = manifest.counts
    digest = f"sha256:{read_manifest(out)[1]}"
    if as_json:
        print_json({"path": str(out), "digest": digest, "counts": counts.model_dump(mode="json")})
        return
    documents = "1 document" if counts.documents == 1 else f"{counts.documents} documents"
    click.echo(plain(f"{out}: {documents}, {counts.terms} terms, {counts.broken} broken"))
    click.echo(plain(f"digest {digest}"))


def _names(keys: Sequence[str]) -> dict[str, str]:
    pairs = [key.partition("=") for key in keys]
    if not all(equals and name for _, equals, name in pairs):
        raise SnapshotInputError("--key must have the form id=docid")
    return {part: name for part, _, name in pairs}
