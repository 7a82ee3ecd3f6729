"""BrowseComp-Plus: a folder with queries, judgements, and the snapshot that was built of its corpus.

::

    queries.jsonl       query_id, query, answer; each line with its canary, or one for all in canary.txt
    qrel_evidence.txt   documents that lead to the answer, in TREC's format
    qrel_golds.txt      documents that hold it
    snapshot/           fumehood snapshot build snapshot --jsonl corpus.jsonl --key id=docid

Queries are enciphered as published. Lines that were deciphered before are enciphered again as they are read,
with the canary, or with one of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fumehood.benchmarks.browsecomp.argument import read_argument
from fumehood.benchmarks.browsecomp.task import Question, case_of
from fumehood.benchmarks.questions.suite import snapshot_name
from fumehood.benchmarks.reading import Placed, Problem, Unreadable, read_records
from fumehood.core.encryption import decipher, encipher
from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.task import About, Suite

QUERIES = "queries.jsonl"
CANARY = "canary.txt"
OUR_CANARY = "fumehood: questions of a benchmark, not to be trained on"
BUILD = "fumehood snapshot build {folder} --jsonl corpus.jsonl --key id=docid"

ABOUT = About(
    licence="none is stated (texttron/BrowseComp-Plus)",
    criterion="a judge says whether the answer is the right one; without a judge there is no verdict",
    judged="the submitted answer; documents that were seen and cited are measured beside it",
)

Judgements = Mapping[str, Mapping[str, int]]


class BrowseCompPlus:
    """Argument: the folder, and if wanted ``snapshot=FOLDER`` and ``judge=NAME``, parted by colons."""

    def load(self, argument: str) -> Suite:
        """Return the questions with what is relevant for each."""
        told = read_argument("browsecomp-plus", argument)
        snapshot = told.snapshot or told.path / "snapshot"
        named = snapshot_name(snapshot, BUILD.format(folder=snapshot))
        evidence, golds = (
            _judgements(told.path / f"qrel_{kind}.txt") for kind in ("evidence", "golds")
        )
        canary = _canary(told.path)
        cases = tuple(
            case_of(_question(record, canary, evidence, golds), named, told.judge)
            for record in read_records(told.path / QUERIES)
        )
        return Suite("browsecomp-plus", cases, snapshot, ABOUT)

    def recognises(self, record: JsonObject) -> bool:
        """Recognise nothing: a folder of this benchmark is named by it."""
        return False


def _question(
    record: Placed[JsonObject], common: str | None, evidence: Judgements, golds: Judgements
) -> Question:
    match record.value:
        case {"query_id": str() | int() as number, "query": str(query), "answer": str(answer)}:
            identity = str(number)
        case _:
            why = "must have query_id, query and answer"
            raise Unreadable(record.place, Problem.INVALID_RECORD, why)
    own = record.value.get("canary")
    canary = own if isinstance(own, str) else common
    if canary is None or not _is_enciphered(query, canary):
        canary = canary or OUR_CANARY
        query, answer = encipher(query, canary), encipher(answer, canary)
    elif not _is_enciphered(answer, canary):
        why = "its query is enciphered with the canary, but its answer is not"
        raise Unreadable(record.place, Problem.INVALID_RECORD, why)
    seen, held = evidence.get(identity, {}), golds.get(identity, {})
    return Question(identity, canary, query, answer, seen, held)


def _is_enciphered(text: str, canary: str) -> bool:
    try:
        decipher(text, canary)
    except ValueError:
        return False
    return True


def _canary(folder: Path) -> str | None:
    path = folder / CANARY
    return path.read_text(encoding="utf-8").strip() if path.is_file() else None


def _judgements(path: Path) -> Judgements:
    if not path.is_file():
        return {}
    from fumehood_snapshots.errors import SnapshotInputError
    from fumehood_snapshots.metrics.judgements import read_qrels

    try:
        return read_qrels(path)
    except SnapshotInputError as error:
        raise InputError(str(error)) from None
