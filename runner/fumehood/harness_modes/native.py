"""The profile of this project's own suites: an agent is never shown which faults touched its call."""

from __future__ import annotations

from itertools import count

from fumehood.core.clock import Clock
from fumehood.core.conversation import TurnQueue
from fumehood.core.episode import Episode, FireCounts, Seat
from fumehood.core.episode_spec import EpisodeSpec, SeatSpec
from fumehood.core.errors import SpecError
from fumehood.core.fault_plan import KeyedRandom
from fumehood.core.ledger import Ledger
from fumehood.core.tools import Layer, LayeredToolset, Toolset
from fumehood.core.trace import Recorder
from fumehood.layers.charge_budget import ChargeBudget
from fumehood.layers.fault_visibility import HideFaults
from fumehood.layers.faults.registry import FAMILIES, fault_layers
from fumehood.layers.trace_calls import TraceCalls
from fumehood.layers.validate_arguments import RestrictTools, ValidateArguments
from fumehood.turn_policies.registry import converse
from fumehood.worlds.registry import ChecksItself, open_world, toolset_of


class Native:
    """Faults without provenance, JSON Schema checks, chance named by what it decides."""

    def open_episode(self, spec: EpisodeSpec, recorder: Recorder, clock: Clock) -> Episode:
        """Build the world and one door a seat."""
        counted = FireCounts(recorder, len(spec.fault_plan))
        world = open_world(spec)
        faults = fault_layers(spec.fault_plan, KeyedRandom(spec.seed), FAMILIES)
        numbers = count(1)
        conversation = converse(spec, world)

        def seat(given: SeatSpec) -> Seat:
            ledger = Ledger(given.budget)
            toolset = toolset_of(world, given.name)
            script = TurnQueue(given.instruction, given.further_turns, _withheld(toolset, given))
            layers: list[Layer] = [
                TraceCalls(given.name, world, ledger, counted, clock, numbers),
                ChargeBudget(ledger),
                HideFaults(),
                *faults,
                *_checks(toolset, script, checks_itself=isinstance(world, ChecksItself)),
            ]
            return Seat(
                given.name, script, LayeredToolset(toolset, layers), ledger, counted, conversation
            )

        seats = tuple(seat(given) for given in spec.seats)
        return Episode(spec, world, seats, counted, conversation)


def _withheld(toolset: Toolset, seat: SeatSpec) -> frozenset[str]:
    """Return the names of tools that a seat has not."""
    if seat.tools is None:
        return frozenset()
    names = {tool.name for tool in toolset.list_tools()}
    missing = set(seat.tools) - names
    if missing:
        raise SpecError(f"seats.{seat.name}.tools", f"the world has no tool {min(missing)!r}")
    return frozenset(names.difference(seat.tools))


def _checks(toolset: Toolset, script: TurnQueue, *, checks_itself: bool) -> list[Layer]:
    """Return what answers for the tools when a call does not fit them."""
    tools = toolset.list_tools()
    missing = script.hidden - {tool.name for tool in tools}
    if missing:
        raise SpecError("seats.further_turns.tools", f"the world has no tool {min(missing)!r}")
    if checks_itself:
        return [RestrictTools(tools, script, early=True)]
    validated = ValidateArguments(tools)
    return [RestrictTools(tools, script), validated] if script.hidden else [validated]
