"""Logs of Inspect: an export comes back with equal scores, and a hostile log is one clear line."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from fumehood.cli.main import fumehood
from fumehood.core.errors import InputError
from fumehood.exports import inspect_import
from fumehood.exports.inspect_import import _value, read_log
from fumehood.records.run_reader import RunReader
from tests.unit.report.runs import played

HEADER = {"status": "success", "eval": {"task": "t", "model": "m"}}


def score(*words: object) -> Result:
    return CliRunner().invoke(fumehood, ["score", *map(str, words)])


def sample(value: object = "C", **fields: object) -> dict[str, Any]:
    return {"id": "a", "epoch": 1, "scores": {"s": {"value": value}}, "events": [{}], **fields}


def log(folder: Path, *samples: object, **header: object) -> Path:
    path = folder / "log.json"
    path.write_text(json.dumps({**HEADER, **header, "samples": samples}))
    return path


def archive(folder: Path, members: Mapping[str, bytes]) -> Path:
    content = io.BytesIO()
    with ZipFile(content, "w", ZIP_DEFLATED) as written:
        for name, data in members.items():
            written.writestr(name, data)
    path = folder / "log.eval"
    path.write_bytes(content.getvalue())
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunReader:
    agents = ("policy_aware", "instruction_parser")
    return played(tmp_path_factory.mktemp("import") / "run", *agents, tasks=40)


@pytest.mark.slow
def test_an_exported_run_has_the_same_scores_where_both_define_them(
    run: RunReader, tmp_path: Path
) -> None:
    CliRunner().invoke(
        fumehood, ["export", str(run.path), "--to", "inspect", "--out", str(tmp_path)]
    )
    of_run = {
        each["agent"]: each for each in json.loads(score(run.path, "--json").stdout)["agents"]
    }
    for agent, summary in of_run.items():
        said = json.loads(score("--from", tmp_path / f"{agent}.eval", "--json").stdout)
        (read_back,) = said["agents"]
        assert said["verification"][0]["verified"] is False
        for name, value in read_back["metrics"].items():
            assert value in (None, summary["metrics"][name]), name
        for name in read_back.keys() - {"metrics"}:
            assert read_back[name] in (None, summary[name]), name
        computed = {name for name, value in read_back["metrics"].items() if value is not None}
        assert computed >= {"task_success", "invalid_call_rate", "catastrophic_failure", "s_area"}
        assert computed >= {"recovery_success", "time_to_recovery"}
        assert read_back["faulted"] == summary["faulted"] > 0
        assert read_back["outcomes"] == summary["outcomes"]
        assert "faulted" in score("--from", tmp_path / f"{agent}.eval").stdout


def test_the_text_marks_everything_as_unsigned_and_names_what_is_missing(tmp_path: Path) -> None:
    done = score("--from", log(tmp_path, sample(), sample(0.5, id="b", error={"message": "x"})))
    assert done.exit_code == 0
    assert "UNSIGNED" in done.stdout
    assert "errors of samples count as infra" in done.stdout
    assert "not computed: noop, oracle" in done.stdout
    assert "not computed: recovered, faulted" in done.stdout


@pytest.mark.parametrize(
    ("value", "success", "completion"),
    [
        ("C", True, None),
        ("I", False, None),
        ("N", False, None),
        ("P", False, 0.5),
        (True, True, None),
        (0.25, False, 0.25),
        ("no", False, None),
        ("free text", None, None),
        (float("nan"), None, None),
        ({"a": 1}, None, None),
        (10**400, None, None),
    ],
)
def test_values_of_scores(
    tmp_path: Path, value: object, success: bool | None, completion: float | None
) -> None:
    (result,) = read_log(log(tmp_path, sample(value))).results
    assert (result.success, result.metric("task_completion")) == (success, completion)


@pytest.mark.slow
@given(st.recursive(st.none() | st.floats() | st.text() | st.integers(), st.lists))
def test_any_value_is_a_finite_number_or_none(value: Any) -> None:
    number = _value(value)
    assert number is None or abs(number) < 1e300


def test_the_scorer_can_be_chosen(tmp_path: Path) -> None:
    both = {"strict": {"value": "I"}, "lenient": {"value": "C"}}
    path = log(tmp_path, sample(scores=both))
    assert json.loads(score("--from", path, "--json").stdout)["agents"][0]["successes"] == 0
    chosen = json.loads(score("--from", path, "--scorer", "lenient", "--json").stdout)
    assert (chosen["agents"][0]["successes"], chosen["scorers"]) == (1, ["strict", "lenient"])
    assert "strict" in chosen["notes"][0]


def test_names_with_control_characters_are_escaped(tmp_path: Path) -> None:
    evil = "a\x1b[2Jb\n"
    header = {"eval": {"task": evil, "model": evil, "solver": evil}}
    done = score("--from", log(tmp_path, sample(id=evil), **header))
    assert "\x1b" not in done.stdout
    assert "a\\x1b" in done.stdout


HEADER_BYTES = json.dumps(HEADER).encode()


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"x": b""}, "_journal/start.json"),
        ({"header.json": b"{"}, "Expecting"),
        ({"header.json": b"[" * 100_000}, "recursion"),
        ({"header.json": b"{}"}, "no object `eval`"),
        ({"header.json": HEADER_BYTES, "samples/a.json": b" " * 3_000_000}, "longer than"),
        ({"header.json": HEADER_BYTES, "samples/a/sample.json": b"{}"}, "several members"),
        ({"header.json": HEADER_BYTES, "samples/a.json": b"[]"}, "has no name"),
        ({"header.json": HEADER_BYTES, "samples/a.json": b'{"id": 1, "epoch": -1}'}, "epoch"),
    ],
)
def test_a_hostile_archive_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, members: dict[str, bytes], reason: str
) -> None:
    monkeypatch.setattr(inspect_import, "DOCUMENT_BYTES_MAX", 1_000_000)
    with pytest.raises(InputError, match=reason) as refused:
        read_log(archive(tmp_path, members))
    assert "\n" not in str(refused.value)


@pytest.mark.slow
@given(at=st.integers(0, 400), byte=st.integers(0, 255))
def test_a_damaged_archive_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, at: int, byte: int
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    path = archive(folder, {"header.json": HEADER_BYTES, "samples/a.json": b'{"id": 1}'})
    content = bytearray(path.read_bytes())
    content[at % len(content)] = byte
    path.write_bytes(content)
    with suppress(InputError):
        read_log(path)


def test_two_samples_with_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="occurs twice"):
        read_log(log(tmp_path, sample(), sample()))


@pytest.mark.parametrize(
    "words", [["--from", "x", "y"], ["--from", "x", "--judge", "z"], ["--scorer", "z"], []]
)
def test_options_without_effect_are_refused(words: list[str]) -> None:
    assert isinstance(score(*words).exception, InputError)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(log(tmp_path, sample()))
    with pytest.raises(InputError, match="cannot be read"):
        read_log(link)


@pytest.mark.parametrize("value", [3, 10, -1, 1.5, "7"])
def test_a_score_on_another_scale_is_no_success(value: float | str, tmp_path: Path) -> None:
    read = read_log(log(tmp_path, sample(value)))
    assert read.results[0].row.score.success is None
    assert "samples without a number from 0 to 1 as their score" in read.notes[0]
