"""Runs that commands read have different labels, and the names that the user gave them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fumehood.cli.output import beside
from fumehood.cli.reading import runs_of, unique_labels
from fumehood.records.run_folder import not_a_run


@pytest.mark.parametrize(
    ("folders", "labels"),
    [
        (["a/x", "b/y"], ["x", "y"]),
        (["a/x", "b/x"], ["x#1", "x#2"]),
        (["a/x", "b/x", "c/x#2"], ["x#1", "x#3", "x#2"]),
        (["c/x#2", "a/x", "b/x"], ["x#2", "x#3", "x#4"]),
        (["a/x", "b/x", "a/x#1", "b/x#1"], ["x#1", "x#2", "x#1#3", "x#1#4"]),
    ],
)
def test_no_two_runs_have_one_label(folders: list[str], labels: list[str]) -> None:
    given = unique_labels([Path(folder) for folder in folders])
    assert len(set(given)) == len(folders)
    assert given == labels


def test_runs_are_read_once_and_named_as_the_user_named_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert runs_of([Path("runs/a"), tmp_path / "runs/a", Path("b")]) == [Path("runs/a"), Path("b")]


def test_outputs_of_a_run_are_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run" / "inner").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "run")
    assert beside(Path("runs/a"), ".atif") == Path("runs/a.atif")
    assert beside(Path(), ".atif") == tmp_path / "run.atif"
    assert beside(Path("inner/.."), ".atif") == tmp_path / "run.atif"


@pytest.mark.parametrize("inner", ["", "experiment"])
def test_a_folder_of_runs_is_refused_with_the_name_of_a_run(tmp_path: Path, inner: str) -> None:
    run = tmp_path / inner / "runs" / "test"
    run.mkdir(parents=True)
    (run / "run.json").touch()
    assert str(not_a_run(tmp_path)).endswith(f"has 1 run folder: name one, such as {run}")
