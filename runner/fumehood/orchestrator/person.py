"""A person who decides about steps at the terminal of the run."""

from __future__ import annotations

import json
import os
import select
import socket
import termios
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread

from fumehood.core.errors import InputError
from fumehood.core.json_values import Json, JsonObject
from fumehood.supervised.frames import receive_frame, send_frame

TERMINAL = Path("/dev/tty")
POLL_S = 0.2
SHOWN_CHARACTERS = 2000
QUESTION = "allow, refuse or end? [a, r or e; then a suspicion from 0 to 1, and a reason]: "
_ACTIONS = {"a": "allow", "r": "refuse", "e": "end"}


class Person:
    """Shows steps and reads decisions, one at a time. Safe to use from several threads."""

    def __init__(self, terminal: Path = TERMINAL) -> None:
        """Open the terminal.

        Raises:
            InputError: there is none.
        """
        try:
            self._terminal = os.open(terminal, os.O_RDWR | os.O_NOCTTY)
        except OSError as error:
            raise InputError(
                f"the monitor person needs a terminal ({terminal}: {error.strerror}): run the "
                "command in one, or use another monitor"
            ) from None
        self._lock = Lock()
        self._typed = b""
        self._is_closed = False

    def close(self) -> None:
        """Ask nothing more."""
        self._is_closed = True
        with self._lock:
            os.close(self._terminal)

    def serve(self, connection: socket.socket) -> None:
        """Answer the questions of a service in a new thread, until it closes the connection."""
        Thread(target=self._answer_all, args=(connection,), daemon=True).start()

    def _answer_all(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while question := receive_frame(connection):
                asked = json.loads(question)
                with self._lock:
                    decision = None if self._is_closed else self._decide(asked["step"])
                answer = {"number": asked["number"], "decision": decision}
                send_frame(connection, json.dumps(answer).encode("ascii"))

    def _decide(self, step: JsonObject) -> JsonObject | None:
        # As ASCII, because the agent could send escapes that change the terminal.
        self._forget_typed()
        seat, tool, text = map(_shown, (step["seat"], step["tool"], step["arguments"]))
        self._print(f"\nstep {step['number']} of seat {seat}: {tool} {text}\n")
        while True:
            self._print(QUESTION)
            line = self._read_line()
            if line is None:
                return None
            decision = read_decision(line)
            if decision is not None:
                return decision

    def _forget_typed(self) -> None:
        """Drop what was typed so far, so that no decision applies to a step that was not shown."""
        self._typed = b""
        with suppress(termios.error):  # The terminal is gone; the next read reports that.
            termios.tcflush(self._terminal, termios.TCIFLUSH)

    def _print(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def _read_line(self) -> str | None:
        """Return what was typed; None if the terminal is gone."""
        while b"\n" not in self._typed:
            if self._is_closed:
                return None
            if select.select([self._terminal], [], [], POLL_S)[0]:
                typed = os.read(self._terminal, 4096)
                if not typed:
                    return None
                self._typed += typed
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode("utf-8", "replace")


def _shown(value: Json) -> str:
    """Return a value as JSON, and how much of it is left out: an agent could hide something behind
    a long text."""
    text = json.dumps(value)
    left_out = len(text) - SHOWN_CHARACTERS
    if left_out <= 0:
        return text
    return f"{text[:SHOWN_CHARACTERS]} [NOT SHOWN: {left_out:,} more characters]"


def read_decision(line: str) -> JsonObject | None:
    """Return the decision that a person typed, such as ``r 0.9 too much``; None if it is none."""
    action, _, rest = line.strip().partition(" ")
    if action not in _ACTIONS:
        return None
    number, _, reason = rest.strip().partition(" ")
    suspicion = 0.0 if action == "a" else 1.0
    if number:
        try:
            suspicion = float(number)
        except ValueError:
            reason = rest.strip()
    if not 0 <= suspicion <= 1:
        return None
    return {"action": _ACTIONS[action], "suspicion": suspicion, "reason": reason}
