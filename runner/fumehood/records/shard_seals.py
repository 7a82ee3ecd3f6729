"""Compares a merged run with the seals of its shards, which it keeps below ``shards``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject, as_object, canonical_json
from fumehood.records.files import digest_file
from fumehood.records.packed_traces import PackedTrace
from fumehood.records.seals import PLAN_FILES, ROWS, SEAL, UNREADABLE, read_seal, row_lines
from fumehood.records.trust import SHOWN_DIGITS

SHARDS = "shards"
"""Folder of a merged run, and field of its ``run.json``."""
SHARD_FILES = ("run.json", SEAL, ROWS)
"""Files of each shard that a merged run keeps, in a folder with the number of the shard."""
SHARD_FACTS = (
    *("run", "signing_key", "engine", "isolation", "isolation_facts", "host", "versions", "agents"),
    "workspaces",
)
"""Fields of the ``run.json`` of each shard that the merged run repeats."""


def shard_damage(path: Path, plan: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yield each difference between a merged run and the seals of its shards: where and what.

    Args:
        path: of the run folder.
        plan: content of its plan files, as verified.
    """
    try:
        shards = json.loads(plan["run.json"]).get(SHARDS, [])
        merged = {_content(line) for line in row_lines(path)} if shards else set()
        folders = [f"{SHARDS}/{str(facts['shard']).partition('/')[0]}" for facts in shards]
    except (*UNREADABLE, InputError):
        return  # It is damage of the plan or of the rows already.
    for facts, folder in zip(shards, folders, strict=True):
        try:
            seal = read_seal(path / folder)
            lines = row_lines(path / folder)
        except InputError as error:
            yield f"{folder}/{SEAL}", str(error)
            continue
        if digest_file(path / folder / SEAL) != facts.get("seal") or not seal.is_final:
            yield f"{folder}/{SEAL}", "not the seal that was merged"
        where = {"run.json": path / folder, "suite.jsonl": path, ROWS: path / folder}
        sealed = {file.path: file.sha256 for file in seal.files}
        for name in (*PLAN_FILES, ROWS):
            if digest_file(where[name] / name) != sealed.get(name):
                yield f"{folder}/{SEAL}", f"the shard has another {name}"
        for number, line in enumerate(lines, 1):
            if _content(line) not in merged:
                yield f"{folder}/{ROWS}:{number}", "the merged run does not have this row"
    yield from _unknown(path, {f"{folder}/{name}" for folder in folders for name in SHARD_FILES})


def require_own_shards(path: Path, manifest: JsonObject, key: str) -> None:
    """Check that no other key signed a shard of a merged run, before an episode of it is played.

    The configuration of a merged run comes from its shards. It chooses the agents and the hosts
    that get keys.

    Args:
        path: of the run folder.
        manifest: content of its ``run.json``.
        key: public key of this user, 64 hex digits.

    Raises:
        InputError: another key signed a shard, or the seal of a shard cannot be read.
    """
    shards = manifest.get(SHARDS, [])
    for facts in shards if isinstance(shards, list) else ():
        shard = str(as_object(facts).get("shard"))
        signer = read_seal(path / SHARDS / shard.partition("/")[0]).key
        if signer != key:
            raise _not_own(
                path,
                shard,
                signer,
                f"Read the finished ones (fumehood report {path}); or let the signer resume the "
                "shard, and merge again",
            )


def require_own_signers(folder: Path, plan: Mapping[str, Any], key: str) -> None:
    """Check that no other key signed a shard of a merged experiment, before its plan is executed.

    The plan states the keys, so the check does not need the runs.

    Args:
        folder: of the experiment.
        plan: content of its signed plan; one that is not merged states no shards.
        key: public key of this user, 64 hex digits.

    Raises:
        InputError: another key signed a shard.
    """
    for signed in plan.get(SHARDS, ()):
        if signed["signing_key"] != key:
            raise _not_own(
                folder,
                signed["shard"],
                signed["signing_key"],
                f"Name your own YAML file with --out {folder}; or merge the shards again into "
                "another folder",
            )


def _not_own(path: Path, shard: str, signer: str, remedy: str) -> InputError:
    return InputError(
        f"shard {shard} of {path} has another key ({signer[:SHOWN_DIGITS]}…), which is not yours. "
        "Its configuration chooses agents and hosts that get keys, so no further episodes are "
        f"played. {remedy}"
    )


def _unknown(path: Path, known: set[str]) -> Iterator[tuple[str, str]]:
    for parent, folders, files in os.walk(path / SHARDS):
        for name in (*folders, *files):
            where = (Path(parent) / name).relative_to(path).as_posix()
            if where not in known and not any(file.startswith(f"{where}/") for file in known):
                yield where, "belongs to no shard"


def _content(line: bytes) -> str:
    """Return a row without its seal and isolation, which the merge states for all shards.

    The place of its trace in the pack changes too, but not the digest of the trace.
    """
    try:
        row = json.loads(line)
        moved = ("trace",) if PackedTrace.parse(row["trace"]) else ()
        without = ("seal", "isolation", *moved)
        return canonical_json({key: row[key] for key in row if key not in without})
    except UNREADABLE:
        return ""
