"""Scores perturbed trajectories here and by the original benchmarks, and compares the verdicts.

``make differential`` runs this. Each verdict of an original is stored with the hash of its
trajectory, so that ``tests/differential/test_verdicts.py`` can compare without the original.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

from fumehood.core.errors import InputError
from tests.differential.comparisons import Comparison, ask_original
from tests.differential.table import COMPARISONS
from tests.differential.verdicts import Part, Tally, compare, write_page, write_parts


def main() -> int:
    """Compare the selected benchmarks; return 1 if a disagreement has no reason."""
    options = _options()
    tallies = []
    for comparison in COMPARISONS:
        if options.only and comparison.name not in options.only:
            continue
        try:
            tally = _compare(comparison, options)
        except InputError as error:
            print(f"skipped   {comparison.name}: {error}", file=sys.stderr)
            continue
        tallies.append(tally)
    if options.json:
        print(json.dumps([tally.to_json() for tally in tallies], indent=1))
    return int(any(tally.unexplained for tally in tallies))


def _compare(comparison: Comparison, options: argparse.Namespace) -> Tally:
    tally = Tally(comparison)
    parts: list[Part] = []
    for source in comparison.sources:
        if options.part and not source.name.startswith(options.part):
            continue
        begin = time.monotonic()
        items = source.items(options.count or source.count, options.seed)
        there = ask_original(comparison, items)
        service = source.has_episodes and not options.in_memory
        here = [*source.score(items, service=service)]
        tally.through_services += len(items) * service
        for disagreement in compare(tally, source.name, items, here, there):
            print(disagreement, file=sys.stderr)
        parts.append(Part.of(source.name, options.seed, items, there))
        seconds = time.monotonic() - begin
        print(f"{tally.line(source.name)}; {seconds:.0f} s", file=sys.stderr, flush=True)
    if options.record:
        write_parts(tally, parts)
        write_page(tally)
    return tally


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.differential",
        description=__doc__,
        epilog="example: python -m tests.differential --only bfcl --count 5 --json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [comparison.name for comparison in COMPARISONS]
    add = parser.add_argument
    add("--only", action="append", choices=names, help="compare this benchmark (repeatable)")
    add("--part", help="compare the suites whose argument begins with this text")
    add("--count", type=int, help="trajectories of each suite; default: as in the table")
    add("--seed", type=int, default=1, help="seed of the perturbations; 1 is the recorded one")
    add("--in-memory", action="store_true", help="play in this process instead of real services")
    add("--record", action="store_true", help="store the verdicts, and update the pages")
    add("--json", action="store_true", help="print counts and disagreements as JSON")
    options = parser.parse_args()
    if options.record and (options.part or options.count or options.in_memory or options.seed != 1):
        parser.error(
            "--record stores whole benchmarks with seed 1: "
            "omit --part, --count, --in-memory and --seed"
        )
    return options


if __name__ == "__main__":
    sys.exit(main())
