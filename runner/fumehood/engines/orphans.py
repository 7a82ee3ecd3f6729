"""Finds and removes resources of this project on this machine whose owner is gone.

Containers carry their owner as labels. Sessions of processes and folders have records on disk.
"""

from __future__ import annotations

from collections.abc import Iterator

from fumehood.core.errors import InfraError, InputError
from fumehood.engines.box_users import BoxUsers
from fumehood.engines.bubblewrap.cgroups import remove_group, remove_unnamed_groups
from fumehood.engines.engine import Engine, Orphan, OrphanKind, OwnerCheck
from fumehood.engines.ownership import RUN
from fumehood.engines.records import FolderRecords, SessionRecords, temporary_records
from fumehood.engines.registry import ENGINES
from fumehood.engines.state_folder import open_folder, temporary_folder


def _folder_records() -> tuple[FolderRecords, ...]:
    if temporary_folder() == open_folder():
        return (FolderRecords(),)
    return FolderRecords(), temporary_records()


def reap_local(is_owned: OwnerCheck) -> int:
    """Remove orphaned processes and folders, without asking any daemon; return their number.

    Raises:
        InfraError: another user can write to the folder of records.
    """
    removed = SessionRecords().reap(is_owned)
    removed += sum(records.reap(is_owned) for records in _folder_records())
    users = BoxUsers()
    users.reap(is_owned, remove_group)
    remove_unnamed_groups(users.reserved)
    return removed


def reap(engine: Engine, is_owned: OwnerCheck) -> int:
    """Remove the orphaned boxes of an engine and return their number.

    Raises:
        InfraError: the engine does not answer.
    """
    orphans = list(engine.orphans(is_owned))
    for orphan in orphans:
        engine.remove(orphan)
    return len(orphans)


class Machine:
    """The orphans of all engines on this machine, and orphaned folders. A context manager."""

    def __init__(self, is_owned: OwnerCheck) -> None:
        self._is_owned = is_owned
        self._engines = {name: create() for name, create in ENGINES.working()}
        self.unreachable: dict[str, str] = {}
        """Engines that did not answer :meth:`orphans`, with the reason."""

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        for engine in self._engines.values():
            engine.close()

    def orphans(self, *, images: bool) -> Iterator[Orphan]:
        """Yield every orphan once; with ``images`` also images whose sources have changed."""
        seen: set[Orphan] = set()
        for name, engine in self._engines.items():
            try:
                fresh = list(engine.orphans(self._is_owned, images=images))
            except (InfraError, InputError) as error:
                self.unreachable[name] = str(error)
                continue
            # Engines that start processes share their records.
            yield from (orphan for orphan in fresh if orphan not in seen)
            seen.update(fresh)
        for records in _folder_records():
            for folder, labels in records.lost(self._is_owned):
                yield Orphan(OrphanKind.FOLDER, str(folder), labels.get(RUN, ""))

    def remove(self, orphans: list[Orphan]) -> list[Orphan]:
        """Remove orphans and return those that were kept: images in use.

        Raises:
            InfraError: an engine does not answer any more.
        """
        reap_local(self._is_owned)
        engines = [e for name, e in self._engines.items() if name not in self.unreachable]
        return [orphan for orphan in orphans if not all(e.remove(orphan) for e in engines)]
