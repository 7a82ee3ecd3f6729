"""The game of werewolf: roles, phases, rules and messages.

One player at a time has the turn and ends it by submitting; during the day the submitted text is a
speech. A player that calls no tool in its phase takes no action. Source: the roles, phases and
winning conditions of MARBLE's werewolf environment, without its sheriff. Ties and potions follow
this module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fumehood.core.conversation import Handover, indent_continuation
from fumehood.core.errors import SpecError
from fumehood.core.json_values import JsonObject
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec, Value
from fumehood.worlds.schema import reject, tool

DAYS_MAX = 6
"""Default number of days after which the game ends without a winner."""
_TOOLS = (
    tool("protect", "Guard, at night: protect a player from the wolves.", player="string"),
    tool("kill", "Wolf, at night: name the player to kill.", player="string"),
    tool("check", "Seer, once per night: learn whether a player is a wolf.", player="string"),
    tool("save", "Witch, once per game: save the player the wolves attacked this night."),
    tool("poison", "Witch, once per game: kill a player this night.", player="string"),
    tool("vote", "In the vote: name the player to send away.", player="string"),
)
PHASE_OF = {
    "protect": "guard",
    "kill": "wolves",
    "check": "seer",
    "save": "witch",
    "poison": "witch",
    "vote": "vote",
}
ONCE = ("save", "poison")
PROMPTS = {
    "guard": "Night {day}. You may protect one player, but not the one you protected last night.",
    "wolves": "Night {day}. Name the player to kill.",
    "seer": "Night {day}. You may check one player.",
    "witch": "Night {day}. You may save {attacked} or poison a player.",
    "speak": "Day {day}. Speak to the village: all players receive the text you submit.",
    "vote": "Day {day}. Vote for the player to send away.",
}


class Werewolf:
    """One game; it is its own turn policy.

    Initial state: ``players`` (each ``name`` and ``role``) and ``days_max``. Later also ``game``:
    ``day``, ``phase``, ``queue`` (players yet to act in the phase), ``alive``, ``night``,
    ``votes``, ``used``, ``guarded``, ``news`` (by player), ``deaths``, ``speaker``, ``winner`` and
    ``tenths`` (tenths of a process point, by side).
    """

    toolset_id = "werewolf_v1"

    def __init__(self, state: JsonObject) -> None:
        """Take over ``state``.

        Raises:
            SpecError: A player lacks a unique name or a role, or ``days_max`` is not positive.
        """
        self._roles = _roles(state)
        days = state.get("days_max", DAYS_MAX)
        if not isinstance(days, int) or isinstance(days, bool) or days < 1:
            raise SpecError("initial_state.days_max", "must be an integer of at least 1")
        self._days_max = days
        self.state: dict[str, Any] = state
        self.revision = 0

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools of all roles."""
        return _TOOLS

    def call(self, call: ToolCall) -> ToolResult:
        """Carry out an action of the player whose turn it is."""
        game = self.state.get("game")
        phase = PHASE_OF[call.tool_name]
        if not isinstance(game, dict) or game["winner"] or game["phase"] != phase:
            return reject("not_now", f"{call.tool_name} is not possible in this phase.")
        player = str(call.arguments.get("player", attacked(game["night"])))
        if player not in game["alive"]:
            return reject("not_alive", f"{player} is not a living player.")
        if call.tool_name in game["used"] or (
            call.tool_name == "protect" and player == game["guarded"]
        ):
            return reject("used_up", f"{call.tool_name} cannot be repeated.")
        self.revision += 1
        return Value(self._act(game, call.tool_name, player))

    def first_turn(self) -> Handover:
        """Begin the first night and return the first player."""
        if not self._roles:
            raise SpecError("initial_state.players", "is required")
        self.state["game"] = {
            **{
                "day": 0,
                "phase": PHASES[-1],
                "queue": [],
                "alive": list(self._roles),
                "night": {},
            },
            **{
                "votes": {},
                "used": [],
                "guarded": None,
                "deaths": [],
                "winner": None,
                "speaker": None,
            },
            "news": {name: [] for name in self._roles},
            "tenths": dict.fromkeys(SIDES, 0),
        }
        handover = self._advance(self.state["game"])
        assert handover is not None, "a new game has a first player"
        return handover

    def turn_after_answer(self, seat: str, text: str) -> Handover | None:
        """Pass a speech to all players and return the next player."""
        game = self.state["game"]
        if game["phase"] == "speak" and text:
            self._announce(game, indent_continuation(f"{seat} says: {text}"), but=seat)
        return self._advance(game)

    def turn_after_end(self, seat: str) -> Handover | None:
        """Remove the player from the game and return the next player."""
        game = self.state["game"]
        self._remove(game, seat, "left the village")
        game["winner"] = game["winner"] or winner(self._roles, game["alive"])
        return self._advance(game)

    def _act(self, game: dict[str, Any], what: str, player: str) -> JsonObject:
        speaker = game["speaker"]
        if what == "vote":
            game["votes"][speaker] = player
        elif what == "kill":
            game["night"].setdefault("kill", {})[speaker] = player
            for other in actors("wolves", self._roles, game["alive"]):
                if other != speaker:
                    game["news"][other].append(f"{speaker} wants to kill {player}.")
        elif what == "check":
            game["used"].append("check")
            return {"player": player, "is_wolf": self._roles[player] == WOLF}
        else:
            game["night"][what] = player
            game["used"] += [what] if what in ONCE else []
        return {"player": player, "done": what}

    def _advance(self, game: dict[str, Any]) -> Handover | None:
        self.revision += 1
        while not game["queue"] and not game["winner"]:
            self._end_phase(game)
            if game["day"] > self._days_max:
                game["day"] = self._days_max
                return None
        if game["winner"]:
            return None
        seat = game["speaker"] = game["queue"].pop(0)
        news, game["news"][seat] = game["news"][seat], []
        victim = attacked(game["night"]) or "no player (none was attacked)"
        prompt = PROMPTS[game["phase"]].format(day=game["day"], attacked=victim)
        return Handover(seat, "\n".join([*news, prompt]))

    def _end_phase(self, game: dict[str, Any]) -> None:
        if game["phase"] == LAST_OF_NIGHT:
            self._end_night(game)
        elif game["phase"] == "vote":
            self._end_day(game)
        if game["winner"]:
            return
        game["phase"] = PHASES[(PHASES.index(game["phase"]) + 1) % len(PHASES)]
        game["queue"] = actors(game["phase"], self._roles, game["alive"])

    def _end_night(self, game: dict[str, Any]) -> None:
        dead = killed_at_night(game["night"])
        self._add_points(game, night_points(game["night"], self._roles, game["alive"]))
        self._announce(game, f"Morning {game['day']}. Dead: {', '.join(dead) or 'none'}.")
        for name in dead:
            self._remove(game, name, "killed at night")
        game["winner"] = winner(self._roles, game["alive"])
        if game["day"] > 1 and not game["winner"] and actors("seer", self._roles, game["alive"]):
            self._add_points(game, (10, 0))

    def _end_day(self, game: dict[str, Any]) -> None:
        if game["day"]:
            gone = chosen(game["votes"].values(), tie_to_first=False)
            self._add_points(game, vote_points(game["votes"], gone, self._roles))
            votes = ", ".join(f"{by} for {name}" for by, name in game["votes"].items())
            self._announce(game, f"Votes: {votes or 'none'}. Sent away: {gone or 'none'}.")
            if gone is not None:
                self._remove(game, gone, "sent away")
            game["winner"] = winner(self._roles, game["alive"])
        guarded = game["night"].get("protect")
        used = [action for action in game["used"] if action in ONCE]
        game |= {"day": game["day"] + 1, "night": {}, "votes": {}, "used": used, "guarded": guarded}

    def _add_points(self, game: dict[str, Any], tenths: tuple[int, int]) -> None:
        for side, amount in zip(SIDES, tenths, strict=True):
            game["tenths"][side] += amount

    def _announce(self, game: dict[str, Any], text: str, but: str = "") -> None:
        for name in game["alive"]:
            if name != but:
                game["news"][name].append(text)

    def _remove(self, game: dict[str, Any], name: str, how: str) -> None:
        game["alive"].remove(name)
        game["queue"] = [player for player in game["queue"] if player != name]
        game["deaths"].append({"player": name, "day": game["day"], "how": how})


