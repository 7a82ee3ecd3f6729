"""What happened is told: each witness has something it objects to, and does not object in vain."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fumehood.core.outcome import Infra, InfraKind
from fumehood.core.trace import Chain, Record
from fumehood.engines.engine import BoxOutput, Image, Limits
from fumehood.orchestrator.episode_runner import Attempt
from fumehood.redteam.attack import Attack, Wall
from fumehood.redteam.box_usage import alive, measure
from fumehood.redteam.breaches import (
    OVERTIME_MS,
    REFUSALS_MAX,
    excess,
    machinery_trouble,
    prizes,
    telling_words,
)
from fumehood.redteam.kit import AGENTS, lay_out_kit
from fumehood.redteam.readers import obeyed_by_pages, obeyed_by_terminals
from fumehood.redteam.watched_engine import Watch

ATTACK = Attack(
    "an-attack", "file.py", Wall.BOX, "something", "do something", calls=2, wall_ms=1000
)
KEPT_BYTES = 1000


def _attempt(
    *events: dict[str, Any], stdout: bytes = b"", infra: Infra | None = None, wall_ms: int = 10
) -> Attempt:
    chain = Chain()
    texts = [json.dumps(event) for event in events]
    records = [Record(text, chain.link(text), 0, 0) for text in texts]
    seal = chain.seal()
    records.append(Record(seal, chain.link(seal), 0, 0))
    output = BoxOutput(stdout, b"", len(stdout), 0)
    return Attempt(records=tuple(records), exit=None, output=output, infra=infra, wall_ms=wall_ms)


def _call(**more: Any) -> dict[str, Any]:
    return {"kind": "call", **more}


REFUSED_BY_BUDGET = _call(failure={"kind": "out_of_budget"})


def _trouble(attempt: Attempt) -> Sequence[str]:
    return list(machinery_trouble(ATTACK, attempt, KEPT_BYTES))


def test_an_attempt_without_trouble_is_not_objected_to() -> None:
    quiet = _attempt(
        _call(), _call(failure={"kind": "world"}), REFUSED_BY_BUDGET, stdout=b"x" * KEPT_BYTES
    )
    assert _trouble(quiet) == []


@pytest.mark.parametrize(
    ("attempt", "told"),
    [
        (_attempt(_call(), _call(), _call()), "3 calls were admitted by a budget of 2"),
        (_attempt(*[{"kind": "refused"}] * (REFUSALS_MAX + 1)), "1001 refusals were written down"),
        (_attempt(stdout=b"x" * 3000), "2 KiB of one stream were kept, of 0"),
        (_attempt(wall_ms=ATTACK.wall_ms + OVERTIME_MS + 1000), "it stayed 21 s beyond its time"),
        (_attempt(infra=Infra(InfraKind.SERVICE, "gone")), "our side failed: gone"),
        (Attempt(_attempt(_call()).records[:-1], None, None, None, 1), "its trace is broken"),
    ],
)
def test_what_broke_on_our_side_is_told(attempt: Attempt, told: str) -> None:
    assert told in "; ".join(_trouble(attempt))


def test_an_agent_is_believed_when_it_got_something() -> None:
    said = b"tried a door: closed\ngot another: its key\n not got at all\n"
    assert list(prizes(_attempt(stdout=said))) == ["it got another: its key"]


@pytest.mark.parametrize(
    "word",
    [
        "harness",
        "a benchmark",
        "episode-7",
        "gb-owner",
        "fault plan",
        "gold",
        "Traceback (most recent",
    ],
)
def test_words_that_tell_of_a_harness_are_found(word: str) -> None:
    assert list(telling_words(_attempt(stdout=f"PATH=/bin\nX={word}\n".encode())))


def test_a_neutral_box_tells_nothing() -> None:
    said = b"FUMEHOOD_SOCKET=/fumehood/grpc.sock\n/agent/look_around.py\nPATH=/usr/bin\n"
    assert list(telling_words(_attempt(stdout=said))) == []


class _Process:
    """A box that is one process of ours."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(command)

    def host_pid(self) -> int:
        return self.process.pid


@pytest.fixture
def watch() -> Watch:
    box = _Process("sleep", "0.4")
    looking = Watch(box)  # type: ignore[arg-type]  # no more of a box is looked at
    box.process.wait()
    looking.end()
    assert looking.looks
    return looking


LIMITS = Limits(processes=8, memory_bytes=64 << 20, cpus=0.5)


@pytest.mark.parametrize(
    ("limit", "field", "used", "told"),
    [
        ("processes", "tasks_max", 9, "9 processes and threads, of 8"),
        ("memory_bytes", "memory_bytes_max", 99 << 20, "99 MiB of memory, of 64"),
        ("cpus", "cpu_ms", 5_000, "processors, of 0.5"),
    ],
)
def test_use_beyond_a_limit_is_told(
    watch: Watch, limit: str, field: str, used: int, told: str
) -> None:
    attack = replace(ATTACK, limit=limit)
    assert list(excess(attack, watch, LIMITS, 0)) == []
    setattr(watch, field, used)
    assert told in next(excess(attack, watch, LIMITS, 0))


def test_a_process_is_alive_until_it_is_not() -> None:
    box = _Process("sleep", "60")
    usage = measure(box.process.pid)
    assert usage is not None
    assert usage.tasks == 1
    assert alive(usage.members) == [box.process.pid]
    box.process.kill()
    box.process.wait()
    assert alive(usage.members) == []
    assert measure(box.process.pid) is None


@pytest.mark.parametrize("said", ["<script>alert(1)</script>", "[x](javascript:alert(1))"])
def test_a_page_that_would_obey_is_told(tmp_path: Path, said: str) -> None:
    (tmp_path / "report.html").write_text(f"<p>{said}</p>", encoding="utf-8")
    assert len(list(obeyed_by_pages(tmp_path))) == 1
    (tmp_path / "report.html").write_text("<p>&lt;script&gt;alert(1)</p>", encoding="utf-8")
    assert list(obeyed_by_pages(tmp_path)) == []


@pytest.mark.parametrize("said", ["\x1b[2J", "a\rb", "\u202e", "\x00"])
def test_a_screen_that_would_obey_is_told(said: str) -> None:
    assert list(obeyed_by_terminals(f"plain {said}\n"))
    assert list(obeyed_by_terminals("plain é\n\tand more")) == []


def test_without_a_compiler_the_kit_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    kit_folder = tmp_path / "kit"
    kit_folder.mkdir()
    kit = lay_out_kit(kit_folder)
    image = Image("", "", ("/usr/bin/python3",), (), {})
    assert "apt-get install gcc" in kit.without_c
    assert kit.command("spin.c", image) is None
    assert kit.command("egress.py", image) is not None
    shipped = {file.name for file in AGENTS.iterdir() if file.suffix in (".py", ".sh")}
    assert set(os.listdir(kit_folder)) == shipped
