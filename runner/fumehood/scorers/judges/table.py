"""Every judge there is."""

from __future__ import annotations

from collections.abc import Callable

from fumehood.core.registry import Registry
from fumehood.scorers.judges.judge import Judge

JUDGES: Registry[Callable[[], Judge]] = Registry(
    "judge", {"exact": "fumehood.scorers.judges.exact:Exact"}
)
