"""Chance as ToolMisuseBench draws it: one Mersenne Twister stream a rule."""

from __future__ import annotations

from random import Random

from fumehood.core.fault_plan import FaultPlan, FaultRule
from fumehood.core.tools import ToolCall
from fumehood.layers.faults.payload import field_name, to_integer

STREAM_STRIDE = 9973


class SequentialRandom:
    """Draws in order from each rule's own stream (spec part 4.2).

    The stream of the rule at position i is seeded with base·9973 + i, where base is the rule's own
    ``prob.seed`` if it has one, else the task's seed. What a draw is about does not matter, only how many
    the rule made before.
    """

    def __init__(self, seed: int, plan: FaultPlan) -> None:
        """Seed every stream.

        Raises:
            SpecError: a rule's own seed is not a whole number.
        """
        self._seeds = [_base(rule, seed) * STREAM_STRIDE + rule.index for rule in plan]
        self._streams: dict[int, Random] = {}

    def draw(self, rule: int, call: ToolCall, purpose: str) -> float:
        """Return the next number of the rule's stream."""
        stream = self._streams.get(rule)
        if stream is None:
            stream = self._streams[rule] = Random(self._seeds[rule])
        return stream.random()


def _base(rule: FaultRule, seed: int) -> int:
    chance = rule.trigger.get("prob")
    own = chance.get("seed") if isinstance(chance, dict) else None
    return seed if own is None else to_integer(own, field_name(rule, "trigger", "prob", "seed"))
