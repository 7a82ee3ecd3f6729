"""Runs the Python functions of declared worlds, in a process that can only compute.

A question contains the source, the tool, its arguments and the state, which the function changes in
place.
"""

from __future__ import annotations

import json
import random
from importlib import import_module
from typing import Any

INSTALL = "no installation is necessary"
IMPORTABLE = (
    *("bisect", "collections", "copy", "datetime", "decimal", "fractions", "functools", "hashlib"),
    *("heapq", "itertools", "json", "math", "random", "re", "statistics", "string", "textwrap"),
)
"""Modules that a source can import; it cannot read the files of others."""
_SHOWN_CHARACTERS = 500


class Rejected(Exception):
    """A function raises this to reject a call. Arguments: an error code, and a sentence."""


def load() -> None:
    """Import the modules that a source may import."""
    for name in IMPORTABLE:
        import_module(name)


def check(question: dict[str, Any]) -> dict[str, Any]:
    """Return the ``output`` and the ``state`` after it, or how the call was ``rejected``, or what
    the function ``raised``."""
    random.seed(0)
    namespace: dict[str, Any] = {"__name__": "tools", "Rejected": Rejected}
    state = question["state"]
    try:
        exec(compile(question["source"], "tools.py", "exec"), namespace)
        if not callable(function := namespace.get(question["tool"])):
            return {"raised": f"the source has no function {question['tool']}"}
        output = function(state, **question["arguments"])
        reply = {"output": output if isinstance(output, dict) else {"result": output}}
        as_json = json.dumps({**reply, "state": state}, allow_nan=False)
    except Rejected as rejection:
        code, message = (*map(str, rejection.args), "", "")[:2]
        return {"rejected": [code, message[:_SHOWN_CHARACTERS]]}
    except Exception as error:
        return {"raised": f"{type(error).__name__}: {error}"[:_SHOWN_CHARACTERS]}
    serialised: dict[str, Any] = json.loads(as_json)
    return serialised
