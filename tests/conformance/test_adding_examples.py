"""The examples of docs/adding pass the conformance suites of their Protocols."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.architecture.project import ROOT
from tests.parts.adding_examples import EXAMPLES

SUITES = {
    "benchmark": "tests/conformance/benchmarks/test_benchmarks.py",
    "fault_family": "tests/conformance/layers",
    "harness_mode": "tests/conformance/harness_modes",
    "scorer": "tests/conformance/scorers",
    "turn_policy": "tests/conformance/turn_policies",
    "world": "tests/conformance/worlds",
}


@pytest.mark.slow
@pytest.mark.parametrize("point", SUITES)
def test_an_example_passes_the_conformance_suite(point: str) -> None:
    # A separate process, because the registries of this one must keep their built-in entries.
    name = EXAMPLES[point][2]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "tests.parts.adding_examples",
            SUITES[point],
            "-k",
            name,
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"^\d+ passed", done.stdout, re.MULTILINE)
