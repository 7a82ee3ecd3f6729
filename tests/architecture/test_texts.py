"""No text names the host of a package registry or a folder of a developer."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.architecture.project import ROOT, committed_files

REGISTRIES = re.compile(
    "|".join(
        [
            r"py[p]i\.",
            r"://[^\s\"']*py[p]i",
            r"python[h]osted",
            r"npm[j]s",
            r"yarn[p]kg",
            r"crates\.[i]o",
            r"registry[.-](1|npm|yarn|hub|docker|k8s|gitlab|access)",
            r"(hub|index)\.[d]ocker",
            r"(ghc[r]|gc[r]|qua[y])\.io",
            r"de[b]\.debian\.org",
        ]
    ),
    re.IGNORECASE,
)
"""One letter of each name is in brackets, so that this file does not match."""

PLACES = re.compile(r"(?<![\w.])/(hom[e]|User[s]|wor[k])/\w")
"""Folders of checkouts."""


def _lines() -> Iterator[tuple[str, str]]:
    for path in committed_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            yield f"{path.relative_to(ROOT)}:{number}", line


def test_no_text_names_the_host_of_a_package_registry() -> None:
    assert [where for where, line in _lines() if REGISTRIES.search(line)] == []


def test_no_text_names_a_place_on_a_developers_machine() -> None:
    assert [where for where, line in _lines() if PLACES.search(line)] == []
