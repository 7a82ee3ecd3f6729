"""Owners of resources, and whether they are alive."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from fumehood.engines.ownership import (
    OWNER_BOOT,
    OWNER_MACHINE,
    OWNER_NAMESPACE,
    OWNER_PID,
    OWNER_START,
    RUN,
    owner_is_alive,
    owner_labels,
    start_time,
)


def test_this_process_is_alive() -> None:
    labels = owner_labels("a run")
    assert labels[RUN] == "a run"
    assert owner_is_alive(labels)


def test_an_ended_process_is_not_alive() -> None:
    code = "import json, fumehood.engines.ownership as o; print(json.dumps(o.owner_labels('r')))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert not owner_is_alive(json.loads(ended.stdout))


def test_a_process_with_a_reused_id_is_not_the_owner() -> None:
    labels = owner_labels("r") | {OWNER_START: "1"}
    assert labels[OWNER_PID] == str(os.getpid())
    assert not owner_is_alive(labels)


def test_no_owner_survives_a_reboot() -> None:
    assert not owner_is_alive(
        owner_labels("r") | {OWNER_BOOT: "another", OWNER_NAMESPACE: "another"}
    )


@pytest.mark.parametrize("foreign", [OWNER_MACHINE, OWNER_NAMESPACE])
def test_an_owner_elsewhere_counts_as_alive(foreign: str) -> None:
    assert owner_is_alive(owner_labels("r") | {foreign: "another", OWNER_PID: "999999999"})


@pytest.mark.parametrize("labels", [{}, {OWNER_PID: "-1"}, {OWNER_PID: "../1"}])
def test_resources_without_valid_labels_count_as_owned(labels: dict[str, str]) -> None:
    assert owner_is_alive(labels)


def test_a_process_name_with_parentheses_has_the_right_start_time() -> None:
    with subprocess.Popen(["sleep", "60"]) as plain:
        rename = "open('/proc/self/comm', 'w').write(') 1 2 (x')"
        code = f"{rename}; print(flush=True); import time; time.sleep(60)"
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as odd:
            assert odd.stdout is not None
            odd.stdout.readline()
            before, after = start_time(plain.pid), start_time(odd.pid)
            odd.kill()
        plain.kill()
    assert before is not None
    assert after is not None
    assert before <= after <= before + 6000


def test_a_missing_process_has_no_start_time() -> None:
    assert start_time(999_999_999) is None
