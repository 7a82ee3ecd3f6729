"""An agent that minds the rules: it does what it was asked, mends what it can, and knows when to stop.

``plan`` says what was asked, ``permission`` what the instruction permits, ``trouble`` what an error means,
``mending`` what to send instead, ``agent`` what to do next.
"""

from __future__ import annotations

from fumehood_agent.builtin.policy_aware.agent import PolicyAware

__all__ = ["PolicyAware"]
