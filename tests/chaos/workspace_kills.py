"""Runs of the example workspaces in which one part after another is killed at seeded random times.

A box that docker is asked to kill, a service and an orchestrator are infrastructure: the episode is
attempted again. A process that is killed inside a workspace may have been killed by the agent,
which is root there: that is the agent's failure.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.architecture.project import ROOT
from tests.chaos.breakages import LOOK_AGAIN_S
from tests.chaos.commands import Process, RunningCommand, services_of
from tests.chaos.workspace import (
    Results,
    Workspace,
    attempted_again,
    damage_of,
    infra_rows_of,
    results_of,
)

TASKS = (
    "build-the-library",
    "close-the-injection",
    "fix-the-average",
    "move-the-orders",
    "requests-per-hour",
    "serve-the-counters",
    "share-the-folder",
    "trace-the-failure",
    "write-the-calculator",
)
"""All except restore-the-commit: a commit of Git contains its time, so its trace differs."""
INFRA = 3
RUNS_AT_MOST = 30
"""Commands that resume one run."""
_HELPER = "/fumehood/bin/fumehood workspace"

Kill = Callable[[RunningCommand, Random], bool]
"""Kills a part of a run; returns whether there was one to kill."""


def _docker(*words: str) -> str:
    """Return what docker prints; empty if it fails, for instance because a container is gone."""
    done = subprocess.run(
        ["docker", *words], capture_output=True, text=True, timeout=120, check=False
    )
    return done.stdout if done.returncode == 0 else ""


def _containers(command: RunningCommand) -> Mapping[str, list[str]]:
    """Return the running containers of a command by their part."""
    mine = f"label=fumehood.owner.pid={command.pid}"
    listed = _docker("ps", "--no-trunc", "--filter", mine, "--format", "{{.ID}} {{.Command}}")
    parts: dict[str, list[str]] = {"agent": [], "workspace": [], "verifier": []}
    for line in sorted(listed.splitlines()):
        name, _, words = line.partition(" ")
        if _HELPER in words:
            parts["workspace"].append(name)
        elif "/tests/test.sh" in words:
            parts["verifier"].append(name)
        elif "sleep 600" not in words:
            parts["agent"].append(name)
    return parts


def _kill_container(part: str) -> Kill:
    def kill(command: RunningCommand, random: Random) -> bool:
        names = _containers(command)[part]
        return bool(names) and bool(_docker("kill", random.choice(names)))

    return kill


def _kill_helper(command: RunningCommand, random: Random) -> bool:
    """Kill the helper as an agent can: by a signal, without docker."""
    names = _containers(command)["workspace"]
    if not names:
        return False
    listed = _docker("top", random.choice(names), "-eo", "pid,args").splitlines()
    # The first process of the container names the helper too.
    found = [line.split() for line in listed if line.split()[1:2] == [_HELPER.split(maxsplit=1)[0]]]
    helpers = [Process.of(int(words[0])) for words in found]
    for helper in helpers:
        helper.kill()
    return bool(helpers)


def _kill_service(command: RunningCommand, random: Random) -> bool:
    services = sorted(services_of(command))
    if services:
        random.choice(services).kill()
    return bool(services)


def _kill_orchestrator(command: RunningCommand, random: Random) -> bool:
    command.kill()
    return True


KILLS: Mapping[str, Kill] = {
    "agent (A)": _kill_container("agent"),
    "workspace (B)": _kill_container("workspace"),
    "verifier (C)": _kill_container("verifier"),
    "helper in B": _kill_helper,
    "service": _kill_service,
    "orchestrator": _kill_orchestrator,
}
_OF_A_DEAD_HELPER = ("the workspace has ended", "the workspace does not answer")
FAILS_THE_AGENT = "helper in B"
"""The kill that counts as the agent's."""


@dataclass(slots=True)
class WorkspaceKills:
    """What kills did to runs of workspaces."""

    done: Counter[str] = field(default_factory=Counter)
    """Kills by target."""
    again: Counter[str] = field(default_factory=Counter)
    """Commands by the last target before them that had to be resumed."""
    failed: int = 0
    """Episodes whose calls failed after their helper was killed."""
    runs: int = 0
    episodes: int = 0
    attempted_again: int = 0
    infra: list[str] = field(default_factory=list)
    """Ends of episodes that only a further command finished."""
    wrong: list[str] = field(default_factory=list)
    """Episodes that are lost or differ from the quiet run, against the rule."""
    left: list[str] = field(default_factory=list)
    """What remained of the runs."""

    def __str__(self) -> str:
        lines = [f"{name}: {self.done[name]} kills, {self.again[name]} resumed" for name in KILLS]
        return "\n".join(
            [
                *lines,
                f"{self.runs} runs, {self.episodes} episodes, {self.attempted_again} attempted "
                f"again, {self.failed} with failed calls after a killed helper, "
                f"{len(self.wrong)} wrong, {len(self.left)} left over",
                *self.infra,
                *self.wrong,
                *self.left,
            ]
        )


