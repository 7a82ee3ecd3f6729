"""Upper bounds of what a run can use, before it starts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from fumehood.core.episode_spec import SeatSpec
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import BudgetKind
from fumehood.engines.engine import AgentKind
from fumehood.gateway.settings import Price
from fumehood.orchestrator.agents import NamedAgent, is_scaffold
from fumehood.orchestrator.models import bounded, price_of
from fumehood.orchestrator.setup import RunSetup


@dataclass(frozen=True, slots=True)
class Bounds:
    """Upper bounds; None means that there is none, because a budget is missing."""

    episodes: int = 0
    calls: int | None = 0
    """Tool calls."""
    model_calls: int | None = 0
    tokens: int | None = 0
    """Input and output tokens together."""
    microusd: int | None = 0
    """Millionths of a US dollar."""

    def plus(self, other: Bounds) -> Bounds:
        """Return the sum; it has no bound where one side has none."""
        return Bounds(
            self.episodes + other.episodes,
            _sum(self.calls, other.calls),
            _sum(self.model_calls, other.model_calls),
            _sum(self.tokens, other.tokens),
            _sum(self.microusd, other.microusd),
        )

    def to_json(self) -> JsonObject:
        """Return the bounds as a JSON object."""
        return {
            "episodes": self.episodes,
            "tool_calls": self.calls,
            "model_calls": self.model_calls,
            "tokens": self.tokens,
            "microusd": self.microusd,
        }


def bounds_of(setup: RunSetup) -> Bounds:
    """Return the bounds of all episodes of a run."""
    total = Bounds()
    for planned in setup.episodes:
        spec = planned.to_spec(0)
        if setup.config.models is not None:
            has_team = setup.config.team is not None
            spec = bounded(spec, setup.config.models, has_team=has_team)
        tested = setup.participants.tested(planned.agent)
        others = setup.participants.counterparts(planned.case.task, tested)
        seats = (_of_seat(setup, seat, others.get(seat.name, tested)) for seat in spec.seats)
        total = reduce(Bounds.plus, seats, total).plus(Bounds(1))
    return total


def _of_seat(setup: RunSetup, seat: SeatSpec, agent: NamedAgent) -> Bounds:
    limits = [seat.budget[kind] for kind in (BudgetKind.STEPS, BudgetKind.CALLS)]
    calls = min((limit for limit in limits if limit is not None), default=None)
    calls_no_model = agent.source.kind is AgentKind.BUILTIN and not is_scaffold(agent)
    if setup.config.models is None or calls_no_model:
        return Bounds(0, calls)
    tokens, microusd = seat.budget[BudgetKind.MODEL_TOKENS], seat.budget[BudgetKind.MODEL_MICROUSD]
    price = price_of(setup.config.models, agent.model) if agent.model else None
    if microusd is None and tokens is not None and price is not None:
        microusd = _highest_price(price, tokens)
    return Bounds(0, calls, seat.budget[BudgetKind.MODEL_CALLS], tokens, microusd)


def _highest_price(price: Price, tokens: int) -> int:
    return max(price.microusd(tokens, 0), price.microusd(0, tokens))


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second
