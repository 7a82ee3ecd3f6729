"""``make mutants``: changes single tokens and reports the changes that no test notices.

It works on copies of the checkout in ``.cache/mutants``. An interrupted measurement continues where
it stopped. A killed mutant counts as killed while its file does not change; a survivor is tried
again after any change. Exit status 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue
from random import Random
from threading import Lock

from scripts.mutants.covering_tests import CoveringTests, environment
from scripts.mutants.mutations import Mutation, mutations
from scripts.mutants.packages import PACKAGES

CHECKOUT = Path(__file__).parents[2]
ACCEPTED = Path(__file__).with_name("accepted.json")
"""Survivors that change nothing, each with the reason."""
CONTROLS = 2
"""Mutants per package without a change. No test may fail for them."""
GOAL, GOAL_PER_PACKAGE = 0.90, 0.80
KILLED, SURVIVED, ACCEPTED_RESULT, TIMED_OUT = "killed", "survived", "accepted", "timed out"


def main() -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(prog="make mutants")
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=", ".join(PACKAGES))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, help="mutants per package; default: 470 in all")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time")
    parser.add_argument("--folder", type=Path, default=CHECKOUT / ".cache" / "mutants")
    options = parser.parse_args()
    copies = [_Copy(options.folder / f"tree{number}") for number in range(options.jobs)]
    tests = CoveringTests.measured(copies[0].tree, options.folder / "tests")
    report: dict[str, dict[str, object]] = {}
    for name in options.packages or PACKAGES:
        sample = _sample(name, options.sample or PACKAGES[name].sample, options.seed)
        results = _try_all(name, sample, tests, copies, options.folder / f"{name}.jsonl")
        report[name] = _summary(results)
        print(f"{name}: {report[name]['killed']} of {report[name]['mutants']} killed", flush=True)
    for copy in copies:
        copy.close()
    (options.folder / "mutants.json").write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    return _print(report)


def _digest() -> str:
    """Return a digest of all files of the checkout that a copy contains."""
    digest = sha256()
    for file in _files():
        digest.update(file.encode() + b"\0" + _read(file))
    return digest.hexdigest()


def _files() -> Iterator[str]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    for file in sorted(set(listed.stdout.split("\0"))):
        if (CHECKOUT / file).is_file():
            yield file


def _copy(tree: Path) -> None:
    for file in _files():
        target = tree / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(CHECKOUT / file, target)


def _sample(name: str, size: int, seed: int) -> list[Mutation | None]:
    """Return the mutants of a package in random order; None is a control without a change."""
    earlier = set[str]()
    for other, package in PACKAGES.items():
        if other == name:
            break
        earlier.update(file for path in package.paths for file in _modules(path))
    files = [f for path in PACKAGES[name].paths for f in _modules(path) if f not in earlier]
    every = [m for file in files for m in mutations(file, _read(file))]
    # A smaller sample is the beginning of a larger one.
    Random(f"{name}/{seed}").shuffle(every)
    return [*every[:size], *([None] * CONTROLS)]


def _modules(path: str) -> list[str]:
    place = CHECKOUT / path
    found = [place] if place.is_file() else sorted(place.rglob("*.py"))
    return [str(file.relative_to(CHECKOUT)) for file in found if "_pb2" not in file.name]


def _try_all(
    name: str,
    sample: Sequence[Mutation | None],
    tests: CoveringTests,
    copies: Sequence[_Copy],
    stored: Path,
) -> list[dict[str, object]]:
    """Return one result per mutant: those of an earlier command, and new ones.

    Args:
        name: of the package.
        sample: its mutants.
        tests: of each line.
        copies: of the checkout; each is used for one mutant at a time.
        stored: file of the results.
    """
    lines = stored.read_text("utf-8").splitlines() if stored.exists() else []
    done = {result["key"]: result for result in map(json.loads, lines)}
    checkout, free, writing = _digest(), SimpleQueue[_Copy](), Lock()
    for copy in copies:
        free.put(copy)

    def result_of(number: int, mutation: Mutation | None) -> dict[str, object]:
        key = f"control {number}" if mutation is None else json.dumps(asdict(mutation))
        file = "" if mutation is None else sha256(_read(mutation.file)).hexdigest()
        before = done.get(key, {})
        is_killed = before.get("result") == KILLED and before.get("file") == file
        if (is_killed and mutation) or before.get("checkout") == checkout:
            return _accepted(mutation, before)
        copy = free.get()
        try:
            result = _try(name, mutation, tests, copy)
        finally:
            free.put(copy)
        result = {"key": key, "file": file, "checkout": checkout, **result}
        with writing, stored.open("a", encoding="utf-8") as output:
            output.write(json.dumps(result) + "\n")
            print(f"  {result['result']:9} {result['seconds']:5} s  {mutation or key}", flush=True)
        return _accepted(mutation, result)

    with ThreadPoolExecutor(len(copies)) as threads:
        return list(threads.map(result_of, range(len(sample)), sample))


def _read(file: str) -> bytes:
    return (CHECKOUT / file).read_bytes()


def _try(
    name: str, mutation: Mutation | None, tests: CoveringTests, copy: _Copy
) -> Mapping[str, object]:
    covering = [] if mutation is None else tests.of(mutation.file, mutation.line)
    selected = covering or list(PACKAGES[name].other_tests)
    if mutation is None:
        return {"mutation": "control", **copy.run(selected[:1])}
    path = copy.tree / mutation.file
    original, times = path.read_bytes(), path.stat()
    try:
        path.write_bytes(mutation.apply(original))
        result = copy.run(selected)
        if result["result"] == SURVIVED and covering:
            # Other tests may notice it: tests that run it in another process, or slow tests.
            result = copy.run(list(PACKAGES[name].other_tests))
        return {"mutation": str(mutation), "text": mutation.text, **result}
    finally:
        path.write_bytes(original)
        # Bytecode is valid for one time and size of the source (importlib, source loaders).
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


class _Copy:
    """A copy of the checkout, and the process that runs its tests."""

    def __init__(self, tree: Path) -> None:
        shutil.rmtree(tree, ignore_errors=True)  # A killed command may have left a mutant there.
        _copy(tree)
        self.tree = tree
        self._process = subprocess.Popen(
            [sys.executable, "-m", "scripts.mutants.warm_tests"],
            cwd=tree,
            env=environment(tree),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, selected: Sequence[str]) -> dict[str, object]:
        """Run tests until one fails, and return the result of the mutant."""
        began = time.monotonic()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"tests": list(selected)}) + "\n")
        self._process.stdin.flush()
        reply = json.loads(self._process.stdout.readline())
        result = SURVIVED if reply["status"] == 0 else KILLED
        if reply["status"] in (-signal.SIGXCPU, -signal.SIGKILL):
            result = TIMED_OUT
        seconds = round(time.monotonic() - began)
        return {"result": result, "seconds": seconds, "tests": len(selected), "last": reply["last"]}

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def _accepted(mutation: Mutation | None, result: dict[str, object]) -> dict[str, object]:
    """Return the result, as accepted if the mutant survived and is listed."""
    if mutation is None or result["result"] != SURVIVED:
        return result
    for known in json.loads(ACCEPTED.read_text("utf-8")):
        place = (known["file"], known["text"], known["before"], known["after"])
        if place == (mutation.file, mutation.text, mutation.before, mutation.after):
            return {**result, "result": ACCEPTED_RESULT, "reason": known["reason"]}
    return result


def _summary(results: Sequence[Mapping[str, object]]) -> dict[str, object]:
    mutants = [result for result in results if result["mutation"] != "control"]
    counted = [result for result in mutants if result["result"] != ACCEPTED_RESULT]
    killed = sum(result["result"] != SURVIVED for result in counted)
    return {
        "mutants": len(counted),
        "killed": killed,
        "share": round(killed / max(len(counted), 1), 3),
        "timed_out": sum(result["result"] == TIMED_OUT for result in counted),
        "failed_controls": sum(
            result["mutation"] == "control" and result["result"] != SURVIVED for result in results
        ),
        "survivors": [
            f"{result['mutation']}   {result['text']}"
            for result in counted
            if result["result"] == SURVIVED
        ],
        "accepted": [
            f"{result['mutation']}: {result['reason']}"
            for result in mutants
            if result["result"] == ACCEPTED_RESULT
        ],
    }


def _print(report: Mapping[str, Mapping[str, object]]) -> int:
    """Print the table and the survivors, and return the exit status."""
    total = killed = 0
    met = True
    for name, summary in report.items():
        mutants, dead = int(str(summary["mutants"])), int(str(summary["killed"]))
        total, killed = total + mutants, killed + dead
        met = met and dead >= GOAL_PER_PACKAGE * mutants and not summary["failed_controls"]
        print(
            f"{name:14} {dead:4} of {mutants:4} killed  {dead / max(mutants, 1):6.1%}"
            f"   accepted {len(list(summary['accepted'])):3}"  # type: ignore[call-overload]
            f"   failed controls {summary['failed_controls']}"
        )
    print(f"{'all':14} {killed:4} of {total:4} killed  {killed / max(total, 1):6.1%}")
    for name, summary in report.items():
        for survivor in list(summary["survivors"]):  # type: ignore[call-overload]
            print(f"survived in {name}: {survivor}")
    return 0 if met and killed >= GOAL * total else 1


if __name__ == "__main__":
    sys.exit(main())
