"""``fumehood serve``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.option("--until-stdin-closes", is_flag=True, help="Also stop when standard input ends.")
def serve(directory: Path, until_stdin_closes: bool) -> None:
    """Run a sandbox service: worlds, budgets and faults behind sockets in DIRECTORY.

    `fumehood run` starts as many as --service-workers says by itself; run one by hand to drive it with a
    client of your own over DIRECTORY/control.sock (proto/fumehood/v1/control.proto).
    """
    from fumehood.service.serve import serve as serve_directory

    serve_directory(directory, until_stdin_closes=until_stdin_closes)
