"""Runs that commands read together have different labels."""

from __future__ import annotations

from pathlib import Path

import pytest

from fumehood.cli.reading import runs_of, unique_labels


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
