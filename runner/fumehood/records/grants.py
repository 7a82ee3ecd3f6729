"""What a run granted to model requests, as its manifest records it."""

from __future__ import annotations

from collections.abc import Mapping

from fumehood.core.json_values import Json


def model_grants(manifest: Mapping[str, Json]) -> tuple[str, ...]:
    """Return the names in ``models.grants`` of a ``run.json``; none if the run granted nothing."""
    value: Json = dict(manifest)
    for name in ("config", "models", "grants"):
        value = value.get(name) if isinstance(value, dict) else None
    return tuple(map(str, value)) if isinstance(value, list) else ()
