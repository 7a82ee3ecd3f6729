"""Checks the settings of an image that can keep a box from starting.

Only the user can correct such an image, so it is an input error and not a failure of the
infrastructure.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from docker.errors import APIError

from fumehood.core.errors import InfraError, InputError
from fumehood.engines.docker.daemon import Daemon
from fumehood.engines.engine import AGENT_FOLDER, BOX_SOCKET_DIR

_RESERVED = ("/proc", "/sys", "/dev", BOX_SOCKET_DIR)
"""Folders that the engine makes in every box."""
_TMP = "/tmp"
_VOLUMES_MAX = 64
"""Each volume is a mount, and a runtime needs minutes for thousands."""
_WORD_BYTES_MAX = 128 * 1024 - 1
"""Of one argument. Source: execve(2), MAX_ARG_STRLEN."""
_COMMAND_BYTES_MAX = 1 << 20
"""Of all arguments; a box adds its own, and the environment. Source: execve(2)."""


def require_startable(reference: str, command: Sequence[str]) -> None:
    """Check that a box can start the command of an image, its ENTRYPOINT and CMD.

    Raises:
        InputError: there is no command, or the kernel would refuse it.
    """
    if not command or not command[0]:
        raise InputError(f"the image {reference!r} has no command; give it a CMD or an ENTRYPOINT")
    sizes = [len(word.encode("utf-8", "surrogatepass")) for word in command]
    if max(sizes) > _WORD_BYTES_MAX or sum(sizes) > _COMMAND_BYTES_MAX or "\0" in "".join(command):
        raise InputError(
            f"the image {reference!r} cannot start: its ENTRYPOINT and CMD have {sum(sizes)} bytes "
            f"and an argument of {max(sizes)}, of at most {_COMMAND_BYTES_MAX} and "
            f"{_WORD_BYTES_MAX} without zero bytes; shorten them"
        )


def scratch_folders(reference: str, volumes: Iterable[str]) -> tuple[str, ...]:
    """Return the normalised paths of an image's volumes, sorted, without /tmp.

    Raises:
        InputError: a volume would hide a folder that the engine makes, or there are too many.
    """
    paths = {volume: normalised(volume) for volume in volumes}
    if len(paths) > _VOLUMES_MAX:
        raise InputError(
            f"the image {reference!r} has {len(paths)} volumes, of at most {_VOLUMES_MAX}; remove "
            "some from the Dockerfile"
        )
    for volume, path in paths.items():
        if path == "/" or is_reserved(path) or f"{path}/".startswith(f"{AGENT_FOLDER}/"):
            raise InputError(
                f"the image {reference!r} cannot start: VOLUME {volume!r} hides {path}, which "
                "every box needs; remove it from the Dockerfile"
            )
    return tuple(sorted({path for path in paths.values() if path != _TMP}))


_FOLDER = 1 << 31
"""os.ModeDir of Go, in which the daemon is written."""


def resolved_working_dir(
    daemon: Daemon, container: str, reference: str, setting: str, *, may_be_missing: bool = False
) -> str:
    """Return the working folder of an image, with all links resolved.

    A link below /proc/self/fd can lead to a folder of the host that the runtime has open while it
    starts a container (CVE-2024-21626), so links are resolved before a container starts.

    Args:
        daemon: of the image.
        container: made from the image, not started.
        reference: of the image.
        setting: the image's WORKDIR; empty for none.
        may_be_missing: whether the box makes a missing folder.

    Raises:
        InputError: the folder does not exist, or is one that the engine makes.
    """
    path, left = "/", [part for part in normalised(setting).split("/") if part]
    while left:
        path = posixpath.join(path, left.pop(0))
        status = None if is_reserved(path) else daemon.path_status(container, path)
        if status is None:
            break
        path = normalised(status.get("linkTarget") or path)
    else:
        status = None if is_reserved(path) else daemon.path_status(container, path)
        if status is not None and status["mode"] & _FOLDER:
            return path
    if may_be_missing and status is None and not is_reserved(path):
        return normalised(posixpath.join(path, *left))
    raise InputError(
        f"the image {reference!r} cannot start: WORKDIR {setting!r} leads to {path}, which is no "
        "folder of the image; name one of its folders in the Dockerfile"
    )


@contextmanager
def failures_of_image(reference: str) -> Iterator[None]:
    """Convert a refusal of the daemon into an error of the image.

    Raises:
        InputError: the daemon refused.
        InfraError: the daemon does not answer.
    """
    try:
        yield
    except InfraError as error:
        if not isinstance(error.__cause__, APIError):
            raise
        reason = " ".join(str(error).split())
        raise InputError(
            f"the image {reference!r} cannot start; correct its Dockerfile: {reason}"
        ) from error


def normalised(path: str) -> str:
    """Return an absolute path without ``.``, ``..`` and doubled slashes."""
    return posixpath.normpath(f"/{path.lstrip('/')}")


def is_reserved(path: str) -> bool:
    """Return whether a normalised path is in a folder that the engine makes."""
    return any(path == reserved or path.startswith(f"{reserved}/") for reserved in _RESERVED)
