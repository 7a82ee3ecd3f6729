"""A run can set each limit on messages; the service enforces it under the same name."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pytest
from click.testing import CliRunner

from fumehood.cli.run import run
from fumehood.core.errors import InputError
from fumehood.orchestrator.config import MessageLimits, run_config
from fumehood.orchestrator.service_pool import HttpOffer, ServiceOptions, ServicePool
from fumehood.service.message_limits import message_limits
from fumehood.service.seat_endpoint import SeatLimits
from fumehood.wire.http.listener import HttpLimits
from fumehood.wire.tool_server import ToolServerLimits
from fumehood_agent.errors import Refused
from fumehood_agent.session import Session
from tests.parts.http import HttpSeat
from tests.parts.specs import episode_spec


def test_every_limit_is_a_setting_with_the_same_default() -> None:
    enforced = asdict(SeatLimits()) | asdict(ToolServerLimits()) | asdict(HttpLimits())
    assert MessageLimits().model_dump() == enforced


@pytest.mark.parametrize("name", MessageLimits.model_fields)
def test_a_service_applies_a_changed_limit(name: str) -> None:
    value = MessageLimits.model_fields[name].default + 1
    changed = MessageLimits(**{name: value}).changed()
    assert changed == {name: value}
    kept = message_limits(json.dumps(changed))
    assert (asdict(kept.seat) | asdict(HttpLimits(**kept.http)) | asdict(kept.server))[
        name
    ] == value


def test_the_limit_of_connections_applies_to_both_sockets() -> None:
    kept = message_limits('{"connections": 3}')
    assert (kept.server.connections, kept.http) == (3, {"connections": 3})


def test_a_service_without_changes_applies_the_defaults() -> None:
    assert MessageLimits().changed() == {}
    assert message_limits("{}").seat == SeatLimits()


@pytest.mark.parametrize("text", ["", "[]", "7", '{"no_such_limit": 1}'])
def test_a_service_rejects_unknown_limits(text: str) -> None:
    with pytest.raises(InputError, match="must be a JSON object of known limits"):
        message_limits(text)


@pytest.mark.slow
def test_the_grpc_socket_enforces_the_limits_of_a_run() -> None:
    spec = episode_spec(episode_id="bounded", world="files", state={"files": {}})
    with (
        ServicePool(1, ServiceOptions(limits={"argument_bytes": 20})) as pool,
        pool.lease() as client,
    ):
        opened = client.open_seats(spec)
        directory = opened.directories[spec.seats[0].name]
        with Session(directory / "grpc.sock") as session:
            session.call("list_dir", {"path": "/"})
            with pytest.raises(Refused, match="20"):
                session.call("list_dir", {"path": "/" * 20})
        client.close_episode("bounded", timed_out=False)


@pytest.mark.slow
def test_the_http_socket_enforces_the_limits_of_a_run() -> None:
    spec = episode_spec(episode_id="bounded", world="files", state={"files": {}})
    limits = {"body_bytes": 1024}
    with (
        ServicePool(1, ServiceOptions(http=HttpOffer(), limits=limits)) as pool,
        pool.lease() as client,
    ):
        opened = client.open_seats(spec)
        directory = opened.directories[spec.seats[0].name]
        with closing(HttpSeat(str(directory))) as http:
            call = {"toolName": "list_dir", "argumentsJson": '{"path":"/"}'}
            assert http.rpc("CallTool", call)[0] == 200
            assert http.rpc("CallTool", {**call, "callId": "x" * 1024})[0] == 429
        client.close_episode("bounded", timed_out=False)


@pytest.mark.slow
def test_the_run_folder_stores_the_limits(tmp_path: Path) -> None:
    file, out = tmp_path / "run.yaml", tmp_path / "run"
    file.write_text(
        "suite: sample\nagents: [noop]\nengine: process\nmessages: {refusals: 3}\n",
        encoding="utf-8",
    )
    assert (
        CliRunner().invoke(run, ["--config", str(file), "--out", str(out), "--json"]).exit_code == 0
    )
    manifest = json.loads((out / "run.json").read_text(encoding="utf-8"))
    assert manifest["config"]["messages"]["refusals"] == 3


def test_a_limit_out_of_range_is_an_input_error() -> None:
    with pytest.raises(InputError, match=r"messages\.connections"):
        run_config({"suite": "x", "agents": ("y",), "messages": {"connections": 0}})
