"""Only the command and its services hold a provider's key; no box, file, log or process list."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply
from tests.architecture.project import ROOT

KEY = f"sk-never-to-be-seen-{secrets.token_hex(16)}"
"""Of this process of tests alone: another one's commands are given keys, too."""
TIMEOUT_S = 120
LOOK = """```python
import os

needle = "{backwards}"[::-1].encode()
found, read, sees = [], 0, False

def look(path):
    global read, sees
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError:
        return
    read += 1
    sees = sees or b"fumehood" in content
    if needle in content:
        found.append(path)

for at, folders, names in os.walk("/"):
    folders[:] = [name for name in folders if os.path.join(at, name) not in {left_out}]
    for name in names:
        if os.path.isfile(os.path.join(at, name)):
            look(os.path.join(at, name))
for process in filter(str.isdigit, os.listdir("/proc")):
    look("/proc/" + process + "/cmdline")
    look("/proc/" + process + "/environ")
if needle in repr(sorted(os.environ.items())).encode():
    found.append("its variables")
print("read", read, "sees", sees, "found", sorted(found))
```"""
"""Code of the model that the scaffold runs. It contains the key reversed, so that it cannot find
itself."""

SYSTEM = {"/proc", "/sys", "/dev"}
HOST = {"/bin", "/lib", "/lib64", "/opt", "/sbin", "/usr"}
"""What a box without an image shows of the host's programs."""
OTHER = {entry.path for entry in os.scandir("/") if entry.is_dir()} - SYSTEM
LEFT_OUT = {"process": SYSTEM | OTHER, "bubblewrap": SYSTEM | HOST, "docker": SYSTEM}


@dataclass
class Spy:
    """A model that makes its agent search for the key and searches from outside meanwhile."""

    engine: str
    messages: list[str] = field(default_factory=list)
    """What the agent printed."""
    holders: set[int] = field(default_factory=set)
    """Processes of this machine with the key in their command line or environment."""
    boxes: str = ""
    """All that the container engine tells of its containers."""

    def __call__(self, asked: AskedOfModel) -> ScriptedReply:
        # Twice, because a process that is just being started still has its parent's memory.
        self.holders |= set(_holders()) & set(_holders())
        last = str(asked.request["messages"][-1]["content"])
        if last.startswith("Printed:"):
            self.messages.append(last)
            return ScriptedReply(text="I have looked.")
        if self.engine == "docker":
            self.boxes += _containers()
        return ScriptedReply(text=LOOK.format(backwards=KEY[::-1], left_out=LEFT_OUT[self.engine]))


def _holders() -> Iterator[int]:
    for folder in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            try:
                content = (folder / name).read_bytes()
            except OSError:
                continue
            if KEY.encode() in content:
                yield int(folder.name)


def _containers() -> str:
    names = subprocess.run(
        ["docker", "ps", "-q"], capture_output=True, text=True, check=True
    ).stdout.split()
    messages = subprocess.run(
        ["docker", "inspect", *names], capture_output=True, text=True, check=False
    )
    return messages.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine",
    [
        "process",
        pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
        pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.image]),
    ],
)
def test_the_key_is_nowhere(tmp_path: Path, engine: str) -> None:
    spy, run = Spy(engine), tmp_path / "run"
    tasks = tmp_path / "tasks.jsonl"
    sample = ROOT / "runner" / "fumehood" / "benchmarks" / "sample" / "tasks.jsonl"
    tasks.write_text(sample.read_text().splitlines(keepends=True)[0])
    with ScriptedModels(spy) as provider:
        entry = {"name": "scripted", "address": provider.address, "key_env": "SCRIPTED_KEY"}
        config = tmp_path / "models.yaml"
        models = {"mode": "record", "providers": [entry], "probe": False}
        config.write_text(yaml.safe_dump({"models": models}))
        words = [
            str(tasks),
            "-a",
            "code",
            "--model",
            "m1",
            "--config",
            str(config),
            "--engine",
            engine,
        ]
        command = subprocess.Popen(
            [sys.executable, "-m", "fumehood", "run", *words, "--out", str(run)],
            cwd=ROOT,
            env={**os.environ, "SCRIPTED_KEY": KEY},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        printed, _ = command.communicate(timeout=TIMEOUT_S)
        asked = list(provider.asked)
    assert command.returncode == 0, printed.decode()
    assert {each.headers["authorization"] for each in asked} == {f"Bearer {KEY}"}, (
        "the provider has it"
    )

    (messages,) = spy.messages
    (read, sees, found) = re.findall(r"read (\d+) sees (\w+) found \[(.*)\]", messages)[0]
    assert int(read) > (3 if engine == "process" else 20)
    assert sees == "True", "the search finds values that exist"
    # Without a box an agent can read the environment of the process that started it.
    own = f"'/proc/{command.pid}/environ'"
    assert found in (["", own] if engine == "process" else [""])
    assert spy.holders == {command.pid}, "the command itself was given it in its environment"
    assert KEY not in spy.boxes
    assert (engine == "docker") == bool(spy.boxes)
    assert KEY.encode() not in printed
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.parent.name for path in written} >= {"bodies", "episodes", "run"}, (
        "a cassette, too"
    )
    assert [path for path in written if KEY.encode() in path.read_bytes()] == []
