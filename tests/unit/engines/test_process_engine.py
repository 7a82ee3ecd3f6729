"""The process engine: trust, environment, paths and records."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from fumehood.core.errors import InfraError, InputError
from fumehood.engines.engine import (
    AgentKind,
    AgentSource,
    Box,
    BoxSpec,
    EngineOptions,
    Isolation,
    Mount,
    Orphan,
    OrphanKind,
)
from fumehood.engines.ownership import RUN
from fumehood.engines.process import ProcessEngine
from fumehood.engines.records import SessionRecords
from fumehood.engines.state_folder import state_folder
from tests.parts.listening import wait_until

BUILTIN = AgentSource(AgentKind.BUILTIN, "noop")


@pytest.fixture
def trusting() -> Iterator[ProcessEngine]:
    with closing(ProcessEngine(EngineOptions(trust=True))) as engine:
        yield engine


def run(engine: ProcessEngine, spec: BoxSpec) -> str:
    box = engine.start(spec)
    assert box.wait(60_000) is not None
    output = box.close()
    return (output.stdout + output.stderr).decode()


def test_it_reports_no_isolation() -> None:
    with closing(ProcessEngine()) as engine:
        assert engine.isolation is Isolation.NONE
        assert "no isolation" in engine.check().detail


@pytest.mark.slow
def test_a_builtin_agent_imports_nothing_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("grpc", "fumehood_agent"):
        (tmp_path / f"{name}.py").write_text("print('imported from the current folder')")
    monkeypatch.chdir(tmp_path)
    with closing(ProcessEngine()) as engine:
        box = engine.start(BoxSpec(image=engine.prepare(BUILTIN), socket_dir=tmp_path))
        # It then waits for its socket.
        assert wait_until(lambda: "cygrpc" in _mapped_files(box))
        output = box.close()
    assert b"imported from the current folder" not in output.stdout + output.stderr


def _mapped_files(box: Box) -> str:
    return Path(f"/proc/{box.host_pid()}/maps").read_text(encoding="utf-8")


def test_a_module_runs_only_when_it_is_trusted(
    trusting: ProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("class Agent: pass")
    source = AgentSource(AgentKind.MODULE, "mine:Agent")
    with (
        closing(ProcessEngine()) as careful,
        pytest.raises(InputError, match="--i-trust-this-agent"),
    ):
        careful.prepare(source)
    image = trusting.prepare(source)
    printing = replace(image, command=(image.command[0], "-c", "import mine; print(mine.__file__)"))
    assert run(trusting, BoxSpec(image=printing, socket_dir=tmp_path)).strip() == str(
        tmp_path / "mine.py"
    )


@pytest.mark.parametrize("kind", [AgentKind.FOLDER, AgentKind.IMAGE])
def test_folders_and_images_are_rejected_also_when_trusted(
    trusting: ProcessEngine, kind: AgentKind
) -> None:
    with pytest.raises(InputError, match="--engine docker"):
        trusting.prepare(AgentSource(kind, "/somewhere"))


def test_the_socket_is_named_by_a_variable(trusting: ProcessEngine, tmp_path: Path) -> None:
    image = trusting.prepare(BUILTIN)
    printing = replace(
        image, command=(image.command[0], "-c", "import os; print(os.environ['FUMEHOOD_SOCKET'])")
    )
    assert (
        run(trusting, BoxSpec(image=printing, socket_dir=tmp_path)).strip()
        == f"{tmp_path}/grpc.sock"
    )


def test_the_environment_is_minimal(
    trusting: ProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "hidden")
    image = trusting.prepare(BUILTIN)
    printing = replace(
        image, command=(image.command[0], "-c", "import os; print(sorted(os.environ))")
    )
    assert run(trusting, BoxSpec(image=printing, socket_dir=tmp_path)).strip() == str(
        ["FUMEHOOD_SOCKET", "HOME", "LANG", "PATH"]
    )


@pytest.mark.parametrize(
    ("argument", "seen"),
    [
        ("/task", "{source}"),
        ("/task/calls.json", "{source}/calls.json"),
        ("--calls=/task/calls.json", "--calls={source}/calls.json"),
        ("/task:/agent:/task/b", "{source}:/agent:{source}/b"),
        ("/tasks/calls.json", "/tasks/calls.json"),
        ("/my/task", "/my/task"),
        ("/fumehood/grpc.sock", "{socket_dir}/grpc.sock"),
    ],
)
def test_paths_of_mounts_are_replaced_by_paths_of_the_host(
    trusting: ProcessEngine, tmp_path: Path, argument: str, seen: str
) -> None:
    socket_dir, source = tmp_path / "socket_dir", tmp_path / "task"
    image = trusting.prepare(BUILTIN)
    echo = replace(image, command=(image.command[0], "-c", "import sys; print(sys.argv[1])"))
    spec = BoxSpec(
        image=echo, socket_dir=socket_dir, arguments=(argument,), mounts=(Mount(source, "/task"),)
    )
    assert run(trusting, spec).strip() == seen.format(source=source, socket_dir=socket_dir)


def test_closing_a_box_removes_its_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Other processes on this machine write records to the default folder.
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    engine = ProcessEngine(EngineOptions(trust=True))
    image = engine.prepare(BUILTIN)
    quick = replace(image, command=(image.command[0], "-c", "pass"))
    run(engine, BoxSpec(image=quick, socket_dir=tmp_path / "socket_dir"))
    engine.close()
    assert state_folder("sessions").is_relative_to(tmp_path)
    assert list(state_folder("sessions").glob("*")) == []


def test_records_that_others_can_write_are_not_used(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    (tmp_path / "1.json").write_text("{}")
    with pytest.raises(InfraError, match="other users have access"):
        SessionRecords(tmp_path).reap(lambda labels: False)
    assert (tmp_path / "1.json").exists()


def test_an_incomplete_record_is_removed(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "7.json").write_text('{"leader": 7, "lab')
    assert SessionRecords(tmp_path).reap(lambda labels: True) == 1
    assert SessionRecords(tmp_path).reap(lambda labels: True) == 0


@pytest.fixture
def sleeping() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is the leader of its session."""
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        yield process
        process.kill()


