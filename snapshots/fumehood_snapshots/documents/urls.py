"""Canonical URLs, so that every spelling of a URL finds its page."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, quote, urlsplit

DEFAULT_PORTS = {"http": 80, "https": 443}

_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def canonical_url(url: str) -> str:
    """Return ``url`` in its canonical form; return an invalid URL unchanged.

    Scheme and host in lower case, no default port, no user, no fragment, at least ``/`` as path,
    and percent-escapes only where they are needed, in upper case (RFC 3986, section 6.2.2). The
    order of the query is kept.
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        return url
    if not parts.scheme or not parts.hostname:
        return url
    scheme = parts.scheme.lower()
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname.rstrip(".")
    netloc = host if port is None or DEFAULT_PORTS.get(scheme) == port else f"{host}:{port}"
    return SplitResult(
        scheme, netloc, _escaped(parts.path) or "/", _escaped(parts.query), ""
    ).geturl()


def _escaped(text: str) -> str:
    """Return ``text`` with the required escapes only."""
    plain = _ESCAPE.sub(_unescaped_if_unreserved, text)
    return quote(plain, safe="!$&'()*+,;=:@/?%-._~", errors="replace")


def _unescaped_if_unreserved(match: re.Match[str]) -> str:
    character = chr(int(match.group(1), 16))
    return character if character in _UNRESERVED else f"%{match.group(1).upper()}"
