"""Planned faults of a native record: which family, when, and with what.

One model a family, because a payload key that no family reads is a mistake that would pass unseen.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from fumehood.benchmarks.native.strict import Strict


class Trigger(Strict):
    """Conditions that must all hold; none at all means every call."""

    on_tool: str | None = None
    on_nth_call: Annotated[int, Field(ge=1)] | None = None
    """Number of the call within the episode, from 1, refused calls included."""
    when_arg_matches: dict[str, Any] | None = None
    """Values of top-level arguments."""
    prob: Annotated[float, Field(ge=0, le=1)] | None = None
    """Chance, decided by seed, rule, tool, arguments and how often they met."""


class _Fault(Strict):
    trigger: Trigger = Trigger()


class TimeoutPayload(Strict):
    """What the agent is told."""

    timeout_ms: int = Field(default=1000, ge=0)


class TimeoutFault(_Fault):
    """A call that is never answered, and has had no effect."""

    fault_type: Literal["timeout"]
    payload: TimeoutPayload = TimeoutPayload()


class RateLimitPayload(Strict):
    """Which calls pass, and what the agent is told."""

    after_n_calls: int = Field(default=0, ge=0)
    """Calls of the episode that pass first."""
    retry_after_ms: int = Field(default=250, ge=0)


class RateLimitFault(_Fault):
    """A tool that has been called too often."""

    fault_type: Literal["rate_limit"]
    payload: RateLimitPayload = RateLimitPayload()


class AuthzPayload(Strict):
    """Who is let in, and what the others are told."""

    required_role: str | None = None
    required_token: str | None = None
    """Lets calls pass that bring it."""
    token_field: str = "token"
    """The argument that brings it."""


class AuthzFault(_Fault):
    """A tool that denies access."""

    fault_type: Literal["authz"]
    payload: AuthzPayload = AuthzPayload()


class SchemaDriftPayload(Strict):
    """How the interface differs from the published one; at least one difference."""

    rename_args: dict[str, str] = Field(default_factory=dict)
    """Published name → name now."""
    type_changes: dict[str, Literal["string", "integer"]] = Field(default_factory=dict)
    """Name now → type now."""
    add_required: dict[str, Any] = Field(default_factory=dict)
    """Argument that is asked for now → a value of its type."""


class SchemaDriftFault(_Fault):
    """A tool whose interface is no longer the published one, and which says so."""

    fault_type: Literal["schema_drift"]
    payload: SchemaDriftPayload


class AdversarialErrorPayload(Strict):
    """What stands where the truth did."""

    messages: list[str] | None = Field(default=None, min_length=1)
    """Chance takes one."""
    message: str = "Unexpected internal failure."
    code: str | None = None
    """None leaves the code as it was."""


class AdversarialErrorFault(_Fault):
    """An error message that lies about what went wrong."""

    fault_type: Literal["adversarial_error"]
    payload: AdversarialErrorPayload = AdversarialErrorPayload()


FaultRecord = Annotated[
    AdversarialErrorFault | AuthzFault | RateLimitFault | SchemaDriftFault | TimeoutFault,
    Field(discriminator="fault_type"),
]
