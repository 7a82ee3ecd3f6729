"""Model requests with their responses, for tests of what stores them."""

from __future__ import annotations

from fumehood.core.trace import ModelExchange


def exchange(request: bytes = b"{}", response: bytes = b"{}") -> ModelExchange:
    """Return the first request of the seat ``agent`` with the key ``k``, and its response."""
    return ModelExchange(
        seat="agent",
        key="k",
        occurrence=1,
        request=request,
        status=200,
        content_type="application/json",
        response=response,
    )
