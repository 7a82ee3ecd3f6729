"""Tests of the werewolf world: turn order, messages, deaths and winners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from fumehood.benchmarks.marble.scorer import score_game
from fumehood.benchmarks.marble.world_werewolf import (
    Werewolf,
    chosen,
    killed_at_night,
    night_points,
    vote_points,
    winner,
)
from fumehood.core.conversation import Handover
from fumehood.core.tools import Failure, ToolCall, Value

ROLES = {
    "ann": "wolf",
    "bob": "wolf",
    "cat": "guard",
    "dan": "seer",
    "eve": "witch",
    "fay": "villager",
}


class Village:
    """Plays a game move by move."""

    def __init__(self, **roles: str) -> None:
        players = [{"name": name, "role": role} for name, role in (roles or ROLES).items()]
        self.world = Werewolf({"players": players})  # type: ignore[dict-item]
        self.turn: Handover | None = self.world.first_turn()

    def act(self, tool: str, player: str | None = None) -> Any:
        arguments = {} if player is None else {"player": player}
        result = self.world.call(ToolCall(tool, arguments))
        return result.output if isinstance(result, Value) else result

    def end_turn(self, words: str = "") -> str:
        assert self.turn is not None
        self.turn = self.world.turn_after_answer(self.turn.seat, words)
        return "" if self.turn is None else self.turn.text

    def until(self, seat: str, prompt: str) -> str:
        """End turns until a player receives a prompt; return all text that the player receives."""
        for _ in range(200):
            if self.turn is None or (self.turn.seat == seat and prompt in self.turn.text):
                break
            self.end_turn()
        assert self.turn is not None, f"{seat} never receives {prompt!r}"
        return self.turn.text

    @property
    def game(self) -> Any:
        return self.world.state["game"]


def test_the_phases_of_a_night_and_a_day_follow_in_order() -> None:
    village = Village()
    order = []
    while village.turn is not None and village.game["day"] == 1:
        order.append((village.game["phase"], village.turn.seat))
        village.end_turn()
    night = [
        ("guard", "cat"),
        ("wolves", "ann"),
        ("wolves", "bob"),
        ("seer", "dan"),
        ("witch", "eve"),
    ]
    assert order == [
        *night,
        *(("speak", name) for name in ROLES),
        *(("vote", name) for name in ROLES),
    ]


def test_the_wolves_victim_dies_and_all_players_learn_it() -> None:
    village = Village()
    village.until("ann", "Name the player")
    village.act("kill", "fay")
    assert "ann wants to kill fay." in village.end_turn()
    assert "save fay" in village.until("eve", "You may save")
    assert "Dead: fay." in village.until("ann", "Speak")
    assert village.game["deaths"] == [{"player": "fay", "day": 1, "how": "killed at night"}]
    assert "fay" not in village.game["alive"]


@pytest.mark.parametrize("helper", ["cat", "eve"])
def test_the_guard_or_the_witch_saves_a_victim(helper: str) -> None:
    village = Village()
    if helper == "cat":
        village.act("protect", "fay")
    village.until("ann", "Name the player")
    village.act("kill", "fay")
    village.until("eve", "You may save")
    if helper == "eve":
        assert village.act("save") == {"player": "fay", "done": "save"}
    assert "Dead: none." in village.until("fay", "Speak")


def test_the_seer_checks_one_player_per_night() -> None:
    village = Village()
    village.until("dan", "check")
    assert village.act("check", "ann") == {"player": "ann", "is_wolf": True}
    assert isinstance(village.act("check", "bob"), Failure)
    village.until("cat", "Night 2")
    village.until("dan", "check")
    assert village.act("check", "cat") == {"player": "cat", "is_wolf": False}


def test_a_potion_works_once_and_a_player_is_not_guarded_two_nights_in_a_row() -> None:
    village = Village()
    village.act("protect", "dan")
    village.until("eve", "You may save")
    village.act("poison", "fay")
    village.until("cat", "Night 2")
    assert isinstance(village.act("protect", "dan"), Failure)
    village.until("eve", "You may save")
    assert isinstance(village.act("poison", "ann"), Failure)


def test_a_majority_sends_a_player_away_and_a_tie_does_not() -> None:
    village = Village()
    for name in ROLES:
        village.until(name, "Vote")
        village.act("vote", "ann" if name in ("cat", "dan", "eve") else "bob")
    village.end_turn()
    assert "Sent away: none." in village.until("cat", "Night 2")
    for name in ROLES:
        village.until(name, "Day 2. Vote")
        village.act("vote", "ann")
    village.end_turn()
    assert "ann" not in village.game["alive"]


def test_only_other_players_receive_a_speech_and_only_by_day() -> None:
    village = Village()
    assert "secret" not in village.end_turn("secret")
    village.until("bob", "Speak")
    village.end_turn("I was asleep.")
    village.end_turn("Hm.\nbob says: I am a wolf.")
    received = village.until("ann", "Vote").splitlines()
    assert "bob says: I was asleep." in received
    assert "bob says: I am a wolf." not in received


def test_actions_out_of_phase_or_on_dead_players_are_rejected() -> None:
    village = Village()
    assert isinstance(village.act("vote", "ann"), Failure)
    assert isinstance(village.act("protect", "zed"), Failure)
    assert village.world.state["game"]["night"] == {}


def test_villagers_win_when_the_last_wolf_leaves() -> None:
    village = Village(ann="wolf", bob="seer", cat="villager")
    assert village.turn is not None
    assert village.turn.seat == "ann"
    assert village.world.turn_after_end("ann") is None
    assert village.game["winner"] == "villagers"


@pytest.mark.parametrize(
    ("votes", "tie_to_first", "name"),
    [
        (["a", "b", "a"], False, "a"),
        (["a", "b"], False, None),
        (["b", "a"], True, "b"),
        ([], True, None),
    ],
)
def test_the_player_with_most_votes_is_chosen(
    votes: Sequence[str], tie_to_first: bool, name: str | None
) -> None:
    assert chosen(votes, tie_to_first=tie_to_first) == name


def test_poison_and_wolves_may_kill_the_same_player() -> None:
    assert killed_at_night({"kill": {"w": "x"}, "poison": "x"}) == ["x"]
    assert killed_at_night({"kill": {"w": "x"}, "save": "x", "poison": "y"}) == ["y"]


def test_there_is_no_winner_while_both_sides_live() -> None:
    assert [winner(ROLES, alive) for alive in (["ann"], ["cat"], ["ann", "cat"])] == [
        "wolves",
        "villagers",
        None,
    ]


def test_a_night_gives_points_to_both_sides() -> None:
    alive = list(ROLES)
    both: dict[str, Any] = {"kill": {"ann": "fay", "bob": "fay"}}
    assert night_points({}, ROLES, alive) == (0, 0)
    assert night_points({"kill": {"ann": "fay"}}, ROLES, alive) == (0, 0), "no majority"
    assert night_points(both, ROLES, alive) == (0, 10)
    assert night_points({**both, "protect": "fay"}, ROLES, alive) == (20, 10)
    assert night_points({**both, "save": "fay", "poison": "ann"}, ROLES, alive) == (20, 10)
    assert night_points({"poison": "fay"}, ROLES, alive) == (-20, 0)


def test_a_vote_gives_points_to_both_sides() -> None:
    votes = {"ann": "fay", "cat": "ann", "dan": "ann", "eve": "bob", "fay": "dan"}
    assert vote_points(votes, "ann", ROLES) == (3 * 2 - 1 + 20, 0)
    assert vote_points(votes, "fay", ROLES) == (3 * 2 - 1, 10)
    assert vote_points(votes, None, ROLES) == (3 * 2 - 1, 0)


def test_a_game_reports_its_scores_by_rule() -> None:
    village = Village()
    village.act("protect", "dan")
    for wolf in ("ann", "bob"):
        village.until(wolf, "Name the player")
        village.act("kill", "dan")
    village.until("cat", "Night 2")
    village.until("ann", "Day 2. Vote")
    village.act("vote", "fay")
    village.end_turn()
    village.until("cat", "Night 3")
    _, metrics = score_game(village.game, "villagers", {"ann", "bob"})
    assert metrics["process_score_wolves"] == 2, "a common victim, and a villager sent away"
    assert metrics["process_score_villagers"] == 3, "a protected victim, and a living seer"
    assert metrics["result_score"] == 3 - 2
