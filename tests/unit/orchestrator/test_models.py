"""Gateway settings of a run: provider URLs, keys, cassettes, and checks of scaffolds' models."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from fumehood.benchmarks.registry import load_suite
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError
from fumehood.core.ledger import Budget, BudgetKind
from fumehood.gateway.settings import settings_from_line, settings_to_line
from fumehood.orchestrator.agents import Participants
from fumehood.orchestrator.config import ModelParameters, ModelsConfig, ProviderConfig, run_config
from fumehood.orchestrator.models import bounded, check_scaffolds, gateway_settings
from fumehood_agent.scaffolds.settings import ModelSettings
from tests.architecture.project import ROOT
from tests.parts.specs import episode_spec

CHAT = "/v1/chat/completions"
PROVIDER = {"name": "p", "address": "http://localhost:8000", "models": ["m-*"]}


@pytest.mark.parametrize(
    ("address", "prefix", "url"),
    [
        ("http://localhost:8000", None, "http://localhost:8000/v1/chat/completions"),
        ("http://localhost:8000/", None, "http://localhost:8000/v1/chat/completions"),
        ("http://localhost:8000/v1", None, "http://localhost:8000/v1/chat/completions"),
        (
            "https://api.example.com/openai/v1/",
            None,
            "https://api.example.com/openai/v1/chat/completions",
        ),
        (
            "https://api.example.com",
            "/v1beta/openai",
            "https://api.example.com/v1beta/openai/chat/completions",
        ),
        ("https://api.example.com/all", "", "https://api.example.com/all/chat/completions"),
    ],
)
def test_a_trailing_version_of_an_address_is_optional(
    address: str, prefix: str | None, url: str
) -> None:
    given = {"name": "p", "address": address, **({} if prefix is None else {"prefix": prefix})}
    settings = gateway_settings(ModelsConfig.model_validate({"providers": [given]}), ())
    assert settings.providers[0].url(CHAT) == url


@pytest.mark.parametrize(("services", "share"), [(1, 7), (2, 3), (7, 1)])
def test_services_share_the_limits_of_a_provider(services: int, share: int) -> None:
    provider = {**PROVIDER, "requests_per_minute": 7, "concurrent_calls": 7}
    config = ModelsConfig.model_validate({"providers": [provider]})
    (settings,) = gateway_settings(config, (), services).providers
    assert (settings.requests_per_minute, settings.concurrent_calls) == (share, share)
    assert settings.tokens_per_minute is None
    with pytest.raises(InputError, match="is 7, less than one for each of 8 services"):
        gateway_settings(config, (), 8)


def test_a_missing_key_is_an_error_unless_the_mode_is_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    settings: dict[str, Any] = {"providers": [{**PROVIDER, "key_env": "NO_SUCH_KEY"}]}
    with pytest.raises(InputError, match="set the environment variable NO_SUCH_KEY"):
        gateway_settings(ModelsConfig.model_validate(settings), ())
    replay = {**settings, "mode": "replay", "cassette": tmp_path}
    assert gateway_settings(ModelsConfig.model_validate(replay), ()).providers[0].key == ""


@pytest.mark.parametrize(
    ("judge", "services", "shares"),
    [(None, 1, [7, 7]), ("m-large", 1, [3, 7]), ("other", 2, [3, 2]), ("m-large", 7, [1, 1])],
)
def test_a_judge_has_the_share_of_one_more_service(
    judge: str | None, services: int, shares: list[int]
) -> None:
    providers = [
        {**PROVIDER, "concurrent_calls": 7},
        {**PROVIDER, "name": "q", "models": ["*"], "concurrent_calls": 7},
    ]
    config = ModelsConfig.model_validate({"providers": providers})
    settings = gateway_settings(config, (), services, judge)
    assert [provider.concurrent_calls for provider in settings.providers] == shares


def test_a_replay_needs_an_existing_cassette(tmp_path: Path) -> None:
    for cassette in (None, tmp_path / "none"):
        config = ModelsConfig.model_validate({"mode": "replay", "cassette": cassette})
        with pytest.raises(InputError, match=r"models\.cassette: must be the folder"):
            gateway_settings(config, ())


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "react calls a model: name it with --model"),
        ({"model": "m-1"}, "react calls m-1: add its provider"),
        ({"model": "other", "models": {"providers": [PROVIDER]}}, "no provider .* has other"),
        (
            {"model": "m-1", "models": {"providers": [PROVIDER], "budget": {"usd": 1}}},
            "models.prices has no price for m-1",
        ),
        ({"model": "m-1", "models": {"providers": [PROVIDER]}}, None),
    ],
)
def test_a_scaffold_without_a_usable_model_is_an_error(
    settings: dict[str, Any], reason: str | None
) -> None:
    config = run_config({"suite": "sample", "agents": ("react",), **settings})
    participants = Participants(config, load_suite("sample"))
    gateway = gateway_settings(config.models, ()) if config.models else None
    if reason is None:
        check_scaffolds(participants, config.models, gateway)
        return
    with pytest.raises(InputError, match=reason):
        check_scaffolds(participants, config.models, gateway)


def test_an_unknown_grant_is_reported_with_the_known_names() -> None:
    with pytest.raises(InputError, match=r"grants.*'everything' is not one of web_search,"):
        run_config({"suite": "s", "agents": ("a",), "models": {"grants": ["everything"]}})


def test_grants_reach_the_gateway_of_a_service() -> None:
    config = ModelsConfig.model_validate({"grants": ["web_search", "field:top_k"]})
    settings = settings_from_line(settings_to_line(gateway_settings(config, ())))
    assert settings.grants == {"web_search", "field:top_k"}


def test_the_scaffolds_have_the_parameters_of_the_configuration_with_equal_defaults() -> None:
    assert ModelParameters().model_dump() == asdict(ModelSettings())


def test_the_first_matching_pattern_gives_the_parameters_of_a_model() -> None:
    parameters = {"m-1": {"turns": 3}, "m-*": {"turns": 5, "temperature": None}}
    config = ModelsConfig.model_validate({"parameters": parameters})
    assert config.parameters_of("m-1").changed() == {"turns": 3}
    assert config.parameters_of("m-2").changed() == {"turns": 5, "temperature": None}
    assert config.parameters_of("other").changed() == {}
    settings = ModelSettings.from_json(json.dumps(config.parameters_of("m-2").changed()))
    assert asdict(settings) == config.parameters_of("m-2").model_dump()


@pytest.mark.parametrize(
    "parameters",
    [
        {"dialect": "messages", "seed": 1},
        {"dialect": "responses", "output_limit_field": "max_completion_tokens"},
        {"no_such_key": 1},
        {"turns": 0},
    ],
)
def test_a_parameter_that_has_no_effect_is_an_error(parameters: dict[str, Any]) -> None:
    settings = {"suite": "s", "agents": ["a"], "models": {"parameters": {"m": parameters}}}
    with pytest.raises(InputError, match=r"models\.parameters\.m"):
        run_config(settings)


@pytest.mark.parametrize(("has_team", "calls"), [(True, [4, 3, 3]), (False, [10, 10, 10])])
def test_the_seats_of_a_team_share_the_model_budget_of_one_agent(
    has_team: bool, calls: list[int]
) -> None:
    config = ModelsConfig.model_validate({"budget": {"calls": 10}})
    seats = tuple(
        SeatSpec(name=name, instruction="", budget=Budget()) for name in ("head", "one", "two")
    )
    spec = bounded(replace(episode_spec(), seats=seats), config, has_team=has_team)
    assert [seat.budget[BudgetKind.MODEL_CALLS] for seat in spec.seats] == calls


@pytest.mark.parametrize("page", ["configuration.md", "models.md"])
def test_the_documentation_names_every_setting(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    names = {
        *ModelParameters.model_fields,
        *ModelsConfig.model_fields,
        *ProviderConfig.model_fields,
    }
    assert (
        sorted(name for name in names if f"`{name}`" not in text and f".{name}`" not in text) == []
    )
