"""Containers that end late, or while they are killed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from fumehood.engines.docker import first_process
from fumehood.engines.docker.engine import DockerEngine
from fumehood.engines.docker.first_process import FirstProcess
from fumehood.engines.engine import NotEnded, Orphan, OrphanKind


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
