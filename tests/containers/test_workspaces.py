"""Workspaces in boxes: only the box of the verifier decides the reward."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from docker import APIClient

from fumehood.engines.ownership import RUN
from fumehood.engines.records import FolderRecords
from fumehood.engines.state_folder import disk_folder
from tests.architecture.project import ROOT
from tests.parts.commands import fumehood, fumehood_json, run_fumehood
from tests.parts.workspaces import write_steps

TASKS = ROOT / "examples" / "workspaces"
NAME = "fix-the-average"
pytestmark = [pytest.mark.docker, pytest.mark.slow]
ENGINES = ["docker", pytest.param("oci", marks=pytest.mark.oci)]
"""Docker builds the images of both."""

FORGE_REWARD = """
mkdir -p /logs/verifier /logs/artifacts
for folder in /logs/verifier /logs/artifacts /tests; do
    mkdir -p $folder; echo 1 > $folder/reward.txt; echo '{"reward": 1}' > $folder/reward.json
done
"""
FORGED_RUNNER = r"""
passes='import sys; open("/logs/verifier/reward.txt", "w").write("1"); sys.exit(0)'
echo "$passes" > /app/conftest.py
echo "$passes" > /app/pytest.py
mkdir -p /app/pytest /app/_pytest /tests
echo "$passes" | tee /app/pytest/__main__.py /app/_pytest/__init__.py
printf '[pytest]\naddopts = --co -q\n' | tee /app/pytest.ini /app/tox.ini /pytest.ini
for program in /usr/bin/python3 /usr/bin/python3.11 /bin/bash; do
    printf '#!/bin/sh\nmkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt\n' > /tmp/fake
    chmod +x /tmp/fake; cp /tmp/fake $program 2>/dev/null || mv /tmp/fake $program
done
"""
FORGED_PATH = r"""
for folder in /usr/local/bin /usr/local/sbin /app; do
    printf '#!/bin/sh\nexit 0\n' > $folder/python3
    chmod +x $folder/python3; cp $folder/python3 $folder/pytest
done
echo 'export PATH=/app:$PATH BASH_ENV=/app/evil.sh PYTHONPATH=/app' | tee -a /etc/profile \
    /etc/environment ~/.bashrc ~/.profile /etc/bash.bashrc /app/.env
echo 'echo 1 > /logs/verifier/reward.txt; exit 0' > /app/evil.sh
"""
FORGED_DEPENDENCIES = r"""
evil='import os, pathlib; pathlib.Path("/logs/verifier/reward.txt").write_text("1"); os._exit(0)'
for folder in $(python3 -c 'import sys; print(*[path for path in sys.path if path])'); do
    [ -d $folder ] && for name in sitecustomize usercustomize subprocess pytest; do
        echo "$evil" > $folder/$name.py
    done; echo "$evil" > $folder/evil.pth
done
echo "$evil" | tee /app/subprocess.py /app/sitecustomize.py /app/evil.pth
"""
FORGED_BY_DAEMON = """
setsid nohup bash -c 'while :; do
    mkdir -p /logs/verifier /tests; echo 1 > /logs/verifier/new; echo exit 0 > /tests/test.sh
    mv /logs/verifier/new /logs/verifier/reward.txt
done' >/dev/null 2>&1 &
"""
FORGED_BY_LINKS = """
mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt
ln -sf /logs/verifier/reward.txt /app/average.py
ln -s / /app/everything; ln /logs/verifier/reward.txt /app/hard; mkfifo /app/pipe
"""
FORGED_BY_REPLACED_FOLDER = (
    "cd /; rm -rf /app /logs /tests; ln -s /tests /app; ln -s /proc/self/root /logs"
)
# A program of the agent that the tests execute starts a daemon and fails.
FORGED_BY_PROGRAM = r"""
cat > /app/program.py <<'END'
import os, sys, time
if os.fork() == 0:
    os.setsid()
    os.closerange(0, 3)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            new = f"/logs/verifier/{os.getpid()}"
            with open(new, "w") as file: file.write("1")
            os.replace(new, "/logs/verifier/reward.txt")
        except OSError: pass
        time.sleep(0.0005)
    os._exit(0)
sys.exit(1)
END
"""
FORGED_BY_NOTES = FORGED_BY_PROGRAM + "cp /app/program.py /app/notes.py"
FORGED_BY_GIT = (
    FORGED_BY_PROGRAM
    + "cd /app/repository; cp /app/program.py .git/program.py\n"
    + "git config core.fsmonitor 'python3 /app/repository/.git/program.py; false'"
)
# The image of this task has the working folder on Python's path, as after pip install --editable.
FORGED_BY_ENTRY_POINT = r"""
mkdir /app/evil-1.0.dist-info
printf 'Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n' > /app/evil-1.0.dist-info/METADATA
printf '[pytest11]\nevil = plugin\n' > /app/evil-1.0.dist-info/entry_points.txt
echo 'import os; open("/logs/verifier/reward.txt", "w").write("1"); os._exit(0)' > /app/plugin.py
"""
EDITABLE = """
RUN echo /app > "$(python3 -c 'import site; print(site.getsitepackages()[0])')/app.pth"
"""
SUICIDE = "kill -9 -1"
FULL_DISK = "head -c 400M /dev/zero > /app/big; head -c 400M /dev/zero > /big; sleep 30"
OPEN_DELETED_FILES = """exec python3 -c 'import os, time
files = []
for number in range(8):
    files.append(open("/app/x", "wb", buffering=0)); os.unlink("/app/x")
    files[-1].write(bytes(100 << 20))
