"""The words that generated tasks are made of."""

from __future__ import annotations

TIERS = ("basic", "bronze", "silver", "gold", "platinum", "team", "enterprise")
REASONS = (
    "duplicate",
    "churn",
    "fraud_review",
    "merged",
    "inactivity",
    "owner_request",
    "relocation",
)
PLACES = (
    "harbour",
    "lock",
    "quay",
    "depot",
    "mill",
    "archive",
    "ferry",
    "tower",
    "market",
    "signal",
)
THINGS = (
    "tide",
    "wind",
    "crane",
    "cargo",
    "crew",
    "chart",
    "buoy",
    "pump",
    "ballast",
    "rigging",
    "anchor",
)
TOPICS = (
    "boiler pressure",
    "lost cargo",
    "radio outage",
    "fog signal",
    "oil spill",
    "broken hinge",
    "late pilot",
    "worn cable",
    "flooded cellar",
    "power dip",
)
VERBS = ("sync", "rotate", "purge", "export", "index", "report", "mirror", "check")
ENDINGS = ("txt", "md", "log")
