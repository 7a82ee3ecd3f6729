"""The policy of live fetching: everything that is not allowed is refused."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import SplitResult

from pydantic import BaseModel, ConfigDict, Field, field_validator

from fumehood_snapshots.documents.urls import DEFAULT_PORTS
from fumehood_snapshots.errors import FetchFailed, FetchFailure

USER_AGENT = "fumehood-snapshots"


class FetchPolicy(BaseModel):
    """Limits of live fetching."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hosts: tuple[str, ...]
    """Allowed hosts: ``example.org``, ``*.example.org`` for its subdomains, ``example.org:8080``
    for another port, ``*`` for every public host."""
    seconds_max: float = Field(default=20, gt=0, le=600)
    """For one page, from the first look-up to the last byte, including redirects and robots.txt."""
    body_bytes_max: int = Field(default=5_000_000, ge=1)
    """Maximum size of a page, before and after unpacking."""
    redirects_max: int = Field(default=5, ge=0, le=20)
    obey_robots: bool = True
    user_agent: str = USER_AGENT
    private_hosts: tuple[str, ...] = ()
    """Hosts that may have a private address, such as a search engine on this machine. The syntax is
    that of ``hosts``, without ``*``."""

    @field_validator("private_hosts")
    @classmethod
    def _are_named(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        if "*" in patterns:
            raise ValueError("list each private host; * would allow the whole local network")
        return patterns

    def check(self, parts: SplitResult) -> None:
        """Refuse a URL that is not allowed.

        Raises:
            FetchFailed: states the reason.
        """
        if parts.scheme not in DEFAULT_PORTS:
            raise FetchFailed(FetchFailure.BAD_URL, "only http and https can be fetched")
        if parts.username is not None or parts.password is not None:
            raise FetchFailed(
                FetchFailure.BAD_URL, "a URL with a user or a password is not fetched"
            )
        if not _matches_any(self.hosts, parts):
            raise FetchFailed(
                FetchFailure.HOST_NOT_ALLOWED,
                f"{_host_and_port(parts)} is not on the list of allowed hosts",
            )

    def may_be_private(self, parts: SplitResult) -> bool:
        """Return whether the host of a URL may have a private address."""
        return _matches_any(self.private_hosts, parts)


def normal_host(parts: SplitResult) -> str:
    """Return the host of a URL in lower case, without a final dot."""
    return (parts.hostname or "").rstrip(".")


def _host_and_port(parts: SplitResult) -> str:
    """Return ``host``, or ``host:port`` if the port is not the default of the scheme."""
    host = normal_host(parts)
    name = f"[{host}]" if ":" in host else host
    return name if parts.port in {None, DEFAULT_PORTS[parts.scheme]} else f"{name}:{parts.port}"


def _matches_any(patterns: Iterable[str], parts: SplitResult) -> bool:
    wanted = _host_and_port(parts)
    return any(_matches(pattern.lower(), wanted, parts) for pattern in patterns)


def _matches(pattern: str, wanted: str, parts: SplitResult) -> bool:
    if pattern == "*":
        return parts.port in {None, DEFAULT_PORTS[parts.scheme]}
    if pattern.startswith("*."):
        return wanted.endswith(pattern[1:]) and wanted != pattern[1:]
    return wanted == pattern
