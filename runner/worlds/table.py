"""Every simulator there is."""

from __future__ import annotations

from collections.abc import Callable

from runner.core.json_values import JsonObject
from runner.core.registry import Registry
from runner.core.tools import World

WorldFactory = Callable[[JsonObject], World]
"""Makes a world that takes over its state; raises SpecError for a state it cannot live in."""

WORLDS: Registry[WorldFactory] = Registry(
    "world",
    {
        "crud": "runner.worlds.crud:Crud",
        "files": "runner.worlds.files:Files",
        "retrieval": "runner.worlds.retrieval:Retrieval",
        "scheduling": "runner.worlds.scheduling:Scheduling",
    },
)
