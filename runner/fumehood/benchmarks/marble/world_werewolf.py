"""The game of werewolf as a world."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fumehood.core.conversation import Handover, one_voice
from fumehood.core.errors import SpecError
from fumehood.core.json_values import JsonObject
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec, Value
from fumehood.worlds.schema import refuse, tool

DAYS_MAX = 6
"""Days after which nobody has won, where the state does not say."""
_TOOLS = (
    tool("protect", "As the guard, by night: keep a player from the wolves.", player="string"),
    tool("kill", "As a wolf, by night: name whom the wolves are to kill.", player="string"),
    tool("check", "As the seer, once a night: learn whether a player is a wolf.", player="string"),
    tool("save", "As the witch, once in a game: save whom the wolves attacked this night."),
    tool("poison", "As the witch, once in a game: kill a player this night.", player="string"),
    tool("vote", "When votes are taken: name whom the village is to send away.", player="string"),
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
ASKED = {
    "guard": "Night {day}. You may protect one player, not the one of last night.",
    "wolves": "Night {day}. Name whom the wolves are to kill.",
    "seer": "Night {day}. You may check one player.",
    "witch": "Night {day}. You may save {attacked} or poison somebody.",
    "speak": "Day {day}. Speak to the village: what you submit is heard by all.",
    "vote": "Day {day}. Vote for whom the village is to send away.",
}


class Werewolf:
    """State: ``players`` (each ``name`` and ``role``) and ``days_max``; then ``game``: ``day``, ``phase``,
    ``queue`` (who is still to act in it), ``alive``, ``night``, ``votes``, ``used``, ``guarded``, ``news``
    (by player), ``deaths``, ``speaker`` and ``winner``."""

    toolset_id = "werewolf_v1"

    def __init__(self, state: JsonObject) -> None:
        """Take over ``state``.

        Raises:
            SpecError: players have no names of their own, or no roles.
        """
        self._roles = _roles(state)
        days = state.get("days_max", DAYS_MAX)
        if not isinstance(days, int) or isinstance(days, bool) or days < 1:
            raise SpecError("initial_state.days_max", "must be a whole number from 1")
        self._days_max = days
        self.state: dict[str, Any] = state
        self.revision = 0

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return what all roles together may do."""
        return _TOOLS

    def call(self, call: ToolCall) -> ToolResult:
        """Act for the player who has the floor."""
        game = self.state.get("game")
        phase = PHASE_OF[call.tool_name]
        if not isinstance(game, dict) or game["winner"] or game["phase"] != phase:
            return refuse("not_now", f"{call.tool_name} is for another time, or another role.")
        player = str(call.arguments.get("player", attacked(game["night"])))
        if player not in game["alive"]:
            return refuse("not_alive", f"{player} is nobody who is alive.")
        if call.tool_name in game["used"] or (
            call.tool_name == "protect" and player == game["guarded"]
        ):
            return refuse("used_up", f"{call.tool_name} cannot be done so again.")
        self.revision += 1
        return Value(self._done(game, call.tool_name, player))

    def open(self) -> Handover:
        """Let the first night begin."""
        if not self._roles:
            raise SpecError("initial_state.players", "must be there for a conversation")
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
        }
        handover = self._go_on(self.state["game"])
        assert handover is not None, "a game that has not begun is not over"
        return handover

    def heard(self, seat: str, text: str) -> Handover | None:
        """Let all hear a speech, and whoever is next act."""
        game = self.state["game"]
        if game["phase"] == "speak" and text:
            self._tell(game, one_voice(f"{seat} says: {text}"), but=seat)
        return self._go_on(game)

    def left(self, seat: str) -> Handover | None:
        """Go on without the player, who is dead from now on."""
        game = self.state["game"]
        self._bury(game, seat, "left the village")
        game["winner"] = game["winner"] or winner(self._roles, game["alive"])
        return self._go_on(game)

    def _done(self, game: dict[str, Any], what: str, player: str) -> JsonObject:
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

    def _go_on(self, game: dict[str, Any]) -> Handover | None:
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
        victim = attacked(game["night"]) or "nobody, for nobody was attacked,"
        asked = ASKED[game["phase"]].format(day=game["day"], attacked=victim)
        return Handover(seat, "\n".join([*news, asked]))

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
        self._tell(game, f"Morning {game['day']}. Dead: {', '.join(dead) or 'nobody'}.")
        for name in dead:
            self._bury(game, name, "killed at night")
        game["winner"] = winner(self._roles, game["alive"])

    def _end_day(self, game: dict[str, Any]) -> None:
        if game["day"]:
            gone = chosen(game["votes"].values(), tie_to_first=False)
            votes = ", ".join(f"{by} for {name}" for by, name in game["votes"].items())
            self._tell(game, f"Votes: {votes or 'none'}. Sent away: {gone or 'nobody'}.")
            if gone is not None:
                self._bury(game, gone, "sent away")
            game["winner"] = winner(self._roles, game["alive"])
        guarded = game["night"].get("protect")
        used = [each for each in game["used"] if each in ONCE]
        game |= {"day": game["day"] + 1, "night": {}, "votes": {}, "used": used, "guarded": guarded}

    def _tell(self, game: dict[str, Any], text: str, but: str = "") -> None:
        for name in game["alive"]:
            if name != but:
                game["news"][name].append(text)

    def _bury(self, game: dict[str, Any], name: str, how: str) -> None:
        game["alive"].remove(name)
        game["queue"] = [each for each in game["queue"] if each != name]
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
"""Phase of the night → the role that acts in it; by day everybody does."""
LAST_OF_NIGHT = "witch"


def actors(phase: str, roles: Mapping[str, str], alive: Sequence[str]) -> list[str]:
    """Return who acts in a phase, in order."""
    role = OF_ROLE.get(phase)
    return [name for name in alive if role is None or roles[name] == role]


def chosen(votes: Iterable[str], *, tie_to_first: bool) -> str | None:
    """Return whom most have named; of several, the one that was named first, or nobody."""
    counts = Counter(votes)
    most = max(counts.values(), default=0)
    first = [name for name, count in counts.items() if count == most]
    return first[0] if len(first) == 1 or (first and tie_to_first) else None


def killed_at_night(night: Mapping[str, Any]) -> list[str]:
    """Return who does not see the morning.

    Args:
        night: ``kill`` (by wolf), ``protect``, ``save`` and ``poison`` where they were done.
    """
    victim = attacked(night)
    dead = [] if victim is None or victim == night.get("protect") or night.get("save") else [victim]
    poisoned = night.get("poison")
    return dead if poisoned is None or poisoned in dead else [*dead, poisoned]


def attacked(night: Mapping[str, Any]) -> str | None:
    """Return whom the wolves have agreed on."""
    return chosen(night.get("kill", {}).values(), tie_to_first=True)


def winner(roles: Mapping[str, str], alive: Iterable[str]) -> str | None:
    """Return ``villagers`` when no wolf is left, ``wolves`` when nobody else is, None while it goes on."""
    sides = {roles[name] == WOLF for name in alive}
    if True not in sides:
        return "villagers"
    return None if False in sides else "wolves"


def side_of(role: str) -> str:
    """Return which side a role is on."""
    return "wolves" if role == WOLF else "villagers"
