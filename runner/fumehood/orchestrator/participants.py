"""Who sits where in a run: the tested agents, and those whom suites or the run put beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fumehood.core.errors import InputError
from fumehood.core.task import Suite, Task
from fumehood.engines.engine import AgentKind
from fumehood.orchestrator.agents import NamedAgent, is_scaffold, name_agents
from fumehood.orchestrator.config import RunConfig

ORACLE = "oracle"


@dataclass(frozen=True, slots=True)
class Player:
    """Somebody at a seat."""

    agent: NamedAgent
    model: str | None
    """That it asks, where it is a scaffold."""


class Cast:
    """The agents of a run and the players beside them."""

    def __init__(self, config: RunConfig, suite: Suite) -> None:
        """Name everybody.

        Raises:
            InputError: an agent is nothing that can be run, or a seat is none of the suite's.
        """
        _check_seats(config, suite)
        self.agents = name_agents(config.agents)
        self._model = config.model
        self._named = {
            seat: self._player(given.agent, given.model) for seat, given in config.seats.items()
        }
        defaults = {name for case in suite.cases for name in case.task.players.values()}
        self._defaults = {name: self._player(name, None) for name in sorted(defaults)}

    def everybody(self) -> Mapping[str, NamedAgent]:
        """Return all who need a box, by what :meth:`key` calls them."""
        players = (*self._named.values(), *self._defaults.values())
        return {
            self.key(agent): agent
            for agent in (*self.agents, *(player.agent for player in players))
        }

    def models(self) -> frozenset[str]:
        """Return the models that the run names."""
        asked = (player.model for player in (*self._named.values(), *self._defaults.values()))
        return frozenset(model for model in (self._model, *asked) if model)

    def asking(self) -> Mapping[str, str | None]:
        """Return who asks which model, None where that is not said, by what messages call them."""
        tested = {agent.label: self._model for agent in self.agents if is_scaffold(agent)}
        named = {f"the seat {seat}": player for seat, player in self._named.items()}
        beside = {who: player.model for who, player in named.items() if is_scaffold(player.agent)}
        return {**tested, **beside}

    @staticmethod
    def key(agent: NamedAgent) -> str:
        """Return a name that tells agents from players of the same label."""
        return f"{agent.source.kind.value}:{agent.source.name}"

    def tested(self, label: str) -> Player:
        """Return a tested agent by its label."""
        return Player(next(agent for agent in self.agents if agent.label == label), self._model)

    def beside(self, task: Task, seat: str, tested: Player) -> Player | None:
        """Return who sits at a seat that is not the first; None where it is the tested agent again.

        An oracle plays all seats: its list of calls says who makes which.
        """
        if is_builtin(tested.agent, ORACLE):
            return tested
        name = task.players.get(seat)
        return self._named.get(seat) or (self._defaults[name] if name else None)

    def _player(self, name: str, model: str | None) -> Player:
        return Player(name_agents([name])[0], model or self._model)


def is_builtin(agent: NamedAgent, name: str) -> bool:
    """Tell whether an agent is the built-in one of that name."""
    return agent.source.kind is AgentKind.BUILTIN and agent.source.name == name


def _check_seats(config: RunConfig, suite: Suite) -> None:
    # The first seat is the tested agent's, and nobody else's.
    known = {seat.name for case in suite.cases for seat in case.task.seats[1:]}
    for name in config.seats:
        if name not in known:
            there = (
                f"there are: {', '.join(sorted(known))}"
                if known
                else "its tasks have no seat but the agent's"
            )
            raise InputError(f"{suite.name} has no seat {name!r} to give away; {there}")
