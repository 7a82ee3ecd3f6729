"""Controls: without the protection each attack succeeds, and the probe reports it.

Otherwise agents that try nothing would count as stopped. Attacks that would change the machine run
in boxes without restrictions, the others as plain processes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from fumehood.engines.engine import EngineOptions
from fumehood.engines.process import ProcessEngine
from fumehood.redteam.attacks import ATTACKS, Result
from fumehood.redteam.probe import Probe
from tests.redteam.open_box import PYTHON, OpenBoxes

BY_NAME = {attack.name: attack for attack in ATTACKS}
UNBOXED = {
    "egress": "of the host was reached",
    "abstract-sockets": "an abstract socket was reached",
    "host-processes": "a process of the host was stopped",
    "host-files": "a file of the host was written",
    "neighbours": "a call was made in another episode",
    "gold": "it has the secret of the gold",
    "fork-bomb": "processes and threads, of",
    "fork-bomb-sh": "processes and threads, of",
    "zombies": "processes and threads, of",
    "memory-bomb": "MiB of memory, of",
    "descriptors": "it got descriptors",
    "deaf": "of its processes still run",
}
"""Attack that does no harm outside a box → the expected detail."""
UNBOXED_AS_ROOT = {"raise-limits": "it got a higher priority", "devices": "it got the device kmsg"}
DECLARED = {
    "shared-memory": "process does not limit memory_bytes of a box",
    "fill-inodes": "process does not limit memory_bytes of a box",
    "spin": "",
}
"""Attack → the declaration of an engine without limits, also if a loaded machine stopped the attack
early."""
IN_OPEN_BOXES = {
    "dns": "it got a question to 127.0.0.53",
    "metadata": "it got metadata of 169.254.169.254",
    "raw-sockets": "it got packets",
    "daemon-sockets": "a daemon of the host was reached",
    "file-handles": "it got change the root",
    "special-files": "a file of the host was written",
    "fill-tmp": "it got places filled",
    "privilege": "it got every capability",
    "setuid-programs": "it got a program of root's",
    "mounts": "it got mount",
    "namespaces": "it got a user namespace",
    "tracing": "it got trace the first process",
    "keyring": "it got leave a key",
    "kernel-surface": "it got a ring into the kernel",
    "kernel-files": "it got any file that the kernel obeys",
}
AGAINST_THE_SERVICE = {"forged-messages", "replays", "json-bombs", "oversized", "http-nonsense"}
"""See test_service_controls.py."""
SEEN_BY_CHECKS = {
    *(
        "protobuf-bombs",
        "second-client",
        "slow-loris",
        "many-streams",
        "frame-floods",
        "http-floods",
        "refusals",
    ),
    *(
        "flood",
        "flood-sh",
        "endless-line",
        "terminal",
        "forged-trace",
        "look-around",
        "provoke-errors",
    ),
}
"""Attacks whose effects only the checks of the probe can see; see test_breaches.py."""
SECRETS = {"host-processes": "process", "host-files": "file"}
TAKES_LONG = {
    "deaf",
    "fill-inodes",
    "fill-tmp",
    "fork-bomb-sh",
    "gold",
    "memory-bomb",
    "shared-memory",
    "spin",
    "zombies",
}


def _names(table: dict[str, str]) -> list[object]:
    return [
        pytest.param(name, marks=[pytest.mark.every_attack] if name in TAKES_LONG else [])
        for name in table
    ]


def test_every_attack_has_a_control() -> None:
    controlled = {*UNBOXED, *UNBOXED_AS_ROOT, *DECLARED, *IN_OPEN_BOXES}
    assert controlled | AGAINST_THE_SERVICE | SEEN_BY_CHECKS == BY_NAME.keys()


@pytest.fixture(scope="module")
def unboxed() -> Iterator[Probe]:
    with closing(ProcessEngine(EngineOptions(trust=True))) as engine, Probe(engine) as probe:
        yield probe


@pytest.fixture(scope="module")
def open_boxes() -> Iterator[Probe]:
    if not Path(PYTHON).exists():
        pytest.skip(f"needs {PYTHON}, a Python that all users can execute")
    with closing(OpenBoxes()) as engine, Probe(engine) as probe:
        yield probe


def _succeeds(probe: Probe, name: str, seen: str) -> None:
    verdict = probe.attack(BY_NAME[name])
    if "needs gcc" in verdict.detail:
        pytest.skip(verdict.detail)
    assert verdict.result is Result.NOT_STOPPED
    assert seen in verdict.detail
    if name in SECRETS:
        assert f"it has the secret of the {SECRETS[name]}" in verdict.detail


@pytest.mark.slow
@pytest.mark.parametrize("name", _names(UNBOXED))
def test_an_attack_succeeds_without_a_box(unboxed: Probe, name: str) -> None:
    _succeeds(unboxed, name, UNBOXED[name])


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("name", _names(UNBOXED_AS_ROOT))
def test_an_attack_succeeds_as_root(unboxed: Probe, name: str) -> None:
    _succeeds(unboxed, name, UNBOXED_AS_ROOT[name])


@pytest.mark.parametrize("name", _names(DECLARED))
def test_an_engine_without_limits_declares_them(unboxed: Probe, name: str) -> None:
    _succeeds(unboxed, name, DECLARED[name])


@pytest.mark.slow
@pytest.mark.bubblewrap
@pytest.mark.parametrize("name", _names(IN_OPEN_BOXES))
def test_an_attack_succeeds_in_an_unrestricted_box(open_boxes: Probe, name: str) -> None:
    _succeeds(open_boxes, name, IN_OPEN_BOXES[name])
