"""``make bench``: the project's speed in one run, as ratios where there is a peer."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.table import Table

from fumehood.benchmarks.registry import load_suite
from fumehood.core.errors import InputError
from fumehood.engines.bubblewrap.engine import BubblewrapEngine
from fumehood.engines.engine import Engine, EngineOptions
from fumehood.engines.registry import ENGINES
from scripts.bench.boxes import (
    FORKED_MIN,
    WITHOUT_DAEMON_MIN,
    compared_engines,
    episodes_in_boxes,
    forked_to_bare,
    start_of_sdk,
)
from scripts.bench.in_memory import episodes_in_memory, layers_cost, scenario_day
from scripts.bench.inspect_samples import episodes_to_inspect
from scripts.bench.interfaces import interface_latency
from scripts.bench.latency import call_latency
from scripts.bench.measure import Figure, load_of_machine
from scripts.bench.processes import cost_of_processes
from scripts.bench.reading import cost_of_reading
from scripts.bench.run import episodes_of_a_run, ray_to_none
from scripts.bench.service import episodes_through_service
from scripts.bench.size import nodes_beside_one
from scripts.bench.workload import endless_case, workload
from scripts.bench.workspaces import bash_calls


def main() -> None:
    """Measure what this machine supports and print it."""
    # gRPC logs every connection that closes.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    arguments = _arguments()
    console = Console(stderr=True)
    figures = []
    for figure in _measure(arguments.workload):
        figures.append(figure)
        console.print(f"{figure.what}: {figure.value}", highlight=False)
    if arguments.json:
        print(json.dumps([_to_json(figure) for figure in figures], indent=2))
    else:
        Console(width=None if console.is_terminal else 160).print(_table(figures))


def _measure(path: Path | None) -> Iterator[Figure]:
    yield load_of_machine("at the start")
    yield from _measure_all(path)
    yield load_of_machine("at the end")


def _measure_all(path: Path | None) -> Iterator[Figure]:
    cases = workload(path)
    yield from layers_cost()
    yield from episodes_in_memory(cases)
    yield from scenario_day()
    yield from episodes_of_a_run(
        str(path or "sample"), load_suite(str(path or "sample")).cases, workers=2
    )
    suite = str(path or "sample")
    yield from cost_of_reading(suite, len(load_suite(suite).cases))
    yield from episodes_through_service(cases[:300], workers=1)
    yield from episodes_through_service(cases[:300], workers=2)
    yield from cost_of_processes(endless_case())
    yield from interface_latency(endless_case())
    yield start_of_sdk()
    for engine in _ready_engines("docker", "bubblewrap"):
        yield from call_latency(engine, endless_case())
        if engine.name == "docker":
            yield from episodes_in_boxes(engine, endless_case())
            yield from bash_calls(engine)
        engine.close()
    engines = list(_ready_engines("docker", "oci"))
    by_name = {engine.name: engine for engine in engines}
    if len(engines) == 2:
        yield compared_engines(by_name, WITHOUT_DAEMON_MIN, endless_case())
    starting = list(_ready_engines("bubblewrap", options=EngineOptions(forked_starts=False)))
    if starting:
        engines += [*starting, BubblewrapEngine()]
        both = dict(zip(("bubblewrap", "forked bubblewrap"), engines[-2:], strict=True))
        yield compared_engines(both, FORKED_MIN, endless_case())
        if os.geteuid() == 0:
            yield forked_to_bare(engines[-1], endless_case())
        yield nodes_beside_one("bubblewrap")
        by_name["forked bubblewrap"] = engines[-1]
    if "docker" in by_name and find_spec("ray"):
        yield ray_to_none("docker")
    if "docker" in by_name:
        yield from episodes_to_inspect(by_name, endless_case())
    for engine in engines:
        engine.close()


def _ready_engines(*names: str, options: EngineOptions | None = None) -> Iterator[Engine]:
    for name in names:
        engine = ENGINES.load(name)(options)
        readiness = engine.check()
        if readiness.ready:
            yield engine
        else:
            Console(stderr=True).print(f"left out: {name}: {readiness.detail}", markup=False)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--workload", type=Path, help="task records to play instead of the sample suite's"
    )
    parser.add_argument("--json", action="store_true", help="one JSON list on standard output")
    arguments = parser.parse_args()
    if arguments.workload is not None and not arguments.workload.is_file():
        raise InputError(f"there is no file {arguments.workload}")
    return arguments


def _to_json(figure: Figure) -> dict[str, object]:
    return {"what": figure.what, "value": figure.value, "goal": figure.goal, "met": figure.met}


def _table(figures: Sequence[Figure]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("what", "figure", "goal", ""):
        table.add_column(column, justify="right" if column == "figure" else "left")
    for figure in figures:
        met = {True: "✓", False: "✗", None: ""}[figure.met]
        table.add_row(figure.what, figure.value, figure.goal, met)
    return table


if __name__ == "__main__":
    main()
