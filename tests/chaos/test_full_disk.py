"""A disk that is full during a run stops the run with one line, and loses no episode."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.chaos.workspace import damage_of, results_of, workspace

INFRA = 3


@contextmanager
def _small_disk(at: Path) -> Iterator[None]:
    """Mount a disk of 64 KiB."""
    at.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(at)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(at)], check=True)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a disk")
def test_a_run_on_a_full_disk_can_be_resumed_when_there_is_space() -> None:
    with workspace() as space, _small_disk(space.root / "disk"):
        words = (
            "run",
            str(space.suite("s", 20)),
            "-a",
            "policy_aware",
            "--engine",
            "inline",
            "--out",
        )
        quiet, full = space.root / "quiet", space.root / "disk" / "run"
        space.finish(*words, str(quiet))
        output = space.finish(*words, str(full), status=INFRA)
        assert "cannot be written: No space left on device" in " ".join(output.split())
        assert len(results_of(full)) < len(results_of(quiet))
        # The disk is still full; another attempt does no damage.
        space.finish("resume", str(full), status=INFRA)
        subprocess.run(["mount", "-o", "remount,size=4m", str(space.root / "disk")], check=True)
        space.finish("resume", str(full))
        assert results_of(full) == results_of(quiet)
        assert damage_of(full) == []
        assert space.orphans() == []
