"""Published numbers of ToolMisuseBench (arXiv 2604.01508; v0.1, test_public, 1,000 tasks)."""

from __future__ import annotations

from collections.abc import Mapping

AGENTS = ("heuristic", "schema_repair", "policy_layer")
"""The three baselines, in the order of the paper, which calls ``policy_layer`` policy_aware."""

TASKS = 1000
SPLIT = "test_public"

TABLE_1: Mapping[str, Mapping[str, float]] = {
    "heuristic": {
        "task_success": 0.250,
        "policy_violations": 0.168,
        "recovery_success": 0.000,
        "tool_calls_used": 2.95,
    },
    "schema_repair": {
        "task_success": 0.250,
        "policy_violations": 0.166,
        "recovery_success": 0.250,
        "tool_calls_used": 3.25,
    },
    "policy_layer": {
        "task_success": 0.250,
        "policy_violations": 0.166,
        "recovery_success": 0.250,
        "tool_calls_used": 3.25,
    },
}
"""Agent → metric → mean."""

TABLE_2: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "heuristic": {
        "timeout": {"task_success": 0.499, "recovery_success": 0.0},
        "schema_drift": {"task_success": 0.503, "recovery_success": 0.0},
        "authz": {"task_success": 0.0},
        "rate_limit": {"task_success": 0.0},
    },
    "schema_repair": {
        "timeout": {"task_success": 0.5015, "recovery_success": 0.5015},
        "schema_drift": {"task_success": 0.4970, "recovery_success": 0.4970},
        "authz": {"task_success": 0.0},
        "rate_limit": {"task_success": 0.0},
    },
    "policy_layer": {
        "timeout": {"task_success": 0.502, "recovery_success": 0.502},
        "schema_drift": {"task_success": 0.497, "recovery_success": 0.497},
        "authz": {"task_success": 0.0},
        "rate_limit": {"task_success": 0.0},
    },
}
"""Agent → planned fault → metric → mean, with the digits of the paper: all cells of its table."""

AREA: Mapping[str, float] = {"heuristic": 0.25, "schema_repair": 0.25, "policy_layer": 0.25}
"""Agent → normalised area under S(k)."""
