"""``make chaos``: kills and breaks runs for some minutes, and prints the results.

Exit status 1 if anything was lost, changed, torn or left over.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from fumehood.core.errors import InputError
from fumehood.engines.registry import choose_engine
from tests.chaos.broken_runs import run_with_breakages
from tests.chaos.host_failures import failures, run_with_failure
from tests.chaos.kills import run_with_kills
from tests.chaos.workspace import workspace
from tests.chaos.workspace_kills import run_workspaces_with_kills

ENGINES = ("process", "bubblewrap")


def main() -> int:
    """Run the command and return the exit status."""
    parser = ArgumentParser(prog="make chaos")
    parser.add_argument("--kills", type=int, default=100, help="of orchestrators, over all engines")
    parser.add_argument(
        "--episodes", type=int, default=1000, help="while parts break, with each engine"
    )
    parser.add_argument("--host-failures", type=int, default=10, help="seeds of each kind")
    parser.add_argument("--workspace-kills", type=int, default=100, help="of parts of workspaces")
    parser.add_argument("--only-workspaces", action="store_true", help="kill nothing else")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    failed = not _workspaces_survive(options.workspace_kills, options.seed)
    if options.only_workspaces:
        return int(failed)
    for engine in ENGINES:
        with workspace() as space:
            result = run_with_kills(space, engine, options.kills // len(ENGINES), options.seed)
        print(f"{engine}: {result}", flush=True)
    failed |= not _survives_the_host(options.host_failures, options.seed)
    for engine in ENGINES:
        with workspace() as space:
            broken = run_with_breakages(space, engine, options.episodes, options.seed)
        print(broken, flush=True)
        failed |= bool(broken.lost or broken.changed or broken.damage or broken.orphans)
    return int(failed)


def _workspaces_survive(kills: int, seed: int) -> bool:
    """Kill parts of workspaces on docker, print the results, and return whether all are right."""
    try:
        choose_engine("docker").engine.close()
    except InputError as error:
        print(f"workspaces: left out: {error}", flush=True)
        return True
    with workspace() as space:
        result = run_workspaces_with_kills(space, kills, seed, per_run=12)
    print(result, flush=True)
    return not (result.wrong or result.left)


def _survives_the_host(seeds: int, first_seed: int) -> bool:
    """Run with each failure of the host, print the results, and return whether all are right."""
    all_right = True
    for failure in failures():
        wrong = []
        for seed in range(first_seed, first_seed + seeds):
            try:
                run_with_failure(failure, seed)
            except AssertionError as error:
                wrong.append(f"seed {seed}: {error}")
        print(
            f"{failure.__name__}: {seeds} runs, {len(wrong)} wrong", *wrong, sep="\n  ", flush=True
        )
        all_right = all_right and not wrong
    return all_right


if __name__ == "__main__":
    sys.exit(main())
