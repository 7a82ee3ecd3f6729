"""Containers that end late, or while they are killed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from fumehood.core.errors import InfraError
from fumehood.engines.docker import first_process
from fumehood.engines.docker.box import DockerBox
from fumehood.engines.docker.engine import DockerEngine
from fumehood.engines.docker.first_process import FirstProcess
from fumehood.engines.docker.written import ContainerFiles
from fumehood.engines.engine import Exit, ExitReason, NotEnded, Orphan, OrphanKind


class Stuck:
    """A daemon that cannot end the processes of a container."""

    def remove(self, container: str) -> None:
        raise NotEnded(f"docker did not remove {container}")


def test_an_orphan_whose_processes_do_not_end_does_not_fail_the_next_command() -> None:
    engine = DockerEngine()
    daemon: Any = Stuck()
    engine._daemon = daemon
    assert not engine.remove(Orphan(OrphanKind.CONTAINER, "one", ""))


def test_a_first_process_that_ends_while_it_is_killed_was_not_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        # In place of the ID of a container, which the name of the control group contains.
        group = Path(f"/proc/{process.pid}/cgroup").read_text()
        first = FirstProcess(group, process.pid)
        assert first.is_found
        ended = list[int]()

        def end(handle: int) -> bool:
            ended.append(handle)
            process.kill()
            process.wait()
            return False

        monkeypatch.setattr(first_process, "_has_ended", end)
        assert not first.kill()
        assert ended
        first.close()


class Slow:
    """A daemon that needs some time to answer how a container ended."""

    def __init__(self, error: InfraError | None = None) -> None:
        self._error = error

    def first_process(self, container: str) -> int | None:
        if self._error is not None:
            raise self._error
        return None

    def host_files(self, container: str) -> ContainerFiles | None:
        self.first_process(container)
        return None

    def wait(self, container: str, timeout_s: float) -> int | None:
        return 3 if timeout_s >= 0.5 else None


class Found:
    """A first process that was found."""

    is_found = True

    def __init__(self, has_ended: bool) -> None:
        self._has_ended = has_ended

    def wait(self, timeout_ms: int) -> bool:
        return self._has_ended


def box_of(daemon: object) -> Any:
    parts: Any = (daemon, "box", "id", None, None)
    return DockerBox(*parts)


def test_a_slow_daemon_can_answer_how_a_container_ended() -> None:
    box = box_of(Slow())
    box._first = Found(has_ended=False)
    assert box.wait(50) is None
    box._first = Found(has_ended=True)
    assert box.wait(50) == Exit(3, ExitReason.EXITED)


def test_free_space_is_unknown_while_the_daemon_does_not_answer() -> None:
    assert box_of(Slow(InfraError("docker did not answer"))).free_space() is None
