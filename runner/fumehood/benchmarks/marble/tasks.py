"""Loads MARBLE's records and makes games of werewolf."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import yaml

from fumehood.benchmarks.marble.prompt_files import read_prompts
from fumehood.benchmarks.marble.record import BUDGET, Participant, Record, records_path
from fumehood.benchmarks.marble.teams import (
    ABOUT,
    coding_case,
    database_case,
    judging,
    research_case,
)
from fumehood.benchmarks.marble.world_bargaining import SIDES
from fumehood.benchmarks.marble.world_werewolf import (
    OF_ROLE,
    PHASE_OF,
    ROLES,
    WOLF,
    Werewolf,
    side_of,
)
from fumehood.benchmarks.questions.tasks import snapshot_name
from fumehood.benchmarks.shared.reading import read_records
from fumehood.benchmarks.shared.records import cases_of, refuse_duplicates, validated
from fumehood.benchmarks.shared.seeded_choices import SeededChoices
from fumehood.benchmarks.shared.yaml_text import load_yaml
from fumehood.core.conversation import ConversationSpec, Handover
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError, SpecError
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject, copy_object
from fumehood.core.ledger import Budget
from fumehood.core.task import About, Case, Suite, Task
from fumehood.core.tools import ToolCall, Value

BARGAINING_INSTRUCTION = """\
{content}
You are {name}, a {side}. The parties take turns. Act with your tools, then submit to end your turn.

{profile}"""
ABOUT_BARGAINING = About(
    licence="MIT (ulab-uiuc/MARBLE; its package metadata says Apache-2.0), from your file",
    criterion="the parties reach an agreement; a judge adds ratings from 1 to 5",
    scored_on="whether one side accepted an offer of the other; ratings do not affect success",
)


def bargaining_case(record: Record, prompts: JsonObject) -> Case:
    """Return a record as a task with one seat per party.

    The judge receives the published prompts, or this project's questions if there are none.

    Raises:
        SpecError: A party has no role, or the parties do not all hear each other.
    """
    _check_everybody_hears(record)
    parties: list[Json] = [
        {"name": party.agent_id, "side": _side(party)} for party in record.agents
    ]
    task = Task(
        task_id=record.task_id,
        world="bargaining",
        harness_mode="native",
        initial_state={"parties": parties},
        seats=tuple(_bargaining_seat(record, party) for party in record.agents),
        tags={"domain": BARGAINING, "parties": len(parties)},
        conversation=ConversationSpec("world", {}),
    )
    criterion: JsonObject = {"op": "agreement", "rated": [*SIDES], **judging(record, prompts)}
    return Case(
        task, Gold("marble", (criterion,), solvable=True, oracle=_bargaining_oracle(record))
    )


def _check_everybody_hears(record: Record) -> None:
    """Check that the record asks for the one topology that the world has: all parties in turn."""
    if record.coordinate_mode not in {"", "graph"}:
        raise SpecError(
            "coordinate_mode",
            f"must be empty or graph, not {record.coordinate_mode!r}: the parties act in turn",
        )
    linked = {frozenset(pair) for *pair, _ in record.relationships}
    names = [party.agent_id for party in record.agents]
    missing = [pair for pair in combinations(names, 2) if linked and frozenset(pair) not in linked]
    if missing:
        raise SpecError(
            "relationships",
            f"must link all parties, who hear each other; not linked: {' and '.join(missing[0])}",
        )


def _bargaining_seat(record: Record, party: Participant) -> SeatSpec:
    instruction = BARGAINING_INSTRUCTION.format(
        content=record.task.content, name=party.agent_id, side=party.role, profile=party.profile
    )
    return SeatSpec(name=party.agent_id, instruction=instruction, budget=BUDGET)


def _side(party: Participant) -> str:
    if party.role is None:
        raise SpecError(f"agents.{party.agent_id}.role", "must be seller or buyer")
    return party.role


def _bargaining_oracle(record: Record) -> tuple[JsonObject, ...]:
    """Return moves in which the first party makes an offer and the other side accepts it."""
    first = record.agents[0]
    other = next((party for party in record.agents if party.role != first.role), first)
    return (
        {"tool_name": "offer_price", "args": {"price": 10, "reason": "it is fair"}},
        {"submit": "That is my offer."},
        {"seat": other.agent_id, "tool_name": "accept_offer", "args": {}},
        {"seat": other.agent_id, "submit": "Agreed."},
    )


GAMES = 10
DEFAULT_ROLES = (WOLF, WOLF, WOLF, "villager", "villager", "villager", "seer", "witch", "guard")
"""The roles of MARBLE's own configuration."""
WEREWOLF_BUDGET = Budget(steps=60, calls=60, retries=30)
WEREWOLF_INSTRUCTION = """\
You are {name} in a village of {players} players, {wolves} of whom are wolves. The wolves know \
each other. Every night the wolves kill a player. Every day the living players speak in turn and \
vote to send one player away. The wolves win when only wolves are alive, and the villagers win \
when no wolf is alive. Dead players take no turns. At the start of your turn you receive the news \
and the list of actions you may take. Act with your tools, then submit to end your turn. During \
the day, all players receive the text you submit as your speech. At any other time, no player \
receives it.

{role}"""
ROLE_INSTRUCTIONS = {
    WOLF: "You are a wolf. The wolves are: {pack}. The other wolves learn which victim you name.",
    "villager": "You are a villager. You vote during the day and do nothing at night.",
    "seer": "You are the seer. Every night you may learn whether one player is a wolf.",
    "witch": "You are the witch. Once per game you may save the wolves' victim, "
    "and once you may poison a player.",
    "guard": "You are the guard. Every night you may protect one player, "
    "but not the same one two nights in a row.",
}
ABOUT_WEREWOLF = About(
    licence="this project's own rules and texts; roles as in MARBLE's configuration (MIT)",
    criterion=(
        "the first player's side wins, by MARBLE's rule; a game that lasts six days has no winner"
    ),
    scored_on="which players are alive at the end; no judge is asked",
)


