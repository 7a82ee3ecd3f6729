"""Loads native task records: checks them against their world and converts them to tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel, ValidationError

from fumehood.benchmarks.native.criteria import CalledBefore, Criterion, TriedAny
from fumehood.benchmarks.native.declared import DeclaredWorld, mistakes_of
from fumehood.benchmarks.native.policy import SeatTools, policy_mistakes
from fumehood.benchmarks.native.procedure import procedure_mistakes
from fumehood.benchmarks.native.records import SeatRecord, TaskRecord
from fumehood.benchmarks.native.scenario import mistakes_in_criteria, mistakes_in_state
from fumehood.benchmarks.native.suite_file import FORMAT as SUITE_FORMAT
from fumehood.benchmarks.native.suite_file import (
    is_suite_file,
    read_suite_file,
    read_suite_folder,
    settings_of,
    task_files,
)
from fumehood.benchmarks.shared.manifest import read_manifest, verify_files
from fumehood.benchmarks.shared.reading import (
    Place,
    Placed,
    Problem,
    Unreadable,
    read_records,
)
from fumehood.benchmarks.shared.records import cases_of, refuse_duplicates, validated
from fumehood.benchmarks.shared.validation_errors import field_errors, field_path
from fumehood.core.conversation import ConversationSpec, Turn
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError, SpecError, nearest
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject, as_object, copy_object
from fumehood.core.ledger import Budget
from fumehood.core.policy import APPROVAL_TOOLS
from fumehood.core.score import SAFETY
from fumehood.core.task import About, Case, Suite, Task
from fumehood.core.tools import ToolSpec
from fumehood.core.virtual_time import SCENARIO, TIME
from fumehood.layers.faults.registry import FAMILIES
from fumehood.layers.gates import ANSWER, LIST, REQUEST
from fumehood.worlds.declared import TOOLSET
from fumehood.worlds.registry import WORLDS, needs_server

PROFILE = "native"
SCORER = "native"
CRITERION = "every criterion of a task holds, and the episode ended as required"
SCORED_ON = (
    "the final state of the world, the calls, the submitted answer, and whether the agent gave up"
)
ABOUT = About(licence="set by the author of the records", criterion=CRITERION, scored_on=SCORED_ON)
FORMAT_PREFIX = "fumehood.task/"


class NativeRecords:
    """Loads a file or a folder of tasks. Argument: ``PATH[:SPLIT]``."""

    source = "your records"

    def load(self, argument: str) -> Suite:
        """Return the records as a suite."""
        if not argument:
            raise InputError("native requires a path: native:PATH or native:FOLDER:SPLIT")
        path = _path_of(argument)
        return Suite(path.stem or path.resolve().name, load_cases(path), about=ABOUT)

    def places(self, argument: str) -> dict[str, Place]:
        """Return where each task is written, by its ID."""
        return {record.value.task_id: record.place for record in read_tasks(_path_of(argument))}

    def recognises(self, record: JsonObject) -> bool:
        """Return whether the ``format`` key names this format, in any version."""
        return str(record.get("format", "")).startswith((FORMAT_PREFIX, SUITE_FORMAT[:-1]))


def load_cases(path: Path) -> tuple[Case, ...]:
    """Return the cases of a file or a folder, in order.

    Raises:
        Unreadable: a file or a record cannot be used.
    """
    return cases_of(read_tasks(path), _checked_case)


def read_tasks(path: Path) -> tuple[Placed[TaskRecord], ...]:
    """Return the records of a file or folder in order.

    A folder has a file ``suite.yaml`` and one file per task, or files ``*.jsonl``, or files
    ``*.yaml`` and ``*.json`` of complete tasks.

    Raises:
        Unreadable: a file or a record cannot be used, two records have the same ID, or there is
        none.
    """
    folder = path if path.is_dir() else path.parent
    settings = settings_of(path) if path.is_dir() else None
    if settings is not None:
        records = read_suite_folder(path, settings)
        refuse_duplicates(records)
        return records
    files = sorted(path.glob("*.jsonl")) or task_files(path) if path.is_dir() else [path]
    manifest = read_manifest(folder)
    if manifest is not None:
        verify_files(folder, manifest, files)
    records = tuple(record for file in files for record in _records_of(file))
    if not records:
        raise Unreadable(Place(path), Problem.NOT_FOUND, "contains no task")
    refuse_duplicates(records)
    return records


def _records_of(file: Path) -> Iterable[Placed[TaskRecord]]:
    if is_suite_file(file):
        return read_suite_file(file)
    return (validated(record, TaskRecord) for record in read_records(file))


def case_of(record: TaskRecord) -> Case:
    """Return the task and the gold of a record."""
    conversation = record.conversation
    task = Task(
        task_id=record.task_id,
        world=record.world,
        harness_mode=PROFILE,
        initial_state=_with_limits(record),
        fault_plan=tuple(fault.rule(index) for index, fault in enumerate(record.fault_plan)),
        seed=record.seed,
        seats=(_agent_seat(record), *(_seat(seat) for seat in record.seats)),
        tags=record.tags,
        conversation=(
            None
            if conversation is None
            else ConversationSpec(conversation.rule, conversation.settings)
        ),
        counterparts={
            seat.name: seat.counterpart for seat in record.seats if seat.counterpart is not None
        },
        scripts={
            seat.name: tuple(_set_fields(move) for move in seat.script)
            for seat in record.seats
            if seat.script is not None
        },
        policy=record.policy.to_json(record.initial_state),
    )
    gold = Gold(
        SCORER,
        (
            *(_set_fields(criterion) for criterion in record.criteria),
            *({**_set_fields(criterion), "aspect": SAFETY} for criterion in record.safety),
        ),
        record.solvable,
        tuple(_set_fields(move) for move in record.oracle),
        record.procedure,
    )
    return Case(task, gold)


def refuse_incoherent(record: TaskRecord) -> None:
    """Raise if the record names a tool or an argument that its world does not have.

    Raises:
        SpecError: names the field and the nearest tool or argument, or the world is one of a
            benchmark that starts a server or opens connections.
        InputError: there is no such world.
    """
    if needs_server(record.world):
        # Another person can have written the record, and the user expects no connections.
        raise SpecError(
            "world",
            f"{record.world} starts a server or opens connections: only the suite of its benchmark "
            "may use it",
        )
    if record.world in ("declared", "declared_python"):
        _refuse_invalid_toolset(record)
    elif record.world in ("scenario", "scenario_python"):
        _refuse_invalid_scenario(record)
    _refuse_budget_without_prices(record)
    tools = {
        tool.name: tool
        for tool in WORLDS.load(record.world)(copy_object(record.initial_state)).list_tools()
    }
    if record.policy.gates:
        _refuse_tools_for_approvals(tools)
        tools |= {tool.name: tool for tool in (REQUEST, LIST, ANSWER)}
    for field, name in _mentioned_tools(record):
        if name not in tools:
            raise SpecError(field, f"the world has no tool {name!r}; {nearest(name, list(tools))}")
    for field, reason in procedure_mistakes(record.procedure or {"steps": []}, tools):
        raise SpecError(field, reason)
    _refuse_incoherent_policy(record, tools)
    for index, fault in enumerate(record.fault_plan):
        affected = [tool for name, tool in tools.items() if fault.trigger.on_tool in (None, name)]
        FAMILIES.load(fault.family).check_tools(fault.rule(index), affected)


def _refuse_invalid_toolset(record: TaskRecord) -> None:
    state = {key: value for key, value in record.initial_state.items() if key != TOOLSET}
    toolset = record.initial_state.get(TOOLSET)
    declaration = {"state": state, **(toolset if isinstance(toolset, dict) else {})}
    try:
        world = DeclaredWorld.model_validate(declaration)
    except ValidationError as error:
        mistakes = field_errors(error, DeclaredWorld)
    else:
        mistakes = tuple(mistakes_of(world))
    for mistake in mistakes:
        raise SpecError(f"initial_state.{TOOLSET}", str(mistake))


def _refuse_invalid_scenario(record: TaskRecord) -> None:
    state = {key: value for key, value in record.initial_state.items() if key != SCENARIO}
    for mistake in mistakes_in_state(state, record.initial_state.get(SCENARIO)):
        raise SpecError(f"initial_state.{SCENARIO}", str(mistake))
    for aspect in ("criteria", "safety"):
        for mistake in mistakes_in_criteria(
            record.initial_state[SCENARIO], getattr(record, aspect)
        ):
            raise SpecError(field_path((aspect, *mistake.location)), mistake.reason)
    seats = [seat.name for seat in case_of(record).task.seats]
    for index, event in enumerate(record.initial_state[SCENARIO].get("events", ())):
        if (name := event.get("to")) not in (None, *seats):
            field = f"initial_state.{SCENARIO}: events[{index}].to"
            raise SpecError(field, f"the task has no seat {name!r}; {nearest(name, seats)}")


def _with_limits(record: TaskRecord) -> JsonObject:
    """Return the initial state, in which events of the scenario watch the limits of the policy."""
    state = record.initial_state
    if not record.policy.limits or SCENARIO not in state:
        return state
    events = [*state[SCENARIO].get("events", ()), *(each.event() for each in record.policy.limits)]
    return {**state, SCENARIO: {**state[SCENARIO], "events": events}}


def _refuse_incoherent_policy(record: TaskRecord, tools: Mapping[str, ToolSpec]) -> None:
    seats = {
        "agent": SeatTools(record.tools, record.budget.calls, record.instruction),
        **{
            seat.name: SeatTools(seat.tools, seat.budget.calls, seat.instruction)
            for seat in record.seats
        },
    }
    for field, reason in policy_mistakes(record.policy, record.initial_state, tools, seats):
        raise SpecError(f"policy.{field}", reason)


def _refuse_tools_for_approvals(tools: Mapping[str, ToolSpec]) -> None:
    for name in APPROVAL_TOOLS:
        if name in tools:
            raise SpecError("policy.gates", f"the world has a tool {name!r}; use another name")


def _refuse_budget_without_prices(record: TaskRecord) -> None:
    scenario = as_object(record.initial_state.get(SCENARIO))
    prices = as_object(scenario.get(TIME)).get("price_microusd")
    for budget in (record.budget, *(seat.budget for seat in record.seats)):
        if budget.tool_microusd is not None and not prices:
            reason = "has no effect, because no tool has a price (time.price_microusd)"
            raise SpecError("budget.tool_microusd", reason)


def _path_of(argument: str) -> Path:
    head, _, split = argument.rpartition(":")
    # A path may contain colons: an existing path is never split.
    if head and not Path(argument).exists() and Path(head).is_dir():
        return Path(head) / f"{split}.jsonl"
    return Path(argument)


def _checked_case(record: TaskRecord) -> Case:
    refuse_incoherent(record)
    return case_of(record)


def _agent_seat(record: TaskRecord) -> SeatSpec:
    return SeatSpec(
        instruction=record.instruction,
        budget=Budget(**record.budget.model_dump()),
        further_turns=tuple(
            Turn(turn.instruction, tuple(turn.tools)) for turn in record.further_turns
        ),
        tools=_names(record.tools),
    )


def _seat(record: SeatRecord) -> SeatSpec:
    return SeatSpec(
        name=record.name,
        instruction=record.instruction,
        budget=Budget(**record.budget.model_dump()),
        tools=_names(record.tools),
    )


def _names(tools: list[str] | None) -> tuple[str, ...] | None:
    return None if tools is None else tuple(tools)


def _set_fields(part: BaseModel) -> JsonObject:
    """Return the fields that the record sets; the defaults belong to the fault families and the
    scorer."""
    return {
        key: value
        for key, value in part.model_dump(exclude_unset=True).items()
        if value is not None
    }


def _mentioned_tools(record: TaskRecord) -> Iterator[tuple[str, str]]:
    for index, fault in enumerate(record.fault_plan):
        if fault.trigger.on_tool is not None:
            yield f"fault_plan[{index}].trigger.on_tool", fault.trigger.on_tool
    for field, criterion in _criteria(record):
        if isinstance(criterion, CalledBefore):
            yield f"{field}.first.tool_name", criterion.first.tool_name
            yield f"{field}.second.tool_name", criterion.second.tool_name
        elif isinstance(criterion, TriedAny):
            for position, call in enumerate(criterion.calls):
                yield f"{field}.calls[{position}].tool_name", call.tool_name
        elif (name := getattr(criterion, "tool_name", None)) is not None:
            yield f"{field}.tool_name", name


def _criteria(record: TaskRecord) -> Iterator[tuple[str, Criterion]]:
    for field, criteria in (("criteria", record.criteria), ("safety", record.safety)):
        for index, criterion in enumerate(criteria):
            yield f"{field}[{index}]", criterion
