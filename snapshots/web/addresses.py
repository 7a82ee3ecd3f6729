"""From a host's name to the addresses that may be connected to, looked up once and then pinned.

Checking a name and letting somebody else look it up again is not enough: between the two the answer may
change. So the address that was checked is the address that is connected to, for the whole session.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from threading import Lock

from snapshots.errors import FetchFailed, FetchFailure

Resolver = Callable[[str], list[str]]
"""Name → addresses. Raises ``OSError`` when there are none."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))


def system_resolver(name: str) -> list[str]:
    """Look a name up as this machine is configured to."""
    answers = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(answer[4][0]).partition("%")[0] for answer in answers))


def is_public(address: Address) -> bool:
    """Return whether an address is one of the public network and carries no private one inside."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address.sixtofour is not None or address.teredo is not None:
            return False
        if any(address in network for network in _NAT64):
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


class PinnedAddresses:
    """Remembers the first answer for each name; safe to use from several threads."""

    def __init__(self, resolve: Resolver) -> None:
        self._resolve = resolve
        self._pinned: dict[str, tuple[str, ...]] = {}
        self._lock = Lock()

    def of(self, host: str, *, may_be_private: bool) -> tuple[str, ...]:
        """Return the addresses of ``host``.

        Args:
            host: a name or an address.
            may_be_private: whether addresses that are not public are allowed.

        Raises:
            FetchFailed: there are none, or one of them is not public.
        """
        with self._lock:
            if host not in self._pinned:
                self._pinned[host] = self._look_up(host)
            addresses = self._pinned[host]
        if not may_be_private and not all(is_public(ipaddress.ip_address(each)) for each in addresses):
            raise FetchFailed(FetchFailure.ADDRESS_NOT_PUBLIC, f"{host} has an address that is not public")
        return addresses

    def _look_up(self, host: str) -> tuple[str, ...]:
        try:
            addresses = tuple(str(ipaddress.ip_address(each)) for each in self._resolve(host))
        except (OSError, ValueError) as error:
            raise FetchFailed(FetchFailure.NAME_NOT_RESOLVED, f"{host} has no address") from error
        if not addresses:
            raise FetchFailed(FetchFailure.NAME_NOT_RESOLVED, f"{host} has no address")
        return addresses
