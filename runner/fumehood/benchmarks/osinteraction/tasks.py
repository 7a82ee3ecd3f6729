"""Loads os_interaction's records and scripts from a checkout of AgentBench."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from fumehood.benchmarks.osinteraction.verify import PROGRAMS
from fumehood.benchmarks.shared.checkout import checkout_folder, digest_of_folder
from fumehood.benchmarks.shared.published_record import PublishedRecord
from fumehood.benchmarks.shared.reading import Placed, read_records
from fumehood.benchmarks.shared.records import cases_of, validated
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import About, Case, Suite, Task
from fumehood.scorers.verdict import SHARED, SHARED_TESTS, WORKSPACE

USAGE = "os-interaction:CHECKOUT[:std|:dev]"
DATA_FOLDER = Path("data", "os_interaction")
"""Folder of the records in a checkout of AgentBench."""
STANDARD, DEV = "std", "dev"
PARTS = tuple("1234567")
"""Folders of the split ``std``; ``6-backup.json`` is not part of it."""
ROUNDS = 8
"""Rounds in the original's configuration; the answer uses one of them."""
BUDGET = Budget(steps=ROUNDS - 1, calls=ROUNDS - 1, retries=ROUNDS - 1)
OUTPUT_CHARS_MAX = 780
"""Characters of a long output that the original keeps."""
VERIFIER_TIMEOUT_S = 600
IMAGES = Path(__file__).parent / "images"
ONCE = re.compile(r"RANDOM|/dev/u?random|\bapt(?:-get)? (?:update|install)\b")
"""Matches init scripts that must be executed only once, when the image is built, because they draw
random numbers or need the network."""
BY_TIME = re.compile(r"\bls -\w*t\b")
"""Matches example scripts that sort files by time. Their init scripts are executed once too,
because files have other times in each box."""
ABOUT = About(
    licence="Apache-2.0 (THUDM/AgentBench)",
    criterion="the original's checks: the expected answer, or its check scripts",
    scored_on=f"the answer; in tasks of the type 'change', the workspace ({SHARED})",
)
INSTRUCTION = """\
You work on a Linux (Ubuntu) machine as root. Execute commands in bash with the tool bash; no \
command can read input. A long output is cut. You have at most {commands} commands. If the task is \
a question, submit the exact answer, such as a single number, without a sentence. If it asks for a \
change, submit "done" after the change.

{description}"""
Script = tuple[str, str]
"""A language and the code."""


