"""Runs the command as a subprocess."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

TIMEOUT_S = 300


def fumehood(*words: str, status: int = 0, timeout_s: float = TIMEOUT_S) -> str:
    """Run the command and return what it printed; it must end with ``status``."""
    done = subprocess.run(
        [sys.executable, "-m", "fumehood", *words],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return done.stdout


def fumehood_json(*words: str, status: int = 0, timeout_s: float = TIMEOUT_S) -> Any:
    """Run the command and return the JSON that it printed."""
    return json.loads(fumehood(*words, status=status, timeout_s=timeout_s))
