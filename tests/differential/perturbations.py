"""Derives perturbed trajectories from the gold of a suite. A seed decides all choices."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from hashlib import blake2s
from typing import Any

from fumehood.benchmarks.shared.in_memory import open_task
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.task import Case, Suite, Task
from fumehood.core.tools import ToolSpec
from fumehood.worlds.registry import toolset_of

KEY_BYTES = 4
READING = re.compile(r"(get|list|search|find|read|view|check|show|display|calculate|ls|pwd|cat)")
"""Beginning of the names of tools that change nothing."""
INVENTED = ("archive_everything", "plan.execute", "get_user_info_v2", "finish task")
WRONG_ANSWER = "I could not find out."

Moves = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A task with moves derived from its gold."""

    case: Case
    moves: tuple[Mapping[str, Any], ...]
    kinds: tuple[str, ...]
    """Names of the perturbations."""

    @property
    def key(self) -> bytes:
        """Hash of the task's ID and the moves."""
        text = json.dumps([self.case.task.task_id, *self.moves], sort_keys=True)
        return blake2s(text.encode(), digest_size=KEY_BYTES).digest()


def perturb_suite(suite: Suite, count: int, seed: int) -> Iterator[Trajectory]:
    """Yield ``count`` trajectories, spread evenly over the tasks that have gold."""
    cases = [case for case in suite.cases if case.gold.oracle]
    pool = _Pool.of(cases)
    random.Random(f"{seed}/{suite.name}").shuffle(cases)
    for index in range(count):
        case = cases[index % len(cases)]
        draft = _Draft(case, pool, random.Random(f"{seed}/{suite.name}/{index}"))
        yield draft.perturb()


def call_tools_of(case: Case, rng: random.Random, count: int) -> list[dict[str, Any]]:
    """Return calls of the task's tools, with arguments sampled from their schemas and altered."""
    draft = _Draft(case, _Pool.of([case]), rng)
    for _ in range(count):
        draft.moves.append({"submit": ""})
        draft._insert_known(lambda tool: True)
        draft.moves.pop()
        if rng.random() < 0.3:
            rng.choice((draft.value, draft.type, draft.leave_out))()
    return draft.moves


@dataclass(frozen=True, slots=True)
class _Pool:
    """Calls and answers of the gold of all tasks."""

    calls: Mapping[str, Sequence[Mapping[str, Any]]]
    """By tool, the arguments of its gold calls."""
    values: Mapping[str, Sequence[Any]]
    """By parameter, its values in gold calls."""
    answers: Sequence[str]

    @staticmethod
    def of(cases: Sequence[Case]) -> _Pool:
        moves: list[Any] = [move for case in cases for move in case.gold.oracle or ()]
        calls: dict[str, list[Mapping[str, Any]]] = {}
        values: dict[str, list[Any]] = {}
        for move in moves:
            if "tool_name" in move:
                calls.setdefault(move["tool_name"], []).append(move["args"])
                for name, value in move["args"].items():
                    values.setdefault(name, []).append(value)
        return _Pool(calls, values, [move["submit"] for move in moves if "submit" in move])


