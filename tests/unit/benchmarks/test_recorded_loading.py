"""Lenient reading equals the reference on recorded folders; strict reading refuses more."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from fumehood.benchmarks.shared.reading import Place, Placed, Unreadable
from fumehood.benchmarks.shared.records import validated
from fumehood.benchmarks.toolmisuse.records import TaskRecord
from fumehood.benchmarks.toolmisuse.tasks import read_split, read_split_as_reference
from tests.golden import golden_file, golden_sample


def test_the_sampled_records_are_read_as_recorded() -> None:
    assert _differing_records(golden_sample("toolmisusebench/loader/records.sample.jsonl")) == []


def test_all_recorded_records_are_read_as_recorded() -> None:
    path = golden_file("toolmisusebench/loader/records.jsonl")
    assert len(path.read_text().splitlines()) == 206
    assert _differing_records(path) == []


def test_the_sampled_folders_are_read_as_recorded() -> None:
    assert _differing_folders(golden_sample("toolmisusebench/loader/cases.sample.jsonl")) == []


def test_all_recorded_folders_are_read_as_recorded() -> None:
    path = golden_file("toolmisusebench/loader/cases.jsonl")
    assert len(path.read_text().splitlines()) == 62
    assert _differing_folders(path) == []


def test_strict_reading_refuses_everything_that_the_reference_refuses() -> None:
    path = golden_file("toolmisusebench/loader/cases.jsonl")
    for case, split, expected in _folders(path):
        # One file in place of a folder is our own extension.
        if "rejected" in expected and case["id"] != "l.root_is_a_file":
            with pytest.raises(Unreadable):
                read_split(path.parent / case["dir"], split)


@pytest.mark.parametrize(
    ("folder", "split", "line"),
    [
        (
            "duplicate_ids",
            "dev",
            "duplicate_ids/dev.jsonl:2: task_id: 'same' is already used at ",
        ),
        (
            "stray_manifest_flat",
            "dev",
            "stray_manifest_flat/manifest.json: is not a task record; "
            "move the file out of the folder",
        ),
        (
            "quirk_nan_literal",
            "dev",
            "quirk_nan_literal/dev.jsonl:1: is not JSON: NaN is not a JSON number",
        ),
        ("jsonl_bom", "dev", "jsonl_bom/dev.jsonl:1: is not JSON: Unexpected UTF-8 BOM"),
        (
            "record_unknown_budget_key",
            "dev",
            "record_unknown_budget_key/dev.jsonl:2: budget.max_tokens: is not a known key; ",
        ),
        ("duplicate_ids", "tset", "duplicate_ids/dev.jsonl:2: task_id"),
        ("split_dirs", "tset", "split_dirs: contains no .jsonl or .json file"),
    ],
)
def test_strict_reading_reports_location_and_reason(folder: str, split: str, line: str) -> None:
    root = golden_sample("toolmisusebench/loader/cases") / folder
    with pytest.raises(Unreadable) as refusal:
        read_split(root, split)
    assert line in str(refusal.value)
    assert "\n" not in str(refusal.value)


def _differing_records(path: Path) -> list[str]:
    return [
        vector["id"]
        for vector in _vectors(path)
        if _read(vector["record"], path) != _recorded(vector)
    ]


def _read(record: Any, path: Path) -> Any:
    try:
        read = validated(Placed(record, Place(path, 1)), TaskRecord).value
    except Unreadable as refusal:
        return sorted(str(list(error.location)) for error in refusal.errors)
    # As text, because true and 1 and 1.0 are equal to Python.
    return json.dumps(read.model_dump())


def _recorded(vector: Mapping[str, Any]) -> Any:
    if vector["valid"]:
        return json.dumps(vector["normalised"])
    return sorted(str(error["loc"]) for error in vector["errors"])


def _differing_folders(path: Path) -> list[str]:
    return [
        f"{case['id']} {split}"
        for case, split, expected in _folders(path)
        if _load(path.parent / case["dir"], split) != _comparable(expected)
    ]


def _folders(path: Path) -> Iterator[tuple[Mapping[str, Any], str, Mapping[str, Any]]]:
    for case in _vectors(path):
        for split, expected in case["expect"].items():
            yield case, split, expected


def _load(root: Path, split: str) -> Mapping[str, Any]:
    try:
        records = read_split_as_reference(root, split)
    except Unreadable as refusal:
        locations = sorted(str(list(error.location)) for error in refusal.errors)
        return {"rejected": refusal.problem.value, "errors": locations}
    return {"task_ids": [record.value.task_id for record in records]}


def _comparable(expected: Mapping[str, Any]) -> Mapping[str, Any]:
    if "task_ids" in expected:
        return expected
    errors = sorted(str(error["loc"]) for error in expected.get("errors", ()))
    return {"rejected": expected["rejected"], "errors": errors}


def _vectors(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
