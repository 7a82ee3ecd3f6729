"""What doing nothing or an oracle scored on a suite, kept in the user's state folder where it took long.

Kept for one suite, as it is frozen, and for this very code: after any change of either it is played again.
Knows nothing about playing: what it keeps is an object.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

from fumehood.core.json_values import Json, JsonObject
from fumehood.core.task import Suite
from fumehood.records.frozen_suite import freeze_suite
from fumehood.records.whole_file import write_whole

FORMAT = "fumehood.baseline/1"
_CODE = Path(__file__).parents[1]


def keep_baseline(name: str, suite: Suite, found: Mapping[str, Json]) -> Path:
    """Keep what was found, and return the file.

    Args:
        name: of the baseline, such as ``noop``.
        suite: that it was played on.
        found: what came of it.

    Raises:
        OSError: the state folder cannot be written.
    """
    file = _file(name, suite)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, json.dumps({"format": FORMAT, **found}) + "\n")
    return file


def kept_baseline(name: str, suite: Suite) -> JsonObject | None:
    """Return what was kept for this suite and this code; None where nothing is."""
    try:
        found = json.loads(_file(name, suite).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("format") == FORMAT else None


def _file(name: str, suite: Suite) -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    digest = sha256(f"{_code_digest()}\n{freeze_suite(suite)}".encode()).hexdigest()
    return Path(state, "fumehood", "baselines", f"{name}-{digest[:32]}.json")


@cache
def _code_digest() -> str:
    digest = sha256()
    for path in sorted(_CODE.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
