"""Fixtures for the tests of snapshots."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.snapshots.sites import Site, article, serving


@pytest.fixture
def site() -> Iterator[Site]:
    """Return a web server on this machine with one page."""
    with serving({"/owls": article("owls")}) as running:
        yield running
