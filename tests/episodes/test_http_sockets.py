"""The HTTP socket of a seat has the same seat and the same limits as its gRPC socket."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from fumehood.orchestrator.service_pool import HttpOffer, ServiceOptions, ServicePool
from fumehood.wire.control_client import ControlClient
from fumehood.wire.http.listener import HttpLimits
from tests.parts.http import HttpSeat
from tests.parts.listening import Listened, listening, wait_until
from tests.parts.mcp import McpSeat
from tests.parts.raw_seat import socket_dir
from tests.parts.specs import episode_spec

GET = {"toolName": "get_account", "argumentsJson": '{"id":"ax1"}'}
LIMITS = HttpLimits()


@pytest.fixture(scope="module")
def client() -> Iterator[ControlClient]:
    with (
        ServicePool(
            1, ServiceOptions(http=HttpOffer(Path(shutil.which("true") or "/bin/true")))
        ) as pool,
        pool.lease() as lent,
    ):
        yield lent


@pytest.fixture
def episode(client: ControlClient) -> Iterator[Listened]:
    with listening(client, episode_spec(calls=100)) as open_episode:
        yield open_episode


@pytest.fixture
def http(episode: Listened) -> Iterator[HttpSeat]:
    with closing(HttpSeat(episode.directory)) as connection:
        yield connection


@pytest.mark.slow
def test_the_http_socket_exists_only_on_request() -> None:
    with ServicePool(1) as pool, pool.lease() as client, listening(client, episode_spec()) as plain:
        assert [path.name for path in Path(plain.directory).iterdir()] == ["grpc.sock"]


@pytest.mark.slow
def test_the_helper_program_is_read_only(episode: Listened) -> None:
    folder = Path(episode.directory)
    assert {path.name for path in folder.iterdir()} == {"grpc.sock", "http.sock", "bin"}
    helper = folder / "bin" / "fumehood"
    assert helper.stat().st_mode & 0o777 == 0o555
    assert subprocess.run([helper], check=False).returncode == 0


@pytest.mark.parametrize("begin", [b"", b"2\r\n{}\r\n0\r\n"], ids=["body", "trailer"])
def test_an_endless_request_is_disconnected(episode: Listened, begin: bytes) -> None:
    piece = b"x: " + b"y" * 4000 + b"\r\n" if begin else b"4000\r\n" + b"y" * 0x4000 + b"\r\n"
    head = b"POST /call/get_account HTTP/1.1\r\nhost: box\r\ntransfer-encoding: chunked\r\n\r\n"
    with socket.socket(socket.AF_UNIX) as agent:
        agent.connect(f"{episode.directory}/http.sock")
        agent.sendall(head + begin)
        with pytest.raises(ConnectionError):
            _send(agent, piece, 2 * LIMITS.request_bytes // len(piece))


@pytest.mark.parametrize("ending", [" HTTP/1.0\r\n", " HTTP/1.1\r\nhost:\r\nconnection: close\r\n"])
@pytest.mark.parametrize(
    "path",
    [
        *("/", "/nothing", "/call/", "/mcp", "/fumehood.v1.ToolService/Nothing"),
        *("/task/", "/task/?x", "/tools/", "/submit/", "/mcp/", "/mcp/line/", "/v1"),
    ],
)
def test_no_response_reveals_the_path_of_the_socket(
    episode: Listened, path: str, ending: str
) -> None:
    with socket.socket(socket.AF_UNIX) as agent:
        agent.settimeout(5)
        agent.connect(f"{episode.directory}/http.sock")
        agent.sendall(f"GET {path}{ending}\r\n".encode())
        said = b"".join(iter(lambda: agent.recv(4096), b""))
    assert said.startswith(b"HTTP/1.1 4")
    assert b"http.sock" not in said
    assert Path(episode.directory).parts[2].encode() not in said


def test_requests_without_a_reader_do_not_accumulate(episode: Listened) -> None:
    body = b"POST /call/get_account HTTP/1.1\r\nhost: box\r\ncontent-length: 2\r\n\r\n{"
    more = b"}" + b"GET /task HTTP/1.1\r\nhost: box\r\n\r\n" * 1_000
    with socket.socket(socket.AF_UNIX) as agent:
        agent.settimeout(5)
        agent.connect(f"{episode.directory}/http.sock")
        agent.sendall(body)
        with suppress(ConnectionError):
            _send(agent, more, 1)
            while agent.recv(65536):
                pass
        with pytest.raises(ConnectionError):
            agent.sendall(b"GET ")


def test_a_few_pipelined_requests_are_accepted(episode: Listened) -> None:
    asked = b"GET /task HTTP/1.1\r\nhost: box\r\n\r\n" * LIMITS.pipelined_requests
    with socket.socket(socket.AF_UNIX) as agent:
        agent.settimeout(5)
        agent.connect(f"{episode.directory}/http.sock")
        agent.sendall(asked + b"GET /task HTTP/1.1\r\nconnection: close\r\n\r\n")
        said = b"".join(iter(lambda: agent.recv(4096), b""))
    assert said.count(b"HTTP/1.1 200") == LIMITS.pipelined_requests + 1


def _send(agent: socket.socket, piece: bytes, times: int) -> None:
    for _ in range(times):
        agent.sendall(piece)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_is_enough(episode: Listened) -> None:
    command = ["curl", "--silent", "--unix-socket", f"{episode.directory}/http.sock"]
    address = "http://box/fumehood.v1.ToolService/CallTool"
    done = subprocess.run(
        [*command, address, "-d", json.dumps(GET)], capture_output=True, check=True
    )
    answer = json.loads(done.stdout)
    assert json.loads(answer["valueJson"]) == {"account": {"id": "ax1", "tier": "basic"}}
    assert answer["remaining"] == {"calls": "99"}


def test_all_interfaces_lead_to_the_same_seat(episode: Listened, http: HttpSeat) -> None:
    with socket_dir(episode.directory) as grpc, closing(McpSeat(episode.directory)) as mcp:
        grpc.call("get_account", id="ax1")
        http.rpc("CallTool", GET)
        mcp.call("get_account", {"id": "ax1"})
        assert grpc.task().remaining["calls"] == 97
        assert mcp.call("submit", {"answer": "done"})["isError"] is False
        assert http.rpc("Submit", {"answer": "late"})[1] == {}
        assert grpc.call("get_account", id="ax1").ended
    episode.close()
    calls = [event for event in episode.events if event["kind"] == "call"]
    assert [call["number"] for call in calls] == [1, 2, 3]
    without_number = [{**call, "number": 0, "remaining": {}} for call in calls]
    assert without_number[0] == without_number[1] == without_number[2]


def test_a_budget_of_one_call_admits_one_call(client: ControlClient) -> None:
    async def storm(path: str) -> list[dict[str, object]]:
        transport = httpx2.AsyncHTTPTransport(uds=path)
        async with httpx2.AsyncClient(transport=transport, base_url="http://box") as http:
            sent = (http.post("/fumehood.v1.ToolService/CallTool", json=GET) for _ in range(50))
            return [answer.json() for answer in await asyncio.gather(*sent)]

    with listening(client, episode_spec(episode_id="one", calls=1)) as narrow:
        answers = asyncio.run(storm(f"{narrow.directory}/http.sock"))
        assert sum("valueJson" in answer for answer in answers) == 1


def test_the_mcp_library_finds_every_tool_in_the_first_response(
    episode: Listened,
) -> None:
    async def visit() -> tuple[str | None, list[str], str]:
        transport = httpx2.AsyncHTTPTransport(uds=f"{episode.directory}/http.sock")
        async with httpx2.AsyncClient(transport=transport) as http:
            streams = streamable_http_client("http://box/mcp", http_client=http)
            async with Client(streams) as client:
                tools = [tool.name for tool in (await client.list_tools()).tools]
                result = await client.call_tool("get_account", {"id": "absent"})
                text = result.content[0]
                assert text.type == "text"
                return client.instructions, tools, text.text

    instructions, tools, text = asyncio.run(visit())
    assert instructions == "Do it."
    assert tools == [
        "get_account",
        "update_account",
        "create_account",
        "close_account",
        "submit",
        "give_up",
    ]
    assert json.loads(text)["code"] == "not_found"


@pytest.mark.parametrize("path", ["/report", "/stop"])
def test_an_unknown_problem_is_refused_and_the_work_continues(http: HttpSeat, path: str) -> None:
    status, body = http.send(path, b"bad_luck")
    assert (status, json.loads(body)["refusal"]) == (409, "malformed")
    assert json.loads(http.send("/report", b"turn_limit\n")[1]) == {"recorded": True}


def test_an_answer_to_a_permission_request_is_recorded(http: HttpSeat, episode: Listened) -> None:
    for title, answer, recorded in [
        ("run ls", "allow_once", True),
        ("x" * 1000 + "\ud800", "reject_once", True),
        ("run rm", "allowed", False),
    ]:
        status, body = http.send("/permission", json.dumps({"title": title, "answer": answer}))
        assert (status, json.loads(body)) == (200, {"recorded": recorded})
    episode.close()
    asked = [event for event in episode.events if event["kind"] == "permission"]
    assert [(event["title"], event["answer"]) for event in asked] == [
        ("run ls", "allow_once"),
        ("x" * 500, "reject_once"),
    ]


@pytest.mark.parametrize("body", ["", "[]", "[" * 100_000, '{"title": 1, "answer": "cancelled"}'])
def test_another_message_about_a_permission_is_refused(http: HttpSeat, body: str) -> None:
    status, answer = http.send("/permission", body)
    assert (status, json.loads(answer)["refusal"]) == (409, "malformed")


def test_the_units_left_state_whether_the_work_has_ended(http: HttpSeat) -> None:
    def ended() -> str | None:
        response = http.open("/left", b"", method="GET")
        response.read()
        return response.getheader("fumehood-ended")

    assert ended() == "false"
    http.send("/submit", b"done")
    assert ended() == "true"


def test_mcp_names_the_problems_if_a_program_states_another_one(episode: Listened) -> None:
    with closing(McpSeat(episode.directory)) as mcp:
        for tool in ("fumehood.v1/report", "fumehood.v1/stop"):
            result = mcp.call(tool, {"problem": ["turn_limit"]})
            assert result["isError"]
            assert "turn_limit" in result["content"][0]["text"]


def test_a_message_that_is_too_long_is_refused_before_it_is_read(http: HttpSeat) -> None:
    status, body = http.send("/fumehood.v1.ToolService/CallTool", b" " * (LIMITS.body_bytes + 1))
    assert (status, json.loads(body)["code"]) == (429, "resource_exhausted")


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/fumehood.v1.ToolService/CallTool", "[" * 100_000, "invalid_argument"),
        ("/fumehood.v1.ToolService/CallTool", '{"toolName": 1}', "invalid_argument"),
        ("/fumehood.v1.ToolService/CallTool", '{"nothing": 1}', "invalid_argument"),
        ("/fumehood.v1.ToolService/CallTool", b"\xff\xfe", "invalid_argument"),
        ("/fumehood.v1.ToolService/Interact", "{}", "unimplemented"),
        ("/etc/passwd", "", "not_found"),
        ("/task", "{}", "wrong_method"),
    ],
)
def test_malformed_requests_are_refused_with_a_documented_code(
    http: HttpSeat, path: str, body: str | bytes, code: str
) -> None:
    assert json.loads(http.send(path, body)[1])["code"] == code
    assert http.rpc("CallTool", GET)[0] == 200


def test_endless_headers_are_disconnected(episode: Listened) -> None:
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(f"{episode.directory}/http.sock")
        line.settimeout(10)
        line.sendall(b"POST / HTTP/1.1\r\n")
        endless = b"a: b\r\n" * 1_000_000
        with pytest.raises(OSError, match=r"[Bb]roken pipe|reset"):
            line.sendall(endless)


def test_connections_beyond_the_limit_are_closed(episode: Listened) -> None:
    lines = [socket.socket(socket.AF_UNIX) for _ in range(LIMITS.connections + 20)]
    try:
        for line in lines:
            line.connect(f"{episode.directory}/http.sock")
        assert wait_until(lambda: sum(_is_open(line) for line in lines) == LIMITS.connections)
    finally:
        for line in lines:
            line.close()
    # It hears a moment later that they are gone.
    assert wait_until(lambda: _answers(episode.directory))


def _answers(directory: str) -> bool:
    with closing(HttpSeat(directory)) as http:
        try:
            return http.rpc("CallTool", GET)[0] == 200
        except OSError:
            return False


def _is_open(line: socket.socket) -> bool:
    try:
        return line.recv(1, socket.MSG_DONTWAIT) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


def test_closing_an_episode_closes_connections_and_removes_sockets(client: ControlClient) -> None:
    with listening(client, episode_spec(episode_id="gone")) as closed:
        with closing(HttpSeat(closed.directory)) as http:
            assert http.rpc("CallTool", GET)[0] == 200
            closed.close()
            with pytest.raises(OSError):  # noqa: PT011  # Any way of being hung up on.
                http.rpc("CallTool", GET)
        assert not Path(closed.directory).exists()
