"""Fumehood: runs untrusted agents in boxes and judges what they did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fumehood.api.runs import Comparison, Episode, Run, compare, open_run, run, run_async

__all__ = ["Comparison", "Episode", "Run", "compare", "open_run", "run", "run_async"]


def __getattr__(name: str) -> Any:
    # Imported when it is used, because every process of a run imports this package.
    if name not in __all__:
        raise AttributeError(f"module 'fumehood' has no attribute {name!r}")
    from fumehood.api import runs

    return getattr(runs, name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
