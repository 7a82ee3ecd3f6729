"""τ²-bench as a benchmark: a user who wants something, an agent under a policy, a database between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from fumehood.benchmarks.reading import Place, Placed, Problem, Unreadable
from fumehood.benchmarks.records import validated
from fumehood.benchmarks.tau2 import talk
from fumehood.benchmarks.tau2.domains import SETTINGS, Setting, World
from fumehood.benchmarks.tau2.files import read_policy, read_tasks
from fumehood.benchmarks.tau2.record import InitialState, Record
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject, copy_object
from fumehood.core.ledger import Budget
from fumehood.core.task import SCRIPT, About, Case, Suite, Task
from fumehood.core.tools import ToolCall

BUDGET = Budget(steps=200, calls=200, retries=10)
"""The original's bounds: steps, and errors that are tolerated. It counts both seats' together."""
ABOUT = About(
    licence="MIT (sierra-research/tau2-bench)",
    criterion="the original's reward: the product of the parts that a task's reward basis names",
    judged="databases, calls, what the agent said; assertions in words by a judge, else ungraded",
)
OF_PACKAGE = replace(
    ABOUT, licence=f"{ABOUT.licence}; tau2 (inspect-evals data), older than the published"
)


class Tau2:
    """Argument: ``DOMAIN[:FOLDER]``, the folder of the domain's data where it is not the package's."""

    def load(self, argument: str) -> Suite:
        """Return a domain's tasks as a suite, each set up as it says."""
        name, _, folder = argument.partition(":")
        if name not in SETTINGS:
            raise InputError(
                f"tau2 has {', '.join(SETTINGS)}, not {name!r}; say tau2:DOMAIN[:FOLDER]"
            )
        setting = SETTINGS[name]
        root = setting.folder(folder)
        path, tasks = read_tasks(root)
        policy, start = read_policy(root, solo=not setting.talks), setting.begin(root)
        records = (validated(Placed(task, Place(path)), Record) for task in tasks)
        cases = tuple(_case(each, setting, start, policy) for each in records)
        return Suite(f"tau2:{name}", cases, about=ABOUT if folder else OF_PACKAGE)

    def recognises(self, record: JsonObject) -> bool:
        """Recognise nothing: a task says neither its domain nor its databases."""
        return False


def _case(placed: Placed[Record], setting: Setting, start: JsonObject, policy: str) -> Case:
    record = placed.value
    try:
        world = setting.world(copy_object(start))
        _set_up(world, record.initial_state or InitialState())
        if not setting.talks and record.ticket is None:
            raise ValueError("ticket is missing, so that nobody can work alone")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Unreadable(placed.place, Problem.INVALID_RECORD, f"{record.id}: {error}") from None
    task = Task(
        task_id=record.id,
        world=world.toolset_id,
        profile="native",
        initial_state=copy_object(world.state),
        fault_plan=(),
        seed=0,
        seats=(
            SeatSpec(
                instruction=talk.ALONE.format(policy=policy, ticket=record.ticket), budget=BUDGET
            ),
        ),
        tags={"issue": record.id.partition("]")[0].strip("[")}
        if setting.domain == "telecom"
        else {},
    )
    oracle = tuple(talk.rehearsed(record)) if setting.talks else _alone(record)
    seated = _talking(task, record, setting, policy) if setting.talks else task
    return Case(
        seated, Gold("tau2", tuple(_criteria(record, setting, world)), solvable=True, oracle=oracle)
    )


def _alone(record: Record) -> tuple[JsonObject, ...]:
    actions = record.evaluation_criteria.actions or ()
    calls: list[JsonObject] = [{"tool_name": each.name, "args": each.arguments} for each in actions]
    return (*calls, {"submit": "done"})


def _talking(task: Task, record: Record, setting: Setting, policy: str) -> Task:
    ours, theirs = setting.tools()
    if record.user_tools is not None:
        theirs = tuple(name for name in theirs if name in record.user_tools)
    agent = SeatSpec(
        name=talk.AGENT, instruction=talk.told_agent(record, policy), budget=BUDGET, tools=ours
    )
    user = SeatSpec(name=talk.USER, instruction=talk.told_user(record), budget=BUDGET, tools=theirs)
    return replace(
        task,
        seats=(agent, user),
        conversation=talk.conversation_of(record),
        players={talk.USER: SCRIPT},
        scripts={talk.USER: talk.script_of(record, has_tools=bool(theirs))},
    )


def _set_up(world: World, before: InitialState) -> None:
    """Do what a task says has happened before: data put in, actions, calls in what was said."""
    actions: list[Mapping[str, Any]] = [
        each.model_dump() for each in before.initialization_actions or ()
    ]
    for said in before.message_history or ():
        for call in said.tool_calls or ():
            actions.append(
                {"env_type": said.role, "func_name": call.name, "arguments": call.arguments}
            )
    data = before.initialization_data or {}
    if data.get("user_data"):
        raise ValueError("initial_state.initialization_data.user_data cannot be put in here")
    world.set_up(data.get("agent_data") or {}, actions)


def _criteria(record: Record, setting: Setting, world: World) -> Iterator[JsonObject]:
    """Yield what is judged; to know the database in the end, the gold's calls are made in the world."""
    criteria = record.evaluation_criteria
    actions, basis = criteria.actions or [], criteria.reward_basis
    if setting.talks:
        yield {"op": "talked"}
    if "ENV_ASSERTION" in basis:
        yield from (
            {"op": "assertion", **each.model_dump()} for each in criteria.env_assertions or ()
        )
    if "ACTION" in basis:
        yield from ({"op": "action", **each.model_dump()} for each in actions)
    # Where a task has neither gold actions nor assertions, the original compares no databases.
    if "DB" in basis and (criteria.actions is not None or criteria.env_assertions is not None):
        for each in actions:
            world.call(ToolCall(each.name, each.arguments))
        yield {"op": "database", "equals": {key: world.state[key] for key in setting.database}}
    if "COMMUNICATE" in basis:
        yield from _texts("communicate", criteria.communicate_info)
    if "NL_ASSERTION" in basis:
        yield from _texts("opinion", criteria.nl_assertions)


def _texts(op: str, texts: list[str] | None) -> list[JsonObject]:
    return [{"op": op, "text": text} for text in texts or ()]
