"""Which tests execute a line in this process, measured once per state of the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path

from scripts.mutants.packages import PACKAGES

TESTS = (
    *("tests/unit", "tests/property", "tests/conformance", "tests/episodes", "tests/golden"),
    *("--ignore=tests/conformance/agents", "--ignore=tests/conformance/benchmarks"),
    *("-m", "not docker and not bubblewrap and not image and not browser and not slow"),
)
SECONDS_MAX = 8.0
"""Of the tests that run for one mutant, as measured."""

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

    def __init__(self, lines: dict[str, list[str]], seconds: dict[str, float]) -> None:
        """Use a measurement.

        Args:
            lines: ``file:line`` → tests.
            seconds: duration of each test.
        """
        self._lines = lines
        self._seconds = seconds
        self._files: defaultdict[str, set[str]] = defaultdict(set)
        for place, tests in lines.items():
            self._files[place.rpartition(":")[0]].update(tests)

    @classmethod
    def measured(cls, tree: Path, folder: Path) -> CoveringTests:
        """Measure, or read an earlier measurement of the same tree.

        Args:
            tree: a copy of the checkout.
            folder: for the measurement.
        """
        stored = folder / "tests.json"
        if not stored.exists():
            _measure(tree, folder)
            lines, seconds = _lines(tree, folder / "coverage"), _seconds(folder / "junit.xml")
            stored.write_text(json.dumps({"lines": lines, "seconds": seconds}), "utf-8")
        content = json.loads(stored.read_text("utf-8"))
        return cls(content["lines"], content["seconds"])

    def of(self, file: str, line: int) -> list[str]:
        """Return the tests of a line, the nearest and fastest first, within the time limit.

        A line that runs only when its module is imported has the tests of the whole file.

        Args:
            file: relative to the checkout.
            line: its number.
        """
        stem = Path(file).stem
        names = self._lines.get(f"{file}:{line}") or self._files[file]
        covering = [test for test in sorted(names) if test in self._seconds]
        covering.sort(key=lambda test: (stem not in test, self._seconds[test]))
        chosen, total = list[str](), 0.0
        for test in covering:
            total += self._seconds[test]
            if chosen and total > SECONDS_MAX:
                break
            chosen.append(test)
        return chosen


def environment(tree: Path) -> dict[str, str]:
    """Return environment variables with which a process imports the copy."""
    places = ("runner", "snapshots", "agent_sdk/python", "")
    path = os.pathsep.join(str(tree / place) for place in places)
    return os.environ | {"PYTHONPATH": path}


def _measure(tree: Path, folder: Path) -> None:
    settings = folder / "coveragerc"
    include = "\n".join(f"  {tree}/{path}{'' if path[-3:] == '.py' else '/*'}" for path in _SOURCES)
    settings.write_text(_SETTINGS.format(data=folder / "coverage", include=include), "utf-8")
    junit = ("--junitxml", str(folder / "junit.xml"), "-q", "-p", "no:cacheprovider")
    command = (sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest")
    # A failing test only covers nothing.
    subprocess.run([*command, *junit, *TESTS], cwd=tree, env=environment(tree), check=False)


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