def run_workspaces_with_kills(
    space: Workspace, kills: int, seed: int, tasks: tuple[str, ...] = TASKS, per_run: int = 6
) -> WorkspaceKills:
    """Kill every part in turn until there were ``kills``; each run is checked.

    Args:
        space: workspace of the runs.
        kills: over all targets.
        seed: chooses times, targets and victims.
        tasks: of ``examples/workspaces``.
        per_run: kills in one run.
    """
    random, result = Random(seed), WorkspaceKills()
    suite = f"harbor:{ROOT}/examples/workspaces:{','.join(tasks)}"
    words = ("run", suite, "-a", "oracle", "-a", "noop", "--engine", "docker", "-j", "2", "--out")
    quiet = space.root / "quiet"
    space.finish(*words, str(quiet))
    began_s = time.monotonic()
    again = space.root / "again"
    space.finish(*words, str(again))
    quiet_s, expected = time.monotonic() - began_s, _verdicts(quiet)
    assert _verdicts(again) == expected, "the quiet runs differ"
    due = [name for _ in range(kills // len(KILLS) + 1) for name in KILLS][:kills]
    random.shuffle(due)
    while due:
        run = space.root / f"run{result.runs}"
        helpers_before = result.done[FAILS_THE_AGENT]
        now, due = due[:per_run], due[per_run:]
        # What a run did not live long enough for is due in the next one.
        due += _run_to_its_end(space, run, (*words, str(run)), now, random, quiet_s, result)
        _check(space, run, expected, result, result.done[FAILS_THE_AGENT] - helpers_before)
        result.runs += 1
        result.episodes += len(expected)
        print(result, flush=True)
    return result


def _run_to_its_end(
    space: Workspace,
    run: Path,
    words: tuple[str, ...],
    due: list[str],
    random: Random,
    quiet_s: float,
    result: WorkspaceKills,
) -> list[str]:
    """Run and resume until every episode has a result; return the kills that were not done."""
    arguments, last, count = words, "", len(due)
    for _ in range(RUNS_AT_MOST):
        with space.start(*arguments) as command:
            while due and command.wait(random.uniform(0, quiet_s / count)) is None:
                if _kill_one(command, due[0], random):
                    last = due.pop(0)
                    result.done[last] += 1
            status = command.wait(1800)
            assert status in (0, INFRA, -9), command.output()
        if status == 0:
            return due
        result.again[last] += 1
        arguments = ("resume", str(run)) if (run / "run.json").exists() else words
    raise AssertionError(f"{run} was not finished by {RUNS_AT_MOST} commands")


def _kill_one(command: RunningCommand, target: str, random: Random) -> bool:
    """Kill a target as soon as there is one; return whether there was one."""
    while command.is_running:
        # Before there is a service, the engine tests itself, and a failed test ends the run.
        if services_of(command) and KILLS[target](command, random):
            return True
        time.sleep(LOOK_AGAIN_S)
    return False


def _verdicts(run: Path) -> Results:
    """Return the results of a run without the output of its tests, which contains times."""
    results = {}
    for name, row in results_of(run).items():
        verifier = {**row["metrics"]["verifier"], "output": ""}
        results[name] = {**row, "metrics": {**row["metrics"], "verifier": verifier}}
    return results


def _check(
    space: Workspace, run: Path, expected: Results, result: WorkspaceKills, helpers: int
) -> None:
    actual = _verdicts(run)
    lost = [f"{run.name}: {name} is lost" for name in expected.keys() - actual.keys()]
    changed = [name for name, row in actual.items() if row != expected[name]]
    # The files that a workspace contained count, so its episode may also succeed.
    failed = [
        name
        for name in changed
        if actual[name]["success"] in (False, expected[name]["success"])
        and any(problem in _trace(run, name) for problem in _OF_A_DEAD_HELPER)
    ]
    wrong = [
        f"{run.name}: {name}: {_difference(expected[name], actual[name])}"
        for name in changed
        if name not in failed or len(failed) > helpers
    ]
    result.failed += len(failed) if len(failed) <= helpers else 0
    result.wrong += [*lost, *wrong, *(f"{run.name}: {text}" for text in damage_of(run))]
    result.infra += [str(row["end"]) for row in infra_rows_of(run)]
    result.attempted_again += attempted_again(run)
    result.left += [f"{run.name}: {path}" for path in space.orphans()]
    result.left += _left_in_docker(space, run)


def _trace(run: Path, episode: str) -> str:
    agent, task, trial = episode.split("/")
    return (run / "traces" / agent / f"{task}.{trial}.jsonl").read_text("utf-8")


def _difference(quiet: Mapping[str, Any], killed: Mapping[str, Any]) -> str:
    names = [name for name in quiet if quiet[name] != killed.get(name)]
    return "; ".join(f"{name}: {quiet[name]} became {killed.get(name)}" for name in names)


def _left_in_docker(space: Workspace, run: Path) -> list[str]:
    label = json.loads((run / "run.json").read_text("utf-8"))["run"]
    listed = _docker("ps", "-aq", "--filter", f"label=fumehood.run={label}").split()
    with space.start("doctor", "--orphans", "--json") as command:
        assert command.wait(300) in (0, 1), command.output()
        # Other programs of this machine may have been killed too.
        is_orphaned = label in command.output()
    orphans = [f"{run.name}: doctor --orphans lists it"] if is_orphaned else []
    return [*(f"{run.name}: container {name}" for name in listed), *orphans]
