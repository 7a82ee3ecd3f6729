"""The packages that decide scores or separate the agent, and their tests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Package:
    """Modules of which a share is changed."""

    paths: tuple[str, ...]
    """Folders or files, relative to the checkout."""
    sample: int
    """Mutants of a full measurement."""
    other_tests: tuple[str, ...] = ()
    """Tests that run if no test that is known to execute the changed line notices the change."""


_RUNNER = "runner/fumehood"
_SDK = "agent_sdk/python/fumehood_agent"
_SNAPSHOTS = "snapshots/fumehood_snapshots"

PACKAGES = {
    "core": Package((f"{_RUNNER}/core",), 64, ("tests/unit/core",)),
    "faults": Package((f"{_RUNNER}/layers/faults",), 34, ("tests/unit/faults",)),
    "layers": Package((f"{_RUNNER}/layers",), 26, ("tests/unit/layers",)),
    "records": Package(
        (f"{_RUNNER}/records",), 56, ("tests/unit/records", "tests/episodes/test_merge.py")
    ),
    "scorers": Package((f"{_RUNNER}/scorers",), 50, ("tests/unit/scorers",)),
    "statistics": Package((f"{_RUNNER}/report/statistics",), 30, ("tests/unit/report",)),
    "snapshots": Package(
        tuple(f"{_SNAPSHOTS}/{name}" for name in ("analysis", "index", "library", "snippets.py")),
        40,
        ("tests/unit/snapshots",),
    ),
    "sdk": Package(
        tuple(
            f"{_SDK}/{name}.py"
            for name in ("session", "wire", "errors", "seat", "aio", "address", "work_state")
        ),
        28,
        ("tests/unit/agent_sdk", "tests/conformance/seats"),
    ),
    "service": Package(
        (f"{_RUNNER}/service",),
        42,
        (
            "tests/unit/service",
            "tests/episodes/test_inline.py",
            "tests/episodes/test_turn_taking.py",
        ),
    ),
    "gateway": Package(
        (f"{_RUNNER}/gateway",), 44, ("tests/unit/gateway", "tests/episodes/gateway")
    ),
    "orchestrator": Package(
        (f"{_RUNNER}/orchestrator",),
        56,
        (
            "tests/unit/orchestrator",
            "tests/episodes/test_attempts.py",
            "tests/episodes/test_run_or_resume.py",
            "tests/episodes/test_conversations.py",
        ),
    ),
}
"""Name → package. A file that two packages contain belongs to the first."""
