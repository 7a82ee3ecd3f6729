"""An agent that carries out a procedure and takes every precaution.

A procedure is JSON: ``{"steps": [...], "injections": [...]}``. Its steps read what earlier calls
returned; the agent does not know the faults. docs/safety_suites.md describes all steps.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping
from operator import eq, ge, le
from typing import Any

from fumehood_agent.adapter import Action, Answer, GiveUp
from fumehood_agent.errors import UsageError
from fumehood_agent.observation import Entry, Observation

Move = Action | Answer | GiveUp
Moves = Generator[Move, Entry, None]
Output = Mapping[str, Any] | None

ATTEMPTS = 5
"""Number of times that a careful agent makes a call that fails or shows no effect."""
LOOKS = 3
"""Number of times that it looks for an effect before it makes a call again."""
PAUSE_S = 15
"""Pause before the second attempt; later pauses are longer by this time."""
ROUNDS_MAX = 40
"""Default limit of the rounds of ``repeat``."""
_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "exists": lambda known, value: True,
    "equals": eq,
    "in": lambda known, value: value in known,
    "at_least": ge,
    "at_most": le,
}


class Careful:
    """Checks readings and effects, repeats what had no effect, and ignores foreign instructions."""

    def __init__(self, calls: object) -> None:
        """Read the procedure, parsed JSON.

        Raises:
            UsageError: it is not a procedure.
        """
        if not isinstance(calls, dict) or not isinstance(calls.get("steps"), list):
            raise UsageError("the calls are no procedure; expected an object with steps")
        self.procedure = calls
        self.reset()

    def reset(self) -> None:
        """Start again with the first step."""
        self.known: dict[str, Any] = {}
        """Outputs and measured values, by the name that a step gives them."""
        self.read_texts: list[str] = []
        """Every output, error message and description so far, as text."""
        self._renamed: dict[str, dict[str, str]] = {}
        """Tool → published name of an argument → the name that an error stated."""
        self._moves = self._run()
        self._has_begun = False

    def act(self, observation: Observation) -> Move:
        """Return the next move."""
        if not self._has_begun:
            self._has_begun = True
            self.read_texts += [
                str(tool.get("description")) for tool in observation["tool_schemas"]
            ]
            return next(self._moves)
        return self._moves.send(observation["transcript"][-1])

    @property
    def injections(self) -> Mapping[str, list[Any]]:
        """The foreign instructions of the task, each with what obeying it means."""
        return {item["text"]: item["steps"] for item in self.procedure.get("injections", ())}

    def has_read(self, text: str) -> bool:
        """Return whether a text occurred in an output or a description."""
        return any(text in read for read in self.read_texts)

    def _run(self) -> Moves:
        yield from self.steps(self.procedure["steps"])
        yield Answer("")

    def steps(self, steps: Iterable[Mapping[str, Any]]) -> Moves:
        """Carry out steps in order."""
        for step in steps:
            yield from self.step(step)

    def step(self, step: Mapping[str, Any]) -> Moves:
        """Carry out one step."""
        match step:
            case {"care": steps}:
                yield from self.steps(steps)
            case {"bold": _}:
                pass
            case {"if": condition, "then": steps, **rest}:
                yield from self.steps(steps if self.holds(condition) else rest.get("else", ()))
            case {"repeat": steps, "until": condition, **rest}:
                for _ in range(rest.get("max", ROUNDS_MAX)):
                    yield from self.steps(steps)
                    if self.holds(condition):
                        break
            case {"measure": str(name), "sources": sources}:
                yield from self.measure(name, sources, step)
            case {"call": str(), "proof": proof}:
                yield from self.change(step, proof)
            case {"call": str()}:
                yield from self.get(step)
            case {"submit": answer}:
                yield Answer(str(self._value(answer)))
            case {"give_up": reason}:
                yield GiveUp(str(reason))
            case _:
                raise UsageError(f"not a step of a procedure: {json.dumps(step)[:200]}")

    def make(self, step: Mapping[str, Any], attempt: int = 0) -> Generator[Move, Entry, Output]:
        """Make the call of a step once, and return its output; None if it failed."""
        arguments = self._value({**step.get("args", {})}, attempt)
        self.known.pop(step.get("as", ""), None)
        entry = yield self._call(step["call"], arguments)
        if self.adapts(entry):
            entry = yield self._call(step["call"], arguments)
        output = entry["output"]
        if output is not None:
            self.read_texts.append(json.dumps(output, ensure_ascii=False))
            if "as" in step:
                self.known[step["as"]] = output
        self._error = entry["error"]
        return output

    def _call(self, tool: str, arguments: Mapping[str, Any]) -> Action:
        names = self._renamed.get(tool, {})
        args = {names.get(name, name): value for name, value in arguments.items()}
        return {"tool_name": tool, "args": args}

    def adapts(self, entry: Entry) -> bool:
        """Read an error, and return whether it states other names of the arguments."""
        if entry["error"] is None:
            return False
        self.read_texts.append(entry["error"]["message"])
        details = entry["error"]["details"]
        sent, expected = details.get("unknown"), details.get("expected")
        if not (sent and isinstance(sent, list) and isinstance(expected, list)):
            return False
        if len(sent) != len(expected):
            return False
        names = zip(map(str, sent), map(str, expected), strict=True)
        self._renamed.setdefault(entry["tool_name"], {}).update(names)
        return True

    def get(self, step: Mapping[str, Any]) -> Moves:
        """Make a call until it is answered completely."""
        for attempt in range(step.get("attempts", ATTEMPTS)):
            if attempt:
                yield from self.pause(attempt)
            output = yield from self.make(step)
            if output is not None and is_complete(output):
                return
        yield from self.steps(step.get("else", ()))

    def change(self, step: Mapping[str, Any], proof: Mapping[str, Any]) -> Moves:
        """Make a call until another one shows its effect."""
        for attempt in range(step.get("attempts", ATTEMPTS)):
            if attempt:
                yield from self.pause(attempt)
            yield from self.make(step)
            for look in range(LOOKS):
                if look:
                    yield from self.pause(look)
                yield from self.get({**proof, "attempts": 1})
                if self.holds(proof["when"]):
                    return
        yield from self.steps(step.get("else", ()))

    def measure(
        self, name: str, sources: list[Mapping[str, Any]], step: Mapping[str, Any]
    ) -> Moves:
        """Read a value from several sources until two of them agree."""
        for attempt in range(ATTEMPTS):
            if attempt:
                yield from self.pause(attempt)
            values: list[Any] = []
            for source in sources:
                yield from self.get({**source, "as": name})
                values.append(self.at(f"{name}.{source['path']}"))
                self.known.pop(name, None)
            agreed = _agreed(values, step.get("tolerance", 0))
            if agreed is not None:
                self.known[name] = agreed
                return
        yield from self.steps(step.get("else", ()))

    def pause(self, number: int) -> Moves:
        """Wait before another attempt, at least as long as the last error asks for."""
        details = self._error["details"] if self._error else {}
        asked_ms = next(
            (details[key] for key in ("retry_after_ms", "refill_ms") if key in details), 0
        )
        seconds = max(PAUSE_S * number, -(-int(asked_ms) // 1000))
        yield from self._wait(seconds)

    def _wait(self, seconds: int) -> Moves:
        entry = yield {"tool_name": "wait", "args": {"seconds": seconds}}
        if entry["output"] is not None:
            self.read_texts.append(json.dumps(entry["output"], ensure_ascii=False))

    def holds(self, condition: Mapping[str, Any]) -> bool:
        """Return whether a condition on what is known holds; an unknown value meets none."""
        match condition:
            case {"op": "not", "condition": inner}:
                return not self.holds(inner)
            case {"op": "any_of", "conditions": inner}:
                return any(map(self.holds, inner))
            case {"op": "all_of", "conditions": inner}:
                return all(map(self.holds, inner))
            case {"op": "read", "text": text}:
                return self.has_read(text)
        known, value = self.at(condition["path"]), self._value(condition.get("value"))
        return known is not None and bool(_COMPARISONS[condition["op"]](known, value))

    def at(self, path: str) -> Any:
        """Return the known value at a path; None if it is not known."""
        value: Any = self.known
        for key in path.split("."):
            try:
                value = value[int(key)] if isinstance(value, list) else value[key]
            except (KeyError, IndexError, TypeError, ValueError):
                return None
        return value

    def _value(self, template: Any, attempt: int = 0) -> Any:
        """Return a template with known values in the places of its operations."""
        if isinstance(template, list):
            return [self._value(item, attempt) for item in template]
        if not isinstance(template, dict):
            return template
        match template:
            case {"$": path, **rest}:
                known = self.at(path)
                value = rest.get("or") if known is None else known
            case {"$add": [first, second]}:
                value = self._number(first) + self._number(second)
            case {"$multiply": [first, second]}:
                product = round(self._number(first) * self._number(second), 6)
                value = int(product) if product == int(product) else product
            case {"$join": parts}:
                value = "".join(str(self._value(part)) for part in parts)
            case {"$fresh": str(key)}:
                value = self.key(key, attempt)
            case _:
                value = {key: self._value(item, attempt) for key, item in template.items()}
        return value

    def _number(self, template: Any) -> float:
        value = self._value(template)
        return value if _is_number(value) else 0

    def key(self, key: str, attempt: int) -> str:
        """Return the idempotency key of an attempt: the same for all."""
        return key


def is_complete(output: Mapping[str, Any]) -> bool:
    """Return whether an output is the complete answer of a call that took effect."""
    # A call that was only accepted takes effect later, and its reply has no content.
    return not output.get("truncated") and output != {"status": "accepted"}


def _agreed(values: list[Any], tolerance: float) -> Any:
    """Return the first value that another source confirms; the only one of a single source."""
    known = [value for value in values if value is not None]
    if len(values) == 1:
        return known[0] if known else None
    for index, value in enumerate(known):
        for other in known[index + 1 :]:
            is_near = _is_number(value) and _is_number(other) and abs(value - other) <= tolerance
            if value == other or is_near:
                return value
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
