"""The harness mode that behaves like ToolMisuseBench, for comparison with its published figures."""

from __future__ import annotations

from itertools import count
from random import Random

from fumehood.core.clock import Clock
from fumehood.core.conversation import TurnQueue
from fumehood.core.episode import Episode, FireCounts, Seat
from fumehood.core.episode_spec import EpisodeSpec, SeatSpec
from fumehood.core.errors import SpecError
from fumehood.core.fault_plan import FaultPlan, FaultRule
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Ledger
from fumehood.core.tools import Layer, LayeredToolset, ToolCall, ToolResult, arguments_after_faults
from fumehood.core.trace import Recorder
from fumehood.layers.ask_monitors import AskMonitors
from fumehood.layers.charge_budget import ChargeBudget
from fumehood.layers.contain_crashes import ContainCrashes
from fumehood.layers.fault_visibility import RevealFaults
from fumehood.layers.faults.family import to_integer
from fumehood.layers.faults.registry import TOOLMISUSE_FAMILIES, fault_layers
from fumehood.layers.trace_calls import TraceCalls
from fumehood.layers.validate_loosely import ValidateLoosely
from fumehood.monitors.review import Reviewer
from fumehood.monitors.watch import Watch
from fumehood.worlds.crud import Crud
from fumehood.worlds.registry import open_world

STREAM_STRIDE = 9973


class SequentialRandom:
    """Draws in order from the stream of each rule.

    Source: docs/reference/toolmisuse.md, Random draws.

    The stream of the rule at position i is seeded with base·9973 + i, where base is the rule's
    ``prob.seed`` if present, else the seed of the task. A draw depends only on the number of
    earlier draws of the rule.
    """

    def __init__(self, seed: int, plan: FaultPlan) -> None:
        """Seed every stream.

        Raises:
            SpecError: the seed of a rule is not a whole number.
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
    probability = rule.trigger.get("prob")
    own_seed = probability.get("seed") if isinstance(probability, dict) else None
    return (
        seed if own_seed is None else to_integer(own_seed, rule.location("trigger", "prob", "seed"))
    )


class ToolMisuse:
    """The harness mode of ToolMisuseBench: reproduces the reference call by call.

    Source: docs/reference/toolmisuse.md.
    """

    def open_episode(
        self,
        spec: EpisodeSpec,
        recorder: Recorder,
        clock: Clock,
        reviewer: Reviewer | None = None,
    ) -> Episode:
        """Build the world and one seat per participant."""
        counted = FireCounts(recorder, len(spec.fault_plan))
        world = open_world(spec)
        if isinstance(world, Crud):
            world.are_texts_unique = False
        if spec.conversation is not None:
            raise SpecError("conversation", "must be absent in harness mode toolmisuse")
        random_source = SequentialRandom(spec.seed, spec.fault_plan)
        faults = fault_layers(spec.fault_plan, random_source, TOOLMISUSE_FAMILIES)
        numbers = count(1)
        watch = Watch(reviewer, counted, world) if reviewer else None

        def seat(seat_spec: SeatSpec) -> Seat:
            ledger = Ledger(seat_spec.budget)
            turns = TurnQueue(seat_spec.instruction, seat_spec.further_turns)
            if turns.hidden or seat_spec.tools is not None:
                raise SpecError(
                    "seats.tools",
                    "must be absent in harness mode toolmisuse, where seats always have all tools",
                )
            layers: list[Layer] = [
                TraceCalls(seat_spec.name, world, ledger, watch or counted, clock, numbers),
                ChargeBudget(ledger),
                *([AskMonitors(seat_spec.name, watch)] if watch else []),
                RevealFaults(),
                *faults,
                ValidateLoosely(world.toolset_id, world.list_tools()),
                ContainCrashes(lambda: open_world(spec)),
            ]
            return Seat(
                seat_spec.name,
                turns,
                LayeredToolset(world, layers),
                ledger,
                counted,
                arguments_to_record=_arguments_after_faults,
                watch=watch,
            )

        seats = tuple(seat(seat_spec) for seat_spec in spec.seats)
        if watch is not None:
            watch.begin(spec, seats)
        return Episode(spec, world, seats, counted)


def _arguments_after_faults(call: ToolCall, result: ToolResult) -> JsonObject | None:
    """Return the arguments after the faults, which ToolMisuseBench's transcript shows."""
    arguments = arguments_after_faults(call, result.fired_faults)
    return None if arguments is call.arguments else dict(arguments)
