"""The command ``python3 -m fumehood_agent run AGENT``: runs one agent in one session.

Exit status: 0 if the work has ended, 1 if the agent raised an exception (its traceback is on
standard error), 2 if the command line is invalid, 3 if the service cannot be used.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from fumehood_agent.adapter import is_coroutine_function, work
from fumehood_agent.errors import ServiceUnavailable, UsageError
from fumehood_agent.loading import load_agent
from fumehood_agent.session import Session


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    options = _parser().parse_args(argv)
    try:
        run(
            options.agent,
            options.calls,
            options.model,
            _arguments(options.arguments),
            options.model_settings,
        )
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    except ServiceUnavailable as error:
        print(error, file=sys.stderr)
        return 3
    return 0


def run(
    name: str,
    calls_file: str | None = None,
    model: str | None = None,
    arguments: Mapping[str, Any] = {},
    model_settings: str = "{}",
) -> None:
    """Run the agent ``name`` in one session.

    Args:
        name: ``builtin:NAME`` or ``module:Class``. An agent has either ``run(session)``, or
            ``reset()`` and ``act(observation)``. A coroutine function ``run`` gets the session for
            asyncio. If ``run`` returns without a submission, an empty
            answer is submitted; if the user replies, ``run`` is called again.
        calls_file: JSON file with the calls, for an agent that replays calls.
        model: for scaffolds.
        arguments: keyword arguments of the class.
        model_settings: JSON object with the settings of the model that are not defaults.
    """
    agent = load_agent(name, calls_file, model, arguments, model_settings)
    if is_coroutine_function(getattr(agent, "run", None)):
        import asyncio

        from fumehood_agent import aio  # It imports asyncio, which other agents do not need.

        asyncio.run(aio.play(agent))
        return
    with Session() as session:
        play(agent, session)


def play(agent: Any, seat: Any) -> None:
    """Run an agent of either kind at a seat until its work ends."""
    if hasattr(agent, "run"):
        while not seat.ended:
            task = seat.task
            returned = agent.run(seat)
            if returned is not None and _is_awaitable(returned):
                raise UsageError("run() returned a coroutine: define it with `async def run`")
            if not seat.ended and seat.task is task:
                seat.submit()
    else:
        work(agent, seat)


def _is_awaitable(returned: object) -> bool:
    from inspect import isawaitable  # Few agents need it, and its import takes time.

    return isawaitable(returned)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fumehood_agent", description="Runs one agent in one session."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("run", help="run an agent")
    command.add_argument("agent", metavar="AGENT", help="builtin:NAME or module:Class")
    command.add_argument("--calls", metavar="FILE", help="JSON list of calls to replay")
    command.add_argument("--model", metavar="NAME", help="model for a scaffold")
    command.add_argument("--arguments", metavar="JSON", help="keyword arguments of module:Class")
    command.add_argument("--model-settings", metavar="JSON", default="{}", help="its settings")
    return parser


def _arguments(text: str | None) -> Mapping[str, Any]:
    try:
        arguments = {} if text is None else json.loads(text)
    except ValueError as error:
        raise UsageError(f"--arguments: {error}") from error
    if not isinstance(arguments, dict):
        raise UsageError("--arguments: must be a JSON object")
    return arguments


if __name__ == "__main__":
    status = main()
    gc.freeze()  # The process ends: a last garbage collection would take a tenth of a short run.
    sys.exit(status)
