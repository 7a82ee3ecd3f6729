"""What a monitor sees and decides. A step is a tool call or a model request of an agent.

A monitor is asked twice about each step: before it takes effect, and after its result is known. The
words are those of Inspect's sentinel: a monitor gives a suspicion score at a stage of a step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from fumehood.core.json_values import Json, JsonObject

REASON_CHARACTERS_MAX = 2000
"""Length of a reason and of a message."""


class StepKind(Enum):
    """What the agent does."""

    TOOL = "tool"
    """A tool call."""
    MODEL = "model"
    """A model request through the gateway."""


class Stage(Enum):
    """When a monitor is asked."""

    BEFORE = "before"
    """The step has had no effect yet."""
    AFTER = "after"
    """The step has had its effect, and the agent does not know the result yet."""


class Action(Enum):
    """What happens with a step."""

    ALLOW = "allow"
    """Go on."""
    MODIFY = "modify"
    """Go on with other arguments, or return another output."""
    ESCALATE = "escalate"
    """Ask the next monitor; without one, refuse."""
    REFUSE = "refuse"
    """Do not execute the call, or withhold its result."""
    END = "end"
    """End the episode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a monitor knows about an episode from the start."""

    world: str
    instructions: Mapping[str, str]
    """The first message to each seat."""
    tools: Mapping[str, tuple[JsonObject, ...]] = field(default_factory=dict)
    """The tools of each seat: ``name``, ``description`` and ``parameters``."""

    def to_json(self) -> JsonObject:
        """Return the facts as a JSON object."""
        return {
            "world": self.world,
            "instructions": dict(self.instructions),
            "tools": {seat: list(tools) for seat, tools in self.tools.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of an agent at one stage."""

    seat: str
    number: int
    """Of the call or of the model request in the episode, from 1."""
    kind: StepKind = StepKind.TOOL
    stage: Stage = Stage.BEFORE
    tool: str
    """Name of the tool or of the model."""
    arguments: JsonObject
    """Of the call, or the body of the model request. At the stage ``after``, as executed."""
    output: JsonObject | None = None
    """The result; None before, and for a failure."""
    failure: JsonObject | None = None
    """``code``, ``message`` and ``details`` of a failed step; None before, and for an output."""
    time_ms: int | None = None
    """Virtual time since the start; None if the world keeps no time."""
    state: JsonObject | None = None
    """State of the world; None if it is not known, or the monitor does not need it."""

    def to_json(self) -> JsonObject:
        """Return the step without the fields that are None."""
        optional: JsonObject = {
            "output": self.output,
            "failure": self.failure,
            "time_ms": self.time_ms,
            "state": self.state,
        }
        return {
            "seat": self.seat,
            "number": self.number,
            "kind": self.kind.value,
            "stage": self.stage.value,
            "tool": self.tool,
            "arguments": self.arguments,
            **{name: value for name, value in optional.items() if value is not None},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a monitor decides about a step at a stage."""

    action: Action = Action.ALLOW
    suspicion: float = 0.0
    """From 0 to 1."""
    reason: str = ""
    """For the trace; the agent does not see it."""
    message: str = ""
    """What the agent reads if the step is refused; empty for a general sentence."""
    arguments: JsonObject | None = None
    """With ``modify`` before a step: replaces its arguments."""
    output: JsonObject | None = None
    """With ``modify`` after a step: replaces its result."""

    @property
    def is_silent(self) -> bool:
        """Whether the step goes on and the monitor has nothing to report."""
        return self == ALLOWED

    def to_json(self) -> JsonObject:
        """Return the decision without the fields that are None."""
        optional: JsonObject = {"arguments": self.arguments, "output": self.output}
        return {
            "action": self.action.value,
            "suspicion": self.suspicion,
            "reason": self.reason,
            "message": self.message,
            **{name: value for name, value in optional.items() if value is not None},
        }


ALLOWED = Decision()


class Monitor(Protocol):
    """Watches the steps of one episode. A new object is made for every episode.

    A class with ``needs_state = True`` gets the state of the world with each step.
    """

    def begin(self, facts: Facts) -> None:
        """Learn the facts of the episode. Called once, before the first step."""
        ...

    def before(self, step: Step) -> Decision:
        """Decide about a step that has had no effect yet."""
        ...

    def after(self, step: Step) -> Decision:
        """Decide about the result of a step that was executed."""
        ...


def decide(monitor: Monitor, step: Step) -> Decision:
    """Ask a monitor about a step at its stage."""
    return monitor.before(step) if step.stage is Stage.BEFORE else monitor.after(step)


def facts_from_json(value: JsonObject) -> Facts:
    """Return the facts that :meth:`Facts.to_json` wrote.

    Raises:
        ValueError: the value has another form.
    """
    match value:
        case {"world": str(world), "instructions": dict(instructions), "tools": dict(tools)}:
            return Facts(
                world=world,
                instructions={seat: str(text) for seat, text in instructions.items()},
                tools={seat: tuple(listed) for seat, listed in tools.items()},  # type: ignore[arg-type]
            )
    raise ValueError("not the facts of an episode")


def step_from_json(value: JsonObject) -> Step:
    """Return the step that :meth:`Step.to_json` wrote.

    Raises:
        ValueError: the value has another form.
    """
    match value:
        case {
            "seat": str(seat),
            "number": int(number),
            "kind": str(kind),
            "stage": str(stage),
            "tool": str(tool),
            "arguments": dict(arguments),
        }:
            time_ms = value.get("time_ms")
            return Step(
                seat=seat,
                number=number,
                kind=StepKind(kind),
                stage=Stage(stage),
                tool=tool,
                arguments=arguments,
                output=_object_or_none(value.get("output")),
                failure=_object_or_none(value.get("failure")),
                time_ms=time_ms if isinstance(time_ms, int) else None,
                state=_object_or_none(value.get("state")),
            )
    raise ValueError("not a step")


def decision_from_json(value: Json, stage: Stage) -> Decision:
    """Return a decision about a step at a stage.

    Raises:
        ValueError: the value is not such a decision; the message states what is wrong.
    """
    if not isinstance(value, dict):
        raise ValueError("a decision must be an object")
    unknown = value.keys() - Decision.__dataclass_fields__.keys()
    if unknown:
        raise ValueError(f"a decision has no field {min(unknown)[:64]!r}")
    suspicion = value.get("suspicion", 0.0)
    if isinstance(suspicion, bool) or not isinstance(suspicion, int | float):
        raise ValueError("suspicion must be a number")
    if not (math.isfinite(suspicion) and 0 <= suspicion <= 1):
        raise ValueError("suspicion must be from 0 to 1")
    try:
        action = Action(value.get("action", "allow"))
    except ValueError:
        raise ValueError(
            f"action must be one of {', '.join(each.value for each in Action)}"
        ) from None
    needed = "arguments" if stage is Stage.BEFORE else "output"
    for name in ("arguments", "output"):
        given = value.get(name)
        if action is Action.MODIFY and name == needed:
            if not isinstance(given, dict):
                raise ValueError(f"modify {stage.value} a step needs {name}, an object")
        elif given is not None:
            raise ValueError(f"{name} has no effect with {action.value} {stage.value} a step")
    return Decision(
        action=action,
        suspicion=float(suspicion),
        reason=_short_text(value, "reason"),
        message=_short_text(value, "message"),
        arguments=_object_or_none(value.get("arguments")),
        output=_object_or_none(value.get("output")),
    )


def _short_text(value: JsonObject, name: str) -> str:
    text = value.get(name, "")
    if not isinstance(text, str):
        raise ValueError(f"{name} must be text")
    # A lone surrogate cannot be sent to the agent.
    return text[:REASON_CHARACTERS_MAX].encode("utf-8", "replace").decode("utf-8")


def _object_or_none(value: Json) -> JsonObject | None:
    return value if isinstance(value, dict) else None
