"""Harbor task folders: what is read, and what is refused by name."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from fumehood.benchmarks.harbor.setup_of_tests import packages_of
from fumehood.benchmarks.registry import load_suite
from fumehood.core.errors import InputError
from fumehood.core.ledger import BudgetKind
from fumehood.engines.docker.daemon import Daemon
from fumehood.engines.images.workspace import build_workspace
from fumehood.orchestrator.config import run_config
from fumehood.orchestrator.setup import RunSetup
from tests.architecture.project import ROOT
from tests.parts.workspaces import write_steps

TASKS = ROOT / "examples" / "workspaces"
NAME = "fix-the-average"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(TASKS / NAME, tmp_path / "set of tasks" / NAME)
    return tmp_path / "set of tasks"


def test_every_example_is_a_task_with_a_solution() -> None:
    suite = load_suite(f"harbor:{TASKS}")
    assert len(suite.cases) == len(list(TASKS.glob("*/task.toml")))
    for case in suite.cases:
        assert case.task.world == "workspace"
        assert case.gold.oracle
        assert case.gold.oracle[-1]["tool_name"] == "bash"


def test_tests_and_solution_are_gold_and_not_part_of_the_task(folder: Path) -> None:
    (case,) = load_suite(f"harbor:{folder}:{NAME}").cases
    assert set(case.task.initial_state) == {"task", "digest", "changed"}
    assert case.task.seats[0].budget[BudgetKind.WALL_MS] == 600_000
    (criterion,) = case.gold.criteria
    assert (criterion["memory_mb"], criterion["verifier_timeout_s"]) == (1024, 600.0)
    digest = case.task.initial_state["digest"]
    (folder / NAME / "tests" / "test.sh").write_text("exit 0")
    (changed,) = load_suite(f"harbor:{folder / NAME}").cases
    assert changed.task.initial_state["digest"] != digest


def test_a_shared_score_without_workspaces_is_refused() -> None:
    settings = {"suite": "sample", "agents": ["noop"], "shared_score": True}
    with pytest.raises(InputError, match="--shared-score has no effect"):
        RunSetup.create(run_config(settings))


def test_tests_inside_the_workspace_are_a_mode_of_the_suite(folder: Path) -> None:
    hook = '\n[[verifier.collect]]\ncommand = "echo state > /app/state"\n'
    with (folder / NAME / "task.toml").open("a") as file:
        file.write(hook)
    with pytest.raises(InputError, match=r"verifier\.collect; harbor:shared:PATH runs it"):
        load_suite(f"harbor:{folder}")
    suite = load_suite(f"harbor:shared:offline:{folder}")
    assert suite.name == f"harbor:offline:shared:{folder.name}"
    assert suite.about is not None
    assert "forgeable" in suite.about.criterion
    (criterion,) = suite.cases[0].gold.criteria
    assert (criterion["verification"], criterion["collect"]) == (
        "shared",
        ["echo state > /app/state"],
    )
    with (folder / NAME / "task.toml").open("a") as file:
        file.write('service = "db"\n')
    with pytest.raises(InputError, match=r"verifier\.collect with service or user"):
        load_suite(f"harbor:shared:{folder}")
    (folder / NAME / "task.toml").write_text("verifier.collect = [{timeout_sec = 5}]")
    with pytest.raises(InputError, match="or without a command"):
        load_suite(f"harbor:shared:{folder}")


@pytest.mark.parametrize(
    ("addition", "reason"),
    [
        ("[environment]\ngpus = 1", "environment.gpus"),
        ('[environment]\nnetwork_mode = "public"', "environment.network_mode public"),
        ("[environment]\nallow_internet = true", "environment.allow_internet"),
        ('[environment]\nos = "windows"', "environment.os"),
        ('[[environment.mcp_servers]]\nname = "x"', "environment.mcp_servers"),
        ("[environment.healthcheck]\nretries = 2", "environment.healthcheck without a command"),
        ('[environment.healthcheck]\ncommand = "x"\nuser = "y"', "environment.healthcheck.user"),
        (
            '[environment.healthcheck]\ncommand = "x"\nretries = "often"',
            "environment.healthcheck with a value that is no number",
        ),
        *(
            (
                f'[environment.healthcheck]\ncommand = "x"\n{setting}',
                f"environment.healthcheck{why}",
            )
            for setting, why in (
                ("retries = inf", " with a value that is no number"),
                ("retries = 1000000", ".retries not between 1 and 100"),
                ("timeout_sec = inf", " with a time not between 0 and 600 s"),
                ("interval_sec = nan", " with a time not between 0 and 600 s"),
                ("start_period_sec = 1e9", " with a time not between 0 and 600 s"),
            )
        ),
        ('[metadata]\nterminals = "no"', "metadata.terminals 'no', which is neither true nor"),
        ('[agent]\nuser = "alice"', "agent.user"),
        ('[[verifier.collect]]\ncommand = "x"', "verifier.collect"),
        ("[verifier.environment]\ncpus = 2", "verifier.environment"),
        ('[solution.env]\nKEY = "${SECRET}"', "variables of the host in solution.env"),
        ('[[artifacts]]\nsource = "/app"\nservice = "db"', "artifacts with exclude or service"),
        ('[[steps]]\nname = "one"', "steps.one without instruction.md"),
        ('[[steps]]\nname = "../one"', "steps with the name '../one'"),
        ('multi_step_reward_strategy = "best"', "multi_step_reward_strategy best"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(
    folder: Path, addition: str, reason: str
) -> None:
    task = folder / NAME
    shutil.copytree(task, folder / "other")
    (task / "task.toml").write_text(f'schema_version = "1.4"\n{addition}\n', encoding="utf-8")
    with pytest.raises(
        InputError, match=rf"{NAME}: {reason.replace('.', '[.]')}.* plays the other 1"
    ):
        load_suite(f"harbor:{folder}")
    (case,) = load_suite(f"harbor:{folder}:supported").cases
    assert case.task.task_id == "other"


@pytest.mark.parametrize(
    "line",
    [
        "curl -LsSf https://x | sh",
        "cd /tests && pip install -r requirements.txt",
        "pip install --requirement requirements.txt",
        "pip install -qr requirements.txt",
        "uv pip install --system -rrequirements.txt",
        "pip install --index-url=https://x/simple private",
        "uvx --with-requirements requirements.txt pytest",
        "if ! git clone https://x; then exit 1; fi",
        "(npm install)",
        "uv run pytest",
    ],
)
def test_tests_that_need_the_network_are_refused_with_their_line(folder: Path, line: str) -> None:
    script = folder / NAME / "tests" / "test.sh"
    script.write_text(f"#!/bin/bash\n# curl is not called here\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"tests/test\.sh:3 needs the network"):
        load_suite(f"harbor:{folder}:{NAME}")


def test_what_the_tests_install_is_installed_in_the_image_of_the_verifier() -> None:
    found = packages_of("""
