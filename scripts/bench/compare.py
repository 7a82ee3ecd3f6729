"""``make bench-compare CHECKOUT=DIR``: the speed of this version as ratios to another one.

Both versions take turns, so the load of the machine affects both. The latency of calls is measured
by each version's own ``scripts.bench.latency``, with its own client. Episodes are counted over
whole commands, with their start.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.progress import track

from scripts.bench.measure import Figure, load_of_machine, ratio

HERE = Path(__file__).resolve().parents[2]
P50_MAX, EPISODES_MIN = 1.05, 0.9
TRIALS = 4
RUN = ("run", "sample", "--agent", "schema_repair", "--concurrency", "2", "--trials", f"{TRIALS}")

MEASURE_CALLS = """
import json, sys
from statistics import median
from fumehood.engines.registry import choose_engine
from scripts.bench.latency import _probe
from scripts.bench.workload import endless_case
times = _probe(choose_engine(sys.argv[1]).engine, endless_case())
times = times[0] if isinstance(times, tuple) else times  # Older versions return only the times.
print(json.dumps({kind: median(times[kind + "_tool"]) for kind in ("unary", "stream")}))
"""


def main() -> None:
    """Measure both versions in turn and print the ratios."""
    arguments = _arguments()
    console = Console(soft_wrap=True)
    for figure in [load_of_machine("at the start"), *_compare(arguments)]:
        mark = {True: "✓", False: "✗", None: ""}[figure.met]
        console.print(f"{figure.what}: {figure.value}  {figure.goal} {mark}", highlight=False)
    console.print(f"load at the end: {load_of_machine('').value}", highlight=False)


def _compare(arguments: argparse.Namespace) -> Iterator[Figure]:
    both = (HERE, arguments.checkout.resolve())
    calls: dict[Path, list[dict[str, float]]] = {checkout: [] for checkout in both}
    rates: dict[Path, list[float]] = {checkout: [] for checkout in both}
    for number in track(range(arguments.rounds), "rounds", console=Console(stderr=True)):
        for checkout in both if number % 2 else both[::-1]:
            calls[checkout].append(_calls_us(checkout, arguments.engine))
            rates[checkout].append(_episodes_per_s(checkout, arguments.engine))
    for kind in ("unary", "stream"):
        mine, other = (median(one[kind] for one in calls[checkout]) for checkout in both)
        what = f"{arguments.engine}: {kind} call, p50, this version to the other"
        yield ratio(what, mine, other, P50_MAX, detail=f"({mine:.0f} against {other:.0f} µs)")
    mine, other = (median(rates[checkout]) for checkout in both)
    what = f"{arguments.engine}: episodes/s, this version to the other"
    detail = f"({mine:.1f} against {other:.1f})"
    yield ratio(what, mine, other, EPISODES_MIN, at_least=True, detail=detail)


def _calls_us(checkout: Path, engine: str) -> dict[str, float]:
    """Return the median of a call's time in microseconds, for unary calls and for the stream."""
    output = _command(checkout, "python", "-c", MEASURE_CALLS, engine)
    return {kind: float(value) for kind, value in json.loads(output).items()}


def _episodes_per_s(checkout: Path, engine: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        started = time.perf_counter()
        _command(checkout, "fumehood", *RUN, "--engine", engine, "--out", str(out))
        spent_s = time.perf_counter() - started
        return len((out / "episodes.jsonl").read_text().splitlines()) / spent_s


def _command(checkout: Path, program: str, *words: str) -> str:
    """Run a program of a checkout's environment, and end with its last lines if it fails."""
    command = [str(checkout / ".venv/bin" / program), *words]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"bench-compare: {program} failed in {checkout}:\n{done.stderr[-2000:]}")
    return done.stdout


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="another version, after `make setup` there")
    parser.add_argument("--engine", default="docker", help="engine of both (default: docker)")
    parser.add_argument("--rounds", type=int, default=4, help="turns of each (default: 4)")
    arguments = parser.parse_args()
    if not (arguments.checkout / ".venv/bin/fumehood").exists():
        parser.error(f"{arguments.checkout} has no .venv/bin/fumehood; run `make setup` there")
    return arguments


if __name__ == "__main__":
    main()
