"""Why episodes fail: a closed set of labels, at two levels.

The six of "A Unified Framework for the Evaluation of LLM Agentic Capabilities" (arXiv 2605.27898), and three
that a trace can tell and that set lacks: a crash, a failure on our side, and the admission of not knowing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Level(Enum):
    """Where a failure lies."""

    DECISION = "decision"
    """In what the agent chose to do."""
    EXECUTION = "execution"
    """In what stopped it."""
    UNKNOWN = "unknown"


class Label(Enum):
    """One kind of failure. In the order in which one is preferred as the primary label."""

    INFRASTRUCTURE = "infrastructure"
    """Our side failed; says nothing about the agent."""
    TIMEOUT = "timeout"
    """The wall time was over."""
    BUDGET = "budget"
    """Steps, calls or retries were used up before the agent was done."""
    CONTEXT_OVERFLOW = "context_overflow"
    """A model's context was full. No event tells this yet, so no rule gives it."""
    CRASH = "crash"
    """The agent's process ended without having submitted."""
    PARSING = "parsing"
    """The agent's messages could not be read."""
    TOOL_INVOCATION = "tool_invocation"
    """A call did not fit the tools on offer, and no fault had altered it."""
    REASONING = "reasoning"
    """Calls and messages were in order; what was done, or left, was wrong."""
    UNATTRIBUTED = "unattributed"
    """No rule can tell."""


LEVELS = {
    Label.INFRASTRUCTURE: Level.EXECUTION,
    Label.TIMEOUT: Level.EXECUTION,
    Label.BUDGET: Level.EXECUTION,
    Label.CONTEXT_OVERFLOW: Level.EXECUTION,
    Label.CRASH: Level.EXECUTION,
    Label.PARSING: Level.DECISION,
    Label.TOOL_INVOCATION: Level.DECISION,
    Label.REASONING: Level.DECISION,
    Label.UNATTRIBUTED: Level.UNKNOWN,
}

TITLES = {
    Label.INFRASTRUCTURE: "Infrastructure",
    Label.TIMEOUT: "Timeout",
    Label.BUDGET: "Out of budget",
    Label.CONTEXT_OVERFLOW: "Context overflow",
    Label.CRASH: "Crash",
    Label.PARSING: "Parsing",
    Label.TOOL_INVOCATION: "Tool invocation",
    Label.REASONING: "Reasoning",
    Label.UNATTRIBUTED: "Unattributed",
}
"""For people."""


@dataclass(frozen=True, slots=True)
class Sign:
    """One thing in the evidence that speaks for a label."""

    label: Label
    what: str
    """For people, one clause."""
    decisive: bool
    """False where the agent got over it, so that it did not bring the failure about by itself."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """Why one episode failed."""

    primary: Label
    secondary: tuple[Label, ...]
    """Other labels that something speaks for, each once, in the order of the set."""
    signs: tuple[Sign, ...]


def attribution_of(signs: tuple[Sign, ...]) -> Attribution:
    """Weigh signs: what stopped the agent goes before what it chose, and both before not knowing."""
    found = [sign for sign in signs if sign.label is not Label.UNATTRIBUTED]
    decisive = {sign.label for sign in found if sign.decisive}
    primary = next((label for label in Label if label in decisive), Label.UNATTRIBUTED)
    others = {sign.label for sign in found} - {primary}
    return Attribution(primary, tuple(label for label in Label if label in others), signs)
