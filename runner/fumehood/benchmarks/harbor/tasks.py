"""Loads Harbor task folders, schema 1.x, as tasks in a workspace.

Refuses each setting that it does not support, and names it. Source: Harbor 0.25,
models/task/config.py.
"""

from __future__ import annotations

import base64
import os
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fumehood.benchmarks.harbor.limits import CPUS_MAX, SIZE_MAX_MB, limit_of, seconds_of
from fumehood.benchmarks.harbor.services import services_of
from fumehood.benchmarks.harbor.setup_of_tests import packages_of
from fumehood.benchmarks.harbor.steps import Step, healthcheck_of, problems_of_steps, steps_of
from fumehood.benchmarks.harbor.unsupported import Unsupported, checked_variables
from fumehood.benchmarks.shared.checkout import digest_of_folder
from fumehood.core.conversation import ConversationSpec
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import About, Case, Suite, Task
from fumehood.scorers.verdict import SHARED_TESTS, TERMINALS, WORKSPACE

USAGE = "harbor:[offline:][shared:]PATH[:TASK[,TASK…] | :supported]"
SUPPORTED = "supported"
AGENT_TIMEOUT_S, VERIFIER_TIMEOUT_S = 900.0, 600.0
"""Of a task that states none."""
_KINDS: Mapping[str, type[Any]] = {
    **dict.fromkeys(("environment", "verifier", "agent", "solution", "metadata"), dict),
    **dict.fromkeys(("environment.env", "verifier.env", "solution.env"), dict),
    **{"verifier.environment": dict, "verifier.collect": list, "artifacts": list},
    "environment.workdir": str,
}
"""Types of settings of ``task.toml``."""
_FORMS: Mapping[type[Any], str] = {dict: "a table", list: "a list", str: "a text"}
FOLDER_BYTES_MAX = 4 << 30
"""Of all files of a task. Sparse files count fully."""
SOLUTION_BYTES_MAX = 700_000
"""Of one file of a solution, which is one argument of a call."""
OFFLINE, SHARED = "offline:", "shared:"
MODES = (OFFLINE, SHARED)
"""Prefixes of the argument. The first one plays tasks without the network that they may use; the
second one runs tests only inside the workspace."""
_VARIABLE = re.compile(r"\$\{\w+(?P<default>:-[^}]*)?\}")
ABOUT = About(
    licence="of the task folders",
    criterion="the reward that the tests of the task write in a separate box",
    scored_on="the files that the engine copied out of the workspace",
)
ABOUT_SHARED = replace(
    ABOUT,
    criterion="the reward that the tests of the task write inside the workspace (shared, "
    "forgeable)",
    scored_on="the workspace itself, where an agent can forge the reward",
)


class Harbor:
    """The benchmark ``harbor``: one task folder, or a folder of them."""

    source = "Harbor task folders, such as Terminal-Bench; the user supplies them"

    def load(self, argument: str) -> Suite:
        """Return the tasks of a folder.

        Raises:
            InputError: the folder has no tasks, or one of them cannot be played here.
        """
        modes, rest = _modes(argument)
        place, _, chosen = rest.partition(":")
        folders = _task_folders(Path(place).resolve()) if place else []
        if not folders:
            raise InputError(
                f"{place or 'no folder'}: no Harbor task with a task.toml; use {USAGE}"
            )
        names = chosen.split(",") if chosen and chosen != SUPPORTED else []
        unknown = sorted(set(names) - {folder.name for folder in folders})
        if unknown:
            raise InputError(f"{place}: there is no task {unknown[0]!r}; use {USAGE}")
        cases, refused = [], []
        for folder in folders:
            if names and folder.name not in names:
                continue
            try:
                cases.append(_case(folder, modes))
            except Unsupported as reason:
                refused.append(f"{folder.name}: {reason}")
        if refused and chosen != SUPPORTED:
            more = f"; harbor:{place}:{SUPPORTED} plays the other {len(cases)}"
            others = more if cases and not names else ""
            raise InputError(
                f"{place}: {len(refused)} of {len(refused) + len(cases)} tasks cannot be played "
                f"({'; '.join(refused)}){others}"
            )
        if not cases:
            raise InputError(
                f"{place}: none of {len(refused)} tasks can be played; the first one: {refused[0]}"
            )
        name = f"{''.join(sorted(modes))}{Path(place).resolve().name}"
        about = ABOUT_SHARED if SHARED in modes else ABOUT
        return Suite(f"harbor:{name}{f':{chosen}' if chosen else ''}", tuple(cases), about=about)


