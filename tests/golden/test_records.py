"""Files of recorded episodes are read line by line; an error names the line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fumehood.core.errors import InputError, SpecError
from tests.golden import golden_sample
from tests.golden.recorded import RecordedEpisode, read_recorded
from tests.golden.replay import difference, play_in_core

SAMPLE = golden_sample("toolmisusebench/scripted.sample.jsonl")


def written(folder: Path, *lines: str) -> Path:
    path = folder / "episodes.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_blank_lines_are_ignored(tmp_path: Path) -> None:
    line = SAMPLE.read_text().splitlines()[0]
    assert [episode.name for episode in read_recorded(written(tmp_path, "", line, " ", ""))] == [
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
def test_a_line_that_is_no_recorded_episode_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(InputError, match=r"episodes\.jsonl:2 is no recorded episode"):
        list(read_recorded(written(tmp_path, "", line)))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        list(read_recorded(tmp_path / "none.jsonl"))
    (tmp_path / "odd.jsonl").write_bytes(b"\xff\n")
    with pytest.raises(InputError, match="cannot be read"):
        list(read_recorded(tmp_path / "odd.jsonl"))


def test_an_invalid_task_differs_where_a_result_is_expected() -> None:
    good = next(read_recorded(SAMPLE))
    task = {key: value for key, value in good.task.items() if key != "budget"}
    bad = RecordedEpisode(name="e", task=task, moves=(), agent=None, expect=good.expect)
    with pytest.raises(SpecError, match=r"^budget: "):
        bad.case()
    assert difference(bad, play_in_core) == "SpecError: budget: Field required"
