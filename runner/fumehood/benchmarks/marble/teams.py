"""Teams of MARBLE: the records of research, coding and database, and all coordination modes.

A coordination mode is a turn policy. In a star, a planner gives orders to all members
(``supervisor``). In a chain, members act in the order of the record (``round``). A tree has the
parents of the record (``tree``). In a graph, related members write to each other (``graph``).
Source: ``marble/engine/engine.py`` and ``marble/graph/agent_graph.py`` of ulab-uiuc/MARBLE 9d6efe6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

from fumehood.benchmarks.marble.judge_prompts import requirements_of
from fumehood.benchmarks.marble.postgresql import programs
from fumehood.benchmarks.marble.record import BUDGET, Record
from fumehood.benchmarks.marble.team_result import MARK, SOLUTION
from fumehood.core.conversation import ConversationSpec
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import SpecError
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.task import About, Case, Task

MODES = ("graph", "star", "chain", "tree")
"""The first is that of a record without one, as in the original's ``jsonl2yaml.py``."""
ITERATIONS = 3
"""Turns of each member. Source: ``max_iterations`` of ``jsonl2yaml.py``."""
PLANNER = "planner"
_PLANNER_PROFILE = "You plan the work of the team, and state its result."
_INSTRUCTION = """\
{content}

{output_format}

You are {name}, a member of a team: {names}. {profile}

{how} The team has {turns} turns together. Act with your tools if you have any, then submit to end \
your turn.{end}"""
_END = f' To end the work, submit a text that contains "{MARK}", followed by {{result}}.'
_HOW = {
    "star": "The planner gives orders to one member at a time. The answer of a member goes back to "
    "the planner.",
    "chain": "The members take turns in this order, and each receives the texts of the others.",
    "tree": "A member gives orders to the members below it, one at a time, and receives their "
    "answers: {tree}.",
    "graph": "You write to your neighbours: {neighbours}. Each receives your text unless it begins "
    'with "@NAME:", which only NAME receives. A member has a turn when it has received a text.',
}
_ORDERS = ' To give an order, submit "@NAME: order".'
_LICENCE = "MIT (ulab-uiuc/MARBLE; its package metadata says Apache-2.0), from your checkout"
ABOUT = {
    "research": About(
        licence=_LICENCE,
        criterion="the published judge's three ratings have a mean of at least 3 of 5",
        scored_on="the result of the team; ratings of the team's work do not affect success",
    ),
    "coding": About(
        licence=_LICENCE,
        criterion="the published judge's four ratings have a mean of at least 3 of 5",
        scored_on="the file /solution.py; ratings of the team's work do not affect success",
    ),
    "database": About(
        licence=_LICENCE,
        criterion="the result names all root causes, of which the record has one or two",
        scored_on="the line of root causes; ratings of the team's work do not affect success",
    ),
}


@dataclass(frozen=True, slots=True)
class Team:
    """The seats of a record and how they take turns."""

    mode: str
    seats: tuple[SeatSpec, ...]
    conversation: ConversationSpec


def team_of(record: Record, mode: str | None, result: str) -> Team:
    """Return the team of a record.

    Args:
        record: the published task.
        mode: one of ``MODES``; None for that of the record.
        result: what the team must state as its result.

    Raises:
        SpecError: The mode is unknown, or does not fit the relationships of the record.
    """
    mode = mode or record.coordinate_mode or MODES[0]
    if mode not in MODES:
        raise SpecError("coordinate_mode", f"must be {', '.join(MODES)} or empty, not {mode!r}")
    names = record.names
    profiles = {agent.agent_id: agent.profile for agent in record.agents}
    if mode == "star":
        if PLANNER in names:
            raise SpecError("agents", f"{PLANNER} is the name of the star's own seat")
        profiles = {PLANNER: _PLANNER_PROFILE, **profiles}
    rule, settings, how = _POLICIES[mode](record)
    turns = ITERATIONS * len(names) * (2 if mode in {"star", "tree"} else 1)
    limit = "rounds" if rule == "round" else "turns_max"
    settings[limit] = ITERATIONS if rule == "round" else turns
    if mode == "tree":  # The root is the tested agent's first seat.
        root = next(name for name in names if name not in _object(settings["parents"]))
        profiles = {root: profiles[root], **profiles}
    anybody = mode in {"graph", "chain"}
    seats = tuple(
        SeatSpec(
            name=name,
            instruction=_INSTRUCTION.format(
                content=record.task.content.strip(),
                output_format=record.task.output_format.strip(),
                name=name,
                names=", ".join(profiles),
                profile=profile,
                how=how(name),
                turns=turns,
                end=_END.format(result=result) if position == 0 or anybody else "",
            ),
            budget=BUDGET,
        )
        for position, (name, profile) in enumerate(profiles.items())
    )
    return Team(mode, seats, ConversationSpec(rule, settings))


