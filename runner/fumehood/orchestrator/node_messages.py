"""The messages between a run and the nodes that play its episodes: JSON, encoded as bytes.

A node gets what a service and a box get: specifications, arguments of agents and the files in their
boxes. It gets no gold and no keys. Specifications and traces are protobuf messages in base64.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.json_values import Json
from fumehood.core.outcome import Infra, outcome_from_json, outcome_to_json
from fumehood.core.trace import ModelExchange
from fumehood.engines.engine import AgentKind, AgentSource, BoxOutput, Exit, ExitReason, Mount
from fumehood.orchestrator.episode_runner import Attempt, BoxPlan, EpisodePlan, InlinePlan
from fumehood.orchestrator.seat_exit import SeatExit
from fumehood.wire.as_bytes import (
    exchange_from_bytes,
    exchange_to_bytes,
    records_from_bytes,
    records_to_bytes,
    spec_from_bytes,
    spec_to_bytes,
)
from fumehood.wire.ports import InlineAgent

Object = dict[str, Any]

NewBox = Callable[[str], BoxPlan]
"""Returns a box of the agent with this name, without arguments."""

NewMount = Callable[[str, str], Mount]
"""Stores a file, given its path in the box and its text."""


def to_bytes(value: Object) -> bytes:
    """Return a message as JSON."""
    return json.dumps(value).encode("ascii")


def source_name(source: AgentSource) -> str:
    """Return how messages name an agent."""
    return f"{source.kind.value}:{source.name}"


def source_of(name: str) -> AgentSource:
    """Return the agent that :func:`source_name` named."""
    kind, _, rest = name.partition(":")
    return AgentSource(AgentKind(kind), rest)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a node answers."""

    attempts: list[Attempt]
    exchanges: list[ModelExchange]
    """Model requests of the attempts with their responses, without the keys of the node."""


def request_to_bytes(
    episodes: Sequence[tuple[EpisodeSpec, EpisodePlan]], recorded: Sequence[ModelExchange] = ()
) -> bytes:
    """Return the request to play episodes.

    Args:
        episodes: their specifications and plans; the references of images are names of agents.
        recorded: earlier model responses, in a replay of models.

    Raises:
        SpecError: a specification cannot be sent.
    """
    return to_bytes(
        {
            "episodes": [
                {"spec": _base64(spec_to_bytes(spec)), **_plan_to_json(plan)}
                for spec, plan in episodes
            ],
            "recorded": list(map(_exchange_to_text, recorded)),
        }
    )


def request_from_bytes(
    request: bytes, new_box: NewBox, new_mount: NewMount
) -> tuple[list[tuple[EpisodeSpec, BoxPlan | InlinePlan]], list[ModelExchange]]:
    """Return the episodes of a request, and earlier model responses.

    Args:
        request: of :func:`request_to_bytes`.
        new_box: returns the box of an agent on this machine.
        new_mount: stores a file for a box.
    """
    value = json.loads(request)
    episodes = [
        (
            spec_from_bytes(b64decode(episode["spec"])),
            _plan_from_json(episode, new_box, new_mount),
        )
        for episode in value["episodes"]
    ]
    return episodes, list(map(_exchange_from_text, value["recorded"]))


def reply_to_bytes(reply: Reply) -> bytes:
    """Return the answer of a node."""
    return to_bytes(
        {
            "attempts": list(map(_attempt_to_json, reply.attempts)),
            "exchanges": list(map(_exchange_to_text, reply.exchanges)),
        }
    )


def reply_from_json(value: Object) -> Reply:
    """Return what :func:`reply_to_bytes` wrote."""
    return Reply(
        list(map(_attempt_from_json, value["attempts"])),
        list(map(_exchange_from_text, value["exchanges"])),
    )


def _base64(content: bytes) -> str:
    return b64encode(content).decode("ascii")


def _exchange_to_text(exchange: ModelExchange) -> str:
    return _base64(exchange_to_bytes(exchange))


def _exchange_from_text(text: str) -> ModelExchange:
    return exchange_from_bytes(b64decode(text))


def _plan_to_json(plan: EpisodePlan) -> Object:
    if isinstance(plan, InlinePlan):
        agents = [[agent.seat, agent.name, agent.moves_json] for agent in plan.agents]
        return {"agents": agents, "counterparts": sorted(plan.counterparts)}
    assert isinstance(plan, BoxPlan)
    return {"box": _box_to_json(plan)}


def _plan_from_json(value: Object, new_box: NewBox, new_mount: NewMount) -> BoxPlan | InlinePlan:
    if "box" in value:
        return _box_from_json(value["box"], new_box, new_mount)
    agents = tuple(InlineAgent(*agent) for agent in value["agents"])
    return InlinePlan(agents, frozenset(value["counterparts"]))


def _box_to_json(plan: BoxPlan) -> Object:
    return {
        "agent": plan.image.reference,
        "command": list(plan.image.command),
        "arguments": list(plan.arguments),
        "files": [[mount.target, mount.source.read_text("ascii")] for mount in plan.mounts],
        "counterparts": {seat: _box_to_json(box) for seat, box in plan.counterparts.items()},
    }


def _box_from_json(value: Object, new_box: NewBox, new_mount: NewMount) -> BoxPlan:
    box = new_box(value["agent"])
    return BoxPlan(
        engine=box.engine,
        image=replace(box.image, command=_command(value["command"], box.image.command)),
        limits=box.limits,
        labels=box.labels,
        arguments=tuple(value["arguments"]),
        mounts=tuple(new_mount(target, text) for target, text in value["files"]),
        counterparts={
            seat: _box_from_json(other, new_box, new_mount)
            for seat, other in value["counterparts"].items()
        },
    )


def _command(sent: Sequence[str], own: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command of a box.

    Args:
        sent: of the image that only names an agent: empty, or a program that starts a command.
        own: of the image on this machine.
    """
    if not sent:
        return own
    # The program starts the command of the image, which only this machine knows.
    return (*sent, *own) if sent[-1] == "--" else tuple(sent)


def _attempt_to_json(attempt: Attempt) -> Object:
    output = attempt.output
    return {
        "records": _base64(records_to_bytes(attempt.records)),
        "exit": attempt.exit and _exit_to_json(attempt.exit),
        "output": output
        and [
            _base64(output.stdout),
            _base64(output.stderr),
            output.stdout_bytes,
            output.stderr_bytes,
        ],
        "infra": attempt.infra and outcome_to_json(attempt.infra),
        "wall_ms": attempt.wall_ms,
    }


def _attempt_from_json(value: Object) -> Attempt:
    infra = value["infra"] and outcome_from_json(value["infra"])
    if not isinstance(infra, Infra | None):
        raise ValueError("not an infrastructure failure")
    output = value["output"]
    return Attempt(
        records_from_bytes(b64decode(value["records"])),
        value["exit"] and _exit_from_json(*value["exit"]),
        output and BoxOutput(b64decode(output[0]), b64decode(output[1]), *output[2:]),
        infra,
        value["wall_ms"],
    )


def _exit_to_json(ended: Exit) -> list[Json]:
    seat = [ended.seat] if isinstance(ended, SeatExit) else []
    return [ended.code, ended.reason.value, *seat]


def _exit_from_json(code: int, reason: str, *seat: str) -> Exit:
    return SeatExit(code, ExitReason(reason), *seat) if seat else Exit(code, ExitReason(reason))
