"""A card game of two teams of four fish. A baseline or a second seat plays the other team."""

from __future__ import annotations

from typing import Any

from fumehood.benchmarks.cardgame.rules import (
    ACTIVE,
    BASELINES,
    INFIGHT,
    KINDS,
    NORMAL,
    Baseline,
    Battle,
    living,
    new_team,
    position_of,
)
from fumehood.core.conversation import Handover
from fumehood.core.errors import SpecError
from fumehood.core.json_values import JsonObject
from fumehood.core.tools import Failure, ToolCall, ToolResult, ToolSpec, Value
from fumehood.worlds.schema import reject, tool

AGENT, OPPONENT = "agent", "opponent"
TRIES_MAX = 5
"""Invalid actions of a turn; the last one loses the game."""
_TOOLS = (
    tool(
        "guess",
        "Guess the kind of a living enemy fish, once per turn and before you act.",
        position="integer",
        kind="string",
    ),
    tool(
        "act",
        "Let your living fish of this kind act, once per turn. action is normal or active, and "
        "target is a position, from 0.",
        kind="string",
        action="string",
        target="integer",
    ),
)


class CardGame:
    """A game; it is its own turn policy.

    State: ``opponent`` (a baseline or ``seat``), ``first`` (whether the agent's side begins),
    ``seed`` and ``kinds`` (the kinds of both teams by position). Later also ``game``. The sides are
    numbered in the order of their turns.
    """

    toolset_id = "card_game_v1"

    def __init__(self, state: JsonObject) -> None:
        """Take over ``state``.

        Raises:
            SpecError: the opponent is unknown, the seed is not an integer, or a team has other
                kinds.
        """
        opponent, seed = state.get("opponent", "seat"), state.get("seed", 0)
        if opponent not in (*BASELINES, "seat"):
            raise SpecError("initial_state.opponent", f"must be {', '.join(BASELINES)} or seat")
        if not isinstance(seed, int):
            raise SpecError("initial_state.seed", "must be an integer")
        self._kinds: Any = state.get("kinds", [[*KINDS], [*KINDS]])
        if (
            not isinstance(self._kinds, list)
            or [sorted(map(str, team)) if isinstance(team, list) else team for team in self._kinds]
            != [sorted(KINDS)] * 2
        ):
            raise SpecError(
                "initial_state.kinds", f"must be two lists, each with {', '.join(KINDS)}"
            )
        self._baseline = Baseline(opponent, seed) if opponent in BASELINES else None
        self._agents_side = 0 if state.get("first", True) else 1
        self.state: dict[str, Any] = state
        self.revision = 0

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the two actions of a turn."""
        return _TOOLS

    def call(self, call: ToolCall) -> ToolResult:
        """Carry out a guess or an action of the side that has the turn."""
        game = self.state.get("game")
        if game is None or game["winner"] is not None:
            return reject("over", "The game is over.")
        if game["acted"]:
            return reject("not_now", "You have acted. Submit to end your turn.")
        if call.tool_name == "guess":
            return self._guess(game, call.arguments["position"], call.arguments["kind"])
        kind, action, target = (call.arguments[name] for name in ("kind", "action", "target"))
        result = self._act(game, kind, action, target)
        if isinstance(result, Failure):
            game["tries"] += 1
            self.revision += 1
            if game["tries"] >= TRIES_MAX:
                self._forfeit(game)
        return result

    def _guess(self, game: dict[str, Any], position: Any, kind: Any) -> ToolResult:
        enemies = game["teams"][1 - game["side"]]
        if game["guessed"]:
            return reject("not_now", "You have guessed in this turn.")
        if position not in living(enemies) or enemies[position]["known"]:
            return reject("invalid_target", "Guess the kind of a living fish that is unknown.")
        if kind not in KINDS:
            return reject("invalid_kind", f"The kind must be one of {', '.join(KINDS)}.")
        return Value({"right": self._make_guess(game, position, kind)})

    def _make_guess(self, game: dict[str, Any], position: int, kind: str) -> bool:
        battle = Battle(game["teams"])
        is_right = battle.guess(game["side"], position, kind)
        game["guessed"] = True
        game["news"].append(f"The enemy guessed {kind} at {position}: {_word(is_right)}.")
        game["winner"] = battle.winner(game["side"], game["turns"])
        self.revision += 1
        return is_right

    def _act(self, game: dict[str, Any], kind: Any, action: Any, target: Any) -> ToolResult:
        team, enemies = game["teams"][game["side"]], game["teams"][1 - game["side"]]
        at = position_of(kind, team)
        if at is None:
            return reject("invalid_fish", "Choose one of your living fish by its kind.")
        if action not in (NORMAL, ACTIVE):
            return reject("invalid_action", "The action must be normal or active.")
        if action == NORMAL:
            targets = living(enemies)
        elif kind in INFIGHT:
            targets = [position for position in living(team) if position != at]
        else:
            targets = [target]
        if target not in targets:
            return reject("invalid_target", "The target must be a living fish that can be chosen.")
        damage, hit, passives = self._make_action(game, at, action, target)
        return Value({"damage": damage, "targets": [*hit], "passive": [*passives]})

    def _make_action(
        self, game: dict[str, Any], at: int, action: str, target: int
    ) -> tuple[int, list[int], list[str]]:
        battle, side = Battle(game["teams"]), game["side"]
        damage, hit = battle.act(side, at, action, target)
        passives = [
            f"{name} of {'enemy ' if owner != side else 'own '}{position}"
            for owner, position, name in battle.passives
        ]
        game["turns"] += 1
        game["acted"], game["last"][side] = True, at
        game["winner"] = battle.winner(side, game["turns"])
        shared = game["teams"][side][at]["kind"] in INFIGHT and action == ACTIVE
        whom = "its team-mate at" if shared else "your"
        game["news"].append(
            f"The enemy's fish at {at} used {action}: {damage} damage to {whom} "
            f"{', '.join(map(str, hit))}."
        )
        self.revision += 1
        return damage, hit, passives

    def first_turn(self) -> Handover:
        """Return the first turn of the agent, or of the seat ``opponent``."""
        self.state["game"] = {
            **{"teams": [*map(new_team, self._kinds)], "side": 0, "turns": 0, "last": [None, None]},
            **{"winner": None, "tries": 0, "guessed": False, "acted": False, "news": []},
        }
        self.revision += 1
        return self._next(self.state["game"]) or Handover(AGENT, "")

    def turn_after_answer(self, seat: str, text: str) -> Handover | None:
        """Return the next turn; None when the game is over. A turn without an action loses."""
        game = self.state["game"]
        self.revision += 1
        if game["winner"] is None and not game["acted"]:
            self._forfeit(game)
        if game["winner"] is not None:
            return None
        self._pass(game)
        return self._next(game)

    def turn_after_end(self, seat: str) -> Handover | None:
        """End the game, which needs both sides; the side that left has lost."""
        game = self.state["game"]
        if game["winner"] is None:
            self._forfeit(game)
        self.revision += 1
        return None

    def _pass(self, game: dict[str, Any]) -> None:
        game.update(side=1 - game["side"], tries=0, guessed=False, acted=False)

    def _forfeit(self, game: dict[str, Any]) -> None:
        game["winner"], game["forfeited"] = 1 - game["side"], True

    def _next(self, game: dict[str, Any]) -> Handover | None:
        """Return the turn of the seat that is next, after the turn of a baseline."""
        if game["side"] != self._agents_side and self._baseline is not None:
            game["news"] = []
            self._play_baseline(game, self._baseline)
            if game["winner"] is not None:
                return None
            self._pass(game)
        news, game["news"] = game["news"], []
        seat = AGENT if game["side"] == self._agents_side else OPPONENT
        return Handover(seat, "\n".join([*news, *_board(game)]))

    def _play_baseline(self, game: dict[str, Any], baseline: Baseline) -> None:
        side = game["side"]
        team, enemies = game["teams"][side], game["teams"][1 - side]
        guess = baseline.guess(enemies)
        if guess is not None:
            self._make_guess(game, *guess)
        if game["winner"] is None:
            self._make_action(game, *baseline.act(team, enemies, game["last"][1 - side]))


def _board(game: dict[str, Any]) -> list[str]:
    own, enemies = game["teams"][game["side"]], game["teams"][1 - game["side"]]
    return [
        "Your fish (position, kind, health, attack, whether the enemy knows it):",
        *(
            f"{at}, {fish['kind']}, {max(fish['hp'], 0)}, {fish['attack']}, {_word(fish['known'])}"
            for at, fish in enumerate(own)
        ),
        "Enemy fish (position, kind, health):",
        *(
            f"{at}, {fish['kind'] if fish['known'] else 'unknown'}, {max(fish['hp'], 0)}"
            for at, fish in enumerate(enemies)
        ),
    ]


def _word(is_so: bool) -> str:
    return "yes" if is_so else "no"
