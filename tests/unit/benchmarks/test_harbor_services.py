"""Services of Harbor tasks: what is read of a Compose file, and what is refused by name."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from fumehood.benchmarks.registry import load_suite
from fumehood.core.errors import InputError
from tests.architecture.project import ROOT

NAME = "fix-the-average"
TWO = """services:
  web:
    image: python:3.12-slim
    command: python3 -m http.server 80
    environment: ["MODE=${MODE:-fast}", "PRICE=$$5"]
    depends_on: [store]
  store:
    build: {context: ./store}
    healthcheck: {test: "test -e /ready", interval: 1m30s, retries: 4}
  main:
    environment: {STORE: store}
"""


@pytest.fixture
def task(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "examples" / "workspaces" / NAME, tmp_path / NAME)
    store = tmp_path / NAME / "environment" / "store"
    store.mkdir()
    (store / "Dockerfile").write_text("FROM python:3.12-slim\n", encoding="utf-8")
    return tmp_path / NAME


def declare(task: Path, compose: str) -> None:
    (task / "environment" / "docker-compose.yaml").write_text(compose, encoding="utf-8")


def test_services_start_after_those_that_they_depend_on(task: Path) -> None:
    declare(task, TWO)
    (case,) = load_suite(f"harbor:{task}").cases
    (criterion,) = case.gold.criteria
    assert criterion["env"] == {"STORE": "store"}
    listed: Any = criterion["services"]
    store, web = listed
    assert (store["name"], store["folder"], store["image"]) == ("store", "store", "")
    assert store["healthcheck"]["command"] == ["/bin/sh", "-c", "test -e /ready"]
    assert (store["healthcheck"]["interval_s"], store["healthcheck"]["retries"]) == (90.0, 4)
    assert (web["image"], web["healthcheck"]) == ("python:3.12-slim", {})
    assert web["command"] == ["python3", "-m", "http.server", "80"]
    assert web["environment"] == {"MODE": "fast", "PRICE": "$5"}


@pytest.mark.parametrize(
    ("compose", "reason"),
    [
        ("services: {db: {image: x, volumes: [a]}}", "db.volumes"),
        ("services: {db: {image: x, privileged: true}}", "db.privileged"),
        ("services: {db: {image: x, network_mode: host}}", "db.network_mode"),
        ("services: {db: {image: x, build: store}}", "db without exactly one"),
        ("services: {db: {build: ..}}", "db.build other than a folder"),
        ("services: {db: {build: .}, main: {ports: [80]}}", "main.ports"),
        ('services: {db: {image: "${IMAGE}"}}', "a variable of the host in db"),
        ("services: {db: {image: x, depends_on: [other]}}", "db.depends_on other"),
        (
            "services: {a: {image: x, depends_on: [b]}, b: {image: x, depends_on: [a]}}",
            "depend on each other: a, b",
        ),
        ("services: {db: {image: x, environment: text}}", "db.environment, which is no list"),
        ("services: {db: {image: x, command: {a: b}}}", "db.command, which is no text"),
        ("services: {db: {image: x, depends_on: other}}", "db.depends_on other"),
        ("services: {db: {image: x, healthcheck: {test: x, retries: often}}}", "retries 'often'"),
        ("services: {db: {image: x, healthcheck: {test: x, interval: 9999m}}}", "at most 600 s"),
        ("services: {db: {image: x, healthcheck: {test: x, retries: 101}}}", "retries 101"),
        ("networks: {x: {}}", "docker-compose.yaml: networks"),
        ("services: [x]", "services is no table"),
        ("services: {a: &x {image: y}, b: *x}", r"the alias \*x is not supported"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(task: Path, compose: str, reason: str) -> None:
    declare(task, compose)
    with pytest.raises(InputError, match=reason):
        load_suite(f"harbor:{task}")