def _modes(argument: str) -> tuple[frozenset[str], str]:
    """Return the modes at the beginning of an argument, and the rest."""
    modes: frozenset[str] = frozenset()
    while mode := next((mode for mode in MODES if argument.startswith(mode)), None):
        modes, argument = modes | {mode}, argument.removeprefix(mode)
    return modes, argument


def _task_folders(place: Path) -> list[Path]:
    if (place / "task.toml").is_file():
        return [place]
    return sorted(file.parent for file in place.glob("*/task.toml"))


def _case(folder: Path, modes: frozenset[str]) -> Case:
    _require_own_files(folder)
    config = _read(folder)
    for reason in _problems(config, folder, modes):
        raise Unsupported(reason)
    environment, verifier = config.get("environment", {}), config.get("verifier", {})
    steps = steps_of(config, folder)
    agent_s = seconds_of(config.get("agent", {}), "agent") or AGENT_TIMEOUT_S
    wall_s = sum(step.agent_s or agent_s for step in steps) if steps else agent_s
    has_own_image = (folder / "tests" / "Dockerfile").is_file() and _is_separate(verifier)
    digest = digest_of_folder(folder)
    criterion: JsonObject = {
        "op": WORKSPACE,
        "folder": str(folder),
        "digest": digest,
        "workdir": environment.get("workdir") or "",
        "env": {**_variables(config, "environment")},
        "cpus": limit_of(environment.get("cpus"), "environment.cpus", CPUS_MAX),
        "memory_mb": _size_mb(environment, "memory"),
        "storage_mb": _size_mb(environment, "storage"),
        "artifacts": [*_artifacts(config.get("artifacts", []))],
        "verifier_folder": "tests" if has_own_image else "environment",
        "verifier_timeout_s": seconds_of(verifier, "verifier") or VERIFIER_TIMEOUT_S,
        "verifier_lines": _verifier_lines(folder, steps) if not has_own_image else [],
        "verifier_env": {**_variables(config, "verifier")},
        TERMINALS: _has_terminals(config),
    }
    if healthcheck := healthcheck_of(environment.get("healthcheck"), "environment"):
        criterion["healthcheck"] = healthcheck
    services, variables = services_of(folder)
    if services or variables:
        environ = {**variables, **_variables(config, "environment")}
        criterion |= {"services": [*services], "env": {**environ}}
    if steps:
        strategy = config.get("multi_step_reward_strategy")
        criterion |= {"steps": [_step(step, criterion) for step in steps], "step_rewards": strategy}
    if SHARED in modes:
        collect: list[Json] = [str(hook["command"]) for hook in verifier.get("collect", [])]
        criterion |= {"verification": SHARED_TESTS, "collect": collect}
    first, *later = [
        (place / "instruction.md").read_text("utf-8").strip()
        for place in ([step.folder for step in steps] or [folder])
    ]
    oracle = tuple(_oracle_of_steps(folder, steps, config, agent_s))
    state: JsonObject = {"task": folder.name, "digest": digest, "changed": {}}
    metadata = config.get("metadata", {})
    tags: JsonObject = {
        key: metadata[key]
        for key in ("category", "difficulty")
        if isinstance(metadata.get(key), str)
    }
    task = Task(
        task_id=folder.name,
        world=WORKSPACE,
        harness_mode="native",
        initial_state=state | ({"later_steps": [*later]} if steps else {}),
        seats=(SeatSpec(instruction=first, budget=Budget(wall_ms=round(wall_s * 1000))),),
        conversation=ConversationSpec("world", {}) if steps else None,
        tags={"domain": WORKSPACE, **tags},
    )
    return Case(
        task,
        Gold(WORKSPACE, (criterion,), solvable=True if oracle else None, oracle=oracle or None),
    )


def _read(folder: Path) -> dict[str, Any]:
    try:
        config = tomllib.loads((folder / "task.toml").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / 'task.toml'}: cannot be read: {error}") from None
    for place, kind in _KINDS.items():
        *tables, name = place.split(".")
        table = config.get(tables[0], {}) if tables else config
        if not isinstance(table.get(name, kind()), kind):
            raise InputError(f"{folder / 'task.toml'}: {place}: must be {_FORMS[kind]}")
    for name in ("instruction.md", "environment", "tests/test.sh"):
        if not (folder / name).exists() and not config.get("steps"):
            raise Unsupported(f"{name} is missing")
    return config


