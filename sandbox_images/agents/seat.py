"""Connects a published agent to its seat.

scripts/agent-packages copies this file into packages/.
"""

import json
import subprocess
import traceback
from collections.abc import Callable

HELPER = "/fumehood/bin/fumehood"


def ask(*words: str, text: str = "") -> str:
    """Return what the in-box command prints; text is its standard input."""
    done = subprocess.run(
        [HELPER, *words], input=text, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def converse(answer: Callable[[str], object]) -> None:
    """Submit the answer to each message of the user.

    When the work has ended, for instance with the budget, models do not answer, and libraries of
    agents raise an error. This function prints such an error, and raises all others.
    """
    message = ask("task")
    while message:
        try:
            text = str(answer(message))
        except Exception:
            left = subprocess.run([HELPER, "left"], capture_output=True, text=True, check=True)
            if "ended" not in left.stderr:
                raise
            traceback.print_exc()
            return
        message = json.loads(ask("submit", "-", text=text)).get("next")
