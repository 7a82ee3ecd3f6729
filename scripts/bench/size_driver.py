"""Runs the command in this process and writes the processor time of the driver's parts.

Arguments: the file to write, ``ray`` or a file of answers, then those of ``fumehood``. With a file,
each node is a process of this host that the driver reaches over a socket, without Ray. The file
receives the answers of the nodes. If it exists, its answers replace the nodes, so that the driver
works alone.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
from base64 import b64decode
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.managers import BaseManager
from pathlib import Path
from typing import Any

from fumehood.cli import main
from fumehood.orchestrator import nodes, places
from fumehood.orchestrator.bounded_scoring import ScoringProcesses
from fumehood.orchestrator.config import LOCAL
from fumehood.orchestrator.node import Node
from fumehood.orchestrator.ray_cluster import RayCluster
from fumehood.records.run_folder import RunFolder
from fumehood.wire.as_bytes import spec_from_bytes


class Manager(BaseManager):
    """Starts a process with a node."""


Manager.register("Node", Node)


class ProcessCluster:
    """Nodes in processes of this host, with the methods of a :class:`RayCluster`."""

    def __init__(self, size: int, answers: Path) -> None:
        self.size = size
        self._is_recorded = answers.exists()
        self.answers: dict[str, Any] = (
            pickle.loads(answers.read_bytes()) if self._is_recorded else {}
        )
        self._managers: dict[str, Manager] = {}
        self._threads = ThreadPoolExecutor(1000)

    def space(self) -> int:
        """Return the number of nodes."""
        return self.size

    def new_node(self, calls_at_once: int) -> Any:
        """Start a process with a node."""
        if self._is_recorded:
            return "recorded"
        manager = Manager(ctx=get_context("spawn"))
        manager.start()
        node = manager.Node()  # type: ignore[attr-defined]
        self._managers[str(node)] = manager
        return node

    def call(self, node: Any, method: str, *arguments: bytes) -> Future[Any]:
        """Call a method of a node, or return its recorded answer."""
        key = _episode_of(arguments[0]) if method == "play" else method
        if self._is_recorded:
            recorded = Future[Any]()
            recorded.set_result(self.answers[key])
            return recorded
        future = self._threads.submit(getattr(node, method), *arguments)
        future.add_done_callback(lambda done: self.answers.update({key: done.result()}))
        return future

    def kill(self, node: Any) -> None:
        """End the process of a node."""
        if not self._is_recorded:
            self._managers.pop(str(node)).shutdown()


def _episode_of(request: bytes) -> str:
    (episode,) = json.loads(request)["episodes"]
    return spec_from_bytes(b64decode(episode["spec"])).episode_id


@contextmanager
def process_cluster(on: str, answers: Path) -> Iterator[ProcessCluster]:
    """Replace :func:`fumehood.orchestrator.ray_cluster.ray_cluster`."""
    cluster = ProcessCluster(int(on.removeprefix(LOCAL)), answers)
    yield cluster
    answers.write_bytes(pickle.dumps(cluster.answers))


ANSWER, ROW = "trace: decode", "row: sign and write"
PARTS = (
    ("request: encode", nodes, "request_to_bytes"),
    ("request: hand over", RayCluster, "call"),
    ("request: hand over", ProcessCluster, "call"),
    (ANSWER, nodes, "reply_from_json"),
    ("trace: hand to scoring", ScoringProcesses, "score_all"),
    ("trace: write", RunFolder, "write_trace"),
    ("output: write", RunFolder, "write_output"),
    (ROW, RunFolder, "append_rows"),
    ("run: seal", RunFolder, "seal"),
)

spent_s = defaultdict[str, float](float)
"""Processor time by part, of the threads that called it."""
moments = defaultdict[str, list[tuple[float, float]]](list)
"""Time and processor time of this process at the end of each call, by part."""


def _timed(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def timed(*arguments: Any, **named: Any) -> Any:
        before = time.thread_time()
        try:
            return function(*arguments, **named)
        finally:
            spent_s[part] += time.thread_time() - before
            moments[part].append((time.monotonic(), time.process_time()))

    return timed


if __name__ == "__main__":
    out, cluster = Path(sys.argv.pop(1)), sys.argv.pop(1)
    if cluster != "ray":
        places.ray_cluster = lambda on, is_trusted: process_cluster(  # type: ignore[assignment]
            on, Path(cluster)
        )
    for name, owner, attribute in PARTS:
        setattr(owner, attribute, _timed(name, getattr(owner, attribute)))
    try:
        main()
    finally:
        first, last = moments[ANSWER][0], moments[ROW][-1]
        total = {"seconds": last[0] - first[0], "processor_s": last[1] - first[1]}
        out.write_text(json.dumps({"parts": spent_s, **total}), encoding="utf-8")
