"""Opens a run for reading, after its seals were verified. No other module hands out rows of runs.

::

    run = open_run(path, Trust.of_user())                   refuses what does not verify
    run = open_run(path, trust, Accept.UNVERIFIED)          reads it anyway; run.provenance.mark
                                                            is then part of every output
    run = open_written(path, rows, suite, signing)          what this process has just sealed
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from fumehood.core.errors import InputError
from fumehood.core.formats import require_format
from fumehood.core.json_values import Json, JsonObject, as_object
from fumehood.core.task import Suite
from fumehood.core.trace import ModelExchange, Record
from fumehood.records.cassette import Cassette
from fumehood.records.files import read_plain
from fumehood.records.frozen_suite import read_frozen_suite
from fumehood.records.packed_traces import read_trace_content
from fumehood.records.row import EpisodeName, EpisodeRow
from fumehood.records.run_folder import FORMAT, RunFolder, not_a_run, parse_trace
from fumehood.records.run_memory import RunMemory
from fumehood.records.seals import (
    PLAN_FILES,
    UNREADABLE,
    SealedRow,
    Signing,
    digest_bytes,
    row_lines,
)
from fumehood.records.trace_lines import unparsed_records
from fumehood.records.trust import SHOWN_DIGITS, Trust
from fumehood.records.verify import Verification, verify

_MANIFEST, _SUITE = PLAN_FILES
T = TypeVar("T")
PLAN_FILE = "experiment.json"
"""Plan of an experiment, whose run folders are below ``runs``."""


class Accept(Enum):
    """Which runs a reader accepts."""

    VERIFIED = "verified"
    """Sound runs of accepted signers, finished or not; the command can read others on request."""
    ONLY_VERIFIED = "only verified"
    """The same runs, for a command that never reads others."""
    RESUMABLE = "resumable"
    """Also unfinished runs with damage that a crash causes."""
    UNVERIFIED = "unverified"
    """Everything that can be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The result of the verification of a run."""

    folder: str
    key: str
    """Public key of the signer; empty if there is no valid seal."""
    signer: str
    """Owner of the key, in words."""
    is_finished: bool
    planned: int
    """Number of planned episodes."""
    episodes: int
    """Number of episodes with a row."""
    problem: str = ""
    """Why the run is unverified; empty if it is verified."""
    shard: str = ""
    """``K/N`` if the run is one of several shards; otherwise empty."""

    @property
    def mark(self) -> str:
        """The text that marks every output of an unverified run; empty for a verified run."""
        return f"UNVERIFIED: {self.folder}: {self.problem}" if self.problem else ""

    def __str__(self) -> str:
        """Return one line for a reader."""
        if self.problem:
            return self.mark
        signed = f"signed with {self.signer}, {self.key[:SHOWN_DIGITS]}…"
        state, remedy = f"verified: {signed}", ""
        if not self.is_finished:
            state = f"unfinished: {self.episodes} of {self.planned} episodes, {signed}"
            if self.episodes == self.planned:
                state = f"not sealed, although every episode is finished; {signed}"
            remedy = f"; continue with: fumehood resume {self.folder}"
        if self.shard:
            remedy = f"; it is only shard {self.shard}: fumehood merge joins all{remedy}"
        return f"{self.folder} is {state}{remedy}"

    def to_json(self) -> JsonObject:
        """Return the fields for JSON output."""
        return {
            "verified": not self.problem,
            "problem": self.problem or None,
            "signing_key": self.key or None,
            "signer": self.signer,
            "finished": self.is_finished,
            **({"shard": self.shard} if self.shard else {}),
        }


class RunReader:
    """The content of one run. Only :func:`open_run` creates it."""

    def __init__(
        self,
        path: Path,
        provenance: Provenance,
        plan: dict[str, bytes],
        rows: list[EpisodeRow],
        trace_digests: dict[str, str] | None,
        row_digests: dict[EpisodeName, str],
        memory: RunMemory | None = None,
    ) -> None:
        """Create the reader.

        Args:
            path: of the run folder.
            provenance: the result of the verification.
            plan: content of the plan files, as verified.
            rows: one per episode, as verified.
            trace_digests: SHA-256 of each sealed trace by path; None accepts any trace.
            row_digests: SHA-256 of each sealed row, in the order of the plan.
            memory: of what earlier readers computed; None remembers nothing.
        """
        self.path = path
        self.provenance = provenance
        self._plan = plan
        self._rows = rows
        self._trace_digests = trace_digests
        self._row_digests = row_digests
        self._memory = memory

    def manifest(self) -> JsonObject:
        """Return the content of ``run.json``."""
        return self._manifest

    @cached_property
    def _manifest(self) -> JsonObject:
        return _manifest_of(self.path, self._plan)

    def isolation(self) -> str:
        """Return the isolation of the boxes, and of episodes that were resumed with another."""
        others = Counter(row.isolation for row in self._rows if row.isolation)
        parts = [f"{name} in {number} episodes" for name, number in others.items()]
        return ", ".join((self.own_isolation(), *parts))

    def own_isolation(self) -> str:
        """Return the isolation of the boxes that ``run.json`` states, and how they were started."""
        facts = as_object(self._manifest.get("isolation_facts"))
        starts = ["forked"] * (facts.get("starts") == "forked")
        starts += ["prepared"] * bool(facts.get("prepared"))
        how = f" ({', '.join(starts)})" if starts else ""
        return f"{self._manifest.get('isolation', 'unknown')}{how}"

    def suite(self) -> Suite:
        """Return the tasks of the run.

        Raises:
            InputError: they cannot be read.
        """
        return self._suite

    @cached_property
    def _suite(self) -> Suite:
        if _SUITE not in self._plan:
            raise InputError(f"{self.path / _SUITE} cannot be read")
        return read_frozen_suite(str(self._manifest.get("suite", "")), self._plan[_SUITE])

    def rows(self) -> list[EpisodeRow]:
        """Return one row per episode, in the order in which episodes first finished."""
        return list(self._rows)

    def row_digests(self) -> dict[EpisodeName, str]:
        """Return the SHA-256 of each sealed row, in the order of the plan; empty if unverified."""
        return dict(self._row_digests)

    def once(self, name: EpisodeName, what: str, compute: Callable[[], T]) -> T:
        """Return what follows from an episode, or what an earlier reader computed from its row.

        Args:
            name: of the episode.
            what: is computed.
            compute: returns the value, from the row, its files and the plan alone.
        """
        digest = self._row_digests.get(name)
        if self._memory is None or digest is None:
            return compute()
        return self._memory.of_row((digest, what), compute)

    def sealed_row(self, name: EpisodeName) -> JsonObject:
        """Return the sealed row of an episode with its seal.

        Raises:
            InputError: there is none, or it changed after the run was verified.
        """
        wanted = self._row_digests.get(name)
        for line in row_lines(self.path):
            if digest_bytes(line) == wanted:
                row: JsonObject = json.loads(line)
                return row
        raise InputError(f"{self.path} has no sealed row of {name}; see: fumehood verify")

    def read_trace(self, row: EpisodeRow) -> list[Record]:
        """Return the trace of an episode.

        Raises:
            InputError: it is not a trace, or it changed after the run was verified.
        """
        content = self.trace_content(row)
        if self._trace_digests is None:
            return parse_trace(self.path / row.trace, content)
        # The seal covers these bytes, so their events are canonical already.
        try:
            return unparsed_records(content)
        except UNREADABLE:
            raise InputError(f"{self.path / row.trace} is not a readable trace") from None

    def trace_content(self, row: EpisodeRow) -> bytes:
        """Return the content of the trace of an episode.

        Raises:
            InputError: it cannot be read, or it changed after the run was verified.
        """
        path = self.path / row.trace
        try:
            content = read_trace_content(self.path, row.trace)
        except OSError:
            raise InputError(f"{path} is not a readable trace") from None
        digest = sha256(content).hexdigest()
        if self._trace_digests is not None and digest != self._trace_digests.get(row.trace):
            raise InputError(
                f"{path} is not the trace that was recorded for {row.name}; "
                f"see: fumehood verify {self.path}"
            )
        return content

    def exchanges(self, name: EpisodeName) -> tuple[ModelExchange, ...]:
        """Return the stored model requests of an episode, with their responses.

        Raises:
            InputError: a body is missing or was changed.
        """
        # A run without models has many episodes, and no cassette.
        return self._cassette.read(name.identifier) if self._has_cassette else ()

    @cached_property
    def _has_cassette(self) -> bool:
        return self._cassette.exists()

    @cached_property
    def _cassette(self) -> Cassette:
        config = self.manifest().get("config")
        models = config.get("models") if isinstance(config, dict) else None
        folder = self.path / "cassette"
        if isinstance(models, dict) and models.get("mode") == "record" and models.get("cassette"):
            folder = Path(str(models["cassette"]))
        return Cassette(folder)

    def outputs(self, name: EpisodeName) -> Iterator[Path]:
        """Yield the files with the output of an episode's boxes."""
        # Runs without boxes have many episodes, and not even a folder for their agents.
        if name.output_path.rpartition("/")[0] not in self._output_folders:
            return
        for stream in ("stdout", "stderr"):
            path = self.path / f"{name.output_path}.{stream}"
            if path.is_file() and not path.is_symlink():
                yield path

    @cached_property
    def _output_folders(self) -> frozenset[str]:
        return frozenset(f"output/{path.name}" for path in (self.path / "output").glob("*"))


