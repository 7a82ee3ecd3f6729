"""Applies a site's robots.txt (RFC 9309), parsed by ``protego``."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from urllib.parse import SplitResult, urlsplit

from fumehood_snapshots.captures.capture import Capture
from fumehood_snapshots.errors import FetchFailed, FetchFailure

ROBOTS_BYTES_MAX = 512 * 1024
"""RFC 9309, section 2.5: at least 500 KiB."""


class RobotsRules:
    """Fetches the rules of each site once and caches them."""

    def __init__(self, user_agent: str) -> None:
        """Store the user agent."""
        self._user_agent = user_agent
        self._rules: dict[str, str | None] = {}
        self._lock = Lock()

    def check(self, url: str, fetch: Callable[[str], Capture]) -> None:
        """Refuse a URL that the rules of its site disallow; ``fetch`` reads robots.txt.

        Raises:
            FetchFailed: the rules disallow it, or are unreachable (section 2.3.1.4: then nothing is
                allowed).
        """
        from protego import Protego

        site = _site(urlsplit(url))
        with self._lock:
            known, rules = site in self._rules, self._rules.get(site)
        if not known:
            # Outside the lock, so a slow site does not block others.
            rules = _read(site, fetch)
            with self._lock:
                rules = self._rules.setdefault(site, rules)
        if rules is None:
            raise FetchFailed(
                FetchFailure.ROBOTS_DISALLOWED, f"the robots.txt of {site} is unreachable"
            )
        if not Protego.parse(rules).can_fetch(url, self._user_agent):
            raise FetchFailed(
                FetchFailure.ROBOTS_DISALLOWED, f"the robots.txt of {site} disallows it"
            )


def _read(site: str, fetch: Callable[[str], Capture]) -> str | None:
    """Return a site's rules, empty for none, or None if they are unreachable."""
    try:
        capture = fetch(f"{site}/robots.txt")
    except FetchFailed:
        return None
    status = capture.status or 0
    if 200 <= status < 300:
        return capture.body[:ROBOTS_BYTES_MAX].decode("utf-8", "replace")
    # Section 2.3.1.3: a site without rules allows everything; an unavailable one allows nothing.
    return "" if 400 <= status < 500 else None


def _site(parts: SplitResult) -> str:
    return f"{parts.scheme}://{parts.netloc}"
