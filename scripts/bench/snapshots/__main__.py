"""``python -m scripts.bench.snapshots``: measures, prints a table and the required ratios."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from scripts.bench.snapshots.corpus import write_corpus
from scripts.bench.snapshots.measurements import MEASUREMENTS, Numbers

COMPARED_WITH = 100_000
SIZES = (1_000, 10_000, 100_000, 500_000)


@click.command()
@click.option(
    "--sizes", default=",".join(map(str, SIZES)), show_default=True, help="Numbers of documents."
)
@click.option(
    "--rounds", type=click.IntRange(1), default=3, show_default=True, help="The best counts."
)
@click.option(
    "--compare", type=int, default=COMPARED_WITH, show_default=True, help="The size to compare at."
)
@click.option(
    "--folder", type=click.Path(path_type=Path), help="Keeps corpora and snapshots; else temporary."
)
@click.option("--one", nargs=3, hidden=True, help="Run one measurement and print its numbers.")
def main(sizes: str, compare: int, rounds: int, folder: Path | None, one: Sequence[str]) -> None:
    """Measure building and searching; 100,000 documents take a few minutes, 500,000 some more."""
    if one:
        click.echo(json.dumps(MEASUREMENTS[one[0]](Path(one[1]), Path(one[2]))))
        return
    with tempfile.TemporaryDirectory() as temporary:
        place = folder or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
        click.echo(f"{os.cpu_count()} cores, load {load}; one process, processor time\n")
        _print_growth(place, [int(size) for size in sizes.split(",") if size])
        if compare:
            _print_comparison(place, compare, rounds)


def _measured(name: str, corpus: Path, snapshot: Path) -> Numbers:
    module = [sys.executable, "-m", "scripts.bench.snapshots"]
    command = [*module, "--one", name, str(corpus), str(snapshot)]
    finished = subprocess.run(command, check=True, capture_output=True, text=True)
    numbers: Numbers = json.loads(finished.stdout)
    return numbers


def _built(place: Path, size: int) -> tuple[Path, Path, Numbers]:
    corpus, snapshot = write_corpus(place, size), place / f"snapshot-{size}"
    shutil.rmtree(snapshot, ignore_errors=True)
    return corpus, snapshot, _measured("build", corpus, snapshot)


def _print_growth(place: Path, sizes: Sequence[int]) -> None:
    heads = "documents,build s,µs/document,own MB,index MB,open ms,query ms,search ms"
    click.echo("".join(f"{head:>12}" for head in heads.split(",")))
    for size in sizes:
        corpus, snapshot, built = _built(place, size)
        times = _measured("search", corpus, snapshot)
        cells = (
            f"{size}",
            f"{built['build_s']:.2f}",
            f"{built['build_s'] / size * 1e6:.0f}",
            f"{built['own_mb']:.0f}",
            f"{built['index_mb']:.1f}",
            f"{times['open_ms']:.1f}",
            f"{times['query_ms']:.3f}",
            f"{times['search_ms']:.2f}",
        )
        click.echo("".join(f"{cell:>12}" for cell in cells))


def _print_comparison(place: Path, size: int, rounds: int) -> None:
    corpus = write_corpus(place, size)
    snapshot = place / f"snapshot-{size}"
    own, bare, rank, plain = ({"build_s": 1e9, "query_ms": 1e9} for _ in range(4))
    # Round after round, so that a busy minute meets all of them, and the best of each.
    for _ in range(rounds):
        _keep_best(own, _built(place, size)[2])
        _keep_best(own, _measured("search", corpus, snapshot))
        _keep_best(bare, _measured("bm25s", corpus, snapshot))
        _keep_best(rank, _measured("rank_bm25", corpus, snapshot))
        _keep_best(plain, _measured("rank_bm25_plain", corpus, snapshot))
    click.echo(f"\nat {size} documents   build s   query ms   own MB while building")
    for name, numbers in (("this package", own), ("bm25s, bare", bare), ("rank_bm25", rank)):
        click.echo(
            f"{name:<20} {numbers['build_s']:9.2f} {numbers['query_ms']:10.3f} "
            f"{numbers['own_mb']:8.0f}"
        )
    click.echo("")
    for name, value, word, bound in _ratios(own, bare, rank, plain):
        holds = value <= bound if word == "at most" else value >= bound
        click.echo(
            f"{name:<38} {value:10.3f}   {word} {bound:g}: {'holds' if holds else 'DOES NOT HOLD'}"
        )
    given = own["build_s"] / rank["build_s"]
    click.echo(
        f"{'build / rank_bm25 with our analyzer':<38} {given:10.3f}   (which it does not have)"
    )
    touched = own["asked_resident_mb"] / own["index_mb"]
    click.echo(
        f"{'resident after 200 queries / index':<38} {touched:10.3f}   (pages that were touched)"
    )
    times = _measured("snippets", corpus, snapshot)
    click.echo(
        "\nms for a snippet of " + ", ".join(f"{name} {ms:.2f}" for name, ms in times.items())
    )


def _keep_best(kept: Numbers, measured: Numbers) -> None:
    for name, value in measured.items():
        kept[name] = min(kept.get(name, value), value) if name != "disagreements" else value


def _ratios(
    own: Numbers, bare: Numbers, rank: Numbers, plain: Numbers
) -> list[tuple[str, float, str, float]]:
    resident, anonymous = own["open_resident_mb"], own["open_own_mb"]
    return [
        ("build / rank_bm25's", own["build_s"] / plain["build_s"], "at most", 1.0),
        ("build / bm25s's", own["build_s"] / bare["build_s"], "at most", 1.2),
        ("query / bm25s's", own["query_ms"] / bare["query_ms"], "at most", 1.2),
        ("rank_bm25's query / own", rank["query_ms"] / own["query_ms"], "at least", 50.0),
        ("queries whose first ten differ", float(rank["disagreements"]), "at most", 0.0),
        ("opening, in seconds", own["open_ms"] / 1000, "at most", 1.0),
        ("resident when open / index", resident / own["index_mb"], "at most", 0.25),
        ("own memory when open / index", anonymous / own["index_mb"], "at most", 0.1),
    ]


if __name__ == "__main__":
    main()
