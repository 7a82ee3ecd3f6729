"""What the agents of a run spent on models, added up from its traces. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from fumehood.core.json_values import JsonObject
from fumehood.records.row import EpisodeRow
from fumehood.records.run_folder import RunFolder
from fumehood.report.money import dollars


@dataclass(frozen=True, slots=True)
class ModelCosts:
    """Of one agent, over all its episodes."""

    calls: int = 0
    tokens: int = 0
    microusd: int = 0
    """Millionths of a dollar; 0 also where nobody knows a price."""

    def plus(self, spent: JsonObject) -> ModelCosts:
        """Return these costs and one call's, as its event tells them."""
        own = {name: int(str(amount)) for name, amount in spent.items()}
        return ModelCosts(
            self.calls + own.get("model_calls", 0),
            self.tokens + own.get("model_tokens", 0),
            self.microusd + own.get("model_microusd", 0),
        )

    def to_json(self) -> JsonObject:
        """Return the costs as a JSON object."""
        return {"calls": self.calls, "tokens": self.tokens, "microusd": self.microusd}

    def __str__(self) -> str:
        money = f", {dollars(self.microusd)}" if self.microusd else ""
        return f"{self.calls:,} calls, {self.tokens:,} tokens{money}"


def model_costs(folder: RunFolder, rows: Iterable[EpisodeRow]) -> dict[str, ModelCosts]:
    """Return by agent what models cost; agents that asked none are left out.

    What was spent at another seat than the agent's own stands under both names, such as ``react/user``.

    Raises:
        InputError: a trace is missing or not a trace.
    """
    found: dict[str, ModelCosts] = {}
    for row in rows:
        first = ""
        for record in folder.read_trace(row) if row.trace else ():
            event = json.loads(record.event_json)
            if event["kind"] == "opened":
                first = event["seats"][0]["name"]
            if event["kind"] == "model_call":
                agent = row.name.agent
                who = agent if event["seat"] == first else f"{agent}/{event['seat']}"
                found[who] = found.get(who, ModelCosts()).plus(event["spent"])
    return found
