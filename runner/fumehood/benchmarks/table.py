"""Every benchmark there is, and the suite argument of the command line.

The argument is ``NAME[:ARGUMENT]``, such as ``sample``, ``toolmisuse:PATH:SPLIT`` or ``native:PATH``, or the
plain path of a file or folder of records, which belongs to the benchmark that recognises its first one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fumehood.benchmarks.benchmark import Benchmark
from fumehood.benchmarks.reading import Place, Problem, Unreadable, read_records
from fumehood.core.errors import InputError
from fumehood.core.registry import Registry
from fumehood.core.task import Suite

BENCHMARKS: Registry[Callable[[], Benchmark]] = Registry(
    "benchmark",
    {
        "agentdojo": "fumehood.benchmarks.agentdojo.tasks:AgentDojo",
        "almanac": "fumehood.benchmarks.questions.almanac:Almanac",
        "bfcl": "fumehood.benchmarks.bfcl.tasks:Bfcl",
        "browsecomp": "fumehood.benchmarks.browsecomp.original:BrowseComp",
        "browsecomp-plus": "fumehood.benchmarks.browsecomp.plus:BrowseCompPlus",
        "dbbench": "fumehood.benchmarks.dbbench.tasks:DbBench",
        "marble": "fumehood.benchmarks.marble.tasks:Marble",
        "native": "fumehood.benchmarks.native.loader:NativeRecords",
        "python-docs": "fumehood.benchmarks.questions.python_docs:PythonDocs",
        "safetybench": "fumehood.benchmarks.safetybench.tasks:SafetyBench",
        "sample": "fumehood.benchmarks.sample.suite:Sample",
        "tau2": "fumehood.benchmarks.tau2.tasks:Tau2",
        "taubench": "fumehood.benchmarks.taubench.tasks:TauBench",
        "toolmisuse": "fumehood.benchmarks.toolmisuse.loader:ToolMisuseBench",
    },
)

OF_A_SNAPSHOT = frozenset({"almanac", "python-docs"})
"""Benchmarks whose argument is the folder of a snapshot."""


def load_suite(text: str, snapshot: Path | None = None) -> Suite:
    """Return the suite that a suite argument names.

    Args:
        text: ``NAME[:ARGUMENT]`` or ``PATH[:REST]``; a benchmark's name goes before a file of that name.
        snapshot: folder of a snapshot, where the argument may be one and is not given.

    Raises:
        InputError: there is no such suite, or something in it cannot be used.
    """
    name, _, argument = text.partition(":")
    if name in OF_A_SNAPSHOT and snapshot is not None:
        argument = argument or str(snapshot)
    if name in BENCHMARKS:
        return BENCHMARKS.load(name)().load(argument)
    path = _existing_path(text)
    if path is not None:
        return _benchmark_of(path).load(text)
    if "/" in text or Path(name).suffix:
        raise InputError(f"there is no file or folder {text!r}, and no benchmark is called so")
    return BENCHMARKS.load(name)().load(argument)


def _existing_path(text: str) -> Path | None:
    """Return the longest part of ``text`` up to a colon, or all of it, that is there on disk."""
    while text:
        if Path(text).exists():
            return Path(text)
        text, _, _ = text.rpartition(":")
    return None


def _benchmark_of(path: Path) -> Benchmark:
    place, record = _first_record(path)
    if isinstance(record, dict):
        for name in BENCHMARKS:
            benchmark = BENCHMARKS.load(name)()
            if benchmark.recognises(record):
                return benchmark
    raise Unreadable(
        place,
        Problem.INVALID_RECORD,
        f"no benchmark knows this format; say which one: NAME:{path}, where NAME is one of "
        f"{', '.join(BENCHMARKS)}",
    )


def _first_record(path: Path) -> tuple[Place, Any]:
    """Return the first record of a file, or of the first file of records in a folder or right below it."""
    files = (
        [path]
        if path.is_file()
        else [*sorted(path.glob("*.jsonl")), *sorted(path.glob("*/*.jsonl"))]
    )
    for file in files:
        for record in read_records(file):
            return record.place, record.value
    raise Unreadable(Place(path), Problem.NOT_FOUND, "holds no records (.jsonl)")
