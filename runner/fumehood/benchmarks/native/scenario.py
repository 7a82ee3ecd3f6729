"""The models of a scenario: several worlds with virtual time and events (docs/scenarios.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    field_validator,
    model_validator,
)

from fumehood.benchmarks.native.criteria import Condition, Name
from fumehood.benchmarks.native.declared import (
    Create,
    DeclaredWorld,
    References,
    Rule,
    Set,
    Update,
    mistakes_of,
)
from fumehood.benchmarks.shared.records import StrictRecord
from fumehood.benchmarks.shared.validation_errors import FieldError, Location, field_errors
from fumehood.core.errors import SpecError, nearest
from fumehood.core.json_values import Json, JsonObject, as_object
from fumehood.core.virtual_time import ANY_TOOL, SCENARIO, TIME, latency_of
from fumehood.worlds.declared import TOOLSET
from fumehood.worlds.scenario import DAYS_MAX, PARTS, Scenario
from fumehood.worlds.scenario_python import ScenarioPython

OCCURRENCES_MAX = 20_000
"""Limit of the times at which one recurring event is due."""

_TIME_KEYS = ("now", "elapsed_s", "events", "messages")

Seconds = Annotated[float, Field(ge=0, le=DAYS_MAX * 86_400)]


class BuiltInPart(StrictRecord):
    """A built-in world as a part."""

    world: Literal[PARTS]  # type: ignore[valid-type]
    state: dict[str, Any]


def _kind_of_part(value: Any) -> str:
    has_world = "world" in value if isinstance(value, dict) else isinstance(value, BuiltInPart)
    return "built_in" if has_world else "object"


Part = Annotated[
    Annotated[DeclaredWorld, Tag("object")] | Annotated[BuiltInPart, Tag("built_in")],
    Discriminator(_kind_of_part),
]


def _checked_latency(value: Any) -> Any:
    try:
        latency_of(value, "")
    except SpecError as error:
        raise ValueError(error.reason) from None
    return value


class TimeRecord(StrictRecord):
    """The start and the end of the scenario, and how time passes in between."""

    start: str
    """ISO 8601 time with a time zone."""
    end_s: Annotated[float, Field(gt=0, le=DAYS_MAX * 86_400)]
    """End of the scenario, seconds after its start."""
    latency: dict[str, Annotated[Any, AfterValidator(_checked_latency)]] = Field(
        default_factory=dict
    )
    """Duration of a call by tool name; ``*`` for all other tools."""
    price_microusd: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    """Price of a call by tool name, millionths of a US dollar; ``*`` for all other tools."""
    token_us: int = Field(default=0, ge=0, le=10_000_000)
    """Virtual time of each token of a model, microseconds."""
    continues: bool = True
    """Whether the scenario goes on until its end after the work of all agents has ended."""

    @field_validator("start")
    @classmethod
    def _has_time_zone(cls, value: str) -> str:
        try:
            if datetime.fromisoformat(value).tzinfo is not None:
                return value
        except ValueError:
            pass
        raise ValueError(
            f"must be a time with a time zone, such as 2026-03-02T06:00:00Z, not {value!r}"
        )


class EventRecord(StrictRecord):
    """Something that happens without a call: at a time, repeatedly, or when a condition holds."""

    name: Name
    """Unique within the scenario."""
    at_s: Seconds | None = None
    """When it occurs, seconds after the start."""
    every_s: Annotated[float, Field(ge=1)] | None = None
    """Interval of a recurring event, seconds. The first time is ``at_s``, or one interval."""
    until_s: Seconds | None = None
    """Last possible time of a recurring event, seconds after the start."""
    when: Condition | None = None
    """It occurs as soon as this condition holds."""
    after_s: Annotated[float, Field(gt=0)] | None = None
    """Delay after the condition begins to hold, seconds."""
    for_s: Annotated[float, Field(gt=0)] | None = None
    """How long the condition must hold without interruption before it occurs, seconds."""
    repeat: bool = False
    """Whether it occurs again when the condition holds again after it did not."""
    requires: list[Condition] = Field(default_factory=list, max_length=30)
    """It has no effect if one of these does not hold at its time."""
    rules: Annotated[list[Rule], Field(min_length=1, max_length=30)] | None = None
    """Applied in order: all of them, or none if one fails."""
    message: Name | None = None
    """Text that agents read with ``now`` or ``wait``."""
    to: Name | None = None
    """Seat that gets the message; default: all."""

    @model_validator(mode="after")
    def _is_complete(self) -> EventRecord:
        has_time = self.at_s is not None or self.every_s is not None
        if has_time == (self.when is not None):
            raise ValueError("give either a time (at_s or every_s) or a condition (when)")
        if self.after_s is not None and self.for_s is not None:
            raise ValueError("give after_s or for_s, not both")
        # An event that only requires something counts in time.events, which criteria can read.
        if self.rules is None and self.message is None and not self.requires:
            raise ValueError("give rules, a message or requires; otherwise it has no effect")
        for key, needs in (
            ("until_s", "every_s"),
            ("after_s", "when"),
            ("for_s", "when"),
            ("repeat", "when"),
            ("to", "message"),
        ):
            if key in self.model_fields_set and getattr(self, needs) is None:
                raise ValueError(f"{key}: has an effect only with {needs}")
        return self


class ScenarioWorld(StrictRecord):
    """Worlds that one agent uses together, with virtual time and events."""

    parts: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")], Part] = Field(
        min_length=1, max_length=20
    )
    """The worlds by name. The state of each part is under its name."""
    time: TimeRecord
    events: list[EventRecord] = Field(default_factory=list, max_length=1000)

    def name(self) -> str:
        """Return the name of the world that executes the declaration."""
        has_python = any(getattr(part, "python", None) for part in self.parts.values())
        return "scenario_python" if has_python else "scenario"

    def states(self) -> JsonObject:
        """Return the initial state of each part, without its tools."""
        return {name: part.state for name, part in self.parts.items()}

    def declaration(self) -> JsonObject:
        """Return the declaration of the scenario, as a part of the initial state."""
        names: JsonObject = {
            name: part.name() if isinstance(part, DeclaredWorld) else part.world
            for name, part in self.parts.items()
        }
        fields: JsonObject = self.model_dump(
            mode="json", exclude={"parts"}, exclude_unset=True, exclude_none=True
        )
        return {**fields, "parts": names}

    def initial_state(self, states: JsonObject) -> JsonObject:
        """Return the initial state of an episode.

        Args:
            states: of the parts, as changed by the task.
        """
        state: JsonObject = {**states, SCENARIO: self.declaration()}
        for name, part in self.parts.items():
            part_state = states.get(name)
            if isinstance(part, DeclaredWorld) and isinstance(part_state, dict):
                state[name] = {**part_state, TOOLSET: part.toolset()}
        return state


def scenario_mistakes(world: ScenarioWorld) -> Iterator[FieldError]:
    """Yield what the schema of a scenario does not show, such as unknown names."""
    for name, part in world.parts.items():
        here: Location = ("parts", name)
        if name in (SCENARIO, TIME):
            yield FieldError(here, "is reserved; use another name")
        if not isinstance(part, DeclaredWorld):
            continue
        for mistake in mistakes_of(part, (TIME,)):
            yield FieldError((*here, *mistake.location), mistake.reason)
    names = [event.name for event in world.events]
    others = [name for name, part in world.parts.items() if not isinstance(part, DeclaredWorld)]
    references = References({**world.parts, TIME: None}, {}, (TIME, *others))
    for index, event in enumerate(world.events):
        place: Location = ("events", index)
        if event.name in names[:index]:
            yield FieldError((*place, "name"), f"{event.name!r} is used twice")
        if event.when is not None:
            yield from references.in_condition(event.when, (*place, "when"))
        for number, condition in enumerate(event.requires):
            yield from references.in_condition(condition, (*place, "requires", number))
        yield from references.in_rules((), event.rules or (), place)
        for key in ("at_s", "until_s"):
            if (getattr(event, key) or 0) > world.time.end_s:
                yield FieldError((*place, key), f"is after the end, {world.time.end_s:g} s")
        first_s = event.every_s if event.at_s is None else event.at_s
        if event.until_s is not None and first_s is not None and event.until_s < first_s:
            yield FieldError((*place, "until_s"), f"is before the first time, {first_s:g} s")
        if event.every_s is not None and world.time.end_s / event.every_s > OCCURRENCES_MAX:
            yield FieldError((*place, "every_s"), f"is due more than {OCCURRENCES_MAX} times")


def mistakes_in_state(state: JsonObject, declaration: Json) -> tuple[FieldError, ...]:
    """Return the mistakes in the initial state of a scenario.

    Args:
        state: without the declaration.
        declaration: value of the key ``scenario``.
    """
    fields = declaration if isinstance(declaration, dict) else {}
    names = as_object(fields.get("parts"))
    parts = {name: _part_record(str(names[name]), as_object(state.get(name))) for name in names}
    try:
        world = ScenarioWorld.model_validate({**fields, "parts": parts})
    except ValidationError as error:
        return field_errors(error, ScenarioWorld)
    mistakes = [
        FieldError((name,), f"is not a part; {nearest(name, [*names])}")
        for name in state
        if name not in names
    ]
    mistakes += scenario_mistakes(world)
    return tuple(mistakes) or mistakes_with(world, world.states())


def mistakes_with(world: ScenarioWorld, states: JsonObject) -> tuple[FieldError, ...]:
    """Return the names in a declaration that do not fit the initial states of its parts."""
    mistakes = tuple(_absent_paths(world, states))
    return mistakes or tuple(_unknown_tools(ScenarioPython(world.initial_state(states)), world))


def mistakes_in_criteria(declaration: Any, criteria: Iterable[Any]) -> Iterator[FieldError]:
    """Yield the paths of criteria that name an unknown event or an unknown key of the time.

    Args:
        declaration: value of the key ``scenario``.
        criteria: of the task; locations begin with their positions.
    """
    names = {event["name"] for event in declaration.get("events", ())}
    for index, criterion in enumerate(criteria):
        for place, path in _paths_of_condition(criterion, (index,)):
            first, *steps = path.split(".") if isinstance(path, str) else map(str, path)
            if first == TIME:
                yield from _absent_time(place, steps, names)


def _absent_time(
    place: Location, steps: Sequence[str], events: Collection[str]
) -> Iterator[FieldError]:
    if steps and steps[0] not in _TIME_KEYS:
        yield FieldError(place, f"time has no {steps[0]!r}; {nearest(steps[0], _TIME_KEYS)}")
    elif len(steps) > 1 and steps[0] == "events" and steps[1] not in events:
        hint = nearest(steps[1], sorted(events)) if events else "there are none"
        yield FieldError(place, f"there is no event {steps[1]!r}; {hint}")


def _absent_paths(world: ScenarioWorld, states: JsonObject) -> Iterator[FieldError]:
    """Yield the paths of events that the initial state lacks and that no rule can create."""
    targets = [target for name, part in world.parts.items() for target in _targets(name, part)]
    for event in world.events:
        targets += [target for rule in event.rules or () for target in _written(rule, ())]
    names = {event.name for event in world.events}
    for place, path in (*_paths_of_events(world.events), *_times_of_parts(world.parts)):
        steps = tuple(path.split("."))
        if steps[0] == TIME:
            yield from _absent_time(place, steps[1:], names)
            continue
        value: Any = states
        for depth, step in enumerate(steps, 1):
            if isinstance(value, dict) and step in value:
                value = value[step]
                continue
            part = world.parts.get(steps[0])
            is_known = isinstance(value, dict) and (part is None or isinstance(part, DeclaredWorld))
            if is_known and not any(_creates(target, steps[:depth]) for target in targets):
                reason = f"the state has no {'.'.join(steps[:depth])!r}, and no rule creates it"
                hint = f"; {nearest(step, [*value])}" if value else ""
                yield FieldError(place, reason + hint)
            break


def _paths_of_events(events: Iterable[EventRecord]) -> Iterator[tuple[Location, str]]:
    for index, event in enumerate(events):
        place: Location = ("events", index)
        if event.when is not None:
            yield from _paths_of_condition(event.when, (*place, "when"))
        for number, condition in enumerate(event.requires):
            yield from _paths_of_condition(condition, (*place, "requires", number))
        for number, rule in enumerate(event.rules or ()):
            yield from _paths_of_rule(rule, (*place, "rules", number))


def _paths_of_rule(rule: Rule, place: Location) -> Iterator[tuple[Location, str]]:
    for key in ("path", "source", "target"):
        if (path := getattr(rule, key, None)) is not None:
            yield (*place, key), path
    for key in ("value", "amount", "fields"):
        yield from _paths_of_template(getattr(rule, key, None), (*place, key))


def _paths_of_template(template: Any, place: Location) -> Iterator[tuple[Location, str]]:
    if isinstance(template, dict | list):
        items = template.items() if isinstance(template, dict) else enumerate(template)
        for key, value in items:
            if key in ("$get", "$count") and isinstance(value, str):
                yield (*place, key), value
            else:
                yield from _paths_of_template(value, (*place, key))


def _times_of_parts(
    parts: Mapping[str, DeclaredWorld | BuiltInPart],
) -> Iterator[tuple[Location, str]]:
    """Yield the paths in tools that begin with the key of the time."""
    for name, part in parts.items():
        for number, tool in enumerate(part.tools if isinstance(part, DeclaredWorld) else ()):
            place: Location = ("parts", name, "tools", number)
            paths = [
                path
                for index, required in enumerate(tool.requires)
                for path in _paths_of_condition(
                    required.condition, (*place, "requires", index, "condition")
                )
            ]
            for index, rule in enumerate(tool.rules or ()):
                paths += _paths_of_rule(rule, (*place, "rules", index))
            yield from ((at, path) for at, path in paths if path.startswith(f"{TIME}."))


def _paths_of_condition(condition: Any, place: Location) -> Iterator[tuple[Location, str]]:
    if (path := getattr(condition, "path", None)) is not None:
        yield (*place, "path"), path
    if (inner := getattr(condition, "condition", None)) is not None:
        yield from _paths_of_condition(inner, (*place, "condition"))
    for index, inner in enumerate(getattr(condition, "conditions", ())):
        yield from _paths_of_condition(inner, (*place, "conditions", index))


def _targets(name: str, part: DeclaredWorld | BuiltInPart) -> Iterator[tuple[str, ...]]:
    for tool in part.tools if isinstance(part, DeclaredWorld) else ():
        for rule in tool.rules or ():
            yield from _written(rule, (name,))


def _written(rule: Rule, prefix: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the paths at which a rule can add a key; ``$`` begins a step that can be any key."""
    if isinstance(rule, Create | Set | Update):
        path = (*prefix, *rule.path.split("."))
        if isinstance(rule, Create):
            yield (*path, rule.id if rule.id is not None else "$id")
        elif isinstance(rule, Set):
            yield path
        else:
            yield from ((*path, field) for field in rule.fields)


def _creates(target: tuple[str, ...], steps: tuple[str, ...]) -> bool:
    """Return whether a rule that writes at ``target`` can add the last of ``steps``."""
    return len(target) <= len(steps) and all(
        key.startswith("$") or key == step for key, step in zip(target, steps, strict=False)
    )


def _part_record(world: str, state: JsonObject) -> JsonObject:
    if world not in ("declared", "declared_python"):
        return {"world": world, "state": state}
    own: JsonObject = {key: value for key, value in state.items() if key != TOOLSET}
    return {"state": own, **as_object(state.get(TOOLSET))}


def _unknown_tools(opened: Scenario, world: ScenarioWorld) -> Iterator[FieldError]:
    names = {tool.name for tool in opened.list_tools()}
    for key in ("latency", "price_microusd"):
        for name in getattr(world.time, key):
            if name not in names | {ANY_TOOL}:
                reason = f"the scenario has no tool {name!r}; {nearest(name, sorted(names))}"
                yield FieldError((TIME, key, name), reason)