def open_run(
    path: Path,
    trust: Trust,
    accept: Accept = Accept.VERIFIED,
    memory: RunMemory | None = None,
) -> RunReader:
    """Verify a run and return its content.

    Args:
        path: of the run folder.
        trust: keys that the reader accepts.
        accept: what the reader accepts.
        memory: of earlier readers of the run, so that only new rows and changed files are verified.

    Raises:
        InputError: the path is not a run folder, or the run is not accepted.
    """
    plan = _read_plan(path)
    _manifest_of(path, plan)
    shard = shard_of(plan)
    verification, problem = _verify(path, trust, accept, memory)
    if verification is None or problem:
        if accept is not Accept.UNVERIFIED:
            remedy = (
                "read it anyway with --unverified, or"
                if accept is Accept.VERIFIED
                else "nothing was run or signed;"
            )
            raise InputError(
                f"{path} does not verify: {problem}; {remedy} see: fumehood verify {path}"
            )
        rows = RunFolder(path).rows()
        provenance = _provenance(path, verification, trust, len(rows), problem)
        return RunReader(path, replace(provenance, shard=shard), plan, rows, None, {})
    provenance = _provenance(path, verification, trust, verification.episodes)
    provenance = replace(provenance, shard=shard)
    return _reader(path, provenance, dict(verification.plan), verification, memory)


