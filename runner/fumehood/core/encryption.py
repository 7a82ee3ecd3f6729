"""Questions that must never be stored in plain text: how they are kept, and the name of who keeps them so.

The cipher is BrowseComp's own: bytes XORed with the SHA-256 of a canary, over and over, as base64. It hides
nothing from whoever has the canary, which is stored beside it; it keeps questions out of what is crawled and
trained on.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from hashlib import sha256
from itertools import cycle

from fumehood.core.json_values import Json

ENCRYPTED = "encrypted"
"""The profile whose traces hold no plain text of a question, nor of what an agent makes of it."""
MARK = "encrypted:"


def encrypt(text: str, canary: str) -> str:
    """Return base64 from which only the canary gives ``text`` back."""
    return b64encode(_crossed(text.encode("utf-8", "surrogatepass"), canary)).decode("ascii")


def decrypt(encrypted: str, canary: str) -> str:
    """Return the text that :func:`encrypt` hid.

    Raises:
        ValueError: it is not base64, or not of this canary.
    """
    return _crossed(b64decode(encrypted, validate=True), canary).decode("utf-8", "surrogatepass")


def encrypt_texts(value: Json, canary: str) -> Json:
    """Return a value with every text in it encrypted and marked; keys and numbers stay."""
    if isinstance(value, str):
        return MARK + encrypt(value, canary)
    if isinstance(value, list):
        return [encrypt_texts(item, canary) for item in value]
    if isinstance(value, dict):
        return {key: encrypt_texts(item, canary) for key, item in value.items()}
    return value


def decrypt_text(text: str, canary: str) -> str:
    """Return a text as it was before :func:`veiled`, or as it is where it is not marked."""
    return decrypt(text.removeprefix(MARK), canary) if text.startswith(MARK) else text


def _crossed(content: bytes, canary: str) -> bytes:
    key = cycle(sha256(canary.encode("utf-8", "surrogatepass")).digest())
    return bytes(byte ^ other for byte, other in zip(content, key, strict=False))
