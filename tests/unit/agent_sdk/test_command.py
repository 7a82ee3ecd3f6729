"""``python3 -m fumehood_agent run``, as a box starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.agent_sdk.scripted_service import ScriptedService, value


def run(
    service: ScriptedService, folder: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "FUMEHOOD_SOCKET": str(service.path)}
    command = [sys.executable, "-m", "fumehood_agent", "run", *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_runs_a_built_in_agent(service: ScriptedService, tmp_path: Path) -> None:
    done = run(service, tmp_path, "builtin:heuristic")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [each.arguments_json for each in service.received] == ['{"text":"value"}']
    assert len(service.submitted) == 1


def test_replays_a_list_of_calls(service: ScriptedService, tmp_path: Path) -> None:
    calls = [{"tool_name": "echo", "args": {"text": "ψ"}}, {"give_up": "enough"}]
    (tmp_path / "calls.json").write_text(json.dumps(calls))
    done = run(service, tmp_path, "builtin:oracle", "--calls", "calls.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert service.submitted[0].give_up_reason == "enough"


def test_runs_an_agent_of_the_user(service: ScriptedService, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Agent:\n"
        "    def reset(self): self.n = 0\n"
        "    def act(self, observation):\n"
        "        self.n += 1\n"
        "        return {'tool_name': 'echo', 'args': {'n': self.n}} if self.n < 3 else None\n"
    )
    assert run(service, tmp_path, "mine:Agent").returncode == 0
    assert [json.loads(each.arguments_json)["n"] for each in service.received] == [1, 2]
    assert len(service.submitted) == 1


def test_passes_keyword_arguments_to_the_class(service: ScriptedService, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Agent:\n"
        "    def __init__(self, *, words): self.words = words\n"
        "    def run(self, session):\n"
        "        for word in self.words: session.call('echo', {'word': word})\n"
    )
    assert run(service, tmp_path, "mine:Agent", "--arguments", '{"words": ["a", "ψ"]}').stderr == ""
    assert [json.loads(each.arguments_json)["word"] for each in service.received] == ["a", "ψ"]


@pytest.mark.parametrize("last_word", ["", "session.submit('done')", "session.give_up('no')"])
def test_runs_an_agent_that_takes_the_session(
    service: ScriptedService, tmp_path: Path, last_word: str
) -> None:
    (tmp_path / "mine.py").write_text(
        "class Agent:\n"
        "    def run(self, session):\n"
        "        session.call('echo', {})\n"
        f"        {last_word}\n"
    )
    assert run(service, tmp_path, "mine:Agent").returncode == 0
    assert len(service.received) == 1
    assert len(service.submitted) == 1


def test_runs_an_agent_with_coroutines_in_the_asyncio_session(
    service: ScriptedService, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(
        "import asyncio\n"
        "class Agent:\n"
        "    async def run(self, session):\n"
        "        calls = [session.call('echo', {'n': n}) for n in (1, 2)]\n"
        "        await asyncio.gather(*calls)\n"
    )
    done = run(service, tmp_path, "mine:Agent")
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(json.loads(each.arguments_json)["n"] for each in service.received) == [1, 2]
    assert len(service.submitted) == 1


def test_a_coroutine_that_is_never_awaited_is_an_error(
    service: ScriptedService, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(
        "class Agent:\n"
        "    async def work(self): pass\n"
        "    def run(self, session): return self.work()\n"
    )
    done = run(service, tmp_path, "mine:Agent")
    assert done.returncode == 2
    assert "run() returned a coroutine: define it with `async def run`" in done.stderr
    assert service.submitted == []


def test_does_not_submit_once_the_work_has_ended(service: ScriptedService, tmp_path: Path) -> None:
    service.answer = lambda _: value({}, ended=True)
    (tmp_path / "mine.py").write_text(
        "class Agent:\n    def run(self, session): session.call('echo', {})\n"
    )
    assert run(service, tmp_path, "mine:Agent").returncode == 0
    assert service.submitted == []


@pytest.mark.parametrize(
    "source",
    [
        "class Agent:\n    def run(self, session): raise KeyError('my own mistake')\n",
        "class Agent:\n    def __init__(self): raise KeyError('my own mistake')\n",
        "raise KeyError('my own mistake')\n",
    ],
    ids=["working", "being_made", "being_imported"],
)
def test_an_agent_that_raises_leaves_a_traceback_and_no_submission(
    service: ScriptedService, tmp_path: Path, source: str
) -> None:
    (tmp_path / "mine.py").write_text(source)
    done = run(service, tmp_path, "mine:Agent")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "my own mistake" in done.stderr
    assert service.submitted == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ["builtin:nemo"],
            "unknown agent 'nemo'; available: careful, heuristic, instruction_parser,",
        ),
        (["nemo"], "'nemo' is not an agent; expected builtin:NAME or module:Class"),
        (["..:Agent"], "is not an agent"),
        (["nowhere:Agent"], "module 'nowhere' not found"),
        (["json:Agent"], "module 'json' has no class 'Agent'"),
        (["builtin:oracle"], "set its file with --calls"),
        (["builtin:oracle", "--calls", "nowhere.json"], "nowhere.json"),
        (["json:Agent", "--arguments", "[1]"], "--arguments: must be a JSON object"),
    ],
)
def test_an_invalid_command_line_is_answered_with_one_line(
    service: ScriptedService, tmp_path: Path, arguments: list[str], complaint: str
) -> None:
    done = run(service, tmp_path, *arguments)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert service.submitted == []


def test_a_lost_service_has_another_exit_status_than_a_failed_agent(
    service: ScriptedService, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(
        "class Agent:\n"
        "    def run(self, session):\n"
        "        session.call('echo', {})\n"
        "        input()\n"
        "        session.call('echo', {})\n"
    )
    environment = {**os.environ, "FUMEHOOD_SOCKET": str(service.path)}
    command = [sys.executable, "-m", "fumehood_agent", "run", "mine:Agent"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while not service.received and process.poll() is None:
            pass
        service.vanish()
        _, errors = process.communicate("\n", timeout=30)
    assert process.returncode == 3
    assert "connection lost after 1 answered calls" in errors
    assert "Traceback" not in errors
