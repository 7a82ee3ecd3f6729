"""No scorer or judge takes more than linear time for an answer of an agent."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fumehood.scorers.registry import SCORERS
from tests.parts.long_answers import long_answers

CPU_S_MAX = 60
"""All answers of a scorer together take about 5 s. With a quadratic pattern, one takes hours. The
limit is one of processor time, so the load of the machine does not matter."""


@pytest.mark.release
@pytest.mark.parametrize("scorer", list(SCORERS))
def test_the_longest_answers_are_scored_in_linear_time(scorer: str) -> None:
    scoring = subprocess.run(
        [sys.executable, "-m", "tests.parts.long_answers", scorer, str(CPU_S_MAX)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert scoring.returncode == 0, scoring.stderr[-2000:]
    assert scoring.stdout == f"scored {len(long_answers())}\n"
