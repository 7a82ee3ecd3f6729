"""Before a run goes on: is what is there what was sealed, and what did a power cut spoil?

Nothing is signed upon what somebody changed. What is run again for what is missing gets a row of its own
first, so that the seals tell of it for good.
"""

from __future__ import annotations

from dataclasses import replace

from fumehood.core.errors import InputError
from fumehood.core.outcome import Infra, InfraKind
from fumehood.core.score import UNGRADED
from fumehood.records.episode_name import EpisodeName
from fumehood.records.row import EpisodeRow
from fumehood.records.run_folder import RunFolder
from fumehood.records.signer import Signing
from fumehood.records.verify import verify

SPOILED = Infra(
    InfraKind.ORCHESTRATOR, "its trace or output was torn or missing, and it was run again"
)


def take_up(folder: RunFolder, signing: Signing) -> int:
    """Make a run folder ready for what is still to be run.

    Args:
        folder: of a run that may be over; this process alone writes it.
        signing: who goes on signing it, where it is a signed one.

    Returns:
        How many finished episodes are to be run again, because a crash tore what belongs to them.

    Raises:
        InputError: somebody else signed it, or something of it is not as it was sealed.
    """
    folder.sign_with(signing)
    spoiled = _spoiled(folder, signing.key.public) if "signing_key" in folder.manifest() else set()
    folder.drop_torn_row()
    whole = {row.name for row in folder.finished_rows()} - spoiled
    again = [
        _as_spoiled(row) for row in folder.rows() if not row.is_infra and row.name not in whole
    ]
    if any(row.is_infra for row in folder.rows()):
        folder.reopen()
    if again:
        folder.append_rows(again)
    return len(again)


def _spoiled(folder: RunFolder, key: str) -> set[EpisodeName]:
    damage = verify(folder.path, key).damage
    for one in damage:
        if not one.is_of_crash:
            raise InputError(
                f"{one}; nothing was run or signed; see: fumehood verify {folder.path}"
            )
    return {one.episode for one in damage if one.episode is not None}


def _as_spoiled(row: EpisodeRow) -> EpisodeRow:
    counts_nowhere = replace(row, outcome=SPOILED, score=UNGRADED)
    return replace(counts_nowhere, trace="", trace_digest="", stdout_bytes=0, stderr_bytes=0)
