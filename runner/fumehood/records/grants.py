"""What a run granted to model requests, and its monitors, as its manifest records them."""

from __future__ import annotations

from collections.abc import Mapping

from fumehood.core.json_values import Json


def monitors_of(manifest: Mapping[str, Json]) -> tuple[str, ...]:
    """Return the monitors in a ``run.json``, each with its kind; none if the run had none."""
    listed = manifest.get("monitors", [])
    monitors = listed if isinstance(listed, list) else []
    return tuple(
        f"{monitor.get('name')} ({monitor.get('kind')})"
        for monitor in monitors
        if isinstance(monitor, dict)
    )


def model_grants(manifest: Mapping[str, Json]) -> tuple[str, ...]:
    """Return the names in ``models.grants`` of a ``run.json``; none if the run granted nothing."""
    value: Json = dict(manifest)
    for name in ("config", "models", "grants"):
        value = value.get(name) if isinstance(value, dict) else None
    return tuple(map(str, value)) if isinstance(value, list) else ()
