"""Every scorer there is."""

from __future__ import annotations

from collections.abc import Callable

from runner.core.registry import Registry
from runner.scorers.scorer import Scorer

SCORERS: Registry[Callable[[], Scorer]] = Registry(
    "scorer",
    {
        "native": "runner.scorers.native:NativeScorer",
        "toolmisuse": "runner.scorers.toolmisuse:ToolMisuseScorer",
    },
)