def _require_own_files(folder: Path) -> None:
    """Refuse links to files of the host, whose content would become part of the task, and files
    that are too large or cannot be read to an end.

    Only the environment is copied with its links as they are, so no other link may lead to it or to
    a folder.
    """
    top, size_bytes = folder.resolve(), 0
    environment = top / "environment"
    for path in folder.rglob("*"):
        size_bytes += path.lstat().st_size
        if size_bytes > FOLDER_BYTES_MAX:
            raise InputError(
                f"{folder} has more than {FOLDER_BYTES_MAX >> 30} GiB, sparse files included: "
                "remove files"
            )
        if path.is_symlink():
            if path.parent.resolve().is_relative_to(environment):
                continue
            # Does not raise an exception for a loop, as `resolve` does before Python 3.13.
            target = Path(os.path.realpath(path))
            if target.is_symlink():
                raise InputError(f"{path} is a link that leads to itself: remove it")
            if not target.is_relative_to(top) or target.is_relative_to(environment):
                raise InputError(
                    f"{path} is a link that leaves the task folder or leads to its environment: "
                    "copy the file"
                )
            if target.is_dir():
                raise InputError(f"{path} is a link to a folder: copy the folder")
        elif not (path.is_file() or path.is_dir()):
            raise InputError(f"{path} is neither a file nor a folder: remove it")


def _problems(config: Mapping[str, Any], folder: Path, modes: frozenset[str]) -> Iterator[str]:
    """Yield each setting that is not supported."""
    environment, verifier = config.get("environment", {}), config.get("verifier", {})
    version = str(config.get("schema_version", config.get("version", "1.0")))
    refused = {
        f"schema_version {version}": not version.startswith("1."),
        f"steps with {SHARED}": SHARED in modes and config.get("steps"),
        "trajectory.json": (folder / "trajectory.json").exists(),
        "environment without a Dockerfile": not (folder / "environment" / "Dockerfile").is_file(),
        "environment.os": str(environment.get("os", "linux")).lower() != "linux",
        **_live(verifier, folder, modes),
        "verifier.environment": set(verifier.get("environment", {})) - {"network_mode"},
        "artifacts with exclude or service": [
            entry
            for entry in config.get("artifacts", [])
            if isinstance(entry, dict) and set(entry) - {"source", "destination"}
        ],
    }
    yield from (reason for reason, is_there in refused.items() if is_there)
    for name in ("gpus", "tpu", "mcp_servers", "skills_dir"):
        if environment.get(name):
            yield f"environment.{name}"
    yield from problems_of_steps(config, folder, is_offline=OFFLINE in modes)
    if OFFLINE not in modes:
        yield from _networks(config)
    for table in ("environment", "verifier", "agent"):
        if config.get(table, {}).get("user") not in (None, "root", 0):
            yield f"{table}.user"
    for table in ("environment", "verifier", "solution"):
        if any("${" in text for text in _variables(config, table).values()):
            yield f"variables of the host in {table}.env"


def _live(verifier: Mapping[str, Any], folder: Path, modes: frozenset[str]) -> dict[str, Any]:
    """Return what the verification needs of the running workspace, or of another box."""
    hooks = verifier.get("collect", [])
    if SHARED not in modes:
        return {f"verifier.collect; harbor:{SHARED}PATH runs it, with a forgeable reward": hooks}
    return {
        "verifier.collect with service or user, or without a command": [
            hook
            for hook in hooks
            if not isinstance(hook, dict)
            or set(hook) - {"command", "timeout_sec"}
            or not isinstance(hook.get("command"), str)
        ],
        "a verifier with its own image, which shared tests cannot use": (
            _is_separate(verifier) and (folder / "tests" / "Dockerfile").is_file()
        ),
    }


