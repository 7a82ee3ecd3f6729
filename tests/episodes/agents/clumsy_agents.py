"""Agents that only work without failures."""

from __future__ import annotations

import time
from typing import Any


class FallsOverFailures:
    """Treats every reply as a value."""

    def run(self, session: Any) -> None:
        session.submit(str(len(session.call("list_jobs").result.output["jobs"])))


class AnswersAtLength:
    """Submits complete results of any size."""

    def run(self, session: Any) -> None:
        session.submit(str(session.call("list_jobs").result))


class MissesTheEnd:
    """Makes calls after its budget has ended."""

    def run(self, session: Any) -> None:
        for _ in range(3):
            session.call("list_jobs")


class SendsRubbish:
    """Sends invalid JSON and ignores the error."""

    def run(self, session: Any) -> None:
        try:
            session.call_json("list_jobs", "[")
        except Exception:
            session.submit()


class Lingers:
    """Keeps running after the end of its episode."""

    def run(self, session: Any) -> None:
        session.call("list_jobs")
        session.submit()
        time.sleep(60)
