"""``python -m tests.golden FILE…``: replays recorded episodes and prints each first difference."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from fumehood.core.errors import InputError
from fumehood.orchestrator.service_pool import ServicePool
from tests.golden.recorded import read_recorded
from tests.golden.replay import (
    Play,
    difference,
    play_in_core,
    play_over_wire,
    playing_in_boxes,
)


def main() -> int:
    """Run the command; return 1 if a recorded episode differs, 2 if a file cannot be read."""
    options = _parser().parse_args()
    try:
        episodes = [
            episode
            for file in options.files
            for episode in islice(read_recorded(file), 0, None, options.every)
        ]
        threads = 1 if options.via == "core" else options.concurrency
        with _player(options.via, options.engine) as play, ThreadPoolExecutor(threads) as pool:
            results = list(pool.map(lambda episode: difference(episode, play), episodes))
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    failed = 0
    for episode, result in zip(episodes, results, strict=True):
        if result is not None:
            failed += 1
            print(f"{episode.name}: {result}")
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


@contextmanager
def _player(via: str, engine: str) -> Iterator[Play]:
    if via == "core":
        yield play_in_core
        return
    with ServicePool(2) as pool:
        if via == "wire":
            yield play_over_wire(pool)
            return
        with playing_in_boxes(engine, pool) as play:
            yield play


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="JSON lines")
    parser.add_argument(
        "--via",
        choices=("core", "wire", "box"),
        default="core",
        help="core: in memory; wire: sessions with a service; box: agents in boxes",
    )
    parser.add_argument("--engine", default="auto", help="engine of --via box")
    parser.add_argument("--concurrency", type=int, default=4, help="episodes at once")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="play each Nth episode")
    return parser


if __name__ == "__main__":
    sys.exit(main())