_Policy = tuple[str, JsonObject, Callable[[str], str]]
"""Turn policy, its settings, and the explanation for a seat."""


def _star(record: Record) -> _Policy:
    return (
        "supervisor",
        {"head": PLANNER},
        lambda name: _HOW["star"] + (_ORDERS if name == PLANNER else ""),
    )


def _chain(record: Record) -> _Policy:
    return "round", {"stop": MARK}, lambda _: _HOW["chain"]


def _tree(record: Record) -> _Policy:
    # The original overwrites the parent of a member with a later one.
    parents: dict[str, Json] = {
        child: parent for parent, child, kind in record.relationships if kind == "parent"
    }
    roots = [name for name in record.names if name not in parents]
    if len(roots) != 1:
        raise SpecError(
            "relationships",
            "must give every member but one a parent in the mode tree; without a parent: "
            f"{', '.join(roots) or 'none'}",
        )
    lines = ", ".join(f"{parent} above {child}" for child, parent in parents.items())
    how = _HOW["tree"].format(tree=lines or "none")
    orders = set(parents.values())
    return "tree", {"parents": parents}, lambda name: how + (_ORDERS if name in orders else "")


def _graph(record: Record) -> _Policy:
    names = record.names
    if len(names) == 1:  # A graph needs an edge.
        return _chain(record)
    pairs = [pair[:2] for pair in record.relationships] or list(combinations(names, 2))
    edges = sorted({tuple(sorted(pair)) for pair in pairs if len(set(pair)) == 2})
    if not edges:
        raise SpecError("relationships", "must relate two members in the mode graph")
    near = {
        name: [next(iter({*edge} - {name})) for edge in edges if name in edge] for name in names
    }
    settings: JsonObject = {"edges": [list(edge) for edge in edges], "stop": MARK}
    return (
        "graph",
        settings,
        lambda name: _HOW["graph"].format(neighbours=", ".join(near[name]) or "none"),
    )


_POLICIES: dict[str, Callable[[Record], _Policy]] = {
    "star": _star,
    "chain": _chain,
    "tree": _tree,
    "graph": _graph,
}


def _object(value: Json) -> JsonObject:
    assert isinstance(value, dict)
    return value


_SECTIONS = "\n".join(f"**[Question {number}]** It is stated." for number in range(1, 6))

_CODING_NOTE = (
    "Where a profile names the actions create_code and give_advice_and_revise_code, use the tool "
    "write_file."
)


def research_case(
    record: Record, mode: str | None, prompts: JsonObject, snapshot: JsonObject | None
) -> Case:
    """Return a record of ``research`` as a task.

    Args:
        record: the published task.
        mode: one of ``MODES``; None for that of the record.
        prompts: of the judge, by the name of the question.
        snapshot: papers that the team can search; None for no tools.
    """
    team = team_of(record, mode, "the answers to the five questions")
    world: tuple[str, JsonObject] = ("search", {"snapshot": snapshot})
    if snapshot is None:
        seats = tuple(replace(seat, tools=()) for seat in team.seats)
        team, world = replace(team, seats=seats), ("files", {})
    oracle: tuple[JsonObject, ...] = ({"submit": f"{MARK}\n{_SECTIONS}"},)
    criterion: JsonObject = {"op": "research", **judging(record, prompts)}
    return team_case(record, team, world, criterion, oracle)


