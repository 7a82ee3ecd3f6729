"""Counts the episodes of a service by the links of a file that all of them share."""

from __future__ import annotations

import os

from attempts import GIVEN, SOCKET, attempt


def links(path: str) -> str:
    count = os.stat(path).st_nlink
    return f"{count} links" if count > 1 else ""


SEAT = os.path.dirname(SOCKET)
for path in (
    GIVEN.get("linked", "/nowhere"),
    os.path.join(SEAT, "bin", "fumehood"),
    SOCKET,
    os.path.join(SEAT, "http.sock"),
    __file__,
):
    attempt(f"the links of {path}", links, path)
