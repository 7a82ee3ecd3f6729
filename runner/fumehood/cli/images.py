"""``fumehood images``."""

from __future__ import annotations

import json

import click

from fumehood.cli.output import say
from fumehood.engines.docker.daemon import Daemon
from fumehood.engines.images.agent_python import build_agent_python


@click.group()
def images() -> None:
    """Build the images of boxes."""


@images.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def build(as_json: bool) -> None:
    """Build the image of Python agents, if it is missing.

    `fumehood run` builds the image when it needs it. Without a registry the base image is built
    from Debian packages, which takes about 30 s.

    \b
    Example:
      fumehood images build
    """
    image = build_agent_python(lambda line: say(line, err=True), Daemon())
    if as_json:
        click.echo(json.dumps({"image": str(image)}))
    else:
        say(image)
