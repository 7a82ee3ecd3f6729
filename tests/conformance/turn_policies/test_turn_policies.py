"""Requirements of every turn policy."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.core.conversation import Handover, TurnPolicy
from fumehood.core.errors import SpecError
from fumehood.core.json_values import JsonObject
from fumehood.turn_policies.registry import TURN_POLICIES

SEATS = ("lead", "scout")
SETTINGS: dict[str, JsonObject] = {
    "dialogue": {
        "first": "scout",
        "opening": "Go.",
        "stop": {"scout": ["ENOUGH"]},
        "turns_max": 12,
    },
    "graph": {"edges": [["lead", "scout"]], "first": "scout", "opening": "Go.", "turns_max": 12},
    "round": {"rounds": 6, "opening": "Go.", "stop": "ENOUGH"},
    "supervisor": {"head": "lead", "opening": "Go.", "turns_max": 12},
    "tree": {"parents": {"scout": "lead"}, "opening": "Go.", "turns_max": 12},
}
TURNS_MAX = 12
WORDS = st.sampled_from(("yes", "", "@scout: go on", "@unknown x", "ENOUGH", "@scout")) | st.text(
    max_size=20
)
Make = Callable[[], TurnPolicy]


@pytest.fixture(scope="module", params=sorted(TURN_POLICIES))
def make(request: pytest.FixtureRequest) -> Make:
    """Every rule of the table, made anew on each call."""
    name: str = request.param
    return lambda: TURN_POLICIES.load(name)(dict(SETTINGS[name]), SEATS)


def played(turn_policy: TurnPolicy, words: list[tuple[str, bool]]) -> list[Handover]:
    """Return the turns of a conversation with these texts."""
    turn: Handover | None = turn_policy.first_turn()
    seen = []
    for text, leaves in words:
        if turn is None:
            break
        seen.append(turn)
        turn = (
            turn_policy.turn_after_end(turn.seat)
            if leaves
            else turn_policy.turn_after_answer(turn.seat, text)
        )
    return seen


TALK = st.lists(st.tuples(WORDS, st.just(False)), max_size=40)
TALK_WITH_LEAVING = st.lists(st.tuples(WORDS, st.booleans()), max_size=40)


@given(words=TALK)
def test_equal_messages_give_equal_conversations(make: Make, words: list[tuple[str, bool]]) -> None:
    assert played(make(), words) == played(make(), words)


@given(words=TALK)
def test_every_conversation_ends(make: Make, words: list[tuple[str, bool]]) -> None:
    assert len(played(make(), words)) <= TURNS_MAX


@given(words=TALK_WITH_LEAVING)
def test_only_seats_that_have_not_left_get_a_turn(
    make: Make, words: list[tuple[str, bool]]
) -> None:
    gone: set[str] = set()
    for turn, (_, leaves) in zip(played(make(), words), words, strict=False):
        assert turn.seat in SEATS
        assert turn.seat not in gone
        if leaves:
            gone.add(turn.seat)


def test_the_first_message_is_the_opening(make: Make) -> None:
    assert make().first_turn().text == "Go."


@pytest.mark.parametrize("name", sorted(TURN_POLICIES))
def test_an_unknown_setting_is_named(name: str) -> None:
    with pytest.raises(SpecError, match=r"settings\.colour"):
        TURN_POLICIES.load(name)({**SETTINGS[name], "colour": 1}, SEATS)
