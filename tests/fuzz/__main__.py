"""``make fuzz``: coverage-guided fuzzing of all parsers.

Each target runs in a separate process for its share of the time, starting from the committed corpus
and earlier findings. Findings are written beside the corpus; add a finding to it once it is fixed.
"""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory

CORPUS = Path(__file__).with_name("corpus")
INPUT_BYTES_MAX = 4096
INPUT_TIMEOUT_S = 10
MEMORY_MB = 2048


def main() -> int:
    """Fuzz and return the exit status."""
    parser = ArgumentParser(prog="make fuzz")
    parser.add_argument("--minutes", type=float, default=10.0, help="in all")
    parser.add_argument("--target", action="append", help="this one alone; repeatable")
    parser.add_argument(
        "--one", nargs=2, metavar=("TARGET", "CORPUS"), help="what this command starts itself"
    )
    parser.add_argument(
        "--findings", type=Path, default=Path("fuzz-findings"), help="where they are written"
    )
    given, rest = parser.parse_known_args()
    if given.one:
        _fuzz_one(given.one[0], [given.one[1], *rest])
        return 0
    from tests.fuzz.targets import TARGETS

    names = given.target or list(TARGETS)
    share_s = max(1, round(given.minutes * 60 / len(names)))
    given.findings.mkdir(exist_ok=True)
    failed = [name for name in names if not _fuzz(name, share_s, given.findings)]
    print(f"{len(names) - len(failed)} of {len(names)} targets withstood {share_s} s each")
    return 1 if failed else 0


def _fuzz(name: str, seconds: int, findings: Path) -> bool:
    """Fuzz one target, print the result, and return whether there was no finding."""
    with TemporaryDirectory() as folder:
        corpus = Path(folder) / name
        copytree(CORPUS / name, corpus)
        command = [sys.executable, "-m", "tests.fuzz", "--one", name, str(corpus)]
        options = {
            "max_total_time": seconds,
            "max_len": INPUT_BYTES_MAX,
            "timeout": INPUT_TIMEOUT_S,
            "rss_limit_mb": MEMORY_MB,
            "print_final_stats": 1,
            "artifact_prefix": f"{findings}/{name}-",
        }
        words = [*command, *(f"-{option}={value}" for option, value in options.items())]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
        kept = len(list(corpus.iterdir()))
    statistics = [line for line in done.stderr.splitlines() if "number_of_executed_units" in line]
    runs = statistics[0].split()[-1] if statistics else "?"
    print(
        f"{name}: {runs} inputs, {kept} of them worth keeping, exit status {done.returncode}",
        flush=True,
    )
    if done.returncode != 0:
        print(done.stdout[-3000:], done.stderr[-3000:], file=sys.stderr)
    return done.returncode == 0


def _fuzz_one(name: str, words: list[str]) -> None:
    import atheris  # type: ignore[import-untyped]

    with atheris.instrument_imports(include=["fumehood", "fumehood_agent", "json", "yaml"]):
        from tests.fuzz.targets import TARGETS
    atheris.Setup([sys.argv[0], *words], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