def _roles(state: JsonObject) -> dict[str, str]:
    players = state.get("players", [])
    if not isinstance(players, list):
        raise SpecError("initial_state.players", "must be a list")
    roles: dict[str, str] = {}
    for index, player in enumerate(players):
        match player:
            case {"name": str(name), "role": str(role)} if name not in roles and role in ROLES:
                roles[name] = role
            case _:
                raise SpecError(
                    f"initial_state.players[{index}]",
                    f"must have a name and one of {', '.join(ROLES)}",
                )
    return roles


WOLF = "wolf"
ROLES = (WOLF, "villager", "seer", "witch", "guard")
PHASES = ("guard", "wolves", "seer", "witch", "speak", "vote")
OF_ROLE = {"guard": "guard", "wolves": WOLF, "seer": "seer", "witch": "witch"}
"""Night phase → the role that acts in it. In day phases all living players act."""
LAST_OF_NIGHT = "witch"


def actors(phase: str, roles: Mapping[str, str], alive: Sequence[str]) -> list[str]:
    """Return the players that act in a phase, in order."""
    role = OF_ROLE.get(phase)
    return [name for name in alive if role is None or roles[name] == role]


def chosen(votes: Iterable[str], *, tie_to_first: bool) -> str | None:
    """Return the player with most votes; on a tie the first one named, or None."""
    counts = Counter(votes)
    most = max(counts.values(), default=0)
    first = [name for name, count in counts.items() if count == most]
    return first[0] if len(first) == 1 or (first and tie_to_first) else None


