"""Games of werewolf: nine players with drawn roles, won by the first player's side or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from fumehood.benchmarks.marble.werewolf_rules import OF_ROLE, ROLES, WOLF, side_of
from fumehood.benchmarks.marble.world_werewolf import PHASE_OF, Werewolf
from fumehood.benchmarks.seeded_choices import Draws
from fumehood.core.conversation import ConversationSpec, Handover
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject, copy_object
from fumehood.core.ledger import Budget
from fumehood.core.task import About, Case, Task
from fumehood.core.tools import ToolCall, Value

GAMES = 10
BUILT_IN = (WOLF, WOLF, WOLF, "villager", "villager", "villager", "seer", "witch", "guard")
"""As many of each as in MARBLE's configuration."""
BUDGET = Budget(steps=60, calls=60, retries=30)
TOLD = """\
You are {name} in a village of {players}, among them {wolves} wolves who know each other. Every night the \
wolves kill somebody; every day all who are alive speak in turn and vote for whom to send away. The wolves \
win when nobody else is left, the others when no wolf is. Whoever is dead is silent. When it is your turn, \
you are told what happened and what you may do; do it with your tools, then submit to end it. By day all \
hear what you submit as your speech; at any other time nobody does.

{role}"""
ROLE_TOLD = {
    WOLF: "You are a wolf. The wolves: {pack}. What you name for your victim, the other wolves hear.",
    "villager": "You are a villager: you have your vote, and nothing by night.",
    "seer": "You are the seer: every night you may learn of one player whether it is a wolf.",
    "witch": "You are the witch: once you may save whom the wolves attacked, once you may poison somebody.",
    "guard": "You are the guard: every night you may protect one player, not the same one twice running.",
}
ABOUT = About(
    licence="rules and words of our own; as many players and roles as MARBLE's (MIT) configuration has",
    criterion="the first player's side has won, by the original's rule; a game of six days is won by nobody",
    judged="who is alive in the end; survivors as metrics; nobody's opinion",
)


def read_roles(path: Path) -> tuple[str, ...]:
    """Return the roles that a configuration of MARBLE's names.

    Raises:
        InputError: it is none, or names another role.
    """
    try:
        told = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path}: cannot be read: {' '.join(str(error).split())}") from None
    roles = told.get("roles") if isinstance(told, dict) else None
    if not isinstance(roles, list) or not {WOLF} < set(map(str, roles)) <= set(ROLES):
        raise InputError(
            f"{path}: roles must be a list of {', '.join(ROLES)}, with a wolf and others"
        )
    return tuple(roles)


def werewolf_cases(roles: Sequence[str] | None) -> tuple[Case, ...]:
    """Return ten games, whose roles are drawn by their numbers."""
    return tuple(
        _case(number, Draws("werewolf", number).shuffled(roles or BUILT_IN))
        for number in range(1, GAMES + 1)
    )


def _case(number: int, roles: Sequence[str]) -> Case:
    names = {f"player{at}": role for at, role in enumerate(roles, 1)}
    players: list[Json] = [{"name": name, "role": role} for name, role in names.items()]
    state: JsonObject = {"players": players}
    side = side_of(roles[0])
    task = Task(
        task_id=f"werewolf_{number}",
        world="werewolf",
        profile="native",
        initial_state=state,
        fault_plan=(),
        seed=number,
        seats=tuple(_seat(name, names) for name in names),
        tags={"role": roles[0]},
        conversation=ConversationSpec("world", {}),
    )
    criterion: JsonObject = {"op": "won", "side": side}
    return Case(
        task, Gold("marble", (criterion,), solvable=True, oracle=_oracle(state, names, side))
    )


def _seat(name: str, names: Mapping[str, str]) -> SeatSpec:
    role = names[name]
    pack = [each for each, other in names.items() if other == WOLF]
    told = TOLD.format(
        name=name,
        players=len(names),
        wolves=len(pack),
        role=ROLE_TOLD[role].format(pack=", ".join(pack)),
    )
    tools = tuple(tool for tool, phase in PHASE_OF.items() if OF_ROLE.get(phase, role) == role)
    return SeatSpec(name=name, instruction=told, budget=BUDGET, tools=tools)


def _oracle(state: JsonObject, names: Mapping[str, str], side: str) -> tuple[JsonObject, ...]:
    """Play the game with everybody out for the end of the side that is to lose."""
    world = Werewolf(copy_object(state))
    targets = [name for name, role in names.items() if side_of(role) != side]
    moves: list[JsonObject] = []
    handover: Handover | None = world.open()
    while handover is not None:
        seat = handover.seat
        for tool in ("kill", "vote") if side == "wolves" else ("vote",):
            alive = [name for name in targets if name in world.state["game"]["alive"]]
            arguments: dict[str, Json] = {"player": alive[0]}
            if isinstance(world.call(ToolCall(tool, arguments)), Value):
                moves.append({"seat": seat, "tool_name": tool, "args": arguments})
        moves.append({"seat": seat, "submit": "Let us go on."})
        handover = world.heard(seat, "Let us go on.")
    return tuple(moves)
