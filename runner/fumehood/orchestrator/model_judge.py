"""From a question to requests of a model, and from what it replied to an opinion. Asks nobody itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from fumehood.core.trace import ModelExchange
from fumehood.gateway.dialects import DIALECTS
from fumehood.gateway.from_host import PATH
from fumehood.gateway.settings import Price
from fumehood.orchestrator.judging_config import JudgingConfig
from fumehood.scorers.judges.prompt import Prompt, prompt_of, read_answer
from fumehood.scorers.judges.question import Opinion, Question, majority

Answer = Callable[[Sequence[bytes]], list[ModelExchange]]
"""From requests to what was answered, in their order: by asking, or from what was kept."""


def opinion_of(question: Question, model: str, config: JudgingConfig, answer: Answer) -> Opinion:
    """Return what a model says to a question, asked as often as the run says.

    Args:
        question: to be decided.
        model: asked.
        config: of the run.
        answer: gets requests answered.
    """
    prompts = [prompt_of(question, sample) for sample in range(config.samples)]
    exchanges = answer([_request(prompt, model, config) for prompt in prompts])
    votes = tuple(
        _vote(exchange, question, prompt.number)
        for exchange, prompt in zip(exchanges, prompts, strict=True)
    )
    return majority(votes, _spent(exchanges, config))


def _request(prompt: Prompt, model: str, config: JudgingConfig) -> bytes:
    told: dict[str, Any] = {
        "model": model,
        "messages": [
            {"role": "system", "content": prompt.system},
            {"role": "user", "content": prompt.user},
        ],
        "max_tokens": config.output_tokens_max,
    }
    if config.temperature is not None:
        told["temperature"] = config.temperature
    return json.dumps(told).encode("ascii")


def _vote(exchange: ModelExchange, question: Question, number: str) -> str | None:
    match _reply(exchange):
        case {"choices": [{"message": {"content": str(text)}}, *_]}:
            return read_answer(text, question, number)
    return None


def _spent(exchanges: Sequence[ModelExchange], config: JudgingConfig) -> dict[str, int]:
    usages = [DIALECTS[PATH].usage(_reply(exchange)) for exchange in exchanges]
    read = sum(max(0, usage.input_tokens) for usage in usages)
    said = sum(max(0, usage.output_tokens) for usage in usages)
    spent = {"calls": len(exchanges), "tokens": read + said}
    if config.price is not None:
        price = Price(config.price.input_usd_per_mtok, config.price.output_usd_per_mtok)
        spent["microusd"] = price.microusd(read, said)
    return spent


def _reply(exchange: ModelExchange) -> dict[str, Any]:
    if exchange.status != 200:
        return {}
    try:
        value = json.loads(exchange.response)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
