"""Images that were made from folders of a test."""

from __future__ import annotations

from pathlib import Path

from fumehood.engines.docker.daemon import Daemon
from fumehood.engines.images import folder


def remove_images_from(below: Path) -> None:
    """Remove the images of all folders in a folder, and of itself."""
    daemon = Daemon()
    for reference, labels in daemon.images_of((folder.NAME,)):
        if labels.get(folder.MADE_FROM, "").startswith(str(below)):
            # A container of a box that was just removed may still be listed.
            daemon.client.remove_image(reference, force=True)
    daemon.close()
