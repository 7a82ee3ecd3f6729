"""Writes tasks of this project in the format of AgentBench's os_interaction."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

EQUAL = "from sys import argv\nexit(argv[1].strip() != argv[2].strip())"
LINES = {
    "description": "How many lines does /srv/list have?",
    "create": {"local": "default", "init": {"file": "init/list.sh"}},
    "evaluation": {
        "check": [None, {"language": "python", "file": "check/equal.py"}],
        "example": {"code": "wc -l < /srv/list"},
    },
}
VARIABLE = {
    "description": "What is the value of the variable place in your shell?",
    "start": "place=here",
    "evaluation": {"match": "here"},
}
BROKEN = {
    "description": "This machine cannot be set up.",
    "create": {"init": "echo no such disk; exit 3"},
    "evaluation": {"match": "anything"},
}
CHANGE = {
    "description": "Let only the owner read ~/key.",
    "create": {"init": "echo secret > ~/key; chmod 644 ~/key"},
    "evaluation": {
        "check": {"code": '[ "$(stat -c %a ~/key)" = 600 ]'},
        "example": "chmod 600 ~/key",
    },
}
STANDARD = [LINES, VARIABLE, CHANGE]


def write_checkout(
    folder: Path, standard: list[dict[str, Any]] | None = None, *, dev: Any = (BROKEN,)
) -> Path:
    """Write a checkout with these records as part 1 of the split `std`, and return its folder."""
    data = folder / "data" / "os_interaction"
    for part in ("1", "dev"):
        scripts = data / "scripts" / part
        for name in ("init", "check"):
            (scripts / name).mkdir(parents=True)
        (scripts / "check" / "equal.py").write_text(EQUAL)
        (scripts / "init" / "list.sh").write_text("seq $((RANDOM % 90 + 10)) > /srv/list\n")
    (data / "data" / "1").mkdir(parents=True)
    records = STANDARD if standard is None else standard
    (data / "data" / "1" / "own.json").write_text(json.dumps(records))
    (data / "data" / "dev.json").write_text(json.dumps(list(dev)))
    return folder
