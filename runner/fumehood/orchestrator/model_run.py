"""Models in one run: what services are told, what seats may spend, what is kept and played again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import InputError
from fumehood.core.trace import ModelExchange
from fumehood.orchestrator.config import RunConfig
from fumehood.orchestrator.model_bounds import bounded
from fumehood.orchestrator.models_config import ModelsConfig, gateway_settings
from fumehood.orchestrator.participants import Cast
from fumehood.records.cassette import Cassette


def check_models(config: RunConfig, cast: Cast) -> None:
    """Look whether agents that ask a model can, before anything is run.

    Raises:
        InputError: what is missing.
    """
    run = None if config.models is None else ModelRun(config.models, Path(), cast.models())
    for who, model in cast.asking().items():
        if model is None:
            raise InputError(
                f"{who} asks a model: name it with --model, or at a seat with SEAT=AGENT,MODEL"
            )
        if run is None:
            raise InputError(f"{who} asks {model}: say under `models` in --config who has it")
        run.refuse_unanswerable(who, model)


class ModelRun:
    """Safe to use from several threads."""

    def __init__(self, config: ModelsConfig, run_folder: Path, named: Collection[str]) -> None:
        """Read keys and prices.

        Args:
            config: of the run.
            run_folder: holds the cassette where the configuration names none.
            named: models that the run's agents are told to ask.

        Raises:
            InputError: a key is not set, or a file is missing.
        """
        if config.mode == "replay" and (config.cassette is None or not config.cassette.is_dir()):
            raise InputError(
                f"models.cassette must be the folder that is to be replayed, not {config.cassette}"
            )
        self.settings = gateway_settings(config, named)
        self._config = config
        self._cassette = Cassette(config.cassette or run_folder / "cassette")

    def refuse_unanswerable(self, who: str, model: str) -> None:
        """Refuse a model that nobody could answer for; in a replay, what was recorded answers.

        Raises:
            InputError: no provider has it, or money is bounded and nobody knows its price.
        """
        if self._config.mode == "replay":
            return
        if self.settings.provider_of(model) is None:
            raise InputError(f"no provider under `models` has {model}, which {who} asks")
        if self._config.budget.usd is not None and self.settings.price_of(model) is None:
            raise InputError(
                f"models.budget.usd bounds what {who} spends, but models.prices has no {model}"
            )

    def bounded(self, spec: EpisodeSpec) -> EpisodeSpec:
        """Return the episode with the run's bounds for seats whose task states none."""
        return bounded(spec, self._config)

    def recorded(self, episode_id: str) -> Sequence[ModelExchange]:
        """Return what an episode's models are to answer, where they are replayed."""
        return self._cassette.read(episode_id) if self._config.mode == "replay" else ()

    def keep(self, episode_id: str, exchanges: Sequence[ModelExchange]) -> None:
        """Write down what an episode's models were asked and answered, where that is recorded."""
        if self._config.mode == "record":
            self._cassette.write(episode_id, exchanges)
