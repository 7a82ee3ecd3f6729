"""The user IDs of the confined processes that root starts.

Two processes with the same user may signal and trace each other, share the kernel's quotas, and
open each other's files. All numbers are in this file, so that no two purposes share one.

The ranges lie in the part that systemd leaves unused: above its container ranges, and below the
numbers that some programs treat as negative.
Source: https://systemd.io/UIDS-GIDS/ (1879048192 to 2147352575, "unused").
"""

from __future__ import annotations

SERVICE_UID = 0x7002_0000
"""A service. A program in a workspace takes only users below 65,536, so it cannot use up the
processes that the kernel grants to this user."""
CHECKER_UID = 0x7002_0001
"""A process that runs a third-party checker or simulator."""
EPISODE_UIDS = range(0x7000_0000, 0x7001_0000)
"""Processes of a fork server, such as episodes and scorers: one user each, while it runs."""
BOX_UIDS = range(0x7100_0000, 0x7101_0000)
"""Boxes: one user each, while it runs."""
