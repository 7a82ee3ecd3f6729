"""What lies around the worlds of a run: found and checked first, so that no episode fails by it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from fumehood.core.encryption import VEILED
from fumehood.core.episode_spec import DataMode, DataSource
from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.task import Suite
from fumehood.orchestrator.config import RunConfig
from fumehood.worlds.registry import needs_data_source

FETCH_SECONDS_MAX = 20.0
"""An episode that is over waits for its last fetch, and nobody waits long for an episode that is over."""
SETTINGS = ("snapshot", "recording", "fetch", "search")


def settled(config: RunConfig, suite: Suite) -> RunConfig:
    """Return the configuration with whole paths, and with the snapshot that the suite was found with.

    Raises:
        InputError: something is missing, is another snapshot than the tasks name, or is of no use here.
    """
    if not _looks_outside(suite):
        if config.data_mode != "offline" or config.snapshot or config.recording:
            raise InputError(
                f"no task of {suite.name} needs a data source: remove data_mode, snapshot and recording"
            )
        return config
    paths = {
        "snapshot": _whole(config.snapshot or suite.snapshot),
        "recording": _whole(config.recording),
    }
    settled_config = config.model_copy(update=paths)
    if config.data_mode == "record" and any(case.task.profile == VEILED for case in suite.cases):
        raise InputError(
            f"a recording would hold what is asked of {suite.name} in plain text; run it live"
        )
    _check(settled_config, suite)
    return settled_config


def surroundings_of(config: RunConfig, suite: Suite) -> DataSource | None:
    """Return what lies around a run with settled settings; None where nobody looks outside."""
    if not _looks_outside(suite):
        return None
    told: JsonObject = config.model_dump(mode="json", include=set(SETTINGS), exclude_none=True)
    return DataSource(DataMode(config.data_mode), told)


def make_room_for_recording(config: RunConfig, owner_uid: int) -> None:
    """Make the folder of a recording and give it to whom the services run as.

    Raises:
        InputError: it cannot be made, or they could not get there.
    """
    if config.data_mode != "record" or config.recording is None:
        return
    try:
        config.recording.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            for path in (config.recording, *config.recording.iterdir()):
                os.chown(path, owner_uid, -1)
    except OSError as error:
        raise InputError(
            f"{error.filename}: {error.strerror}; choose another --recording"
        ) from None
    _refuse_closed(config.recording)


def _check(config: RunConfig, suite: Suite) -> None:
    from fumehood_snapshots.errors import SnapshotError
    from fumehood_snapshots.library.settings import read_settings

    told = config.model_dump(mode="json", include={"data_mode", *SETTINGS}, exclude_none=True)
    try:
        read_settings(told)
    except SnapshotError as error:
        raise InputError(f"{error}; see docs/snapshots.md") from None
    if config.fetch is not None and config.fetch.seconds_max > FETCH_SECONDS_MAX:
        raise InputError(f"fetch.seconds_max: at most {FETCH_SECONDS_MAX:g} in a run")
    if config.data_mode == "offline":
        assert config.snapshot is not None
        _check_snapshot(config.snapshot, suite)


def _check_snapshot(path: Path, suite: Suite) -> None:
    from fumehood_snapshots.errors import SnapshotError
    from fumehood_snapshots.format.manifest import read_manifest

    try:
        found = f"sha256:{read_manifest(path)[1]}"
    except SnapshotError as error:
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}") from None
    for case in suite.cases:
        named = case.task.initial_state.get("snapshot")
        wanted = named.get("digest") if isinstance(named, dict) else None
        if wanted not in (None, found):
            raise InputError(
                f"{case.task.task_id} names the snapshot {wanted}, but {path} is {found}"
            )
    _refuse_closed(path)


def _refuse_closed(path: Path) -> None:
    """Refuse a folder that a service which gives root up could not enter."""
    if os.geteuid() != 0:
        return
    closed = [each for each in (path, *path.parents) if not each.stat().st_mode & stat.S_IXOTH]
    if closed:
        raise InputError(
            f"the sandbox service is not root and cannot enter {closed[-1]}; let others enter it "
            f"(chmod o+x), or keep {path.name} elsewhere"
        )


def _looks_outside(suite: Suite) -> bool:
    return any(needs_data_source(name) for name in {case.task.world for case in suite.cases})


def _whole(path: Path | None) -> Path | None:
    return None if path is None else path.resolve()
