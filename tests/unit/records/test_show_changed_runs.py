"""fumehood show warns about changed rows and does not show changed traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fumehood.cli.show import show
from fumehood.core.errors import InputError
from tests.parts.sealed_runs import NAMES, finished_run, new_run, play, trace_of

EPISODE = "agent/t2/0"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return finished_run(tmp_path / "run").path


def shown(run: Path, *words: str) -> Result:
    return CliRunner().invoke(show, [str(run), *words, "--json"], standalone_mode=False)


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_an_unchanged_run_is_shown_without_a_warning(run: Path) -> None:
    result = shown(run, EPISODE)
    assert result.stderr == ""
    assert len(json.loads(result.stdout)["events"]) == len(trace_of("t2"))


def test_an_unfinished_run_is_shown_without_a_warning(tmp_path: Path) -> None:
    folder = new_run(tmp_path / "run")
    play(folder, NAMES[1])
    assert shown(folder.path, EPISODE).stderr == ""


@pytest.mark.parametrize("words", [(), (EPISODE,)])
def test_edited_rows_are_shown_with_a_warning(words: tuple[str, ...], run: Path) -> None:
    change(run / "episodes.jsonl", '"success":true', '"success":false')
    (line,) = shown(run, *words).stderr.splitlines()
    assert "DO NOT TRUST THIS: episodes.jsonl:1: the row of agent/t1/0 was edited" in line
    assert line.endswith(f"see: fumehood verify {run}")


def edit_event(run: Path) -> None:
    change(run / "traces/agent/t2.0.jsonl", '"number":1', '"number":7')


def take_the_trace_of_another(run: Path) -> None:
    (run / "traces/agent/t2.0.jsonl").write_bytes((run / "traces/agent/t1.0.jsonl").read_bytes())


@pytest.mark.parametrize("tamper", [edit_event, take_the_trace_of_another])
def test_a_changed_trace_is_not_shown(tamper: object, run: Path) -> None:
    assert callable(tamper)
    tamper(run)
    result = shown(run, EPISODE)
    assert isinstance(result.exception, InputError)
    assert f"fumehood verify {run}" in str(result.exception)
    assert result.stdout == ""
