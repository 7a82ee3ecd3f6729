"""A world of named parts with virtual time and events (docs/scenarios.md).

The key ``scenario`` of the state declares the ``parts``, the ``time`` and the ``events``. Each part
is a world; its state is under its name. Agents see the tools of all parts, and ``now`` and
``wait``.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from fumehood.core.conditions import holds
from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.tools import (
    ToolCall,
    ToolResult,
    Toolset,
    ToolSpec,
    Value,
    World,
)
from fumehood.core.virtual_time import SCENARIO, TIME, TimeRules, WorldEvent, latency_of
from fumehood.worlds.declared import (
    STATE_BYTES_MAX,
    TOOLSET,
    Declared,
    Rejected,
    Step,
    copied,
)
from fumehood.worlds.registry import WORLDS, toolset_of
from fumehood.worlds.schema import NO_SUCH_TOOL, reject

PARTS = ("declared", "crud", "files", "retrieval", "scheduling")
"""Worlds that can be parts: they need no other process and no external data."""
DAYS_MAX = 400
"""Limit of the duration of a scenario."""
EVENTS_MAX = 100_000
"""Limit of the occurrences of events in one episode."""
EVENT_STATE_BYTES_MAX = 2 * STATE_BYTES_MAX
"""Limit of the state of a part after an event. It is above the limit of calls, so that an agent
that fills the state prevents no event."""
_CHAINED_MAX = 100
"""Limit of events that the conditions of other events cause at one moment."""
_EVERYONE = ""
_UNSTATED: JsonObject = {"start": "1970-01-01T00:00:00Z", "end_s": 86_400}

NOW = ToolSpec(
    "now",
    {"type": "object", "properties": {}, "additionalProperties": False},
    "Return the current time and the messages that arrived since you last looked.",
)
WAIT = ToolSpec(
    "wait",
    {
        "type": "object",
        "properties": {
            "seconds": {"type": "number", "exclusiveMinimum": 0, "maximum": DAYS_MAX * 86_400},
            "until": {
                "type": "string",
                "description": "ISO 8601 time, such as 2026-03-02T06:30:00+00:00",
            },
        },
        "additionalProperties": False,
    },
    "Wait for a number of seconds or until a time. A message that arrives ends the wait. Returns "
    "the time and the new messages.",
)


@dataclass(frozen=True, slots=True, order=True)
class _Due:
    """An event at a moment."""

    at_ms: int
    index: int
    """Position in the declaration; decides between events at the same moment."""


class Scenario:
    """State: ``scenario``, ``time``, and the state of each part under its name."""

    toolset_id = "scenario"
    parts: ClassVar[tuple[str, ...]] = PARTS
    """Worlds that can be parts."""

    def __init__(self, state: JsonObject) -> None:
        """Create the parts from ``state``, which this world owns from now on.

        Raises:
            SpecError: the declaration or the state of a part is unusable.
        """
        with _declaration():
            declaration: Any = state.get(SCENARIO, {"parts": {}, TIME: _UNSTATED})
            self._parts = {
                name: _part(name, world, state, self.parts)
                for name, world in declaration["parts"].items()
            }
            self.time_rules = _time_rules(declaration.get(TIME, {}))
            self._events: list[Mapping[str, Any]] = declaration.get("events", [])
        self.sleep: Callable[[int, Callable[[], bool]], None] = self.advance_to
        self._given = state
        self._has_begun = False
        self._record: Callable[[WorldEvent], None] = lambda event: None
        self._now_us = 0
        self._own_revision = 0
        self._occurred: dict[str, int] = {}
        """How often each event has occurred with an effect, by name."""
        self._occasions = 0
        """How often any event was due or its condition came to hold."""
        self._messages: list[dict[str, str]] = []
        self._acts: list[Callable[[], None]] = []
        """What happens at a moment besides events; numbered after the events."""
        self._held: set[int] = set()
        """Positions of the events whose condition held when it was last checked."""
        self._since_ms: dict[int, int] = {}
        """By position of an event with a delay, when its condition last came to hold."""
        self._triggered: set[int] = set()
        """Positions of the events whose condition has held."""
        self._due: list[_Due] = []
        for index, event in enumerate(self._events):
            at_s = event.get("at_s", event.get("every_s"))
            if at_s is not None:
                self._schedule(index, round(1000 * at_s))
        self._owners = _owners(self._parts)
        self._read: dict[str, int] = {}
        """Number of messages that each seat has read or that are not for it."""
        self._renew_time()

    @property
    def now_us(self) -> int:
        """The virtual time since the start, microseconds."""
        return self._now_us

    @property
    def now_ms(self) -> int:
        """The virtual time since the start, milliseconds."""
        return self._now_us // 1000

    @property
    def revision(self) -> int:
        """Grows whenever the state changes."""
        return self._own_revision + sum(part.revision for part in self._parts.values())

    @property
    def state(self) -> JsonObject:
        """The state of all parts, with the declaration and, from the beginning on, the time."""
        parts: JsonObject = {name: part.state for name, part in self._parts.items()}
        has_begun = self._has_begun or self._now_us > 0
        time: JsonObject = {TIME: self._time} if has_begun else {}
        return {**self._given, **parts, **time}

    def seat(self, name: str) -> Toolset:
        """Return the tools of a seat; each seat reads its own messages."""
        return _SeatTools(self, name)

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools of a world without seats."""
        return self.seat(_EVERYONE).list_tools()

    def call(self, call: ToolCall) -> ToolResult:
        """Execute one call of a world without seats."""
        return self.seat(_EVERYONE).call(call)

    def begin(self, record: Callable[[WorldEvent], None]) -> None:
        """Begin the scenario: the events of its first moment occur."""
        self._record = record
        self._has_begun = True
        self.advance_to(0, stop=lambda: False)

    def pass_us(self, duration_us: int) -> None:
        """Let the current call take time; events that become due occur."""
        self.sleep(self._now_us + duration_us, lambda: False)

    def call_at(self, at_ms: int, act: Callable[[], None]) -> None:
        """Let something happen at a moment; never, if the moment is after the end."""
        self._acts.append(act)
        self._schedule(len(self._events) + len(self._acts) - 1, at_ms)

    def tell(self, text: str, seat: str) -> None:
        """Give a seat a message, which ends its wait."""
        self._add_message(text, seat)
        self._renew_time()

    def tools_of(self, seat: str) -> tuple[ToolSpec, ...]:
        """Return the tools of all parts for a seat, under their names for agents."""
        shown = {(part, name): shown for shown, (part, name) in self._owners.items()}
        specs = [
            ToolSpec(shown[part, spec.name], spec.parameters, spec.description)
            for part, world in self._parts.items()
            for spec in toolset_of(world, seat).list_tools()
        ]
        return (*specs, NOW, WAIT)

    def answer(self, seat: str, call: ToolCall) -> ToolResult:
        """Execute one call of a seat."""
        if call.tool_name == NOW.name:
            return Value(self._look(seat))
        if self.now_ms >= self.time_rules.end_ms:
            return reject("time_over", f"The scenario ended at {self._time['now']}.")
        if call.tool_name == WAIT.name:
            return self._wait(seat, call.arguments)
        owner = self._owners.get(call.tool_name)
        if owner is None:
            return NO_SUCH_TOOL
        part, name = owner
        world = self._parts[part]
        inner = ToolCall(name, call.arguments, call.number, call.answer_bytes_max)
        result = toolset_of(world, seat).call(inner)
        self._check_conditions()
        return result

    def advance_to(self, target_us: int, stop: Callable[[], bool]) -> None:
        """Advance the time to a moment, at most to the end; every event until then occurs.

        Args:
            target_us: virtual time since the start, microseconds.
            stop: called after each event; true stops at this event.
        """
        target_us = min(target_us, 1000 * self.time_rules.end_ms)
        while self._due and 1000 * self._due[0].at_ms <= target_us:
            due = heapq.heappop(self._due)
            self._move_to(max(self._now_us, 1000 * due.at_ms))
            if due.index >= len(self._events):
                self._acts[due.index - len(self._events)]()
            elif self._lasts(due):
                self._occur(due.index)
            self._check_conditions()
            if stop():
                return
        self._move_to(target_us)
        # Conditions can depend on the time.
        self._check_conditions()

    def _move_to(self, now_us: int) -> None:
        if now_us > self._now_us:
            self._now_us = now_us
            self._renew_time()

    def _look(self, seat: str) -> JsonObject:
        messages: list[Json] = [
            {"at": message["at"], "text": message["text"]} for message in self._unread(seat)
        ]
        self._read[seat] = len(self._messages)
        return {"now": self._time["now"], "messages": messages}

    def _unread(self, seat: str) -> list[dict[str, str]]:
        unread = self._messages[self._read.get(seat, 0) :]
        return [message for message in unread if message.get("to", seat) == seat]

    def _wait(self, seat: str, arguments: Mapping[str, Json]) -> ToolResult:
        seconds, until = arguments.get("seconds"), arguments.get("until")
        if (seconds is None) == (until is None):
            return reject("invalid_value", "Give either seconds or until.")
        if isinstance(seconds, int | float):
            target_us = self._now_us + round(1_000_000 * seconds)
        else:
            try:
                target_us = self._microseconds(datetime.fromisoformat(str(until)))
            except (ValueError, OverflowError):
                return reject("invalid_value", "until must be an ISO 8601 time.")
            if target_us <= self._now_us:
                return reject("invalid_value", f"until is not after {self._time['now']}.")
        if not self._unread(seat):
            self.sleep(target_us, lambda: bool(self._unread(seat)))
        return Value(self._look(seat))

    def _microseconds(self, moment: datetime) -> int:
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=self.time_rules.start.tzinfo)
        return round((moment - self.time_rules.start).total_seconds() * 1_000_000)

    def _schedule(self, index: int, at_ms: int) -> None:
        if at_ms <= self.time_rules.end_ms:
            heapq.heappush(self._due, _Due(at_ms, index))

    def _check_conditions(self) -> None:
        """Let every event occur whose condition has come to hold."""
        for _ in range(_CHAINED_MAX):
            values = self._values()
            is_quiet = True
            for index, event in enumerate(self._events):
                if "when" in event:
                    holds_now = holds(event["when"], values)
                elif "unless" in event:  # a limit of the task's policy
                    holds_now = not holds(event["unless"], values)
                else:
                    continue
                held = index in self._held
                if holds_now and not held:
                    self._held.add(index)
                    if index in self._triggered and not event.get("repeat", False):
                        continue
                    self._triggered.add(index)
                    if delay_ms := _delay_ms(event):
                        self._since_ms[index] = self.now_ms
                        self._schedule(index, self.now_ms + delay_ms)
                        continue
                    self._occur(index)
                    is_quiet = False
                    break
                if not holds_now:
                    self._held.discard(index)
            if is_quiet:
                return

    def _lasts(self, due: _Due) -> bool:
        """Return whether the condition of an event with ``for_s`` held until its time."""
        event, since_ms = self._events[due.index], self._since_ms.get(due.index, 0)
        return "for_s" not in event or (
            due.index in self._held and since_ms + _delay_ms(event) == due.at_ms
        )

    def _occur(self, index: int) -> None:
        if self._occasions >= EVENTS_MAX:
            return
        self._occasions += 1
        event = self._events[index]
        every_s = event.get("every_s")
        if every_s is not None:
            at_ms = self.now_ms + round(1000 * every_s)
            if at_ms <= 1000 * event.get("until_s", self.time_rules.end_ms // 1000):
                self._schedule(index, at_ms)
        had_effect = self._apply(event)
        if had_effect:
            self._occurred[event["name"]] = self._occurred.get(event["name"], 0) + 1
            if "message" in event:
                self._add_message(event["message"], event.get("to"))
            self._renew_time()
        self._record(WorldEvent(event["name"], self.now_ms, had_effect))

    def _add_message(self, text: str, seat: str | None) -> None:
        message = {"at": str(self._time["now"]), "text": text}
        if seat is not None:
            message["to"] = seat
        # A new list, because the state of earlier moments must not change.
        self._messages = [*self._messages, message]

    def _apply(self, event: Mapping[str, Any]) -> bool:
        """Apply the rules of an event; return False if a condition or a rule does not allow it."""
        before = self._values()
        if not all(holds(condition, before) for condition in event.get("requires", ())):
            return False
        if "rules" not in event:
            return True
        step = Step({}, copied(before))
        try:
            step.run({"rules": event["rules"]})
            self._replace(before, step.values)
        except (Rejected, ArithmeticError, RecursionError, ValueError):
            # An agent may have removed what the event needs.
            return False
        return True

    def _replace(self, before: JsonObject, after: JsonObject) -> None:
        """Give the parts their values after an event, all or none.

        Raises:
            Rejected: the state of a part would be too large; no part has changed.
        """
        changed: list[tuple[Declared, JsonObject]] = []
        for name, part in self._parts.items():
            old, new = before[name], after.get(name)
            if not isinstance(part, Declared) or not isinstance(old, dict) or new == old:
                continue
            try:
                # A rule that removes or replaces the whole part gives no state.
                part.replace_values(new if isinstance(new, dict) else {}, EVENT_STATE_BYTES_MAX)
            except Rejected:
                for changed_part, old_values in changed:
                    changed_part.replace_values(old_values, EVENT_STATE_BYTES_MAX)
                raise
            changed.append((part, old))

    def _values(self) -> JsonObject:
        """Return what conditions and rules of events can read."""
        values: JsonObject = {name: _values_of(part) for name, part in self._parts.items()}
        return {**values, TIME: self._time}

    def _renew_time(self) -> None:
        self._time: JsonObject = {
            "now": self.time_rules.at(self.now_ms),
            "elapsed_s": self.now_ms // 1000,
            "events": dict(self._occurred),
            "messages": [{**message} for message in self._messages],
        }
        self._own_revision += 1
        for part in self._parts.values():
            if isinstance(part, Declared):
                part.surroundings = {TIME: self._time}


@dataclass(frozen=True, slots=True)
class _SeatTools:
    """The tools of one seat."""

    scenario: Scenario
    name: str

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools of all parts, then ``now`` and ``wait``."""
        return self.scenario.tools_of(self.name)

    def call(self, call: ToolCall) -> ToolResult:
        """Execute one call."""
        return self.scenario.answer(self.name, call)


@contextmanager
def _declaration() -> Iterator[None]:
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, SpecError):
            raise
        raise SpecError(f"initial_state.{SCENARIO}", f"is not a scenario: {error!r}") from None


def _values_of(part: World) -> JsonObject:
    return {key: value for key, value in part.state.items() if key != TOOLSET}


def _part(name: str, world: str, state: JsonObject, known: Sequence[str]) -> World:
    if world not in known:
        raise SpecError(
            f"initial_state.{SCENARIO}.parts.{name}", f"must be one of {', '.join(known)}"
        )
    part = state.get(name)
    if not isinstance(part, dict):
        raise SpecError(f"initial_state.{name}", "must be the state of this part, an object")
    return WORLDS.load(world)(part)


def _time_rules(declaration: Mapping[str, Any]) -> TimeRules:
    where = f"initial_state.{SCENARIO}.{TIME}"
    start = datetime.fromisoformat(declaration["start"])
    if start.tzinfo is None:
        raise SpecError(f"{where}.start", "needs a time zone, such as 2026-03-02T06:00:00Z")
    end_s = declaration["end_s"]
    if not 0 < end_s <= DAYS_MAX * 86_400:
        raise SpecError(f"{where}.end_s", f"must be above 0 and at most {DAYS_MAX} days")
    return TimeRules(
        start,
        round(1000 * end_s),
        {
            name: latency_of(value, f"{where}.latency.{name}")
            for name, value in declaration.get("latency", {}).items()
        },
        dict(declaration.get("price_microusd", {})),
        int(declaration.get("token_us", 0)),
        bool(declaration.get("continues", True)),
    )


def _delay_ms(event: Mapping[str, Any]) -> int:
    """Return the time from the beginning of a condition to its event, milliseconds."""
    if "for_s" in event:
        # A limit may be broken for exactly this long.
        return round(1000 * float(event["for_s"])) + 1
    return round(1000 * float(event.get("after_s", 0)))


def _owners(parts: Mapping[str, World]) -> dict[str, tuple[str, str]]:
    """Return the part and the original name of each tool, by its name for agents.

    A name that occurs in several parts gets the name of its part as a prefix.
    """
    owned = [(part, spec.name) for part, world in parts.items() for spec in world.list_tools()]
    names = [name for _, name in owned] + [NOW.name, WAIT.name]
    return {
        (name if names.count(name) == 1 else f"{part}_{name}"): (part, name) for part, name in owned
    }