@dataclass(slots=True)
class _Draft:
    """A copy of a task's gold that perturbations change."""

    case: Case
    pool: _Pool
    rng: random.Random
    moves: Moves = field(init=False)

    def __post_init__(self) -> None:
        self.moves = deepcopy([dict(move) for move in self.case.gold.oracle or ()])

    def perturb(self) -> Trajectory:
        """Return the gold with no, one or two perturbations."""
        kinds: list[str] = []
        wanted = self.rng.choices((0, 1, 2), (1, 7, 2))[0]
        while len(kinds) < wanted:
            name = self.rng.choices(tuple(WEIGHTS), tuple(WEIGHTS.values()))[0]
            if PERTURBATIONS[name](self):
                kinds.append(name)
        return Trajectory(self.case, tuple(self.moves), tuple(kinds) or ("gold",))

    @property
    def calls(self) -> list[int]:
        """Indices of the calls."""
        return [index for index, move in enumerate(self.moves) if "tool_name" in move]

    @property
    def places(self) -> list[int]:
        """Indices of the moves of seats that have tools; a call may precede each."""
        without = {seat.name for seat in self.case.task.seats if seat.tools == ()}
        return [at for at, move in enumerate(self.moves) if move.get("seat") not in without]

    def drop(self) -> bool:
        if calls := self.calls:
            del self.moves[self.rng.choice(calls)]
        return bool(calls)

    def double(self) -> bool:
        if calls := self.calls:
            index = self.rng.choice(calls)
            self.moves.insert(index, deepcopy(self.moves[index]))
        return bool(calls)

    def swap(self) -> bool:
        if len(calls := self.calls) < 2:
            return False
        at = self.rng.randrange(len(calls) - 1)
        first, second = calls[at : at + 2]
        self.moves[first], self.moves[second] = self.moves[second], self.moves[first]
        return True

    def move(self) -> bool:
        if calls := self.calls:
            move = self.moves.pop(self.rng.choice(calls))
            self._insert(move)
        return bool(calls)

    def stop(self) -> bool:
        calls = self.calls
        for index in reversed(calls[self.rng.randrange(len(calls) or 1) :]):
            del self.moves[index]
        return bool(calls)

    def value(self) -> bool:
        return self._alter(self._other_value)

    def type(self) -> bool:
        return self._alter(lambda _, value: self._other_type(value))

    def leave_out(self) -> bool:
        calls = [index for index in self.calls if self.moves[index]["args"]]
        if calls:
            arguments = self.moves[self.rng.choice(calls)]["args"]
            del arguments[self.rng.choice(list(arguments))]
        return bool(calls)

    def unknown_argument(self) -> bool:
        if calls := self.calls:
            name = self.rng.choice(("note", "not-a-name", "class"))
            self.moves[self.rng.choice(calls)]["args"][name] = "x"
        return bool(calls)

    def invented(self) -> bool:
        arguments = self.rng.choice(({}, {"id": 1}, {"text": "['a', 'b']"}))
        self._insert({"tool_name": self.rng.choice(INVENTED), "args": dict(arguments)})
        return True

    def harmless(self) -> bool:
        return self._insert_known(lambda tool: READING.match(tool.name) is not None)

    def harmful(self) -> bool:
        return self._insert_known(lambda tool: READING.match(tool.name) is None)

    def answer(self) -> bool:
        places = [at for at in self.places if self.moves[at].get("submit")]
        if places:
            index = self.rng.choice(places)
            text = self.moves[index]["submit"]
            self.moves[index]["submit"] = self.rng.choice(
                (
                    *(f" {text} \n", text.upper(), text.lower(), f"The answer is {text}."),
                    *(
                        f"{text}.",
                        f"[{text!r}]",
                        json.dumps([text]),
                        f"**{text}**",
                        text.strip("[]"),
                    ),
                    *(f"[({text!r},)]", text.replace("'", '"'), text[::-1], "", WRONG_ANSWER),
                    self.rng.choice(self.pool.answers),
                )
            )
        return bool(places)

    def _insert(self, move: dict[str, Any]) -> None:
        """Insert a call before a random move that has the same seat, if the call names none."""
        index = self.rng.choice(self.places)
        seat = self.moves[index].get("seat")
        if "seat" not in move and seat is not None:
            move["seat"] = seat
        self.moves.insert(index, move)

    def _insert_known(self, wanted: Callable[[ToolSpec], bool]) -> bool:
        seats = _tools(self.case.task)
        index = self.rng.choice(self.places)
        seat = self.moves[index].get("seat")
        tools = [tool for tool in seats.get(seat, seats[None]) if wanted(tool)]
        if tools:
            tool = self.rng.choice(tools)
            place = {} if seat is None else {"seat": seat}
            move = {**place, "tool_name": tool.name, "args": self._arguments(tool)}
            self.moves.insert(index, move)
        return bool(tools)

    def _arguments(self, tool: ToolSpec) -> dict[str, Any]:
        known = self.pool.calls.get(tool.name)
        if known and self.rng.random() < 0.7:
            return deepcopy(dict(self.rng.choice(known)))
        schema: Any = tool.parameters
        required = schema.get("required", ())
        return {
            name: self._sample(name, part)
            for name, part in schema.get("properties", {}).items()
            if name in required or self.rng.random() < 0.3
        }

    def _sample(self, name: str, schema: Any) -> Any:
        if name in self.pool.values and self.rng.random() < 0.8:
            return deepcopy(self.rng.choice(self.pool.values[name]))
        kind = schema.get("type") if isinstance(schema, dict) else None
        if isinstance(schema, dict) and schema.get("enum"):
            return self.rng.choice(schema["enum"])
        if kind == "array":
            return [self._sample("", schema.get("items", {}))]
        samples = {"integer": 2, "number": 1.5, "boolean": True, "object": {}}
        return samples.get(str(kind), "Ann")

    def _alter(self, change: Callable[[str, Any], Any]) -> bool:
        calls = [index for index in self.calls if self.moves[index]["args"]]
        if calls:
            arguments = self.moves[self.rng.choice(calls)]["args"]
            name = self.rng.choice(list(arguments))
            arguments[name] = change(name, arguments[name])
        return bool(calls)

    def _other_value(self, name: str, value: Any) -> Any:  # noqa: PLR0911 (one per type)
        if self.rng.random() < 0.3:
            return deepcopy(self.rng.choice(self.pool.values.get(name, [value])))
        match value:
            case bool():
                return not value
            case int() | float():
                return value + self.rng.choice((1, -1, 0.001))
            case str():
                forms = (f"{value}x", value.upper(), f" {value}", value[:-1], "")
                return self.rng.choice(forms)
            case [_, *_]:
                return self.rng.choice((value[:-1], value[::-1], [*value, value[0]]))
            case {} if value:
                key = self.rng.choice(list(value))
                return {**value, key: self._other_value(name, value[key])}
        return self.rng.choice((None, "x", [], {}))

    def _other_type(self, value: Any) -> Any:
        match value:
            case bool():
                return self.rng.choice((str(value), int(value)))
            case int() | float():
                return self.rng.choice((str(value), float(value), [value], int(value)))
            case str():
                number = [int(value)] if value.isdecimal() and value.isascii() else []
                return self.rng.choice(([value], f"[{value!r}]", {"value": value}, None, *number))
        return self.rng.choice((str(value), json.dumps(value), [value], None))


