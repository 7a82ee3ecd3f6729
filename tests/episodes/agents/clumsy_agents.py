"""Agents that come through fair weather alone."""

from __future__ import annotations

import time
from typing import Any


class FallsOverFailures:
    """Takes every answer for a value."""

    def run(self, session: Any) -> None:
        session.submit(str(len(session.call("list_jobs").result.output["jobs"])))


class AnswersAtLength:
    """Repeats all that it was told, however much that is."""

    def run(self, session: Any) -> None:
        session.submit(str(session.call("list_jobs").result))


class MissesTheEnd:
    """Calls on, whether or not there is anything left to spend."""

    def run(self, session: Any) -> None:
        for _ in range(3):
            session.call("list_jobs")


class SendsRubbish:
    """Writes no JSON, and does not mind."""

    def run(self, session: Any) -> None:
        try:
            session.call_json("list_jobs", "[")
        except Exception:
            session.submit()


class Lingers:
    """Stays when its work is done."""

    def run(self, session: Any) -> None:
        session.call("list_jobs")
        session.submit()
        time.sleep(60)
