"""Encrypted texts can be read with their canary only."""

from __future__ import annotations

import pytest

from fumehood.core.encryption import MARK, decrypt, encrypt, encrypt_texts


@pytest.mark.parametrize("text", ["", "plain", "ünïcode", "\ud800", "a" * 100])
def test_a_text_survives(text: str) -> None:
    assert decrypt(encrypt(text, "canary"), "canary") == text


def test_text_that_is_not_base64_is_rejected() -> None:
    # Without validation, b64decode ignores the characters that are not of its alphabet.
    with pytest.raises(ValueError, match="base64 data"):
        decrypt("!" + encrypt("plain", "canary"), "canary")


def test_keys_and_numbers_stay() -> None:
    value = encrypt_texts({"key": ["text", 1, None, {"inner": "text"}]}, "canary")
    secret = MARK + encrypt("text", "canary")
    assert value == {"key": [secret, 1, None, {"inner": secret}]}
