"""Merges the shards of a run, or of an experiment, into one folder.

The merged rows are signed with the key of the user who merges. The run folder keeps ``run.json``,
``seal.json`` and the rows of each shard below ``shards``, so ``verify`` compares the merged rows
with what the signers of the shards sealed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path, PurePosixPath
from tempfile import mkdtemp

from fumehood.core.errors import InputError
from fumehood.core.json_values import Json, JsonObject, as_object, canonical_json
from fumehood.engines.engine import AgentKind
from fumehood.orchestrator.agents import code_differences
from fumehood.orchestrator.config import RunConfig, usual_machine_settings
from fumehood.orchestrator.experiment import (
    RUNS,
    frozen_plan,
    runs_in,
    write_plan,
)
from fumehood.orchestrator.run_plan import config_of, planned_of
from fumehood.orchestrator.shards import Shard
from fumehood.records.cassette import CASSETTE_FOLDERS, Cassette
from fumehood.records.files import (
    file_at,
    make_private_folder,
    open_no_link,
    open_plain,
    read_plain,
    write_plain,
    write_whole,
)
from fumehood.records.packed_traces import PACK, PackedTrace
from fumehood.records.row import EpisodeName, EpisodeRow
from fumehood.records.run_folder import RunFolder
from fumehood.records.run_reader import Accept, RunReader, is_experiment, open_run
from fumehood.records.seals import (
    FIRST,
    ROWS,
    SEAL,
    Signing,
    digest_bytes,
    read_seal,
    sealed_files,
    sealed_line,
)
from fumehood.records.shard_seals import SHARD_FACTS, SHARD_FILES, SHARDS
from fumehood.records.signing_key import SigningKey, user_key
from fumehood.records.trust import Trust

CHUNK_BYTES = 1 << 20
NAMED_MAX = 20
"""Missing shards that a message names."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A verified and finished shard."""

    run: RunReader
    config: RunConfig
    shard: Shard
    files: dict[str, bytes]
    """Content of the files that the merged run keeps, by name."""
    pack: str
    """SHA-256 of its packed traces; empty if it has none."""

    @property
    def path(self) -> Path:
        return self.run.path

    def rows(self) -> Iterator[tuple[EpisodeName, JsonObject]]:
        """Yield all rows, also those that a later one replaces."""
        for line in self.files.get(ROWS, b"").splitlines():
            row: JsonObject = json.loads(line)
            yield EpisodeRow.from_json(row).name, row

    def facts(self) -> JsonObject:
        """Return what the merged run states about the shard."""
        manifest = self.run.manifest()
        return {
            "shard": str(self.shard),
            "seal": digest_bytes(self.files[SEAL]),
            "episodes": len(self.run.rows()),
            **{name: manifest[name] for name in SHARD_FACTS if name in manifest},
            # The signer of a shard could state another key in its manifest.
            "signing_key": self.run.provenance.key,
        }


def merge(out: Path, shards: Sequence[Path], trust: Trust) -> None:
    """Merge the shards of one run, or of one experiment, into a new folder.

    Args:
        out: must not exist, or be empty.
        shards: folders of all shards, in any order.
        trust: keys that may have signed the shards.

    Raises:
        InputError: a shard is missing, doubled, unfinished, not verified, or of another run.
    """
    are_experiments = {is_experiment(path) for path in shards}
    if len(are_experiments) > 1:
        raise InputError("merge either run folders or folders of experiments, not both")
    with _whole_folder(out) as folder:
        if are_experiments == {False}:
            _merge_run(folder, shards, trust)
            return
        plan, *others = (frozen_plan(path) for path in shards)
        for other, path in zip(others, shards[1:], strict=True):
            if other.digest != plan.digest:
                raise InputError(f"{path} and {shards[0]} are shards of different experiments")
        runs, facts = zip(*(runs_in(path) for path in shards), strict=True), list[JsonObject]()
        for cell, parts in zip(plan.cells, runs, strict=True):
            facts += _merge_run(folder / RUNS / cell.name, parts, trust)
        # No signature covers the settings of the execution, so yours must not cover them either.
        plan = plan.with_settings(shard=None, **usual_machine_settings())
        # The runs state the keys too, but the user can remove runs.
        write_plan(plan, folder, _signers(facts))


@contextmanager
def _whole_folder(out: Path) -> Iterator[Path]:
    """Yield a folder beside ``out`` that becomes ``out`` at the end, or is removed on an error."""
    if file := file_at(out):
        raise InputError(f"{file} is a file: choose another folder")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if out.exists() and any(out.iterdir()):
            raise InputError(f"{out} is not empty: choose another folder")
        partial = Path(mkdtemp(prefix=f".{out.name}.", dir=out.parent))
        try:
            yield partial
            os.rename(partial, out)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror}") from None


