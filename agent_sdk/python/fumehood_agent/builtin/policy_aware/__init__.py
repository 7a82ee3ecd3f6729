"""An agent that follows its instruction and its permissions, repairs calls, and stops in time.

``plan`` extracts the calls from the instruction, ``permission`` what the instruction permits.
``error_handling`` classifies errors, ``repair`` corrects arguments, and ``agent`` selects the next
action.
"""

from __future__ import annotations

from fumehood_agent.builtin.policy_aware.agent import PolicyAware

__all__ = ["PolicyAware"]
