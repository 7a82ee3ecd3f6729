"""Fetches pages: the interface, and the live fetcher that checks every step against a policy."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol
from urllib.parse import SplitResult, urljoin, urlsplit

from fumehood_snapshots.captures.capture import Capture, Headers
from fumehood_snapshots.captures.unpacking import PackingBombError, PackingError, unpack_content
from fumehood_snapshots.documents.urls import canonical_url
from fumehood_snapshots.errors import FetchFailed, FetchFailure
from fumehood_snapshots.web.addresses import PinnedAddresses, Resolver, system_resolver
from fumehood_snapshots.web.policy import FetchPolicy, normal_host
from fumehood_snapshots.web.robots import RobotsRules
from fumehood_snapshots.web.transport import Deadline, exchange

REDIRECTS = frozenset({301, 302, 303, 307, 308})
URL_CHARS_MAX = 4096


class Fetcher(Protocol):
    """Fetches pages, live or from a recording."""

    def fetch(self, url: str) -> Capture:
        """Return the page at ``url`` after redirects, with any HTTP status.

        Raises:
            FetchFailed: the fetch fails.
            Refusal: the recording has no response.
        """
        ...


def utc_now() -> str:
    """Return the time in RFC 3339 with seconds, the precision of WARC 1.0."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class LiveFetcher:
    """Fetches from the network within a policy. Thread-safe."""

    def __init__(
        self,
        policy: FetchPolicy,
        *,
        resolve: Resolver = system_resolver,
        now: Callable[[], str] = utc_now,
        observe: Callable[[Capture], None] = lambda _: None,
    ) -> None:
        """Store the settings without connecting.

        Args:
            policy: allowed hosts and limits.
            resolve: resolves names.
            now: returns the current time.
            observe: receives every response, including redirects and robots.txt.
        """
        self._policy = policy
        self._addresses = PinnedAddresses(resolve)
        self._now = now
        self._observe = observe
        self._robots = RobotsRules(policy.user_agent)

    def fetch(self, url: str) -> Capture:
        """Return the page at ``url`` after redirects; check every step.

        Raises:
            FetchFailed: the policy refuses a step, or a step fails.
        """
        deadline = Deadline.after(self._policy.seconds_max)
        return self._follow(url, deadline, obey_robots=self._policy.obey_robots)

    def _follow(self, url: str, deadline: Deadline, *, obey_robots: bool) -> Capture:
        for _ in range(self._policy.redirects_max + 1):
            url, parts = self._checked(url)
            self._check_addresses(parts, deadline)
            if obey_robots:
                self._robots.check(
                    url, lambda robots: self._follow(robots, deadline, obey_robots=False)
                )
            capture = self._get(url, parts, deadline)
            self._observe(capture)
            target = header(capture.headers, "location")
            if capture.status not in REDIRECTS or not target:
                return capture
            url = _joined(url, target)
        raise FetchFailed(
            FetchFailure.TOO_MANY_REDIRECTS, f"more than {self._policy.redirects_max} redirects"
        )

    def _checked(self, url: str) -> tuple[str, SplitResult]:
        if len(url) > URL_CHARS_MAX:
            raise FetchFailed(
                FetchFailure.BAD_URL, f"the URL is longer than {URL_CHARS_MAX} characters"
            )
        try:
            url.encode("utf-8")
            parts = urlsplit(url.strip())
            self._policy.check(parts)
            url = canonical_url(url)
            parts = urlsplit(url)
            # The canonical form is sent, so the canonical form must be allowed.
            self._policy.check(parts)
        except ValueError as error:
            raise FetchFailed(FetchFailure.BAD_URL, "the URL is invalid") from error
        return url, parts

    def _check_addresses(self, parts: SplitResult, deadline: Deadline) -> tuple[str, ...]:
        may_be_private = self._policy.may_be_private(parts)
        return self._addresses.of(
            normal_host(parts), may_be_private=may_be_private, wait_max_s=deadline.left_s
        )

    def _get(self, url: str, parts: SplitResult, deadline: Deadline) -> Capture:
        bytes_max = self._policy.body_bytes_max
        addresses = self._check_addresses(parts, deadline)
        exchanged = exchange(url, addresses, self._policy.user_agent, deadline, bytes_max)
        encodings = header(exchanged.headers, "content-encoding")
        return Capture(
            uri=url,
            fetched_at=self._now(),
            body=_unpacked(exchanged.body, encodings, bytes_max),
            content_type=header(exchanged.headers, "content-type"),
            status=exchanged.status,
            headers=exchanged.headers,
        )


def header(headers: Headers, name: str) -> str:
    """Return the first value of a header; empty if there is none."""
    return next((value for key, value in headers if key.lower() == name), "")


def _joined(base: str, target: str) -> str:
    try:
        return urljoin(base, target)
    except ValueError as error:
        raise FetchFailed(FetchFailure.BAD_URL, "it redirects to an invalid URL") from error


def _unpacked(body: bytes, encodings: str, bytes_max: int) -> bytes:
    try:
        return unpack_content(body, encodings, bytes_max) if body else body
    except PackingBombError as error:
        raise FetchFailed(FetchFailure.TOO_LARGE, f"the page {error}") from error
    except PackingError as error:
        raise FetchFailed(
            FetchFailure.BROKEN_RESPONSE, "the page has an invalid content encoding"
        ) from error
