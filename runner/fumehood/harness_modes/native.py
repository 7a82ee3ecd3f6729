"""The harness mode of native suites: agents do not see which faults fired."""

from __future__ import annotations

from itertools import count

from fumehood.core.clock import Clock
from fumehood.core.conversation import TurnQueue
from fumehood.core.episode import Episode, FireCounts, Seat
from fumehood.core.episode_spec import EpisodeSpec, SeatSpec
from fumehood.core.errors import SpecError
from fumehood.core.fault_plan import KeyedRandom
from fumehood.core.ledger import Ledger
from fumehood.core.policy import APPROVAL_TOOLS
from fumehood.core.tools import Layer, LayeredToolset, Toolset
from fumehood.core.trace import Recorder
from fumehood.core.virtual_time import timed_world
from fumehood.layers.ask_monitors import AskMonitors
from fumehood.layers.charge_budget import ChargeBudget
from fumehood.layers.contain_crashes import ContainCrashes
from fumehood.layers.fault_visibility import HideFaults
from fumehood.layers.faults.registry import FAMILIES, fault_layers
from fumehood.layers.gates import Approvals, GatedToolset
from fumehood.layers.observe import ObservedToolset, Observer
from fumehood.layers.take_time import TakeTime
from fumehood.layers.trace_calls import TraceCalls
from fumehood.layers.validate_arguments import RestrictTools, ValidateArguments
from fumehood.monitors.review import Reviewer
from fumehood.monitors.watch import Watch
from fumehood.turn_policies.registry import create_conversation
from fumehood.worlds.registry import checks_itself, open_world, toolset_of


class Native:
    """Hides faults, validates with JSON Schema, and draws random numbers by key."""

    def open_episode(
        self,
        spec: EpisodeSpec,
        recorder: Recorder,
        clock: Clock,
        reviewer: Reviewer | None = None,
    ) -> Episode:
        """Build the world and one seat per participant."""
        counting_recorder = FireCounts(recorder, len(spec.fault_plan))
        world = open_world(spec)
        random_source = KeyedRandom(spec.seed)
        timed = timed_world(world)
        faults = fault_layers(spec.fault_plan, random_source, FAMILIES, timed)
        numbers = count(1)
        conversation = create_conversation(spec, world)
        delivers_again = any(fault.delivers_again for fault in faults)
        observer = Observer(world, spec.policy) if spec.policy or delivers_again else None
        approvals = Approvals(world, spec.policy) if spec.policy.get("gates") else None
        watch = Watch(reviewer, counting_recorder, world) if reviewer else None
        recorded = watch or counting_recorder

        def seat(seat_spec: SeatSpec) -> Seat:
            ledger = Ledger(seat_spec.budget)
            toolset = toolset_of(world, seat_spec.name)
            if approvals is not None:
                toolset = GatedToolset(toolset, approvals, seat_spec.name)
            if observer is not None:
                toolset = ObservedToolset(toolset, observer)
            turns = TurnQueue(
                seat_spec.instruction, seat_spec.further_turns, _withheld(toolset, seat_spec)
            )
            tokens = [entry[1:] for entry in spec.recorded_tokens if entry[0] == seat_spec.name]
            take_time = TakeTime(timed, random_source, tokens) if timed else None
            layers: list[Layer] = [
                TraceCalls(seat_spec.name, world, ledger, recorded, clock, numbers, observer),
                ChargeBudget(ledger, timed.time_rules.price_microusd if timed else None),
                *([AskMonitors(seat_spec.name, watch)] if watch else []),
                *([take_time] if take_time else []),
                HideFaults(),
                *faults,
                *_checks(toolset, turns, checks_itself=checks_itself(world)),
                ContainCrashes(lambda: toolset_of(open_world(spec), seat_spec.name)),
            ]
            return Seat(
                seat_spec.name,
                turns,
                LayeredToolset(toolset, layers),
                ledger,
                counting_recorder,
                conversation,
                on_tokens=take_time.add_tokens if take_time else None,
                watch=watch,
            )

        seats = tuple(seat(seat_spec) for seat_spec in spec.seats)
        if watch is not None:
            watch.begin(spec, seats)
        if timed is None:
            return Episode(spec, world, seats, counting_recorder, conversation)
        continued_us = 1000 * timed.time_rules.end_ms if timed.time_rules.continues else 0
        episode = Episode(
            spec,
            world,
            seats,
            counting_recorder,
            conversation,
            before_close=lambda: timed.pass_us(continued_us),
        )
        timed.begin(counting_recorder.record)
        return episode


def _withheld(toolset: Toolset, seat: SeatSpec) -> frozenset[str]:
    """Return the names of the tools that a seat does not have."""
    if seat.tools is None:
        return frozenset()
    names = {tool.name for tool in toolset.list_tools()}
    missing = set(seat.tools) - names
    if missing:
        raise SpecError(f"seats.{seat.name}.tools", f"the world has no tool {min(missing)!r}")
    return frozenset(names.difference(seat.tools, APPROVAL_TOOLS))


def _checks(toolset: Toolset, turns: TurnQueue, *, checks_itself: bool) -> list[Layer]:
    """Return the layers that reject invalid calls."""
    tools = toolset.list_tools()
    missing = turns.hidden - {tool.name for tool in tools}
    if missing:
        raise SpecError("seats.further_turns.tools", f"the world has no tool {min(missing)!r}")
    if checks_itself:
        return [RestrictTools(tools, turns, early=True)]
    validated = ValidateArguments(tools)
    return [RestrictTools(tools, turns), validated] if turns.hidden else [validated]
