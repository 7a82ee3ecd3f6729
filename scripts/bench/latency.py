"""A tool call from inside the box, against a bare gRPC echo and against ``docker exec``."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median

from fumehood.core.errors import InfraError
from fumehood.core.task import Case
from fumehood.engines.engine import AGENT_FOLDER, AgentKind, AgentSource, BoxSpec, Engine, Mount
from fumehood.engines.images.agent_python import build_agent_python
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.service_pool import ServicePool
from fumehood.redteam.victim import percentile
from scripts.bench.call_parts import call_parts, time_in_layers_us, trace_us
from scripts.bench.measure import Figure, ratio, timed

PROBE = Path(__file__).with_name("latency_probe.py")
ECHO_NAME = "echo.sock"
P50_MAX, P99_MAX = 1.1, 1.3
EXEC_MIN = 100
EXEC_ROUNDS = 10
BOX_TIMEOUT_MS = 120_000


def call_latency(engine: Engine, case: Case) -> Iterator[Figure]:
    """Yield the ratios of a tool call to an echo of the same bytes, both made from one box in turn.

    The case is a task of the crud world whose budget admits the calls.
    """
    times, layers_us = _probe(engine, case)
    event_us = trace_us(case)
    for kind in ("unary", "stream"):
        for name, share, goal in (("p50", 0.5, P50_MAX), ("p99", 0.99, P99_MAX)):
            mine, other = (percentile(times[f"{kind}_{what}"], share) for what in ("tool", "echo"))
            detail = f"({mine:.0f} against {other:.0f} µs)"
            yield ratio(
                f"{kind} call from the box to bare echo, {name}", mine, other, goal, detail=detail
            )
        yield from call_parts(kind, times, layers_us, event_us)
    if engine.name == "docker":
        call_ms = median(times["unary_tool"]) / 1000
        exec_ms = _docker_exec_ms()
        yield ratio(
            "docker exec true to unary call",
            exec_ms,
            call_ms,
            EXEC_MIN,
            at_least=True,
            detail=f"({exec_ms:.0f} against {call_ms:.2f} ms)",
        )


def _probe(engine: Engine, case: Case) -> tuple[dict[str, list[float]], float]:
    """Return the times that the probe printed, and the median of the layers, microseconds."""
    image = engine.prepare(AgentSource(AgentKind.MODULE, "scripts.bench.latency_probe:Probe"))
    # The box shows the probe alone, not the package that it belongs to.
    command = (*image.command[:-1], "latency_probe:Probe")
    others = (mount for mount in image.mounts if not mount.target.startswith(AGENT_FOLDER))
    spec = PlannedEpisode("bench", case, 0, 0).to_spec(BOX_TIMEOUT_MS)
    with (
        ServicePool(1) as pool,
        pool.lease() as client,
        tempfile.TemporaryDirectory() as code,
        ExitStack() as stack,
    ):
        Path(code).chmod(0o755)
        (Path(code) / PROBE.name).write_bytes(PROBE.read_bytes())
        seats = client.open_seats(spec)
        sockets = next(iter(seats.directories.values()))
        stack.enter_context(_echo_server(sockets / ECHO_NAME))
        mounts = (*others, Mount(Path(code), AGENT_FOLDER))
        shown = replace(image, command=command, mounts=mounts)
        box = engine.start(BoxSpec(image=shown, socket_dir=sockets))
        ended = box.wait(BOX_TIMEOUT_MS)
        output = box.close()
        client.close_episode(spec.episode_id, timed_out=False)
        layers_us = time_in_layers_us(seats.messages)
    if ended is None or ended.code != 0:
        lines = output.stderr.decode(errors="replace").strip().splitlines()
        reason = lines[-1] if lines else "it printed nothing"
        raise InfraError(f"the probe did not finish: {reason}")
    return json.loads(output.stdout), layers_us


@contextmanager
def _echo_server(path: Path) -> Iterator[None]:
    """Serve in the folder of the seat: a box shows no other socket."""
    process = subprocess.Popen(
        [sys.executable, "-m", "scripts.bench.echo", str(path)], stdin=subprocess.PIPE
    )
    try:
        while not path.exists():
            if process.poll() is not None:
                raise InfraError("the echo server did not start")
            time.sleep(0.01)
        path.chmod(0o666)
        yield
    finally:
        process.communicate()


def _docker_exec_ms() -> float:
    # The image has no shell and no tools, so the host's `true` is lent to it.
    true = f"{shutil.which('true')}:/true:ro"
    reference = build_agent_python(lambda _: None)
    sleep = ["python3", "-c", "import time; time.sleep(60)"]
    options = ["--rm", "--detach", "--network", "none", "--volume", true]
    start = ["docker", "run", *options, reference, *sleep]
    box = subprocess.run(start, check=True, capture_output=True, text=True).stdout.strip()
    try:
        times = [
            timed(lambda: subprocess.run(["docker", "exec", box, "/true"], check=True))
            for _ in range(EXEC_ROUNDS)
        ]
        return median(times) * 1000
    finally:
        subprocess.run(["docker", "rm", "--force", box], check=True, capture_output=True)