def _networks(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield each permission to use the internet."""
    remedy = f"; harbor:{OFFLINE}PATH plays it without a network"
    for table in ("environment", "verifier", "agent"):
        settings = config.get(table, {})
        if settings.get("network_mode", "no-network") != "no-network":
            yield f"{table}.network_mode {settings['network_mode']}{remedy}"
        if settings.get("allow_internet"):
            yield f"{table}.allow_internet{remedy}"


def _variables(config: Mapping[str, Any], table: str) -> dict[str, str]:
    """Return the variables of a table. A reference to a variable of the host is replaced by its
    default, because no variable of the host reaches a box."""
    texts = config.get(table, {}).get("env", {})
    filled = {
        name: _VARIABLE.sub(lambda match: (match["default"] or match[0]).removeprefix(":-"), text)
        for name, text in ((name, str(text)) for name, text in texts.items())
    }
    return checked_variables(filled, f"{table}.env")


def _verifier_lines(folder: Path, steps: Sequence[Step]) -> list[Json]:
    """Return lines of a Dockerfile that install what the tests install."""
    places = [step.test_script for step in steps] or [folder / "tests" / "test.sh"]
    scripts = [place.read_text("utf-8", "replace") for place in places]
    for script in scripts:
        packages_of(script)
    return [*packages_of("\n".join(scripts)).lines()]


def _step(step: Step, task: Mapping[str, Json]) -> JsonObject:
    """Return the settings of a step, which replace those of the task."""
    shared, env = task["artifacts"], task["verifier_env"]
    assert isinstance(shared, list)
    assert isinstance(env, dict)
    return {
        "name": step.name,
        "min_reward": step.min_reward,
        "tests": ["tests", f"steps/{step.name}/tests"],
        "artifacts": [*shared, *_artifacts([*step.artifacts])],
        "verifier_timeout_s": step.verifier_s or task["verifier_timeout_s"],
        "verifier_env": {**env, **_variables({"verifier": step.verifier}, "verifier")},
        "step_healthcheck": healthcheck_of(step.healthcheck, f"steps.{step.name}"),
    }


def _has_terminals(config: Mapping[str, Any]) -> bool:
    """Return whether the boxes of a task have pseudo-terminals, as in Harbor, where tmux and expect
    work. A task that needs none states this in its metadata, which Harbor does not restrict."""
    stated = config.get("metadata", {}).get(TERMINALS, True)
    if not isinstance(stated, bool):
        raise Unsupported(f"metadata.{TERMINALS} {stated!r}, which is neither true nor false")
    return stated


def _is_separate(verifier: Mapping[str, Any]) -> bool:
    return verifier.get("environment_mode") == "separate" or "environment" in verifier


def _artifacts(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        path = str(entry["source"] if isinstance(entry, dict) else entry)
        if not path.startswith("/") or ".." in path.split("/"):
            raise Unsupported(f"the artifact {path!r}, which is not an absolute path")
        yield path


def _size_mb(environment: Mapping[str, Any], name: str) -> int | None:
    """Return a size; older tasks state it as a text such as ``2G``."""
    size = environment.get(f"{name}_mb")
    text = str(environment.get(name, "")).upper()
    factor = {"G": 1024.0, "M": 1.0, "K": 1 / 1024}.get(text[-1:])
    if size is None and text and factor is not None:
        try:
            size = float(text[:-1]) * factor
        except ValueError:
            raise Unsupported(f"environment.{name} {text}") from None
    found = limit_of(size, f"environment.{name}_mb", SIZE_MAX_MB, least=1)
    return None if found is None else int(found)


def _oracle_of_steps(
    folder: Path, steps: Sequence[Step], config: Mapping[str, Any], timeout_s: float
) -> Iterator[JsonObject]:
    """Yield the moves of all solutions, with a submission between two steps; none if a step lacks
    a solution."""
    if not steps:
        yield from _oracle(folder, config, timeout_s)
    elif all((step.folder / "solution" / "solve.sh").is_file() for step in steps):
        for step in steps:
            if step is not steps[0]:
                yield {"submit": f"The step {steps[steps.index(step) - 1].name} is done."}
                yield {"tool_name": "bash", "args": {"command": "rm -rf /solution"}}
            yield from _oracle(step.folder, config, step.agent_s or timeout_s)


def _oracle(folder: Path, config: Mapping[str, Any], timeout_s: float) -> Iterator[JsonObject]:
    """Yield the calls that upload the solution and run it."""
    solution = folder / "solution"
    if not (solution / "solve.sh").is_file():
        return
    for file in sorted(path for path in solution.rglob("*") if path.is_file()):
        if (size := file.stat().st_size) > SOLUTION_BYTES_MAX:
            raise Unsupported(
                f"solution/{file.relative_to(solution)} has {size} bytes, "
                f"of at most {SOLUTION_BYTES_MAX}"
            )
        content = file.read_bytes()
        arguments: JsonObject = {
            "path": f"/solution/{file.relative_to(solution)}",
            "content_base64": base64.b64encode(content).decode("ascii"),
            "mode": "755" if file.stat().st_mode & 0o100 or file.suffix == ".sh" else "644",
        }
        yield {"tool_name": "upload", "args": arguments}
    environment = _variables(config, "solution")
    variables = [f"{name}={shlex.quote(text)}" for name, text in environment.items()]
    command = " ".join(
        ["env", *variables, "/solution/solve.sh"] if variables else ["/solution/solve.sh"]
    )
    run: JsonObject = {"command": command, "timeout_s": max(1, min(3600, int(timeout_s)))}
    yield {"tool_name": "bash", "args": run}
