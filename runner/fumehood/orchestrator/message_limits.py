"""What an agent may send, as a run's settings. Names and defaults are those of who enforces them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

MIB = 1 << 20


class MessageLimits(BaseModel):
    """Of each seat; every bound is inclusive."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    argument_bytes: int = Field(
        default=MIB, ge=1, le=64 * MIB, description="Of one call's arguments."
    )
    argument_depth: int = Field(
        default=64, ge=1, le=200, description="Levels of objects and lists."
    )
    name_bytes: int = Field(default=1024, ge=1, le=MIB, description="Of a tool's name.")
    call_id_bytes: int = Field(default=64, ge=1, le=MIB, description="Of a call's own name.")
    answer_bytes: int = Field(
        default=MIB, ge=1, le=64 * MIB, description="Of a submitted answer or reason."
    )
    refusals: int = Field(
        default=1000, ge=1, le=100_000, description="Messages of one seat that are refused."
    )
    message_bytes: int = Field(
        default=4 * MIB, ge=1024, le=128 * MIB, description="Of one message."
    )
    concurrent_calls: int = Field(
        default=16, ge=1, le=256, description="Calls and streams at once."
    )
    header_bytes: int = Field(
        default=8 * 1024, ge=1024, le=MIB, description="Of one call's metadata."
    )
    connections: int = Field(default=64, ge=1, le=1024, description="Open at once, on each socket.")
    head_bytes: int = Field(
        default=64 * 1024, ge=1024, le=MIB, description="Of one HTTP request's line and headers."
    )
    body_bytes: int = Field(
        default=4 * MIB, ge=1024, le=128 * MIB, description="Of one message over HTTP."
    )
    request_bytes: int = Field(
        default=64 * MIB, ge=1024, le=1024 * MIB, description="Of one HTTP request in all."
    )
    pipelined_requests: int = Field(
        default=8,
        ge=1,
        le=1024,
        description="Of one connection, sent before an answer to the one ahead.",
    )
    handshake_ms: int = Field(
        default=5_000, ge=100, le=600_000, description="Until a connection speaks."
    )

    def changed(self) -> dict[str, int]:
        """Return those that are not as they are by default."""
        return {
            name: value for name, value in self if value != type(self).model_fields[name].default
        }
