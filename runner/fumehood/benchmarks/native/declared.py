"""The models of a declared world, and checks of what its rules refer to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import jsonschema_rs
from pydantic import Field, model_validator

from fumehood.benchmarks.native.criteria import Condition, DottedPath, Name
from fumehood.benchmarks.shared.records import StrictRecord
from fumehood.benchmarks.shared.validation_errors import FieldError, Location
from fumehood.core.conditions import is_number
from fumehood.core.errors import nearest
from fumehood.core.json_values import JsonObject
from fumehood.worlds.declared import CODES, OPERATIONS, TOOLSET

Template = Any
"""A JSON value in which ``$name`` is an argument, and an object such as ``{"$add": [1, 2]}`` is
replaced by its result."""


class Requirement(StrictRecord):
    """A precondition of a tool."""

    condition: Condition
    code: Literal[CODES] = "not_allowed"  # type: ignore[valid-type]
    """Error code that the agent gets if the condition does not hold."""
    message: Name
    """Sentence that the agent gets if the condition does not hold."""


class _Answering(StrictRecord):
    output: Name = "result"
    """Key of the result in the output of the tool."""


class Get(_Answering):
    """Returns the value at the path; with its ``id`` if an argument selects it."""

    op: Literal["get"]
    path: DottedPath


class List(_Answering):
    """Returns the entries of a collection, sorted by ID."""

    op: Literal["list"]
    path: DottedPath
    where: list[Condition] = Field(default_factory=list, max_length=30)
    """Conditions on each entry; paths start at the entry, which has the key ``id``."""
    fields: list[Name] = Field(default_factory=list)
    """Keys of an entry that are returned; default: all."""


class Create(_Answering):
    """Adds an entry to a collection."""

    op: Literal["create"]
    path: DottedPath
    id: Name | None = None
    """Usually an argument, such as ``$order_id``."""
    id_prefix: str | None = None
    """The world numbers the entries: ``o`` gives ``o1``, ``o2`` and so on."""
    fields: dict[str, Template]

    @model_validator(mode="after")
    def _has_one_kind_of_id(self) -> Create:
        if (self.id is None) == (self.id_prefix is None):
            raise ValueError("give either id or id_prefix")
        return self


class Update(_Answering):
    """Sets fields of an object."""

    op: Literal["update"]
    path: DottedPath
    fields: dict[str, Template] = Field(min_length=1)


class Set(StrictRecord):
    """Sets the value at the path, whose last key may be new."""

    op: Literal["set"]
    path: DottedPath
    value: Template


class Delete(StrictRecord):
    """Removes the value at the path."""

    op: Literal["delete"]
    path: DottedPath


class Transfer(StrictRecord):
    """Moves an amount from one number to another, which keeps their sum."""

    op: Literal["transfer"]
    source: DottedPath
    target: DottedPath
    amount: Template


class Append(StrictRecord):
    """Adds a value to the end of a list."""

    op: Literal["append"]
    path: DottedPath
    value: Template


class Compute(_Answering):
    """Returns a derived value."""

    op: Literal["compute"]
    value: Template


Rule = Annotated[
    Get | List | Create | Update | Set | Delete | Transfer | Append | Compute,
    Field(discriminator="op"),
]


class Tool(StrictRecord):
    """A tool, which applies its rules if its preconditions hold."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")
    description: Name
    parameters: dict[str, Any]
    """JSON Schema of the arguments; ``additionalProperties`` is false by default."""
    requires: list[Requirement] = Field(default_factory=list, max_length=30)
    """Preconditions, checked in order."""
    rules: Annotated[list[Rule], Field(min_length=1, max_length=30)] | None = None
    """Applied in order; a tool without rules is a function in ``python``."""


class DeclaredWorld(StrictRecord):
    """Initial state and tools of a world."""

    state: dict[str, Any]
    tools: list[Tool] = Field(min_length=1, max_length=100)
    python: Annotated[str, Field(min_length=1, max_length=100_000)] | None = None
    """Source of the functions of tools without rules: ``def name(state, argument, …)``."""

    def name(self) -> str:
        """Return the name of the world that executes the declaration."""
        return "declared" if self.python is None else "declared_python"

    def toolset(self) -> JsonObject:
        """Return the declaration of the tools, as a part of the initial state."""
        return self.model_dump(exclude={"state"}, exclude_unset=True)


