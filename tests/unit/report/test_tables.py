"""Data tables as CSV and Parquet: typed and escaped."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from pyarrow import parquet  # type: ignore[import-untyped]

from fumehood.report.data_table import (
    Column,
    DataTable,
    Kind,
    csv_text,
    integers,
    numbers,
    texts,
    write_csv,
    write_parquet,
)
from fumehood.report.findings import compute_findings
from fumehood.report.runs import join_run, subjects_of
from fumehood.report.sections.metrics import metric_table
from fumehood.report.sections.registry import build_sections, data_tables
from fumehood.report.sections.success import group_table
from fumehood.report.text_table import TextTable, markdown_table, markdown_text
from tests.parts.reading import sign_again, verified
from tests.unit.report.runs import findings_of, played

TABLE = DataTable(
    "one",
    (*texts("name"), *integers("calls"), *numbers("mean"), Column("success", Kind.TRUTH)),
    [("plain", 3, 0.5, True), (None, None, None, None), ('quo"te, and\nline', -1, 1e-9, False)],
)


def test_a_csv_file_has_the_values_of_the_table(tmp_path: Path) -> None:
    path = write_csv(TABLE, tmp_path)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows == [
        ["name", "calls", "mean", "success"],
        ["plain", "3", "0.5", "true"],
        ["", "", "", ""],
        ['quo"te, and\nline', "-1", "1e-09", "false"],
    ]


def test_parquet_keeps_types_and_missing_values(tmp_path: Path) -> None:
    read = parquet.read_table(write_parquet(TABLE, tmp_path))
    assert [str(kind) for kind in read.schema.types] == ["string", "int64", "double", "bool"]
    assert read.to_pylist() == [
        dict(zip(read.column_names, row, strict=True)) for row in TABLE.rows
    ]


def test_a_table_without_rows_has_its_columns(tmp_path: Path) -> None:
    empty = DataTable("none", TABLE.columns, [])
    assert csv_text(empty) == "name,calls,mean,success\n"
    assert parquet.read_table(write_parquet(empty, tmp_path)).num_rows == 0


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1"])
def test_text_that_a_spreadsheet_would_execute_is_escaped(text: str, tmp_path: Path) -> None:
    table = DataTable("texts", texts("text"), [(text,)])
    (row,) = list(csv.reader(csv_text(table).splitlines()))[1:]
    assert row == [f"'{text}"]
    assert parquet.read_table(write_parquet(table, tmp_path)).to_pylist() == [{"text": text}]


def test_unpaired_surrogates_are_escaped(tmp_path: Path) -> None:
    table = DataTable("texts", texts("text"), [("\ud800 \x1b[1m",)])
    assert "\\ud800 \\x1b[1m" in csv_text(table)
    assert parquet.read_table(write_parquet(table, tmp_path)).num_rows == 1


def test_markdown_has_one_line_per_row() -> None:
    table = TextTable("t|t", ("a", "b"), [("x|y\n<b>", "[1](2) `c` *d*")], note="<i>")
    lines = markdown_table(table).splitlines()
    assert lines[0] == "### t\\|t"
    assert lines[4] == "| x\\|y \\<b\\> | \\[1\\](2) \\`c\\` \\*d\\* |"
    assert lines[-1] == "\\<i\\>"
    assert markdown_text("$x$ ~y~ a_b") == "\\$x\\$ \\~y\\~ a\\_b"


@pytest.mark.slow
def test_csv_and_parquet_have_equal_rows(tmp_path: Path) -> None:
    findings = findings_of(played(tmp_path / "run", "policy_aware", "noop"))
    sections = build_sections(findings)
    for table in data_tables(sections):
        with write_csv(table, tmp_path).open(encoding="utf-8", newline="") as file:
            written = list(csv.reader(file))
        read = parquet.read_table(write_parquet(table, tmp_path))
        assert len(written) - 1 == read.num_rows == len(table.rows)
        assert written[0] == read.column_names
    assert sections["trials"].is_empty


def test_missing_episodes_are_shown_next_to_the_mean(tmp_path: Path) -> None:
    folder = played(tmp_path / "run", "policy_aware")
    rows = folder.path / "episodes.jsonl"
    lost = rows.read_text().replace('"success":true', '"success":null', 1)
    rows.write_text(lost)
    edited = verified(sign_again(folder.path))
    run = join_run(edited, edited.rows())
    subjects = subjects_of([run])
    table = metric_table(compute_findings([run], subjects, subjects[0]))
    assert table.rows[0][1] == "9 of 10 (1 ungraded)"


@pytest.mark.slow
def test_success_by_domain_states_its_range_and_standard_deviation(tmp_path: Path) -> None:
    findings = findings_of(played(tmp_path / "run", "policy_aware", "noop", tasks=20))
    policy_aware, _ = findings.subjects
    first, second = (
        100 * share
        for group in policy_aware.by_domain.values()
        if (share := group.estimates["task_success"].value) is not None
    )
    deviation = abs(first - second) / 2**0.5
    assert first != second
    assert group_table(findings, "by_domain", "Domain").note == (
        "Range and standard deviation over domains, in points: "
        f"policy_aware {abs(first - second):.2f}, {deviation:.2f}; noop 0.00, 0.00."
    )
    assert not group_table(findings, "by_fault", "Fault").note.startswith("Range")
