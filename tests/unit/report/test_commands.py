"""``report``, ``compare`` and ``attribute`` on real runs."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fumehood.cli.attribute import attribute
from fumehood.cli.compare import DIMENSION_NAMES, compare
from fumehood.cli.report import report
from fumehood.cli.score import score
from fumehood.core.errors import InputError, how_to_install
from fumehood.core.json_values import JsonObject
from fumehood.orchestrator.run_plan import planned_of
from fumehood.records.run_reader import RunReader
from fumehood.report.compare.registry import DIMENSIONS
from fumehood.report.findings import Versus
from fumehood.report.runs import Run, join_run, subjects_of
from fumehood.report.sections.comparisons import versus_table
from fumehood.report.statistics.pairs import compare as compare_results
from fumehood.report.summary import run_digest
from fumehood.report.text_table import markdown_text
from tests.parts.cut_short import cut_short
from tests.parts.reading import sign_again, verified
from tests.unit.report.runs import played

AGENTS = ("policy_aware", "instruction_parser")
SEARCH_TASK = """\
format: fumehood.tasks/1
world: search
budget: {steps: 9, calls: 9, retries: 5}
tasks:
  - task_id: owls
    instruction: "Question: When do owls hunt?"
    initial_state: {}
    criteria: [{op: answer_contains, value: at night}]
    oracle: [{submit: at night}]