def mistakes_of(world: DeclaredWorld, surroundings: Sequence[str] = ()) -> Iterator[FieldError]:
    """Yield what the schemas of a world do not show: unknown names, and parts without effect.

    Args:
        world: the declaration.
        surroundings: keys outside the state that rules can read, but not change.
    """
    for key in (TOOLSET, *surroundings):
        if key in world.state:
            yield FieldError(("state", key), "is reserved; use another name")
    state = {**world.state, **dict.fromkeys(surroundings)}
    names = [tool.name for tool in world.tools]
    for index, tool in enumerate(world.tools):
        here: Location = ("tools", index)
        if tool.name in names[:index]:
            yield FieldError((*here, "name"), f"{tool.name!r} is used twice")
        if tool.rules is None and world.python is None:
            yield FieldError((*here, "rules"), "is missing; or give a function in python")
        if tool.rules is None and tool.requires:
            yield FieldError((*here, "requires"), "has no effect without rules; check in python")
        errors = list(_parameter_errors(tool.parameters, (*here, "parameters")))
        yield from errors
        if not errors:
            references = References(state, tool.parameters, surroundings)
            yield from references.in_rules(tool.requires, tool.rules or (), here)
    if world.python is not None and all(tool.rules for tool in world.tools):
        yield FieldError(("python",), "has no effect, because every tool has rules")


_KEYWORDS = (
    *("type", "properties", "required", "additionalProperties", "items", "enum", "const"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "minItems", "maxItems", "uniqueItems"),
    *("description", "title", "default", "examples", "anyOf"),
)
"""Keywords of JSON Schema without references, which could be remote, and regular expressions, whose
time has no bound."""


def _schema_errors(schema: Any, here: Location) -> Iterator[FieldError]:
    if not isinstance(schema, dict):
        yield FieldError(here, "must be an object (a JSON Schema)")
        return
    for key in schema:
        if key not in _KEYWORDS:
            yield FieldError((*here, key), f"is not a supported keyword; {nearest(key, _KEYWORDS)}")
    properties = schema.get("properties", {})
    properties = properties if isinstance(properties, dict) else {}
    for name, inner in properties.items():
        yield from _schema_errors(inner, (*here, "properties", name))
    for name in required if isinstance(required := schema.get("required"), list) else ():
        if not isinstance(name, str) or name not in properties:
            hint = nearest(str(name), list(properties)) if properties else "there are none"
            yield FieldError((*here, "required"), f"{name!r} is not in properties; {hint}")
    for key in ("items", "additionalProperties"):
        if not isinstance(inner := schema.get(key, True), bool):
            yield from _schema_errors(inner, (*here, key))
    any_of = schema.get("anyOf")
    for index, inner in enumerate(any_of if isinstance(any_of, list) else ()):
        yield from _schema_errors(inner, (*here, "anyOf", index))


def _parameter_errors(parameters: dict[str, Any], here: Location) -> Iterator[FieldError]:
    if parameters.get("type") != "object":
        yield FieldError((*here, "type"), "must be object")
    yield from _schema_errors(parameters, here)
    try:
        jsonschema_rs.meta.validate(parameters)
    except jsonschema_rs.ValidationError as error:
        yield FieldError((*here, *error.instance_path), error.message)


