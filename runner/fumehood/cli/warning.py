"""Says loudly that what a command is about to tell was changed since it was sealed."""

from __future__ import annotations

import click

from fumehood.records.run_folder import RunFolder
from fumehood.records.seals import SEAL
from fumehood.records.verify import verify
from fumehood.report.safe_text import safe


def warn_of_damage(folder: RunFolder) -> None:
    """Write one line to standard error where plan or rows of a signed run are not as they were sealed.

    Traces are left to whoever reads them: hashing all of them for a look at one would take long.
    """
    if "signing_key" not in folder.manifest() and not (folder.path / SEAL).exists():
        return
    damage = [one for one in verify(folder.path, with_files=False).damage if not one.is_of_crash]
    if damage:
        more = f", and {len(damage) - 1} more" if len(damage) > 1 else ""
        line = f"fumehood: DO NOT TRUST THIS: {damage[0]}{more}; see: fumehood verify {folder.path}"
        click.echo(safe(" ".join(line.split())), err=True)
