from __future__ import annotations

import resource
import subprocess
import sys

import pytest

SCRIPT = """
import os, resource, sys
from fumehood.core.errors import InputError
from fumehood.orchestrator.machine import allow_open_files
if os.geteuid() == 0:
    os.setresuid(65534, 65534, 65534)
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 4096))
try:
    allow_open_files(int(sys.argv[1]))
except InputError as error:
    print(error)
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""
"""Runs in another process, as an ordinary user, because a lowered limit stays."""


def limits_after(boxes: int) -> list[str]:
    command = [sys.executable, "-c", SCRIPT, str(boxes)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize(("boxes", "soft"), [(1, 528), (200, 3712)])
def test_the_limit_is_raised_to_what_the_boxes_need(boxes: int, soft: int) -> None:
    assert limits_after(boxes) == [f"{soft} 4096"]


@pytest.mark.slow
def test_more_boxes_than_the_user_can_have_are_refused_with_the_number_that_is_possible() -> None:
    problem, limits = limits_after(1000)
    assert problem == (
        "1000 concurrent boxes need 16512 open files, but this user may open 4096: use "
        "--concurrency 224 and --prepare 0, or raise the limit with: ulimit -Hn 16512"
    )
    assert limits == "256 4096"


def test_a_sufficient_limit_stays() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert soft >= 528, "the tests need more open files"
    from fumehood.orchestrator.machine import allow_open_files

    allow_open_files(1)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)
