"""Small signed runs, made without services or boxes."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fumehood.core.gold import Gold
from fumehood.core.json_values import canonical_json
from fumehood.core.outcome import Finished
from fumehood.core.score import Score
from fumehood.core.task import Case, Suite
from fumehood.core.trace import Chain, Record
from fumehood.records.row import EpisodeName, EpisodeRow
from fumehood.records.run_folder import RunFolder
from fumehood.records.seals import Signing
from fumehood.records.signing_key import SigningKey
from tests.parts.tasks import crud_task

TASKS = ("t1", "t2", "t3")
NAMES = tuple(EpisodeName("agent", task, 0) for task in TASKS)
KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(32)))
OTHER_KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(31) + b"\1"))
SUITE = Suite("small", tuple(Case(crud_task(name), Gold("native", ())) for name in TASKS))


def trace_of(task: str, calls: int = 3) -> list[Record]:
    """Return a sealed trace."""
    chain = Chain()
    events = [canonical_json({"kind": "call", "task": task, "number": at}) for at in range(calls)]
    records = [Record(event, chain.link(event), 1000 + at, 5) for at, event in enumerate(events)]
    seal = chain.end_record()
    return [*records, Record(seal, chain.link(seal), 2000, 0)]


def new_run(path: Path, key: SigningKey = KEY) -> RunFolder:
    """Make a run folder in which nothing has been done."""
    return RunFolder.create(path, {"run": "r1", "suite": "small"}, SUITE, Signing(key, NAMES))


def play(folder: RunFolder, name: EpisodeName, printed: bytes = b"hello\n") -> None:
    """Write down that an episode is done."""
    records = trace_of(name.task)
    trace = folder.write_trace(name, records)
    folder.write_output(name, printed, b"")
    row = EpisodeRow(
        name=name,
        seed=7,
        outcome=Finished(),
        score=Score(True),
        trace=trace,
        trace_digest=records[-1].hash,
        attempts=1,
        wall_ms=5,
        stdout_bytes=len(printed),
        stderr_bytes=0,
        refusals=0,
    )
    folder.append_rows([row])


def finished_run(path: Path, key: SigningKey = KEY) -> RunFolder:
    """Make a run folder in which everything has been done."""
    folder = new_run(path, key)
    for name in NAMES:
        play(folder, name)
    folder.seal()
    return folder
