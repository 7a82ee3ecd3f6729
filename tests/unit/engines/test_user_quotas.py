"""The kernel's limits per user are raised to what the memory of the machine can hold."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fumehood.engines.user_quotas import QUOTAS, Quota, raise_user_quotas

MEMORY_BYTES = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
EPOLL, PIPES = QUOTAS


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    for quota in QUOTAS:
        (tmp_path / quota.file).parent.mkdir(parents=True, exist_ok=True)
        write(tmp_path, quota, 1)
    return tmp_path


def write(settings: Path, quota: Quota, value: int) -> None:
    (settings / quota.file).write_text(f"{value}\n", "ascii")


def value_of(settings: Path, quota: Quota) -> int:
    return int((settings / quota.file).read_text("ascii"))


@pytest.mark.parametrize("quota", QUOTAS, ids=lambda quota: quota.setting)
def test_a_low_limit_is_raised_and_reported(settings: Path, quota: Quota) -> None:
    lines: list[str] = []
    raise_user_quotas(lines.append, settings)
    assert value_of(settings, quota) == MEMORY_BYTES // quota.bytes_each
    assert any(line.startswith(f"raised {quota.setting} from 1 to ") for line in lines)


def test_a_higher_limit_stays(settings: Path) -> None:
    write(settings, EPOLL, MEMORY_BYTES)
    raise_user_quotas(None, settings)
    assert value_of(settings, EPOLL) == MEMORY_BYTES


def test_a_limit_that_is_off_stays_off(settings: Path) -> None:
    write(settings, PIPES, 0)
    raise_user_quotas(None, settings)
    assert value_of(settings, PIPES) == 0


def test_a_limit_that_cannot_be_raised_is_reported_with_its_command(settings: Path) -> None:
    (settings / EPOLL.file).unlink()
    (settings / EPOLL.file).mkdir()
    lines: list[str] = []
    raise_user_quotas(lines.append, settings)
    needed = MEMORY_BYTES // EPOLL.bytes_each
    (line,) = (line for line in lines if EPOLL.setting in line)
    assert line.endswith(f"run `sysctl -w {EPOLL.setting}={needed}` as root")
