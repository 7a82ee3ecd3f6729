"""Builds the image of an agent that is a folder with a Dockerfile."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from docker.utils import tar as make_context

from fumehood.core.errors import InputError
from fumehood.engines.code_digest import NOT_IN_AGENTS, folder_digest, ignored_files
from fumehood.engines.docker.daemon import Daemon
from fumehood.engines.images.agent_node import NAME as AGENT_NODE
from fumehood.engines.images.agent_node import build_agent_node
from fumehood.engines.images.agent_python import NAME as AGENT_PYTHON
from fumehood.engines.images.agent_python import build_agent_python
from fumehood.engines.images.agent_shell import NAME as AGENT_SHELL
from fumehood.engines.images.agent_shell import build_agent_shell
from fumehood.engines.images.build import build
from fumehood.engines.images.dockerfile import WORKSPACE_ARGUMENT, starts_from_workspace
from fumehood.engines.images.python_3_13 import NAME as PYTHON_3_13
from fumehood.engines.images.python_3_13 import build_python_3_13

NAME = "fumehood/agent-folder"
MADE_FROM = "fumehood.made_from"
"""Label of an image with its folder, used to find stale images."""

_BASES: Mapping[str, Callable[[Callable[[str], None], Daemon], str]] = {
    AGENT_NODE: build_agent_node,
    AGENT_PYTHON: build_agent_python,
    AGENT_SHELL: build_agent_shell,
    PYTHON_3_13: build_python_3_13,
}


def build_folder(
    folder: Path, progress: Callable[[str], None], daemon: Daemon, workspace: str = ""
) -> str:
    """Build the image of a folder if it does not exist, and return its reference.

    The tag is a digest of the folder's content without the files that .dockerignore excludes.

    Args:
        folder: with a Dockerfile at its top.
        progress: receives a line when something takes long.
        daemon: to build with.
        workspace: reference of the image of a task, for an agent inside a workspace.

    Raises:
        InputError: there is no Dockerfile, the build fails, or a workspace is missing.
        InfraError: the daemon does not answer.
    """
    dockerfile = folder / "Dockerfile"
    if not dockerfile.is_file():
        raise InputError(f"{folder} has no Dockerfile")
    if starts_from_workspace(folder) and not workspace:
        raise InputError(
            f"{folder} starts from ${WORKSPACE_ARGUMENT}: it runs only in tasks with a workspace, "
            "with --engine docker or oci"
        )
    base = _base(dockerfile.read_text("utf-8"), progress, daemon)
    reference = _reference(folder, base + workspace)
    if daemon.image(reference) is None:
        progress(f"building the image of {folder}")
        with tempfile.TemporaryFile() as context:
            excluded = [*ignored_files(folder), *NOT_IN_AGENTS]
            make_context(folder, exclude=excluded, fileobj=context)
            context.seek(0)
            arguments = {WORKSPACE_ARGUMENT: workspace} if workspace else {}
            build(daemon, context, reference, arguments, labels={MADE_FROM: str(folder)})
    return reference


def _base(dockerfile: str, progress: Callable[[str], None], daemon: Daemon) -> str:
    """Build the current version of the project's image that a Dockerfile starts from, if any."""
    references = (make(progress, daemon) for name, make in _BASES.items() if name in dockerfile)
    return next(references, "")


def references(folder: Path, bases: Iterable[str]) -> frozenset[str]:
    """Return the references that the image of a folder can have now, with each base or another one.

    Empty if the folder is gone.
    """
    try:
        return frozenset(_reference(folder, base) for base in ("", *bases))
    except (OSError, InputError):
        return frozenset()


def _reference(folder: Path, base: str) -> str:
    return f"{NAME}:{folder_digest(folder, base, left_out=NOT_IN_AGENTS)[:16]}"
