"""The checks of the probe: each reports its kind of breach, and nothing for a clean attempt."""

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
from fumehood.redteam.agent_folder import AGENTS, fill_agent_folder
from fumehood.redteam.attacks import Attack, Boundary
from fumehood.redteam.box_usage import Watch, alive, measure
from fumehood.redteam.breaches import (
    OVERTIME_MS,
    REFUSALS_MAX,
    excess,
    infrastructure_damage,
    revealing_words_in,
    successes_in,
)
from fumehood.redteam.record_checks import active_markup, control_characters

ATTACK = Attack(
    "an-attack", "file.py", Boundary.BOX, "something", "do something", calls=2, wall_ms=1000
)
KEPT_BYTES = 1000


def _attempt(
    *events: dict[str, Any], stdout: bytes = b"", infra: Infra | None = None, wall_ms: int = 10
) -> Attempt:
    chain = Chain()
    texts = [json.dumps(event) for event in events]
    records = [Record(text, chain.link(text), 0, 0) for text in texts]
    seal = chain.end_record()
    records.append(Record(seal, chain.link(seal), 0, 0))
    output = BoxOutput(stdout, b"", len(stdout), 0)
    return Attempt(records=tuple(records), exit=None, output=output, infra=infra, wall_ms=wall_ms)


def _call(**more: Any) -> dict[str, Any]:
    return {"kind": "call", **more}


REFUSED_BY_BUDGET = _call(failure={"kind": "out_of_budget"})


def _damage(attempt: Attempt) -> Sequence[str]:
    return list(infrastructure_damage(ATTACK, attempt, KEPT_BYTES))


def test_a_clean_attempt_has_no_breach() -> None:
    quiet = _attempt(
        _call(), _call(failure={"kind": "world"}), REFUSED_BY_BUDGET, stdout=b"x" * KEPT_BYTES
    )
    assert _damage(quiet) == []


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (_attempt(_call(), _call(), _call()), "3 calls were admitted by a budget of 2"),
        (
            _attempt(*[{"kind": "refused"}] * (REFUSALS_MAX + 1)),
            "1001 refusals were written to the trace",
        ),
        (_attempt(stdout=b"x" * 3000), "2 KiB of one stream were kept, of 0"),
        (_attempt(wall_ms=ATTACK.wall_ms + OVERTIME_MS + 1000), "it stayed 21 s beyond its time"),
        (_attempt(infra=Infra(InfraKind.SERVICE, "gone")), "the infrastructure failed: gone"),
        (Attempt(_attempt(_call()).records[:-1], None, None, None, 1), "its trace is broken"),
    ],
)
def test_damage_outside_the_box_is_reported(attempt: Attempt, message: str) -> None:
    assert message in "; ".join(_damage(attempt))


def test_a_reported_success_counts() -> None:
    text = b"tried a file: closed\ngot another: its key\n not got at all\n"
    assert list(successes_in(text)) == ["it got another: its key"]


@pytest.mark.parametrize(
    "word",
    [
        "harness",
        "a benchmark",
        "episode-7",
        "fh-owner",
        "fault plan",
        "gold",
        "Traceback (most recent",
        "/usr/lib/python3/site-packages/fumehood/version.py",
        "fumehood.service.host",
        "/opt/fumehood/wire/convert.py",
    ],
)
def test_words_that_reveal_the_harness_are_found(word: str) -> None:
    assert list(revealing_words_in(f"PATH=/bin\nX={word}\n".encode()))


def test_a_neutral_environment_reveals_nothing() -> None:
    text = b"FUMEHOOD_SOCKET=/fumehood/grpc.sock\n/agent/look_around.py\nPATH=/usr/bin\n"
    text += b"/fumehood/bin/fumehood fumehood.v1.ToolService site-packages/fumehood_agent/wire.py\n"
    assert list(revealing_words_in(text)) == []


class _Process:
    """A box that is one child process."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(command)

    def host_pid(self) -> int:
        return self.process.pid


@pytest.fixture
def watch() -> Watch:
    box = _Process("sleep", "0.4")
    running = Watch(box)  # type: ignore[arg-type]  # only this part of a box is used
    box.process.wait()
    running.end()
    assert running.measurements
    return running


LIMITS = Limits(processes=8, memory_bytes=64 << 20, cpus=0.5)


@pytest.mark.parametrize(
    ("limit", "field", "used", "message"),
    [
        ("processes", "tasks_max", 9, "9 processes and threads, of 8"),
        ("memory_bytes", "memory_bytes_max", 99 << 20, "99 MiB of memory, of 64"),
        ("cpus", "cpu_ms", 5_000, "processors, of 0.5"),
    ],
)
def test_usage_above_a_limit_is_reported(
    watch: Watch, limit: str, field: str, used: int, message: str
) -> None:
    attack = replace(ATTACK, limit=limit)
    assert list(excess(attack, watch, LIMITS, 0)) == []
    setattr(watch, field, used)
    assert message in next(excess(attack, watch, LIMITS, 0))


def test_an_ended_process_is_not_alive() -> None:
    box = _Process("sleep", "60")
    usage = measure(box.process.pid)
    assert usage is not None
    assert usage.tasks == 1
    assert alive(usage.members) == [box.process.pid]
    box.process.kill()
    box.process.wait()
    assert alive(usage.members) == []
    assert measure(box.process.pid) is None


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "[x](javascript:alert(1))"])
def test_active_markup_in_a_page_is_reported(tmp_path: Path, text: str) -> None:
    (tmp_path / "report.html").write_text(f"<p>{text}</p>", encoding="utf-8")
    assert len(list(active_markup(tmp_path))) == 1
    (tmp_path / "report.html").write_text("<p>&lt;script&gt;alert(1)</p>", encoding="utf-8")
    assert list(active_markup(tmp_path)) == []


@pytest.mark.parametrize("text", ["\x1b[2J", "a\rb", "\u202e", "\x00"])
def test_control_characters_on_the_terminal_are_reported(text: str) -> None:
    assert list(control_characters(f"plain {text}\n"))
    assert list(control_characters("plain é\n\tand more")) == []


def test_without_a_compiler_the_agents_in_c_are_missing_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    agent_folder = tmp_path / "agents"
    agent_folder.mkdir()
    agents = fill_agent_folder(agent_folder)
    image = Image("", "", ("/usr/bin/python3",), (), {})
    assert "apt-get install gcc" in agents.missing_c
    assert agents.command("spin.c", image) is None
    assert agents.command("egress.py", image) is not None
    shipped = {file.name for file in AGENTS.iterdir() if file.suffix in (".py", ".sh")}
    assert set(os.listdir(agent_folder)) == shipped
