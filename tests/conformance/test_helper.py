"""The in-box command `fumehood`, on every engine: tools for shells, a port, and MCP over a pipe."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from tarfile import TarFile

import pytest

from fumehood.engines.docker.daemon import Daemon
from fumehood.engines.engine import AgentKind, AgentSource, BoxOutput, BoxSpec, Engine, Image
from fumehood.engines.images.build import import_image
from fumehood.engines.images.helper import build_helper
from fumehood.orchestrator.service_pool import HttpOffer, ServiceOptions, ServicePool
from fumehood.wire.control_client import ControlClient
from tests.conformance.boxes import PATIENCE_MS
from tests.parts.listening import Listened, listening
from tests.parts.specs import episode_spec

pytestmark = pytest.mark.slow

HELPER = "/fumehood/bin/fumehood"
EMPTY_IMAGE = "fumehood/test-empty:latest"

ASK_OVER_PORT = """
import http.client, json, os
assert os.environ["OPENAI_BASE_URL"] == "http://127.0.0.1:4141/v1"
assert os.environ["OPENAI_API_KEY"] == "none"
line = http.client.HTTPConnection("127.0.0.1", 4141, timeout=20)
for number in range(3):
    line.request("POST", "/call/get_account", json.dumps({"id": "ax1"}))
    print(line.getresponse().read().decode())
large = {"fields": {"id": "big", "text": "x" * 900_000}}
line.request("POST", "/call/create_account", json.dumps(large))
print(len(json.loads(line.getresponse().read())["account"]["text"]))
raise SystemExit(7)
"""

SPEAK_MCP = """
import json, subprocess
PIPE = subprocess.PIPE
server = subprocess.Popen(["/fumehood/bin/fumehood", "mcp"], stdin=PIPE, stdout=PIPE)
def say(message):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\\n")
    server.stdin.flush()
    return json.loads(server.stdout.readline()) if "id" in message else None