class _Code(PublishedRecord):
    """A script. Unread keys are ignored, as in the original."""

    language: Literal["bash", "python"] = "bash"
    code: str | None = None
    file: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _text_is_bash(cls, value: Any) -> Any:
        return {"code": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _has_content(self) -> _Code:
        if (self.code is None) == (self.file is None):
            raise ValueError("must have code or file")
        return self


class _Match(PublishedRecord):
    answer: str | None = None
    regex: str | None = None
    strip: bool = True

    @model_validator(mode="before")
    @classmethod
    def _text_is_the_answer(cls, value: Any) -> Any:
        return {"answer": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _has_one_rule(self) -> _Match:
        if (self.answer is None) == (self.regex is None):
            raise ValueError("must have answer or regex")
        return self


class _Evaluation(PublishedRecord):
    match: _Match | None = None
    check: list[_Code | None] = Field(default_factory=list)
    """Scripts to execute in order; None means :attr:`example`."""
    example: _Code | None = None

    @field_validator("check", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: Any) -> Any:
        return value if isinstance(value, list) else [value]

    @model_validator(mode="after")
    def _has_a_check(self) -> _Evaluation:
        if self.match is None and not self.check:
            raise ValueError("must have match or check")
        if None in self.check and self.example is None:
            raise ValueError("example: is required, because check contains null")
        return self


class _Create(PublishedRecord):
    local: Literal["default", "packages"] = "default"
    """Name of the folder of the image."""
    init: list[_Code] = Field(default_factory=list)

    @field_validator("init", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: Any) -> Any:
        return value if isinstance(value, list) else [value]


class Record(PublishedRecord):
    """One published task."""

    description: str
    create: _Create = _Create()
    start: _Code | None = None
    """Executed in the agent's shell."""
    evaluation: _Evaluation

    @field_validator("create", mode="before")
    @classmethod
    def _other_forms_are_empty(cls, value: Any) -> Any:
        # The original reads two malformed records in this way.
        return value if isinstance(value, dict) else {}


class OsInteraction:
    """The benchmark ``os-interaction``."""

    source = "THUDM/AgentBench 578c5e9, your checkout"

    def load(self, argument: str) -> Suite:
        """Return the tasks of a split.

        Raises:
            InputError: the folder is no checkout, the split is unknown, or a file is invalid.
        """
        place, split = argument, STANDARD
        head, _, last = argument.rpartition(":")
        if head and not Path(argument).is_dir():
            place, split = head, last
        folder = checkout_folder(place, contains=str(DATA_FOLDER), usage=USAGE) / DATA_FOLDER
        if split not in (STANDARD, DEV):
            raise InputError(f"os-interaction has no split {split!r}; use {USAGE}")
        records = [*(_standard(folder) if split == STANDARD else _dev(folder))]
        if not records:
            raise InputError(f"{folder}: contains no records of the split {split!r}")
        cases = cases_of(records, lambda item: _case(*item))
        return Suite(f"os-interaction:{split}", cases, about=ABOUT)


_Named = Placed[tuple[str, Record, Path]]


def _standard(folder: Path) -> Iterator[_Named]:
    for part in PARTS:
        scripts = folder / "scripts" / part
        for file in sorted((folder / "data" / part).glob("*.json")):
            yield from _records(file, f"std-00{part}-{file.stem}", scripts)


def _dev(folder: Path) -> Iterator[_Named]:
    yield from _records(folder / "data" / "dev.json", "dev", folder / "scripts" / "dev")


def _records(file: Path, prefix: str, scripts: Path) -> Iterator[_Named]:
    """Yield each record with its ID, which is its index as in the original, and its scripts."""
    for index, value in enumerate(read_records(file)):
        record = validated(value, Record)
        yield Placed((f"{prefix}-{index}", record.value, scripts), record.place)


def _case(task_id: str, record: Record, scripts: Path) -> Case:
    evaluation = record.evaluation
    example = _script(evaluation.example, scripts)
    checks = [_script(check, scripts) for check in evaluation.check]
    # A change is checked where it was made. A question is answered from the state at the beginning.
    is_change = evaluation.match is None and checks[0] is not None
    init = [script for item in record.create.init if (script := _script(item, scripts))]
    is_once = any(ONCE.search(code) for _, code in init)
    is_once = is_once or (example is not None and BY_TIME.search(example[1]) is not None)
    lines: list[Json] = [f"RUN {json.dumps(_command(script))}" for script in init if is_once]
    setup: list[Json] = [[*_command(script)] for script in init if not is_once]
    folder = IMAGES / record.create.local
    verified: JsonObject = {
        "init": [] if is_once or is_change else [[*script] for script in init],
        "checks": [[*check] if check else None for check in checks],
        "example": [*example] if example else None,
        "match": evaluation.match.model_dump(exclude_none=True) if evaluation.match else None,
    }
    criterion: JsonObject = {
        "op": WORKSPACE,
        "folder": str(folder),
        "digest": digest_of_folder(folder),
        "cpus": 2,
        "memory_mb": 1024,
        "workspace_lines": lines,
        "setup": setup,
        "verifier_program": _program(verified),
        **({"verification": SHARED_TESTS} if is_change else {}),
        "verifier_timeout_s": VERIFIER_TIMEOUT_S,
    }
    state: JsonObject = {"task": task_id, "changed": {}, "output_chars_max": OUTPUT_CHARS_MAX}
    if start := _script(record.start, scripts):
        state["start"] = start[1]
    instruction = INSTRUCTION.format(commands=ROUNDS - 1, description=record.description.strip())
    kind = "answer" if evaluation.match else "change" if is_change else "question"
    task = Task(
        task_id=task_id,
        world=WORKSPACE,
        harness_mode="native",
        initial_state=state,
        seats=(SeatSpec(instruction=instruction, budget=BUDGET, tools=("bash",)),),
        tags={"type": kind},
    )
    oracle = tuple(_oracle(evaluation.match, example))
    return Case(task, Gold(WORKSPACE, (criterion,), oracle=oracle or None))


def _program(task: JsonObject) -> str:
    """Return the source of the verifier of a task."""
    source = Path(__file__).with_name("verify.py").read_text("utf-8")
    return source.replace("TASK: dict[str, Any] = {}\n", f"TASK: dict[str, Any] = {task!r}\n")


def _script(code: _Code | None, scripts: Path) -> Script | None:
    if code is None:
        return None
    if code.code is not None:
        return code.language, code.code
    try:
        return code.language, (scripts / str(code.file)).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise InputError(
            f"the script {scripts / str(code.file)} cannot be read: {error}: restore the checkout"
        ) from None


def _command(script: Script) -> list[str]:
    language, code = script
    return [*PROGRAMS[language], code]


def _oracle(match: _Match | None, example: Script | None) -> Iterator[JsonObject]:
    """Yield the moves that execute the example and submit what it prints, or the known answer."""
    if match is not None and match.answer is not None:
        yield {"submit": match.answer}
    elif example is not None:
        command = f"{shlex.join(_command(example))} 2>/dev/null"
        yield {"tool_name": "bash", "args": {"command": command}}
        yield {"submit_result": "output"}
