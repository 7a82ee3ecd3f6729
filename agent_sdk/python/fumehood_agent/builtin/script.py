"""A player that does what a task wrote down for its seat, whatever it hears: a user without a model."""

from __future__ import annotations

from fumehood_agent.builtin.oracle import Oracle


class Script(Oracle):
    """Replays a list of calls and answers, in the oracle's form."""