apt-get update >/dev/null 2>&1; apt-get install -y curl 2>/dev/null
curl -LsSf https://astral.sh/uv/0.9.7/install.sh | sh
source $HOME/.local/bin/env
python3 -m pip install -q --break-system-packages "numpy>=2" 2>&1 | tail -3 || true
if curl -s http://localhost:8080/health; then git status; fi
uvx --python 3.12 --with pytest==8.4.1 \\
  -w pytest-json-ctrf==0.3.5 pytest /tests/test_outputs.py -rA
""")
    assert (found.debian, found.python) == ({"curl"}, {"numpy>=2"})
    assert found.tools == {"pytest", "pytest==8.4.1", "pytest-json-ctrf==0.3.5"}
    assert found.lines()[0] == "USER root"
    assert not packages_of("command -v uvx >/dev/null; python3 -m pytest /tests").lines()


def test_a_task_that_may_use_the_internet_is_played_without_a_network_on_request(
    folder: Path,
) -> None:
    task = folder / NAME / "task.toml"
    task.write_text(
        '[environment]\nallow_internet = true\nnetwork_mode = "public"\n'
        '[verifier.env]\nKEY = "${SECRET:-none}"\n',
        encoding="utf-8",
    )
    with pytest.raises(InputError, match="harbor:offline:PATH plays it without a network"):
        load_suite(f"harbor:{folder}")
    suite = load_suite(f"harbor:offline:{folder}")
    assert suite.name.startswith("harbor:offline:")
    assert suite.cases[0].gold.criteria[0]["verifier_env"] == {"KEY": "none"}


def test_a_compose_file_that_is_a_link_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "of-the-user.yaml").write_text("services: {main: {environment: {A: secret}}}")
    place = folder / NAME / "environment" / "docker-compose.yaml"
    place.symlink_to(tmp_path / "of-the-user.yaml")
    with pytest.raises(InputError, match="is a link: copy the file"):
        load_suite(f"harbor:{folder}")


def test_other_compose_files_and_missing_files_are_refused(folder: Path) -> None:
    (folder / NAME / "environment" / "compose.yml").write_text("services: {}")
    with pytest.raises(InputError, match=r"environment/compose\.yml"):
        load_suite(f"harbor:{folder}")
    (folder / NAME / "instruction.md").unlink()
    with pytest.raises(InputError, match=r"instruction\.md is missing"):
        load_suite(f"harbor:{folder}")
    with pytest.raises(InputError, match="no task 'nothing'"):
        load_suite(f"harbor:{folder}:nothing")
    with pytest.raises(InputError, match=r"no Harbor task with a task\.toml"):
        load_suite(f"harbor:{folder / 'missing'}")


def test_older_sizes_and_artifacts_are_read(folder: Path) -> None:
    (folder / NAME / "task.toml").write_text(
        'version = "1.0"\nartifacts = ["/app/out.txt"]\n[environment]\nmemory = "2G"\n'
    )
    (case,) = load_suite(f"harbor:{folder}").cases
    (criterion,) = case.gold.criteria
    assert (criterion["memory_mb"], criterion["artifacts"]) == (2048, ["/app/out.txt"])


@pytest.mark.parametrize(
    ("metadata", "terminals"),
    [("", True), ("terminals = true", True), ("terminals = false", False)],
)
def test_a_task_has_terminals_unless_it_states_that_it_needs_none(
    folder: Path, metadata: str, terminals: bool
) -> None:
    (folder / NAME / "task.toml").write_text(f'version = "1.0"\n[metadata]\n{metadata}\n')
    (case,) = load_suite(f"harbor:{folder}").cases
    (criterion,) = case.gold.criteria
    assert criterion["terminals"] is terminals


@pytest.mark.parametrize("name", ["instruction.md", "solution/key", "tests/key", "environment"])
def test_a_link_out_of_the_task_folder_is_refused(folder: Path, name: str) -> None:
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "Dockerfile").write_text("secret")
    place = folder / NAME / name
    target = outside if name == "environment" else outside / "Dockerfile"
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.symlink_to(target)
    with pytest.raises(InputError, match="is a link that leaves the task folder"):
        load_suite(f"harbor:{folder}")


@pytest.mark.parametrize(
    ("name", "target"),
    [("steps", "environment"), ("solution", "."), ("tests", "environment"), ("more", "solution")],
)
def test_no_folder_of_a_task_is_a_link(folder: Path, name: str, target: str) -> None:
    # Links of an environment may lead out of the task, so they must not become other parts of it.
    secret = folder.parent / "secret"
    secret.write_text("of the user")
    (folder / NAME / "environment" / "instruction.md").symlink_to(secret)
    place = folder / NAME / name
    shutil.rmtree(place, ignore_errors=True)
    place.symlink_to(target)
    with pytest.raises(InputError, match=f"{name} is a link"):
        load_suite(f"harbor:{folder}")


def test_a_link_to_itself_is_refused(folder: Path) -> None:
    (folder / NAME / "tests" / "loop").symlink_to("loop")
    with pytest.raises(InputError, match="loop is a link that leads to itself"):
        load_suite(f"harbor:{folder}")


def test_a_link_to_another_file_of_the_task_is_read(folder: Path) -> None:
    (folder / NAME / "tests" / "more.sh").symlink_to("test.sh")
    assert load_suite(f"harbor:{folder}").cases


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "true", "1e30", '"2"', "[1]"])
@pytest.mark.parametrize(
    ("table", "setting"),
    [
        ("environment", "cpus"),
        ("environment", "memory_mb"),
        ("environment", "storage_mb"),
        ("agent", "timeout_sec"),
        ("verifier", "timeout_sec"),
    ],
)
def test_a_limit_that_limits_nothing_is_refused(
    folder: Path, table: str, setting: str, value: str
) -> None:
    (folder / NAME / "task.toml").write_text(f"[{table}]\n{setting} = {value}\n")
    with pytest.raises(InputError, match="which is no number from"):
        load_suite(f"harbor:{folder}")


@pytest.mark.parametrize(
    "setting",
    [
        *("artifacts = 1", "environment = 1", "environment.env = [1]", "verifier.collect = true"),
        *("verifier.environment = 5", "solution.env = 'x'", "environment.workdir = 1"),
        *("environment.env = {'A=' = 'b'}", "verifier.env = {'' = 'b'}"),
        *("solution.env = {A = '\\u0000'}", "steps = [{name = 'a', agent = 1}]"),
    ],
)
def test_a_setting_of_a_wrong_type_is_refused(folder: Path, setting: str) -> None:
    (folder / NAME / "task.toml").write_text(setting.replace("'", '"'))
    name = setting.partition(" =")[0]
    with pytest.raises(InputError, match=name):
        load_suite(f"harbor:{folder}")


@pytest.mark.parametrize("content", ['services: {a: {image: b, command: "\'"}}', "[" * 5000])
def test_a_damaged_compose_file_is_refused(folder: Path, content: str) -> None:
    (folder / NAME / "environment" / "docker-compose.yaml").write_text(content)
    with pytest.raises(InputError, match=r"docker-compose\.yaml: "):
        load_suite(f"harbor:{folder}")


def test_a_sparse_file_of_a_terabyte_is_refused_unread(folder: Path) -> None:
    with (folder / NAME / "tests" / "large").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InputError, match="has more than 4 GiB"):
        load_suite(f"harbor:{folder}")


def test_a_pipe_in_a_task_folder_is_refused(folder: Path) -> None:
    os.mkfifo(folder / NAME / "solution" / "pipe")
    with pytest.raises(InputError, match="neither a file nor a folder"):
        load_suite(f"harbor:{folder}")


def test_links_of_an_environment_are_kept(folder: Path) -> None:
    (folder / NAME / "environment" / "shell").symlink_to("/bin/sh")
    (folder / NAME / "environment" / "loop").symlink_to("loop")
    assert load_suite(f"harbor:{folder}").cases


def test_a_dockerfile_that_is_a_link_is_refused(folder: Path) -> None:
    dockerfile = folder / NAME / "environment" / "Dockerfile"
    dockerfile.rename(folder / "Dockerfile")
    dockerfile.symlink_to("../../Dockerfile")
    with pytest.raises(InputError, match="no Dockerfile that is a regular file"):
        build_workspace(dockerfile.parent, lambda line: None, Daemon())


def test_a_health_check_has_the_defaults_of_harbor(folder: Path) -> None:
    with (folder / NAME / "task.toml").open("a") as config:
        config.write('[environment.healthcheck]\ncommand = "test -e x"\ninterval_sec = 1\n')
    (case,) = load_suite(f"harbor:{folder}").cases
    assert case.gold.criteria[0]["healthcheck"] == {
        "command": "test -e x",
        "retries": 3,
        "interval_s": 1.0,
        "timeout_s": 30.0,
        "start_period_s": 0.0,
        "start_interval_s": 5.0,
    }


def test_a_step_is_a_turn_with_its_own_tests_and_time(folder: Path) -> None:
    files = {"tests/test.sh": "pip install six", "solution/solve.sh": "true"}
    steps = "[[steps]]\nname = 'one'\nmin_reward = 1\n[[steps]]\nname = 'two'\n"
    times = "agent.timeout_sec = 5\nverifier.timeout_sec = 7\nartifacts = ['/x']\n"
    write_steps(folder / NAME, {"one": files, "two": files}, f"{steps}{times}")
    (case,) = load_suite(f"harbor:{folder}").cases
    assert case.task.initial_state["later_steps"] == ["Do two."]
    assert case.task.seats[0].instruction == "Do one."
    assert case.task.seats[0].budget[BudgetKind.WALL_MS] == 605_000
    criterion: dict[str, Any] = dict(case.gold.criteria[0])
    one, two = criterion["steps"]
    assert (one["min_reward"], one["verifier_timeout_s"], one["artifacts"]) == (1, 600.0, [])
    assert (two["min_reward"], two["verifier_timeout_s"], two["artifacts"]) == (None, 7.0, ["/x"])
    assert two["tests"] == ["tests", "steps/two/tests"]
    assert any("pip install" in line and "six" in line for line in criterion["verifier_lines"])
    moves = [move.get("tool_name", "submit") for move in case.gold.oracle or ()]
    assert moves == ["upload", "bash", "submit", "bash", "upload", "bash"]


def test_an_oracle_without_a_solution_is_one_line_with_the_task_and_the_file(folder: Path) -> None:
    def refused() -> str:
        settings = {"suite": f"harbor:{folder}", "agents": ["oracle"], "engine": "docker"}
        with pytest.raises(InputError) as raised:
            RunSetup.create(run_config(settings)).check()
        return str(raised.value)

    (folder / NAME / "solution" / "solve.sh").unlink()
    task = f"the task {NAME} has no oracle to replay: {folder / NAME} has no "
    remedy = "solution/solve.sh; add it, or select other tasks with --task"
    assert refused() == f"{task}{remedy}"
    files = {"tests/test.sh": "true", "solution/solve.sh": "true"}
    steps = "[[steps]]\nname = 'one'\n[[steps]]\nname = 'two'\n"
    write_steps(folder / NAME, {"one": files, "two": {"tests/test.sh": "true"}}, steps)
    assert refused() == f"{task}steps/two/{remedy}"


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ('min_reward = "all"', "min_reward that is no number"),
        ('agent.user = "alice"', "agent.user"),
        ('verifier.network_mode = "public"', "network_mode"),
        ("verifier.environment = {cpus = 2}", "verifier.environment"),
        ("agent.network_mode = [1]", "network_mode"),
        ("verifier.env = 5", "whose verifier.env is no table"),
        ("artifacts = 5", "whose artifacts are no list"),
    ],
)
def test_what_a_step_cannot_have_is_refused_by_name(
    folder: Path, setting: str, reason: str
) -> None:
    steps = f"[[steps]]\nname = 'one'\n{setting}\n"
    write_steps(folder / NAME, {"one": {"tests/test.sh": ""}}, steps)
    with pytest.raises(InputError, match=rf"{NAME}: steps[.]one {reason}"):
        load_suite(f"harbor:{folder}")


def test_steps_are_not_tested_inside_the_workspace(folder: Path) -> None:
    write_steps(folder / NAME, {"one": {"tests/test.sh": ""}}, "[[steps]]\nname = 'one'\n")
    with pytest.raises(InputError, match="steps with shared:"):
        load_suite(f"harbor:shared:{folder}")
