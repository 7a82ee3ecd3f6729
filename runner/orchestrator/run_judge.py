"""Who answers a run's questions of opinion: a model, what a model was recorded to say, or a rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from runner.core.errors import InputError
from runner.core.model_calls import ModelExchange
from runner.core.veil import VEILED, decipher, encipher
from runner.gateway.from_host import ask_models, unanswered
from runner.orchestrator.config import RunConfig
from runner.orchestrator.model_judge import Answer, opinion_of
from runner.orchestrator.models_config import gateway_settings
from runner.records.cassette import Cassette
from runner.scorers.judges.judge import Judge
from runner.scorers.judges.question import Ask, Opinion, Question, majority, nobody
from runner.scorers.judges.rules import Rule, Rules
from runner.scorers.judges.table import JUDGES

RULES = "rules"
JUDGE_FOLDER = "judge"
"""Of the exchanges, within the run folder."""
ATTEMPTS = 4
"""Of one request, before it counts as a vote that failed."""
WAIT_MAX_S = 20.0


class RunJudge:
    """Safe to use from several threads for different episodes."""

    def __init__(self, config: RunConfig, folder: Path, *, live: bool) -> None:
        """Read what the run says.

        Args:
            config: of the run.
            folder: of the run, where exchanges are kept.
            live: whether a model may be asked; otherwise what was kept is all there is.

        Raises:
            InputError: there is no such judge, or its key is not set.
        """
        self._config = config
        self._cassette = Cassette(folder / JUDGE_FOLDER)
        self._rule = _rule(config)
        self._ask_live = _live(config) if live and config.judge and self._rule is None else None

    def ask_for(self, episode_id: str, profile: str) -> Ask:
        """Return who answers the questions about one episode, and keeps what was said.

        Args:
            episode_id: of the episode.
            profile: of its task.
        """
        rule = self._rule
        if rule is not None:
            return lambda question: majority((rule.judge(question),))
        if self._config.judge is None:
            return nobody
        return _Asking(self._config, self._answers(episode_id, veils=profile == VEILED))

    def _answers(self, episode_id: str, *, veils: bool) -> Answer:
        if self._ask_live is None:
            return _from(self._cassette.read(episode_id), unveil=veils)
        return _Kept(self._ask_live, self._cassette, episode_id, veil=veils)


class _Asking:
    def __init__(self, config: RunConfig, answer: Answer) -> None:
        self._config = config
        self._answer = answer

    def __call__(self, question: Question) -> Opinion:
        return opinion_of(question, str(self._config.judge), self._config.judging, self._answer)


class _Kept:
    """Asks, and writes down all that this episode's judges have been asked so far."""

    def __init__(self, ask: Answer, cassette: Cassette, episode_id: str, *, veil: bool) -> None:
        self._ask = ask
        self._cassette = cassette
        self._episode_id = episode_id
        self._veil = veil
        self._exchanges = list[ModelExchange]()

    def __call__(self, bodies: Sequence[bytes]) -> list[ModelExchange]:
        exchanges = self._ask(bodies)
        self._exchanges += [_veiled(each) for each in exchanges] if self._veil else exchanges
        self._cassette.write(self._episode_id, self._exchanges)
        return exchanges


def _from(kept: Sequence[ModelExchange], *, unveil: bool) -> Answer:
    known = {each.key: _unveiled(each) if unveil else each for each in kept}

    def answer(bodies: Sequence[bytes]) -> list[ModelExchange]:
        asked = [unanswered(body) for body in bodies]
        return [known.get(each.key, each) for each in asked]

    return answer


def _veiled(exchange: ModelExchange) -> ModelExchange:
    """Hide what was said about a question that must not be stored, as the question itself is hidden."""
    return _recoded(exchange, lambda text: encipher(text, exchange.key))


def _unveiled(exchange: ModelExchange) -> ModelExchange:
    return _recoded(exchange, lambda text: decipher(text, exchange.key))


def _recoded(exchange: ModelExchange, recode: Callable[[str], str]) -> ModelExchange:
    request, response = (
        recode(body.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        for body in (exchange.request, exchange.response)
    )
    return replace(exchange, request=request, response=response)


def _rule(config: RunConfig) -> Judge | None:
    if config.judge == RULES:
        return Rules([Rule(**rule.model_dump()) for rule in config.judging.rules])
    return JUDGES.load(config.judge)() if config.judge is not None and config.judge in JUDGES else None


def _live(config: RunConfig) -> Answer:
    model = str(config.judge)
    models = config.models
    if models is None or not any(models.upstreams):
        raise InputError(
            f"the judge {model} is none of {RULES}, {', '.join(JUDGES)}; if it is a model, "
            "say under `models` in --config who has it"
        )
    # What agents are answered may be replayed or budgeted; the judge is asked all the same.
    plain = gateway_settings(models.model_copy(update={"mode": "live", "prices": None}), {model})
    settings = replace(plain, attempts=ATTEMPTS, wait_max_s=WAIT_MAX_S)
    upstream = settings.upstream_of(model)
    if upstream is None:
        raise InputError(f"no provider under `models` has the judge's model {model}")
    return lambda bodies: ask_models(settings, upstream, bodies)
