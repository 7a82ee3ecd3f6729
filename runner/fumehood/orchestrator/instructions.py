"""Changes of the instructions of a run: other wordings, and a question about the confidence.

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
from fumehood.orchestrator.rewording import values_in, variants

WRITTEN_HERE = frozenset({"native", "safety", "sample"})
"""Benchmarks whose instructions are no published texts."""

ASK = (
    "Also state the probability that you have done this correctly: pass it as `confidence`, from 0 "
    "to 1, when you submit, or end your answer with a line such as `Confidence: 80 %`."
)
_ASKED = re.compile(r"\bconfidence\W{0,3}:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Instructions:
    """How the instructions of a run differ from those of its tasks."""

    ask_confidence: bool = False
    prompt_variants: int = 0
    """Number of wordings of each instruction, N; trial t, from 0, has variant t modulo N, plus 1.
    With 0 every trial has the instruction of the task."""
    seed: int = 0
    """Seed of the wordings: that of the run."""

    def check(self, suite: Suite, trials: int, *, reword_published: bool = False) -> None:
        """Refuse a change that cannot be made.

        Args:
            suite: the tasks.
            trials: of the run.
            reword_published: whether published instructions may be reworded.

        Raises:
            InputError: there are fewer trials than variants, an instruction is published, or it
                asks for a confidence already.
        """
        if self.prompt_variants > trials:
            raise InputError(
                f"--prompt-variants {self.prompt_variants}: each trial has one variant, and "
                f"`trials` is {trials}: add --trials {self.prompt_variants}"
            )
        published = {str(case.task.tags.get("benchmark")) for case in suite.cases} - WRITTEN_HERE
        if self.prompt_variants and published and not reword_published:
            raise InputError(
                f"--prompt-variants: the instructions of {min(published)} are published texts, and "
                "scores with other wordings cannot be compared with published ones: add "
                "--reword-published to reword them"
            )
        if reword_published and not (self.prompt_variants and published):
            raise InputError(
                "--reword-published has no effect: it needs --prompt-variants and a suite with "
                "published instructions"
            )
        if not self.ask_confidence:
            return
        for case in suite.cases:
            if any(_ASKED.search(text) for text in _texts(case.task)):
                raise InputError(
                    f"--ask-confidence: the instruction of {case.task.task_id} asks for a "
                    "confidence already, and `fumehood reliability` reads it: remove the flag"
                )

    def of(self, case: Case, trial: int) -> tuple[SeatSpec, ...]:
        """Return the seats of a task with the instructions of an episode."""
        return tuple(
            seat if seat.name in case.task.counterparts else self._changed(seat, case, trial)
            for seat in case.task.seats
        )

    def _changed(self, seat: SeatSpec, case: Case, trial: int) -> SeatSpec:
        if self.prompt_variants:
            seat = self._reworded(seat, case, trial % self.prompt_variants + 1)
        return _asked(seat) if self.ask_confidence else seat

    def _reworded(self, seat: SeatSpec, case: Case, variant: int) -> SeatSpec:
        def reworded(text: str, turn: int) -> str:
            key = f"{self.seed}/{case.task.task_id}/{seat.name}/{turn}"
            return variants(text, _fixed(text, case), key, self.prompt_variants)[variant - 1]

        turns = tuple(
            Turn(reworded(turn.instruction, number), turn.tools)
            for number, turn in enumerate(seat.further_turns, 2)
        )
        text = reworded(seat.instruction, 1)
        return replace(seat, instruction=text, further_turns=turns, prompt_variant=variant)


AS_IN_TASKS = Instructions()


def _fixed(text: str, case: Case) -> frozenset[str]:
    """Return the values of a task that its instruction contains."""
    return values_in(text, case.gold.criteria, case.gold.oracle, case.task.initial_state)


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
