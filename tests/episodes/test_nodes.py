"""A node plays what it is sent, answers every error in JSON, and is sent neither gold nor keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from fumehood.core.errors import InputError
from fumehood.core.ledger import BudgetKind
from fumehood.core.outcome import Infra, InfraKind
from fumehood.core.trace import ModelExchange, verify_chain
from fumehood.engines.engine import (
    AgentKind,
    AgentSource,
    BoxOutput,
    Exit,
    ExitReason,
    Image,
    Limits,
    Mount,
)
from fumehood.orchestrator.config import run_config
from fumehood.orchestrator.episode_runner import Attempt, BoxPlan, InlinePlan
from fumehood.orchestrator.machine import Needs
from fumehood.orchestrator.node import Node, _HeldExchanges
from fumehood.orchestrator.node_messages import (
    Reply,
    reply_from_json,
    reply_to_bytes,
    request_from_bytes,
    request_to_bytes,
    source_name,
)
from fumehood.orchestrator.nodes import Nodes, NodeStarter, node_settings
from fumehood.orchestrator.places import prepared_place
from fumehood.orchestrator.seat_exit import SeatExit
from fumehood.orchestrator.setup import RunSetup
from fumehood.wire.ports import InlineAgent
from tests.architecture.project import ROOT

TASKS = ROOT / "runner" / "fumehood" / "benchmarks" / "sample" / "tasks.jsonl"
EXCHANGE = ModelExchange(
    seat="agent",
    key="a" * 64,
    occurrence=1,
    request=b"{}",
    status=200,
    content_type="application/json",
    response=b"\xff",
)


def setup_of(**changes: Any) -> RunSetup:
    settings = {"suite": str(TASKS), "agents": ["policy_aware"], "engine": "inline", **changes}
    return RunSetup.create(run_config(settings))


def settings_of(setup: RunSetup) -> bytes:
    needs = Needs(
        config=setup.config,
        agents=setup.participants.all(),
        boxes=1,
        worlds=["crud"],
        monitors=(),
        gateway=None,
    )
    return node_settings(needs, (), None, nodes=2)


@pytest.fixture
def node() -> Iterator[Node]:
    made = Node()
    yield made
    made.close()


def request_of(setup: RunSetup, number: int) -> bytes:
    plan = InlinePlan((InlineAgent("agent", "policy_aware"),))
    specs = [planned.to_spec(60_000) for planned in setup.episodes[:number]]
    return request_to_bytes([(spec, plan) for spec in specs])


@pytest.mark.slow
def test_a_node_plays_episodes_and_returns_their_traces(node: Node) -> None:
    setup = setup_of()
    started = json.loads(node.start(settings_of(setup)))
    assert started["facts"]["engine"] == "inline"
    assert started["images"] == {"builtin:policy_aware": ["", ""]}
    for number in (1, 3):
        reply = reply_from_json(json.loads(node.play(request_of(setup, number))))
        assert [attempt.infra for attempt in reply.attempts] == [None] * number
        assert all(verify_chain(attempt.records) for attempt in reply.attempts)


def test_a_node_is_sent_no_gold_and_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-secret")
    provider = {"name": "p", "address": "http://localhost:1", "key_env": "SOME_KEY"}
    setup = setup_of(models={"providers": [provider]})
    sent = (settings_of(setup) + request_of(setup, len(setup.episodes))).decode()
    assert "SOME_KEY" in sent
    assert "sk-secret" not in sent
    for word in ("gold", "oracle", "criteria"):
        assert word not in sent


@pytest.mark.slow
def test_the_services_of_all_nodes_together_keep_the_limits_of_a_provider(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-secret")
    provider = {"name": "p", "address": "http://localhost:1", "key_env": "SOME_KEY"}
    limits = {"requests_per_minute": 60, "concurrent_calls": 12}
    setup = setup_of(models={"providers": [{**provider, **limits}]}, service_workers=3)
    assert "error" not in json.loads(node.start(settings_of(setup)))
    assert node._machine is not None
    assert node._machine.needs.gateway is not None
    (own,) = node._machine.needs.gateway.providers
    shares = 2 * 3
    assert own.requests_per_minute == 60 // shares
    assert own.concurrent_calls == 12 // shares


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"version": "0.0.0"}, "install the same version"),
        ({"folder": "/nowhere"}, "use the same folder on all machines"),
        (
            {"agents": {"builtin:policy_aware": ["other", False]}},
            "code of policy_aware differs",
        ),
        ({"config": {"engine": "none"}}, "none"),
    ],
)
def test_a_node_that_cannot_play_a_run_says_why(
    change: dict[str, Any], problem: str, node: Node
) -> None:
    settings = {**json.loads(settings_of(setup_of())), **change}
    kind, text = json.loads(node.start(json.dumps(settings).encode()))["error"]
    assert kind == "input"
    assert problem in text


@pytest.mark.slow
def test_an_error_of_a_node_contains_no_key(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-never-to-be-seen")
    provider = {"name": "p", "address": "http://localhost:1", "key_env": "SOME_KEY"}
    setup = setup_of(models={"providers": [provider]})
    assert "error" not in json.loads(node.start(settings_of(setup)))
    episode = {
        **json.loads(request_of(setup, 1))["episodes"][0],
        "box": {"agent": "sk-never-to-be-seen"},
    }
    request = json.dumps({"episodes": [episode], "recorded": []}).encode()
    kind, text = json.loads(node.play(request))["error"]
    assert kind == "infra"
    assert "'[key]' is not a valid AgentKind" in text
    assert "sk-never-to-be-seen" not in text


class Threads:
    """A cluster whose nodes are in this process; each is started when the one before has been."""

    size = 2
    node = Node

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(1)

    def space(self) -> int:
        return self.size

    def new_node(self, calls_at_once: int) -> Node:
        return self.node()

    def call(self, node: Node, method: str, *arguments: bytes) -> Future[Any]:
        return self._threads.submit(getattr(node, method), *arguments)

    def kill(self, node: Node) -> None:
        node.close()


@pytest.mark.slow
def test_a_run_that_waits_for_nodes_says_how_many_are_ready() -> None:
    said: list[str] = []
    nodes = Nodes(cast("Any", Threads()), settings_of(setup_of()), at_once=1)
    with closing(nodes):
        nodes.start(said.append)
    assert re.fullmatch(r"waiting for the nodes: 0 of 2 ready, 0 s elapsed", said[0])
    assert re.fullmatch(r"waiting for the nodes: 2 of 2 ready, \d+ s elapsed", said[-1])


class BrokenNode(Node):
    """A node that does not answer as it should."""

    answer = b""

    def play(self, request: bytes) -> bytes:
        return self.answer


MALFORMED_ANSWERS = (
    b"",
    b"\xff",
    b"[" * 100_000,
    b"null",
    b"{}",
    b'{"error": 3}',
    b'{"attempts": [], "exchanges": []}',
    b'{"attempts": [{"records": "%"}], "exchanges": []}',
    b'{"attempts": 1e999, "exchanges": []}',
)


@pytest.mark.slow
def test_a_malformed_answer_of_a_node_is_a_failure_of_the_infrastructure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setup = setup_of()
    monkeypatch.setattr(Threads, "node", BrokenNode)
    plan = InlinePlan((InlineAgent("agent", "policy_aware"),))
    with closing(Nodes(cast("Any", Threads()), settings_of(setup), at_once=1)) as nodes:
        nodes.start(lambda _: None)
        for answer in MALFORMED_ANSWERS:
            monkeypatch.setattr(BrokenNode, "answer", answer)
            attempt = nodes.play(setup.episodes[0].to_spec(60_000), plan, (), lambda _: None)
            assert attempt.infra is not None, answer
            assert attempt.infra.kind is InfraKind.ENGINE, answer
            detail = attempt.infra.detail
            assert detail.startswith("an answer of a node cannot be read: "), answer


class WithDeadMachine(Threads):
    """A cluster that notices only later that the second of its machines died."""

    def space(self) -> int:
        return 1

    def call(self, node: Node, method: str, *arguments: bytes) -> Future[Any]:
        if method == "start" and self._started:
            return Future()  # Waits for a machine.
        self._started = True
        return super().call(node, method, *arguments)

    _started = False


@pytest.mark.slow
def test_a_run_does_not_wait_for_a_node_of_a_machine_that_died() -> None:
    nodes = Nodes(cast("Any", WithDeadMachine()), settings_of(setup_of()), at_once=1)
    with closing(nodes):
        nodes.start(lambda _: None)
        assert len(nodes.facts) == 1


class AfterPings(Threads):
    """A cluster whose nodes answer ``pings`` pings, and then the request or nothing."""

    pings = 2
    answer: bytes | None = None

    def __init__(self) -> None:
        super().__init__()
        self._playing: Future[bytes] = Future()
        self._pings = 0

    def call(self, node: Node, method: str, *arguments: bytes) -> Future[Any]:
        if method == "play":
            return self._playing
        if method != "ping":
            return super().call(node, method, *arguments)
        self._pings += 1
        if self._pings <= self.pings:
            return super().call(node, method)
        if self.answer is not None:
            self._playing.set_result(self.answer)
            return super().call(node, method)
        return Future()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (None, "the node that played the episode was lost"),
        (b'{"error": ["infra", "late"]}', "late"),
    ],
)
def test_a_node_is_lost_if_it_hangs_and_not_if_it_is_slow(
    monkeypatch: pytest.MonkeyPatch, answer: bytes | None, problem: str
) -> None:
    monkeypatch.setattr("fumehood.orchestrator.nodes.PING_INTERVAL_S", 0.01)
    monkeypatch.setattr("fumehood.orchestrator.nodes.PING_TIMEOUT_S", 2.0)
    monkeypatch.setattr(AfterPings, "answer", answer)
    setup = setup_of()
    plan = InlinePlan((InlineAgent("agent", "policy_aware"),))
    with closing(Nodes(cast("Any", AfterPings()), settings_of(setup), at_once=1)) as nodes:
        nodes.start(lambda _: None)
        attempt = nodes.play(setup.episodes[0].to_spec(60_000), plan, (), lambda _: None)
    assert attempt.infra == Infra(InfraKind.ENGINE, problem)


def test_a_node_holds_no_model_requests_that_are_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fumehood.orchestrator.node.HELD_BYTES_MAX", 2 * len(b"{}" + b"\xff"))
    held = _HeldExchanges()
    for _ in range(2):
        held.add(EXCHANGE)
    assert held.exchanges == [EXCHANGE, EXCHANGE]
    held.add(EXCHANGE)
    held.add(replace(EXCHANGE, request=b"", response=b""))
    assert held.exchanges == []


def test_a_malformed_request_is_an_error_and_no_exception(node: Node) -> None:
    assert json.loads(node.play(b"{}"))["error"] == ["infra", "the node was not started"]
    assert json.loads(node.start(b"["))["error"][0] == "infra"


def test_a_box_arrives_with_its_files_and_counterparts(tmp_path: Path) -> None:
    calls = tmp_path / "calls.json"
    calls.write_text("[1]")
    agent, other = (AgentSource(AgentKind.BUILTIN, name) for name in ("oracle", "script"))

    def box(source: AgentSource, **changes: Any) -> BoxPlan:
        image = Image(source_name(source), "", ())
        return BoxPlan(engine=NodeStarter(), image=image, limits=Limits(), **changes)

    plan = box(
        agent,
        arguments=("--calls", "/calls"),
        mounts=(Mount(calls, "/calls"),),
        counterparts={"user": box(other)},
    )
    spec = setup_of().episodes[0].to_spec(60_000)
    arrived: dict[str, str] = {}

    def new_mount(target: str, text: str) -> Mount:
        arrived[target] = text
        return Mount(calls, target)

    def new_box(name: str) -> BoxPlan:
        return box(agent if name == "builtin:oracle" else other)

    request = request_to_bytes([(spec, plan)], [EXCHANGE])
    ((received, sent),), recorded = request_from_bytes(request, new_box, new_mount)
    assert isinstance(sent, BoxPlan)
    assert arrived == {"/calls": "[1]"}
    assert (sent.arguments, sent.mounts) == (plan.arguments, plan.mounts)
    assert sent.counterparts["user"].image.reference == "builtin:script"
    assert (received, recorded) == (spec, [EXCHANGE])
    assert received.seats[0].budget[BudgetKind.WALL_MS] == 60_000


def test_an_attempt_arrives_as_it_was_sent() -> None:
    failed = Attempt((), None, None, Infra(InfraKind.SERVICE, "gone"), 5)
    output = BoxOutput(b"\xff", b"", 9, 0)
    played = Attempt((), Exit(3, ExitReason.KILLED), output, None, 7)
    other_seat = replace(played, exit=SeatExit(1, ExitReason.EXITED, "user"))
    sent = Reply([failed, played, other_seat], [EXCHANGE])
    received = reply_from_json(json.loads(reply_to_bytes(sent)))
    assert received.exchanges == [EXCHANGE]
    for one, other in zip(received.attempts, sent.attempts, strict=True):
        assert (one.records, one.exit, one.output) == (other.records, other.exit, other.output)
        assert (one.infra, one.wall_ms) == (other.infra, other.wall_ms)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"monitors": ["person"]}, "the monitor `person` needs one machine"),
        ({"on": "ray://127.0.0.1:1"}, "no Ray cluster answers at ray://127.0.0.1:1"),
    ],
)
def test_a_run_that_nodes_cannot_play_is_refused_before_a_cluster_starts(
    changes: dict[str, Any], problem: str
) -> None:
    setup = setup_of(**{"on": "local:2", "engine": "process", **changes})
    with pytest.raises(InputError, match=problem), prepared_place(setup, lambda _: None):
        pass


@pytest.mark.parametrize("on", ["there", "local:0", "ray://host", "ray://:1"])
def test_an_unknown_place_is_refused(on: str) -> None:
    with pytest.raises(InputError, match="on"):
        run_config({"suite": "any", "agents": ["any"], "on": on})


def test_trust_without_a_cluster_is_refused() -> None:
    with pytest.raises(InputError, match="i_trust_this_cluster has no effect on local:2"):
        run_config({"suite": "a", "agents": ["a"], "on": "local:2", "i_trust_this_cluster": True})