def _signers(facts: Sequence[JsonObject]) -> list[JsonObject]:
    """Return each shard with each key that sealed a run of it."""
    signers = {(str(fact["shard"]), str(fact["signing_key"])): None for fact in facts}
    return [{"shard": shard, "signing_key": key} for shard, key in signers]


def _merge_run(path: Path, folders: Sequence[Path], trust: Trust) -> list[JsonObject]:
    """Merge the shards of a run, and return what the merged run states about each shard."""
    parts = sorted((_open(folder, trust) for folder in folders), key=lambda part: part.shard.number)
    first, key = parts[0], user_key()
    _check_set(parts)
    names = tuple(planned.name for planned in planned_of(first.run, of_all_shards=True))
    for part in parts:
        _check(part, first, names)
    manifest, config = first.run.manifest(), first.run.manifest()["config"]
    assert isinstance(config, dict)
    facts = [part.facts() for part in parts]
    run = digest_bytes(canonical_json([fact["seal"] for fact in facts]).encode())[:16]
    # The shards need not have the same settings of the execution, and `resume` follows those of
    # the merged run.
    config = {**config, **usual_machine_settings(), "shard": None}
    manifest = {**manifest, "run": run, "config": config, SHARDS: list(facts)}
    folder = RunFolder.create(path, manifest, first.run.suite(), Signing(key, names))
    packs_bytes = [_copy(part, path) for part in parts]
    write_whole(path / ROWS, _sealed_rows(parts, packs_bytes, names, key, run))
    folder.sign_with(Signing(key, names))
    folder.seal()
    open_run(path, Trust(own=key.public))
    return facts


def _open(path: Path, trust: Trust) -> _Part:
    run = open_run(path, trust, Accept.ONLY_VERIFIED)
    config, state = config_of(run), run.provenance
    if config.shard is None:
        raise InputError(f"{path} is no shard: it was run without --shard; name only shards")
    if not state.is_finished:
        raise InputError(
            f"shard {config.shard} is unfinished, {state.episodes} of {state.planned} episodes; "
            f"finish it with: fumehood resume {path}"
        )
    files = {name: read_plain(path / name) for name in SHARD_FILES if (path / name).exists()}
    seal = read_seal(path)
    digests = {file.path: file.sha256 for file in seal.files}
    if seal.key != state.key or any(
        digest_bytes(content) != digests.get(name, digest_bytes(content))
        for name, content in files.items()
    ):
        raise InputError(f"{path} was changed while it was read: merge again after the change")
    return _Part(run, config, Shard.parse(config.shard), files, digests.get(PACK, ""))


def _check_set(parts: Sequence[_Part]) -> None:
    """Check that each shard is there once."""
    first, numbers = parts[0], dict[int, _Part]()
    for part in parts:
        if part.shard.count != first.shard.count:
            raise InputError(
                f"{part.path} is shard {part.shard}, but {first.path} is shard {first.shard}: "
                "merge shards of one run"
            )
        other = numbers.setdefault(part.shard.number, part)
        if other is not part:
            raise InputError(
                f"{other.path} and {part.path} are both shard {part.shard}: name only one of them"
            )
    count = first.shard.count
    numbers_missing = (number for number in range(1, count + 1) if number not in numbers)
    missing = [str(Shard(number, count)) for number in islice(numbers_missing, NAMED_MAX)]
    if missing:
        others = count - len(numbers) - len(missing)
        plural, verb = ("", "is") if len(missing) == 1 else ("s", "are")
        names = f"{', '.join(missing)}{f' and {others:,} more' if others else ''}"
        whose = "its folder" if others + len(missing) == 1 else "their folders"
        raise InputError(f"shard{plural} {names} {verb} missing: name {whose}, too")


def _check(part: _Part, first: _Part, names: Sequence[EpisodeName]) -> None:
    """Check that a shard belongs to the run of the first one, and that it played its part."""
    one, other = part.run.manifest(), first.run.manifest()
    if changed := code_differences(other, one):
        raise InputError(
            f"{part.path} was played with other code of the agent {changed[0]} than {first.path}: "
            "play one of them again with the code of the other"
        )
    different = part.config.run_differences(first.config) - {"shard", "keep_workspaces"}
    for name, read in _OF_MANIFEST.items():
        if read(one) != read(other):
            different.add(name)
    if different:
        raise InputError(
            f"{part.path} and {first.path} are shards of different runs: they differ in "
            f"{', '.join(sorted(different))}"
        )
    planned, played = part.shard.part_of(names), set(part.run.row_digests())
    if planned != played:
        raise InputError(
            f"{part.path} does not hold the episodes of shard {part.shard}: "
            f"{len(planned - played)} are missing, {len(played - planned)} belong to other shards"
        )