def killed_at_night(night: Mapping[str, Any]) -> list[str]:
    """Return the players that die in a night.

    Args:
        night: The actions taken: ``kill`` (wolf → victim), ``protect``, ``save`` and ``poison``.
    """
    victim = attacked(night)
    dead = [] if victim is None or victim == night.get("protect") or night.get("save") else [victim]
    poisoned = night.get("poison")
    return dead if poisoned is None or poisoned in dead else [*dead, poisoned]


def attacked(night: Mapping[str, Any]) -> str | None:
    """Return the player that most wolves named."""
    return chosen(night.get("kill", {}).values(), tie_to_first=True)


def night_points(
    night: Mapping[str, Any], roles: Mapping[str, str], alive: Sequence[str]
) -> tuple[int, int]:
    """Return the villagers' and the wolves' process points of a night, in tenths.

    Source: ``scores`` of MARBLE's werewolf environment, as in :func:`vote_points`.

    Args:
        night: The actions taken, as in :func:`killed_at_night`.
        roles: By player.
        alive: The players that lived in the night.
    """
    kills, poisoned = list(night.get("kill", {}).values()), night.get("poison")
    victim = attacked(night)
    villagers = 20 * (victim is not None and victim == night.get("protect"))
    if poisoned is not None:
        villagers += 20 if roles[poisoned] == WOLF else -20
    return villagers, 10 * (2 * kills.count(victim) > len(actors("wolves", roles, alive)))


def vote_points(
    votes: Mapping[str, str], gone: str | None, roles: Mapping[str, str]
) -> tuple[int, int]:
    """Return the villagers' and the wolves' process points of a vote, in tenths.

    Args:
        votes: Voter → player.
        gone: The player that was sent away.
        roles: By player.
    """
    villagers = sum(
        2 if roles[name] == WOLF else -1 for by, name in votes.items() if roles[by] != WOLF
    )
    if gone is None:
        return villagers, 0
    return (villagers + 20, 0) if roles[gone] == WOLF else (villagers, 10)


def winner(roles: Mapping[str, str], alive: Iterable[str]) -> str | None:
    """Return the side that has won, or None while both sides have living players."""
    sides = {roles[name] == WOLF for name in alive}
    if True not in sides:
        return "villagers"
    return None if False in sides else "wolves"


SIDES = ("villagers", "wolves")


def side_of(role: str) -> str:
    """Return the side of a role."""
    return SIDES[role == WOLF]
