"""Verifying a manipulated run folder terminates, follows no link and names each unknown file."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from hashlib import sha256
from pathlib import Path

import pytest

from fumehood.core.errors import InputError
from fumehood.core.json_values import canonical_json
from fumehood.core.trace import ModelExchange
from fumehood.records.cassette import Cassette
from fumehood.records.run_reader import Accept, open_run
from fumehood.records.seals import FIRST, SealedFile, sealed_line
from fumehood.records.trust import Trust
from fumehood.records.verify import verify
from tests.parts.sealed_runs import KEY, NAMES, finished_run, new_run, play

TRACE = "traces/agent/t2.0.jsonl"


def damage_of(run: Path) -> list[str]:
    return [str(damage) for damage in verify(run).damage]


def link_trace(run: Path) -> str:
    (run / TRACE).rename(run.parent / "elsewhere")
    (run / TRACE).symlink_to(run.parent / "elsewhere")
    return f"{TRACE}: not a regular file"


def link_trace_to_itself(run: Path) -> str:
    (run / TRACE).unlink()
    (run / TRACE).symlink_to("t2.0.jsonl")
    return f"{TRACE}: a symbolic link, which runs never create"


def make_the_trace_a_pipe(run: Path) -> str:
    (run / TRACE).unlink()
    os.mkfifo(run / TRACE)
    return f"{TRACE}: not a regular file"


def make_the_traces_a_file(run: Path) -> str:
    shutil.rmtree(run / "traces/agent")
    (run / "traces/agent").write_text("")
    return "traces/agent: belongs to no episode"


def link_more_traces(run: Path) -> str:
    (run / "traces/more").symlink_to("/dev")
    return "traces/more: a symbolic link, which runs never create"


def make_the_rows_a_folder(run: Path) -> str:
    (run / "episodes.jsonl").unlink()
    (run / "episodes.jsonl").mkdir()
    return "episodes.jsonl: not part of a run"


def nest_too_deeply(run: Path) -> str:
    with (run / "episodes.jsonl").open("a") as rows:
        rows.write("[" * 200_000 + "\n")
    return "episodes.jsonl:4: not a sealed row"


def count_too_far(run: Path) -> str:
    rows = run / "episodes.jsonl"
    rows.write_text(rows.read_text().replace('"attempts":1', '"attempts":1e999', 1))
    return "episodes.jsonl:1: not a sealed row"


def nest_the_seal_too_deeply(run: Path) -> str:
    (run / "seal.json").write_text("[" * 200_000)
    return "seal.json: missing or changed"


def nest_the_trace_too_deeply(run: Path) -> str:
    (run / TRACE).write_text("[" * 200_000 + "\n")
    return f"{TRACE}: cannot be read"


def add_a_file(run: Path) -> str:
    (run / "report.json").write_text("{}")
    return "report.json: not part of a run"


def add_a_folder(run: Path) -> str:
    (run / "more").mkdir()
    return "more: not part of a run"


def link_the_rows(run: Path) -> str:
    (run / "episodes.jsonl").rename(run.parent / "rows")
    (run / "episodes.jsonl").symlink_to(run.parent / "rows")
    return "episodes.jsonl: a symbolic link, which runs never create"


def add_a_cassette(run: Path) -> str:
    Cassette(run / "cassette").write("agent/t9/0", ())
    (added,) = (run / "cassette/episodes").iterdir()
    return f"cassette/episodes/{added.name}: belongs to no episode"


def add_a_body(run: Path) -> str:
    (run / "cassette/bodies").mkdir(parents=True)
    (run / "cassette/bodies" / ("0" * 64)).write_text("unknown")
    return f"cassette/bodies/{'0' * 64}: its content does not match its name"


def add_an_unfinished_body(run: Path) -> str:
    (run / "cassette/bodies").mkdir(parents=True)
    (run / "cassette/bodies/x.partial").write_text("unknown")
    return "cassette/bodies/x.partial: its content does not match its name"


def add_a_body_of_no_exchange(run: Path) -> str:
    (run / "judge/bodies").mkdir(parents=True)
    name = sha256(b"more").hexdigest()
    (run / "judge/bodies" / name).write_bytes(b"more")
    return f"judge/bodies/{name}: belongs to no exchange"


def add_an_empty_folder(run: Path) -> str:
    (run / "traces/agent/more").mkdir()
    return "traces/agent/more: belongs to no episode"


def spell_the_signature_in_capitals(run: Path) -> str:
    seal = run / "seal.json"
    value = json.loads(seal.read_text())
    value["signature"] = value["signature"].upper()
    seal.write_text(canonical_json(value) + "\n")
    return "seal.json: missing or changed"


def put_a_blank_into_the_signature(run: Path) -> str:
    seal = run / "seal.json"
    value = json.loads(seal.read_text())
    value["signature"] = f"{value['signature'][:2]} {value['signature'][2:]}"
    seal.write_text(canonical_json(value) + "\n")
    return "seal.json: missing or changed"


@pytest.mark.parametrize(
    "tamper",
    [
        add_an_unfinished_body,
        add_a_body_of_no_exchange,
        add_an_empty_folder,
        spell_the_signature_in_capitals,
        put_a_blank_into_the_signature,
        link_trace,
        link_trace_to_itself,
        make_the_trace_a_pipe,
        make_the_traces_a_file,
        link_more_traces,
        make_the_rows_a_folder,
        nest_too_deeply,
        count_too_far,
        nest_the_seal_too_deeply,
        nest_the_trace_too_deeply,
        add_a_file,
        add_a_folder,
        link_the_rows,
        add_a_cassette,
        add_a_body,
    ],
)
def test_each_manipulation_is_named(tamper: Callable[[Path], str], tmp_path: Path) -> None:
    run = finished_run(tmp_path / "run").path
    expected = tamper(run)
    assert expected in damage_of(run)


@pytest.mark.parametrize("path", ["/dev/zero", "../../outside", "traces/agent/t1.0.jsonl"])
def test_a_row_that_seals_foreign_files_is_named(path: str, tmp_path: Path) -> None:
    folder = new_run(tmp_path / "run")
    play(folder, NAMES[1])
    value = json.loads((folder.path / "episodes.jsonl").read_text())
    del value["seal"]
    line = sealed_line(
        value, KEY, run="r1", after=FIRST, records=1, files=[SealedFile(path, "0" * 64)]
    )
    (folder.path / "episodes.jsonl").write_bytes(line)
    assert f"agent/t2/0: its seal names a file of another episode: {path}" in damage_of(folder.path)


def test_model_exchanges_are_sealed_with_the_row(tmp_path: Path) -> None:
    folder = new_run(tmp_path / "run")
    for name in NAMES:
        Cassette(folder.path / "cassette").write(name.identifier, ())
        play(folder, name)
    folder.seal()
    assert damage_of(folder.path) == []
    (folder.path / NAMES[0].cassette_path).write_text("other\n")
    (folder.path / NAMES[1].cassette_path).unlink()
    where = [NAMES[0].cassette_path, NAMES[1].cassette_path]
    assert damage_of(folder.path) == [f"{where[0]}: edited", f"{where[1]}: missing"]


def test_judge_exchanges_are_sealed_with_the_row(tmp_path: Path) -> None:
    folder = new_run(tmp_path / "run")
    for name in NAMES:
        Cassette(folder.path / "judge").write(name.identifier, ())
        play(folder, name)
    folder.seal()
    assert damage_of(folder.path) == []
    (folder.path / NAMES[0].judge_path).write_text("other\n")
    (folder.path / NAMES[1].judge_path).unlink()
    (folder.path / "judge" / "bodies" / "answer").write_text("yes")
    assert damage_of(folder.path) == [
        f"{NAMES[0].judge_path}: edited",
        f"{NAMES[1].judge_path}: missing",
        "judge/bodies/answer: its content does not match its name",
    ]


def test_a_report_in_a_run_folder_is_ignored(tmp_path: Path) -> None:
    run = finished_run(tmp_path / "run").path
    (run / "report").mkdir()
    (run / "report/report.html").write_text("")
    assert damage_of(run) == []


@pytest.mark.parametrize("finished", [True, False])
def test_a_removed_body_is_named(tmp_path: Path, finished: bool) -> None:
    folder = new_run(tmp_path / "run")
    exchange = ModelExchange(
        seat="judge",
        key="key",
        occurrence=1,
        request=b"asks",
        status=200,
        content_type="",
        response=b"yes",
    )
    Cassette(folder.path / "judge").write(NAMES[0].identifier, [exchange])
    for name in NAMES if finished else NAMES[:1]:
        play(folder, name)
    folder.seal()
    accepted = Accept.RESUMABLE
    trust = Trust(KEY.public, {})
    open_run(folder.path, trust, accepted)
    body = f"judge/bodies/{sha256(b'yes').hexdigest()}"
    (folder.path / body).unlink()
    assert f"{body}: missing" in damage_of(folder.path)
    with pytest.raises(InputError, match="does not verify") if finished else nullcontext():
        open_run(folder.path, trust, accepted)
    with pytest.raises(InputError, match="does not verify"):
        open_run(folder.path, trust)
