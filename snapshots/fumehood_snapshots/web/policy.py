"""The policy of live fetching: everything that is not allowed is refused."""

from __future__ import annotations

from urllib.parse import SplitResult

from pydantic import BaseModel, ConfigDict, Field

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
    """Hosts that may have a private address, such as a search engine on this machine. Patterns are
    not allowed."""

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
        host, port = normal_host(parts), parts.port
        default = port is None or port == DEFAULT_PORTS[parts.scheme]
        name = f"[{host}]" if ":" in host else host
        wanted = name if default else f"{name}:{port}"
        if not any(_matches(pattern.lower(), wanted, default) for pattern in self.hosts):
            raise FetchFailed(
                FetchFailure.HOST_NOT_ALLOWED, f"{wanted} is not on the list of allowed hosts"
            )

    def may_be_private(self, host: str) -> bool:
        """Return whether ``host`` may have a private address."""
        return host in (name.lower() for name in self.private_hosts)


def normal_host(parts: SplitResult) -> str:
    """Return the host of a URL in lower case, without a final dot."""
    return (parts.hostname or "").rstrip(".")


def _matches(pattern: str, wanted: str, default_port: bool) -> bool:
    if pattern == "*":
        return default_port
    if pattern.startswith("*."):
        return wanted.endswith(pattern[1:]) and wanted != pattern[1:]
    return wanted == pattern
