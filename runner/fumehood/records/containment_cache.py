"""What came of the last attack on an engine set-up of this machine: a file each, in the user's state folder.

A set-up is an engine as it describes itself, on one kernel: with another version of Docker nothing is known
until it was attacked again. Knows nothing about attacks: what it keeps is an object.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from fumehood.core.json_values import Json, JsonObject
from fumehood.records.whole_file import write_whole

FORMAT = "fumehood.probe/1"


def system_name() -> str:
    """Return the kernel this runs on, with its version."""
    return f"{platform.system()} {platform.release()} {platform.machine()}"


def keep_probe(engine: str, detail: str, found: Mapping[str, Json]) -> Path:
    """Keep what came of an attack, in place of the one before, and return the file.

    Args:
        engine: name of the attacked engine.
        detail: how it describes itself when it is asked whether it is ready.
        found: what came of it.

    Raises:
        OSError: the state folder cannot be written.
    """
    file = _file(engine, detail)
    file.parent.mkdir(parents=True, exist_ok=True)
    about = {"format": FORMAT, "engine": engine, "detail": detail, "system": system_name()}
    write_whole(file, json.dumps({**about, **found}, indent=1) + "\n")
    return file


def last_probe(engine: str, detail: str) -> JsonObject | None:
    """Return what came of the last attack on this very set-up, or None where there was none.

    Args:
        engine: name of an engine.
        detail: how it describes itself now.
    """
    try:
        found = json.loads(_file(engine, detail).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("format") == FORMAT else None


def told_shortly(probe: JsonObject | None) -> str:
    """Return a probe in one line; nothing where there is none."""
    if probe is None:
        return ""
    counts = probe.get("counts")
    numbers = counts.items() if isinstance(counts, dict) else ()
    said = ", ".join(f"{number} {result}" for result, number in numbers if number)
    return f"{said} ({str(probe.get('made', ''))[:10]}, fumehood {probe.get('fumehood')})"


def _file(engine: str, detail: str) -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    digest = sha256("\n".join((engine, detail, system_name())).encode()).hexdigest()
    return Path(state, "fumehood", "probes", f"{engine}-{digest[:16]}.json")
