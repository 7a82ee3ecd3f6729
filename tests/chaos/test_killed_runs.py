"""A run that is killed at any moment and resumed is the run that nobody killed."""

from __future__ import annotations

import pytest

from fumehood.records.run_folder import one_writer
from tests.chaos.arena import arena
from tests.chaos.kills import survive_kills

KILLS = 3
"""A hundred are made by: make chaos."""


@pytest.mark.parametrize(
    "engine", ["process", pytest.param("bubblewrap", marks=pytest.mark.bubblewrap)]
)
def test_killed_and_resumed_is_never_killed(engine: str) -> None:
    with arena() as corner:
        survival = survive_kills(corner, engine, KILLS, seed=1, tasks=8)
    assert survival.kills == KILLS


def test_two_commands_never_write_one_run() -> None:
    with arena() as corner:
        run = corner.root / "run"
        words = (str(corner.suite("s", 8)), "-a", "noop", "--engine", "process", "--out", str(run))
        corner.finish("run", *words)
        with one_writer(run):
            said = corner.finish("resume", str(run), status=2)
        assert "another command is writing" in said
        corner.finish("resume", str(run))
