"""Tables fit terminals, and colours appear only there."""

from __future__ import annotations

import os
import pty
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from fumehood.cli.output import _fitting, _print_part, _wrapped, print_tables
from fumehood.cli.progress import timing
from fumehood.cli.run_summary import agent_table
from fumehood.report.findings import Versus
from fumehood.report.runs import join_run, subjects_of
from fumehood.report.sections.comparisons import difference_table, flipped_table
from fumehood.report.statistics.pairs import compare
from fumehood.report.summary import summarize
from fumehood.report.text_table import TextTable
from tests.parts.commands import fumehood, run_fumehood
from tests.unit.cli.test_terminal_text import printed_on_a_terminal
from tests.unit.report.runs import played

WIDTHS = (80, 100, 160)


def rendered(table: TextTable, width: int) -> list[str]:
    console = Console(width=width, file=StringIO())
    for part in _fitting(table, width):
        _print_part(part, console)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", WIDTHS)
def test_the_table_of_a_run_has_one_line_for_each_agent(width: int, tmp_path: Path) -> None:
    run = played(tmp_path / "run", "noop", "instruction_parser_no_recovery", tasks=3)
    table = agent_table(summarize(run.rows(), ["noop", "instruction_parser_no_recovery"]))
    lines = rendered(table, width)
    parts = len(_fitting(table, width))
    assert parts == {80: 3, 100: 2, 160: 1}[width]
    assert len([line for line in lines if line.startswith("noop")]) == parts
    assert all(cell_len(line.rstrip()) <= width for line in lines)


def test_a_table_without_wrapped_cells_has_the_layout_of_the_library() -> None:
    rows = [("日本", "1", "ok ✓"), ("", "23,456", ""), ("e\u0301", "–", "\x1b[31mred")]
    table = TextTable("", ("agent", "calls", "notes"), rows, trailing_text=1)
    console = Console(width=200, file=StringIO())
    console.print(_wrapped(table))
    assert isinstance(console.file, StringIO)
    assert rendered(table, 200) == console.file.getvalue().splitlines()


CELLS = st.text(st.characters(categories=("L", "N", "P", "Zs")), max_size=90)


@pytest.mark.slow
@given(st.data(), st.integers(2, 9), st.sampled_from(WIDTHS))
def test_every_table_fits_with_all_its_cells(data: st.DataObject, columns: int, width: int) -> None:
    row = st.tuples(*(CELLS for _ in range(columns)))
    names = data.draw(st.integers(1, columns))
    table = TextTable("", data.draw(row), data.draw(st.lists(row, min_size=1, max_size=3)), names)
    parts = _fitting(table, width)
    for part in parts:
        assert part.header[:names] == table.header[:names]
    shown = [title for part in parts for title in part.header[names:]]
    assert not parts or tuple(shown) == table.header[names:]
    assert all(cell_len(line.rstrip()) <= width for line in rendered(table, width))


def test_a_cell_that_needs_many_lines_is_printed_as_a_record(
    capsys: pytest.CaptureFixture[str],
) -> None:
    long = " ".join(["word"] * 200)
    table = TextTable("", ("engine", "notes"), [("docker", long), ("", "")], names=2)
    assert len(_fitting(table, 80)) == 0
    assert len(_fitting(TextTable("", ("a", "b"), [("x", "word " * 30)], names=2), 80)) == 1
    print_tables(table)
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.strip() == "docker"
    assert second.startswith("  notes ")
    assert "word word" in second


@pytest.mark.slow
def test_marks_are_coloured_on_a_terminal_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played(tmp_path / "run", "noop", "policy_aware", tasks=1)
    monkeypatch.delenv("NO_COLOR", raising=False)
    green, red = "\x1b[32m✓\x1b[0m", "\x1b[31m✗\x1b[0m"
    coloured = printed_on_a_terminal("show", "run", folder=tmp_path, terminal_type="xterm")
    assert green in coloured
    assert red in coloured
    episode = printed_on_a_terminal("show", "run", "noop", folder=tmp_path, terminal_type="xterm")
    assert red in episode
    monkeypatch.setenv("NO_COLOR", "1")
    plain = printed_on_a_terminal("show", "run", "noop", folder=tmp_path, terminal_type="xterm")
    assert "✗" in plain
    assert "\x1b[3" not in plain
    piped = run_fumehood("show", "run", cwd=tmp_path)
    assert piped.returncode == 0
    assert "\x1b" not in piped.stdout


@pytest.mark.slow
def test_a_list_longer_than_the_terminal_is_paged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played(tmp_path / "run", "noop", tasks=40)
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho paged; exec cat\n")
    pager.chmod(0o755)
    monkeypatch.setenv("PAGER", str(pager))
    with_input = pty.openpty()
    words = ("show", "run")
    long = printed_on_a_terminal(*words, folder=tmp_path, stdin=with_input[1])
    assert long.count("paged\n") == 1
    assert long.count("finished") == 40
    short = printed_on_a_terminal(
        *words, "--task", "crud_close_relocation", folder=tmp_path, stdin=with_input[1]
    )
    assert "paged" not in short
    for descriptor in with_input:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("elapsed_s", "done", "total", "text"),
    [
        (3, 0, 10, "3 s elapsed"),
        (10, 5, 10, "10 s elapsed, 0.5 per second, 10 s left"),
        (100, 1, 100, "1:40 min elapsed, 0.01 per second, 2:45 h left"),
        (5, 10, 10, "5 s elapsed, 2 per second"),
    ],
)
def test_progress_states_elapsed_time_rate_and_time_left(
    elapsed_s: float, done: int, total: int, text: str
) -> None:
    assert timing(elapsed_s, done, total) == text


def test_a_flipped_task_is_listed_once_with_its_trials(tmp_path: Path) -> None:
    run = played(tmp_path / "run", "noop", "policy_aware", tasks=2, trials=2)
    first, second = subjects_of([join_run(run, run.rows())])
    versus = Versus(first, second, compare(first.results, second.results))
    assert "S(k): share of episodes that succeeded" in difference_table(versus).note
    table = flipped_table(versus, 9)
    assert sorted(table.rows) == [
        ("crud_close_relocation", "won", "0, 1", "clean"),
        ("crud_gold_after_silence", "won", "0, 1", "timeout"),
    ]


@pytest.mark.slow
def test_names_in_the_list_are_wrapped_between_words() -> None:
    shown = fumehood("list")
    assert all(len(line) <= 200 for line in shown.splitlines())
    assert set(shown.split()) >= {"lateral_thinking", "threatbench"}
