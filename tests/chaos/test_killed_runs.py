"""A run that is killed at any time and resumed has the results of a run without kills."""

from __future__ import annotations

import pytest

from fumehood.records.run_folder import one_writer
from tests.chaos.kills import run_with_kills
from tests.chaos.workspace import workspace

KILLS = 3
"""``make chaos`` kills a hundred times."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine",
    [
        "process",
        pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
        pytest.param("oci", marks=[pytest.mark.oci, pytest.mark.image, pytest.mark.release]),
    ],
)
def test_a_killed_and_resumed_run_has_the_same_results(engine: str) -> None:
    with workspace() as space:
        result = run_with_kills(space, engine, KILLS, seed=1, tasks=8)
    assert result.kills == KILLS


@pytest.mark.slow
def test_two_commands_never_write_one_run() -> None:
    with workspace() as space:
        run = space.root / "run"
        words = (str(space.suite("s", 8)), "-a", "noop", "--engine", "inline", "--out", str(run))
        space.finish("run", *words)
        with one_writer(run):
            output = space.finish("resume", str(run), status=2)
        assert "another command is writing" in output
        space.finish("resume", str(run))
