"""Runs an attack against a service without checks, and finds the harm from outside."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fumehood.core.errors import InfraError
from fumehood.redteam.agent_folder import AGENTS
from fumehood.redteam.attacks import Attack
from fumehood.redteam.box_usage import measure, open_descriptors
from fumehood.redteam.breaches import MIB, revealing_words_in, successes_in
from fumehood.redteam.provider import ObedientProvider, breaches_of
from fumehood.redteam.victim import Interference, Victim
from fumehood.redteam.world_packages import require_world

ATTACK_TIMEOUT_S = 30.0
START_TIMEOUT_S = 15.0
QUIET_S = 1.5
"""Time for the calls of the quiet baseline."""
INTERVAL_S = 0.05
CONNECTIONS_MAX = 256
"""Open connections that a service with checks would never hold for one agent."""
GROWTH_BYTES_MAX = 24 * MIB
"""Growth of memory that shows that nothing bounds what the service keeps."""


def run_against_naive_service(attack: Attack) -> Iterator[str]:
    """Run an agent against a service without checks, and yield the harm.

    Raises:
        InfraError: the service does not start.
        InputError: the code of a world is not installed.
    """
    require_world(attack)
    with (
        tempfile.TemporaryDirectory() as folder,
        ObedientProvider() as provider,
        _naive_service(Path(folder), provider) as service,
    ):
        with Victim(Path(folder)) as victim:
            time.sleep(QUIET_S)
            quiet = victim.take_latencies()
            stdout, peak = _attack(attack, folder, service.pid)
            attacked, errors = victim.take_latencies(), victim.take_errors()
            died = service.poll() is not None
            service.kill()
        yield from successes_in(stdout)
        yield from revealing_words_in(stdout)
        yield from peak
        yield from breaches_of(provider.take(), voids=True)
        if died:
            yield "the service died"
        yield from Interference(quiet, attacked).raised()
        if errors:
            yield f"a neighbour was not served: {errors[0]}"


def _attack(attack: Attack, folder: str, service: int) -> tuple[bytes, list[str]]:
    """Return the output of the agent and the peak usage of the service."""
    before = measure(service)
    memory_bytes = descriptors = 0
    with tempfile.TemporaryFile() as output:
        agent = subprocess.Popen(
            [
                *(sys.executable, "-P", str(AGENTS / attack.file)),
                *(f"calls={attack.calls}", f"variant={attack.variant}"),
            ],
            env={**os.environ, "FUMEHOOD_SOCKET": f"{folder}/grpc.sock", "PYTHONPATH": str(AGENTS)},
            stdout=output,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + ATTACK_TIMEOUT_S
        while agent.poll() is None and time.monotonic() < deadline:
            usage = measure(service)
            memory_bytes = max(memory_bytes, usage.memory_bytes if usage else 0)
            descriptors = max(descriptors, open_descriptors(service))
            time.sleep(INTERVAL_S)
        with suppress(ProcessLookupError):
            os.killpg(agent.pid, 9)
        agent.wait()
        output.seek(0)
        stdout = output.read()
    peak = []
    if descriptors > CONNECTIONS_MAX:
        peak.append(f"the service held {descriptors} open connections")
    growth = memory_bytes - (before.memory_bytes if before else 0)
    if growth > GROWTH_BYTES_MAX:
        peak.append(f"the service grew by {growth // MIB} MiB")
    return stdout, peak


@contextmanager
def _naive_service(folder: Path, provider: ObedientProvider) -> Iterator[subprocess.Popen[bytes]]:
    address = provider.address.removeprefix("http://")
    program = (sys.executable, "-P", "-m", "fumehood.redteam.controls.naive_service")
    command = [*program, str(folder), address]
    service = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not (folder / "grpc.sock").exists():
            if service.poll() is not None or time.monotonic() > deadline:
                raise InfraError("the service without checks did not start")
            time.sleep(INTERVAL_S)
        yield service
    finally:
        service.kill()
        service.communicate()