def read_roles(path: Path) -> tuple[str, ...]:
    """Return the roles listed in a MARBLE configuration file.

    Raises:
        InputError: The file cannot be read, or lists an unknown role.
    """
    try:
        config = load_yaml(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, RecursionError, yaml.YAMLError) as error:
        raise InputError(f"{path}: cannot be read: {' '.join(str(error).split())}") from None
    roles = config.get("roles") if isinstance(config, dict) else None
    if not isinstance(roles, list) or not {WOLF} < set(map(str, roles)) <= set(ROLES):
        raise InputError(
            f"{path}: roles must be a list of {', '.join(ROLES)}, "
            "with at least one wolf and one other role"
        )
    return tuple(roles)


def werewolf_cases(roles: Sequence[str] | None) -> tuple[Case, ...]:
    """Return ten games; the game's number is the seed that assigns the roles."""
    return tuple(
        _werewolf_case(number, SeededChoices("werewolf", number).shuffled(roles or DEFAULT_ROLES))
        for number in range(1, GAMES + 1)
    )


def _werewolf_case(number: int, roles: Sequence[str]) -> Case:
    names = {f"player{at}": role for at, role in enumerate(roles, 1)}
    players: list[Json] = [{"name": name, "role": role} for name, role in names.items()]
    state: JsonObject = {"players": players}
    side = side_of(roles[0])
    task = Task(
        task_id=f"werewolf_{number}",
        world="werewolf",
        harness_mode="native",
        initial_state=state,
        seed=number,
        seats=tuple(_werewolf_seat(name, names) for name in names),
        tags={"domain": WEREWOLF, "role": roles[0]},
        conversation=ConversationSpec("world", {}),
    )
    criterion: JsonObject = {"op": "won", "side": side}
    return Case(
        task,
        Gold("marble", (criterion,), solvable=True, oracle=_werewolf_oracle(state, names, side)),
    )


def _werewolf_seat(name: str, names: Mapping[str, str]) -> SeatSpec:
    role = names[name]
    pack = [player for player, other in names.items() if other == WOLF]
    instruction = WEREWOLF_INSTRUCTION.format(
        name=name,
        players=len(names),
        wolves=len(pack),
        role=ROLE_INSTRUCTIONS[role].format(pack=", ".join(pack)),
    )
    tools = tuple(tool for tool, phase in PHASE_OF.items() if OF_ROLE.get(phase, role) == role)
    return SeatSpec(name=name, instruction=instruction, budget=WEREWOLF_BUDGET, tools=tools)


