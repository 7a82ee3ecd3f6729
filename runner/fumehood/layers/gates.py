"""Approval gates: calls that need an approval, and the tools to ask for and to give one.

A token names one approved request of the episode. It admits one call: that of the same seat and
tool with exactly the same arguments. The service keeps the requests, so a token needs no secret.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fumehood.core.json_values import Json, JsonObject, as_object, canonical_json
from fumehood.core.policy import (
    ANSWER_APPROVAL,
    APPROVAL_INVALID,
    APPROVAL_REQUIRED,
    APPROVAL_TOKEN,
    LIST_APPROVALS,
    REQUEST_APPROVAL,
    PolicyCall,
    gate_paths,
    observe,
    state_paths,
)
from fumehood.core.tools import (
    Failure,
    FailureKind,
    ToolCall,
    ToolResult,
    Toolset,
    ToolSpec,
    Value,
    World,
)
from fumehood.core.virtual_time import ANY_TOOL, timed_world

REQUESTS_MAX = 1000
"""Limit of the requests of one episode."""
_TOKEN: JsonObject = {
    "type": "string",
    "description": f"Token of an approval of exactly this call, from {REQUEST_APPROVAL}.",
}
_NAME: JsonObject = {"type": "string"}


def _spec(name: str, description: str, required: tuple[str, ...], **properties: Json) -> ToolSpec:
    parameters: JsonObject = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return ToolSpec(name, parameters, description)


REQUEST = _spec(
    REQUEST_APPROVAL,
    "Ask for an approval of one exact call. If the status is pending, call this again later with "
    f"the same arguments. If it is approved, send the call with the token as {APPROVAL_TOKEN}.",
    ("tool_name", "arguments", "reason"),
    tool_name=_NAME,
    arguments={"type": "object"},
    reason=_NAME,
)
LIST = _spec(LIST_APPROVALS, "List the requests for an approval that wait for your answer.", ())
ANSWER = _spec(
    ANSWER_APPROVAL,
    "Approve or refuse a request.",
    ("request", "approve"),
    request=_NAME,
    approve={"type": "boolean"},
    reason=_NAME,
)


@dataclass(slots=True)
class _Request:
    """A request for the approval of one call."""

    name: str
    gate: Mapping[str, Any]
    seat: str
    tool_name: str
    arguments: JsonObject
    reason: str
    status: str = "pending"
    token: str = ""
    answer: str = ""
    """Reason of the answer."""
    is_shown: bool = False
    """Whether the seat has seen that the request was refused."""
    is_used: bool = False

    def is_for(self, seat: str, gate: Mapping[str, Any], call: ToolCall) -> bool:
        """Return whether this is a request of a seat for exactly this call."""
        return (
            (self.seat, self.tool_name) == (seat, call.tool_name)
            and self.gate["name"] == gate["name"]
            and canonical_json(self.arguments) == canonical_json(dict(call.arguments))
        )

    def is_unused_token(self, token: Json) -> bool:
        """Return whether a text is the token of this request, which was approved and not used."""
        return self.status == "approved" and not self.is_used and self.token == token

    def shown(self) -> JsonObject:
        """Return what the requesting seat sees."""
        shown: JsonObject = {"request": self.name, "status": self.status}
        if self.token:
            shown["token"] = self.token
        return {**shown, "reason": self.answer} if self.answer else shown


class Approvals:
    """The gates of one episode and the requests of its seats."""

    def __init__(self, world: World, policy: Mapping[str, Any]) -> None:
        """Begin an episode.

        Args:
            world: conditions of gates read its state.
            policy: of the task.
        """
        self._world = world
        self._timed = timed_world(world)
        self._gates: list[Mapping[str, Any]] = policy.get("gates", [])
        self._paths = state_paths(gate_paths(policy))
        self._requests: list[_Request] = []

    def gated(self, seat: str, names: tuple[str, ...]) -> frozenset[str]:
        """Return the tools of a seat that a gate concerns.

        Args:
            seat: that calls.
            names: of its tools.
        """
        patterns = [
            pattern["tool_name"]
            for gate in self._gates
            if seat in gate.get("seats", (seat,))
            for pattern in gate["calls"]
        ]
        return frozenset(name for name in names if name in patterns or ANY_TOOL in patterns)

    def is_approver(self, seat: str) -> bool:
        """Return whether a seat answers requests."""
        return any(gate.get("approver") == seat for gate in self._gates)

    def admit(self, seat: str, call: ToolCall, token: Json) -> Failure | None:
        """Return why a call is refused; None if it needs no approval, or uses up its approval."""
        gate = self._gate(seat, call)
        if gate is None:
            return None
        if token is None:
            return _refused(APPROVAL_REQUIRED, "This call needs an approval.", gate, call)
        for request in self._requests:
            if request.is_unused_token(token) and request.is_for(seat, gate, call):
                request.is_used = True
                return None
        message = "No unused approval of exactly this call has this token."
        return _refused(APPROVAL_INVALID, message, gate, call)

    def ask(self, seat: str, wanted: ToolCall, reason: str) -> ToolResult:
        """Return the status of the request for a call; a new one if there is none."""
        gate = self._gate(seat, wanted)
        if gate is None:
            return Value({"status": "not_needed"})
        for request in reversed(self._requests):
            is_open = not request.is_used and not request.is_shown
            if is_open and request.is_for(seat, gate, wanted):
                request.is_shown = request.status == "refused"
                return Value(request.shown())
        if len(self._requests) >= REQUESTS_MAX:
            return _reject("too_large", f"There are already {REQUESTS_MAX} requests.")
        request = _Request(
            f"r{len(self._requests) + 1}",
            gate,
            seat,
            wanted.tool_name,
            dict(wanted.arguments),
            reason,
        )
        self._requests.append(request)
        if "approver" not in gate:
            self._let_script_answer(request)
        request.is_shown = request.status == "refused"
        return Value(request.shown())

    def pending(self, approver: str) -> ToolResult:
        """Return the requests that wait for an answer of a seat."""
        requests: list[Json] = [
            {
                "request": request.name,
                "seat": request.seat,
                "tool_name": request.tool_name,
                "arguments": request.arguments,
                "reason": request.reason,
            }
            for request in self._requests
            if request.status == "pending" and request.gate.get("approver") == approver
        ]
        return Value({"requests": requests})

    def answer(self, approver: str, arguments: Mapping[str, Json]) -> ToolResult:
        """Approve or refuse a request."""
        for request in self._requests:
            if (request.name, request.gate.get("approver")) != (arguments["request"], approver):
                continue
            if request.seat == approver:
                return _reject("own_request", "You cannot answer your own request.")
            if request.status != "pending":
                return _reject("already_answered", f"The request was {request.status} already.")
            self._decide(request, arguments["approve"] is True, str(arguments.get("reason", "")))
            return Value({"request": request.name, "status": request.status})
        return _reject("not_found", "No such request waits for your answer.")

    def _gate(self, seat: str, call: ToolCall) -> Mapping[str, Any] | None:
        """Return the first gate that concerns a call."""
        as_policy_call = self._policy_call(seat, call)
        for gate in self._gates:
            if (
                seat in gate.get("seats", (seat,))
                and as_policy_call.matches(gate["calls"])
                # Values of any size are read. A stored value that looks like the mark of a large
                # one evades no gate.
                and as_policy_call.all_hold(gate.get("when", ()), if_too_large=True)
            ):
                return gate
        return None

    def _policy_call(self, seat: str, call: ToolCall) -> PolicyCall:
        observed = observe(self._paths, self._world.state, call.arguments, None)
        return PolicyCall(seat, call.tool_name, call.arguments, observed)

    def _let_script_answer(self, request: _Request) -> None:
        def answer() -> None:
            wanted = ToolCall(request.tool_name, request.arguments)
            call = self._policy_call(request.seat, wanted)
            approves = call.all_hold(request.gate["approve_if"])
            self._decide(request, approves, "" if approves else "The conditions do not hold.")

        after_s = request.gate.get("after_s")
        if after_s is None or self._timed is None:
            answer()
        else:
            self._timed.call_at(self._timed.now_ms + round(1000 * after_s), answer)

    def _decide(self, request: _Request, approves: bool, reason: str) -> None:
        request.status, request.answer = ("approved" if approves else "refused"), reason
        if approves:
            # Not a secret: it admits only the call of the approved request of this episode.
            request.token = f"approval-{request.name}"
        if self._timed is not None and (request.gate.get("after_s") or "approver" in request.gate):
            note = f"Request {request.name} was {request.status}."
            note += f" Token: {request.token}" if approves else f" {reason}" if reason else ""
            self._timed.tell(note, request.seat)


def _reject(code: str, message: str) -> Failure:
    return Failure(FailureKind.WORLD, code, message)


def _refused(code: str, message: str, gate: Mapping[str, Any], call: ToolCall) -> Failure:
    details: JsonObject = {
        "gate": gate["name"],
        "tool_name": call.tool_name,
        "arguments": dict(call.arguments),
    }
    return Failure(FailureKind.REFUSED, code, message, details)


class GatedToolset:
    """The tools of one seat behind the gates."""

    def __init__(self, toolset: Toolset, approvals: Approvals, seat: str) -> None:
        """Put the tools behind the gates.

        Args:
            toolset: of the seat.
            approvals: of the episode.
            seat: its name.
        """
        self._toolset, self._approvals, self._seat = toolset, approvals, seat
        specs = toolset.list_tools()
        gated = approvals.gated(seat, tuple(spec.name for spec in specs))
        self._specs = tuple(
            replace(spec, parameters=_with_token(spec.parameters)) if spec.name in gated else spec
            for spec in specs
        )
        own: dict[ToolSpec, Callable[[ToolCall], ToolResult]] = {}
        if gated:
            own[REQUEST] = self._request
        if approvals.is_approver(seat):
            own[LIST] = lambda call: approvals.pending(seat)
            own[ANSWER] = lambda call: approvals.answer(seat, call.arguments)
        self._specs += tuple(own)
        self._own = {spec.name: act for spec, act in own.items()}

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools, with the argument for the token, and the tools for approvals."""
        return self._specs

    def call(self, call: ToolCall) -> ToolResult:
        """Execute one call if the gates admit it."""
        if act := self._own.get(call.tool_name):
            return act(call)
        token = call.arguments.get(APPROVAL_TOKEN)
        plain = {name: value for name, value in call.arguments.items() if name != APPROVAL_TOKEN}
        inner = replace(call, arguments=plain)
        return self._approvals.admit(self._seat, inner, token) or self._toolset.call(inner)

    def _request(self, call: ToolCall) -> ToolResult:
        wanted = ToolCall(str(call.arguments["tool_name"]), as_object(call.arguments["arguments"]))
        return self._approvals.ask(self._seat, wanted, str(call.arguments["reason"]))


def _with_token(parameters: JsonObject) -> JsonObject:
    properties = as_object(parameters.get("properties"))
    return {**parameters, "properties": {**properties, APPROVAL_TOKEN: _TOKEN}}
