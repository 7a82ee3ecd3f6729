"""The command ``python3 -m glovebox_agent run AGENT``: one agent, one session, then the end.

Exit status: 0 when the work was ended, 1 when the agent raised (its traceback is on standard error),
2 when the command cannot be carried out as given, 3 when the other side could not be used.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence

from glovebox_agent.adapter import work
from glovebox_agent.errors import ServiceUnavailable, UsageError
from glovebox_agent.loading import load_agent
from glovebox_agent.session import Session


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    options = _parser().parse_args(argv)
    try:
        run(options.agent, options.calls)
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    except ServiceUnavailable as error:
        print(error, file=sys.stderr)
        return 3
    return 0


def run(name: str, calls_file: str | None = None) -> None:
    """Let the agent called ``name`` do its work.

    Args:
        name: ``builtin:NAME`` or ``module:Class``. An agent has either ``run(session)``, or ``reset()`` and
            ``act(observation)``. One that returns from ``run`` without a word is done.
        calls_file: what the agent is made with, where it needs a list of calls.
    """
    agent = load_agent(name, calls_file)
    with Session() as session:
        if hasattr(agent, "run"):
            agent.run(session)
            if not session.ended:
                session.submit()
        else:
            work(agent, session)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="glovebox_agent", description="Runs one agent in one session.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("run", help="run an agent")
    command.add_argument("agent", metavar="AGENT", help="builtin:NAME or module:Class")
    command.add_argument("--calls", metavar="FILE", help="JSON list of calls to replay")
    return parser


if __name__ == "__main__":
    status = main()
    gc.freeze()  # The process ends: looking for garbage once more would cost a tenth of a short run.
    sys.exit(status)