class References:
    """Checks the paths and the argument names in the rules of one tool or event."""

    def __init__(
        self,
        state: Mapping[str, Any],
        parameters: Mapping[str, Any],
        read_only: Sequence[str] = (),
    ) -> None:
        """Check against a state and the arguments of a tool.

        Args:
            state: what paths begin with.
            parameters: JSON Schema of the arguments.
            read_only: keys of the state that rules must not change.
        """
        self._state = state
        self._read_only = read_only
        self._names = list(parameters.get("properties", ()))
        self._required = set(parameters.get("required", ()))

    def in_rules(
        self, requires: Sequence[Requirement], rules: Sequence[Rule], here: Location
    ) -> Iterator[FieldError]:
        """Yield the mistakes in preconditions and rules."""
        for index, requirement in enumerate(requires):
            yield from self.in_condition(
                requirement.condition, (*here, "requires", index, "condition")
            )
        for index, rule in enumerate(rules):
            place = (*here, "rules", index)
            for key in ("path", "source", "target"):
                if (path := getattr(rule, key, None)) is not None:
                    yield from self._path(path, (*place, key))
                    first = path.partition(".")[0]
                    if first in self._read_only and not isinstance(rule, Get | List):
                        yield FieldError((*place, key), f"{first!r} cannot be changed by rules")
            if (entry_id := getattr(rule, "id", None)) is not None:
                yield from self._argument(entry_id, (*place, "id"), is_required=True)
            if isinstance(rule, List):
                for number, condition in enumerate(rule.where):
                    yield from self.in_condition(
                        condition, (*place, "where", number), is_relative=True
                    )
            elif (fields := getattr(rule, "fields", None)) is not None:
                yield from self._template(fields, (*place, "fields"))
            for key in ("value", "amount"):
                yield from self._template(getattr(rule, key, None), (*place, key))
            if isinstance(rule, Transfer):
                yield from self._amount(rule.amount, (*place, "amount"))

    def in_condition(
        self, condition: Any, here: Location, *, is_relative: bool = False
    ) -> Iterator[FieldError]:
        """Yield the mistakes in a condition."""
        if (path := getattr(condition, "path", None)) is not None:
            yield from self._path(path, (*here, "path"), is_relative=is_relative, is_required=False)
        for key in ("key", "value"):
            yield from self._template(getattr(condition, key, None), (*here, key))
        if (inner := getattr(condition, "condition", None)) is not None:
            yield from self.in_condition(inner, (*here, "condition"), is_relative=is_relative)
        for index, inner in enumerate(getattr(condition, "conditions", ())):
            yield from self.in_condition(
                inner, (*here, "conditions", index), is_relative=is_relative
            )

    def _path(
        self, path: str, here: Location, *, is_relative: bool = False, is_required: bool = True
    ) -> Iterator[FieldError]:
        first, *others = path.split(".")
        if not is_relative and first not in self._state:
            yield FieldError(here, f"the state has no {first!r}; {nearest(first, [*self._state])}")
        if "{" in path:
            yield FieldError(here, "write an argument as $name")
        for step in others:
            yield from self._argument(step, here, is_required=is_required)

    def _argument(self, text: str, here: Location, *, is_required: bool) -> Iterator[FieldError]:
        if not text.startswith("$") or text.startswith("$$"):
            return
        name = text[1:]
        if name not in self._names:
            yield FieldError(here, f"the tool has no argument {name!r}; {self._hint(name)}")
        elif is_required and name not in self._required:
            yield FieldError(here, f"the argument {name!r} must be in parameters.required")

    def _hint(self, name: str) -> str:
        return nearest(name, self._names) if self._names else "it has no arguments"

    def _amount(self, amount: Any, here: Location) -> Iterator[FieldError]:
        if isinstance(amount, str):
            yield from self._argument(amount, here, is_required=True)
        if not is_number(amount) and not (isinstance(amount, dict | str) and "$" in str(amount)):
            yield FieldError(here, "must be a number, an argument such as $amount, or an operation")

    def _template(self, template: Any, here: Location) -> Iterator[FieldError]:
        if isinstance(template, str):
            yield from self._argument(template, here, is_required=False)
        elif isinstance(template, list):
            for index, item in enumerate(template):
                yield from self._template(item, (*here, index))
        elif isinstance(template, dict):
            operations = [key for key in template if key[:1] == "$" != key[1:2]]
            if not operations:
                for key, item in template.items():
                    yield from self._template(item, (*here, key))
            elif operations[0] not in OPERATIONS and operations[0][1:] in self._names:
                reason = "a key cannot be an argument; use the rule set"
                yield FieldError((*here, operations[0]), reason)
            elif len(template) > 1:
                yield FieldError(here, f"{operations[0]!r} must be the only key of its object")
            else:
                yield from self._operation(operations[0], template[operations[0]], here)

    def _operation(self, name: str, operand: Any, here: Location) -> Iterator[FieldError]:
        here = (*here, name)
        if name not in OPERATIONS:
            yield FieldError(here, f"is not an operation; {nearest(name, list(OPERATIONS))}")
        elif name in ("$get", "$count"):
            if isinstance(operand, str):
                yield from self._path(operand, here)
            else:
                yield FieldError(here, "must be a path")
        elif not isinstance(operand, list) or len(operand) < 2:
            yield FieldError(here, "must be a list of at least two values")
        else:
            yield from self._template(operand, here)
