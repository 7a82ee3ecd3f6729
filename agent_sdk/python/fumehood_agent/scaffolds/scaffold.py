"""What all scaffolds share: one model, its settings, and how the work ends if it fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fumehood_agent.errors import Ended
from fumehood_agent.scaffolds.chat_model import (
    ContextOverflow,
    Model,
    ModelRefused,
    UnparseableReply,
    WorkOver,
)
from fumehood_agent.scaffolds.context import Context
from fumehood_agent.scaffolds.dialects import ModelReply
from fumehood_agent.seat import JsonObject, ModelProblem, ModelSeat

CUT = "[The reply was cut at its token limit and is ignored. Reply again, shorter.]"


class Stop(Exception):
    """Leaves the loop of a scaffold because of a problem with its model."""

    def __init__(self, problem: ModelProblem) -> None:
        super().__init__(problem.value)
        self.problem = problem


class Scaffold:
    """Works on the last message of the user with a model."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._settings = model.settings
        self._unusable = 0
        """Replies in a row that were cut or could not be parsed."""

    def run(self, seat: ModelSeat) -> None:
        """Run until the work has ended."""
        try:
            self._work(seat)
        except (Ended, WorkOver):
            return
        except Stop as stop:
            self._stopped(seat, stop.problem)

    def _work(self, seat: ModelSeat) -> None:
        raise NotImplementedError

    def _stopped(self, seat: ModelSeat, problem: ModelProblem) -> None:
        seat.stop(problem)

    def _context(self, *opening: JsonObject) -> Context:
        return Context(
            *opening,
            chars_max=self._settings.context_characters,
            strategy=self._settings.context,
            summarise=lambda messages: self._ask(messages).text,
        )

    def _ask(self, messages: Sequence[JsonObject], tools: Sequence[JsonObject] = ()) -> ModelReply:
        """Return a reply.

        Raises:
            Stop: the provider refuses the request, or its response is malformed.
        """
        try:
            return self._model.ask(messages, tools)
        except ContextOverflow as error:
            raise Stop(ModelProblem.CONTEXT_OVERFLOW) from error
        except ModelRefused as error:
            raise Stop(ModelProblem.REQUEST_REFUSED) from error
        except UnparseableReply as error:
            raise Stop(ModelProblem.REPLY_UNPARSEABLE) from error

    def _replies(
        self, seat: ModelSeat, context: Context, tools: Sequence[JsonObject] = ()
    ) -> Iterator[ModelReply]:
        """Yield the replies to a growing conversation, without those that were cut.

        Raises:
            Stop: the limit of replies is reached, or too many in a row cannot be used.
        """
        for _ in range(self._settings.turns):
            reply = self._ask(context.messages(), tools)
            if not reply.truncated:
                yield reply
                continue
            context.add_turn(reply.message, *reply.answered(CUT))
            self.unusable(ModelProblem.REPLY_TRUNCATED)
        # A turn limit is known only here; the other problems are known where they occur.
        seat.report(ModelProblem.TURN_LIMIT)
        raise Stop(ModelProblem.TURN_LIMIT)

    def unusable(self, problem: ModelProblem) -> None:
        """Count a reply that cannot be used.

        Raises:
            Stop: too many in a row cannot be used.
        """
        self._unusable += 1
        if self._unusable >= self._settings.unusable_replies:
            raise Stop(problem)

    def usable(self) -> None:
        """Note that a reply could be used."""
        self._unusable = 0
