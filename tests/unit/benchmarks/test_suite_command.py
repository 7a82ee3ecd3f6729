"""The command ``fumehood suite``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fumehood.cli.suite import suite
from fumehood.core.errors import InputError


def test_a_suite_can_be_generated_shown_and_validated(tmp_path: Path) -> None:
    out = str(tmp_path / "mine")
    made = json.loads(_run("generate", "toolmisuse", "--out", out, "--test", "20", "--json").stdout)
    assert [entry["records"] for entry in made["files"]] == [24, 24, 12, 12, 20, 20]
    quality = json.loads(_run("quality", out, "--json").stdout)
    assert quality["splits"]["test_public"]["tasks"] == 20
    assert quality["splits"]["train"]["instruction_uniqueness"] == 1
    assert quality["splits"]["train"]["duplicate_ids"] == 0
    info = json.loads(_run("info", f"toolmisuse:{out}:test_public", "--json").stdout)
    assert (info["tasks"], info["profile"], info["seed"]) == (20, "default", 42)
    checked = json.loads(_run("validate", f"toolmisuse:{out}:test_public", "--json").stdout)
    assert checked["tasks"] == 20
    assert 0 < checked["oracles_proven"] < 20


def test_without_json_the_output_is_a_table(tmp_path: Path) -> None:
    out = str(tmp_path / "mine")
    assert (
        "native default, release 1, seed 3"
        in _run("generate", "native", "--out", out, "--seed", "3").stdout
    )
    assert "instruction" in _run("quality", out).stdout
    assert (
        _run("validate", "sample").stdout == "sample: 40 tasks are valid, 40 solved by the oracle\n"
    )
    assert "retrieval 10" in _run("info", "sample").stdout


def test_an_unsolvable_task_needs_a_call_or_the_reason_why_not(tmp_path: Path) -> None:
    task = {
        **{"format": "fumehood.task/1", "task_id": "no", "world": "crud", "solvable": False},
        **{"instruction": "Close the closed account.", "initial_state": {"accounts": {}}},
        **{"budget": {"steps": 3, "calls": 3, "retries": 1}, "criteria": [{"op": "unchanged"}]},
        "oracle": [{"give_up": "it is closed"}],
    }
    path = tmp_path / "no.jsonl"
    path.write_text(json.dumps(task), encoding="utf-8")
    with pytest.raises(InputError, match="giving up without any call solves it"):
        _run("validate", str(path))
    reason = {"tags": {"why_no_look": "the instruction contradicts itself"}}
    path.write_text(json.dumps({**task, **reason}), encoding="utf-8")
    assert json.loads(_run("validate", str(path), "--json").stdout)["tasks"] == 1


def test_tasks_that_need_a_judge_are_valid_and_marked(tmp_path: Path) -> None:
    task = {
        **{
            "format": "fumehood.task/1",
            "task_id": "greet",
            "world": "crud",
            "instruction": "Say hello.",
        },
        **{"initial_state": {}, "budget": {"steps": 3, "calls": 3, "retries": 1}, "solvable": True},
        "criteria": [{"op": "judged", "asks": "Is it polite?"}],
        "oracle": [{"submit": "hello"}],
    }
    path = tmp_path / "greet.jsonl"
    path.write_text(json.dumps(task), encoding="utf-8")
    output = _run("validate", str(path)).stdout
    counts = "0 solved by the oracle, 1 not proven: only a judge or a run decides"
    assert output == f"greet: 1 task is valid, {counts}\n"


def test_an_oracle_with_an_unknown_tool_is_rejected_even_if_a_fault_answers_its_call(
    tmp_path: Path,
) -> None:
    task = {
        "format": "fumehood.task/1",
        "task_id": "close",
        "world": "crud",
        "instruction": "Close a1.",
        "initial_state": {"accounts": {"a1": {"id": "a1"}}},
        "fault_plan": [{"family": "timeout", "trigger": {"on_nth_call": 1}}],
        "budget": {"steps": 3, "calls": 3, "retries": 1},
        "solvable": True,
        "criteria": [{"op": "equals", "path": "accounts.a1.status", "value": "closed"}],
        "oracle": [
            {"tool_name": "close_acount", "args": {"id": "a1", "reason": "x"}},
            {"tool_name": "close_account", "args": {"id": "a1", "reason": "x"}},
            {"submit": ""},
        ],
    }
    path = tmp_path / "close.jsonl"
    path.write_text(json.dumps(task), encoding="utf-8")
    with pytest.raises(InputError, match=r"oracle\[0\].*no tool 'close_acount'; did you mean"):
        _run("validate", str(path))


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        (
            "FUMEHOOD_TRIALS",
            "many",
            "FUMEHOOD_TRIALS: must be a whole number, not 'many'\n",
        ),
        ("FUMEHOOD_TRIALS", "0", "FUMEHOOD_TRIALS: trials: should be greater than or equal to 1"),
    ],
)
def test_a_wrong_environment_variable_is_named_in_the_error(
    variable: str,
    value: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from fumehood.cli.main import main

    monkeypatch.setenv(variable, value)
    monkeypatch.setattr("sys.argv", ["fumehood", "run", "sample", "-a", "policy_aware"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("resume . --prepare x", "'--prepare': must be a whole number from 0, not 'x'"),
        ("resume . --prepare=-1", "'--prepare': must be a whole number from 0, not -1"),
        ("run sample --prepare x", "'--prepare': must be a whole number, not 'x'"),
        ("watch . --port 70000", "'--port': must be a whole number from 0 to 65535, not 70000"),
        ("run sample --wall-time-s x", "'--wall-time-s': 'x' is not a valid float."),
    ],
)
def test_a_wrong_number_is_refused_with_its_bounds(
    words: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from fumehood.cli.main import main

    monkeypatch.setattr("sys.argv", ["fumehood", *words.split()])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert capsys.readouterr().err == f"fumehood: Invalid value for {message}\n"


def test_the_command_is_registered() -> None:
    from fumehood.cli.main import fumehood

    assert "generate" in CliRunner().invoke(fumehood, ["suite", "--help"]).output


def test_a_misspelt_command_is_answered_with_the_nearest_name() -> None:
    from fumehood.cli.main import fumehood

    assert (
        "no command is called 'rnu'; did you mean 'run'?"
        in CliRunner().invoke(fumehood, ["rnu"]).output
    )


def test_a_missing_option_gives_one_line_of_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from fumehood.cli.main import main

    monkeypatch.setattr("sys.argv", ["fumehood", "agent", "init", "mine"])
    with pytest.raises(SystemExit, match="2"):
        main()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fumehood: Missing option '--language'. Choose from: cpp,")


def _run(*arguments: str) -> Result:
    result = CliRunner().invoke(suite, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result
