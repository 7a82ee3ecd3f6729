"""The protocol of benchmarks, the registry of all benchmarks, and the suite argument of commands.

The suite argument is ``NAME[:ARGUMENT]``, such as ``sample``, ``toolmisuse:PATH:SPLIT`` or
``native:PATH``. It can also be the path of a file or folder of records: the benchmark that
recognises the first record loads it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from fumehood.benchmarks.shared.reading import Place, Problem, Unreadable, read_records
from fumehood.core.errors import InfraError, InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.registry import Registry
from fumehood.core.task import Suite


class Benchmark(Protocol):
    """A source of tasks."""

    source: str
    """Where the data come from, with their revision, and whether the user must supply them."""

    def load(self, argument: str) -> Suite:
        """Return the tasks that ``argument`` selects, in order, each with its gold.

        Args:
            argument: the text after ``NAME:`` in the suite argument, such as a path; may be empty.

        Raises:
            InputError: the argument or a file cannot be used; the message names file, line and
            field.
        """
        ...


@runtime_checkable
class RecognisesRecords(Protocol):
    """A benchmark that can be named by the path of its records alone."""

    def recognises(self, record: JsonObject) -> bool:
        """Return whether ``record``, the first of a file, has a format of this benchmark.

        The record may be invalid: its benchmark then reports the error when it loads the file.
        """
        ...


BENCHMARKS: Registry[Callable[[], Benchmark]] = Registry(
    "benchmark",
    {
        "agentdojo": "fumehood.benchmarks.agentdojo.tasks:AgentDojo",
        "almanac": "fumehood.benchmarks.questions.tasks:Almanac",
        "bfcl": "fumehood.benchmarks.bfcl.tasks:Bfcl",
        "browsecomp": "fumehood.benchmarks.browsecomp.tasks:BrowseComp",
        "browsecomp-plus": "fumehood.benchmarks.browsecomp.tasks:BrowseCompPlus",
        "card-game": "fumehood.benchmarks.cardgame.tasks:CardGameTasks",
        "dbbench": "fumehood.benchmarks.dbbench.tasks:DbBench",
        "harbor": "fumehood.benchmarks.harbor.tasks:Harbor",
        "injecagent": "fumehood.benchmarks.injecagent.tasks:InjecAgent",
        "knowledge-graph": "fumehood.benchmarks.knowledge.tasks:KnowledgeGraph",
        "lateral-thinking": "fumehood.benchmarks.lateral.tasks:LateralThinking",
        "marble": "fumehood.benchmarks.marble.tasks:Marble",
        "native": "fumehood.benchmarks.native.tasks:NativeRecords",
        "os-interaction": "fumehood.benchmarks.osinteraction.tasks:OsInteraction",
        "python-docs": "fumehood.benchmarks.questions.tasks:PythonDocs",
        "safety": "fumehood.benchmarks.safety.tasks:SafetySuites",
        "safetybench": "fumehood.benchmarks.safetybench.tasks:SafetyBench",
        "sample": "fumehood.benchmarks.sample.tasks:Sample",
        "tau2": "fumehood.benchmarks.tau2.tasks:Tau2",
        "taubench": "fumehood.benchmarks.taubench.tasks:TauBench",
        "threatbench": "fumehood.benchmarks.threatbench.tasks:ThreatBench",
        "toolmisuse": "fumehood.benchmarks.toolmisuse.tasks:ToolMisuseBench",
        "toolsandbox": "fumehood.benchmarks.toolsandbox.tasks:ToolSandbox",
        "webshop": "fumehood.benchmarks.webshop.tasks:WebShop",
    },
)

RECOGNISING = ("native", "toolmisuse", "dbbench")
"""Benchmarks of this package that recognise records. To import all others takes a second."""

OF_A_SNAPSHOT = frozenset({"almanac", "python-docs"})
"""Benchmarks whose argument is a snapshot folder."""


def load_suite(text: str, snapshot: Path | None = None) -> Suite:
    """Return the suite that a suite argument selects.

    Args:
        text: ``NAME[:ARGUMENT]`` or ``PATH[:REST]``; the name of a benchmark takes precedence over
            a path.
        snapshot: folder that snapshot benchmarks use if their argument is empty.

    Raises:
        InputError: there is no such suite, or something in it cannot be used.
    """
    name, _, argument = text.partition(":")
    if name in OF_A_SNAPSHOT and snapshot is not None:
        argument = argument or str(snapshot)
    if name in BENCHMARKS:
        return _load(name, argument)
    path = _existing_path(text)
    if path is not None:
        return _load(_benchmark_of(path), text)
    if "/" in text or Path(name).suffix:
        raise InputError(f"there is neither a file or folder nor a benchmark named {text!r}")
    return _load(name, argument)


def _load(name: str, argument: str) -> Suite:
    """Return the suite of a benchmark; an exception of an installed benchmark is an input error."""
    benchmark = BENCHMARKS.load(name)
    try:
        return _named(benchmark().load(argument), name)
    except (InputError, InfraError):
        raise
    except Exception as error:
        if name in BENCHMARKS.table:
            raise
        raise InputError(
            f"the installed benchmark {name!r} raised {type(error).__name__}: {error}; "
            "report this to its author"
        ) from error


def _named(suite: Suite, benchmark: str) -> Suite:
    """Return the suite with the tag ``benchmark`` on each task."""
    cases = (
        replace(case, task=replace(case.task, tags={"benchmark": benchmark, **case.task.tags}))
        for case in suite.cases
    )
    return replace(suite, cases=tuple(cases))


def _existing_path(text: str) -> Path | None:
    """Return the longest prefix of ``text`` that ends before a colon, or all of it, and exists as
    a path."""
    while text:
        if Path(text).exists():
            return Path(text)
        text, _, _ = text.rpartition(":")
    return None


def _benchmark_of(path: Path) -> str:
    """Return the name of the benchmark that recognises the first record."""
    place, record = _first_record(path)
    broken = ""
    if isinstance(record, dict):
        installed = (name for name in BENCHMARKS if name not in BENCHMARKS.table)
        for name, create in BENCHMARKS.working((*RECOGNISING, *installed)):
            try:
                benchmark = create()
                if isinstance(benchmark, RecognisesRecords) and benchmark.recognises(record):
                    return name
            except Exception as error:
                if name in BENCHMARKS.table:
                    raise
                broken += f"; the installed {name} failed ({type(error).__name__}: {error})"
    raise Unreadable(
        place,
        Problem.INVALID_RECORD,
        f"no benchmark recognises this format; use NAME:{path}, where NAME is one of "
        f"{', '.join(BENCHMARKS)}{broken}",
    )


def _first_record(path: Path) -> tuple[Place, Any]:
    """Return the first record of a file, or of the first record file in a folder or its
    subfolders."""
    patterns = ("suite.y*ml", "suite.json", "*.jsonl", "*/*.jsonl", "*.y*ml", "*.json")
    files = (file for pattern in patterns for file in sorted(path.glob(pattern)))
    for file in [path] if path.is_file() else files:
        for record in read_records(file):
            return record.place, record.value
    raise Unreadable(Place(path), Problem.NOT_FOUND, "contains no tasks (.jsonl, .yaml or .json)")
