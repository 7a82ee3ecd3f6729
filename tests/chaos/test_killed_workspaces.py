"""Kills of any part of a run with workspaces lose nothing, change no verdict and leave nothing."""

from __future__ import annotations

import os

import pytest

from tests.chaos.workspace import workspace
from tests.chaos.workspace_kills import KILLS, run_workspaces_with_kills

AT_LEAST = int(os.environ.get("FUMEHOOD_WORKSPACE_KILLS", "6"))
"""``make chaos`` kills a hundred times."""


@pytest.mark.release
@pytest.mark.docker
@pytest.mark.image
def test_killed_parts_of_workspaces_lose_nothing_and_leave_nothing() -> None:
    with workspace() as space:
        tasks = ("fix-the-average", "requests-per-hour", "share-the-folder")
        result = run_workspaces_with_kills(space, AT_LEAST, seed=1, tasks=tasks, per_run=3)
    assert result.done.total() == AT_LEAST
    assert set(result.done) <= set(KILLS)
    assert result.wrong == []
    assert result.left == []
