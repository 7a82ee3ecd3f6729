"""Parts of the machinery that die while a run goes on: tried again, never scored, never seen in a result."""

from __future__ import annotations

import pytest

from tests.chaos.arena import Arena, arena, damage_of, infra_rows_of, story_of
from tests.chaos.broken_runs import endure
from tests.chaos.saboteur import Deed, Saboteur, kill_box, kill_container, kill_service

EPISODES = 40
"""A thousand are run by: make chaos."""

BUBBLEWRAP = pytest.param("bubblewrap", kill_box, marks=pytest.mark.bubblewrap)
DOCKER = pytest.param("docker", kill_container, marks=[pytest.mark.docker, pytest.mark.image])


def _words(corner: Arena, engine: str, tasks: int) -> tuple[str, ...]:
    agents = ("-a", "policy_aware", "-a", "schema_repair")
    return ("run", str(corner.suite("s", tasks)), *agents, "--engine", engine, "-j", "2", "--out")


@pytest.mark.parametrize(
    ("engine", "deed"),
    [("process", kill_service), ("process", kill_box), BUBBLEWRAP, DOCKER],
)
def test_what_dies_is_made_good(engine: str, deed: Deed) -> None:
    with arena() as corner:
        words = _words(corner, engine, 6 if engine == "docker" else 12)
        quiet, noisy = corner.root / "quiet", corner.root / "noisy"
        corner.finish(*words, str(quiet))
        with (
            corner.start(*words, str(noisy)) as victim,
            Saboteur(victim, (deed,), 5, (0.3, 0.6)) as saboteur,
        ):
            assert victim.wait(300) in (0, 3), victim.said()
        while len(story_of(noisy)) < len(story_of(quiet)):
            corner.finish("resume", str(noisy))
        assert saboteur.done.total() > 0
        assert story_of(noisy) == story_of(quiet)
        assert all(row["end"]["kind"] in ("engine", "service") for row in infra_rows_of(noisy))
        assert damage_of(noisy) == []
        assert corner.leftovers() == []


@pytest.mark.bubblewrap
def test_a_run_endures_breakage_everywhere() -> None:
    with arena() as corner:
        endurance = endure(corner, "bubblewrap", EPISODES, seed=7)
    assert endurance.broken.total() > 0
    assert (endurance.lost, endurance.changed, endurance.damage, endurance.leftovers) == (
        0,
        0,
        0,
        0,
    )
