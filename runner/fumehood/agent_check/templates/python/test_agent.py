"""The agent comes through whatever a seat may do to it. Run with: pytest."""

import subprocess
from pathlib import Path


def test_it_holds_under_every_condition():
    """In a box of its own for each."""
    subprocess.run(
        ["fumehood", "agent", "check", "agent:Agent"], cwd=Path(__file__).parent, check=True
    )