def open_written(
    path: Path, rows: Sequence[SealedRow], suite: Suite, signing: Signing
) -> RunReader:
    """Return the content of a run that this process has just played and sealed.

    Nothing is verified, because this process wrote it.

    Args:
        path: of the run folder.
        rows: one per episode.
        suite: its tasks.
        signing: the key that signed the run, and the plan.

    Raises:
        InputError: another program removed the plan of the run.
    """
    plan = _read_plan(path)
    by_name = {row.row.name: row for row in rows}
    written = Verification(
        signing.key.public,
        len(signing.episodes),
        (),
        is_final=by_name.keys() >= set(signing.episodes),
        rows=by_name,
        order=signing.episodes,
    )
    _manifest_of(path, plan)
    provenance = _provenance(path, written, Trust(own=written.key), written.episodes)
    reader = _reader(path, replace(provenance, shard=shard_of(plan)), plan, written)
    # The plan contains the same tasks, but reading them takes time.
    reader._suite = suite
    return reader


def _reader(
    path: Path,
    provenance: Provenance,
    plan: dict[str, bytes],
    verification: Verification,
    memory: RunMemory | None = None,
) -> RunReader:
    by_name = verification.rows
    rows = [row.row for row in by_name.values()]
    digests = {file.path: file.sha256 for row in by_name.values() for file in row.files}
    by_plan = {name: by_name[name].digest for name in verification.order if name in by_name}
    return RunReader(path, provenance, plan, rows, digests, by_plan, memory)