time.sleep(60)'
"""
LONG_PATHS = """python3 -c 'import os
os.chdir("/app")
for depth in range(40): os.mkdir("d" * 200); os.chdir("d" * 200)'
"""
LONG_PATHS_AND_FULL_DISK = LONG_PATHS + FULL_DISK
NAMES = """exec python3 -c 'import os
for name in (b"\\xff\\xfe.py", b"new\\nline=1", b"-rf", b"a" * 255):
    open(b"/app/" + name, "w").close()'
"""
FORGERIES = {
    "deleted": OPEN_DELETED_FILES,
    "long": LONG_PATHS,
    "long-and-full": LONG_PATHS_AND_FULL_DISK,
    "names": NAMES,
    "reward": FORGE_REWARD,
    "runner": FORGED_RUNNER,
    "path": FORGED_PATH,
    "dependencies": FORGED_DEPENDENCIES,
    "daemon": FORGED_BY_DAEMON,
    "links": FORGED_BY_LINKS,
    "folder": FORGED_BY_REPLACED_FOLDER,
    "suicide": SUICIDE,
    "disk": FULL_DISK,
    "notes": FORGED_BY_NOTES,
    "git": FORGED_BY_GIT,
    "entry-point": FORGED_BY_ENTRY_POINT,
}
FORGED_TASKS = {"notes": "close-the-injection", "git": "restore-the-commit"}
"""Tasks of the forgeries that attack another task than `NAME`."""


LIVE_SERVICE = """#!/bin/bash
cd /app && echo alive > page && (setsid python3 -m http.server 8000 &) && sleep 1
"""
TESTS_OF_SERVICE = """#!/bin/bash
curl -s http://127.0.0.1:8000/page | grep -q alive && grep -q collected /app/collected
echo $((1 - $?)) > /logs/verifier/reward.txt
head -c 17000000 /dev/zero | tr '\\0' x
printf '\\nthe end of a long output\\n'
"""
SERVER = """import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"42\\n")
http.server.HTTPServer(("0.0.0.0", 8000), Handler).serve_forever()
"""
COMPOSE = """services:
  main:
    environment: {PLACE: "${PLACE:-/app/number}"}
    depends_on:
      api: {condition: service_healthy}
  api:
    build: ./api
    expose: ["8000"]
    healthcheck:
      test: ["CMD", "python3", "-c", "import urllib.request as r; r.urlopen('http://api:PORT')"]
      interval: 500ms
      timeout: 10s
      retries: 10
"""
ASK_SERVICE = """#!/bin/bash
curl -s http://api:8000/ > "$PLACE"
cut -s -d: -f1 /proc/net/dev; cat /proc/[0-9]*/cmdline 2>/dev/null | grep -ac "[s]erver.py"
ls /srv/server.py >/dev/null 2>&1 || echo no file
(echo > /dev/tcp/192.0.2.1/80) 2>&1 | grep -o unreachable | sort -u
"""
PREPARE = """#!/bin/bash
cd /app && mkdir -p made/.git && echo made > made/file && chmod 700 made/file && rm average.py
echo made > .git && ln -s /etc/passwd link && mkfifo pipe
"""
TESTS_OF_PREPARED = """#!/bin/bash
cd /app && [ "$(cat made/file)" = made ] && [ -x made/file ] && [ ! -e average.py ] && [ ! -e link ]
echo $((1 - $?)) > /logs/verifier/reward.txt
"""
FORGED_IN_SHARED_MODE = ("dependencies", "entry-point", "path", "runner")
"""Forgeries that always succeed if the tests run in the workspace, as in Harbor's default mode."""
NOT_FORGED = "reward"
"""Harbor deletes earlier rewards."""


def forging_tasks(folder: Path) -> Path:
    for name, script in FORGERIES.items():
        shutil.copytree(TASKS / FORGED_TASKS.get(name, NAME), folder / name)
        solution = folder / name / "solution" / "solve.sh"
        solution.write_text(f"#!/bin/bash\n{script}", encoding="utf-8")
    with (folder / "entry-point" / "environment" / "Dockerfile").open("a") as dockerfile:
        dockerfile.write(EDITABLE)
    return folder


def rows(run: Path) -> dict[str, Any]:
    lines = (run / "episodes.jsonl").read_text("utf-8").splitlines()
    return {row["task"]: row for row in map(json.loads, lines)}


