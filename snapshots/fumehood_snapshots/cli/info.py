"""``fumehood snapshot info``: shows the manifest of a snapshot."""

from __future__ import annotations

import json
from pathlib import Path

import click

from fumehood_snapshots.cli.showing import plain
from fumehood_snapshots.format.manifest import read_manifest


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="The manifest without the list of files.")
def info(path: Path, as_json: bool) -> None:
    """Show the contents and settings of the snapshot PATH."""
    manifest, digest = read_manifest(path)
    if as_json:
        description = manifest.model_dump(mode="json", exclude={"files"})
        click.echo(json.dumps({"digest": f"sha256:{digest}", **description}, indent=2))
        return
    size = sum(entry.bytes for entry in manifest.files.values())
    ranking, analysis = manifest.ranking, manifest.analysis
    scope = f"by {ranking.shard_documents} documents" if ranking.shard_documents else "global"
    rows = {
        "name": manifest.name,
        "digest": f"sha256:{digest}",
        "documents": (
            f"{manifest.counts.documents} ({manifest.counts.broken} broken inputs skipped)"
        ),
        "index": f"{manifest.counts.terms} terms, {manifest.counts.postings} postings",
        "raw pages": str(manifest.counts.captures),
        "size": f"{size / 1e6:.1f} MB in {len(manifest.files)} files",
        "ranking": f"BM25 {ranking.method}, k1 {ranking.k1}, b {ranking.b}, statistics {scope}",
        "analysis": f"stemmer {analysis.stemmer}, {len(analysis.stop_words)} stop words",
        "fields": ", ".join(manifest.fields) or "none",
        "extractor": manifest.provenance.extractor,
        "inputs": "; ".join(
            f"{source.kind} {source.name}" for source in manifest.provenance.inputs
        ),
        "licences": "; ".join(manifest.licences) or "unknown",
        "note": manifest.provenance.note,
    }
    for name, value in rows.items():
        if value:
            click.echo(f"{name:<10} {plain(value)}")
