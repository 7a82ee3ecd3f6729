"""Whatever this project may leave on a machine, found by the owner that it carries, and removed.

Containers carry labels; sessions of processes and folders have notes on disk. A leftover is what names an
owner who is gone for certain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from fumehood.core.errors import InfraError, InputError
from fumehood.engines.docker.daemon import Daemon
from fumehood.engines.engine import OwnerCheck
from fumehood.engines.images.stale import old_tags
from fumehood.engines.ownership import OWNER_PID, RUN
from fumehood.engines.records import FolderRecords, SessionRecords, default_folder


class LeftoverKind(Enum):
    """What can be left."""

    CONTAINER = "container"
    PROCESSES = "processes"
    FOLDER = "folder"
    IMAGE = "image"


@dataclass(frozen=True, slots=True)
class Leftover:
    """One thing that nobody needs any more."""

    kind: LeftoverKind
    name: str
    """Id of a container, number of a session's first process, path of a folder, reference of an image."""
    run: str
    """On whose behalf it was; empty for an image."""


def reap_local(is_owned: OwnerCheck) -> int:
    """Remove the processes and folders that lost their owner; asks no daemon.

    Returns:
        How many there were.

    Raises:
        InfraError: notes are kept in a folder that is not this user's alone.
    """
    return SessionRecords(default_folder()).reap(is_owned) + FolderRecords().reap(is_owned)


class Machine:
    """This machine, as far as something of ours may lie on it. To be closed."""

    def __init__(self, is_owned: OwnerCheck) -> None:
        self._is_owned = is_owned
        self._daemon: Daemon | None = None
        self.unasked: str | None = None
        """Why no Docker engine was asked; None when one was."""
        try:
            self._daemon = Daemon()
            self._daemon.info()
        except (InfraError, InputError) as error:
            self._daemon, self.unasked = None, str(error)

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._daemon is not None:
            self._daemon.close()

    def leftovers(self, *, images: bool) -> Iterator[Leftover]:
        """Yield what lost its owner, and with ``images`` the images that nothing would use again.

        Raises:
            InputError: images cannot be judged here.
            InfraError: the daemon does not answer any more.
        """
        for session in SessionRecords(default_folder()).lost(self._is_owned):
            yield Leftover(LeftoverKind.PROCESSES, str(session.leader), session.labels.get(RUN, ""))
        for folder, labels in FolderRecords().lost(self._is_owned):
            yield Leftover(LeftoverKind.FOLDER, str(folder), labels.get(RUN, ""))
        if self._daemon is None:
            return
        for container, labels in self._daemon.containers_with(OWNER_PID):
            if not self._is_owned(labels):
                yield Leftover(LeftoverKind.CONTAINER, container, labels.get(RUN, ""))
        if images:
            for reference in old_tags(self._daemon):
                yield Leftover(LeftoverKind.IMAGE, reference, "")

    def remove(self, found: list[Leftover]) -> list[Leftover]:
        """Remove what was found and return what could not be: images that somebody uses.

        Raises:
            InfraError: the daemon does not answer any more.
        """
        reap_local(self._is_owned)
        kept = []
        for one in found:
            if not self._remove_from_daemon(one):
                kept.append(one)
        return kept

    def _remove_from_daemon(self, one: Leftover) -> bool:
        if self._daemon is None:
            return True
        match one.kind:
            case LeftoverKind.CONTAINER:
                self._daemon.remove(one.name)
            case LeftoverKind.IMAGE:
                return self._daemon.remove_image(one.name)
        return True
