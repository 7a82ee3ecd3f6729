"""``make chaos``: kills and breaks runs for some minutes, and prints what was survived.

Exit status 1 where anything was lost, changed, torn or left; an assertion says at once what.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from tests.chaos.arena import arena
from tests.chaos.broken_runs import endure
from tests.chaos.kills import survive_kills

ENGINES = ("process", "bubblewrap")


def main() -> int:
    """Do it and return the exit status."""
    parser = ArgumentParser(prog="make chaos")
    parser.add_argument("--kills", type=int, default=100, help="of orchestrators, over all engines")
    parser.add_argument(
        "--episodes", type=int, default=1000, help="while parts break, with each engine"
    )
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for engine in ENGINES:
        with arena() as corner:
            survival = survive_kills(corner, engine, given.kills // len(ENGINES), given.seed)
        print(f"{engine}: {survival}", flush=True)
    failed = False
    for engine in ENGINES:
        with arena() as corner:
            endurance = endure(corner, engine, given.episodes, given.seed)
        print(endurance, flush=True)
        failed |= bool(
            endurance.lost or endurance.changed or endurance.damage or endurance.leftovers
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
