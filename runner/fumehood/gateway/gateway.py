"""All seats' way to models: one per service."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor

from fumehood.core.trace import ModelExchange
from fumehood.gateway.budget_port import BudgetPort
from fumehood.gateway.model_door import ModelDoor
from fumehood.gateway.provider_client import ProviderClient
from fumehood.gateway.settings import GatewaySettings


class Gateway:
    """Makes the doors of seats; all on one event loop."""

    def __init__(self, settings: GatewaySettings) -> None:
        """Read what certificates are trusted; nothing is connected yet."""
        self._settings = settings
        self._provider_client = ProviderClient(settings)

    def door(
        self, budget_port: BudgetPort, exchanges: Sequence[ModelExchange], threads: Executor
    ) -> ModelDoor:
        """Return the application of one seat.

        Args:
            budget_port: pays.
            exchanges: what was answered before, where that is replayed.
            threads: in which the budget_port is asked.
        """
        return ModelDoor(self._settings, self._provider_client, budget_port, exchanges, threads)

    async def close(self) -> None:
        """Hang up on every provider."""
        await self._provider_client.close()
