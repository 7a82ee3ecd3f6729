"""Images of ours that nothing would be started from any more: their inputs have changed since."""

from __future__ import annotations

from pathlib import Path

from fumehood.engines.docker.daemon import Daemon
from fumehood.engines.images import agent_node, agent_python, agent_shell, folder


def old_tags(daemon: Daemon) -> list[str]:
    """Return the references of images that today's inputs would not be given again, in order.

    An image of an agent's folder knows from which one it was made; where that is gone, so is its use.

    Raises:
        InputError: what an image is made of is not here, so that no image can be judged.
        InfraError: the daemon does not answer.
    """
    current = agent_python.current_references() | {
        agent_shell.REFERENCE,
        agent_node.current_reference(),
    }
    ours = (agent_python.NAME, agent_shell.NAME, agent_node.NAME)
    old = []
    for reference, labels in daemon.images_of((*ours, folder.NAME)):
        repository, _, tag = reference.partition(":")
        if repository in ours:
            is_current = tag == "latest" or reference in current
        else:
            made_from = labels.get(folder.MADE_FROM)
            is_current = made_from is not None and reference in folder.references(
                Path(made_from), current
            )
        if not is_current:
            old.append(reference)
    return sorted(old)
