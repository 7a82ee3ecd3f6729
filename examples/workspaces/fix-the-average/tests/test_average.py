import os
import random
import subprocess
import tempfile
from statistics import fmean

import pytest

UNPRIVILEGED = {"user": 65534, "group": 65534, "extra_groups": []}


def run(text):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(text)
        file.flush()
        os.chmod(file.name, 0o644)
        return subprocess.run(
            ["python3", "/app/average.py", file.name],
            cwd="/app",
            input="",
            capture_output=True,
            text=True,
            timeout=20,
            **UNPRIVILEGED,
        )


@pytest.mark.parametrize("count", [1, 2, 3, 20])
def test_mean(count):
    # Other numbers each time, so that no program that prints a constant passes.
    numbers = [random.randrange(-4000, 4000) / 4 for _ in range(count)]
    text = "".join(f"{number}\n" for number in numbers)
    assert float(run(text).stdout) == pytest.approx(fmean(numbers))


def test_no_numbers():
    result = run("\n")
    assert result.returncode == 0
    assert result.stdout.strip() == "no numbers"