def _werewolf_oracle(
    state: JsonObject, names: Mapping[str, str], side: str
) -> tuple[JsonObject, ...]:
    """Return moves in which all players act against the side that must lose."""
    world = Werewolf(copy_object(state))
    targets = [name for name, role in names.items() if side_of(role) != side]
    moves: list[JsonObject] = []
    handover: Handover | None = world.first_turn()
    while handover is not None:
        seat = handover.seat
        for tool in ("kill", "vote") if side == "wolves" else ("vote",):
            alive = [name for name in targets if name in world.state["game"]["alive"]]
            arguments: dict[str, Json] = {"player": alive[0]}
            if isinstance(world.call(ToolCall(tool, arguments)), Value):
                moves.append({"seat": seat, "tool_name": tool, "args": arguments})
        moves.append({"seat": seat, "submit": "Let us go on."})
        handover = world.turn_after_answer(seat, "Let us go on.")
    return tuple(moves)


BARGAINING, WEREWOLF = "bargaining", "werewolf"
RATED = ("research", "coding")
USAGE = (
    "bargaining:FILE_OR_CHECKOUT, database:FILE_OR_CHECKOUT[:mode=MODE], werewolf[:CONFIG], "
    "research:CHECKOUT[:mode=MODE][:snapshot=FOLDER] or coding:CHECKOUT[:mode=MODE]"
)
OPTIONS: Mapping[str, frozenset[str]] = {
    BARGAINING: frozenset(),
    "coding": frozenset({"mode"}),
    "database": frozenset({"mode"}),
    "research": frozenset({"mode", "snapshot"}),
}
"""By scenario."""
SNAPSHOT_COMMAND = "fumehood snapshot build {folder} --jsonl papers.jsonl"


class Marble:
    """The benchmark ``marble``. Its argument is a scenario with the user's data."""

    source = "ulab-uiuc/MARBLE 9d6efe6, your file or checkout; werewolf: none needed"

    def load(self, argument: str) -> Suite:
        """Return the tasks of a scenario."""
        scenario, _, rest = argument.partition(":")
        if scenario == WEREWOLF:
            roles = read_roles(Path(rest)) if rest else None
            return Suite(f"marble:{WEREWOLF}", werewolf_cases(roles), about=ABOUT_WEREWOLF)
        path, options = _options(rest)
        if scenario not in OPTIONS or not path or set(options) - OPTIONS[scenario]:
            raise InputError(f"marble: the argument must be {USAGE}, not {argument!r}")
        return _suite(scenario, Path(path), options)


def _options(text: str) -> tuple[str, dict[str, str]]:
    """Return the path of an argument and the options behind it."""
    options: dict[str, str] = {}
    while match := re.fullmatch(r"(.*):(mode|snapshot)=([^:]+)", text):
        text = match[1]
        options[match[2]] = match[3]
    return text, options


def _suite(scenario: str, path: Path, options: Mapping[str, str]) -> Suite:
    if scenario in RATED and not path.is_dir():
        raise InputError(
            f"marble:{scenario}: {path} must be a checkout of ulab-uiuc/MARBLE, which contains the "
            "records and the judge's prompts"
        )
    prompts = read_prompts(path, scenario) if path.is_dir() else {}
    records = [validated(record, Record) for record in read_records(records_path(path, scenario))]
    refuse_duplicates(records)
    for record in records:
        if record.value.scenario != scenario:
            raise InputError(
                f"{record.place}: scenario must be {scenario}, not {record.value.scenario}"
            )
    mode = options.get("mode")
    snapshot = Path(options["snapshot"]) if "snapshot" in options else None
    papers = snapshot_name(snapshot, SNAPSHOT_COMMAND.format(folder=snapshot)) if snapshot else None
    case_of = {
        BARGAINING: lambda record: bargaining_case(record, prompts),
        "research": lambda record: research_case(record, mode, prompts, papers),
        "coding": lambda record: coding_case(record, mode, prompts),
        "database": lambda record: database_case(record, mode, prompts),
    }[scenario]
    about = ABOUT.get(scenario, ABOUT_BARGAINING)
    return Suite(f"marble:{scenario}", cases_of(records, case_of), snapshot, about)
