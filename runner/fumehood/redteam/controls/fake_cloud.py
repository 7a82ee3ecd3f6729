"""Starts a cloud metadata service and a name server in a namespace, then executes its arguments.

Runs inside the box, so it only uses the standard library.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import sys

SIOCSIFADDR, SIOCSIFFLAGS, IFF_UP = 0x8916, 0x8914, 1
"""Source: netdevice(7)."""
METADATA, NAMES = "169.254.169.254", "127.0.0.53"


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
        address = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(METADATA))
        fcntl.ioctl(control, SIOCSIFADDR, struct.pack("16s16s", b"lo:1", address))


def _serve() -> None:
    metadata = socket.create_server((METADATA, 80))
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind((NAMES, 53))
    if os.fork() == 0:
        while True:
            question, client = names.recvfrom(512)
            names.sendto(question[:2] + b"\x81\x83" + question[4:], client)
    if os.fork() == 0:
        while True:
            client, _ = metadata.accept()
            client.recv(4096)
            client.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nkeys")
            client.close()


if __name__ == "__main__":
    _raise_loopback()
    _serve()
    os.execvp(sys.argv[1], sys.argv[1:])
