"""The judge of a run: a rule, a model, or the recorded replies of a model.

Replies are stored in the run folder, so that a run can be scored again without calling a model.
If the task's texts must not be stored in plain text, the stored exchanges are encrypted too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from fumehood.core.encryption import ENCRYPTED, decrypt, encrypt
from fumehood.core.errors import InputError
from fumehood.core.trace import ModelExchange
from fumehood.gateway.dialects import DIALECTS
from fumehood.gateway.from_host import FAILED_STATUS, PATH, HostModels, failed_exchange
from fumehood.gateway.provider_client import RETRIED_STATUS
from fumehood.gateway.settings import Price
from fumehood.orchestrator.config import JudgingConfig, RunConfig
from fumehood.orchestrator.models import gateway_settings
from fumehood.records.cassette import Cassette
from fumehood.records.redaction import Redaction
from fumehood.scorers.judges.prompt import Prompt, prompt_of, read_answer
from fumehood.scorers.judges.question import Ask, Opinion, Question, majority, no_judge
from fumehood.scorers.judges.registry import JUDGES, Judge
from fumehood.scorers.judges.rules import Rule, Rules

_log = structlog.get_logger("fumehood.judge")

RULES = "rules"
JUDGE_FOLDER = "judge"
"""Folder of the stored exchanges, within the run folder."""
ATTEMPTS = 4
"""Attempts per request, in quick succession."""
WAIT_MAX_S = 20.0
PAUSES_S = (2.0, 5.0, 10.0, 20.0, 35.0, 50.0)
"""Pauses after which failed requests are repeated; after the last one, their votes count as failed.
Requests of agents can overload a provider for a while, also after their end."""
BUSY_STATUS = RETRIED_STATUS | {FAILED_STATUS}
"""Statuses of requests that may succeed later."""

AskModel = Callable[[Sequence[bytes]], list[ModelExchange]]
"""Sends request bodies and returns one exchange per body, in the same order."""


@dataclass(frozen=True, slots=True)
class JudgeSource:
    """The source of the judge's answers: a rule, a model, or else the stored replies."""

    name: str | None
    """Name of the judge; None if the run has none."""
    config: JudgingConfig
    rule: Judge | None = None
    ask_model: AskModel | None = None


def judging_model(config: RunConfig) -> str | None:
    """Return the model that judges; None if a rule does, or nothing."""
    return None if config.judge in {RULES, *JUDGES} else config.judge


def judge_source(config: RunConfig, *, live: bool) -> JudgeSource:
    """Return the judge that a configuration names.

    Args:
        config: of the run.
        live: whether a model may be called; if not, only stored replies are used.

    Raises:
        InputError: the judge is unknown, or its key is not set.
    """
    rule = _rule(config)
    calls_model = live and config.judge is not None and rule is None
    ask_model = _ask_model(config) if calls_model else None
    return JudgeSource(config.judge, config.judging, rule, ask_model)


class RunJudge:
    """Answers the questions of scorers. Safe to use from several threads for different episodes."""

    def __init__(
        self,
        source: JudgeSource,
        run_folder: Path,
        *,
        keeps: bool = True,
        secrets: Collection[str] = (),
    ) -> None:
        """Create the judge of a run.

        Args:
            source: source of the answers.
            run_folder: contains the stored exchanges.
            keeps: whether new exchanges are stored.
            secrets: replaced before exchanges are stored.
        """
        self._redaction = Redaction(secrets)
        self._source = source
        self._cassette = Cassette(run_folder / JUDGE_FOLDER)
        self._keeps = keeps

    def ask_for(self, episode_id: str, harness_mode: str) -> Ask:
        """Return the function that answers questions about one episode.

        Args:
            episode_id: ID of the episode.
            harness_mode: harness mode of its task; decides whether exchanges are encrypted.
        """
        source = self._source
        if source.rule is not None:
            return partial(_ask_rule, source.rule)
        if source.name is None:
            return no_judge
        ask = self._ask_model(episode_id, encrypted=harness_mode == ENCRYPTED)
        return partial(_ask_votes, source.name, source.config, ask)

    def _ask_model(self, episode_id: str, *, encrypted: bool) -> AskModel:
        ask_model = self._source.ask_model
        if ask_model is None:
            return _replay(self._cassette, episode_id, encrypted=encrypted)
        if not self._keeps:
            return ask_model
        return _Recorder(
            ask_model, self._cassette, episode_id, self._redaction, encrypted=encrypted
        )


def _rule(config: RunConfig) -> Judge | None:
    if config.judge == RULES:
        if not config.judging.rules:
            raise InputError(
                "judging.rules: the judge `rules` needs at least one rule; add them in --config"
            )
        return Rules([Rule(**rule.model_dump()) for rule in config.judging.rules])
    try:
        make = JUDGES.load(config.judge or "")
    except InputError:
        # The name is that of a model, or there is no judge.
        return None
    return make()


def _ask_model(config: RunConfig) -> AskModel:
    model = str(config.judge)
    models = config.models
    if models is None or not models.providers:
        raise InputError(
            f"judge: {model!r} is not one of {RULES}, {', '.join(JUDGES)}; if it is a model, "
            "add its provider under `models` in --config"
        )
    # The mode and the prices apply to agents only; the judge is always called.
    live = gateway_settings(
        models.model_copy(update={"mode": "live", "prices": None}),
        {model},
        config.service_workers,
        model,
        config.shards,
    )
    settings = replace(live, attempts=ATTEMPTS, wait_max_s=WAIT_MAX_S)
    provider = settings.provider_of(model)
    if provider is None:
        raise InputError(f"judge: no provider under `models` has the model {model}")
    return partial(_ask_repeatedly, HostModels(settings, provider).ask)


