"""Harness mode ``transparent``: like ``native``, but the agent is shown which faults fired."""

from itertools import count

from fumehood.core.clock import Clock
from fumehood.core.conversation import TurnQueue
from fumehood.core.episode import Episode, FireCounts, Seat
from fumehood.core.episode_spec import EpisodeSpec, SeatSpec
from fumehood.core.fault_plan import KeyedRandom
from fumehood.core.ledger import Ledger
from fumehood.core.tools import Layer, LayeredToolset
from fumehood.core.trace import Recorder
from fumehood.layers.ask_monitors import AskMonitors
from fumehood.layers.charge_budget import ChargeBudget
from fumehood.layers.fault_visibility import RevealFaults
from fumehood.layers.faults.registry import FAMILIES, fault_layers
from fumehood.layers.trace_calls import TraceCalls
from fumehood.layers.validate_arguments import ValidateArguments
from fumehood.monitors.review import Reviewer
from fumehood.monitors.watch import Watch
from fumehood.turn_policies.registry import create_conversation
from fumehood.worlds.registry import open_world, toolset_of


class Transparent:
    """Supports conversations and faults, but no tools that appear in later turns."""

    def open_episode(
        self,
        spec: EpisodeSpec,
        recorder: Recorder,
        clock: Clock,
        reviewer: Reviewer | None = None,
    ) -> Episode:
        """Build the world, and the layers of each seat."""
        counted = FireCounts(recorder, len(spec.fault_plan))
        world = open_world(spec)
        faults = fault_layers(spec.fault_plan, KeyedRandom(spec.seed), FAMILIES)
        numbers = count(1)
        conversation = create_conversation(spec, world)
        watch = Watch(reviewer, counted, world) if reviewer else None

        def seat(given: SeatSpec) -> Seat:
            ledger = Ledger(given.budget)
            toolset = toolset_of(world, given.name)
            layers: list[Layer] = [
                TraceCalls(given.name, world, ledger, watch or counted, clock, numbers),
                ChargeBudget(ledger),
                *([AskMonitors(given.name, watch)] if watch else []),
                RevealFaults(),
                *faults,
                ValidateArguments(toolset.list_tools()),
            ]
            turns = TurnQueue(given.instruction, given.further_turns)
            layered = LayeredToolset(toolset, layers)
            return Seat(given.name, turns, layered, ledger, counted, conversation, watch=watch)

        seats = tuple(seat(given) for given in spec.seats)
        if watch is not None:
            watch.begin(spec, seats)
        return Episode(spec, world, seats, counted, conversation)
