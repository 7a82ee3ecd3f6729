"""Episodes with three calls against samples with three calls in Inspect AI's docker sandbox.

The sandbox needs a newer Docker Compose than Debian 12 has. Inspect therefore runs in the Debian 13
root that ``scripts/setup-originals inspect`` makes, and starts containers with this machine's
daemon, from the same image as Fumehood.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from fumehood.core.errors import InfraError
from fumehood.core.task import Case
from fumehood.engines.engine import Engine
from scripts.bench.boxes import CONCURRENCY, loops_of_three_calls
from scripts.bench.measure import Figure, ratio

ROOT = Path(os.environ.get("FUMEHOOD_ORIGINALS", ".originals")) / "root-inspect"
PROGRAM = Path(__file__).with_name("inspect_peer.py")
ROUNDS, EPISODES, SAMPLES = 3, 12, 8
"""Number of rounds, and of episodes per engine and samples in each."""
SAMPLES_MIN = 10.0

# The mounts end with the program. /run is in memory, and contains what Inspect writes.
ENTER = """
root=$1 program=$2
mount --make-rprivate /
mount --bind "$root" "$root"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/run"
touch "$root/run/docker.sock"
mount --bind /run/docker.sock "$root/run/docker.sock"
exec chroot "$root" env --ignore-environment --chdir=/run HOME=/run TMPDIR=/run LANG=C.UTF-8 \
    PATH=/usr/sbin:/usr/bin:/sbin:/bin /srv/inspect/bin/python -c "$program"
"""


def episodes_to_inspect(engines: Mapping[str, Engine], case: Case) -> Iterator[Figure]:
    """Yield the ratio of the episodes per second of each engine to the samples of Inspect.

    The engines and Inspect take turns, so that all have the same load of the machine.

    Args:
        engines: by the names to print.
        case: the task.
    """
    what = f"to samples of Inspect AI's docker sandbox with three calls, {CONCURRENCY} at once"
    if not ROOT.exists() or os.geteuid() != 0:
        yield Figure(f"episodes {what}", "left out: as root, run scripts/setup-originals inspect")
        return
    rates = dict.fromkeys(engines, 0.0)
    theirs = 0.0
    with _inspect() as samples, loops_of_three_calls(engines, case) as loops:
        samples(CONCURRENCY)
        for loop in loops.values():
            loop(CONCURRENCY)
        for _ in range(ROUNDS):
            theirs += samples(SAMPLES) / ROUNDS
            for name, loop in loops.items():
                rates[name] += loop(EPISODES) / ROUNDS
    for name, mine in rates.items():
        detail = f"({mine:.1f} against {theirs:.2f} /s)"
        yield ratio(
            f"episodes on {name} {what}", mine, theirs, SAMPLES_MIN, at_least=True, detail=detail
        )


@contextmanager
def _inspect() -> Iterator[Callable[[int], float]]:
    """Start Inspect; yield a function that plays samples and returns the samples per second."""
    enter = ("unshare", "--mount", "bash", "-euc", ENTER, "-", str(ROOT.absolute()))
    with subprocess.Popen(
        (*enter, PROGRAM.read_text("utf-8")),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        given, answers = process.stdin, process.stdout

        def samples(count: int) -> float:
            with suppress(BrokenPipeError):
                print(count, CONCURRENCY, file=given, flush=True)
            answer = answers.readline()
            if not answer:
                raise InfraError("Inspect AI ended early; its error is above")
            return float(json.loads(answer))

        yield samples
        with suppress(OSError):
            given.close()