"""


def test_the_command_offers_every_dimension() -> None:
    assert list(DIMENSIONS) == list(DIMENSION_NAMES)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunReader:
    return played(tmp_path_factory.mktemp("runs") / "run", *AGENTS, tasks=20)


def _invoke(command: Any, *arguments: object) -> Result:
    return CliRunner().invoke(
        command, [str(argument) for argument in arguments], catch_exceptions=False
    )


@pytest.mark.slow
def test_a_report_is_a_page_markdown_pictures_and_tables(run: RunReader, tmp_path: Path) -> None:
    done = _invoke(report, run.path, "--out", tmp_path / "out", "--json")
    files = [Path(name) for name in json.loads(done.stdout)["files"]]
    assert json.loads(done.stdout)["page"] == str(tmp_path / "out" / "report.html")
    assert {path.suffix for path in files} == {".html", ".md", ".svg", ".csv", ".parquet"}
    assert all(path.stat().st_size for path in files)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["report", "report/figures", "report/report.html", "report/tables/results.parquet"]
)
def test_a_report_follows_no_link_in_the_folder_of_a_run(
    name: str, run: RunReader, tmp_path: Path
) -> None:
    folder, target = tmp_path / "run", tmp_path / "target"
    shutil.copytree(run.path, folder)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    is_file = bool(Path(name).suffix)
    if is_file:
        target.write_text("of the user")
    else:
        target.mkdir()
    if name.endswith(".parquet"):
        for file in json.loads(_invoke(report, run.path, "--json").stdout)["files"]:
            if file.endswith(".parquet"):
                (folder / "report/tables" / Path(file).name).symlink_to(target)
    else:
        (folder / name).symlink_to(target)
    with pytest.raises(InputError, match="link"):
        _invoke(report, folder)
    assert target.read_text() == "of the user" if is_file else not list(target.iterdir())


@pytest.mark.slow
def test_the_same_run_gives_the_same_files(run: RunReader, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for out in (one, other):
        _invoke(report, run.path, "--out", out)
    for path in one.rglob("*.*"):
        assert path.read_bytes() == (other / path.relative_to(one)).read_bytes(), path.name


@pytest.mark.slow
def test_agents_of_one_name_in_two_runs_are_kept_apart(run: RunReader, tmp_path: Path) -> None:
    again = played(tmp_path / "again", *AGENTS, tasks=10)
    _invoke(report, run.path, again.path, "--out", tmp_path / "out")
    markdown = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "policy\\_aware (run)" in markdown
    assert "policy\\_aware (again)" in markdown
    assert "10 unmatched" in markdown


@pytest.mark.slow
def test_the_markdown_begins_with_the_success_rates_and_lists_the_runs(
    run: RunReader, tmp_path: Path
) -> None:
    _invoke(report, run.path, "--out", tmp_path / "out")
    title, _, summary, *rest = (
        (tmp_path / "out" / "report.md").read_text(encoding="utf-8").splitlines()
    )
    assert title == "# sample"
    assert summary.startswith("Success: policy\\_aware ")
    assert " of 20 (no-op 0.0%, oracle 100.0%); instruction\\_parser " in summary
    (row,) = [line for line in rest if line.startswith("| run | 2")]
    digest = run_digest(run.rows(), [str(one.name) for one in planned_of(run)])
    assert f"| {digest[:16]}… |" in row
    assert f"| {run.manifest()['isolation']} |" in row


@pytest.mark.slow
def test_the_report_of_an_unfinished_run_states_this(tmp_path: Path) -> None:
    broken_off = played(tmp_path / "run", *AGENTS, tasks=3)
    cut_short(broken_off.path, 4)
    _invoke(report, broken_off.path, "--out", tmp_path / "out")
    notice = f"UNFINISHED: {broken_off.path}: 4 of 6 episodes are finished"
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "4 of 6 planned episodes" in page
    assert page.index(notice) < page.index("<h1>")
    lines = (tmp_path / "out" / "report.md").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# sample"
    assert lines[2].startswith(f"**{markdown_text(notice)}")


@pytest.mark.slow
@pytest.mark.parametrize(("finished", "headline"), [(5, False), (9, True)])
def test_an_interrupted_run_has_no_headline_number_in_any_command(
    tmp_path: Path, finished: int, headline: bool
) -> None:
    cut = played(tmp_path / "run", "policy_aware", tasks=10)
    cut_short(cut.path, finished)
    _invoke(report, cut.path, "--out", tmp_path / "out")
    reason = f"{10 - finished} of 10 episodes are not finished: no headline number"
    markdown = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert ("Success: not known." in markdown) == (reason in markdown) == (not headline)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert (reason in page) == (not headline)
    printed = _invoke(score, cut.path)
    (row,) = [line for line in printed.stdout.splitlines() if line.startswith("policy_aware ")]
    assert (row.split()[1] == "–") == (reason in printed.stderr) == (not headline)
    assert ("%" in row) == headline, "also not as infra counted as failure"
    stated = json.loads(_invoke(score, cut.path, "--json").stdout)
    assert (stated["headline"], stated["planned"]) == (headline, 10)
    whole = played(tmp_path / "whole", "policy_aware", tasks=10)
    compared = json.loads(_invoke(compare, whole.path, cut.path, "--json").stdout)
    assert [pair["headline"] for pair in compared["comparisons"]] == [headline]


def test_a_run_without_episodes_can_be_reported(tmp_path: Path) -> None:
    nothing = played(tmp_path / "run", *AGENTS, tasks=3)
    cut_short(nothing.path, 0)
    done = _invoke(report, nothing.path, "--out", tmp_path / "out")
    assert done.exit_code == 0
    assert "0 of 6 planned episodes" in (tmp_path / "out" / "report.html").read_text(
        encoding="utf-8"
    )


def test_an_unknown_baseline_is_rejected(run: RunReader) -> None:
    with pytest.raises(
        InputError, match="no agent is called 'unknown'; the runs have: policy_aware"
    ):
        _invoke(report, run.path, "--baseline", "unknown")


def test_a_changed_trace_is_rejected(run: RunReader, tmp_path: Path) -> None:
    changed = played(tmp_path / "changed", "policy_aware", tasks=2)
    (path, *_) = sorted((changed.path / "traces").rglob("*.jsonl"))
    path.write_text(path.read_text().replace("finished", "gave_up"))
    with pytest.raises(InputError, match="the hash of record"):
        _invoke(report, changed.path)


def test_comparing_the_folder_of_an_experiment_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "experiment.json").write_text("{}")
    with pytest.raises(InputError, match=f"or use: fumehood report {tmp_path}"):
        _invoke(compare, tmp_path)


def test_two_agents_of_one_run_are_compared_pair_by_pair(run: RunReader) -> None:
    done = _invoke(compare, f"{run.path}:policy_aware", f"{run.path}:instruction_parser", "--json")
    (found,) = json.loads(done.stdout)["comparisons"]
    successes = {
        agent: {row.name.task: row.score.success for row in run.rows() if row.name.agent == agent}
        for agent in AGENTS
    }
    first, second = (successes[agent] for agent in AGENTS)
    assert found["pairs"] == 20
    assert found["test"] == "McNemar"
    assert found["won"] == sum(second[task] is True and not first[task] for task in first)
    assert found["lost"] == sum(first[task] is True and not second[task] for task in first)
    assert {flip["task"] for flip in found["flipped"]} == {
        task for task in first if first[task] != second[task]
    }
    success = found["metrics"]["task_success"]
    assert success["interval"][0] <= success["difference"] <= success["interval"][1]
    assert success["difference"] == pytest.approx((found["won"] - found["lost"]) / 20)


@pytest.mark.slow
def test_two_runs_are_compared_by_agents_of_the_same_name(run: RunReader, tmp_path: Path) -> None:
    again = played(tmp_path / "again", "noop", *AGENTS, tasks=10, start=5)
    found = json.loads(_invoke(compare, run.path, again.path, "--json").stdout)["comparisons"]
    assert [(one["first"]["agent"], one["second"]["agent"]) for one in found] == [
        (a, a) for a in AGENTS
    ]
    assert [(one["pairs"], one["unmatched"]) for one in found] == [(10, 10), (10, 10)]
    assert all(one["p_value"] == 1.0 and not one["flipped"] for one in found)


def test_notes_explain_the_metrics_of_a_comparison(run: RunReader) -> None:
    sides = [f"{run.path}:{agent}" for agent in AGENTS]
    shown = " ".join(_invoke(compare, *sides).stdout.split())
    assert "Recovered: success of the episodes in which a fault fired." in shown
    assert "Catastrophic: episodes that failed, exceeded a budget, or made three" in shown
    assert "S(k): share of episodes that succeeded with at most k tool calls." in shown


def test_agents_of_only_one_run_are_named(run: RunReader, tmp_path: Path) -> None:
    alone = played(tmp_path / "alone", AGENTS[0], tasks=2)
    done = json.loads(_invoke(compare, alone.path, run.path, "--json").stdout)
    assert done["only_in"] == {str(run.path): [AGENTS[1]]}
    shown = _invoke(compare, alone.path, run.path).stdout
    assert f"Not compared: {AGENTS[1]} (only in {run.path})." in " ".join(shown.split())
    named = f"{run.path}:{AGENTS[0]}"
    assert json.loads(_invoke(compare, alone.path, named, "--json").stdout)["only_in"] == {}


@pytest.mark.slow
def test_different_tasks_of_the_same_name_are_not_compared(run: RunReader, tmp_path: Path) -> None:
    other = played(tmp_path / "other", "policy_aware", tasks=20)
    suite = other.path / "suite.jsonl"
    suite.write_text(
        suite.read_text().replace('"steps": 6', '"steps": 7').replace('"steps":6', '"steps":7')
    )
    sign_again(other.path)
    found = json.loads(_invoke(compare, f"{run.path}:policy_aware", other.path, "--json").stdout)[
        "comparisons"
    ][0]
    assert found["differing"] > 0
    assert found["pairs"] + found["differing"] == 20


@pytest.mark.slow
def test_runs_without_a_common_task_are_rejected_with_the_reason(
    run: RunReader, tmp_path: Path
) -> None:
    elsewhere = played(tmp_path / "elsewhere", "policy_aware", tasks=5, start=30)
    with pytest.raises(
        InputError, match="nothing to compare: of the episodes, 25 have a task or trial that"
    ):
        _invoke(compare, f"{run.path}:policy_aware", elsewhere.path)
    other = played(tmp_path / "other", "policy_aware", tasks=20)
    suite = other.path / "suite.jsonl"
    suite.write_text(suite.read_text().replace('"initial_state":{', '"initial_state":{"more":1,'))
    sign_again(other.path)
    with pytest.raises(InputError, match="20 belong to tasks that have the same name"):
        _invoke(compare, f"{run.path}:policy_aware", other.path)


def test_ambiguous_comparisons_are_rejected(run: RunReader, tmp_path: Path) -> None:
    noop = played(tmp_path / "noop", "noop", tasks=2)
    with pytest.raises(InputError, match="name the agents to compare, as DIR:AGENT"):
        _invoke(compare, run.path, noop.path)
    with pytest.raises(InputError, match=r"two agents are needed|name the agents"):
        _invoke(compare, run.path, run.path)
    with pytest.raises(InputError, match="has no agent called 'unknown'"):
        _invoke(compare, f"{run.path}:unknown", run.path)


@pytest.mark.slow
def test_there_is_no_headline_difference_if_too_many_scores_are_missing(
    run: RunReader, tmp_path: Path
) -> None:
    lost = played(tmp_path / "lost", "policy_aware", tasks=20)
    rows = lost.path / "episodes.jsonl"
    ungraded = rows.read_text().replace('"success":true', '"success":null')
    rows.write_text(ungraded)
    edited = verified(sign_again(lost.path))
    subjects = subjects_of([join_run(run, run.rows()), join_run(edited, edited.rows())])
    first, second = subjects[0], subjects[-1]
    versus = Versus(first, second, compare_results(first.results, second.results))
    assert "no headline difference" in versus_table([versus]).rows[0][-1]


def test_failures_are_counted_and_listed(run: RunReader) -> None:
    found = json.loads(_invoke(attribute, run.path, "--json").stdout)
    failed = [row for row in run.rows() if row.score.success is False]
    assert (
        found["failed"]
        == len(failed)
        == sum(label["primary"] for label in found["labels"].values())
    )
    assert set(found["episodes"]) == {str(row.name) for row in failed}
    lines = _invoke(attribute, run.path, "--each").stdout.splitlines()
    assert len(lines) == len(failed)
    assert _invoke(attribute, run.path).stdout.startswith(f"{len(failed)} failed episodes")


@pytest.mark.slow
def test_without_the_extra_a_command_names_the_install_command(run: RunReader) -> None:
    hidden = "import sys; sys.modules['numpy'] = None; from fumehood.cli import main; main()"
    for command, status in (("score", 0), ("attribute", 0), ("report", 2)):
        done = subprocess.run(
            [sys.executable, "-c", hidden, command, str(run.path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stderr
    assert f"needs numpy; install it with: {how_to_install('report')}" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["offline", "live"])
def test_without_the_extra_snapshots_a_run_names_the_install_command(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks.yaml").write_text(SEARCH_TASK, encoding="utf-8")
    (tmp_path / "pages").mkdir()
    settings = {"data_mode": mode, "fetch": {"hosts": ["127.0.0.1"]}}
    settings |= {"search": {"provider": "site-index", "url": "http://127.0.0.1/index.json"}}
    (tmp_path / "live.yaml").write_text(json.dumps(settings if mode == "live" else {}))
    hidden = "import sys; sys.modules['orjson'] = None; from fumehood.cli import main; main()"
    words = ["run", "tasks.yaml", "--agent", "searcher", "--config", "live.yaml", "--out", "out"]
    words += ["--snapshot", "pages"] * (mode == "offline")
    done = subprocess.run(
        [sys.executable, "-c", hidden, *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert f"needs orjson; install it with: {how_to_install('snapshots')}" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_install_command_is_make_in_a_checkout_and_otherwise_pip(
    tmp_path: Path,
) -> None:
    assert (
        how_to_install("report", tmp_path)
        == f"{shlex.quote(sys.executable)} -m pip install 'fumehood[report]'"
    )
    (tmp_path / "pyproject.toml").touch()
    assert how_to_install("report", tmp_path) == f"make -C {tmp_path} setup-dev"


def test_agents_of_several_runs_have_different_labels_also_if_one_is_named_like_another(
    run: RunReader,
) -> None:
    def run_of(label: str, agent: str) -> Run:
        manifest: JsonObject = {"agents": [{"label": agent}]}
        return replace(join_run(run, (), label), manifest=manifest)

    subjects = subjects_of([run_of("b", "x (a)"), run_of("a", "x"), run_of("c", "x")])
    assert [subject.label for subject in subjects] == ["x (a)", "x (a)#2", "x (c)"]
