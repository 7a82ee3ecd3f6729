"""Builds the image ``python-3.13``: Python 3.13 from Debian 13, for agents that need it."""

from __future__ import annotations

from collections.abc import Callable

from fumehood.engines.docker.daemon import Daemon
from fumehood.engines.images.debian_packages import PackageImage, build_base

NAME = "fumehood/python-3.13"
"""Repository. ``:latest`` is the tag that Dockerfiles of agents start from."""

_IMAGE = PackageImage(
    suite="trixie",
    repository=NAME,
    # Wheels are linked with libstdc++6. The links such as /lib64 are in base-files.
    packages=("base-files", "python3", "libstdc++6"),
    kept=("usr/bin/python3", "usr/lib/", "usr/lib64/", "lib", "etc/ld.so.conf.d/"),
    dropped=("usr/lib/dpkg/", "usr/lib/python3/", "usr/lib/systemd/"),
    dropped_parts=frozenset({"gconv", "pydoc_data", "perl5", "krb5", "sasl2", "engines-3"}),
)

REFERENCE = _IMAGE.reference


def build_python_3_13(progress: Callable[[str], None], daemon: Daemon) -> str:
    """Build the image if it does not exist, and return its reference.

    Raises:
        InputError: mmdebstrap is not installed.
        InfraError: the daemon or the package manager fails.
    """
    return build_base(_IMAGE, progress, daemon)
