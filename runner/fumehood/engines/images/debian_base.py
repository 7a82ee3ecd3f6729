"""A base with Python for where no registry answers: no shell, no package manager."""

from __future__ import annotations

from fumehood.engines.docker_daemon import Daemon
from fumehood.engines.images.debian_packages import PackageImage, build_of_packages

_BASE = PackageImage(
    repository="fumehood/debian-python",
    # libstdc++6 is what gRPC's library is linked with.
    packages=("python3", "libstdc++6"),
    kept=("usr/bin/python3", "usr/lib/", "lib/", "lib64/", "etc/ld.so.conf.d/"),
    # What serves package managers, and a hook of Debian's for reporting its bugs.
    dropped=(
        "usr/lib/dpkg/",
        "usr/lib/python3/",
        "usr/lib/python3.11/sitecustomize.py",
        "lib/systemd/",
    ),
    # What no agent misses: conversions of old encodings, a tool, its help, other people's plug-ins.
    dropped_parts=frozenset(
        {"gconv", "lib2to3", "pydoc_data", "perl5", "krb5", "sasl2", "engines-3"}
    ),
)

REFERENCE = _BASE.reference


def build_base(daemon: Daemon) -> None:
    """Make the base.

    Raises:
        InputError: mmdebstrap is not installed.
        InfraError: the packages cannot be had.
    """
    build_of_packages(_BASE, daemon)
