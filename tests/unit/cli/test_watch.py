"""``fumehood watch`` reads each row and trace once, and reports a change of an old one."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from fumehood.cli.watch import Watch
from fumehood.core.errors import InputError
from fumehood.orchestrator.experiment import ExperimentConfig, plan_of, run_plan
from fumehood.orchestrator.launch import Progress, start_run
from fumehood.records.run_reader import Accept
from tests.parts.cut_short import append_rows, cut_short, seal
from tests.parts.reading import verified
from tests.unit.report.runs import played

pytest.importorskip("jinja2", reason="the extra report is not installed")

OPENED: list[str] = []
TASKS = 6
SILENT = Progress(lambda *_: None, lambda _: None, lambda _: None)


def _note_opened(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open":
        OPENED.append(str(arguments[0]))


@pytest.fixture(scope="module", autouse=True)
def opened_files() -> None:
    sys.addaudithook(_note_opened)  # It stays until the process ends.


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(tmp_path_factory.mktemp("runs") / "run", "policy_aware", tasks=TASKS).path


@pytest.fixture
def run(whole_run: Path, tmp_path: Path) -> Path:
    run = Path(shutil.copytree(whole_run, tmp_path / "run"))
    cut_short(run, 3)
    return run


def traces_of(run: Path) -> list[str]:
    """Return the traces in the order of their rows."""
    return [row.trace for row in verified(run).rows()]


def traces_read_by(watch: Watch, run: Path) -> set[str]:
    """Update the page, and return the traces that were opened."""
    OPENED.clear()
    watch.build()
    paths = (Path(path) for path in OPENED if path.startswith(f"{run}/traces"))
    return {path.relative_to(run).as_posix() for path in paths if path.suffix == ".jsonl"}


def edit(path: Path) -> None:
    """Change one byte of a file in place, and keep its size and modification time."""
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[10] ^= 1
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.slow
def test_an_update_reads_only_the_traces_of_new_rows(run: Path, whole_run: Path) -> None:
    traces = traces_of(whole_run)
    watch = Watch(run, Accept.VERIFIED)
    assert traces_read_by(watch, run) == set(traces[:3])
    append_rows(run, whole_run, 1)
    assert traces_read_by(watch, run) == {traces[3]}
    append_rows(run, whole_run, 2)
    assert traces_read_by(watch, run) == set(traces[4:])
    assert traces_read_by(watch, run) == set()
    assert watch.served.state["text"] == "Not finished: 6 of 6 episodes."


@pytest.mark.slow
def test_a_finished_run_is_verified_in_full(run: Path, whole_run: Path) -> None:
    watch = Watch(run, Accept.VERIFIED)
    append_rows(run, whole_run, TASKS)
    watch.build()
    seal(run)
    assert traces_read_by(watch, run) == set(traces_of(run))
    assert traces_read_by(watch, run) == set()
    assert watch.served.state["text"] == "Finished: 6 episodes."


@pytest.mark.slow
def test_the_page_is_that_of_a_first_look(run: Path, whole_run: Path) -> None:
    watch, new = Watch(run, Accept.VERIFIED), Watch(run, Accept.VERIFIED)
    watch.build()
    append_rows(run, whole_run, 2)
    watch.build()
    new.served.number = 1
    new.build()
    assert watch.served.pages == new.served.pages


@pytest.mark.slow
@pytest.mark.parametrize("is_finished", [False, True])
def test_a_change_of_an_old_trace_is_reported_and_the_last_page_stays(
    run: Path, whole_run: Path, is_finished: bool
) -> None:
    if is_finished:
        append_rows(run, whole_run, TASKS)
        seal(run)
    watch = Watch(run, Accept.VERIFIED)
    watch.build()
    watch.served.listeners = 1
    pages = watch.served.pages
    trace = traces_of(run)[0]
    whole = (run / trace).read_bytes()
    edit(run / trace)
    for _ in range(3):
        watch.build_if_changed()
    assert watch.served.state["is_problem"] is True
    assert f"does not verify: {trace}" in str(watch.served.state["text"])
    assert watch.served.pages == pages
    (run / trace).write_bytes(whole)
    watch.build_if_changed()
    assert watch.served.state["is_problem"] is False


@pytest.mark.slow
def test_a_removed_trace_is_reported(run: Path) -> None:
    watch = Watch(run, Accept.VERIFIED)
    watch.build()
    trace = traces_of(run)[1]
    kept = (run / trace).rename(run.parent / "kept")
    with pytest.raises(InputError, match=f"does not verify: {re.escape(trace)}: missing"):
        watch.build()
    kept.rename(run / trace)
    watch.served.listeners = 1
    watch.build_if_changed()
    assert watch.served.number == 2


def test_a_change_of_an_old_row_is_reported(run: Path, whole_run: Path) -> None:
    watch = Watch(run, Accept.VERIFIED)
    watch.build()
    append_rows(run, whole_run, 1)
    edit(run / "episodes.jsonl")
    with pytest.raises(InputError, match=r"does not verify: episodes\.jsonl:1"):
        watch.build()


def test_nothing_is_built_while_nothing_changes(run: Path) -> None:
    watch = Watch(run, Accept.VERIFIED)
    watch.build()
    watch.served.listeners = 1
    watch.build_if_changed()
    assert watch.served.number == 1


@pytest.mark.slow
def test_a_live_experiment_is_followed_and_its_old_traces_are_read_once(tmp_path: Path) -> None:
    agents = ["policy_aware"]
    suite = {"label": "two", "suite": "sample", "tasks": {"limit": 2}}
    settings: dict[str, Any] = {
        "format": "fumehood.experiment/1",
        "agents": agents,
        "suites": [suite],
    }
    budgets = {"budgets": ["own", {"calls": 4}], "run": {"engine": "inline"}}
    plan = plan_of(ExperimentConfig.model_validate({**settings, **budgets}))
    folder = tmp_path / "experiment"
    cells = run_plan(plan, folder, lambda config, path, title: start_run(config, path, SILENT))
    first = next(cells).path
    watch = Watch(folder, Accept.VERIFIED)
    assert traces_read_by(watch, first) == set(traces_of(first))
    assert watch.served.state["text"] == "Not finished: 2 of 2 episodes; 1 run has not begun."
    second = next(cells).path
    assert traces_read_by(watch, first) == set()
    assert watch.served.state["text"] == "Finished: 4 episodes."
    edit(second / traces_of(second)[0])
    with pytest.raises(InputError, match="does not verify: traces/"):
        watch.build()
    assert list(cells) == []