def _identities(manifest: JsonObject) -> list[Json]:
    """Return what the agents are; each machine may build an image from a folder itself.

    The name of such an image contains a digest of the folder.
    """
    agents = manifest.get("agents")
    assert isinstance(agents, list)
    proof = {AgentKind.IMAGE.value: "digest", AgentKind.FOLDER.value: "image"}
    return [
        {name: value for name, value in agent.items() if name not in ("image", "digest")}
        | {"proof": agent.get(proof.get(str(agent["kind"]), ""), "")}
        for agent in agents
        if isinstance(agent, dict)
    ]


_OF_MANIFEST: dict[str, Callable[[JsonObject], object]] = {
    "suite": lambda manifest: manifest.get("suite_digest"),
    "monitors": lambda manifest: manifest.get("monitors"),
    "version": lambda manifest: as_object(manifest.get("versions")).get("fumehood"),
    "agents": _identities,
}
"""What the shards of a run have in common beside their settings."""


def _copy(part: _Part, path: Path) -> int:
    """Copy the files of all episodes of a shard, and what proves their origin; return the size of
    its packed traces, bytes."""
    last = dict(part.rows())
    for row in last.values():
        seal = row["seal"]
        assert isinstance(seal, dict)
        for file in sealed_files(seal["files"]):
            if not PackedTrace.parse(file.path):
                _copy_file(part.path, path, file.path, file.sha256)
    pack_bytes = _append_pack(part, path / PACK) if part.pack else 0
    for name in CASSETTE_FOLDERS:
        for body in sorted(Cassette(part.path / name).referenced()):
            _copy_file(part.path, path, f"{name}/bodies/{body}", body)
    for name, content in part.files.items():
        _write(path, f"{SHARDS}/{part.shard.number}/{name}", content)
    return pack_bytes


def _append_pack(part: _Part, target: Path) -> int:
    """Append the packed traces of a shard to those of the merged run; return their size, bytes."""
    copied, size_bytes = sha256(), 0
    with open_plain(part.path / PACK) as source, open(target, "ab", opener=open_no_link) as file:
        while content := source.read(CHUNK_BYTES):
            copied.update(content)
            size_bytes += file.write(content)
    if copied.hexdigest() != part.pack:
        raise InputError(
            f"{part.path / PACK} was changed while it was read: merge again after the change"
        )
    return size_bytes


def _copy_file(source: Path, target: Path, file: str, sha256: str) -> None:
    content = read_plain(source / file)
    if digest_bytes(content) != sha256:
        raise InputError(
            f"{source / file} was changed while it was read: merge again after the change"
        )
    _write(target, file, content)


def _write(target: Path, file: str, content: bytes) -> None:
    for parent in reversed(PurePosixPath(file).parents[:-1]):
        make_private_folder(target / parent)
    write_plain(target / file, content)


def _sealed_rows(
    parts: Sequence[_Part],
    packs_bytes: Sequence[int],
    names: Sequence[EpisodeName],
    key: SigningKey,
    run: str,
) -> str:
    """Return the lines of all rows in the order of the plan, sealed with ``key``.

    Args:
        parts: the shards.
        packs_bytes: size of the packed traces of each shard.
        names: of all episodes, in the order of the plan.
        key: signs the rows.
        run: ID of the merged run.
    """
    rows, own = defaultdict[EpisodeName, list[JsonObject]](list), parts[0].run.own_isolation()
    packed_bytes = 0
    for part, pack_bytes in zip(parts, packs_bytes, strict=True):
        for name, row in part.rows():
            _move_trace(row, packed_bytes)
            isolation = row.pop("isolation", part.run.own_isolation())
            stated = {} if isolation == own else {"isolation": isolation}
            rows[name].append({**row, **stated})
        packed_bytes += pack_bytes
    lines, after = [], FIRST
    for row in (row for name in names for row in rows[name]):
        seal = row.pop("seal")
        assert isinstance(seal, dict)
        records, files = int(str(seal["records"])), sealed_files(seal["files"])
        lines.append(sealed_line(row, key, run=run, after=after, records=records, files=files))
        after = digest_bytes(lines[-1])
    return b"".join(lines).decode("ascii")


def _move_trace(row: JsonObject, others_bytes: int) -> None:
    """Change the place of a packed trace to that in the merged run, in a row and in its seal."""
    place, seal = PackedTrace.parse(str(row["trace"])), row["seal"]
    if place is not None and isinstance(seal, dict):
        moved = str(place.after(others_bytes))
        files = sealed_files(seal["files"])
        seal["files"] = [
            {"path": moved if file.path == row["trace"] else file.path, "sha256": file.sha256}
            for file in files
        ]
        row["trace"] = moved
