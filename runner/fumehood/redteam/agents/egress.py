"""Connects to this host and the internet by address, over every common protocol."""

from __future__ import annotations

import socket

from attempts import GIVEN, attempt

PORT = int(GIVEN.get("port", "80"))
ADDRESSES = [
    *GIVEN.get("addresses", "127.0.0.1").split(","),
    "192.0.2.1",
    "198.51.100.1",
    "255.255.255.255",
]
ADDRESSES_6 = ["2001:db8::1", "fe80::1", "ff02::1", "::ffff:192.0.2.1"]


def stream(family: int, address: str, port: int) -> str:
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(2)
        s.connect((address, port))
        return "connected"


def datagram(family: int, address: str, port: int) -> str:
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        s.sendto(b"hello", (address, port))
        # A packet to itself does not count: a box may use its own loopback.
        return "" if address.startswith("127.") else "sent"


def multicast() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 4)
        s.sendto(b"hello", ("224.0.0.251", 5353))
        return "sent"


def interfaces() -> str:
    return ",".join(name for _, name in socket.if_nameindex() if name != "lo")


for address in ADDRESSES:
    attempt(f"TCP to {address}", stream, socket.AF_INET, address, PORT)
    attempt(f"UDP to {address}", datagram, socket.AF_INET, address, PORT)
for address in ADDRESSES_6:
    attempt(f"TCP to {address}", stream, socket.AF_INET6, address, PORT)
    attempt(f"UDP to {address}", datagram, socket.AF_INET6, address, PORT)
attempt("multicast", multicast)
attempt("a network device", interfaces)