def _ask_repeatedly(ask: AskModel, bodies: Sequence[bytes]) -> list[ModelExchange]:
    """Send requests, and repeat those that failed after increasing pauses."""
    exchanges = ask(bodies)
    for pause_s in PAUSES_S:
        busy = [at for at, exchange in enumerate(exchanges) if exchange.status in BUSY_STATUS]
        if not busy:
            break
        time.sleep(pause_s)
        for at, exchange in zip(busy, ask([bodies[at] for at in busy]), strict=True):
            exchanges[at] = exchange
    return exchanges


def _ask_rule(rule: Judge, question: Question) -> Opinion:
    try:
        answer = rule.judge(question)
    except Exception:
        # A judge may be third-party code; if it fails, the question has no answer.
        _log.exception("the judge failed", question=question.name)
        answer = None
    return majority((answer if question.permits(answer) else None,))


def _ask_votes(model: str, config: JudgingConfig, ask: AskModel, question: Question) -> Opinion:
    """Ask a model the same question ``config.samples`` times and return the majority."""
    samples = config.samples if question.published is None else 1
    prompts = [prompt_of(question, sample) for sample in range(samples)]
    exchanges = ask([_request(prompt, model, config) for prompt in prompts])
    votes = tuple(
        _vote(exchange, question, prompt.number)
        for exchange, prompt in zip(exchanges, prompts, strict=True)
    )
    is_lost = any(exchange.status in BUSY_STATUS for exchange in exchanges)
    return replace(majority(votes, _spent(exchanges, config)), is_lost=is_lost)


def _request(prompt: Prompt, model: str, config: JudgingConfig) -> bytes:
    roles = {"system": prompt.system, "user": prompt.user}
    request: dict[str, Any] = {
        "model": model,
        "messages": [{"role": role, "content": text} for role, text in roles.items() if text],
        "max_tokens": config.output_tokens_max,
    }
    if config.temperature is not None:
        request["temperature"] = config.temperature
    return json.dumps(request).encode("ascii")


def _vote(exchange: ModelExchange, question: Question, number: str) -> str | None:
    match _response(exchange):
        case {"choices": [{"message": {"content": str(text)}}, *_]}:
            return read_answer(text, question, number)
    return None


def _spent(exchanges: Sequence[ModelExchange], config: JudgingConfig) -> dict[str, int]:
    parts = (DIALECTS[PATH].part(_response(exchange)) for exchange in exchanges)
    usages = [part.usage for part in parts if part is not None]
    input_tokens = sum(max(0, usage.input_tokens) for usage in usages)
    output_tokens = sum(max(0, usage.output_tokens) for usage in usages)
    spent = {"calls": len(exchanges), "tokens": input_tokens + output_tokens}
    if config.price is not None:
        price = Price(config.price.input_usd_per_mtok, config.price.output_usd_per_mtok)
        spent["microusd"] = price.microusd(input_tokens, output_tokens)
    return spent


def _response(exchange: ModelExchange) -> dict[str, Any]:
    if exchange.status != 200:
        return {}
    try:
        value = json.loads(exchange.response)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


class _Recorder:
    """Calls a model and writes all exchanges of one episode to the cassette."""

    def __init__(
        self,
        ask_model: AskModel,
        cassette: Cassette,
        episode_id: str,
        redaction: Redaction,
        *,
        encrypted: bool,
    ) -> None:
        self._redaction = redaction
        self._ask_model = ask_model
        self._cassette = cassette
        self._episode_id = episode_id
        self._encrypted = encrypted
        self._exchanges = list[ModelExchange]()

    def __call__(self, bodies: Sequence[bytes]) -> list[ModelExchange]:
        exchanges = self._ask_model(bodies)
        for exchange in map(self._redaction.exchange, exchanges):
            self._exchanges.append(_encrypt(exchange) if self._encrypted else exchange)
        self._cassette.write(self._episode_id, self._exchanges)
        return exchanges


def _replay(cassette: Cassette, episode_id: str, *, encrypted: bool) -> AskModel:
    """Return a function that answers from the cassette; unknown requests stay failed_exchange."""
    by_key = {
        exchange.key: _decrypt(exchange) if encrypted else exchange
        for exchange in cassette.read(episode_id)
    }

    def ask(bodies: Sequence[bytes]) -> list[ModelExchange]:
        requests = [failed_exchange(body) for body in bodies]
        return [by_key.get(request.key, request) for request in requests]

    return ask


def _encrypt(exchange: ModelExchange) -> ModelExchange:
    return _recode(exchange, lambda text: encrypt(text, exchange.key))


def _decrypt(exchange: ModelExchange) -> ModelExchange:
    return _recode(exchange, lambda text: decrypt(text, exchange.key))


def _recode(exchange: ModelExchange, recode: Callable[[str], str]) -> ModelExchange:
    request, response = (
        recode(body.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        for body in (exchange.request, exchange.response)
    )
    return replace(exchange, request=request, response=response)