def open_running(path: Path) -> RunReader:
    """Return a reader, without rows, of the run that this process writes; nothing is verified.

    Raises:
        InputError: the path is not a run folder.
    """
    plan = _read_plan(path)
    _manifest_of(path, plan)
    problem = "the run is not finished"
    provenance = Provenance(
        folder=str(path),
        key="",
        signer="no key yet",
        is_finished=False,
        planned=0,
        episodes=0,
        problem=problem,
    )
    return RunReader(path, provenance, plan, [], None, {})


def _verify(
    path: Path, trust: Trust, accept: Accept, memory: RunMemory | None
) -> tuple[Verification | None, str]:
    """Return the verification, if the run was signed, and why the run is not accepted."""
    try:
        verification = verify(path, memory=memory)
    except InputError as error:
        return None, str(error)
    blocking = [
        damage
        for damage in verification.damage
        if not (damage.is_of_crash if accept is Accept.RESUMABLE else damage.is_of_unfinished)
    ]
    if blocking:
        more = f", and {len(blocking) - 1} more" if len(blocking) > 1 else ""
        hint = (
            "; fumehood resume repeats torn episodes"
            if all(damage.is_of_crash for damage in blocking)
            else ""
        )
        return verification, f"{blocking[0]}{more}{hint}"
    if trust.signer(verification.key) is None:
        return verification, (
            f"signed with {verification.key}, which is not one of your keys: "
            f"if you know its owner, run fumehood keys add {verification.key} NAME"
        )
    return verification, ""


def _provenance(
    path: Path, verification: Verification | None, trust: Trust, episodes: int, problem: str = ""
) -> Provenance:
    key = verification.key if verification else ""
    return Provenance(
        folder=str(path),
        key=key,
        signer=trust.signer(key) or "an unknown key",
        is_finished=bool(verification and verification.is_final),
        planned=verification.planned if verification else episodes,
        episodes=episodes,
        problem=problem,
    )


def _read_plan(path: Path) -> dict[str, bytes]:
    plan = {}
    for name in PLAN_FILES:
        try:
            plan[name] = read_plain(path / name)
        except OSError:
            continue
    return plan


def _manifest_of(path: Path, plan: dict[str, bytes]) -> dict[str, Json]:
    try:
        manifest = json.loads(plan[_MANIFEST])
    except UNREADABLE:
        raise not_a_run(path) from None
    if not isinstance(manifest, dict):
        raise InputError(f"{path / _MANIFEST}: must be an object")
    require_format(manifest.get("format"), FORMAT, path / _MANIFEST)
    return manifest


def shard_of(plan: Mapping[str, bytes]) -> str:
    """Return which shard a run is, as ``K/N``; empty if it is none or ``run.json`` is unreadable.

    Args:
        plan: content of the files of the plan, by name.
    """
    try:
        return str(as_object(as_object(json.loads(plan[_MANIFEST]))["config"]).get("shard") or "")
    except UNREADABLE:
        return ""


def is_experiment(folder: Path) -> bool:
    """Return whether a folder holds the plan of an experiment."""
    return (folder / PLAN_FILE).is_file()


def folder_to_resume(run: Path) -> Path:
    """Return the folder of the experiment that a run belongs to; without one, the run folder."""
    experiment = run.parent.parent
    return experiment if is_experiment(experiment) else run
