"""Files of vectors are read line by line, and a line that is none is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fumehood.core.errors import InputError, SpecError
from fumehood.vectors.record import Vector, read_vectors
from fumehood.vectors.replay import check
from fumehood.vectors.via_core import ViaCore
from tests.golden import golden_sample

SAMPLE = golden_sample("toolmisusebench/scripted.sample.jsonl")


def written(folder: Path, *lines: str) -> Path:
    path = folder / "vectors.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_blank_lines_are_nothing(tmp_path: Path) -> None:
    line = SAMPLE.read_text().splitlines()[0]
    assert [vector.vector_id for vector in read_vectors(written(tmp_path, "", line, " ", ""))] == [
        json.loads(line)["id"]
    ]


@pytest.mark.parametrize(
    "line",
    [
        *(
            "{",
            "{}",
            "1",
            "[]",
            '{"id":"x"}',
            '{"id":"x","task":{}}',
            '{"id":"x","task":{},"expect":1}',
        ),
        *('{"id":"x","task":{},"actions":1}', '{"id":"x","task":{},"actions":[1]}'),
    ],
)
def test_a_line_that_is_no_vector_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(InputError, match=r"vectors\.jsonl:2 is not a vector"):
        list(read_vectors(written(tmp_path, "", line)))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        list(read_vectors(tmp_path / "none.jsonl"))
    (tmp_path / "odd.jsonl").write_bytes(b"\xff\n")
    with pytest.raises(InputError, match="cannot be read"):
        list(read_vectors(tmp_path / "odd.jsonl"))


def test_a_task_that_is_none_is_a_difference_where_something_was_expected() -> None:
    good = next(read_vectors(SAMPLE))
    task = {key: value for key, value in good.task.items() if key != "budget"}
    bad = Vector(vector_id="v", task=task, moves=(), agent=None, expect=good.expect)
    with pytest.raises(SpecError, match=r"^budget: "):
        bad.case()
    assert check(bad, ViaCore()).difference == "SpecError: budget: Field required"
