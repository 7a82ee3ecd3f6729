"""No two purposes share a user ID."""

from __future__ import annotations

from itertools import combinations

from fumehood.core.user_ids import BOX_UIDS, CHECKER_UID, EPISODE_UIDS, SERVICE_UID
from fumehood.engines.engine import BOX_UID

PURPOSES = {
    "service": {SERVICE_UID},
    "checker": {CHECKER_UID},
    "unprivileged box": {BOX_UID},
    "episodes": set(EPISODE_UIDS),
    "boxes": set(BOX_UIDS),
}


def test_no_user_id_has_two_purposes() -> None:
    for (one, ids), (other, others) in combinations(PURPOSES.items(), 2):
        assert not ids & others, f"{one} and {other} share a user"


def test_a_program_in_a_workspace_cannot_take_the_user_of_another_process() -> None:
    # It may take the users below 65,536, see ``engines.seccomp``.
    assert min(min(ids) for name, ids in PURPOSES.items() if name != "unprivileged box") >= 65_536


def test_every_user_id_is_a_signed_number_of_32_bits() -> None:
    # Docker refuses larger ones.
    assert max(max(ids) for ids in PURPOSES.values()) < 1 << 31