PERTURBATIONS: Mapping[str, Callable[[_Draft], bool]] = {
    "a step dropped": _Draft.drop,
    "a step doubled": _Draft.double,
    "two steps swapped": _Draft.swap,
    "a step moved": _Draft.move,
    "an argument with another value": _Draft.value,
    "an argument of another type": _Draft.type,
    "an argument left out": _Draft.leave_out,
    "an unknown argument": _Draft.unknown_argument,
    "a harmless call added": _Draft.harmless,
    "a harmful call added": _Draft.harmful,
    "an invented call added": _Draft.invented,
    "an early stop": _Draft.stop,
    "another form of the answer": _Draft.answer,
}
"""Name → a function that changes a draft and returns whether it could."""
WEIGHTS = {name: 3 if "harmless" in name or "value" in name else 2 for name in PERTURBATIONS}


def _tools(task: Task) -> dict[str | None, tuple[ToolSpec, ...]]:
    """Return the tools of each seat; those of the first seat also under None."""
    episode = open_task(task, MemoryRecorder())
    tools: dict[str | None, tuple[ToolSpec, ...]] = {
        seat.name: tuple(toolset_of(episode.world, seat.name).list_tools())
        for seat in episode.seats
    }
    tools[None] = tools[episode.seats[0].name]
    episode.close()
    return tools
