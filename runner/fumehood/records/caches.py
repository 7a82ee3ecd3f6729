"""Results kept in the user's state folder: baseline scores and results of the containment probe.

A baseline is kept for one frozen suite and one version of the code. A probe result is kept for one
engine as it describes itself and for one kernel.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

from fumehood.core.json_values import Json, JsonObject
from fumehood.core.task import Suite
from fumehood.records.files import write_whole
from fumehood.records.frozen_suite import suite_digest

BASELINE_FORMAT = "fumehood.baseline/1"
PROBE_FORMAT = "fumehood.probe/1"
_CODE = Path(__file__).parents[1]


def keep_baseline(name: str, suite: Suite, result: Mapping[str, Json]) -> Path:
    """Keep the result of a baseline and return its file.

    Args:
        name: of the baseline, such as ``noop``.
        suite: that the baseline played.
        result: JSON object to keep.

    Raises:
        OSError: the state folder cannot be written.
    """
    return _keep(_baseline_file(name, suite), {"format": BASELINE_FORMAT, **result})


def kept_baseline(name: str, suite: Suite) -> JsonObject | None:
    """Return the kept result for this suite and this code; None if there is none."""
    return _read(_baseline_file(name, suite), BASELINE_FORMAT)


def keep_probe(engine: str, detail: str, result: Mapping[str, Json]) -> Path:
    """Keep the result of a containment probe, instead of the last one, and return its file.

    Args:
        engine: name of the probed engine.
        detail: the engine's description of itself, with its version.
        result: JSON object to keep.

    Raises:
        OSError: the state folder cannot be written.
    """
    about = {"format": PROBE_FORMAT, "engine": engine, "detail": detail, "system": system_name()}
    return _keep(_probe_file(engine, detail), {**about, **result})


def last_probe(engine: str, detail: str) -> JsonObject | None:
    """Return the last result for an engine that describes itself so; None if there is none."""
    return _read(_probe_file(engine, detail), PROBE_FORMAT)


def probe_summary(probe: JsonObject | None) -> str:
    """Return a probe result in one line; empty if there is none."""
    if probe is None:
        return ""
    counts = probe.get("counts")
    numbers = counts.items() if isinstance(counts, dict) else ()
    text = ", ".join(f"{number} {result}" for result, number in numbers if number)
    return f"{text} ({str(probe.get('made', ''))[:10]}, fumehood {probe.get('fumehood')})"


def system_name() -> str:
    """Return the running kernel with its version."""
    return f"{platform.system()} {platform.release()} {platform.machine()}"


def _baseline_file(name: str, suite: Suite) -> Path:
    return _state_folder() / "baselines" / f"{name}-{_baseline_digest(suite)[:32]}.json"


def _baseline_digest(suite: Suite) -> str:
    return sha256(f"{_code_digest()}\n{suite_digest(suite)}".encode()).hexdigest()


def _probe_file(engine: str, detail: str) -> Path:
    digest = sha256("\n".join((engine, detail, system_name())).encode()).hexdigest()
    return _state_folder() / "probes" / f"{engine}-{digest[:16]}.json"


def _state_folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state, "fumehood")


def _keep(file: Path, result: Mapping[str, Json]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, json.dumps(result, indent=1) + "\n")
    return file


def _read(file: Path, wanted: str) -> JsonObject | None:
    try:
        result = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return result if isinstance(result, dict) and result.get("format") == wanted else None


@cache
def _code_digest() -> str:
    digest = sha256()
    for path in sorted(_CODE.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
