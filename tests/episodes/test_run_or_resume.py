"""A command that needs a run starts it, finishes an interrupted one, and refuses another plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fumehood.core.errors import InputError
from fumehood.engines.engine import Isolation
from fumehood.orchestrator.config import RunConfig, run_config
from fumehood.orchestrator.launch import Progress, resume_run, run_or_resume
from fumehood.records.receipt import receipt_statement
from fumehood.records.row import EpisodeRow
from fumehood.records.run_reader import RunReader
from fumehood.records.verify import verify
from tests.architecture.project import ROOT
from tests.parts.cut_short import cut_short

pytestmark = pytest.mark.slow

SAMPLE = ROOT / "runner" / "fumehood" / "benchmarks" / "sample" / "tasks.jsonl"


class Recorder:
    """Records which episodes a command ran."""

    def __init__(self) -> None:
        self.started: list[tuple[int, int]] = []
        self.rows: list[EpisodeRow] = []

    def progress(self) -> Progress:
        return Progress(
            on_start=lambda folder, engine, to_run, done: self.started.append((to_run, len(done))),
            on_row=self.rows.append,
            on_wait=lambda _: None,
        )


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(SAMPLE.read_text().splitlines(keepends=True)[:2]))
    return path


def config_of(tasks: Path, **changes: Any) -> RunConfig:
    settings = {"suite": str(tasks), "agents": ["policy_aware", "noop"], "engine": "inline"}
    return run_config({**settings, **changes})


def test_an_interrupted_run_is_finished_and_a_finished_one_is_not_repeated(
    tasks: Path, tmp_path: Path
) -> None:
    config, out = config_of(tasks), tmp_path / "run"
    recorder = Recorder()
    before = {row.name: row for row in run_or_resume(config, out, recorder.progress()).rows()}
    cut_short(out, 1)
    # An arm that was interrupted before its first row is started from its plan.
    run_or_resume(config, out, recorder.progress())
    after = {row.name: row for row in run_or_resume(config, out, recorder.progress()).rows()}
    assert recorder.started == [(4, 0), (3, 1), (0, 4)]
    assert len(recorder.rows) == 7
    assert {name: row.trace_digest for name, row in after.items()} == {
        name: row.trace_digest for name, row in before.items()
    }
    assert verify(out).damage == ()


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"trials": 2}, "trials"),
        ({"seed": 1, "agents": ["noop"]}, "agents, seed"),
        ({"limits": {"cpus": 2}}, "limits"),
        ({"faults": "plan.yaml"}, "suite"),
    ],
)
def test_a_folder_with_another_plan_is_refused_in_one_line(
    changes: dict[str, Any],
    names: str,
    tasks: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.yaml").write_text("format: fumehood.faults/1\nfaults: [{family: rate_limit}]\n")
    out, recorder = tmp_path / "run", Recorder()
    run_or_resume(config_of(tasks), out, recorder.progress())
    rows = (out / "episodes.jsonl").read_bytes()
    with pytest.raises(InputError) as raised:
        run_or_resume(config_of(tasks, **changes), out, recorder.progress())
    assert str(raised.value) == (
        f"{out} holds a run with another plan ({names}): choose another --out"
    )
    assert (out / "episodes.jsonl").read_bytes() == rows


def test_an_edited_task_file_is_another_plan(tasks: Path, tmp_path: Path) -> None:
    out, recorder = tmp_path / "run", Recorder()
    run_or_resume(config_of(tasks), out, recorder.progress())
    tasks.write_text(tasks.read_text().splitlines(keepends=True)[0])
    with pytest.raises(InputError, match=r"another plan \(suite\)"):
        run_or_resume(config_of(tasks), out, recorder.progress())


def test_machine_settings_are_no_part_of_the_plan(tasks: Path, tmp_path: Path) -> None:
    out, recorder = tmp_path / "run", Recorder()
    run_or_resume(config_of(tasks), out, recorder.progress())
    changed = config_of(tasks, concurrency=4, service_workers=2, engine="process")
    assert isinstance(run_or_resume(changed, out, recorder.progress()), RunReader)
    assert recorder.started == [(4, 0), (0, 4)]


def test_a_run_can_be_resumed_on_another_engine_and_states_its_isolation(
    tasks: Path, tmp_path: Path
) -> None:
    out, recorder = tmp_path / "run", Recorder()
    before = {
        row.name: row for row in run_or_resume(config_of(tasks), out, recorder.progress()).rows()
    }
    cut_short(out, 1)
    done = resume_run(out, recorder.progress(), {"engine": "process", "concurrency": 1})
    inline, process = Isolation.INLINE.value, Isolation.NONE.value
    assert sorted(row.isolation for row in done.rows()) == ["", process, process, process]
    assert done.isolation() == f"{inline}, {process} in 3 episodes"
    for row in done.rows():
        assert row.trace_digest == before[row.name].trace_digest
        first = json.loads((out / row.trace).read_text().splitlines()[0])
        assert first["isolation"] == (row.isolation or inline)
    assert verify(out).damage == ()
    predicate = receipt_statement(done)["predicate"]
    assert isinstance(predicate, dict)
    assert (predicate["isolation"], predicate["isolation_of_episodes"]) == (inline, {process: 3})


AGENT = """
from fumehood_agent import AgentAdapter

class Agent(AgentAdapter):
    def act(self, observation):
        return "an answer"
"""


def config_of_a_class(tasks: Path, **changes: Any) -> RunConfig:
    settings = {"agents": ["noop", "mine=box.agent:Agent"], "engine": "process"}
    return config_of(tasks, **settings, i_trust_this_agent=True, **changes)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the package of a class agent in the current folder."""
    monkeypatch.chdir(tmp_path)
    package = tmp_path / "box"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "agent.py").write_text(AGENT)
    (package / "words.txt").write_text("before")
    return package


def test_changed_code_of_a_class_agent_is_refused(
    tasks: Path, tmp_path: Path, package: Path
) -> None:
    out, recorder = tmp_path / "run", Recorder()
    run_or_resume(config_of_a_class(tasks), out, recorder.progress())
    codes = [agent.get("code") for agent in json.loads((out / "run.json").read_text())["agents"]]
    assert codes[0] is None
    assert len(codes[1]) == 64
    rows = (out / "episodes.jsonl").read_bytes()
    # A neighbour of the module is part of the code, because a box gets the whole package.
    (package / "words.txt").write_text("after")
    with pytest.raises(InputError) as raised:
        run_or_resume(config_of_a_class(tasks), out, recorder.progress())
    assert str(raised.value) == (
        f"{out} holds a run with another plan (code of mine): choose another --out"
    )
    cut_short(out, 1)
    rows = (out / "episodes.jsonl").read_bytes()
    with pytest.raises(InputError) as raised:
        resume_run(out, recorder.progress())
    assert str(raised.value) == (
        "the code of the agent mine has changed since the run began: restore it, or start a new run"
    )
    assert (out / "episodes.jsonl").read_bytes() == rows
    (package / "words.txt").write_text("before")
    (package / "__pycache__").mkdir(exist_ok=True)
    (package / "__pycache__" / "agent.cpython-311.pyc").write_bytes(b"")
    (tmp_path / "neighbour.py").write_text("")
    assert len(resume_run(out, recorder.progress()).rows()) == 4
