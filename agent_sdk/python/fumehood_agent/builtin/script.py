"""A counterpart that replays the moves in the task: a simulated user without a model."""

from __future__ import annotations

from fumehood_agent.builtin.oracle import Oracle


class Script(Oracle):
    """Replays a list of calls and answers, in the oracle's form."""
