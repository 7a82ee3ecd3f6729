"""Encrypts benchmark questions that must not be stored in plain text.

The cipher is that of BrowseComp: bytes XORed with the repeated SHA-256 of a canary, as base64. The
canary is stored next to the text. The cipher keeps questions out of crawls and training data; it
does not protect them from a reader.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from hashlib import sha256
from itertools import cycle

from fumehood.core.json_values import Json

ENCRYPTED = "encrypted"
"""Name of the harness mode whose traces contain questions and the texts of agents only
encrypted."""
MARK = "encrypted:"
"""Prefix of an encrypted text."""


def encrypt(text: str, canary: str) -> str:
    """Return the text encrypted with the canary, as base64."""
    return b64encode(_xor(text.encode("utf-8", "surrogatepass"), canary)).decode("ascii")


def decrypt(encrypted: str, canary: str) -> str:
    """Return the text that :func:`encrypt` encrypted.

    Raises:
        ValueError: the text is not base64, or was encrypted with another canary.
    """
    return _xor(b64decode(encrypted, validate=True), canary).decode("utf-8", "surrogatepass")


def encrypt_texts(value: Json, canary: str) -> Json:
    """Return the value with every text encrypted and marked; keys and numbers stay."""
    if isinstance(value, str):
        return MARK + encrypt(value, canary)
    if isinstance(value, list):
        return [encrypt_texts(item, canary) for item in value]
    if isinstance(value, dict):
        return {key: encrypt_texts(item, canary) for key, item in value.items()}
    return value


def decrypt_text(text: str, canary: str) -> str:
    """Return the plain text of a marked text, and any other text unchanged."""
    return decrypt(text.removeprefix(MARK), canary) if text.startswith(MARK) else text


def _xor(content: bytes, canary: str) -> bytes:
    key = cycle(sha256(canary.encode("utf-8", "surrogatepass")).digest())
    return bytes(byte ^ mask for byte, mask in zip(content, key, strict=False))
