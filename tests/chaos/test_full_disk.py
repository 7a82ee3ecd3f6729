"""A disk that is full while a run is written costs a line and a failure of ours, and no episode."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.chaos.arena import arena, damage_of, story_of

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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a disk")
def test_a_run_on_a_full_disk_is_finished_when_there_is_room() -> None:
    with arena() as corner, _small_disk(corner.root / "disk"):
        words = (
            "run",
            str(corner.suite("s", 20)),
            "-a",
            "policy_aware",
            "--engine",
            "process",
            "--out",
        )
        quiet, full = corner.root / "quiet", corner.root / "disk" / "run"
        corner.finish(*words, str(quiet))
        said = corner.finish(*words, str(full), status=INFRA)
        assert "cannot be written: No space left on device" in " ".join(said.split())
        assert len(story_of(full)) < len(story_of(quiet))
        # There is still no room, and to try is harmless.
        corner.finish("resume", str(full), status=INFRA)
        subprocess.run(["mount", "-o", "remount,size=4m", str(corner.root / "disk")], check=True)
        corner.finish("resume", str(full))
        assert story_of(full) == story_of(quiet)
        assert damage_of(full) == []
        assert corner.leftovers() == []
