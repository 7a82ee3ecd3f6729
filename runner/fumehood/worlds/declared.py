"""A world whose state, tools and rules are data (docs/declared_worlds.md).

The key ``toolset`` of the state declares the ``tools``, each with a JSON Schema, ``requires``
(conditions) and ``rules``. All rules of a call take effect, or none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from functools import reduce
from typing import Any

from fumehood.core.conditions import AS_IDS, Condition, as_id, holds, is_number, resolve
from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject, copy_json, json_bytes
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec, Value
from fumehood.worlds.schema import NO_SUCH_TOOL, reject

TOOLSET = "toolset"
"""Key of the state that declares the tools; rules cannot read or change it."""
CODES = (
    "not_allowed",
    "not_found",
    "already_exists",
    "conflict",
    "insufficient",
    "invalid_value",
    "too_large",
)
"""All error codes of rules; the first is the default of a precondition."""
STATE_BYTES_MAX = 1_000_000
COPIED_BYTES_MAX = 4_000_000
"""Limit of the values that one call may copy, so that a few rules cannot multiply a large one."""
NUMBER_MAX = 10**15
"""Limit of the absolute value of numbers in calculations; sums of decimals are exact below it."""
_SHOWN_CHARACTERS = 100
_DECIMALS = Context(prec=40)


class Rejected(Exception):
    """A call that the rules of its tool reject."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.failure = reject(code, message)


class _Omitted(Exception):
    """A value refers to an optional argument that the call omits."""


