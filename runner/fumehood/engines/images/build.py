"""Pulls, imports, builds and tags images with a Docker daemon.

The daemon answers in JSON lines and reports an error as one of them. A deadline limits the time
between two lines.
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
from fumehood.engines.images.sources import builder

PULL_DEADLINE_S = 60.0
BUILD_DEADLINE_S = 900.0

_OUTPUT_CHARS_MAX = 300
BUILT_BY = "fumehood.built_by"
"""Label of every built image: the checkout or the installation that built it."""


def pull(daemon: Daemon, reference: str) -> bool:
    """Pull an image and return whether that succeeded."""
    with daemon.converting_errors("pull an image"):
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
    """Make an image from a root file system.

    Args:
        daemon: to import with.
        archive: tar, positioned at its beginning.
        reference: of the new image.
        settings: Dockerfile lines such as ``ENV PATH=/bin``.

    Raises:
        InfraError: the daemon refuses.
    """
    repository, name = parse_repository_tag(reference)
    label = f"LABEL {BUILT_BY}={json.dumps(builder())}"
    with daemon.converting_errors("import an image"):
        answer = daemon.client.post(
            _address(daemon, "/images/create"),
            params={"fromSrc": "-", "repo": repository, "tag": name, "changes": [*settings, label]},
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
        daemon: to build with.
        context: tar with a Dockerfile at its top, positioned at its beginning.
        reference: of the new image.
        arguments: build arguments of the Dockerfile.
        labels: of the image.
        network: whether build steps may use the daemon's default network.

    Raises:
        InputError: the Dockerfile is wrong, or one of its steps fails; the message has its first
            line.
        InfraError: the daemon does not answer.
    """
    try:
        with daemon.converting_errors("build an image"):
            lines = daemon.client.build(
                fileobj=context,
                custom_context=True,
                tag=reference,
                buildargs=dict(arguments or {}),
                labels={**(labels or {}), BUILT_BY: builder()},
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


def called_latest(daemon: Daemon, reference: str) -> str:
    """Give an image the tag ``latest`` too, which another checkout may have moved; return its
    reference."""
    repository, _ = parse_repository_tag(reference)
    if daemon.image(reference) != daemon.image(f"{repository}:latest"):
        with daemon.converting_errors("tag an image"):
            daemon.client.tag(reference, repository, "latest")
    return reference


def _problem(lines: Iterable[dict[str, Any]]) -> str:
    """Return why a build failed, with the first output line of the failed step; empty on
    success."""
    error = output = ""
    is_running = False
    for line in lines:
        piece = str(line.get("stream", ""))
        if piece.lstrip().startswith(("Step ", "---> Running in")):
            output, is_running = "", "--->" in piece
        elif is_running and len(output) < _OUTPUT_CHARS_MAX:
            output += piece
        error = _one_line(str(line.get("error", ""))) or error
    first = output.strip().partition("\n")[0].strip()
    return f"{error}: {first}" if error and first else error


def _address(daemon: Daemon, path: str) -> str:
    return f"{daemon.client.base_url}/v{daemon.client.api_version}{path}"


def _lines(raw: Iterable[bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in raw if line.strip()]


def _require_success(ok: bool, lines: list[dict[str, Any]], action: str) -> None:
    errors = [str(line["error"]) for line in lines if "error" in line]
    if errors or not ok:
        raise InfraError(f"docker refused to {action}: {_one_line(' '.join(errors) or str(lines))}")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def write_context(folder: Path, context: IO[bytes]) -> None:
    """Write a folder into a reproducible tar and rewind it, so that equal contents give equal
    images."""
    with tarfile.open(fileobj=context, mode="w") as archive:
        for file in sorted(folder.rglob("*")):
            archive.add(
                file, str(file.relative_to(folder)), recursive=False, filter=_without_metadata
            )
    context.seek(0)


def _without_metadata(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry
