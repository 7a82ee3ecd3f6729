"""From a host's name to the addresses that may be connected to, looked up once and then pinned.

Checking a name and letting somebody else look it up again is not enough: between the two the answer may
change. So the address that was checked is the address that is connected to, for the whole session.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread

from fumehood_snapshots.errors import FetchFailed, FetchFailure

Resolver = Callable[[str], list[str]]
"""Name → addresses. Raises ``OSError`` when there are none."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_RELAYS_6TO4 = ipaddress.ip_network("192.88.99.0/24")
"""Deprecated by RFC 7526, and led to a private network by whoever still announces them."""
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
        if address.is_site_local or any(address in network for network in _NAT64):
            return False
    if address in _RELAYS_6TO4:
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


class PinnedAddresses:
    """Remembers the first answer for each name; safe to use from several threads."""

    def __init__(self, resolve: Resolver) -> None:
        self._resolve = resolve
        self._pinned: dict[str, Future[tuple[str, ...]]] = {}
        """Names that were looked up, or are being; a look-up that fails is forgotten."""
        self._lock = Lock()

    def of(self, host: str, *, may_be_private: bool, wait_max_s: float) -> tuple[str, ...]:
        """Return the addresses of ``host``.

        Args:
            host: a name or an address.
            may_be_private: whether addresses that are not public are allowed.
            wait_max_s: seconds for which to wait for an answer.

        Raises:
            FetchFailed: there are none, not in time, or one of them is not public.
        """
        try:
            addresses = self._looked_up(host).result(wait_max_s)
        except TimeoutError:
            raise FetchFailed(FetchFailure.TIMED_OUT, f"{host} was not looked up in time") from None
        if not may_be_private and not all(
            is_public(ipaddress.ip_address(each)) for each in addresses
        ):
            raise FetchFailed(
                FetchFailure.ADDRESS_NOT_PUBLIC, f"{host} has an address that is not public"
            )
        return addresses

    def _looked_up(self, host: str) -> Future[tuple[str, ...]]:
        with self._lock:
            if host in self._pinned:
                return self._pinned[host]
            answer = self._pinned[host] = Future()
        # The system's look-up knows no deadline, so it has a thread that can be left behind.
        Thread(target=self._answer, args=(host, answer), name="look-up", daemon=True).start()
        return answer

    def _answer(self, host: str, answer: Future[tuple[str, ...]]) -> None:
        try:
            answer.set_result(self._look_up(host))
        except Exception as error:
            with self._lock:
                del self._pinned[host]
            # Whatever it is, it is raised where somebody waits for it.
            answer.set_exception(error)

    def _look_up(self, host: str) -> tuple[str, ...]:
        try:
            addresses = tuple(str(ipaddress.ip_address(each)) for each in self._resolve(host))
        except (OSError, ValueError) as error:
            raise FetchFailed(FetchFailure.NAME_NOT_RESOLVED, f"{host} has no address") from error
        if not addresses:
            raise FetchFailed(FetchFailure.NAME_NOT_RESOLVED, f"{host} has no address")
        return addresses
