"""One form for the many ways to write a URL, so that a page is found however it is asked for."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, quote, urlsplit

DEFAULT_PORTS = {"http": 80, "https": 443}

_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def canonical_url(url: str) -> str:
    """Return ``url`` in its canonical form; one that cannot be understood comes back as it is.

    Scheme and host in lower case, no default port, no user, no fragment, at least ``/`` as path, and
    percent-escapes only where they are needed, in upper case (RFC 3986, section 6.2.2). The query is left in
    its order, which may matter.
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
    """Return ``text`` with every needed escape and no other."""
    plain = _ESCAPE.sub(_unescaped_if_unreserved, text)
    return quote(plain, safe="!$&'()*+,;=:@/?%-._~", errors="replace")


def _unescaped_if_unreserved(match: re.Match[str]) -> str:
    character = chr(int(match.group(1), 16))
    return character if character in _UNRESERVED else f"%{match.group(1).upper()}"
