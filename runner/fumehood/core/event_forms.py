"""The forms of the events of a trace, derived from the types of the fields of their classes.

Code of an agent that took over the process of its episode can write any text as a record. The
service checks each record when it arrives, so no later reader meets an event of another form.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from fumehood.core.conversation import TurnBegan, TurnEnded
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.json_values import (
    BRACKETS_MAX,
    Json,
    JsonObject,
    as_object,
    canonical_json,
    finite_number,
    is_slow_to_parse,
    no_constant,
)
from fumehood.core.outcome import CallRefused, ConfidenceStated
from fumehood.core.received import Delivery
from fumehood.core.tools import Failure, FiredFault, ToolCall, Value
from fumehood.core.trace import (
    CallMade,
    EpisodeClosed,
    ModelCalled,
    ModelProblemNoted,
    ModelRefused,
    MonitorDecided,
    PermissionAnswered,
    ProviderChecked,
    SeatEnded,
)
from fumehood.core.virtual_time import WorldEvent

DEPTH_MAX = 200
"""Levels of an event. Python code that reads a value recursively may use about 1,000 levels."""
OUTER_LEVELS = 4
"""Levels of an event around the result of a call, at most."""
_INTEGER_MAX = 2**63
"""Bound of a number of the service, which fits into 64 bits. Numbers of agents have no bound."""

Check = Callable[[Any], bool]
"""Returns whether a parsed JSON value has a form."""

_CONTAINERS = frozenset((dict, list))
_NUMBERS = frozenset((int, float))
_WORDS = frozenset((str, bool))
_WHOLE_CLASSES: Mapping[type, Check] = {
    str: lambda value: value.__class__ is str,
    bool: lambda value: value.__class__ is bool,
    dict: lambda value: value.__class__ is dict,
}
_decode = json.JSONDecoder(parse_constant=no_constant, parse_float=finite_number).decode


class WrongForm(ValueError):
    """A text is not an event; the message states where it differs."""


@dataclass(frozen=True, slots=True)
class _Form:
    """The form of an object."""

    checks: Mapping[str, Check]
    """By key. An object has no other keys."""
    needed: frozenset[str]
    """Keys that each object has."""
    one_of: frozenset[str] = frozenset()
    """Keys of which each object has exactly one; empty for no such keys."""
    classes: Mapping[str, type] = field(init=False)
    """By key: the class of which every object is allowed. Faster than a check."""

    def __post_init__(self) -> None:
        known = {check: cls for cls, check in _WHOLE_CLASSES.items()}
        classes = {key: known[check] for key, check in self.checks.items() if check in known}
        object.__setattr__(self, "classes", classes)

    def wrong_key(self, value: JsonObject) -> str | None:
        """Return a key whose value is missing or wrong; None if the object has this form."""
        checks, classes = self.checks, self.classes
        for key, item in value.items():
            if item.__class__ is classes.get(key):
                continue
            check = checks.get(key)
            if check is None or not check(item):
                return key
        if not self.needed <= value.keys():
            return min(self.needed - value.keys())
        if self.one_of and len(self.one_of & value.keys()) != 1:
            return min(self.one_of)
        return None

    def holds(self, value: Any) -> bool:
        """Return whether a value is an object of this form."""
        return value.__class__ is dict and self.wrong_key(value) is None


def parse_event(text: str) -> JsonObject:
    """Return the event of a record.

    Raises:
        WrongForm: the text is not an event in canonical JSON; also if it takes long to parse or is
            nested deeply.
    """
    # Code of an agent in the process could write an event that is slow to parse.
    if len(text) > BRACKETS_MAX and is_slow_to_parse(text):
        raise WrongForm("a record is not an event: it has too many values")
    try:
        event = _decode(text)
    except (ValueError, RecursionError):
        raise WrongForm("a record is not an event: it is not JSON") from None
    kind = event.get("kind") if event.__class__ is dict else None
    form = _forms().get(kind) if kind.__class__ is str else None
    if form is None:
        raise WrongForm("a record is not an event: its kind is unknown")
    if (key := form.wrong_key(event)) is not None:
        raise WrongForm(
            f"a record is not an event: {key[:64]!a} of {kind!r} is missing or has the wrong type"
        )
    if text.count("[") + text.count("{") > DEPTH_MAX and _is_deep(event, DEPTH_MAX):
        raise WrongForm(f"a record is not an event: it has more than {DEPTH_MAX} levels")
    # The hash of a record that is read from the run folder is computed from its canonical text.
    if canonical_json(event) != text:
        raise WrongForm("a record is not an event: it is not canonical JSON")
    return as_object(event)


def is_recordable(value: Json) -> bool:
    """Return whether a value can be part of an event.

    Raises:
        ValueError, TypeError, RecursionError: it cannot be written as JSON.
    """
    text = canonical_json(value)
    if "NaN" in text or "Infinity" in text:
        try:
            _decode(text)
        except ValueError:
            return False
    levels_max = DEPTH_MAX - OUTER_LEVELS
    return text.count("[") + text.count("{") <= levels_max or not _is_deep(value, levels_max)


def _is_deep(value: Json, levels_max: int) -> bool:
    level: list[Any] = [value]
    for _ in range(levels_max):
        level = [
            item
            for outer in level
            for item in (outer.values() if outer.__class__ is dict else outer)
            if item.__class__ in _CONTAINERS
        ]
        if not level:
            return False
    return True


_SAME_NAMES: Mapping[str, type] = {
    "model_call": ModelCalled,
    "model_refused": ModelRefused,
    "model_problem": ModelProblemNoted,
    "monitor": MonitorDecided,
    "permission": PermissionAnswered,
    "provider_checked": ProviderChecked,
    "refused": CallRefused,
    "confidence": ConfidenceStated,
    "turn_began": TurnBegan,
    "turn_ended": TurnEnded,
    "world_event": WorldEvent,
    "seat_ended": SeatEnded,
    "closed": EpisodeClosed,
}
"""By kind: the classes whose events have a key for each field."""
_LEFT_OUT = {"model_refused": frozenset(("budget",)), "monitor": frozenset(("spent",))}
"""By kind: keys without which an event may be written, other than those whose field may be None."""


@cache
def _forms() -> Mapping[str, _Form]:
    """Return the form of each kind of event."""
    forms = {kind: _same_names(kind, event) for kind, event in _SAME_NAMES.items()}
    return {
        kind: _Form(
            {**form.checks, "kind": _SIMPLE[str]},  # The kind has chosen the form.
            form.needed | {"kind"},
            form.one_of,
        )
        for kind, form in {**forms, "call": _call_form(), "opened": _opened_form()}.items()
    }


def _same_names(kind: str, event: type) -> _Form:
    types = _types(event)
    types.pop("duration_ns", None)  # Part of the record.
    one_of = frozenset(("decision", "failed")) if kind == "monitor" else frozenset[str]()
    return _form(types, left_out=_LEFT_OUT.get(kind, frozenset()), one_of=one_of)


def _call_form() -> _Form:
    event, call, failure = _types(CallMade), _types(ToolCall), _types(Failure)
    fired = _types(FiredFault)
    fault = _form({name: fired[name] for name in ("rule", "family", "code_before")})
    shown = _form({name: failure[name] for name in ("kind", "code", "message", "details")})
    delivery = _form(_types(Delivery), left_out=frozenset(("observed", "invalid_approval")))
    names = (
        *("seat", "charged", "remaining", "at_ms", "observed", "changed", "had_effect"),
        *("executed_at_ms", "invalid_approval"),
    )
    form = _form(
        {
            **{name: event[name] for name in names},
            "number": call["number"],
            "tool": call["tool_name"],
            "arguments": call["arguments"],
            "arguments_after": call["arguments"],
            "state": event["state_digest"],
            "output": _types(Value)["output"],
            "executed": Literal[True],
        },
        left_out=frozenset(("changed", "arguments_after", "executed", "invalid_approval")),
        one_of=frozenset(("output", "failure")),
    )
    checks = {
        **form.checks,
        "faults": _list_of(fault.holds),
        "failure": shown.holds,
        "delivered": _list_of(delivery.holds),
    }
    return _Form(checks, form.needed | {"faults"}, form.one_of)


def _opened_form() -> _Form:
    spec = _types(EpisodeSpec)
    same = {name: spec[name] for name in ("world", "harness_mode", "policy", "monitors")}
    texts = dict.fromkeys(("seed", "state", "data_mode", "conversation"), str)
    lists = dict.fromkeys(("fault_plan", "seats"), list[JsonObject])
    left_out = frozenset(("data_mode", "conversation", "policy", "monitors"))
    return _form({**same, **texts, **lists}, left_out=left_out)


def _types(cls: type) -> dict[str, Any]:
    """Return the types of the fields of a dataclass."""
    types = inspect.get_annotations(cls, eval_str=True)
    return {field.name: types[field.name] for field in fields(cls)}


def _form(
    types: Mapping[str, Any],
    *,
    left_out: frozenset[str] = frozenset(),
    one_of: frozenset[str] = frozenset(),
) -> _Form:
    """Return the form of an object.

    Args:
        types: by key. An object has no key whose value would be None.
        left_out: further keys that an object may not have.
        one_of: keys of which each object has exactly one.
    """
    may_be_none = {key for key, kind in types.items() if NoneType in get_args(kind)}
    checks = {
        key: _check_any(option for option in _options(kind) if option is not NoneType)
        for key, kind in types.items()
    }
    return _Form(checks, frozenset(types.keys() - may_be_none - left_out - one_of), one_of)


def _options(kind: Any) -> tuple[Any, ...]:
    is_union = get_origin(kind) in (Union, UnionType) and kind != Json
    return get_args(kind) if is_union else (kind,)


def _check_any(kinds: Iterable[Any]) -> Check:
    checks = [_check(kind) for kind in kinds]
    return checks[0] if len(checks) == 1 else lambda value: any(check(value) for check in checks)


def _check(kind: Any) -> Check:
    """Return the check of a type.

    Raises:
        TypeError: an event has a field of a type that this module does not know.
    """
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if get_origin(kind) is not None and kind != Json:
        return _check_parts(kind, get_origin(kind), get_args(kind))
    if kind == Json:
        return lambda _: True
    if issubclass(kind, Enum):
        return _one_of(*(member.value for member in kind))
    if isinstance(kind, type) and is_dataclass(kind):
        return _named_form(kind).holds
    raise TypeError(f"a field of an event has a type without a form: {kind}")


def _check_parts(kind: Any, origin: Any, parts: tuple[Any, ...]) -> Check:
    if origin is Annotated:
        return _check(parts[1])
    if origin is Literal:
        return _one_of(*parts)
    if origin in (dict, Mapping):
        return _object_of(*parts)
    if origin in (list, tuple):
        return _list_of(_check_any(_options(parts[0])))
    raise TypeError(f"a field of an event has a type without a form: {kind}")


_SIMPLE: dict[Any, Check] = {
    str: _WHOLE_CLASSES[str],
    bool: _WHOLE_CLASSES[bool],
    int: lambda value: value.__class__ is int and -_INTEGER_MAX <= value < _INTEGER_MAX,
    float: lambda value: _is_number(value) and -_INTEGER_MAX <= value < _INTEGER_MAX,
    NoneType: lambda value: value is None,
}


def _is_number(value: Any) -> bool:
    return value.__class__ in _NUMBERS


def _named_form(outcome: type) -> _Form:
    """Return the form of an outcome, as ``outcome_to_json`` writes it."""
    name = re.sub("(?<!^)(?=[A-Z])", "_", outcome.__name__).lower()
    return _form({"outcome": Literal[name], **_types(outcome)})


def _one_of(*values: str | bool) -> Check:
    return lambda value: value.__class__ in _WORDS and value in values


def _list_of(check: Check) -> Check:
    return lambda value: value.__class__ is list and all(map(check, value))


def _object_of(key: Any, item: Any) -> Check:
    if item == Json:
        return _WHOLE_CLASSES[dict]
    has_name, has_form = _check_any(_options(key)), _check_any(_options(item))

    def holds(value: Any) -> bool:
        if value.__class__ is not dict:
            return False
        return all(has_name(name) and has_form(part) for name, part in value.items())

    return holds
