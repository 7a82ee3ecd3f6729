"""What a judge's model was asked and replied, kept in the run folder, and read again instead of asking.

Where a question must not be stored in plain text, what was said about it is hidden as the question itself is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fumehood.core.encryption import decipher, encipher
from fumehood.core.trace import ModelExchange
from fumehood.gateway.from_host import unanswered
from fumehood.orchestrator.model_judge import Answer
from fumehood.records.cassette import Cassette


class Kept:
    """Asks, and writes down all that has been asked about one episode so far."""

    def __init__(self, ask: Answer, cassette: Cassette, episode_id: str, *, veil: bool) -> None:
        """Ask nothing yet.

        Args:
            ask: asks the model.
            cassette: of the run's judge.
            episode_id: of the episode.
            veil: whether nothing of it may be stored in plain text.
        """
        self._ask = ask
        self._cassette = cassette
        self._episode_id = episode_id
        self._veil = veil
        self._exchanges = list[ModelExchange]()

    def __call__(self, bodies: Sequence[bytes]) -> list[ModelExchange]:
        """Return what is answered, in the order of the requests."""
        exchanges = self._ask(bodies)
        self._exchanges += [_veiled(each) for each in exchanges] if self._veil else exchanges
        self._cassette.write(self._episode_id, self._exchanges)
        return exchanges


def from_kept(cassette: Cassette, episode_id: str, *, unveil: bool) -> Answer:
    """Return who answers from what was kept, and with nothing where nothing was."""
    kept = cassette.read(episode_id)
    known = {each.key: _unveiled(each) if unveil else each for each in kept}

    def answer(bodies: Sequence[bytes]) -> list[ModelExchange]:
        asked = [unanswered(body) for body in bodies]
        return [known.get(each.key, each) for each in asked]

    return answer


def _veiled(exchange: ModelExchange) -> ModelExchange:
    return _recoded(exchange, lambda text: encipher(text, exchange.key))


def _unveiled(exchange: ModelExchange) -> ModelExchange:
    return _recoded(exchange, lambda text: decipher(text, exchange.key))


def _recoded(exchange: ModelExchange, recode: Callable[[str], str]) -> ModelExchange:
    request, response = (
        recode(body.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        for body in (exchange.request, exchange.response)
    )
    return replace(exchange, request=request, response=response)
