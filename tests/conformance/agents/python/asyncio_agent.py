"""Executes the script in its task with the Python SDK for asyncio, and prints its observations.

The README of the protocol cases describes the steps.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from contextlib import suppress

from observing import Observation, Step, of_refusal, of_reply, of_task

from fumehood_agent import DeadlinePassed, Refused
from fumehood_agent.aio import AsyncSession
from fumehood_agent.seat import Reply

UNDER_WAY_S = 0.005
"""After which a call that was sent is on its way."""


class Interpreter:
    """Does one step after the other and tells what it saw."""

    async def work(self) -> list[Observation]:
        """Carry out every script there is; return all observations."""
        await self._sit_down()
        observed: list[Observation] = []
        while not self._session.ended:
            self._task = self._session.task
            self._left = self._task.remaining
            observations = [
                await self._do(step) for step in json.loads(self._task.instruction)["steps"]
            ]
            observed += observations
            if not self._session.ended:
                await self._session.submit(json.dumps(observations))
        await self._session.close()
        return observed

    async def _sit_down(self) -> None:
        self._session = await AsyncSession().__aenter__()
        self._task = self._session.task
        self._left = self._task.remaining

    async def _do(self, step: Step) -> Observation:
        match step:
            case {"do": "task"}:
                return of_task(self._task, self._left)
            case {"do": "call"}:
                return await self._reply(self._call(step), step.get("measure"))
            case {"do": "raw_call", "tool": tool, "text": text}:
                return await self._reply(
                    self._session.call_json(tool, text, call_id=step.get("id", ""))
                )
            case {"do": "submit" | "give_up"}:
                return await self._end(step)
            case {"do": "cancel_stream"}:
                return await self._cancel_stream(step)
            case {"do": "reconnect"}:
                await self._session.close()
                await self._sit_down()
                return {"reconnected": True}
        raise ValueError(f"no such step: {step}")

    async def _call(self, step: Step) -> Reply:
        name, deadline_ms = step.get("id", ""), step.get("deadline_ms")
        return await self._session.call(
            step["tool"], step["arguments"], call_id=name, deadline_ms=deadline_ms
        )

    async def _reply(self, call: Awaitable[Reply], measure: str | None = None) -> Observation:
        try:
            reply = await call
        except DeadlinePassed:
            return {"deadline": True}
        except Refused as refused:
            return of_refusal(refused)
        self._left = reply.remaining
        return of_reply(reply, measure)

    async def _end(self, step: Step) -> Observation:
        session = self._session
        end = (
            session.submit(step["answer"])
            if step["do"] == "submit"
            else session.give_up(step["reason"])
        )
        try:
            return {"accepted": await end}
        except Refused as refused:
            return of_refusal(refused)

    async def _cancel_stream(self, step: Step) -> Observation:
        async with AsyncSession() as second:
            call = second.call(step["tool"], step["arguments"], call_id=step["id"])
            sending = asyncio.create_task(call)
            await asyncio.sleep(UNDER_WAY_S)
            sending.cancel()
            with suppress(asyncio.CancelledError):
                await sending
        return {"cancelled": True}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(Interpreter().work())))
