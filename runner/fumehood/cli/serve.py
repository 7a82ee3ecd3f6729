"""``fumehood serve``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.option("--until-stdin-closes", is_flag=True, help="Also stop when standard input ends.")
def serve(directory: Path, until_stdin_closes: bool) -> None:
    """Run one service process with sockets in DIRECTORY.

    `fumehood run` starts its services itself. Use this command to test a client of the control API
    (proto/fumehood/v1/control.proto) over DIRECTORY/control.sock.

    \b
    Example:
      fumehood serve /tmp/service
    """
    from fumehood.orchestrator.service_pool import service_command, service_environment

    # A new program: the service passes its memory and variables on to the processes that it forks.
    options = () if until_stdin_closes else ("--ignore-stdin",)
    os.execve(sys.executable, service_command(directory, options), service_environment())
