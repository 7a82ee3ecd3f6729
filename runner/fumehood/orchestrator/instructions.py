"""Changes of the instructions of a run: a question about the confidence of the agent.

They change the specification of an episode, not its task, so episodes with and without them are
compared as episodes of the same task.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from fumehood.core.conversation import Turn
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError
from fumehood.core.task import Case, Suite, Task

ASK = (
    "Also state the probability that you have done this correctly: pass it as `confidence`, from 0 "
    "to 1, when you submit, or end your answer with a line such as `Confidence: 80 %`."
)
_ASKED = re.compile(r"\bconfidence\W{0,3}:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Instructions:
    """How the instructions of a run differ from those of its tasks."""

    ask_confidence: bool = False

    def check(self, suite: Suite) -> None:
        """Refuse a change that cannot be made.

        Raises:
            InputError: an instruction asks for a confidence already.
        """
        if not self.ask_confidence:
            return
        for case in suite.cases:
            if any(_ASKED.search(text) for text in _texts(case.task)):
                raise InputError(
                    f"--ask-confidence: the instruction of {case.task.task_id} asks for a "
                    "confidence already, and `fumehood reliability` reads it: remove the flag"
                )

    def of(self, case: Case) -> tuple[SeatSpec, ...]:
        """Return the seats of a task with the instructions of an episode."""
        task = case.task
        return tuple(
            seat if seat.name in task.counterparts else self._changed(seat) for seat in task.seats
        )

    def _changed(self, seat: SeatSpec) -> SeatSpec:
        return _asked(seat) if self.ask_confidence else seat


AS_IN_TASKS = Instructions()


def _asked(seat: SeatSpec) -> SeatSpec:
    """Return the seat with the question at the end of its last message."""
    if not seat.further_turns:
        text = f"{seat.instruction}\n\n{ASK}"
        return replace(seat, instruction=text, asks_confidence=True)
    *turns, last = seat.further_turns
    turns.append(Turn(f"{last.instruction}\n\n{ASK}", last.tools))
    return replace(seat, further_turns=tuple(turns), asks_confidence=True)


def _texts(task: Task) -> list[str]:
    seats = [seat for seat in task.seats if seat.name not in task.counterparts]
    turns = [turn.instruction for seat in seats for turn in seat.further_turns]
    return [*(seat.instruction for seat in seats), *turns]
