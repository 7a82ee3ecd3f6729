"""``fumehood images``."""

from __future__ import annotations

import click

from fumehood.engines.docker.daemon import Daemon
from fumehood.engines.images.agent_python import build_agent_python


@click.group()
def images() -> None:
    """Build the images that boxes are started from."""


@images.command()
def build() -> None:
    """Build the image of the Python agents, unless it is there already.

    `fumehood run` does the same when it needs the image. Without a registry the base is made out of Debian
    packages, which takes about half a minute.
    """
    click.echo(build_agent_python(lambda line: click.echo(line, err=True), Daemon()))
