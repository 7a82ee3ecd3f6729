"""Word lists for generated native tasks."""

from __future__ import annotations

FAMILIES = (
    "hansen",
    "okafor",
    "silva",
    "tanaka",
    "novak",
    "larsen",
    "moreau",
    "haddad",
    "petrov",
    "ruiz",
    "weber",
    "ito",
)
TIERS = ("basic", "bronze", "silver", "gold", "platinum", "team")
REASONS = ("duplicate", "inactivity", "relocation", "owner_request", "expired")
STATES = ("dormant", "overdue", "disputed", "suspended")
PLACES = (
    "harbour",
    "north lock",
    "east quay",
    "old depot",
    "mill race",
    "ferry dock",
    "signal tower",
)
FOLDERS = ("harbour", "lock", "quay", "depot", "mill", "dock", "tower")
OBJECTS = ("crane", "slipway", "pump house", "footbridge", "gate", "boat shed", "lamp", "winch")
WARES = ("timber", "salt", "cement", "grain", "rope", "coal", "glass", "paper")
NOTES = (
    "fog at dawn",
    "wind SW 4",
    "all quiet",
    "all present",
    "hull washed",
    "ice in the basin",
)
KEYS = ("limit", "depth", "retries", "speed", "quota", "margin")
VERBS = ("sync", "rotate", "purge", "export", "mirror", "tally")
ROLES = ("supervisor", "registrar", "harbour_master", "auditor", "keeper")
