"""Makes the games of AgentBench's card game."""

from __future__ import annotations

from collections.abc import Iterator

from fumehood.benchmarks.cardgame.rules import (
    ACTIVE,
    BASELINES,
    EEL,
    KINDS,
    NORMAL,
    SPRAY,
    living,
    position_of,
)
from fumehood.benchmarks.cardgame.scorer import OP
from fumehood.benchmarks.cardgame.world import AGENT, OPPONENT, CardGame
from fumehood.benchmarks.shared.seeded_choices import SeededChoices
from fumehood.core.conversation import ConversationSpec, Handover
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject, copy_object
from fumehood.core.ledger import Budget
from fumehood.core.task import About, Case, Suite, Task
from fumehood.core.tools import ToolCall

SPLITS = {"std": 5, "dev": 3}
"""Split → games of each opponent and side."""
BUDGET = Budget(steps=400, calls=400, retries=160)
ABOUT = About(
    licence="this project's text and code; rules of THUDM/AgentBench (Apache-2.0)",
    criterion="a won game; the metric score is the original's: 0.7 for winning, 0.3 for damage",
    scored_on="the fish at the end of the game",
)
INSTRUCTION = """\
You play a battle of two teams of four fish. The side with more living fish at the end wins; the \
game ends when all fish of a side are dead. Each fish has 400 health and 200 attack points. The \
kind of each fish is hidden from the enemy. Each team has the kinds spray, flame, eel and \
sunfish, in a random order. Positions are numbered from 0.

In each turn, you may first guess the kind of one living enemy fish (tool guess). If you are \
right, each enemy fish loses 50 health. Then one of your living fish acts (tool act), and you \
submit any text to end your turn. A turn without an action loses the game, and so does the fifth \
invalid action of a turn.

action normal: damages the enemy at position target by half of the attack points.
action active of spray: damages all enemies by 70; of eel: by 35% of its attack points. target is \
ignored.
action active of flame and sunfish: damages your living team-mate at position target (not itself) \
by 75, and adds 140 attack points to the fish.
Passive abilities: eel and sunfish pass 30% of the damage of an attack on to their team-mates, \
take 70%, and gain 40 attack points for every 200 damage. spray and flame deal 30 damage to an \
attacker that leaves a team-mate with less than 120 health."""


class CardGameTasks:
    """The benchmark ``card-game``. Its argument is ``[std | dev][:seat]``."""

    source = "THUDM/AgentBench, branch v0.2; no data needed"

    def load(self, argument: str) -> Suite:
        """Return the games of a split."""
        split, _, mode = (argument or "std").partition(":")
        if split not in SPLITS or mode not in ("", "seat"):
            raise InputError(f"card-game: use card-game[:std | :dev][:seat], not {argument!r}")
        opponents = ("seat",) if mode else BASELINES
        cases = tuple(
            _case(opponent, side, number)
            for opponent in opponents
            for side in (0, 1)
            for number in range(1, SPLITS[split] + 1)
        )
        return Suite(":".join(filter(None, ["card-game", split, mode])), cases, about=ABOUT)


def _case(opponent: str, side: int, number: int) -> Case:
    draw = SeededChoices("card_game_kinds", opponent, side, number)
    kinds: list[Json] = [[*draw.shuffled(KINDS)] for _ in range(2)]
    state: JsonObject = {
        "opponent": opponent,
        "first": side == 0,
        "seed": number,
        "kinds": kinds,
    }
    names = (AGENT, OPPONENT) if opponent == "seat" else (AGENT,)
    task = Task(
        task_id=f"card_game_{opponent}_{'first' if side == 0 else 'second'}_{number}",
        world="card_game",
        harness_mode="native",
        initial_state=state,
        seed=number,
        seats=tuple(SeatSpec(name=name, instruction=INSTRUCTION, budget=BUDGET) for name in names),
        tags={"domain": "card_game", "opponent": opponent},
        conversation=ConversationSpec("world", {}),
    )
    criterion: JsonObject = {"op": OP, "side": side}
    oracle = tuple(_oracle(state, side))
    return Case(task, Gold("card_game", (criterion,), solvable=True, oracle=oracle))


_STYLES: tuple[tuple[str, ...], ...] = ((SPRAY,), (), (EEL, SPRAY), (SPRAY, EEL))
"""Of a player: kinds whose active ability it uses, the preferred first."""


def _oracle(state: JsonObject, side: int) -> list[JsonObject]:
    """Return winning moves of a player who knows all kinds; its opponent at a seat forfeits."""
    moves: list[JsonObject] = []
    for style in _STYLES:
        world = CardGame(copy_object(state))
        moves = _play(world, side, style)
        if world.state["game"]["winner"] == side:
            break
    return moves


def _play(world: CardGame, side: int, style: tuple[str, ...]) -> list[JsonObject]:
    moves: list[JsonObject] = []
    handover: Handover | None = world.first_turn()
    while handover is not None:
        for name, arguments in _calls(world, side, style) if handover.seat == AGENT else ():
            world.call(ToolCall(name, arguments))
            moves.append({"tool_name": name, "args": arguments})
        moves.append({"seat": handover.seat, "submit": "done"})
        handover = world.turn_after_answer(handover.seat, "done")
    return moves


def _calls(
    world: CardGame, side: int, style: tuple[str, ...]
) -> Iterator[tuple[str, dict[str, Json]]]:
    game = world.state["game"]
    team, enemies = game["teams"][side], game["teams"][1 - side]
    hidden = [at for at in living(enemies) if not enemies[at]["known"]]
    if hidden:
        yield "guess", {"position": hidden[0], "kind": enemies[hidden[0]]["kind"]}
    alive, targets = living(team), living(enemies)
    area = [kind for kind in style if position_of(kind, team) is not None]
    if area and len(targets) > 1:
        yield "act", {"kind": area[0], "action": ACTIVE, "target": 0}
    elif targets:
        strongest = max(alive, key=lambda at: team[at]["attack"])
        weakest = min(targets, key=lambda at: enemies[at]["hp"])
        yield "act", {"kind": team[strongest]["kind"], "action": NORMAL, "target": weakest}
