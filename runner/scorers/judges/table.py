"""Every judge there is."""

from __future__ import annotations

from collections.abc import Callable

from runner.core.registry import Registry
from runner.scorers.judges.judge import Judge

JUDGES: Registry[Callable[[], Judge]] = Registry("judge", {"exact": "runner.scorers.judges.exact:Exact"})
