"""Services and boxes that die during a run: episodes are attempted again, and no result changes."""

from __future__ import annotations

import pytest

from tests.chaos.breakages import Breakage, Breaker, kill_box, kill_container, kill_service
from tests.chaos.broken_runs import run_with_breakages
from tests.chaos.workspace import Workspace, damage_of, infra_rows_of, results_of, workspace

EPISODES = 40
"""``make chaos`` runs a thousand."""

BUBBLEWRAP = pytest.param("bubblewrap", kill_box, marks=pytest.mark.bubblewrap)
DOCKER = pytest.param("docker", kill_container, marks=[pytest.mark.docker, pytest.mark.image])


def _words(space: Workspace, engine: str, tasks: int) -> tuple[str, ...]:
    agents = ("-a", "policy_aware", "-a", "schema_repair")
    return ("run", str(space.suite("s", tasks)), *agents, "--engine", engine, "-j", "2", "--out")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "breakage"),
    [("process", kill_service), ("process", kill_box), BUBBLEWRAP, DOCKER],
)
def test_episodes_of_a_killed_part_are_attempted_again(engine: str, breakage: Breakage) -> None:
    with workspace() as space:
        words = _words(space, engine, 6 if engine == "docker" else 12)
        quiet, noisy = space.root / "quiet", space.root / "noisy"
        space.finish(*words, str(quiet))
        with (
            space.start(*words, str(noisy)) as command,
            Breaker(command, (breakage,), 5, (0.3, 0.6)) as breaker,
        ):
            assert command.wait(300) in (0, 3), command.output()
        while len(results_of(noisy)) < len(results_of(quiet)):
            space.finish("resume", str(noisy))
        assert breaker.done.total() > 0
        assert results_of(noisy) == results_of(quiet)
        assert all(row["end"]["kind"] in ("engine", "service") for row in infra_rows_of(noisy))
        assert damage_of(noisy) == []
        assert space.orphans() == []


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_a_long_run_with_breakages_has_the_same_results() -> None:
    with workspace() as space:
        result = run_with_breakages(space, "bubblewrap", EPISODES, seed=7)
    assert result.broken.total() > 0
    assert (result.lost, result.changed, result.damage, result.orphans) == (
        0,
        0,
        0,
        0,
    )
