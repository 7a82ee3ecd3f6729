"""The plan of a run: the order of its episodes, their seeds, and the moves of each seat."""

from __future__ import annotations

from fumehood.core.gold import Gold
from fumehood.core.ledger import BudgetKind
from fumehood.core.task import Case, Suite
from fumehood.orchestrator.box_plans import moves_of
from fumehood.orchestrator.plan import episode_seed, plan_episodes
from tests.parts.specs import ACCOUNTS, episode_spec
from tests.parts.tasks import crud_task

SUITE = Suite(
    "s", (Case(crud_task("a"), Gold("native", ())), Case(crud_task("b"), Gold("native", ())))
)


def test_episodes_are_ordered_by_task_then_trial_then_agent() -> None:
    planned = plan_episodes(SUITE, ["x", "y"], trials=2, seed=0)
    assert (
        " ".join(str(episode.name) for episode in planned)
        == "x/a/0 y/a/0 x/a/1 y/a/1 x/b/0 y/b/0 x/b/1 y/b/1"
    )


def test_agents_share_seeds_and_trials_do_not() -> None:
    seeds = {
        (episode.agent, episode.name.task, episode.trial): episode.seed
        for episode in plan_episodes(SUITE, ["x", "y"], 3, 9)
    }
    assert all(
        seeds["x", task, trial] == seeds["y", task, trial] for task in "ab" for trial in range(3)
    )
    assert len(set(seeds.values())) == 6


def test_the_first_trial_of_run_seed_0_has_the_seed_of_its_task() -> None:
    assert episode_seed(crud_task("a", seed=62009), 0, 0) == 62009
    others = [
        episode_seed(crud_task("a", seed=62009), seed, trial)
        for seed, trial in ((0, 1), (1, 0), (1, 1))
    ]
    assert 62009 not in others
    assert len(set(others)) == 3


def test_seeds_are_stable() -> None:
    assert episode_seed(crud_task("a"), 1, 0) == 5075301571764716


def test_a_task_without_wall_time_gets_that_of_the_run() -> None:
    own, given = (
        Case(crud_task("a", seats=episode_spec(steps=3, wall_ms=10).seats), Gold("n", ())),
        Case(crud_task("b"), Gold("n", ())),
    )
    planned = plan_episodes(Suite("s", (own, given)), ["x"], 1, 0)
    specs = [episode.to_spec(700) for episode in planned]
    assert [spec.seats[0].budget[BudgetKind.WALL_MS] for spec in specs] == [10, 700]
    assert [spec.seats[0].budget[BudgetKind.STEPS] for spec in specs] == [3, 3]


def test_a_specification_has_the_fields_of_its_task_and_a_short_ascii_identifier() -> None:
    spec = next(plan_episodes(SUITE, ["team/agent:1"], 1, 0)).to_spec(1)
    assert (spec.world, spec.harness_mode, spec.seed) == ("crud", "native", 5)
    assert spec.initial_state == ACCOUNTS
    assert spec.episode_id.isascii()
    assert len(spec.episode_id) < 250


def test_moves_without_a_seat_belong_to_the_first_seat() -> None:
    moves = [{"tool_name": "look"}, {"tool_name": "ask", "seat": "user"}, {"submit": "done"}]
    assert moves_of("agent", "agent", moves) == [{"tool_name": "look"}, {"submit": "done"}]
    assert moves_of("user", "agent", moves) == [{"tool_name": "ask"}]
    assert moves_of("other", "agent", moves) == []