def run_tasks(out: Path, suite: str, *agents: str, status: int = 0, engine: str = "docker") -> Any:
    words = [word for agent in agents for word in ((agent,) if agent[0] == "-" else ("-a", agent))]
    return fumehood_json(
        *("run", f"harbor:{suite}", "--engine", engine, "--out", str(out), "--json"),
        *words,
        status=status,
        timeout_s=1200,
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_each_solution_succeeds_and_noop_fails(engine: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run_tasks(run, str(TASKS), "oracle", "noop", engine=engine)
    episodes = [json.loads(line) for line in (run / "episodes.jsonl").read_text().splitlines()]
    for row in episodes:
        assert row["success"] is (row["agent"] == "oracle"), row
        assert row["metrics"]["reward"] == (1.0 if row["agent"] == "oracle" else 0.0)
    assert len(episodes) == 2 * len(list(TASKS.glob("*/task.toml")))


def test_a_run_is_shown_scored_and_replayed_with_its_first_difference(tmp_path: Path) -> None:
    run = tmp_path / "a run"
    run_tasks(run, f"{TASKS}:{NAME},restore-the-commit", "oracle", "noop")
    replayed = fumehood_json("replay", str(run), "--json", status=1, timeout_s=1200)
    # A commit of Git contains its time.
    (different,) = replayed["differences"]
    assert (different["episode"], different["call"]) == ("oracle/restore-the-commit/0", 2)
    assert replayed["identical"] == 3
    assert "100.0%" in fumehood("score", str(run))
    shown = fumehood("show", str(run), f"oracle/{NAME}")
    assert "changed /app/average.py" in shown
    assert "verifier: reward 1 (1 file of the workspace" in shown
    manifest = json.loads((run / "run.json").read_text("utf-8"))
    assert manifest["workspaces"]["images"][NAME]["workspace"].startswith("sha256:")


@pytest.mark.parametrize("engine", ENGINES)
def test_workspace_and_verifier_have_terminals_unless_the_task_needs_none(
    engine: str, tmp_path: Path
) -> None:
    opens = "(exec 3<>/dev/ptmx) 2>/dev/null"
    for name in ("with", "without"):
        task = tmp_path / "tasks" / name
        shutil.copytree(TASKS / NAME, task)
        (task / "solution" / "solve.sh").write_text(f"{opens} && touch /app/opened; true\n")
        test = f"! test -e /app/opened && ! {opens} || {{ test -e /app/opened && {opens}; }}"
        (task / "tests" / "test.sh").write_text(
            f"test -e /app/opened && {opens}; echo $((1 - $?)) > /logs/verifier/reward.txt\n"
            f"{test} || echo 2 > /logs/verifier/reward.txt\n"
        )
        if name == "with":
            config = (task / "task.toml").read_text("utf-8")
            (task / "task.toml").write_text(config.replace("terminals = false\n", ""))
    run = tmp_path / "run"
    run_tasks(run, str(tmp_path / "tasks"), "oracle", engine=engine)
    rows = [json.loads(line) for line in (run / "episodes.jsonl").read_text().splitlines()]
    assert {row["task"]: row["metrics"]["reward"] for row in rows} == {"with": 1.0, "without": 0.0}
    manifest = json.loads((run / "run.json").read_text("utf-8"))
    assert manifest["workspaces"]["terminals"] == ["with"]


@pytest.mark.release
def test_the_same_calls_give_the_same_states_on_every_engine(tmp_path: Path) -> None:
    # A commit of Git contains its time.
    names = [path.parent.name for path in sorted(TASKS.glob("*/task.toml"))]
    suite = f"{TASKS}:{','.join(name for name in names if name != 'restore-the-commit')}"
    digests = []
    for engine in ("docker", "oci"):
        run = tmp_path / engine
        run_tasks(run, suite, "oracle", engine=engine)
        digests.append({name: row["trace_digest"] for name, row in rows(run).items()})
    assert digests[0] == digests[1]


@pytest.mark.parametrize("engine", ENGINES)
def test_no_forged_reward_counts_and_nothing_is_left(
    engine: str, tmp_path: Path, daemon: APIClient
) -> None:
    run = tmp_path / "run"
    run_tasks(run, str(forging_tasks(tmp_path / "forged")), "oracle", engine=engine)
    for name, row in rows(run).items():
        assert row["success"] is False, (name, row)
        assert not str(row["outcome"]).startswith("infra"), (name, row)
    assert set(rows(run)) == set(FORGERIES)
    label = json.loads((run / "run.json").read_text("utf-8"))["run"]
    assert not daemon.containers(all=True, filters={"label": f"fumehood.run={label}"})
    assert not FolderRecords().lost(lambda labels: labels.get(RUN) != label)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_program_of_the_agent_cannot_fill_the_disk_from_the_verifier(
    engine: str, tmp_path: Path
) -> None:
    task = tmp_path / NAME
    shutil.copytree(TASKS / NAME, task)
    fill = 'head -c 400M /dev/zero > "$1"; head -c 400M /dev/zero > "$1.more"; sleep 60'
    (task / "solution" / "solve.sh").write_text(f"#!/bin/bash\necho '{fill}' > /app/fill")
    tests = "#!/bin/bash\necho 1 > /logs/verifier/reward.txt; bash /app/fill /app/big\n"
    (task / "tests" / "test.sh").write_text(tests)
    run_tasks(tmp_path / "run", str(task), "oracle", engine=engine)
    (row,) = rows(tmp_path / "run").values()
    assert row["success"] is False
    assert "the verifier wrote" in row["metrics"]["verifier"]["problem"]


@pytest.mark.parametrize("engine", ENGINES)
def test_tests_inside_the_workspace_show_what_an_agent_can_forge(
    engine: str, tmp_path: Path, daemon: APIClient
) -> None:
    run, tasks = tmp_path / "run", forging_tasks(tmp_path / "forged")
    shutil.copytree(TASKS / NAME, tasks / NAME)
    chosen = ",".join((*FORGED_IN_SHARED_MODE, NOT_FORGED, NAME))
    run_tasks(run, f"{tasks}:{chosen}", "oracle", "--shared-score", engine=engine)
    both = {
        name: (row["metrics"]["reward"], row["metrics"]["forgeable_reward"])
        for name, row in rows(run).items()
    }
    forged = dict.fromkeys(FORGED_IN_SHARED_MODE, (0.0, 1.0))
    assert both == {**forged, NOT_FORGED: (0.0, 0.0), NAME: (1.0, 1.0)}
    (agent,) = fumehood_json("score", str(run), "--json")["agents"]
    assert agent["success_rate"] == pytest.approx(1 / len(both))
    assert agent["forgeable_reward"] == pytest.approx((len(both) - 1) / len(both))
    assert agent["forgeable_difference"] == pytest.approx(len(forged) / len(both))
    assert "shared mode (forgeable)" in fumehood("score", str(run))
    shown = fumehood("show", str(run), "oracle/path")
    assert "tests in the workspace: reward 1 (shared, forgeable; difference +1)" in shown
    fumehood("report", str(run), "--out", str(tmp_path / "report"))
    assert "Forgeable difference" in (tmp_path / "report" / "report.md").read_text("utf-8")
    label = json.loads((run / "run.json").read_text("utf-8"))["run"]
    assert not daemon.containers(all=True, filters={"label": f"fumehood.run={label}"})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shared", [(), ("--shared-score",)], ids=["verifier", "shared-score"])
def test_a_trial_starts_from_a_kept_workspace(
    engine: str, shared: tuple[str, ...], tmp_path: Path
) -> None:
    task = tmp_path / "set" / NAME
    shutil.copytree(TASKS / NAME, task)
    (task / "solution" / "solve.sh").write_text(PREPARE, encoding="utf-8")
    (task / "tests" / "test.sh").write_text(TESTS_OF_PREPARED, encoding="utf-8")
    kept = tmp_path / "kept"
    run_tasks(
        tmp_path / "prepared",
        str(task),
        *("oracle", "noop", *shared, f"--keep-workspaces={kept}"),
        engine=engine,
    )
    checkpoint = kept / "oracle" / f"{NAME}.0.tar"
    with tarfile.open(checkpoint) as archive:
        assert {"app/.wh.average.py", "app/made/file", "app/.git"} <= {*archive.getnames()}
        assert all(entry.isreg() or entry.isdir() for entry in archive)
    shown = fumehood("show", str(tmp_path / "prepared"), "oracle")
    digest = sha256(checkpoint.read_bytes()).hexdigest()
    assert f"kept workspace: sha256:{digest}" in shown
    run = tmp_path / "run"
    run_tasks(run, str(task), "noop", *shared, f"--from-workspace={checkpoint}", engine=engine)
    (row,) = rows(run).values()
    assert row["metrics"]["reward"] == 1.0
    assert row["metrics"].get("forgeable_reward", 1.0) == 1.0
    manifest = json.loads((run / "run.json").read_text("utf-8"))
    assert manifest["workspaces"]["checkpoints"] == {NAME: digest}
    assert fumehood_json("replay", str(run), "--json", timeout_s=1200)["identical"] == 1
    refused = run_fumehood("compare", str(tmp_path / "prepared"), str(run))
    assert "1 belong to tasks that have the same name but differ" in refused.stderr
    checkpoint.write_bytes((kept / "noop" / f"{NAME}.0.tar").read_bytes())
    fumehood("replay", str(run), status=2)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_task_with_a_live_service_runs_as_shared_and_is_counted(
    engine: str, tmp_path: Path
) -> None:
    shutil.copytree(TASKS / NAME, tmp_path / "set" / NAME)
    task = tmp_path / "set" / NAME
    (task / "solution" / "solve.sh").write_text(LIVE_SERVICE, encoding="utf-8")
    (task / "tests" / "test.sh").write_text(TESTS_OF_SERVICE, encoding="utf-8")
    with (task / "task.toml").open("a") as file:
        file.write('[[verifier.collect]]\ncommand = "echo collected > /app/collected"\n')
    run = tmp_path / "run"
    run_tasks(run, f"shared:{tmp_path / 'set'}", "oracle", "noop", engine=engine)
    lines = map(json.loads, (run / "episodes.jsonl").read_text("utf-8").splitlines())
    found = {row["agent"]: row["metrics"] for row in lines}
    assert {agent: metrics["reward"] for agent, metrics in found.items()} == {
        "oracle": 1.0,
        "noop": 0.0,
    }
    assert {metrics["verification"] for metrics in found.values()} == {"shared, forgeable"}
    agents = fumehood_json("score", str(run), "--json")["agents"]
    assert [agent["scored_shared"] for agent in agents] == [1, 1]
    assert "shared, forgeable" in fumehood("score", str(run))
    assert "2 of them shared, forgeable" in fumehood("show", str(run))
    shown = fumehood("show", str(run), "oracle")
    assert "verifier: reward 1 (shared, forgeable)" in shown
    assert "the end of a long output" in shown
    fumehood("export", str(run), "--to", "harbor", "--out", str(tmp_path / "harbor"))
    fumehood("export", str(run), "--to", "junit", "--out", str(tmp_path / "junit"))
    assert (tmp_path / "junit" / "junit.xml").read_text().count('value="shared, forgeable"') == 2
    exported = [json.loads(file.read_text()) for file in tmp_path.glob("harbor/*/result.json")]
    assert [one["verifier_environment_mode"] for one in exported] == ["shared", "shared"]


def agent_inside(folder: Path, script: str) -> str:
    folder.mkdir()
    (folder / "Dockerfile").write_text(
        "ARG FUMEHOOD_WORKSPACE\nFROM ${FUMEHOOD_WORKSPACE}\nCOPY agent.sh /opt/\n"
        'CMD ["bash", "/opt/agent.sh"]\n',
        encoding="utf-8",
    )
    submit = "/fumehood/bin/fumehood submit done\n"
    (folder / "agent.sh").write_text(f"{script}\n{submit}", encoding="utf-8")
    return str(folder)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("RUN rm -rf /app && ln -s /proc/self/fd/4 /app", "/app"),
        ("RUN rm -rf /app && touch /app", "/app"),
        ("RUN mv /app /app2 && ln -s /app2 /app", "leave the working folder"),
        ("VOLUME /data", "remove the VOLUME /data"),
    ],
)
def test_an_image_that_changes_the_places_of_a_workspace_is_refused(
    engine: str, line: str, reason: str, tmp_path: Path
) -> None:
    agent = agent_inside(tmp_path / "agent", "true")
    with (tmp_path / "agent" / "Dockerfile").open("a", encoding="utf-8") as dockerfile:
        dockerfile.write(f"{line}\n")
    command = [sys.executable, "-m", "fumehood", "run", f"harbor:{TASKS}:{NAME}", "-a", agent]
    command += ["--engine", engine, "--out", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 2, done.stderr
    assert reason in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_agent_inside_its_workspace_is_scored_in_another_box(
    engine: str, tmp_path: Path, daemon: APIClient
) -> None:
    solution = (TASKS / NAME / "solution" / "solve.sh").read_text("utf-8")
    looks = "id -u; pwd; grep -o '[a-z0-9]*:' /proc/net/dev\n"
    looks += "ls -d /tests /solution 2>&1 | grep -c cannot\n"
    agents = {
        "solver": looks + "/fumehood/bin/fumehood tools\n" + solution,
        "forger": FORGED_BY_DAEMON + FORGED_DEPENDENCIES + FORGED_PATH,
        "full": FULL_DISK,
        "long": LONG_PATHS,
    }
    folders = [agent_inside(tmp_path / name, script) for name, script in agents.items()]
    run = tmp_path / "run"
    # The agent that fills the disk is killed, which counts as a crash.
    run_tasks(run, f"{TASKS}:{NAME}", *folders, "oracle", status=2, engine=engine)
    lines = map(json.loads, (run / "episodes.jsonl").read_text("utf-8").splitlines())
    found = {row["agent"]: row for row in lines}
    rewards = {"solver": 1.0, "forger": 0.0, "full": 0.0, "long": 0.0, "oracle": 1.0}
    assert {name: row["metrics"]["reward"] for name, row in found.items()} == rewards
    assert found["solver"]["metrics"]["agent_box"] == "shared"
    assert found["solver"]["metrics"]["verifier"]["changed"] == ["/app/average.py"]
    assert "agent_box" not in found["oracle"]["metrics"]
    printed = (run / "output" / "solver" / f"{NAME}.0.stdout").read_text("utf-8")
    assert printed.splitlines()[:5] == ["0", "/app", "lo:", "2", "[]"]
    assert "wrote" in found["full"]["metrics"]["verifier"]["problem"]
    assert "the agent ran inside the workspace (shared)" in fumehood("show", str(run), "solver")
    assert "shared box" in fumehood("score", str(run), status=2)
    facts = json.loads((run / "run.json").read_text("utf-8"))
    assert [agent.get("in_workspace", False) for agent in facts["agents"]] == [*[True] * 4, False]
    replayed = fumehood_json("replay", str(run), "--episode", "solver", "--json", timeout_s=600)
    assert replayed["identical"] == 1
    assert not daemon.containers(all=True, filters={"label": f"fumehood.run={facts['run']}"})


def task_with_service(folder: Path, port: int) -> Path:
    """A task whose workspace must ask a service for a number; it listens at 8000."""
    task = folder / "ask-the-service"
    shutil.copytree(TASKS / NAME, task)
    api = task / "environment" / "api"
    api.mkdir()
    (api / "server.py").write_text(SERVER, encoding="utf-8")
    (api / "Dockerfile").write_text(
        "FROM python:3.12-slim\nWORKDIR /srv\nCOPY server.py .\nCMD python3 server.py\n",
        encoding="utf-8",
    )
    compose = task / "environment" / "docker-compose.yaml"
    compose.write_text(COMPOSE.replace("PORT", str(port)), encoding="utf-8")
    (task / "solution" / "solve.sh").write_text(ASK_SERVICE, encoding="utf-8")
    (task / "tests" / "test.sh").write_text(
        '#!/bin/bash\n[ "$(cat /app/number)" = 42 ]\n'
        "echo $((1 - $?)) > /logs/verifier/reward.txt\n",
        encoding="utf-8",
    )
    return task


@pytest.mark.parametrize("engine", ENGINES)
def test_a_workspace_reaches_the_service_of_its_task_and_nothing_else(
    engine: str, tmp_path: Path, daemon: APIClient
) -> None:
    run = tmp_path / "run"
    task = task_with_service(tmp_path / "set", 8000)
    run_tasks(run, str(task), "oracle", "noop", engine=engine)
    lines = map(json.loads, (run / "episodes.jsonl").read_text("utf-8").splitlines())
    rewards = {row["agent"]: row["metrics"]["reward"] for row in lines}
    assert rewards == {"oracle": 1.0, "noop": 0.0}
    events = fumehood_json("show", str(run), "oracle", "--json")["events"]
    (called,) = (event for event in events if event.get("tool") == "bash")
    printed = called["output"]["output"].split()
    # Neither processes nor files of the service are in the workspace.
    assert printed == ["lo", "0", "no", "file", "unreachable"]
    assert fumehood_json("replay", str(run), "--json", timeout_s=600)["identical"] == 2
    label = json.loads((run / "run.json").read_text("utf-8"))["run"]
    assert not daemon.containers(all=True, filters={"label": f"fumehood.run={label}"})


@pytest.mark.parametrize("engine", ENGINES)
def test_a_service_that_fails_is_a_fault_of_the_task(
    engine: str, tmp_path: Path, daemon: APIClient
) -> None:
    run = tmp_path / "run"
    task = task_with_service(tmp_path / "set", 8001)
    run_tasks(run, str(task), "oracle", status=3, engine=engine)
    (row,) = map(json.loads, (run / "episodes.jsonl").read_text("utf-8").splitlines())
    assert row["outcome"] == "infra(task)"
    assert "the service api failed; report this to its author" in json.dumps(row)
    label = json.loads((run / "run.json").read_text("utf-8"))["run"]
    assert not daemon.containers(all=True, filters={"label": f"fumehood.run={label}"})


def test_a_second_signal_ends_a_run_whose_verifier_works(tmp_path: Path, daemon: APIClient) -> None:
    shutil.copytree(TASKS / NAME, tmp_path / "set" / NAME)
    script = tmp_path / "set" / NAME / "tests" / "test.sh"
    script.write_text("#!/bin/bash\nsleep 900\n", encoding="utf-8")
    run, suite = tmp_path / "run", f"harbor:{tmp_path / 'set'}"
    command = [sys.executable, "-m", "fumehood", "run", suite, "-a", "noop", "--engine", "docker"]
    # A shell may have started the tests with SIGINT ignored, which a new process inherits.
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    starts = daemon.events(decode=True, filters={"event": "start", "label": "fumehood.run"})
    with subprocess.Popen([*command, "--out", str(run)]) as running:
        signal.signal(signal.SIGINT, earlier)
        own = (
            start
            for start in starts
            if (run / "run.json").exists()
            and start["Actor"]["Attributes"]["fumehood.run"] in (run / "run.json").read_text()
        )
        for _, _start in zip(("agent", "workspace", "verifier"), own, strict=False):
            pass
        starts.close()
        running.send_signal(signal.SIGINT)
        running.send_signal(signal.SIGTERM)
        try:
            assert running.wait(120) in (128 + signal.SIGINT, 128 + signal.SIGTERM)
        finally:
            running.kill()
    assert not (run / "episodes.jsonl").exists()
    label = json.loads((run / "run.json").read_text("utf-8"))["run"]
    assert not daemon.containers(all=True, filters={"label": f"fumehood.run={label}"})


@pytest.mark.oci
def test_what_a_workspace_wrote_is_removed_after_the_run_was_killed(tmp_path: Path) -> None:
    shutil.copytree(TASKS / NAME, tmp_path / "set" / NAME)
    script = tmp_path / "set" / NAME / "solution" / "solve.sh"
    script.write_text(
        "#!/bin/bash\nfor i in {1..3000}; do mkdir d; cd d; done; sleep 600\n", "utf-8"
    )
    run, suite = tmp_path / "run", f"harbor:{tmp_path / 'set'}"
    command = [sys.executable, "-m", "fumehood", "run", suite, "-a", "oracle", "--engine", "oci"]

    def left() -> list[Path]:
        label = json.loads((run / "run.json").read_text("utf-8"))["run"]
        lost = FolderRecords().lost(lambda labels: labels.get(RUN) != label)
        return [folder for folder, _ in lost if folder.parent == disk_folder()]

    with subprocess.Popen([*command, "--out", str(run)]) as running:
        try:
            eventually(lambda: (run / "run.json").exists() and left() != [], running)
            (written,) = left()
            eventually((written / "upper" / "app" / "d" / "d").exists, running)
        finally:
            running.kill()
    assert left() == [written]
    fumehood("clean")
    assert left() == []
    assert not written.exists()


def eventually(is_so: Callable[[], bool], running: subprocess.Popen[bytes]) -> None:
    while not is_so():
        assert running.poll() is None
        time.sleep(0.05)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_workspace_reaches_no_network_and_no_other_box(engine: str, tmp_path: Path) -> None:
    shutil.copytree(TASKS / NAME, tmp_path / "set" / NAME)
    script = tmp_path / "set" / NAME / "solution" / "solve.sh"
    script.write_text(
        "#!/bin/bash\ngrep -o '[a-z0-9]*:' /proc/net/dev; ls /fumehood | xargs\n"
        "ls -d /proc/[0-9]* | wc -l\n"
        "(echo > /dev/tcp/192.0.2.1/80) 2>&1 | grep -o 'Network is unreachable' | sort -u\n"
        "touch /fumehood/x 2>/dev/null || echo read-only\n"
        "mount -t tmpfs x /mnt 2>/dev/null || echo no mount\n",
        encoding="utf-8",
    )
    run = tmp_path / "run"
    run_tasks(run, str(tmp_path / "set"), "oracle", engine=engine)
    events = fumehood_json("show", str(run), "oracle", "--json")["events"]
    (called,) = (event for event in events if event.get("tool") == "bash")
    lines = called["output"]["output"].splitlines()
    assert lines[:2] == ["lo:", "bin"]
    assert int(lines[2]) < 10
    assert lines[3:] == ["Network is unreachable", "read-only", "no mount"]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_agent_starts_after_the_health_check_which_must_succeed(
    engine: str, tmp_path: Path
) -> None:
    # Succeeds at the third attempt: each one adds a line.
    checks = {"ready": "echo x >> /tmp/tried; test $(wc -l < /tmp/tried) = 3", "broken": "exit 4"}
    for name, command in checks.items():
        shutil.copytree(TASKS / NAME, tmp_path / "set" / name)
        with (tmp_path / "set" / name / "task.toml").open("a") as config:
            config.write(
                f"[environment.healthcheck]\ncommand = '{command}'\n"
                "interval_sec = 0.1\nretries = 3\n"
            )
    script = tmp_path / "set" / "ready" / "solution" / "solve.sh"
    script.write_text(f"#!/bin/bash\nwc -l < /tmp/tried\n{script.read_text()}")
    run = tmp_path / "run"
    words = ("run", f"harbor:{tmp_path / 'set'}", "-a", "oracle", "--engine", engine)
    fumehood_json(*words, "--out", str(run), "--json", status=3, timeout_s=1200)
    assert rows(run)["ready"]["success"] is True
    events = fumehood_json("show", str(run), "oracle/ready", "--json")["events"]
    (called,) = (event for event in events if event.get("tool") == "bash")
    assert called["output"]["output"].splitlines()[0] == "3"
    broken = rows(run)["broken"]
    assert broken["outcome"] == "infra(task)"
    assert "'exit 4' failed 3 times, the last time with status 4" in json.dumps(broken)


def step(solution: str, condition: str, **files: str) -> dict[str, str]:
    test = f"#!/bin/bash\n{condition} && echo 1 > /logs/verifier/reward.txt || "
    return {
        "solution/solve.sh": f"#!/bin/bash\n{solution}\n",
        "tests/test.sh": f"{test}echo 0.5 > /logs/verifier/reward.txt\n",
        **{name.replace("_", "/"): text for name, text in files.items()},
    }


STOPPER = r"""
exec 2>/dev/null; last=$BASHPID
while :; do
  for next in 1 2 3 4 5; do
    pid=$((last + next)); kill -STOP $pid || continue
    last=$pid; read -r line < /proc/$pid/stat; set -- ${line##*) }
    [ "$2" = 0 ] || kill -CONT $pid
  done
done
"""
"""Stops each program that enters the process namespace from outside, before it begins."""


TIMED = """
import runpy, sys
from fumehood.engines.docker import daemon
from fumehood.engines.oci import containers
from fumehood.orchestrator.workspaces import steps
steps.SETUP_TIMEOUT_S = 30
daemon.BEGIN_TIMEOUT_S = containers.BEGIN_TIMEOUT_S = float(sys.argv.pop(1))
runpy.run_module("fumehood", run_name="__main__")
"""
"""The command, with other times in which a program of a workspace must begin, and a setup end."""


def row_of_steps(
    folder: Path, steps: Mapping[str, Mapping[str, str]], engine: str, time_s: float
) -> Any:
    task, run = folder / "set" / "task", folder / "run"
    shutil.copytree(TASKS / NAME, task)
    write_steps(task, steps, "".join(f'[[steps]]\nname = "{name}"\n' for name in steps))
    words = ("run", f"harbor:{task.parent}", "--engine", engine, "--out", str(run), "-a", "oracle")
    subprocess.run([sys.executable, "-c", TIMED, str(time_s), *words], check=False, timeout=1200)
    return rows(run)["task"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may signal processes of a workspace")
@pytest.mark.parametrize("engine", ENGINES)
def test_an_agent_that_stops_the_script_of_a_step_before_it_begins_fails(
    engine: str, tmp_path: Path
) -> None:
    background = f"bash -c {shlex.quote(STOPPER)} > /dev/null < /dev/null &"
    steps = {
        "one": step(f"echo one > /app/state; {background}", "grep -x one /app/state"),
        "two": step("true", "true", **{"workdir_setup.sh": "sleep 10"}),
    }
    row = row_of_steps(tmp_path, steps, engine, 5)
    assert (row["outcome"], row["metrics"]["reward"]) == ("finished", 0.5)
    # On a busy machine, it is stopped when it has begun.
    assert re.search("a command did not begin|setup.sh did not end in 30 s", json.dumps(row))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may signal processes of a workspace")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_machine_that_begins_no_program_in_time_fails_no_agent(
    engine: str, tmp_path: Path
) -> None:
    prepared = step("true", "true", **{"workdir_setup.sh": "true"})
    steps = {"one": step("true", "true"), "two": prepared}
    row = row_of_steps(tmp_path, steps, engine, 1e-4)
    assert row["outcome"] == "infra(engine)"
    assert "a command did not begin" in json.dumps(row)


@pytest.mark.parametrize("engine", ENGINES)
def test_each_step_is_verified_with_the_files_at_its_end(engine: str, tmp_path: Path) -> None:
    first = step("echo one > /app/state", "grep -x one /app/state")
    # Its script runs after the files of the first step were copied.
    second = step(
        "sed -i s/^/two/ /app/state",
        "grep -x 'twoone, prepared' /app/state",
        **{"workdir_setup.sh": "sed -i 's/$/, prepared/' state"},
    )
    wrong = step("echo 1 > /app/state", "grep -x one /app/state")
    spoiling = step("echo one > /app/state; rm -f /bin/bash /usr/bin/bash", "grep one /app/state")
    prepared = {**first, "workdir/setup.sh": "true"}
    least = "min_reward = {reward = 0.75}\n"
    tasks = {
        "both": ({"one": first, "two": second}, ""),
        "half": ({"one": wrong, "two": first}, ""),
        "stopped": ({"one": wrong, "two": first}, least),
        "final": ({"one": wrong, "two": first}, ""),
        "broken": ({"one": {**first, "workdir/setup.sh": "exit 7"}, "two": first}, ""),
        # The agent could have caused what fails after its first step.
        "late": ({"one": first, "two": {**first, "workdir/setup.sh": "exit 7"}}, ""),
        "spoiled": ({"one": spoiling, "two": prepared}, ""),
    }
    for name, (steps, threshold) in tasks.items():
        shutil.copytree(TASKS / NAME, tmp_path / "set" / name)
        file = tmp_path / "set" / name / "task.toml"
        if name == "final":
            file.write_text(f'multi_step_reward_strategy = "final"\n{file.read_text()}')
        settings = f'[[steps]]\nname = "one"\n{threshold}[[steps]]\nname = "two"\n'
        write_steps(file.parent, steps, settings)
    run = tmp_path / "run"
    words = ("run", f"harbor:{tmp_path / 'set'}", "-a", "oracle", "--engine", engine)
    fumehood_json(*words, "--out", str(run), "--json", status=3, timeout_s=1200)
    rewards = {name: row["metrics"].get("reward") for name, row in rows(run).items()}
    assert rewards == {
        **{"both": 1.0, "half": 0.75, "stopped": 0.5, "final": 1.0},
        **{"broken": None, "late": 0.5, "spoiled": 0.5},
    }
    assert rows(run)["both"]["success"] is True
    assert rows(run)["broken"]["outcome"] == "infra(task)"
    assert "step one: setup.sh failed with status 7" in json.dumps(rows(run)["broken"])
    assert "step two: setup.sh failed with status 7" in json.dumps(rows(run)["late"])
    assert rows(run)["spoiled"]["outcome"] == "finished"
    replay = ("replay", str(run), "--episode", "oracle/both", "--json")
    replayed = fumehood_json(*replay, timeout_s=1200)
    assert replayed["identical"] == 1
    fumehood("export", str(run), "--to", "harbor", "--out", str(tmp_path / "trials"))
    trial = json.loads((tmp_path / "trials" / "oracle__half__0" / "result.json").read_text())
    graded = {step["step_name"]: step["verifier_result"] for step in trial["step_results"]}
    assert graded == {"one": {"rewards": {"reward": 0.5}}, "two": {"rewards": {"reward": 1.0}}}
