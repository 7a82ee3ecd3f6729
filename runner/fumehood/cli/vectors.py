"""``fumehood vectors``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import click

from fumehood.orchestrator.service_pool import ServicePool
from fumehood.vectors.record import Vector, read_vectors
from fumehood.vectors.replay import Replay, Verdict, check
from fumehood.vectors.via_core import ViaCore
from fumehood.vectors.via_wire import ViaWire

FAILED = 1


@click.command()
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@click.option(
    "--via",
    type=click.Choice(["core", "wire", "box"]),
    default="core",
    show_default=True,
    help="core: the door in memory; wire: a session over the episode's socket; box: that session inside "
    "a container.",
)
@click.option(
    "--engine", default="auto", show_default=True, help="What makes the boxes of --via box."
)
@click.option(
    "--concurrency", default=4, show_default=True, help="Vectors at once, with wire and box."
)
@click.option(
    "--every", default=1, show_default=True, metavar="N", help="Play only every Nth vector."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
def vectors(
    files: tuple[Path, ...], via: str, engine: str, concurrency: int, every: int, as_json: bool
) -> int:
    """Replay recorded episodes and name the first difference of each that fails.

    FILES hold one vector a line: a task, the calls to make (or the built-in agent that makes them), and
    what was seen.
    """
    chosen = [one for file in files for one in islice(read_vectors(file), 0, None, every)]
    with _replay(via, engine) as replay:
        threads = 1 if via == "core" else concurrency
        with ThreadPoolExecutor(threads) as pool:
            verdicts = list(pool.map(lambda vector: _check(vector, replay), chosen))
    failed = [verdict for verdict in verdicts if verdict.difference is not None]
    if as_json:
        _print_json(via, verdicts, failed)
    else:
        for verdict in failed:
            click.echo(f"{verdict.vector_id}: {verdict.difference}")
        click.echo(f"{len(verdicts) - len(failed)} passed, {len(failed)} failed")
    return FAILED if failed else 0


def _check(vector: Vector, replay: Replay) -> Verdict:
    return check(vector, replay)


@contextmanager
def _replay(via: str, engine: str) -> Iterator[Replay]:
    if via == "core":
        yield ViaCore()
        return
    with ServicePool(2) as pool:
        if via == "wire":
            yield ViaWire(pool)
            return
        from fumehood.vectors.via_box import ViaBox

        with ViaBox.on(engine, pool) as boxes:
            yield boxes


def _print_json(via: str, verdicts: list[Verdict], failed: list[Verdict]) -> None:
    report = {
        "via": via,
        "passed": len(verdicts) - len(failed),
        "failed": len(failed),
        "differences": [
            {"id": verdict.vector_id, "difference": verdict.difference} for verdict in failed
        ],
    }
    click.echo(json.dumps(report, indent=2))
