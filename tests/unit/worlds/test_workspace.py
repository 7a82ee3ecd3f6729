"""The tools of a workspace: sessions, bounds, files, and what changed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fumehood.core.json_values import BRACKETS_MAX
from fumehood.core.tools import Failure, ToolCall, Value
from fumehood.third_party.process import QuestionFailed
from fumehood.worlds.workspace import (
    CHANGES_MAX,
    SHOWN_CHANGES_MAX,
    Workspace,
    WorkspaceOutside,
)
from tests.parts.workspaces import workspace_in


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    folder = tmp_path / "a folder"
    folder.mkdir()
    with workspace_in(folder, {}) as world:
        yield world


def done(world: Workspace, tool: str, **arguments: Any) -> Any:
    result = world.call(ToolCall(tool, arguments))
    assert isinstance(result, Value), result
    return result.output


def refused(world: Workspace, tool: str, **arguments: Any) -> str:
    result = world.call(ToolCall(tool, arguments))
    assert isinstance(result, Failure)
    return result.message


def test_a_question_with_too_many_values_is_not_parsed(tmp_path: Path) -> None:
    outside = WorkspaceOutside(tmp_path)
    question = b'{"request":[' + b"[]," * BRACKETS_MAX + b"[]]}"
    with closing(outside), pytest.raises(QuestionFailed, match="too many values"):
        outside.answer(question)


def test_a_session_keeps_folder_and_environment_and_others_do_not_share_them(
    workspace: Workspace,
) -> None:
    done(workspace, "bash", command="mkdir d; cd d; export NAME=value; f() { echo $NAME; }")
    assert done(workspace, "bash", command='basename "$PWD"; f')["output"] == "d\nvalue\n"
    other = done(workspace, "bash", command='basename "$PWD"; echo [$NAME]', session="other")
    assert other["output"] == "a folder\n[]\n"


@pytest.mark.parametrize("command", ["exit 3", "set -e; false", "break"])
def test_a_command_that_ends_its_shell_starts_a_new_session(
    workspace: Workspace, command: str
) -> None:
    assert done(workspace, "bash", command=f"cd /; {command}")["session_ended"] is True
    assert done(workspace, "bash", command='basename "$PWD"')["output"] == "a folder\n"


def test_status_and_both_outputs_are_returned_and_input_is_empty(workspace: Workspace) -> None:
    result = done(workspace, "bash", command="echo out; echo err >&2; cat; (exit 7)")
    assert result == {"exit_status": 7, "output": "out\nerr\n"}


@pytest.mark.slow
def test_a_command_ends_at_its_timeout_with_its_children(workspace: Workspace) -> None:
    command = "echo begun; sleep 1000 & sleep 1000"
    started = time.monotonic()
    result = done(workspace, "bash", command=command, timeout_s=1)
    assert time.monotonic() - started < 60
    assert (result["exit_status"], result["output"]) == (137, "begun\n")
    assert result["timed_out"].startswith("after 1 s")
    assert done(workspace, "bash", command="jobs")["output"] == ""


def test_a_long_output_keeps_its_two_ends(workspace: Workspace) -> None:
    result = done(workspace, "bash", command="seq 1 100000")
    assert result["output"].startswith("1\n2\n")
    assert result["output"].endswith("\n99999\n100000\n")
    assert len(result["output"]) + result["dropped_bytes"] == 588895


@pytest.mark.slow
def test_a_background_process_does_not_delay_its_call(workspace: Workspace) -> None:
    done(workspace, "bash", command="(read -t 5 < <(sleep 5); echo late) & echo now; sleep 0.01")
    deadline = time.monotonic() + 60
    output = ""
    while "late" not in output and time.monotonic() < deadline:
        output += done(workspace, "bash", command=":")["output"]
    assert output == "late\n"


def test_changes_are_listed_with_their_hashes(workspace: Workspace) -> None:
    first = done(workspace, "bash", command="printf abc > x; ln -s x link; mkdir d; chmod 700 d")
    assert first["changed_files"] == ["./d", "./link", "./x"]
    changed = workspace.state["changed"]
    assert isinstance(changed, dict)
    assert changed["./x"] == f"file 644 3 {sha256(b'abc').hexdigest()}"
    assert changed["./d"] == "folder 700"
    second = done(workspace, "bash", command="printf xyz > x; rm link")
    assert second["changed_files"] == ["./link", "./x"]
    changed = workspace.state["changed"]
    assert isinstance(changed, dict)
    assert "./link" not in changed
    assert "changed_files" not in done(workspace, "bash", command="cat x")


@pytest.mark.slow
def test_many_changes_are_counted(workspace: Workspace) -> None:
    number = CHANGES_MAX + 50
    result = done(workspace, "bash", command=f"seq 1 {number} | xargs touch")
    assert len(result["changed_files"]) == SHOWN_CHANGES_MAX
    before = dict(workspace.state)
    done(workspace, "bash", command="echo more >> 999")
    assert workspace.state["more_changed"] != before["more_changed"]
    changed = workspace.state["changed"]
    assert isinstance(changed, dict)
    assert len(changed) == CHANGES_MAX


def test_special_files_are_neither_read_nor_written(workspace: Workspace) -> None:
    done(workspace, "bash", command="mkfifo pipe; ln -s /dev/zero zero")
    for path in ("pipe", "zero", "."):
        refused(workspace, "read_file", path=path)
        refused(workspace, "write_file", path=path, content="x")
    assert "zero byte" in refused(workspace, "read_file", path="a\0b")
    assert "zero byte" in refused(workspace, "bash", command="a\0b")


def test_a_text_is_replaced_only_where_it_occurs_once(workspace: Workspace) -> None:
    done(workspace, "write_file", path="t", content="one two two")
    assert "2 times" in refused(workspace, "edit_file", path="t", old_text="two", new_text="")
    done(workspace, "edit_file", path="t", old_text="one", new_text="1")
    assert done(workspace, "read_file", path="t") == {"content": "1 two two", "size_bytes": 9}


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text().filter(lambda text: "\r" not in text))
def test_a_written_text_is_read_and_printed_again(workspace: Workspace, text: str) -> None:
    encoded = text.encode("utf-8", "replace").decode()
    done(workspace, "write_file", path="t", content=text)
    assert done(workspace, "read_file", path="t")["content"] == encoded
    assert done(workspace, "bash", command="cat t")["output"] == encoded


def test_a_helper_that_was_killed_fails_the_calls_after_it(workspace: Workspace) -> None:
    workspace.call(ToolCall("bash", {"command": "kill -9 $PPID; sleep 1"}))
    assert "workspace" in refused(workspace, "bash", command="echo")


def test_a_task_prepares_the_shell_and_bounds_the_output(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    state: dict[str, Any] = {"start": "mkdir d; cd d; place=here", "output_chars_max": 5}
    with workspace_in(folder, state) as world:
        first = done(world, "bash", command="echo $place")
        assert first == {"exit_status": 0, "output": "here\n"}
        long = done(world, "bash", command="basename $PWD; seq 9")
        assert long["output"] == "d\n1\n2\n[the output is too long: 20 characters]"
