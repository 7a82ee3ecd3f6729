"""ToolMisuseBench as it is, weaknesses included: for comparison with published numbers."""

from __future__ import annotations

from itertools import count

from fumehood.core.clock import Clock
from fumehood.core.door import Door
from fumehood.core.episode import Episode, FireCounts
from fumehood.core.episode_spec import EpisodeSpec, SeatSpec
from fumehood.core.errors import SpecError
from fumehood.core.events import Recorder
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Ledger
from fumehood.core.seat import Reply, Seat
from fumehood.core.tools import Layer, delivered_arguments
from fumehood.core.turns import TurnQueue
from fumehood.layers.charge_budget import ChargeBudget
from fumehood.layers.faults.build import arm
from fumehood.layers.faults.sequential_random import SequentialRandom
from fumehood.layers.reveal_faults import RevealFaults
from fumehood.layers.trace_calls import TraceCalls
from fumehood.layers.validate_loosely import ValidateLoosely
from fumehood.worlds.table import open_world

FAMILIES_OUTERMOST_FIRST = {
    "schema_drift": "schema_drift",
    "adversarial_error": "adversarial_error",
    "authz": "authz",
    "rate_limit": "rate_limit",
    "timeout": "timeout",
}
"""Whatever the order of the plan (spec part 4.1): drift alters the call for all the others, and rewriting
sees what the three failing families answer."""


class ToolMisuse:
    """The compatibility profile (spec parts 2 to 5): replays the reference call for call."""

    def open_episode(self, spec: EpisodeSpec, recorder: Recorder, clock: Clock) -> Episode:
        """Build the world and one door a seat."""
        counted = FireCounts(recorder, len(spec.fault_plan))
        world = open_world(spec)
        if spec.conversation is not None:
            raise SpecError("conversation", "is not of this profile")
        random_source = SequentialRandom(spec.seed, spec.fault_plan)
        faults = arm(spec.fault_plan, random_source, FAMILIES_OUTERMOST_FIRST)
        numbers = count(1)

        def seat(given: SeatSpec) -> Seat:
            ledger = Ledger(given.budget)
            script = TurnQueue(given.instruction, given.further_turns)
            if script.hidden or given.tools is not None:
                raise SpecError(
                    "seats.tools", "are not of this profile: every seat has all tools, always"
                )
            layers: list[Layer] = [
                TraceCalls(given.name, world, counted, clock, numbers),
                ChargeBudget(ledger),
                RevealFaults(),
                *faults,
                ValidateLoosely(world.toolset_id, world.list_tools()),
            ]
            return Seat(given.name, script, Door(world, layers), ledger, counted)

        return Episode(spec, world, tuple(seat(given) for given in spec.seats), counted)

    def recorded_arguments(self, reply: Reply) -> JsonObject | None:
        """Return what the faults made of the arguments: the reference's transcript shows that."""
        delivered = delivered_arguments(reply.call, reply.result.story)
        return None if delivered is reply.call.arguments else dict(delivered)