def coding_case(record: Record, mode: str | None, prompts: JsonObject) -> Case:
    """Return a record of ``coding`` as a task. See :func:`research_case`."""
    team = team_of(record, mode, f"one sentence about the program, which must be in {SOLUTION}")
    seats = tuple(
        replace(seat, instruction=f"{seat.instruction}\n{_CODING_NOTE}") for seat in team.seats
    )
    team = replace(team, seats=seats)
    written: JsonObject = {"path": SOLUTION, "content": '"""A program."""\n'}
    oracle: tuple[JsonObject, ...] = (
        {"tool_name": "write_file", "args": written},
        {"submit": f"{MARK} it is written."},
    )
    requirements = requirements_of(record.task.content)
    criterion: JsonObject = {
        "op": "coding",
        "requirements": requirements,
        **judging(record, prompts),
    }
    return team_case(record, team, ("files", {"files": {}}), criterion, oracle)


NAMES_MAX = 2
"""Number of root causes that a team may name. Source: ``scripts/database/batch_eval.py``."""


def database_case(record: Record, mode: str | None, prompts: JsonObject) -> Case:
    """Return a record of ``database`` as a task. See :func:`research_case`.

    Raises:
        InputError: PostgreSQL is not installed.
        SpecError: No root cause is named, or one that is not a label.
    """
    programs()
    labels, causes = record.task.labels, record.task.root_causes
    if not causes or not set(causes) <= set(labels):
        raise SpecError("task.root_causes", f"must be some of {', '.join(labels) or 'its labels'}")
    line = f'a line "Root causes: NAME, NAME" with at most {NAMES_MAX} of {", ".join(labels)}'
    anomalies: list[Json] = [
        anomaly.model_dump(by_alias=True) for anomaly in record.environment.anomalies
    ]
    state: JsonObject = {"init_sql": record.environment.init_sql, "anomalies": anomalies}
    criterion: JsonObject = {
        "op": "root_causes",
        "labels": [*labels],
        "root_causes": [*causes],
        "names_max": NAMES_MAX,
        **judging(record, prompts),
    }
    sql = "SELECT query, calls FROM pg_stat_statements ORDER BY calls DESC, query LIMIT 5"
    oracle: tuple[JsonObject, ...] = (
        {"tool_name": "query_db", "args": {"sql": sql}},
        {"submit": f"{MARK}\nRoot causes: {', '.join(causes)}"},
    )
    team = team_of(record, mode, line)
    return team_case(record, team, ("marble_database", state), criterion, oracle)


def judging(record: Record, prompts: JsonObject) -> JsonObject:
    """Return what the questions of the published judge need, for a criterion."""
    if not prompts:
        return {}
    profiles = "\n".join(f"- {agent.agent_id}: {agent.profile}" for agent in record.agents)
    return {"prompts": prompts, "task": record.task.content, "profiles": profiles}


def team_case(
    record: Record,
    team: Team,
    world: tuple[str, JsonObject],
    criterion: JsonObject,
    oracle: tuple[JsonObject, ...],
) -> Case:
    """Return a task of a team.

    Args:
        record: the published task.
        team: its seats and turns.
        world: name and initial state.
        criterion: of the scorer.
        oracle: moves that need no other seat.
    """
    task = Task(
        task_id=record.task_id,
        world=world[0],
        harness_mode="native",
        initial_state=world[1],
        seats=team.seats,
        tags={"domain": record.scenario, "coordination": team.mode, "agents": len(record.agents)},
        conversation=team.conversation,
    )
    first = task.seats[0].name
    moves = tuple({"seat": first, **move} for move in oracle)
    return Case(task, Gold("marble", (criterion,), solvable=True, oracle=moves))
