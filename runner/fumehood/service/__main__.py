"""``python -m fumehood.service DIRECTORY``: the command that the orchestrator starts."""

import argparse
import json
import os
import socket
import sys
from pathlib import Path

from fumehood.core.episode_spec import monitor_spec_from_json
from fumehood.core.errors import InputError
from fumehood.gateway.settings import GatewaySettings, settings_from_line
from fumehood.monitors.host import MonitorHost
from fumehood.service.message_limits import message_limits
from fumehood.service.serve import HttpSettings, serve

BAD_INPUT = 2
"""Exit status if the user must correct the input."""

parser = argparse.ArgumentParser(prog="fumehood.service")
parser.add_argument("directory", type=Path)
parser.add_argument("--http", action="store_true", help="open an HTTP socket for each seat")
parser.add_argument("--helper", type=Path, help="program to link beside the sockets")
parser.add_argument(
    "--worlds",
    default="",
    help="comma-separated names of the worlds whose libraries are loaded at the start",
)
parser.add_argument(
    "--models", action="store_true", help="read the gateway settings from standard input"
)
parser.add_argument(
    "--ignore-stdin", action="store_true", help="do not stop when standard input ends"
)
parser.add_argument("--limits", default="{}", help="limits of the agents' messages, as JSON")
parser.add_argument(
    "--inline", action="store_true", help="play built-in agents here, open no episode for a box"
)
parser.add_argument(
    "--monitors", action="store_true", help="read the monitors from standard input, first of all"
)
parser.add_argument("--person", type=int, help="descriptor of a socket to a person who monitors")
options = parser.parse_args()


def read_line() -> bytes:
    """Read one line of standard input, and nothing after it."""
    return os.fdopen(os.dup(0), "rb", buffering=0).readline()


def read_models() -> GatewaySettings:
    """Read the settings with the keys."""
    return settings_from_line(read_line())


specs = json.loads(read_line()) if options.monitors else []
person = None if options.person is None else socket.socket(fileno=options.person)
monitors = MonitorHost([monitor_spec_from_json(spec) for spec in specs], person) if specs else None
http = HttpSettings(options.helper, read_models if options.models else None)
try:
    serve(
        options.directory,
        until_stdin_closes=not options.ignore_stdin,
        http=http if options.http else None,
        worlds=[name for name in options.worlds.split(",") if name],
        limits=message_limits(options.limits),
        inline=options.inline,
        monitor_host=monitors,
    )
except InputError as error:
    sys.stderr.write(f"fumehood: {error}\n")
    sys.exit(BAD_INPUT)
