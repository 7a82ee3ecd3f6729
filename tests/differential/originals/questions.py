"""Answers questions of a differential test: one JSON object per line in, one verdict per line out.

This runs in the environment of an original benchmark. Nothing here imports Fumehood.
"""

import io
import json
import sys
from collections.abc import Callable
from typing import Any

RAISED = "raised"
"""Verdict when the original raises an exception."""


def answer(verdict_of: Callable[[dict[str, Any]], str]) -> None:
    """Print the verdict of each question on the standard input."""
    out, sys.stdout = sys.stdout, io.StringIO()
    for line in sys.stdin:
        try:
            verdict = verdict_of(json.loads(line))
        except Exception as error:
            print(f"{type(error).__name__}: {error}"[:300], file=sys.stderr)
            verdict = RAISED
        print(verdict, file=out, flush=True)


def digits(*verdicts: object) -> str:
    """Return truth values as text."""
    return "".join("1" if verdict else "0" for verdict in verdicts)
