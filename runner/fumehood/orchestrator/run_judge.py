"""Who answers a run's questions of opinion: a model, what a model was recorded to say, or a rule."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import structlog

from fumehood.core.encryption import VEILED
from fumehood.core.errors import InputError
from fumehood.gateway.from_host import ask_models
from fumehood.orchestrator.config import RunConfig
from fumehood.orchestrator.model_judge import Answer, opinion_of
from fumehood.orchestrator.models_config import gateway_settings
from fumehood.orchestrator.reply_cache import Kept, from_kept
from fumehood.records.cassette import Cassette
from fumehood.scorers.judges.judge import Judge
from fumehood.scorers.judges.question import Ask, Opinion, Question, majority, nobody
from fumehood.scorers.judges.rules import Rule, Rules
from fumehood.scorers.judges.table import JUDGES

_log = structlog.get_logger("fumehood.judge")

RULES = "rules"
JUDGE_FOLDER = "judge"
"""Of the exchanges, within the run folder."""
ATTEMPTS = 4
"""Of one request, before it counts as a vote that failed."""
WAIT_MAX_S = 20.0


class RunJudge:
    """Safe to use from several threads for different episodes."""

    def __init__(self, config: RunConfig, folder: Path, *, live: bool, keeps: bool = True) -> None:
        """Read what the run says.

        Args:
            config: of the run.
            folder: of the run, where exchanges are kept.
            live: whether a model may be asked; otherwise what was kept is all there is.
            keeps: whether what a model is asked is kept.

        Raises:
            InputError: there is no such judge, or its key is not set.
        """
        self._config = config
        self._cassette = Cassette(folder / JUDGE_FOLDER)
        self._keeps = keeps
        self._rule = _rule(config)
        self._ask_live = _live(config) if live and config.judge and self._rule is None else None

    def ask_for(self, episode_id: str, profile: str) -> Ask:
        """Return who answers the questions about one episode, and keeps what was said.

        Args:
            episode_id: of the episode.
            profile: of its task.
        """
        if self._rule is not None:
            return partial(_ruled, self._rule)
        if self._config.judge is None:
            return nobody
        return _Asking(self._config, self._answers(episode_id, veils=profile == VEILED))

    def _answers(self, episode_id: str, *, veils: bool) -> Answer:
        if self._ask_live is None:
            return from_kept(self._cassette, episode_id, unveil=veils)
        if not self._keeps:
            return self._ask_live
        return Kept(self._ask_live, self._cassette, episode_id, veil=veils)


def _ruled(rule: Judge, question: Question) -> Opinion:
    try:
        said = rule.judge(question)
    except Exception:
        # Somebody else's, and its failure is an answer to nothing.
        _log.exception("the judge failed", question=question.name)
        said = None
    return majority((said if said in question.answers else None,))


class _Asking:
    def __init__(self, config: RunConfig, answer: Answer) -> None:
        self._config = config
        self._answer = answer

    def __call__(self, question: Question) -> Opinion:
        return opinion_of(question, str(self._config.judge), self._config.judging, self._answer)


def _rule(config: RunConfig) -> Judge | None:
    if config.judge == RULES:
        if not config.judging.rules:
            raise InputError(
                "the judge `rules` has none: list them under judging.rules in --config"
            )
        return Rules([Rule(**rule.model_dump()) for rule in config.judging.rules])
    try:
        make = JUDGES.load(config.judge or "")
    except InputError:
        # Then it is a model, or there is none.
        return None
    return make()


def _live(config: RunConfig) -> Answer:
    model = str(config.judge)
    models = config.models
    if models is None or not models.providers:
        raise InputError(
            f"the judge {model} is none of {RULES}, {', '.join(JUDGES)}; if it is a model, "
            "say under `models` in --config who has it"
        )
    # What agents are answered may be replayed or budgeted; the judge is asked all the same.
    plain = gateway_settings(models.model_copy(update={"mode": "live", "prices": None}), {model})
    settings = replace(plain, attempts=ATTEMPTS, wait_max_s=WAIT_MAX_S)
    provider = settings.provider_of(model)
    if provider is None:
        raise InputError(f"no provider under `models` has the judge's model {model}")
    return lambda bodies: ask_models(settings, provider, bodies)
