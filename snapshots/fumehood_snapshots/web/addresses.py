"""Resolves host names once and pins the checked addresses.

A second look-up after the check could return another address. The session therefore connects only
to the addresses that were checked.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread

from fumehood_snapshots.errors import FetchFailed, FetchFailure

Resolver = Callable[[str], list[str]]
"""Name → addresses. Raises ``OSError`` if there are none."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_RELAYS_6TO4 = ipaddress.ip_network("192.88.99.0/24")
"""6to4 relays: deprecated by RFC 7526; their traffic may reach a private network."""
_NAT64 = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))

_CLOUD_METADATA = tuple(
    ipaddress.ip_network(network)
    for network in (
        "169.254.0.0/16",  # AWS, Azure, Google, Oracle and others
        "168.63.129.16/32",  # Azure: host of the virtual machine
        "192.0.0.0/24",  # RFC 6890; Oracle's metadata is 192.0.0.192
        "100.100.100.200/32",  # Alibaba
        "fd00:ec2::/32",  # AWS over IPv6
        "fd20:ce::254/128",  # Google over IPv6
        "fd00:42::42/128",  # Scaleway over IPv6
    )
)
"""Services that give credentials of the machine to every program that asks."""


def system_resolver(name: str) -> list[str]:
    """Resolve a name with the machine's resolver."""
    answers = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(answer[4][0]).partition("%")[0] for answer in answers))


def is_public(address: Address) -> bool:
    """Return whether an address is public and embeds no private address."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address.sixtofour is not None or address.teredo is not None:
            return False
        if address.is_site_local or any(address in network for network in _NAT64):
            return False
    if address in _RELAYS_6TO4 or is_cloud_metadata(address):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def is_cloud_metadata(address: Address) -> bool:
    """Return whether a cloud answers on this address with data about its machine."""
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return is_cloud_metadata(address.ipv4_mapped)
    return any(address in network for network in _CLOUD_METADATA)


class PinnedAddresses:
    """Caches the first answer for each name. Thread-safe."""

    def __init__(self, resolve: Resolver) -> None:
        self._resolve = resolve
        self._pinned: dict[str, Future[tuple[str, ...]]] = {}
        """Finished and running look-ups; failures are removed."""
        self._lock = Lock()

    def of(self, host: str, *, may_be_private: bool, wait_max_s: float) -> tuple[str, ...]:
        """Return the addresses of ``host``.

        Args:
            host: a name or an address.
            may_be_private: whether private addresses are allowed.
            wait_max_s: maximum waiting time in seconds.

        Raises:
            FetchFailed: there are none, the look-up takes too long, or an address is not public.
        """
        try:
            addresses = self._looked_up(host).result(wait_max_s)
        except TimeoutError:
            raise FetchFailed(FetchFailure.TIMED_OUT, f"{host} was not resolved in time") from None
        parsed = [ipaddress.ip_address(address) for address in addresses]
        if any(is_cloud_metadata(address) for address in parsed):
            raise FetchFailed(
                FetchFailure.ADDRESS_NOT_PUBLIC, f"{host} has an address of a cloud's metadata"
            )
        if not may_be_private and not all(is_public(address) for address in parsed):
            raise FetchFailed(
                FetchFailure.ADDRESS_NOT_PUBLIC, f"{host} has an address that is not public"
            )
        return addresses

    def _looked_up(self, host: str) -> Future[tuple[str, ...]]:
        with self._lock:
            if host in self._pinned:
                return self._pinned[host]
            answer = self._pinned[host] = Future()
        # The system's resolver has no deadline, so it runs in a thread that can be abandoned.
        Thread(target=self._answer, args=(host, answer), name="look-up", daemon=True).start()
        return answer

    def _answer(self, host: str, answer: Future[tuple[str, ...]]) -> None:
        try:
            answer.set_result(self._look_up(host))
        except Exception as error:
            with self._lock:
                del self._pinned[host]
            # Raised in the thread that waits for the result.
            answer.set_exception(error)

    def _look_up(self, host: str) -> tuple[str, ...]:
        try:
            addresses = tuple(str(ipaddress.ip_address(address)) for address in self._resolve(host))
        except (OSError, ValueError) as error:
            raise FetchFailed(FetchFailure.NAME_NOT_RESOLVED, f"{host} has no address") from error
        if not addresses:
            raise FetchFailed(FetchFailure.NAME_NOT_RESOLVED, f"{host} has no address")
        return addresses
