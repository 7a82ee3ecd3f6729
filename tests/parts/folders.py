"""Places for sockets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def short_folder() -> Iterator[str]:
    """Make a folder with a name short enough for sockets, open to a service that gives root up."""
    with TemporaryDirectory(prefix="gb-") as folder:
        Path(folder).chmod(0o711)
        yield folder
