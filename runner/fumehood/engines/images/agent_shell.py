"""Builds the image ``agent-shell``: a POSIX shell with coreutils, sed, grep, curl and jq."""

from __future__ import annotations

from collections.abc import Callable

from fumehood.engines.docker.daemon import Daemon
from fumehood.engines.images.debian_packages import PackageImage, build_base

NAME = "fumehood/agent-shell"
"""Repository. ``:latest`` is the tag that Dockerfiles of agents start from."""

_IMAGE = PackageImage(
    repository=NAME,
    packages=("dash", "coreutils", "sed", "grep", "curl", "jq"),
    kept=("bin/", "usr/bin/", "usr/lib/", "lib/", "lib64/", "etc/ld.so.conf.d/"),
    dropped=("usr/lib/dpkg/", "lib/systemd/", "usr/bin/dpkg", "usr/bin/perl"),
    dropped_parts=frozenset({"gconv", "perl5", "perl-base", "krb5", "sasl2", "engines-3"}),
)

REFERENCE = _IMAGE.reference


def build_agent_shell(progress: Callable[[str], None], daemon: Daemon) -> str:
    """Build the image if it does not exist, and return its reference.

    Raises:
        InputError: mmdebstrap is not installed.
        InfraError: the daemon or the package manager fails.
    """
    return build_base(_IMAGE, progress, daemon)
