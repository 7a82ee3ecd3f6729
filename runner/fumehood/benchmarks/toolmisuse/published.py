"""What is known of the published files (ToolMisuseBench, spec part 10)."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from fumehood.benchmarks.reading import Place, Problem, Unreadable

SHA256_BY_PUBLISHED_PATH = {
    "v0_2_large/dev.jsonl": "a5a2b49b28c66f01bdbac37966c00cca9c6a1027a6d4b5b3a8c1d1d359db27e3",
    "v0_2_large/test_public.jsonl": "12c5e1e93926f4089dfc8d0c60cea53b556057360562375510744858fc6f1161",
}
"""Folder and name as published → hex SHA-256 of the bytes. Of the other files no digest is known."""


def verify_published(path: Path) -> None:
    """Check a file that stands under the name of a published one; others pass.

    Raises:
        Unreadable: its bytes are not the published ones, so results on it could not be compared.
    """
    name = f"{path.resolve().parent.name}/{path.name}"
    published = SHA256_BY_PUBLISHED_PATH.get(name)
    if published is None or not path.is_file():
        return
    found = sha256(path.read_bytes()).hexdigest()
    if found != published:
        raise Unreadable(
            Place(path),
            Problem.NOT_AS_PUBLISHED,
            f"is not the published {name} (SHA-256 {found[:12]}…, published {published[:12]}…); "
            "download it again, or rename its folder if it is meant to be something else",
        )
