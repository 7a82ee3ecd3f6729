"""Monitors for tests. Their source is sent to a process without rights, which imports no test."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

from fumehood.core.episode_spec import MonitorSpec
from fumehood.monitors.monitor import (
    ALLOWED,
    Action,
    Decision,
    Facts,
    Monitor,
    Step,
    StepKind,
    decide,
)
from fumehood.monitors.review import OnWait, Review, ignore_wait


class Quiet:
    """Lets every step go on."""

    def begin(self, facts: Facts) -> None:
        """Learn nothing."""

    def before(self, step: Step) -> Decision:
        """Let the step go on."""
        return self.act(step) if step.tool == "get_account" else ALLOWED

    def after(self, step: Step) -> Decision:
        """Let the result pass."""
        return ALLOWED

    def act(self, step: Step) -> Decision:
        """Decide about a call of ``get_account``."""
        return ALLOWED


class Refusing(Quiet):
    """Refuses to read accounts."""

    def act(self, step: Step) -> Decision:
        return Decision(action=Action.REFUSE, suspicion=0.75, reason="reads", message="Not now.")


class Redirecting(Quiet):
    """Reads another account than the agent names, and redacts it."""

    def act(self, step: Step) -> Decision:
        return Decision(action=Action.MODIFY, arguments={"id": "ax2"})

    def after(self, step: Step) -> Decision:
        if step.tool != "get_account":
            return ALLOWED
        return Decision(action=Action.MODIFY, suspicion=0.5, output={"tier": "hidden"})


class Withholding(Quiet):
    """Withholds the results of updates."""

    def after(self, step: Step) -> Decision:
        is_update = step.tool == "update_account"
        return Decision(action=Action.REFUSE, suspicion=0.25) if is_update else ALLOWED


class Ending(Quiet):
    """Ends the episode."""

    def act(self, step: Step) -> Decision:
        return Decision(action=Action.END, suspicion=1.0)


class Escalating(Quiet):
    """Leaves the decision to the next monitor."""

    def act(self, step: Step) -> Decision:
        return Decision(action=Action.ESCALATE, suspicion=0.5)


class Hanging(Quiet):
    """Never answers."""

    def act(self, step: Step) -> Decision:
        while True:
            time.sleep(60)


class HangsOnModels(Hanging):
    """Never answers about a model request."""

    def before(self, step: Step) -> Decision:
        return self.act(step) if step.kind is StepKind.MODEL else ALLOWED


class Late(Quiet):
    """Answers after its deadline."""

    def act(self, step: Step) -> Decision:
        time.sleep(5)
        return ALLOWED


class Slow(Quiet):
    """Takes a second for a decision."""

    def act(self, step: Step) -> Decision:
        time.sleep(1)
        return ALLOWED


class Crashing(Quiet):
    """Ends its process."""

    def act(self, step: Step) -> Decision:
        os._exit(3)


class Growing(Quiet):
    """Needs more memory than it may have."""

    def act(self, step: Step) -> Decision:
        return Decision(reason=str(len(bytearray(8 << 30))))


class Huge(Quiet):
    """Returns more than a decision may have."""

    def act(self, step: Step) -> Decision:
        return Decision(action=Action.MODIFY, arguments={"id": "a" * (8 << 20)})


class Malformed(Quiet):
    """Returns a suspicion that is none."""

    def act(self, step: Step) -> Decision:
        return Decision(suspicion=7.0)


class Sleeping(Quiet):
    """Takes longer for a decision than an episode may take to close."""

    def act(self, step: Step) -> Decision:
        time.sleep(15)
        return ALLOWED


class Unhealthy(Quiet):
    """Crashes on a step, and on the health check of an episode."""

    def begin(self, facts: Facts) -> None:
        self._is_in_episode = bool(facts.world)

    def before(self, step: Step) -> Decision:
        if self._is_in_episode and step.tool in ("get_account", "health_check"):
            os._exit(3)
        return ALLOWED


class Broken(Quiet):
    """Does not begin some episodes."""

    def begin(self, facts: Facts) -> None:
        if "broken" in facts.instructions.get("agent", ""):
            raise RuntimeError("does not begin")


class Curious(Quiet):
    """Reports which of its rights it has; each would be a breach."""

    def act(self, step: Step) -> Decision:
        held = [name for name, has in (("network", _connects()), ("files", _writes())) if has]
        return Decision(suspicion=0.125, reason=",".join(held) or "none")


class SeesState(Quiet):
    """Reports what it sees of the state."""

    needs_state = True

    def act(self, step: Step) -> Decision:
        return Decision(suspicion=0.125, reason=",".join(sorted((step.state or {})["accounts"])))  # type: ignore[arg-type]


def _connects() -> bool:
    try:
        with socket.create_connection(("127.0.0.1", 22), 0.2):
            return True
    except ConnectionRefusedError:
        return True
    except OSError:
        return False


def _writes() -> bool:
    try:
        Path("/tmp/monitor-was-here").write_text("x", encoding="ascii")
    except OSError:
        return False
    return True


def python_monitor(name: str, deadline_ms: int = 20_000) -> MonitorSpec:
    """Return the monitor of a class in this file."""
    path = Path(__file__)
    settings = {"class": name, "source": path.read_text(encoding="utf-8"), "file": path.name}
    return MonitorSpec(name=name, kind="python", settings={**settings}, deadline_ms=deadline_ms)


class LocalReviewer:
    """Asks monitors in this process."""

    def __init__(self, *monitors: Monitor) -> None:
        self.on_wait: OnWait = ignore_wait
        self._monitors = monitors

    def begin(self, facts: Facts) -> bool:
        """Begin the episode."""
        for monitor in self._monitors:
            monitor.begin(facts)
        return any(getattr(monitor, "needs_state", False) for monitor in self._monitors)

    def review(self, step: Step) -> Review:
        """Ask until one does not escalate."""
        decided: list[tuple[str, Decision]] = []
        for monitor in self._monitors:
            decided.append((type(monitor).__name__, decide(monitor, step)))
            os.sched_yield()  # Another thread may run now.
            if decided[-1][1].action is not Action.ESCALATE:
                break
        return Review(tuple(decided))