class Declared:
    """State: any object, with the declaration of the tools under ``toolset``."""

    toolset_id = "declared"

    def __init__(self, state: JsonObject) -> None:
        """Use ``state`` as the state of the world.

        Raises:
            SpecError: the toolset is not a declaration, or the state is too large.
        """
        with _declaration():
            toolset: Any = state.get(TOOLSET, {"tools": []})
            self._source: str = toolset.get("python", "")
            self._tools: dict[str, Mapping[str, Any]] = {
                tool["name"]: tool for tool in toolset["tools"]
            }
            self._specs = tuple(
                ToolSpec(
                    name,
                    {"additionalProperties": False, **tool["parameters"]},
                    tool["description"],
                )
                for name, tool in self._tools.items()
            )
        if json_bytes(state) > STATE_BYTES_MAX:
            raise SpecError("initial_state", f"must have at most {STATE_BYTES_MAX} bytes as JSON")
        self.state = state
        self.revision = 0
        self.surroundings: JsonObject = {}
        """Values outside this world that its rules can read, such as the time."""

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the declared tools."""
        return self._specs

    def call(self, call: ToolCall) -> ToolResult:
        """Execute one call with valid arguments."""
        if call.tool_name not in self._tools:
            return NO_SUCH_TOOL
        try:
            return self._answer(self._tools[call.tool_name], call.arguments)
        except Rejected as rejection:
            return rejection.failure
        except (ArithmeticError, RecursionError, ValueError):
            # A number with too many digits, or a value that is nested too deeply.
            return reject("invalid_value", "A value is too large for this tool.")

    def _answer(self, tool: Mapping[str, Any], arguments: Mapping[str, Json]) -> ToolResult:
        writes = any(rule["op"] in _WRITING for rule in tool["rules"])
        values = self.values()
        step = Step(arguments, {**values} if not writes else copied(values))
        output = step.run(tool)
        if writes:
            self.replace_values(step.values)
        return Value(output)

    def values(self) -> JsonObject:
        """Return what rules can read: the state without the toolset, and the surroundings."""
        own = {key: value for key, value in self.state.items() if key != TOOLSET}
        return {**own, **self.surroundings}

    def replace_values(self, values: JsonObject, bytes_max: int = STATE_BYTES_MAX) -> None:
        """Make these values the state; changes of the surroundings have no effect.

        Args:
            values: without the toolset.
            bytes_max: limit of the state as JSON.

        Raises:
            Rejected: the state would be too large.
        """
        own = {key: value for key, value in values.items() if key not in self.surroundings}
        state = {**own, TOOLSET: self.state[TOOLSET]} if TOOLSET in self.state else own
        if json_bytes(state) > bytes_max:
            raise Rejected("too_large", "The state would be too large.")
        self.state = state
        self.revision += 1


@contextmanager
def _declaration() -> Iterator[None]:
    try:
        yield
    except (AttributeError, KeyError, TypeError) as error:
        raise SpecError(f"initial_state.{TOOLSET}", f"is not a toolset: {error!r}") from None


def copied(values: JsonObject) -> JsonObject:
    """Return a copy that rules can change."""
    return {key: copy_json(value) for key, value in values.items()}


@dataclass
class Step:
    """One call or event: evaluates templates with its arguments, applies rules to the values."""

    arguments: Mapping[str, Json]
    values: JsonObject
    """The state without the toolset. Rules change it."""
    output: JsonObject = field(default_factory=dict)
    copied_bytes: int = 0

    def run(self, tool: Mapping[str, Any]) -> JsonObject:
        """Check the preconditions, apply the rules, and return the output.

        Raises:
            Rejected: a precondition does not hold, or a rule cannot be applied.
        """
        try:
            for requirement in tool.get("requires", ()):
                with suppress(_Omitted):
                    if not holds(self.condition(requirement["condition"]), self.values):
                        raise Rejected(requirement.get("code", CODES[0]), requirement["message"])
            for rule in tool["rules"]:
                _RULES[rule["op"]](self, rule)
        except _Omitted as name:
            raise Rejected("invalid_value", f"The argument {name} is required.") from None
        return self.output or {"ok": True}

    def value(self, template: Json) -> Json:
        """Return a template with arguments and results of operations in their places."""
        if isinstance(template, str):
            return self._text(template)
        if isinstance(template, list):
            return [value for item in template for value in self._given(item)]
        if not isinstance(template, dict):
            return template
        name = next(iter(template), "")
        if name in OPERATIONS:
            return OPERATIONS[name](self, template[name])
        return {_plain(key): value for key, item in template.items() for value in self._given(item)}

    def steps(self, path: str) -> tuple[str, ...]:
        """Return the steps of a path. An argument is one step, even if it contains dots."""
        named = path.split(".")
        steps = [self._text(step) for step in named]
        if not all(isinstance(step, str) or type(step) is int for step in steps):
            raise Rejected("invalid_value", "An ID must be text or a whole number.")
        # A second notation of a list position, which preconditions do not expect. For integers,
        # the schema of the argument has the bounds.
        texts = [step for name, step in zip(named, steps, strict=True) if step != name]
        if any(isinstance(text, str) and re.fullmatch("-[0-9]+", text) for text in texts):
            raise Rejected("invalid_value", "An ID must not be the text of a negative number.")
        return tuple(str(as_id(step)) for step in steps)

    def at(self, steps: tuple[str, ...]) -> Json:
        """Return the value at a path."""
        try:
            return resolve(self.values, steps)
        except (KeyError, IndexError, TypeError, ValueError):
            shown = ".".join(steps)[:_SHOWN_CHARACTERS]
            raise Rejected("not_found", f"{shown} does not exist.") from None

    def place(self, steps: tuple[str, ...]) -> tuple[Any, Any]:
        """Return the container of an existing value, and its key or position there."""
        self.at(steps)
        container = self.at(steps[:-1]) if len(steps) > 1 else self.values
        return container, int(steps[-1]) if isinstance(container, list) else steps[-1]

    def condition(self, template: Mapping[str, Any]) -> Condition:
        """Return a condition with arguments in their places."""
        condition = dict(template)
        if "path" in template:
            condition["path"] = self.steps(template["path"])
        for key in ("key", "value"):
            if key in template:
                condition[key] = self.value(template[key])
                # Paths take an argument for an ID, so preconditions must not distinguish 5 and "5".
                is_argument = isinstance(template[key], str) and template[key].startswith("$")
                condition[AS_IDS] = is_argument or condition.get(AS_IDS, False)
        if "condition" in template:
            condition["condition"] = self.condition(template["condition"])
        if "conditions" in template:
            condition["conditions"] = [dict(inner) for inner in self.conditions(template)]
        return condition

    def conditions(self, template: Mapping[str, Any], key: str = "conditions") -> list[Condition]:
        """Return the conditions of a list that refer to no omitted argument."""
        conditions = []
        for inner in template.get(key, ()):
            with suppress(_Omitted):
                conditions.append(self.condition(inner))
        if template.get("op") == "any_of" and not conditions:
            raise _Omitted
        return conditions

    def copy(self, value: Json) -> Json:
        """Return a copy of a value, within the limit of a call."""
        self.copied_bytes += json_bytes(value)
        if self.copied_bytes > COPIED_BYTES_MAX:
            raise Rejected("too_large", "The values of this call are too large.")
        return copy_json(value)

    def entry(self, path: str, steps: tuple[str, ...]) -> Json:
        """Return a copy of an entry, with its ID if an argument selects it."""
        is_selected = path.rpartition(".")[2].startswith("$")
        return _with_id(steps[-1] if is_selected else None, self.copy(self.at(steps)))

    def _given(self, template: Json) -> Iterator[Json]:
        with suppress(_Omitted):
            yield self.value(template)

    def _text(self, template: str) -> Json:
        if not template.startswith("$") or template.startswith("$$"):
            return _plain(template)
        if template[1:] not in self.arguments:
            raise _Omitted(template[1:])
        return self.copy(self.arguments[template[1:]])


def _plain(text: str) -> str:
    return text[1:] if text.startswith("$$") else text


def _with_id(key: str | None, entry: Json) -> Json:
    return {"id": key, **entry} if key is not None and isinstance(entry, dict) else entry


def _number(value: Json) -> int | float:
    if not is_number(value) or abs(value) > NUMBER_MAX:  # type: ignore[arg-type]
        raise Rejected("invalid_value", f"A number must be between -{NUMBER_MAX} and {NUMBER_MAX}.")
    return value  # type: ignore[return-value]


def _calculation(
    calculate: Callable[[Decimal, Decimal], Decimal],
) -> Callable[[Step, Any], Json]:
    def operation(step: Step, operands: Any) -> Json:
        return _calculated(calculate, [step.value(operand) for operand in operands])

    return operation


def _calculated(calculate: Callable[[Decimal, Decimal], Decimal], values: list[Json]) -> Json:
    numbers = [_number(value) for value in values]
    # In decimal notation, as an author reads them: 0.1 + 0.2 is 0.3.
    result = reduce(calculate, [Decimal(str(number)) for number in numbers])
    is_whole = all(isinstance(number, int) for number in numbers)
    return _number(int(result) if is_whole else float(result))


def _join(step: Step, operands: Any) -> Json:
    values = [step.value(operand) for operand in operands]
    if not all(isinstance(value, str) or is_number(value) for value in values):
        raise Rejected("invalid_value", "Only text and numbers can be joined.")
    return step.copy("".join(map(str, values)))


def _count(step: Step, path: Any) -> Json:
    collection = step.at(step.steps(path))
    return len(collection) if isinstance(collection, dict | list) else 0


OPERATIONS: Mapping[str, Callable[[Step, Any], Json]] = {
    "$get": lambda step, path: step.copy(step.at(step.steps(path))),
    "$count": _count,
    "$add": _calculation(_DECIMALS.add),
    "$subtract": _calculation(_DECIMALS.subtract),
    "$multiply": _calculation(_DECIMALS.multiply),
    "$join": _join,
}
"""Operations of derived values: an object with one of these keys is replaced by the result."""


def _get(step: Step, rule: Mapping[str, Any]) -> None:
    step.output[rule.get("output", "result")] = step.entry(rule["path"], step.steps(rule["path"]))


def _list(step: Step, rule: Mapping[str, Any]) -> None:
    collection = step.at(step.steps(rule["path"]))
    entries: list[Json] = []
    if isinstance(collection, dict):
        # By ID, because an object of JSON has no order.
        entries = [_with_id(key, collection[key]) for key in sorted(collection)]
    elif isinstance(collection, list):
        entries = collection
    conditions = step.conditions(rule, "where")
    entries = [entry for entry in entries if all(_fits(entry, item) for item in conditions)]
    if "fields" in rule:
        entries = [_projected(entry, rule["fields"]) for entry in entries]
    step.output[rule.get("output", "result")] = step.copy(entries)


def _fits(entry: Json, condition: Condition) -> bool:
    return isinstance(entry, dict) and holds(condition, entry)


def _projected(entry: Json, fields: list[str]) -> Json:
    return {key: entry[key] for key in fields if key in entry} if isinstance(entry, dict) else entry


def _create(step: Step, rule: Mapping[str, Any]) -> None:
    collection = _object(step.at(step.steps(rule["path"])))
    if "id" in rule:
        (key,) = step.steps(rule["id"])
    else:
        number = len(collection) + 1
        while (key := f"{rule['id_prefix']}{number}") in collection:
            number += 1
    if key in collection:
        raise Rejected("already_exists", f"{key[:_SHOWN_CHARACTERS]} already exists.")
    if not key:
        raise Rejected("invalid_value", "An ID must not be empty.")
    entry = step.value(rule["fields"])
    collection[key] = entry
    step.output[rule.get("output", "result")] = _with_id(key, step.copy(entry))


def _update(step: Step, rule: Mapping[str, Any]) -> None:
    steps = step.steps(rule["path"])
    entry = _object(step.at(steps))
    entry.update(_object(step.value(rule["fields"])))
    step.output[rule.get("output", "result")] = step.entry(rule["path"], steps)


def _set(step: Step, rule: Mapping[str, Any]) -> None:
    *above, key = step.steps(rule["path"])
    container = step.at(tuple(above)) if above else step.values
    if isinstance(container, list):
        container, key = step.place((*above, key))
    elif not isinstance(container, dict):
        raise Rejected("invalid_value", f"{'.'.join(above)[:_SHOWN_CHARACTERS]} is not an object.")
    container[key] = step.value(rule["value"])


def _delete(step: Step, rule: Mapping[str, Any]) -> None:
    container, key = step.place(step.steps(rule["path"]))
    del container[key]


def _transfer(step: Step, rule: Mapping[str, Any]) -> None:
    amount = _number(step.value(rule["amount"]))
    if amount <= 0:
        raise Rejected("invalid_value", "The amount must be greater than 0.")
    source, source_key = step.place(step.steps(rule["source"]))
    target, target_key = step.place(step.steps(rule["target"]))
    if _number(source[source_key]) < amount:
        raise Rejected("insufficient", f"Only {source[source_key]} are available.")
    moved = (
        (source, source_key, _DECIMALS.subtract),
        (target, target_key, _DECIMALS.add),
    )
    for container, key, calculate in moved:
        before = container[key]
        container[key] = _calculated(calculate, [before, amount])
        # A float keeps about 16 digits, so that a small amount could be lost on one side.
        if abs(_fraction(container[key]) - _fraction(before)) != _fraction(amount):
            raise Rejected("invalid_value", f"{before} and {amount} have too many digits.")


def _fraction(number: Json) -> Fraction:
    return Fraction(str(number))


def _append(step: Step, rule: Mapping[str, Any]) -> None:
    items = step.at(step.steps(rule["path"]))
    if not isinstance(items, list):
        raise Rejected("invalid_value", f"{rule['path']} is not a list.")
    items.append(step.value(rule["value"]))


def _compute(step: Step, rule: Mapping[str, Any]) -> None:
    step.output[rule.get("output", "result")] = step.value(rule["value"])


def _object(value: Json) -> JsonObject:
    if not isinstance(value, dict):
        raise Rejected("invalid_value", "The rule needs an object here.")
    return value


_WRITING: Mapping[str, Callable[[Step, Mapping[str, Any]], None]] = {
    "create": _create,
    "update": _update,
    "set": _set,
    "delete": _delete,
    "transfer": _transfer,
    "append": _append,
}
_RULES: Mapping[str, Callable[[Step, Mapping[str, Any]], None]] = {
    "get": _get,
    "list": _list,
    "compute": _compute,
    **_WRITING,
}
