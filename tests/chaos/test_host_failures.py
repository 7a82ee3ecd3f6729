"""A host that fails costs no result: one clear line, the right status, nothing left, resumable."""

from __future__ import annotations

import resource

import pytest

from tests.chaos.host_failures import FailingRun, Failure, failures, run_with_failure
from tests.chaos.workspace import workspace

pytestmark = pytest.mark.slow

SEEDS = (1, pytest.param(2, marks=pytest.mark.release))
"""``make chaos`` takes more."""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("failure", failures(), ids=lambda failure: failure.__name__)
def test_a_run_survives_a_failure_of_the_host(failure: Failure, seed: int) -> None:
    run_with_failure(failure, seed)


@pytest.mark.bubblewrap
def test_a_box_that_may_not_open_its_files_is_no_crash_of_the_agent() -> None:
    with workspace() as space:
        run = FailingRun(space, "bubblewrap")
        with run.start() as command:
            run.wait_for_rows(command)
            resource.prlimit(command.pid, resource.RLIMIT_NOFILE, (256, 256))
            status = command.wait(120)
            run.check_failure(command.output(), status, (0, 3))
        run.check_resumed()
