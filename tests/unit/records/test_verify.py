"""Verifying a run folder finds and names every change."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from fumehood.cli.verify import verify as command
from fumehood.cli.verify import verify as verify_command
from fumehood.core.errors import InputError
from fumehood.core.task import Suite
from fumehood.records.run_folder import RunFolder
from fumehood.records.seals import Signing
from fumehood.records.signing_key import KEY_VARIABLE
from fumehood.records.verify import verify
from tests.parts.sealed_runs import KEY, NAMES, OTHER_KEY, SUITE, finished_run, new_run, play

TRACE = "traces/agent/t2.0.jsonl"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return finished_run(tmp_path / "run").path


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines(keepends=True)


def damage_of(run: Path) -> list[str]:
    return [str(damage) for damage in verify(run).damage]


def test_an_unchanged_run_is_sound(run: Path) -> None:
    verification = verify(run)
    assert verification.damage == ()
    assert (verification.key, verification.planned, verification.episodes) == (KEY.public, 3, 3)
    assert verify(run, KEY.public).damage == ()


def cut_trace(run: Path) -> str:
    (run / TRACE).write_text("".join(lines_of(run / TRACE)[:-1]))
    return f"{TRACE}: the end record is missing: the trace was truncated"


def cut_trace_from_its_middle(run: Path) -> str:
    lines = lines_of(run / TRACE)
    (run / TRACE).write_text("".join([*lines[:1], *lines[2:]]))
    return f"{TRACE}: the hash of record 1 does not match"


def reorder_trace(run: Path) -> str:
    first, second, *rest = lines_of(run / TRACE)
    (run / TRACE).write_text("".join([second, first, *rest]))
    return f"{TRACE}: the hash of record 0 does not match"


def edit_event(run: Path) -> str:
    (run / TRACE).write_text((run / TRACE).read_text().replace('"number":1', '"number":7'))
    return f"{TRACE}: the hash of record 1 does not match"


def edit_time(run: Path) -> str:
    (run / TRACE).write_text((run / TRACE).read_text().replace('"wall_ms":1001', '"wall_ms":1002'))
    return f"{TRACE}: edited outside the hashed fields"


def take_the_trace_of_another(run: Path) -> str:
    shutil.copy(run / "traces/agent/t1.0.jsonl", run / TRACE)
    return f"{TRACE}: another trace: it has 4 records, the sealed one has 4"


def remove_trace(run: Path) -> str:
    (run / TRACE).unlink()
    return f"{TRACE}: missing"


def edit_output(run: Path) -> str:
    (run / "output/agent/t2.0.stdout").write_text("other\n")
    return "output/agent/t2.0.stdout: edited"


def add_output(run: Path) -> str:
    (run / "output/agent/t2.0.stderr").write_text("not printed\n")
    return "output/agent/t2.0.stderr: belongs to no episode"


def add_trace(run: Path) -> str:
    shutil.copy(run / TRACE, run / "traces/agent/t9.0.jsonl")
    return "traces/agent/t9.0.jsonl: belongs to no episode"


def edit_row(run: Path) -> str:
    rows = run / "episodes.jsonl"
    first, second, third = lines_of(rows)
    rows.write_text(first + second.replace('"success":true', '"success":false') + third)
    return "episodes.jsonl:2: the row of agent/t2/0 was edited"


def cut_rows(run: Path) -> str:
    (run / "episodes.jsonl").write_text("".join(lines_of(run / "episodes.jsonl")[:-1]))
    return "agent/t3/0: missing"


def remove_row(run: Path) -> str:
    lines = lines_of(run / "episodes.jsonl")
    (run / "episodes.jsonl").write_text(lines[0] + lines[2])
    return (
        "episodes.jsonl:2: the row of agent/t3/0 does not follow the one before it: "
        "cut or reordered"
    )


def reorder_rows(run: Path) -> str:
    first, second, third = lines_of(run / "episodes.jsonl")
    (run / "episodes.jsonl").write_text(second + first + third)
    return (
        "episodes.jsonl:1: the row of agent/t2/0 does not follow the one before it: "
        "cut or reordered"
    )


def tear_row(run: Path) -> str:
    text = (run / "episodes.jsonl").read_text()
    (run / "episodes.jsonl").write_text(text[:-20])
    return "episodes.jsonl:3: a torn row"


def write_row_differently(run: Path) -> str:
    rows = run / "episodes.jsonl"
    rows.write_text(rows.read_text().replace('"attempts":1,', '"attempts": 1,', 1))
    return "episodes.jsonl:1: the row of agent/t1/0 was edited"


def add_episode(run: Path) -> str:
    added = lines_of(run / "episodes.jsonl")[0].replace("t1", "t8")
    with (run / "episodes.jsonl").open("a") as rows:
        rows.write(added)
    return "episodes.jsonl:4: the row of agent/t8/0 was edited"


def take_a_row_of_another_run(run: Path) -> str:
    other = RunFolder.create(
        run.parent / "o", {"run": "r2", "suite": "s"}, SUITE, Signing(KEY, NAMES)
    )
    play(other, NAMES[0])
    _, second, third = lines_of(run / "episodes.jsonl")
    (run / "episodes.jsonl").write_text(lines_of(other.path / "episodes.jsonl")[0] + second + third)
    return "episodes.jsonl:1: the row of agent/t1/0 was edited"


def repeat_row(run: Path) -> str:
    with (run / "episodes.jsonl").open("a") as rows:
        rows.write(lines_of(run / "episodes.jsonl")[0])
    return (
        "episodes.jsonl:4: the row of agent/t1/0 does not follow the one before it: "
        "cut or reordered"
    )


def edit_config(run: Path) -> str:
    (run / "run.json").write_text((run / "run.json").read_text().replace("small", "large"))
    return "run.json: missing or edited"


def break_config(run: Path) -> str:
    (run / "run.json").write_text("{")
    return "run.json: missing or edited"


def edit_suite(run: Path) -> str:
    (run / "suite.jsonl").write_text((run / "suite.jsonl").read_text().replace("basic", "gold"))
    return "suite.jsonl: missing or edited"


def edit_seal(run: Path) -> str:
    (run / "seal.json").write_text(
        (run / "seal.json").read_text().replace('"task":"t2"', '"task":"t7"')
    )
    return "seal.json: missing or changed"


def remove_seal(run: Path) -> str:
    (run / "seal.json").unlink()
    return "seal.json: missing or changed"


def drop_an_episode_and_its_files(run: Path) -> str:
    remove_row(run)
    (run / TRACE).unlink()
    (run / "output/agent/t2.0.stdout").unlink()
    return "agent/t2/0: missing"


@pytest.mark.parametrize(
    "tamper",
    [
        cut_trace,
        cut_trace_from_its_middle,
        reorder_trace,
        edit_event,
        edit_time,
        take_the_trace_of_another,
        remove_trace,
        edit_output,
        add_output,
        add_trace,
        edit_row,
        cut_rows,
        remove_row,
        reorder_rows,
        tear_row,
        write_row_differently,
        add_episode,
        take_a_row_of_another_run,
        repeat_row,
        edit_config,
        break_config,
        edit_suite,
        edit_seal,
        remove_seal,
        drop_an_episode_and_its_files,
    ],
)
def test_each_change_is_named(tamper: Callable[[Path], str], run: Path) -> None:
    expected = tamper(run)
    assert expected in damage_of(run)


def test_a_run_signed_with_another_key_is_found_if_the_key_is_known(
    tmp_path: Path,
) -> None:
    forged = finished_run(tmp_path / "forged", OTHER_KEY).path
    assert damage_of(forged) == []
    verification = verify(forged, KEY.public)
    assert [str(item) for item in verification.damage] == [
        f"seal.json: signed with {OTHER_KEY.public}"
    ]
    assert (verification.key, verification.planned, verification.episodes) == (
        OTHER_KEY.public,
        3,
        0,
    )


def test_a_run_without_a_readable_seal_has_no_signer_and_no_episodes(run: Path) -> None:
    (run / "seal.json").write_text("{}")
    verification = verify(run)
    assert damage_of(run) == ["seal.json: missing or changed"]
    assert (verification.key, verification.planned, verification.episodes) == ("", 0, 0)


def test_an_unfinished_run_names_the_missing_episodes(tmp_path: Path) -> None:
    folder = new_run(tmp_path / "run")
    play(folder, NAMES[0])
    # A crash has left a trace without its row, and a partial file.
    folder.write_trace(NAMES[1], [])
    (folder.path / "traces/agent/t3.0.jsonl.partial").write_text("{")
    folder.seal()
    assert damage_of(folder.path) == [
        f"{name}: missing: the run is not finished" for name in NAMES[1:]
    ]


@pytest.mark.parametrize("finished", [True, False])
def test_only_a_crash_of_an_unfinished_run_tears_a_trace(finished: bool, tmp_path: Path) -> None:
    folder = finished_run(tmp_path / "run") if finished else new_run(tmp_path / "run")
    if not finished:
        play(folder, NAMES[1])
    cut_trace(folder.path)
    (torn,) = (damage for damage in verify(folder.path).damage if damage.where == TRACE)
    assert torn.is_of_crash is not finished


def test_a_run_without_episodes_is_finished_when_it_is_sealed(tmp_path: Path) -> None:
    signing = Signing(KEY, ())
    folder = RunFolder.create(tmp_path / "run", {"run": "r1"}, Suite("none", ()), signing)
    assert not verify(folder.path).is_final
    folder.seal()
    assert verify(folder.path).is_final
    assert damage_of(folder.path) == []


def test_every_edited_row_is_named_and_every_other_one_is_read(run: Path) -> None:
    edit_row(run)
    rows = run / "episodes.jsonl"
    first, second, third = lines_of(rows)
    rows.write_text(first.replace('"attempts":1', '"attempts":2') + second + third)
    assert [line for line in damage_of(run) if line.endswith("was edited")] == [
        "episodes.jsonl:1: the row of agent/t1/0 was edited",
        "episodes.jsonl:2: the row of agent/t2/0 was edited",
    ]
    assert list(verify(run).rows) == [NAMES[2]]


def test_the_command_counts_the_missing_episodes_in_one_line(tmp_path: Path) -> None:
    folder = new_run(tmp_path / "run")
    play(folder, NAMES[0])
    result = CliRunner().invoke(verify_command, [str(folder.path)], standalone_mode=False)
    assert result.output.splitlines() == [
        f"unfinished: 1 of {len(NAMES)} episodes; continue with: fumehood resume {folder.path}"
    ]
    assert result.return_value == 1


def test_a_resumed_run_continues_its_seals(tmp_path: Path) -> None:
    play(new_run(tmp_path / "run"), NAMES[0])
    resumed = RunFolder.open(tmp_path / "run")
    resumed.sign_with(Signing(KEY, NAMES))
    for name in NAMES[1:]:
        play(resumed, name)
    assert [damage.where for damage in verify(resumed.path).damage] == ["seal.json"]
    resumed.seal()
    assert damage_of(resumed.path) == []


def test_another_key_cannot_resume_a_run(tmp_path: Path) -> None:
    new_run(tmp_path / "run")
    with pytest.raises(InputError, match=KEY_VARIABLE):
        RunFolder.open(tmp_path / "run").sign_with(Signing(OTHER_KEY, NAMES))


def test_a_changed_plan_is_not_resumed(tmp_path: Path) -> None:
    folder = new_run(tmp_path / "run")
    (folder.path / "suite.jsonl").write_text("")
    with pytest.raises(InputError, match=r"suite\.jsonl was changed"):
        RunFolder.open(folder.path).sign_with(Signing(KEY, NAMES))


def test_output_of_an_earlier_attempt_is_removed(tmp_path: Path) -> None:
    folder = new_run(tmp_path / "run")
    folder.write_output(NAMES[0], b"first", b"first")
    play(folder, NAMES[0], printed=b"")
    assert list((folder.path / "output").rglob("*.std*")) == []


def test_an_unsigned_run_cannot_be_verified(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "run", {"suite": "small"}, SUITE)
    with pytest.raises(InputError, match="never signed"):
        verify(tmp_path / "run")
    with pytest.raises(InputError, match="not a run folder"):
        verify(tmp_path / "nowhere")


def test_the_command_prints_one_line_per_difference(run: Path) -> None:
    unknown = CliRunner().invoke(command, [str(run)], standalone_mode=False)
    assert unknown.return_value == 1
    assert unknown.output.startswith("unchanged, but the signer is unknown: 3 episodes, signed")
    assert f"run: fumehood keys add {KEY.public} NAME" in unknown.output
    expected = ["--key", KEY.public]
    sound = CliRunner().invoke(command, [str(run), *expected], standalone_mode=False)
    assert sound.return_value == 0
    assert sound.output == f"sound: 3 episodes, signed with {KEY.public} (the expected key)\n"
    line = edit_row(run)
    damaged = CliRunner().invoke(command, [str(run)], standalone_mode=False)
    assert damaged.return_value == 1
    assert line in damaged.output.splitlines()
    report = json.loads(CliRunner().invoke(command, [str(run), "--json"]).output)
    assert report["sound"] is False
    assert {"where": "episodes.jsonl:2", "what": "the row of agent/t2/0 was edited"} in report[
        "damage"
    ]


def test_an_interrupted_creation_is_repeated(tmp_path: Path) -> None:
    folder = new_run(tmp_path / "run")
    (folder.path / "run.json").rename(folder.path / "run.json.partial")
    begun = finished_run(folder.path)
    assert damage_of(begun.path) == []
    (folder.path / "run.json").unlink()
    with pytest.raises(InputError, match="is not empty"):
        new_run(folder.path)
