"""Where a provider is, however people write its address down."""

from __future__ import annotations

import pytest

from fumehood.core.errors import InputError
from fumehood.orchestrator.config import run_config
from fumehood.orchestrator.models_config import ModelsConfig, gateway_settings

CHAT = "/v1/chat/completions"


@pytest.mark.parametrize(
    ("address", "prefix", "asked"),
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
def test_an_address_is_understood_with_or_without_its_version(
    address: str, prefix: str | None, asked: str
) -> None:
    given = {"name": "p", "address": address, **({} if prefix is None else {"prefix": prefix})}
    (provider,) = gateway_settings(
        ModelsConfig.model_validate({"providers": [given]}), ()
    ).providers
    assert provider.url(CHAT) == asked


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("localhost:8000", "'localhost:8000' is no address such as http://localhost:8000"),
        (
            "https://api.example.com/?key=1",
            "'https://api.example.com/?key=1' is no address such as",
        ),
        (
            "https://me:secret@api.example.com",
            "an address is written down, so no key belongs there",
        ),
    ],
)
def test_what_is_no_address_is_said_in_one_line(address: str, said: str) -> None:
    models = {"providers": [{"name": "p", "address": address}]}
    with pytest.raises(InputError) as told:
        run_config({"suite": "sample", "agents": ("react",), "models": models})
    assert str(told.value).startswith(f"models.providers.0.address: {said}")
