"""All seats' way to models: one per service."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor

from fumehood.core.model_calls import ModelExchange
from fumehood.gateway.model_door import ModelDoor
from fumehood.gateway.provider import Provider
from fumehood.gateway.purse import Purse
from fumehood.gateway.settings import GatewaySettings


class Gateway:
    """Makes the doors of seats; all on one event loop."""

    def __init__(self, settings: GatewaySettings) -> None:
        """Read what certificates are trusted; nothing is connected yet."""
        self._settings = settings
        self._provider = Provider(settings)

    def door(
        self, purse: Purse, exchanges: Sequence[ModelExchange], threads: Executor
    ) -> ModelDoor:
        """Return the application of one seat.

        Args:
            purse: pays.
            exchanges: what was answered before, where that is replayed.
            threads: in which the purse is asked.
        """
        return ModelDoor(self._settings, self._provider, purse, exchanges, threads)

    async def close(self) -> None:
        """Hang up on every provider."""
        await self._provider.close()
