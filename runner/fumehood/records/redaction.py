"""Replaces known secrets in bytes that are stored or shown, in all forms in which JSON, URLs and
base64 contain them."""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus

from fumehood.core.outcome import Infra
from fumehood.core.trace import ModelExchange

T = TypeVar("T")
CHARACTERS_MIN = 8
"""Shorter secrets are placeholders such as ``none``, which texts contain anyway."""
REDACTED = b"[key]"
_NAME = re.compile(r"(key|token|secret|passw(or)?d|passphrase|credentials?)(_id)?$", re.IGNORECASE)
_PLAIN_WORD = re.compile(r"[A-Za-z_./ -]{0,19}")
"""Short values without a digit, such as ``postgres``, are placeholders or paths."""


class Redaction:
    """Replaces secrets. Safe to use from several threads."""

    def __init__(self, secrets: Collection[str]) -> None:
        """Derive the forms of each secret; ignore secrets with less than ``CHARACTERS_MIN``."""
        forms = {form for secret in secrets for form in _forms(secret)}
        # The longest first: one form can contain another.
        self._forms = sorted(forms, key=lambda form: (-len(form), form))

    def redacted(self, text: bytes) -> bytes:
        """Return the text with ``REDACTED`` in place of every secret."""
        for form in self._forms:
            text = text.replace(form, REDACTED)
        return text

    def exchange(self, exchange: ModelExchange) -> ModelExchange:
        """Return an exchange without secrets in its request and its response."""
        request, response = map(self.redacted, (exchange.request, exchange.response))
        return replace(exchange, request=request, response=response)

    def outcome(self, outcome: T) -> T:
        """Return an outcome without secrets in the detail of a failure of the infrastructure,
        which can be a message of a daemon."""
        if not isinstance(outcome, Infra):
            return outcome
        detail = self.redacted(outcome.detail.encode("utf-8", "replace")).decode()
        return replace(outcome, detail=detail)


NO_SECRETS = Redaction(())


def secrets_in(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts whose name says that they are secrets, such as ``API_KEY``.

    Args:
        values: environment variables or settings by name; settings may contain further ones.
    """
    for name, value in values.items():
        for inner in value if isinstance(value, list | tuple) else (value,):
            if isinstance(inner, Mapping):
                yield from secrets_in(inner)
            elif isinstance(inner, str) and _NAME.search(name) and not _PLAIN_WORD.fullmatch(inner):
                yield inner


def _forms(secret: str) -> Iterator[bytes]:
    if len(secret) < CHARACTERS_MIN:
        return
    plain = secret.encode("utf-8", "surrogateescape")
    yield plain
    for text in (quote(plain, safe=""), quote(plain), quote_plus(plain)):
        yield text.encode()
        yield re.sub("%[0-9A-F]{2}", lambda code: code[0].lower(), text).encode()
    for ascii_only in (True, False):
        escaped = secret
        for _ in range(2):  # A tool's result is JSON inside the JSON of a request.
            escaped = json.dumps(escaped, ensure_ascii=ascii_only)[1:-1]
            yield escaped.encode("utf-8", "surrogateescape")
            yield escaped.replace("/", "\\/").encode("utf-8", "surrogateescape")
    yield from (plain.hex().encode(), plain.hex().upper().encode())
    for before in range(3):
        # The first and the last character may also contain bits of the neighbours.
        whole = (len(plain) + before) * 8 // 6
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(bytes(before) + plain)[-(-before * 8 // 6) : whole]
