"""The line about an agent that crashed quotes what it raised."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable

import pytest

from fumehood.cli.run_summary import _cause


def _raise_error() -> None:
    raise ValueError("no such column")


def _raise_while_handling() -> None:
    try:
        _raise_error()
    except ValueError:
        raise KeyError("second") from None


def _raise_group() -> None:
    raise ExceptionGroup("two failed", [ValueError("a"), KeyError("b")])


@pytest.mark.parametrize(
    ("fails", "cause"),
    [
        (_raise_error, "ValueError: no such column"),
        (_raise_while_handling, "KeyError: 'second'"),
        (_raise_group, "ExceptionGroup: two failed (2 sub-exceptions)"),
        (lambda: asyncio.run(asyncio.wait_for(asyncio.sleep(9), 0)), "TimeoutError"),
    ],
)
def test_the_cause_is_the_last_exception(fails: Callable[[], None], cause: str) -> None:
    try:
        fails()
    except Exception:
        printed = traceback.format_exc()
    later = "RuntimeWarning: Enable tracemalloc to get the object allocation traceback"
    assert _cause(f"starting\n{printed}<sys>:0: {later}") == cause


def test_without_a_traceback_the_cause_is_the_last_line() -> None:
    assert _cause("starting\nno key in API_KEY") == "no key in API_KEY"