def test_process_1_of_a_lost_box_is_killed_also_outside_its_session(
    tmp_path: Path, sleeping: subprocess.Popen[bytes]
) -> None:
    records = SessionRecords(tmp_path / "sessions")
    with subprocess.Popen(["true"], start_new_session=True) as leader:
        leader.wait()
    records.write(leader.pid, {}, "a mark", sleeping.pid)
    assert len(records.lost(lambda labels: False)) == 1
    assert records.reap(lambda labels: False) == 1
    assert sleeping.wait(60) == -signal.SIGKILL


def test_a_process_that_got_the_number_of_process_1_is_not_killed(
    tmp_path: Path, sleeping: subprocess.Popen[bytes]
) -> None:
    records = SessionRecords(tmp_path / "sessions")
    record = records.write(sleeping.pid, {}, "a mark", sleeping.pid)
    fields = json.loads(record.read_text())
    fields |= {"leader_start": 1, "first_start": fields["first_start"] - 1}
    record.write_text(json.dumps(fields))
    assert records.reap(lambda labels: False) == 1
    sleeping.terminate()
    assert sleeping.wait(60) == -signal.SIGTERM


def test_a_gone_session_can_be_removed_again(tmp_path: Path) -> None:
    orphan = Orphan(OrphanKind.PROCESSES, "7", "a run")
    SessionRecords(tmp_path).remove(orphan)


def test_a_record_of_another_run_is_kept(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    records = SessionRecords(tmp_path)
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as child:
        file = records.write(child.pid, {RUN: "new"})
        records.remove(Orphan(OrphanKind.PROCESSES, str(child.pid), "old"))
        assert (file.exists(), child.poll()) == (True, None)
        records.remove(Orphan(OrphanKind.PROCESSES, str(child.pid), "new"))
        assert child.wait(10) == -signal.SIGKILL
        assert not file.exists()
