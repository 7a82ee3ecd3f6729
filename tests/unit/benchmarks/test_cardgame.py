"""Tests of the card game. ``card_game_original.jsonl`` has games of the original's engine."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.benchmarks.cardgame.rules import (
    ACTIVE,
    BASELINES,
    EEL,
    GUESSED_KINDS,
    KINDS,
    SPRAY,
    TURNS_MAX,
    Baseline,
    Battle,
    living,
    new_team,
)
from fumehood.benchmarks.cardgame.world import OPPONENT, TRIES_MAX, CardGame
from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.core.errors import InputError, SpecError
from fumehood.core.task import Case
from tests.parts.benchmark_data import SAMPLES
from tests.unit.benchmarks.scoring import play

ORIGINAL = [
    json.loads(line)
    for line in (SAMPLES / "card_game_original.jsonl").read_text(encoding="ascii").splitlines()
]
SUBMIT: Move = {"submit": "done"}


def act(kind: str = SPRAY, action: str = ACTIVE, target: int = 0) -> Move:
    return {"tool_name": "act", "args": {"kind": kind, "action": action, "target": target}}


def guess(position: int, kind: str) -> Move:
    return {"tool_name": "guess", "args": {"position": position, "kind": kind}}


def case_of(argument: str = "std", at: int = 0) -> Case:
    """Return a game whose teams have the kinds in the order of KINDS."""
    case = load_suite(f"card-game:{argument}").cases[at]
    state = {name: value for name, value in case.task.initial_state.items() if name != "kinds"}
    return replace(case, task=replace(case.task, initial_state=state))


@pytest.mark.parametrize("game", ORIGINAL)
def test_games_end_as_in_the_original_engine(game: dict[str, Any]) -> None:
    battle, turns, winner = Battle([new_team(), new_team()]), 0, None
    for side, what, at, target in game["moves"]:
        assert winner is None
        if what == "guess":
            battle.guess(side, at, target)
        else:
            battle.act(side, at, what, target)
            turns += 1
        winner = battle.winner(side, turns)
    assert winner == game["winner"]
    fish = [[[max(each["hp"], 0), each["attack"]] for each in team] for team in battle.teams]
    assert fish == game["fish"]


@pytest.mark.parametrize(("split", "games"), [("std", 20), ("dev", 12)])
def test_the_oracle_wins_all_games_and_doing_nothing_loses_them(split: str, games: int) -> None:
    suite = load_suite(f"card-game:{split}")
    assert len(suite.cases) == games
    for case in suite.cases:
        won, lost = play(case, case.gold.oracle or ()), play(case, [])
        assert (won.success, won.metrics["forfeited"]) == (True, False)
        assert won.metrics["score"] == pytest.approx(
            0.7 + min(0.3, 0.3 * int(str(won.metrics["damage"])) / 1600)
        )
        assert (lost.success, lost.metrics["forfeited"]) == (False, True)


@pytest.mark.parametrize("split", ["std", "dev", "std:seat"])
def test_no_order_of_the_hidden_kinds_is_that_of_most_games(split: str) -> None:
    cases = load_suite(f"card-game:{split}").cases
    states: list[Any] = [case.task.initial_state for case in cases]
    orders = Counter(tuple(team) for state in states for team in state["kinds"])
    assert max(orders.values()) <= len(states) / 3


@pytest.mark.parametrize("kinds", [1, [["spray"]], [[*KINDS], [SPRAY] * 4]])
def test_teams_of_other_kinds_are_refused(kinds: Any) -> None:
    with pytest.raises(SpecError, match="must be two lists"):
        CardGame({"opponent": BASELINES[0], "seed": 1, "kinds": kinds})


def test_a_seed_decides_what_a_baseline_does() -> None:
    def moves(name: str, seed: int) -> list[Any]:
        player, team, enemies = Baseline(name, seed), new_team(), new_team()
        return [
            each for _ in range(9) for each in (player.guess(enemies), player.act(team, enemies, 2))
        ]

    for name in BASELINES:
        assert moves(name, 1) == moves(name, 1) != moves(name, 2)


@pytest.mark.slow
@given(st.integers(0, 10**6), st.sampled_from(BASELINES), st.data())
def test_a_baseline_makes_valid_moves_only(seed: int, name: str, data: st.DataObject) -> None:
    teams = [new_team(), new_team()]
    for fish in teams[0] + teams[1]:
        fish["hp"] = data.draw(st.integers(1, 400))
        fish["known"] = data.draw(st.booleans())
    for team in teams:
        for at in data.draw(st.sets(st.integers(0, 3), max_size=3)):
            team[at].update(hp=0, dead=True)
    player = Baseline(name, seed)
    guessed = player.guess(teams[1])
    if guessed:
        assert guessed[0] in living(teams[1])
        assert not teams[1][guessed[0]]["known"]
        assert guessed[1] in GUESSED_KINDS
    at, action, target = player.act(teams[0], teams[1], None)
    assert at in living(teams[0])
    if action != ACTIVE:
        assert target in living(teams[1])
    elif KINDS[at] not in (SPRAY, EEL):
        assert target in living(teams[0])
        assert target != at


def test_a_right_guess_costs_each_enemy_fish_50_and_a_wrong_one_nothing() -> None:
    evidence = play_in_memory(
        case_of().task, [guess(1, "eel"), guess(1, "flame"), act(), SUBMIT, guess(1, "flame")]
    )
    first, second, _, third = evidence.calls
    assert (first.output, third.output) == ({"right": False}, {"right": True})
    assert second.failure is not None
    assert second.failure.code == "not_now"


def test_invalid_actions_are_rejected_and_the_fifth_of_a_turn_loses() -> None:
    wrong = [act("octopus"), act(action="fly"), act("flame", ACTIVE, 1), act("eel", "normal", 7)]
    evidence = play_in_memory(case_of().task, [*wrong, act(), act()])
    codes = [call.failure.code if call.failure else None for call in evidence.calls]
    assert codes == ["invalid_fish", "invalid_action", *["invalid_target"] * 2, None, "not_now"]
    lost = play(case_of(), [*wrong, act("octopus"), act()])
    assert (lost.success, lost.metrics["forfeited"], TRIES_MAX) == (False, True, 5)


def test_both_sides_can_be_seats_and_the_second_receives_the_moves_of_the_first() -> None:
    case = case_of("dev:seat")
    moves: list[Move] = [
        guess(0, "spray"),
        act(),
        SUBMIT,
        {**act("flame", ACTIVE, 0), "seat": OPPONENT},
        {**SUBMIT, "seat": OPPONENT},
        act(),
        SUBMIT,
        {**SUBMIT, "seat": OPPONENT},
    ]
    score = play(case, moves)
    assert score.success is True
    assert score.metrics["game_turns"] == 3
    assert play(case_of("dev:seat", at=3), [{**SUBMIT, "seat": OPPONENT}]).success is True


def test_a_game_ends_after_the_last_turn_by_living_fish_and_health() -> None:
    teams = [new_team(), new_team()]
    assert Battle(teams).winner(0, TURNS_MAX - 1) is None
    assert Battle(teams).winner(0, TURNS_MAX) == 1
    teams[1][0]["hp"] = 399
    assert Battle(teams).winner(1, TURNS_MAX) == 0
    teams[0][0].update(hp=0, dead=True)
    assert Battle(teams).winner(1, TURNS_MAX) == 1


def test_an_unknown_split_is_refused() -> None:
    for argument in ("test", "std:team"):
        with pytest.raises(InputError, match=rf"use card-game\[:std .*not '{argument}'"):
            load_suite(f"card-game:{argument}")
