"""Making images with a Docker daemon: pull, import, build, tag.

The daemon reports in JSON lines; an error is one of them. A deadline is the longest silence.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

from docker.errors import APIError
from docker.utils import parse_repository_tag

from fumehood.core.errors import InfraError, InputError
from fumehood.engines.docker.daemon import Daemon

PULL_DEADLINE_S = 60.0
BUILD_DEADLINE_S = 900.0

_SAID_CHARS = 300


def pull(daemon: Daemon, reference: str) -> bool:
    """Fetch an image, and tell whether that was possible."""
    with daemon.asking("pull an image"):
        answer = daemon.client.post(
            _address(daemon, "/images/create"),
            params={"fromImage": reference},
            stream=True,
            timeout=PULL_DEADLINE_S,
        )
        with answer:
            return answer.ok and not any("error" in line for line in _lines(answer.iter_lines()))


def import_image(
    daemon: Daemon, archive: IO[bytes], reference: str, settings: Iterable[str]
) -> None:
    """Make an image of a root file system.

    Args:
        daemon: makes it.
        archive: tar, from its beginning.
        reference: to name it.
        settings: Dockerfile lines such as ``ENV PATH=/bin``.

    Raises:
        InfraError: the daemon refuses.
    """
    repository, name = parse_repository_tag(reference)
    with daemon.asking("import an image"):
        answer = daemon.client.post(
            _address(daemon, "/images/create"),
            params={"fromSrc": "-", "repo": repository, "tag": name, "changes": list(settings)},
            data=archive,
            timeout=BUILD_DEADLINE_S,
        )
        _require_success(answer.ok, _lines(answer.iter_lines()), "import an image")


def build(
    daemon: Daemon,
    context: IO[bytes],
    reference: str,
    arguments: Mapping[str, str] | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    network: bool = True,
) -> None:
    """Build an image.

    Args:
        daemon: builds it.
        context: tar with a Dockerfile at its top, from its beginning.
        reference: to name it.
        arguments: of the Dockerfile.
        labels: of the image.
        network: whether its steps may use the daemon's usual network; a daemon may have none.

    Raises:
        InputError: the Dockerfile is wrong, or one of its steps fails; the message is what that said first.
        InfraError: the daemon does not answer.
    """
    try:
        with daemon.asking("build an image"):
            lines = daemon.client.build(
                fileobj=context,
                custom_context=True,
                tag=reference,
                buildargs=dict(arguments or {}),
                labels=dict(labels or {}),
                network_mode=None if network else "none",
                rm=True,
                forcerm=True,
                decode=True,
                timeout=round(BUILD_DEADLINE_S),
            )
            problem = _problem(lines)
    except InfraError as error:
        if isinstance(error.__cause__, APIError) and error.__cause__.is_client_error():
            raise InputError(
                f"docker build: {_one_line(str(error.__cause__.explanation))}"
            ) from error
        raise
    if problem:
        raise InputError(f"docker build: {problem}")


def tag(daemon: Daemon, reference: str, name: str) -> None:
    """Give an image another name."""
    repository, version = parse_repository_tag(name)
    with daemon.asking("tag an image"):
        daemon.client.tag(reference, repository, version)


def _problem(lines: Iterable[dict[str, Any]]) -> str:
    """Return why a build failed, and the first line of the step that did; nothing where it did not fail."""
    error = said = ""
    is_running = False
    for line in lines:
        piece = str(line.get("stream", ""))
        if piece.lstrip().startswith(("Step ", "---> Running in")):
            said, is_running = "", "--->" in piece
        elif is_running and len(said) < _SAID_CHARS:
            said += piece
        error = _one_line(str(line.get("error", ""))) or error
    first = said.strip().partition("\n")[0].strip()
    return f"{error}: {first}" if error and first else error


def _address(daemon: Daemon, path: str) -> str:
    return f"{daemon.client.base_url}/v{daemon.client.api_version}{path}"


def _lines(raw: Iterable[bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in raw if line.strip()]


def _require_success(ok: bool, lines: list[dict[str, Any]], what: str) -> None:
    errors = [str(line["error"]) for line in lines if "error" in line]
    if errors or not ok:
        raise InfraError(f"docker refused to {what}: {_one_line(' '.join(errors) or str(lines))}")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def write_context(folder: Path, context: IO[bytes]) -> None:
    """Write all that a folder holds into a tar, and go back to its beginning."""
    with tarfile.open(fileobj=context, mode="w") as archive:
        for file in sorted(folder.rglob("*")):
            archive.add(file, str(file.relative_to(folder)), recursive=False, filter=_plain)
    context.seek(0)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry
