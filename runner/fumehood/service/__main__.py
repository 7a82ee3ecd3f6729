"""``python -m fumehood.service DIRECTORY``: what the orchestrator starts."""

import argparse
import os
import sys
from pathlib import Path

from fumehood.core.errors import InputError
from fumehood.gateway.serialization import settings_from_line
from fumehood.service.message_limits import message_limits
from fumehood.service.serve import HttpSettings, serve

BAD_INPUT = 2
"""Exit status when the user has to mend something."""

parser = argparse.ArgumentParser(prog="fumehood.service")
parser.add_argument("directory", type=Path)
parser.add_argument("--http", action="store_true", help="open a second socket a seat")
parser.add_argument("--helper", type=Path, help="program to put beside the sockets")
parser.add_argument(
    "--worlds", default="", help="names of those whose libraries are loaded at once"
)
parser.add_argument(
    "--models", action="store_true", help="read who answers for models from standard input"
)
parser.add_argument("--limits", default="{}", help="of what agents may send, as JSON")
parser.add_argument(
    "--inline", action="store_true", help="play built-in agents here, open no episode for a box"
)
given = parser.parse_args()
models = (
    settings_from_line(os.fdopen(os.dup(0), "rb", buffering=0).readline()) if given.models else None
)
try:
    serve(
        given.directory,
        until_stdin_closes=True,
        http=HttpSettings(given.helper, models) if given.http else None,
        worlds=[name for name in given.worlds.split(",") if name],
        limits=message_limits(given.limits),
        inline=given.inline,
    )
except InputError as error:
    sys.stderr.write(f"fumehood: {error}\n")
    sys.exit(BAD_INPUT)
