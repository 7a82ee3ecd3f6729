"""Made-up questions in the published formats of BrowseComp and BrowseComp-Plus."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from fumehood.core.encryption import encrypt
from fumehood_snapshots.build.options import BuildOptions
from fumehood_snapshots.build.pipeline import build_snapshot
from fumehood_snapshots.sources.jsonl import JsonLines

CANARY = "made-up:canary:1234"
QUESTIONS = (
    (
        "Which zebrafinch painter was born in the year the harbour of Quillmouth froze?",
        "Ottoline Brask",
    ),
    (
        "How many steps has the spiral stair of the observatory at Farrowdale?",
        "two hundred and nine",
    ),
)
CORPUS = (
    ("101", "Ottoline Brask painted zebrafinches and was born in the winter of 1709."),
    ("102", "The harbour of Quillmouth froze in the winter of 1709."),
    ("103", "The observatory at Farrowdale has a spiral stair of two hundred and nine steps."),
    *(
        (str(number), f"Nothing of note was ever seen at milestone {number}.")
        for number in range(104, 111)
    ),
)
EVIDENCE = "0 Q0 101 1\n0 Q0 102 1\n1 Q0 103 1\n"
GOLDS = "0 Q0 101 1\n1 Q0 103 1\n"


def write_original(path: Path) -> Path:
    """Write the questions as BrowseComp's file."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["problem", "answer", "problem_topic", "canary"])
        for question, answer in QUESTIONS:
            rows.writerow([encrypt(question, CANARY), encrypt(answer, CANARY), "art", CANARY])
    return path


def write_plus(folder: Path, *, encrypted: bool = True) -> Path:
    """Write queries, judgements and corpus, and build the snapshot."""
    folder.mkdir()
    lines = [
        {
            "query_id": str(number),
            "query": encrypt(question, CANARY) if encrypted else question,
            "answer": encrypt(answer, CANARY) if encrypted else answer,
        }
        for number, (question, answer) in enumerate(QUESTIONS)
    ]
    (folder / "queries.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )
    (folder / "canary.txt").write_text(CANARY + "\n", encoding="utf-8")
    (folder / "qrel_evidence.txt").write_text(EVIDENCE, encoding="ascii")
    (folder / "qrel_golds.txt").write_text(GOLDS, encoding="ascii")
    corpus = folder / "corpus.jsonl"
    corpus.write_text(
        "".join(json.dumps({"docid": name, "text": text}) + "\n" for name, text in CORPUS)
    )
    build_snapshot([JsonLines(corpus, {"id": "docid"})], folder / "snapshot", BuildOptions())
    corpus.unlink()
    return folder
