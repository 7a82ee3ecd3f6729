"""Runs the agent on all robustness cases. Run with: pytest."""

import subprocess
from pathlib import Path


def test_the_agent_passes_all_robustness_cases():
    """Each case runs in a separate box."""
    subprocess.run(
        ["fumehood", "agent", "check", "agent:Agent"], cwd=Path(__file__).parent, check=True
    )