client = {"name": "test", "version": "0"}
hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
print(say({"id": 1, "method": "initialize", "params": hello})["result"]["instructions"])
say({"method": "notifications/initialized"})
print([tool["name"] for tool in say({"id": 2, "method": "tools/list"})["result"]["tools"]])
params = {"name": "get_account", "arguments": {"id": "no"}}
called = say({"id": 3, "method": "tools/call", "params": params})
print(called["result"]["isError"])
server.stdin.close()
print(server.wait())
"""


@pytest.fixture(scope="module")
def client() -> Iterator[ControlClient]:
    helper = build_helper(lambda _: None)
    if helper is None:
        message = "needs a C compiler (Debian: apt-get install musl-tools)"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    with ServicePool(1, ServiceOptions(http=HttpOffer(helper))) as pool, pool.lease() as lent:
        yield lent


@pytest.fixture
def episode(client: ControlClient) -> Iterator[Listened]:
    with listening(client, episode_spec(calls=100)) as open_episode:
        yield open_episode


class Seat:
    """Runs commands in boxes at one seat."""

    def __init__(self, engine: Engine, image: Image, episode: Listened) -> None:
        self._engine = engine
        self._image = image
        self._socket_dir = Path(episode.directory)

    def run(self, *command: str) -> tuple[int, str]:
        code, output = self.run_whole(*command)
        return code, output.stdout.decode()

    def run_whole(self, *command: str) -> tuple[int, BoxOutput]:
        image = replace(self._image, command=command)
        with ExitStack() as stack:
            box = self._engine.start(BoxSpec(image=image, socket_dir=self._socket_dir))
            stack.callback(box.close)
            ended = box.wait(PATIENCE_MS)
            assert ended is not None
            return ended.code, box.close()


@pytest.fixture
def seat(engine: Engine, episode: Listened) -> Seat:
    return Seat(engine, engine.prepare(AgentSource(AgentKind.BUILTIN, "noop")), episode)


def test_a_shell_agent_can_play_a_whole_episode(seat: Seat, episode: Listened) -> None:
    assert seat.run(HELPER, "task") == (0, "Do it.\n")
    code, text = seat.run(HELPER, "tools")
    assert [tool["name"] for tool in json.loads(text)][:2] == ["get_account", "update_account"]
    code, text = seat.run(HELPER, "call", "get_account", '{"id": "ax1"}')
    assert (code, json.loads(text)) == (0, {"account": {"id": "ax1", "tier": "basic"}})
    assert seat.run(HELPER, "left") == (0, '{"turn":1,"remaining":{"calls":99}}\n')
    code, text = seat.run(HELPER, "call", "no such/tool?")
    assert (code, json.loads(text)["code"]) == (1, "unknown_tool")
    code, text = seat.run(HELPER, "call", "get_account", "[]")
    assert (code, json.loads(text)["refusal"]) == (2, "malformed")
    assert seat.run(HELPER, "submit", "--confidence", "2", "42 é")[0] == 2
    assert seat.run(HELPER, "submit", "--confidence", "0.5", "42 é") == (0, '{"accepted":true}\n')
    assert seat.run(HELPER, "report", "turn_limit") == (0, '{"recorded":false}\n')
    assert seat.run(HELPER, "stop", "bad_luck")[0] == 2
    assert seat.run(HELPER, "give-up", "too late") == (0, '{"accepted":false}\n')
    episode.close()
    ends = [event["end"] for event in episode.events if event["kind"] == "seat_ended"]
    assert ends == [{"outcome": "finished", "answer": "42 é"}]
    stated = [event for event in episode.events if event["kind"] == "confidence"]
    assert stated == [{"kind": "confidence", "seat": "agent", "confidence": 0.5}]


def test_a_call_with_an_id_runs_once_and_the_last_call_reports_the_end(
    engine: Engine, client: ControlClient
) -> None:
    with listening(client, episode_spec(steps=2)) as short:
        seat = Seat(engine, engine.prepare(AgentSource(AgentKind.BUILTIN, "noop")), short)
        make = ("call", "--id", "a", "create_account", '{"fields": {}}')
        assert seat.run(HELPER, *make) == seat.run(HELPER, *make)
        assert seat.run_whole(HELPER, *make)[1].stderr == b""
        code, output = seat.run_whole(HELPER, "call", "get_account", '{"id": "ax1"}')
        assert (code, output.stderr) == (0, b"fumehood: the episode has ended\n")


def test_an_http_client_reaches_the_tools_through_a_port(seat: Seat) -> None:
    code, text = seat.run(HELPER, "run", "--port", "4141", "--", "python3", "-c", ASK_OVER_PORT)
    account = '{"account":{"id":"ax1","tier":"basic"}}'
    assert (code, text.splitlines()) == (7, [account] * 3 + ["900000"])


def test_mcp_works_over_a_pipe(seat: Seat) -> None:
    code, text = seat.run("python3", "-c", SPEAK_MCP)
    tools = [
        "get_account",
        "update_account",
        "create_account",
        "close_account",
        "submit",
        "give_up",
    ]
    assert (code, text.splitlines()) == (0, ["Do it.", str(tools), "True", "0"])


def test_wrong_usage_prints_the_usage(seat: Seat) -> None:
    for wrong in (
        (),
        ("call",),
        ("call", "--id", "a"),
        ("call", "--id", "a\r\nb", "x"),
        ("run", "--port", "0", "--", "true"),
        ("run", "--port", "1", "true"),
    ):
        code, output = seat.run_whole(HELPER, *wrong)
        assert (code, output.stdout) == (64, b"")
        assert b"fumehood call [--id ID] NAME" in output.stderr
    assert seat.run(HELPER, "--help")[0] == 0
    code, output = seat.run_whole(HELPER, "run", "--port", "4141", "--", "/no/such/program")
    assert (code, output.stderr) == (
        127,
        b"fumehood: /no/such/program: No such file or directory\n",
    )


def test_the_command_cannot_be_changed_from_inside(
    containing_engine: Engine, episode: Listened
) -> None:
    image = containing_engine.prepare(AgentSource(AgentKind.BUILTIN, "noop"))
    seat = Seat(containing_engine, image, episode)
    code, output = seat.run_whole("python3", "-c", f"open({HELPER!r}, 'ab')")
    assert code == 1
    assert b"Permission denied" in output.stderr or b"Read-only file system" in output.stderr
    seat.run("python3", "-c", f"import os; os.unlink({HELPER!r})")
    assert seat.run(HELPER, "task")[0] == 0


def test_the_command_runs_in_an_empty_image(container_engine: Engine, episode: Listened) -> None:
    daemon = Daemon()
    try:
        empty = BytesIO()
        TarFile(fileobj=empty, mode="w").close()
        empty.seek(0)
        import_image(daemon, empty, EMPTY_IMAGE, ('CMD ["unused"]',))
        image = Image(EMPTY_IMAGE, "", ())
        if container_engine.has_runtimes:
            source = AgentSource(AgentKind.IMAGE, EMPTY_IMAGE)
            image = replace(container_engine.prepare(source), command=())
        assert Seat(container_engine, image, episode).run(HELPER, "task") == (0, "Do it.\n")
    finally:
        daemon.client.remove_image(EMPTY_IMAGE)
        daemon.close()
