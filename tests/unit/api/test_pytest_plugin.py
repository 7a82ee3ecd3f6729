"""The fixture ``fumehood_episode``, in runs of pytest as a user starts them."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest_plugins = ["pytester"]

LOADED = (
    () if entry_points(group="pytest11", name="fumehood") else ("-p", "fumehood.api.pytest_plugin")
)
"""Loads the plugin where the installed project is older than its entry point."""

PASSING = """
def test_it_closes_the_account(fumehood_episode):
    episode = fumehood_episode("sample:crud_close_relocation", agent="policy_aware")
    assert episode.passed
    assert episode.trace()[0]["kind"] == "opened"
"""

FAILING = """
def test_it_closes_the_account(fumehood_episode):
    settings = {"agent": "noop", "engine": "inline"}
    assert fumehood_episode("sample", task="crud_close_relocation", **settings).passed
"""

OWN_AGENT = """
ANSWER = "done"

class Closer:
    def run(self, session):
        session.call("close_account", {"id": "a1042", "reason": "asked"})
        session.submit(ANSWER)

def test_my_agent_closes_the_account(fumehood_episode):
    assert fumehood_episode("tasks.json:close", agent=Closer).passed
"""

TASK = """[{
    "format": "fumehood.task/1", "task_id": "close", "instruction": "Close a1042.", "world": "crud",
    "initial_state": {"accounts": {"a1042": {"id": "a1042", "status": "open"}}},
    "budget": {"steps": 6, "calls": 6, "retries": 2}, "solvable": true,
    "criteria": [{"op": "equals", "path": "accounts.a1042.status", "value": "closed"}],
    "oracle": [
        {"tool_name": "close_account", "args": {"id": "a1042", "reason": ""}}, {"submit": ""}
    ]
}]"""


def _run(pytester: pytest.Pytester, test: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(test_agent=test)
    return pytester.runpytest(*LOADED, "-p", "no:xdist", *arguments)


@pytest.mark.slow
def test_an_agent_that_solves_its_task_passes(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nfumehood_engine = inline\n")
    _run(pytester, PASSING).assert_outcomes(passed=1)


@pytest.mark.slow
def test_a_failure_states_what_each_check_expected_and_found(pytester: pytest.Pytester) -> None:
    done = _run(pytester, FAILING, f"--basetemp={pytester.path}/kept")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            "*where False = <Episode noop/crud_*: finished, success False, failed check_0:equals*",
            "*- fumehood: noop/crud_close_relocation/0 -*",
            "check_0:equals does not hold",
            '  expected {*"path":"accounts.a1042.status"*}',
            '  found "active"',
            "all calls: fumehood show */fumehood/1 noop/crud_close_relocation/0",
        ]
    )
    assert list(pytester.path.glob("kept/*/fumehood/1/run.json"))


@pytest.mark.slow
def test_an_episode_is_neither_true_nor_false(pytester: pytest.Pytester) -> None:
    test = FAILING.replace("    assert fume", "    assert not fume").replace(").passed", ")")
    result = _run(pytester, test)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*an episode is neither true nor false: use episode.passed"])


@pytest.mark.slow
def test_a_class_of_a_test_runs_as_an_agent(pytester: pytest.Pytester) -> None:
    (pytester.path / "tasks.json").write_text(TASK)
    _run(pytester, OWN_AGENT, "--fumehood-engine=process").assert_outcomes(passed=1)
    assert not list(pytester.path.glob("fumehood_packed_*"))


@pytest.mark.slow
def test_the_results_are_in_the_junit_file_and_in_the_summary(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    summary, junit = tmp_path / "summary.md", tmp_path / "junit.xml"
    summary.write_text("# Checks\n")
    _run(pytester, FAILING, f"--fumehood-summary={summary}", f"--junitxml={junit}")
    properties = {
        each.get("name"): each.get("value") for each in ElementTree.parse(junit).iter("property")
    }
    assert properties["fumehood_episode"] == "noop/crud_close_relocation/0"
    assert properties["fumehood_success"] == "failed"
    text = summary.read_text()
    assert text.startswith("# Checks\n### Fumehood: 0 of 1 episodes passed\n")
    assert "noop/crud\\_close\\_relocation/0 | failed |" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ('"sample"', "fumehood_episode: sample names no task: write sample:TASK, or add task="),
        (
            '"sample:crud_close_relocatoin"',
            "*no task 'crud_close_relocatoin'; did you mean 'crud_close_relocation'*",
        ),
        ('"sample:crud_close_relocation", engine="dockr"', "*no engine is called 'dockr'*"),
    ],
)
def test_a_mistake_is_one_line(pytester: pytest.Pytester, arguments: str, message: str) -> None:
    test = f"def test_it(fumehood_episode):\n    fumehood_episode({arguments}, agent='noop')\n"
    done = _run(pytester, test, "--fumehood-engine=inline")
    done.stdout.fnmatch_lines([message])
    assert "Traceback" not in done.stdout.str()


def test_a_summary_in_a_missing_folder_is_refused(pytester: pytest.Pytester) -> None:
    done = _run(pytester, PASSING, "--fumehood-summary=missing/summary.md")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["*--fumehood-summary: there is no folder missing"])
