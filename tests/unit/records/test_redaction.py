"""Secrets are replaced in every form in which requests and responses can contain them."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.records.redaction import CHARACTERS_MIN, Redaction, secrets_in

SECRET = 'p/ä"ss\\wörd +7~?'


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps({"a": SECRET})),
        json.dumps(SECRET)[1:-1].replace("/", "\\/"),
        quote(SECRET),
        quote(SECRET, safe=""),
        quote(SECRET, safe="").lower(),
        quote_plus(SECRET),
        SECRET.encode().hex(),
    ],
)
def test_every_form_of_a_secret_is_replaced(form: str) -> None:
    redacted = Redaction([SECRET]).redacted(f"before {form} after".encode()).decode()
    assert redacted.startswith("before ")
    assert redacted.endswith(" after")
    assert "[key]" in redacted
    assert "rd" not in redacted


@given(st.binary(max_size=7), st.text(min_size=CHARACTERS_MIN, max_size=40), st.binary(max_size=7))
def test_a_secret_inside_base64_is_replaced(before: bytes, secret: str, after: bytes) -> None:
    try:
        content = before + secret.encode() + after
    except UnicodeEncodeError:
        return
    for encode in (b64encode, urlsafe_b64encode):
        assert b"[key]" in Redaction([secret]).redacted(encode(content))


def test_other_texts_are_unchanged() -> None:
    text = b"none of this is secret"
    assert Redaction(["none", "", SECRET]).redacted(text) == text


def test_variables_and_settings_with_the_name_of_a_key_are_secrets() -> None:
    values = {
        "OPENAI_API_KEY": "sk-1",
        "AWS_ACCESS_KEY_ID": "id-2",
        "DB_PASSWORD": "postgres",
        "max_tokens": "1234567890",
        "PATH": "/bin:/usr/bin1",
        "agents": [{"arguments": {"apiKey": "inner-3", "max_tokens": 5}}, "name"],
        "token": 7,
    }
    assert set(secrets_in(values)) == {"sk-1", "id-2", "inner-3"}
