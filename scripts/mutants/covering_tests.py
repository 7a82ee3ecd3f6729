"""Which tests execute a line in their own process, measured once per folder of tests.

Tests that start commands and services execute lines in other processes; they are not measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from scripts.mutants.packages import PACKAGES

FOLDERS = ("unit", "property", "conformance")
LEFT_OUT = ("tests/conformance/agents", "tests/conformance/benchmarks")
WITHOUT_ENGINES = "not docker and not bubblewrap and not image and not browser and not slow"
SECONDS_MAX = 4.0
"""Of the tests that run for one mutant, as measured."""
SECONDS_MAX_OF_FILE = 12.0
"""The same for a line of which no test is known to execute it."""
FOLDER_TIME_LIMIT_S = 900.0
"""Time of the tests of one folder. Those of a folder that exceeds it are not used."""

_SOURCES = sorted({path for package in PACKAGES.values() for path in package.paths})
_SETTINGS = """\
[run]
data_file = {data}
dynamic_context = test_function
include =
{include}
"""


class CoveringTests:
    """Finds the tests of a line."""

    def __init__(self, tree: Path) -> None:
        """Begin without a measurement."""
        self._tree = tree
        self._seconds: dict[str, float] = {}
        self._setup: defaultdict[str, float] = defaultdict(float)
        """By file of tests: duration of its longest test, which may include its fixtures."""
        self._lines: defaultdict[str, set[str]] = defaultdict(set)
        self._files: defaultdict[str, set[str]] = defaultdict(set)

    @classmethod
    def measured(cls, tree: Path, folder: Path) -> CoveringTests:
        """Measure a copy of the checkout, unless a folder's measurement is up to date."""
        folder.mkdir(parents=True, exist_ok=True)
        covering = cls(tree)
        for tests in _test_folders(tree):
            name = "_".join(tests)[:60].replace("/", "_")
            stored = folder / f"{name}-{_digest(tree, tests)[:12]}.json"
            if not stored.exists():
                print(f"  measuring {' '.join(tests)}", flush=True)
                stored.write_text(json.dumps(_measure(tree, folder / name, tests)), "utf-8")
            covering._add(json.loads(stored.read_text("utf-8")))
        return covering

    def _add(self, measured: dict[str, dict[str, Any]]) -> None:
        """Add a measurement; in a file that has changed since, each test covers every line."""
        self._seconds.update(measured["seconds"])
        for test, seconds in measured["seconds"].items():
            file = _file(test)
            self._setup[file] = max(self._setup[file], seconds)
        current = {
            file
            for file, digest in measured["files"].items()
            if (self._tree / file).is_file() and _digest(self._tree, (file,)) == digest
        }
        for place, tests in measured["lines"].items():
            file = place.rpartition(":")[0]
            self._files[file].update(tests)
            if file in current:
                self._lines[place].update(tests)

    def of(self, file: str, line: int) -> list[str]:
        """Return the tests of a line, the nearest and fastest first, within the time limit.

        A line that runs only when its module is imported has the tests of the whole file, and more
        time, because few of them depend on it.
        """
        stem = Path(file).stem
        names = self._lines.get(f"{file}:{line}") or self._files[file]
        most = SECONDS_MAX if f"{file}:{line}" in self._lines else SECONDS_MAX_OF_FILE
        covering = [test for test in sorted(names) if test in self._seconds]
        covering.sort(
            key=lambda test: (stem not in test, self._setup[_file(test)], self._seconds[test])
        )
        chosen, total = list[str](), 0.0
        for test in covering:
            is_first = _file(test) not in map(_file, chosen)
            total += self._seconds[test] + (self._setup[_file(test)] if is_first else 0.0)
            if chosen and total > most:
                break
            chosen.append(test)
        return chosen


def _file(test: str) -> str:
    return test.partition("::")[0]


def environment(tree: Path) -> dict[str, str]:
    """Return environment variables with which a process imports the copy."""
    places = ("runner", "snapshots", "agent_sdk/python", "")
    path = os.pathsep.join(str(tree / place) for place in places)
    return os.environ | {"PYTHONPATH": path}


def _test_folders(tree: Path) -> Iterator[tuple[str, ...]]:
    """Yield each folder of tests, and the test files beside the folders."""
    for name in FOLDERS:
        top = tree / "tests" / name
        for place in sorted(top.iterdir()):
            path = str(place.relative_to(tree))
            if place.is_dir() and path not in LEFT_OUT and any(place.rglob("test_*.py")):
                yield (path,)
        files = tuple(str(file.relative_to(tree)) for file in sorted(top.glob("test_*.py")))
        if files:
            yield files


def _digest(tree: Path, paths: tuple[str, ...]) -> str:
    digest = sha256()
    for path in paths:
        place = tree / path
        for file in [place] if place.is_file() else sorted(place.rglob("*.py")):
            digest.update(str(file.relative_to(tree)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _measure(tree: Path, base: Path, tests: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    settings, data, junit = (base.with_suffix(end) for end in (".rc", ".data", ".xml"))
    junit.unlink(missing_ok=True)
    include = "\n".join(f"  {tree}/{path}{'' if path[-3:] == '.py' else '/*'}" for path in _SOURCES)
    settings.write_text(_SETTINGS.format(data=data, include=include), "utf-8")
    coverage = (sys.executable, "-m", "coverage", "run", f"--rcfile={settings}")
    pytest = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml", str(junit))
    command = [*coverage, *pytest, "-m", WITHOUT_ENGINES, *tests]
    place: dict[str, Any] = {"cwd": tree, "env": environment(tree), "capture_output": True}
    try:
        # A failing test only covers nothing.
        subprocess.run(command, **place, timeout=FOLDER_TIME_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        print(f"  more than {FOLDER_TIME_LIMIT_S:.0f} s, not used", flush=True)
    if not junit.exists():
        return {"lines": {}, "seconds": {}, "files": {}}
    lines = _lines(tree, data)
    files = {file: _digest(tree, (file,)) for file in {line.rpartition(":")[0] for line in lines}}
    return {"lines": lines, "seconds": _seconds(junit), "files": files}


def _lines(tree: Path, data: Path) -> dict[str, list[str]]:
    from coverage import CoverageData

    measured = CoverageData(str(data))
    measured.read()
    result: dict[str, list[str]] = {}
    for file in measured.measured_files():
        name = str(Path(file).relative_to(tree))
        for line, contexts in measured.contexts_by_lineno(file).items():
            tests = [test for context in contexts if (test := _test(tree, context))]
            if tests:
                result[f"{name}:{line}"] = sorted(set(tests))
    return result


def _test(tree: Path, context: str) -> str:
    """Return the ID of the test of a context, such as ``tests.unit.test_a.test_b``."""
    module, _, function = context.rpartition(".")
    while module:
        path = module.replace(".", "/") + ".py"
        if (tree / path).is_file():
            return f"{path}::{function.replace('.', '::')}"
        module, _, name = module.rpartition(".")
        function = f"{name}.{function}"
    return ""


def _seconds(junit: Path) -> dict[str, float]:
    """Return the duration of each test function, over all its parameters."""
    result: defaultdict[str, float] = defaultdict(float)
    failed = set[str]()
    for case in ET.parse(junit).iter("testcase"):
        module = case.get("classname", "").replace(".", "/") + ".py"
        test = f"{module}::{case.get('name', '').partition('[')[0]}"
        result[test] += float(case.get("time", "0"))
        if case.find("failure") is not None or case.find("error") is not None:
            failed.add(test)
    return {test: seconds for test, seconds in result.items() if test not in failed}
