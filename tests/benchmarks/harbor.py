"""Plays the oracle and the no-op on folders of Harbor tasks, and prints one line for each task.

``make benchmarks-harbor FOLDERS="DIR DIR"`` runs this. Each folder below DIR with a task.toml is a
task. It is played without a network. ``--harbor PROGRAM`` also plays each task with Harbor itself,
from the image that the verifier of this project used, and compares the rewards.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fumehood.benchmarks.registry import load_suite
from fumehood.core.errors import InfraError, InputError
from fumehood.engines.docker.engine import DockerEngine
from fumehood.engines.engine import EngineOptions
from fumehood.orchestrator.workspaces.plans import Workspaces

TIMEOUT_S = 3600
TASKS_AT_ONCE = 8
_NETWORK = re.compile(r"^\s*(?:allow_internet|network_mode)\s*=.*$", re.MULTILINE)
AGENTS = {"oracle": "oracle", "noop": "nop"}
"""Names of agents here and in Harbor."""
PROBLEM_CHARS_MAX = 300


def main() -> None:
    """Play the tasks; tasks with an earlier result are not played again."""
    parser = argparse.ArgumentParser(prog="make benchmarks-harbor", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--results", type=Path, help="JSON lines of results, which are continued")
    parser.add_argument("--harbor", help="command of Harbor, such as 'uvx harbor'")
    arguments = parser.parse_args()
    results: Path = arguments.results or Path(tempfile.mkdtemp()) / "results.jsonl"
    results.touch()
    known = {row["task"]: row for row in map(json.loads, results.read_text().splitlines())}
    tasks = [*_tasks(arguments.folders)]
    new = [folder for folder in tasks if str(folder) not in known]
    for row in _played(new):
        known[row["task"]] = row
        _note(results, row)
    compared = [row for row in known.values() if "image" in row and "harbor_oracle" not in row]
    for row in _with_harbor(compared, arguments.harbor) if arguments.harbor else ():
        known[row["task"]] = row
        _note(results, row)
    print("\n".join(_summary([*known.values()])), f"results: {results}", sep="\n")


def _tasks(folders: list[Path]) -> Iterator[Path]:
    for folder in folders:
        yield from sorted({file.parent.resolve() for file in folder.rglob("task.toml")})


def _note(results: Path, row: dict[str, Any]) -> None:
    with results.open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(_line(row), flush=True)


def _played(folders: list[Path]) -> Iterator[dict[str, Any]]:
    """Yield the result of each task. Tasks beside each other are played in one run."""
    built: dict[Path, list[str]] = {}
    engine = DockerEngine(EngineOptions())
    for folder in folders:
        problem = _problem(folder, engine)
        if problem:
            yield {"task": str(folder), **problem}
            continue
        names = built.setdefault(folder.parent, [])
        names.append(folder.name)
        if len(names) == TASKS_AT_ONCE:
            yield from _played_together(folder.parent, built.pop(folder.parent))
    for parent, names in built.items():
        yield from _played_together(parent, names)


def _problem(folder: Path, engine: DockerEngine) -> dict[str, str]:
    """Return why a task cannot be played; empty if its images are built."""
    try:
        (case,) = load_suite(f"harbor:offline:{folder}").cases
    except InputError as error:
        reason = _short(str(error)).partition("cannot be played (")[2] or _short(str(error))
        return {"refused": reason.partition(": ")[2].partition("); ")[0].removesuffix(")")}
    if case.gold.oracle is None:
        return {"refused": "solution/solve.sh is missing, so there is no oracle"}
    try:
        Workspaces(engine, [case], lambda line: None)
    except (InputError, InfraError) as error:
        return {"not_built": _short(str(error))}
    return {}


def _played_together(parent: Path, names: list[str]) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as place:
        run = Path(place, "run")
        agents = [word for agent in AGENTS for word in ("-a", agent)]
        suite = f"harbor:offline:{parent}:{','.join(names)}"
        command = [sys.executable, "-m", "fumehood", "run", suite, "--engine", "docker"]
        done = _command([*command, "--out", str(run), *agents])
        rows = [{"task": str(parent / name)} for name in names]
        if not (run / "episodes.jsonl").is_file():
            yield from ({**row, "not_built": _short(done.stderr)} for row in rows)
            return
        images = json.loads((run / "run.json").read_text())["workspaces"]["images"]
        episodes = [*map(json.loads, (run / "episodes.jsonl").read_text().splitlines())]
    for row, name in zip(rows, names, strict=True):
        played = [each for each in episodes if each["task"] == name]
        rewards = {each["agent"]: each["metrics"].get("reward") for each in played}
        outputs = {
            f"{each['agent']}_output": _short(str(each["metrics"].get("verifier", each["end"])))
            for each in played
        }
        yield {**row, **rewards, **outputs, "image": images[name]["verifier"]}


def _with_harbor(rows: list[dict[str, Any]], harbor: str) -> Iterator[dict[str, Any]]:
    """Yield the rows with the rewards that Harbor gives, in its own containers of the same images.

    They have a network, because not every host can switch it off for Harbor.
    """
    with tempfile.TemporaryDirectory() as place:
        for number, row in enumerate(rows):
            copy = Path(place, "tasks", f"{number}")
            shutil.copytree(row["task"], copy, symlinks=True)
            text = _NETWORK.sub("", (copy / "task.toml").read_text())
            start = f'[environment]\ndocker_image = "{row["image"]}"'
            text, count = re.subn(r"^\s*\[environment\]\s*$", start, text, count=1, flags=re.M)
            (copy / "task.toml").write_text(text if count else f"{text}\n{start}\n")
        trials: dict[tuple[str, str], Any] = {}
        for agent in AGENTS.values():
            jobs = Path(place, agent)
            words = ["run", "-p", f"{place}/tasks", "-a", agent, "--jobs-dir", str(jobs), "-n", "4"]
            done = _command([*harbor.split(), *words])
            for path in jobs.glob("*/*/result.json"):
                trial = json.loads(path.read_text())
                trials[agent, Path(trial["task_id"]["path"]).name] = trial
            if not jobs.is_dir():
                raise SystemExit(f"Harbor played no task: {_short(done.stdout + done.stderr)}")
        for number, row in enumerate(rows):
            found = {
                f"harbor_{own}": _reward_of_harbor(trials.get((theirs, f"{number}"), {}))
                for own, theirs in AGENTS.items()
            }
            yield {**row, **found}


def _reward_of_harbor(trial: dict[str, Any]) -> Any:
    rewards = (trial.get("verifier_result") or {}).get("rewards")
    if not rewards:
        return _short(str((trial.get("exception_info") or {}).get("exception_message", "no trial")))
    return rewards.get("reward", min(rewards.values()))


def _command(words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


def _short(text: str) -> str:
    return " ".join(text.split())[-PROBLEM_CHARS_MAX:]


def _line(row: dict[str, Any]) -> str:
    name = "/".join(Path(row["task"]).parts[-2:])
    for problem in ("refused", "not_built"):
        if problem in row:
            return f"{name}: {problem.replace('_', ' ')}: {row[problem]}"
    names = [*AGENTS, *(f"harbor_{agent}" for agent in AGENTS)]
    rewards = [f"{name} {row[name]}" for name in names if name in row]
    return f"{name}: {', '.join(rewards)}"


def _summary(rows: list[dict[str, Any]]) -> Iterator[str]:
    played = [row for row in rows if "oracle" in row]
    good = [row for row in played if row["oracle"] == 1 and not row["noop"]]
    both = [row for row in played if "harbor_oracle" in row]
    equal = [
        row
        for row in both
        if all(row[agent] == row.get(f"harbor_{agent}") for agent in ("oracle", "noop"))
    ]
    yield f"{len(rows)} tasks, {len(played)} played, {len(good)} with oracle 1 and no-op 0"
    if both:
        yield f"{len(equal)} of {len(both)} with the rewards of Harbor"
    for problem in ("refused", "not_built"):
        reasons = Counter(re.sub(r"\d+", "N", row[problem]) for row in rows if problem in row)
        for reason, count in reasons.most_common():
            yield f"{problem.replace('_', ' ')}: {count} × {reason}"


if __name__ == "__main__":
    main()
