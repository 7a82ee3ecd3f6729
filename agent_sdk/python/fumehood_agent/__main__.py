"""The command ``python3 -m fumehood_agent run AGENT``: one agent, one session, then the end.

Exit status: 0 when the work was ended, 1 when the agent raised (its traceback is on standard error),
2 when the command cannot be carried out as given, 3 when the other side could not be used.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence
from typing import Any

from fumehood_agent.adapter import work
from fumehood_agent.errors import ServiceUnavailable, UsageError
from fumehood_agent.loading import load_agent
from fumehood_agent.session import Session


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    options = _parser().parse_args(argv)
    try:
        run(options.agent, options.calls, options.model)
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    except ServiceUnavailable as error:
        print(error, file=sys.stderr)
        return 3
    return 0


def run(name: str, calls_file: str | None = None, model: str | None = None) -> None:
    """Let the agent called ``name`` do its work.

    Args:
        name: ``builtin:NAME`` or ``module:Class``. An agent has either ``run(session)``, or ``reset()`` and
            ``act(observation)``. One that returns from ``run`` without a word is done with what was
            asked; where the user says more, it is run again.
        calls_file: what the agent is made with, where it needs a list of calls.
        model: that it asks, where it is a scaffold.
    """
    agent = load_agent(name, calls_file, model)
    with Session() as session:
        play(agent, session)


def play(agent: Any, seat: Any) -> None:
    """Let an agent of either kind work at a seat until its work is ended."""
    if hasattr(agent, "run"):
        while not seat.ended:
            task = seat.task
            agent.run(seat)
            if not seat.ended and seat.task is task:
                seat.submit()
    else:
        work(agent, seat)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fumehood_agent", description="Runs one agent in one session."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("run", help="run an agent")
    command.add_argument("agent", metavar="AGENT", help="builtin:NAME or module:Class")
    command.add_argument("--calls", metavar="FILE", help="JSON list of calls to replay")
    command.add_argument("--model", metavar="NAME", help="model that a scaffold asks")
    return parser


if __name__ == "__main__":
    status = main()
    gc.freeze()  # The process ends: looking for garbage once more would cost a tenth of a short run.
    sys.exit(status)
