"""Executes the script in its task with the Python SDK, and prints its observations.

The README of the protocol cases describes the steps.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread

from observing import Observation, Step, of_refusal, of_reply, of_task

from fumehood_agent import DeadlinePassed, FumehoodError, Refused, Session
from fumehood_agent.seat import Reply

UNDER_WAY_S = 0.005
"""After which a call that was sent is on its way."""


class Interpreter:
    """Does one step after the other and tells what it saw."""

    def __init__(self) -> None:
        self._sit_down()

    def work(self) -> list[Observation]:
        """Carry out every script there is; return all observations."""
        observed: list[Observation] = []
        while not self._session.ended:
            self._task = self._session.task
            self._left = self._task.remaining
            observations = [self._do(step) for step in json.loads(self._task.instruction)["steps"]]
            observed += observations
            if not self._session.ended:
                self._session.submit(json.dumps(observations))
        self._session.close()
        return observed

    def _sit_down(self) -> None:
        self._session = Session()
        self._task = self._session.task
        self._left = self._task.remaining

    def _do(self, step: Step) -> Observation:
        match step:
            case {"do": "task"}:
                return of_task(self._task, self._left)
            case {"do": "call"}:
                return self._reply(lambda: self._call(step), step.get("measure"))
            case {"do": "raw_call", "tool": tool, "text": text}:
                return self._reply(
                    lambda: self._session.call_json(tool, text, call_id=step.get("id", ""))
                )
            case {"do": "submit" | "give_up"}:
                return self._end(step)
            case {"do": "cancel_stream"}:
                return self._cancel_stream(step)
            case {"do": "reconnect"}:
                self._session.close()
                self._sit_down()
                return {"reconnected": True}
        raise ValueError(f"no such step: {step}")

    def _call(self, step: Step) -> Reply:
        name, deadline_ms = step.get("id", ""), step.get("deadline_ms")
        return self._session.call(
            step["tool"], step["arguments"], call_id=name, deadline_ms=deadline_ms
        )

    def _reply(self, send: Callable[[], Reply], measure: str | None = None) -> Observation:
        try:
            reply = send()
        except DeadlinePassed:
            return {"deadline": True}
        except Refused as refused:
            return of_refusal(refused)
        self._left = reply.remaining
        return of_reply(reply, measure)

    def _end(self, step: Step) -> Observation:
        session = self._session
        try:
            if step["do"] == "submit":
                return {"accepted": session.submit(step["answer"])}
            return {"accepted": session.give_up(step["reason"])}
        except Refused as refused:
            return of_refusal(refused)

    def _cancel_stream(self, step: Step) -> Observation:
        second = Session()

        def send() -> None:
            with suppress(FumehoodError):  # It is to be cancelled.
                second.call(step["tool"], step["arguments"], call_id=step["id"])

        sending = Thread(target=send)
        sending.start()
        time.sleep(UNDER_WAY_S)
        second.close()
        sending.join()
        return {"cancelled": True}


class Scripted:
    """The same for `agent:Scripted`, in a second session beside the given one."""

    def run(self, _: Session) -> None:
        """Work, and tell."""
        print(json.dumps(Interpreter().work()))


if __name__ == "__main__":
    print(json.dumps(Interpreter().work()))
