"""Who a leftover belongs to."""

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


def test_a_process_that_ended_is_not() -> None:
    code = "import json, fumehood.engines.ownership as o; print(json.dumps(o.owner_labels('r')))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert not owner_is_alive(json.loads(ended.stdout))


def test_a_process_that_took_over_the_number_is_not_the_owner() -> None:
    labels = owner_labels("r") | {OWNER_START: "1"}
    assert labels[OWNER_PID] == str(os.getpid())
    assert not owner_is_alive(labels)


def test_nobody_lives_through_a_restart_of_the_machine() -> None:
    assert not owner_is_alive(
        owner_labels("r") | {OWNER_BOOT: "another", OWNER_NAMESPACE: "another"}
    )


@pytest.mark.parametrize("foreign", [OWNER_MACHINE, OWNER_NAMESPACE])
def test_an_owner_out_of_sight_is_taken_for_alive(foreign: str) -> None:
    assert owner_is_alive(owner_labels("r") | {foreign: "another", OWNER_PID: "999999999"})


@pytest.mark.parametrize("labels", [{}, {OWNER_PID: "-1"}, {OWNER_PID: "../1"}])
def test_what_says_nothing_of_its_owner_is_left_alone(labels: dict[str, str]) -> None:
    assert owner_is_alive(labels)


def test_a_name_with_brackets_does_not_confuse_the_start_time() -> None:
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


def test_a_number_without_a_process_has_no_start_time() -> None:
    assert start_time(999_999_999) is None
