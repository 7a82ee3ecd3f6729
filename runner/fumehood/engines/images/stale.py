"""Finds stale images: those whose sources have changed."""

from __future__ import annotations

from pathlib import Path

from fumehood.engines.docker.daemon import Daemon
from fumehood.engines.images import agent_node, agent_python, agent_shell, folder, python_3_13
from fumehood.engines.images.build import BUILT_BY
from fumehood.engines.images.sources import builder


def stale_images(daemon: Daemon) -> list[str]:
    """Return the sorted references of this builder's images that its sources no longer produce.

    The image of an agent's folder has the folder as a label; it is stale if the folder is gone or
    has changed.

    Raises:
        InputError: the sources of the project's images are missing.
        InfraError: the daemon does not answer.
    """
    current = {agent_shell.REFERENCE, agent_node.current_reference(), python_3_13.REFERENCE}
    current |= agent_python.current_references()
    repositories = (agent_python.NAME, agent_shell.NAME, agent_node.NAME, python_3_13.NAME)
    stale = []
    for reference, labels in daemon.images_of((*repositories, folder.NAME)):
        if labels.get(BUILT_BY) != builder():
            continue  # Another checkout, or a user, made it.
        repository, _, tag = reference.partition(":")
        if repository in repositories:
            is_current = tag == "latest" or reference in current
        else:
            made_from = labels.get(folder.MADE_FROM)
            is_current = made_from is not None and reference in folder.references(
                Path(made_from), current
            )
        if not is_current:
            stale.append(reference)
    return sorted(stale)
