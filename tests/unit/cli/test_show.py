"""`fumehood show` states why a check failed, and which run folders an experiment has."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from fumehood.benchmarks.registry import load_suite
from fumehood.cli.main import fumehood
from fumehood.cli.progress import RunProgress
from fumehood.cli.show import _model_line
from fumehood.core.errors import InputError
from fumehood.core.score import UNGRADED
from fumehood.core.trace import ModelRefused
from fumehood.records.run_reader import PLAN_FILE
from fumehood_agent.in_process import InProcessSession
from tests.architecture.project import ROOT
from tests.parts.commands import fumehood_json
from tests.parts.memory_runs import builtin, play_run
from tests.unit.report.runs import part_of_sample, played


def invoke(*words: object) -> str:
    arguments = [str(word) for word in words]
    return (
        CliRunner()
        .invoke(fumehood, arguments, standalone_mode=False, catch_exceptions=False)
        .output
    )


@pytest.mark.parametrize(
    ("needs", "shown"),
    [
        ({}, ""),
        ({"web_search": "tools[]"}, " (web_search in tools[])"),
        ({"a": "b.c", "field:d": "d"}, " (a in b.c, field:d in d)"),
    ],
)
def test_a_refused_model_request_is_shown_with_its_fields(
    needs: dict[str, Any], shown: str
) -> None:
    event = ModelRefused(seat="a", reason="capability_not_granted", needs=needs).to_json()
    assert _model_line(event) == f"model request refused: capability_not_granted{shown}"


def test_a_failed_check_is_followed_by_what_was_expected_and_found(tmp_path: Path) -> None:
    run = played(tmp_path / "run", "noop", "policy_aware", tasks=1).path
    task = "crud_close_relocation"
    lines = [line.strip() for line in invoke("show", run, f"noop/{task}").splitlines()]
    failed = [at for at, line in enumerate(lines) if line.startswith("✗ check_")]
    assert failed
    for at in failed:
        assert lines[at + 1].startswith('expected {"op": ')
        assert lines[at + 2].startswith("found ")
    assert 'found "active"' in lines
    assert "expected" not in invoke("show", run, f"policy_aware/{task}")


@pytest.mark.slow
def test_a_violation_is_shown_with_its_entry_its_severity_and_its_call(tmp_path: Path) -> None:
    text = (ROOT / "examples" / "payments.yaml").read_text(encoding="utf-8")
    suite = tmp_path / "payments.yaml"
    # The oracle calls too fast for this rule.
    suite.write_text(text.replace("max_calls: 3", "max_calls: 1"), encoding="utf-8")
    run = tmp_path / "run"
    invoke("run", suite, "-a", "oracle", "--engine", "inline", "--out", run)
    lines = [line.strip() for line in invoke("show", run, "oracle/pay-two").splitlines()]
    at = lines.index("✗ safety:slow_payments")
    assert lines[at + 1].startswith('expected {"name": "slow_payments", ')
    assert lines[at + 2] == "found minor at call 6"


def test_the_list_has_one_row_for_each_agent_and_task(tmp_path: Path) -> None:
    run = played(tmp_path / "run", "noop", "policy_aware", tasks=2, trials=3).path
    lines = [line.rstrip() for line in invoke("show", run).splitlines()]
    at = lines.index("12 episodes, 2 agents × 2 tasks × 3 trials: 6 solved, 6 failed")
    shown = [line.split(maxsplit=2) for line in lines[at + 2 :]]
    assert {(agent, task) for agent, task, _ in shown} == {
        (agent, task)
        for agent in ("noop", "policy_aware")
        for task in ("crud_close_relocation", "crud_gold_after_silence")
    }
    assert sorted({rest for *_, rest in shown}) == [
        "0 of 3  0 ✗, 1 ✗, 2 ✗  finished 3",
        "3 of 3  0 ✓, 1 ✓, 2 ✓  finished 3",
    ]


def test_a_whole_agent_and_task_is_no_part_of_another_name(tmp_path: Path) -> None:
    suite = part_of_sample(2)
    first, second = suite.cases
    longer = replace(second, task=replace(second.task, task_id=f"{first.task.task_id}_again"))
    run = play_run(
        tmp_path / "run", replace(suite, cases=(first, longer)), {"noop": builtin("noop")}
    ).path
    assert f"noop/{first.task.task_id}/0" in invoke("show", run, f"noop/{first.task.task_id}")
    with pytest.raises(InputError, match=r"matches 2 episodes.*name one as AGENT/TASK/TRIAL"):
        invoke("show", run, first.task.task_id)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--failed"], ["noop/crud_close_relocation/0", "noop/crud_gold_after_silence/0"]),
        (["--agent", "policy*", "--task", "*gold*"], ["policy_aware/crud_gold_after_silence/0"]),
        (["--ended", "gave_up"], []),
    ],
)
def test_the_list_can_be_filtered(words: list[str], names: list[str], tmp_path: Path) -> None:
    run = played(tmp_path / "run", "noop", "policy_aware", tasks=2).path
    rows = fumehood_json("show", str(run), "--json", *words)
    assert sorted(f"{row['agent']}/{row['task']}/{row['trial']}" for row in rows) == names
    assert f"{len(names)} episode" in invoke("show", run, *words)


def test_a_filter_is_refused_for_one_episode(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--failed has no effect on one episode"):
        invoke("show", tmp_path, "noop/any", "--failed")


def test_equal_events_without_effect_that_follow_each_other_are_one_line(tmp_path: Path) -> None:
    text = (ROOT / "examples" / "water_works.yaml").read_text(encoding="utf-8")
    closed = tmp_path / "closed.yaml"
    closed.write_text(text.replace("inflow: open}", "inflow: closed}"), encoding="utf-8")
    suite = load_suite(str(closed))
    run = play_run(tmp_path / "run", suite, {"noop": builtin("noop")}).path
    idle = [line for line in invoke("show", run, "noop/night").splitlines() if "effect" in line]
    assert [line.strip() for line in idle] == [
        "event fill_t1 at 600 s to 28800 s, without effect, 48 times"
    ]


def _wait_and_write(session: InProcessSession) -> None:
    session.call("wait", {"seconds": 5})
    session.call("write_log", {"text": "Nothing happened."})
    session.submit("")


def test_the_price_of_each_call_and_of_all_calls_is_shown(tmp_path: Path) -> None:
    text = (ROOT / "examples" / "water_works.yaml").read_text(encoding="utf-8")
    prices = "    price_microusd: {wait: 1500, write_log: 20}\n    latency:"
    (tmp_path / "priced.yaml").write_text(text.replace("    latency:", prices), encoding="utf-8")
    suite = load_suite(str(tmp_path / "priced.yaml"))
    run = play_run(tmp_path / "run", suite, {"worker": _wait_and_write}).path
    lines = invoke("show", run, "worker/night").splitlines()
    assert sum(line.endswith(", $0.001500") for line in lines) == 1
    assert [line.strip() for line in lines if "price of" in line] == [
        "price of all calls: $0.001520"
    ]


@pytest.mark.parametrize("command", ["show", "attribute", "verify", "score", "replay"])
def test_the_folder_of_an_experiment_is_refused_with_a_run_folder_of_it(
    command: str, tmp_path: Path
) -> None:
    run = played(tmp_path / "runs" / "sample--none", "noop", tasks=1).path
    with pytest.raises(InputError, match=f"has 1 run folder: name one, such as {run}"):
        invoke(command, tmp_path)


@pytest.mark.parametrize(
    ("plan", "is_kept", "hint"),
    [
        (False, True, "; continue with: fumehood resume {run}"),
        (True, True, "; continue with: fumehood resume {experiment}"),
        (True, False, ""),
    ],
)
def test_an_interrupted_run_names_what_to_resume(
    plan: bool, is_kept: bool, hint: str, tmp_path: Path
) -> None:
    run = tmp_path / "runs" / "sample--none"
    if plan:
        (tmp_path / PLAN_FILE).write_text("{}")
    printed = StringIO()
    progress = RunProgress(Console(file=printed), quiet=False, is_kept=is_kept)
    progress.start(run, "", 8, ())
    progress.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    expected = hint.format(run=run, experiment=tmp_path)
    assert printed.getvalue().endswith("/\n" + f"0 of 8 episodes are finished{expected}\n")


def test_a_resumed_run_counts_what_was_solved_before(tmp_path: Path) -> None:
    run = played(tmp_path / "run", "policy_aware", tasks=4)
    done = run.rows()
    solved = sum(row.score.success is True for row in done)
    assert solved > 0
    printed = StringIO()
    with RunProgress(Console(file=printed), quiet=False) as progress:
        progress.start(run.path, "", 1, done)
        progress.row(replace(done[0], score=UNGRADED))
    assert f"5/5 episodes, {solved} solved" in printed.getvalue()


def test_a_finished_run_that_is_resumed_names_no_engine(tmp_path: Path) -> None:
    done = played(tmp_path / "run", "noop", tasks=8).rows()
    printed = StringIO()
    with RunProgress(Console(file=printed), quiet=False) as progress:
        progress.start(Path("runs/first"), "", 0, done)
    assert printed.getvalue() == "0 episodes (8 finished before), run folder runs/first/\n"


def test_an_unknown_episode_is_answered_with_the_nearest_name_and_the_folder(
    tmp_path: Path,
) -> None:
    run = played(tmp_path / "run of me", "policy_aware", tasks=1).path
    with pytest.raises(InputError) as refused:
        invoke("show", run, "policy/crud_close_relocation")
    assert str(refused.value) == (
        "no episode matches 'policy/crud_close_relocation'; "
        "did you mean 'policy_aware/crud_close_relocation/0'? "
        f"list them with: fumehood show '{run}'"
    )
