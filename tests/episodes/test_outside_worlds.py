"""Worlds that need a server, a checker or the network have their own processes, too."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from fumehood.benchmarks.knowledge.graph import QueryFailed, checked
from fumehood.core.episode_spec import DataMode, DataSource, EpisodeSpec
from fumehood.core.outcome import Finished
from fumehood.orchestrator.service_pool import ServiceOptions, ServicePool
from fumehood.worlds.registry import readable_paths
from fumehood_agent.errors import FumehoodError
from fumehood_agent.session import Session
from tests.conformance.worlds.examples import EXAMPLES
from tests.parts.folders import short_folder
from tests.parts.knowledge import endpoint, write_checkout
from tests.parts.listening import Listened, listening
from tests.parts.mariadb import has_mariadb
from tests.parts.postgresql import has_postgresql
from tests.parts.specs import episode_spec
from tests.unit.snapshots.sites import article, serving

SLEEPS = """
import time

def sleep(state):
    time.sleep(3600)

def answer(state):
    return {"answer": 42}
"""
WORLDS = ["declared_python", "search", *(["sql_mariadb"] if has_mariadb() else [])]


@pytest.fixture(scope="module")
def pool() -> Iterator[ServicePool]:
    with ServicePool(1, ServiceOptions(worlds=WORLDS)) as services:
        yield services


def _process(episode: Listened) -> int:
    """Return the process that listens on an episode's socket."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(f"{episode.directory}/grpc.sock")
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid: int = struct.unpack("iII", credentials)[0]
    return pid


def _assert_is_confined(pid: int, pool: ServicePool) -> None:
    assert pid != pool.workers()[0].pid
    own_network = os.readlink("/proc/self/ns/net")
    assert os.readlink(f"/proc/{pid}/ns/net") != own_network
    assert "NoNewPrivs:\t1" in Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    sockets = []
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # It was closed in the meantime.
            sockets.append(os.readlink(file))
    assert not [name for name in sockets if "mariadb" in name]


def _python_world(episode_id: str) -> EpisodeSpec:
    example: Any = EXAMPLES["declared_python"].state
    toolset = {
        **example["toolset"],
        "python": SLEEPS,
        "tools": [
            {
                "name": name,
                "description": "x",
                "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
            }
            for name in ("sleep", "answer")
        ],
    }
    state = {**example, "toolset": toolset}
    return episode_spec(episode_id=episode_id, world="declared_python", state=state)


@pytest.mark.slow
def test_a_checker_that_sleeps_delays_only_its_own_episode(pool: ServicePool) -> None:
    def sleep(episode: Listened) -> None:
        try:
            with Session(Path(episode.directory) / "grpc.sock") as session:
                session.call("sleep", {})
        except FumehoodError:
            pass  # The episode is closed during the call.

    with (
        pool.lease() as client,
        listening(client, _python_world("sleeps")) as sleeps,
        listening(client, _python_world("victim")) as victim,
    ):
        _assert_is_confined(_process(sleeps), pool)
        sleeper = Thread(target=sleep, args=(sleeps,), daemon=True)
        sleeper.start()
        with Session(Path(victim.directory) / "grpc.sock") as session:
            for _ in range(5):
                assert "42" in str(session.call("answer", {}))
            session.submit("done")
        assert sleeper.is_alive()
        victim.close()
        assert victim.evidence.ends["agent"] == Finished("done")


@pytest.mark.slow
@pytest.mark.skipif(not has_mariadb(), reason="MariaDB is not installed")
def test_the_databases_of_two_episodes_are_separate(pool: ServicePool) -> None:
    table = {"name": "t", "columns": ["a"], "rows": [["1"]]}
    specs = [
        episode_spec(episode_id=name, world="sql_mariadb", state={"tables": [table]})
        for name in ("one", "two")
    ]
    with (
        pool.lease() as client,
        listening(client, specs[0]) as one,
        listening(client, specs[1]) as two,
    ):
        _assert_is_confined(_process(one), pool)
        assert _process(one) != _process(two)
        with Session(Path(one.directory) / "grpc.sock") as session:
            session.call("execute_sql", {"query": "UPDATE t SET a = '2'"})
            session.submit("done")
        with Session(Path(two.directory) / "grpc.sock") as session:
            assert "[('1',)]" in str(session.call("execute_sql", {"query": "SELECT * FROM t"}))
            session.submit("done")
        one.close()
        two.close()
    changed, same = (each.evidence.final_state for each in (one, two))
    assert changed["tables"] == [{**table, "rows": [["2"]]}]
    assert same["tables"] == [table]


def test_a_live_page_is_fetched_without_a_network_in_the_process(pool: ServicePool) -> None:
    with serving({"/owls": article("owls")}) as site, pool.lease() as client:
        settings: dict[str, Any] = {"fetch": site.policy().model_dump(mode="json")}
        spec = replace(
            episode_spec(world="search", state={}), data_source=DataSource(DataMode.LIVE, settings)
        )
        with listening(client, spec) as episode:
            _assert_is_confined(_process(episode), pool)
            with Session(Path(episode.directory) / "grpc.sock") as session:
                page = session.call("open_page", {"page": f"{site.url}/owls"})
                session.submit("done")
            assert "owls" in str(page)
            episode.close()
    assert episode.evidence.ends["agent"] == Finished("done")


def test_an_endpoint_is_asked_only_for_its_own_data(pool: ServicePool) -> None:
    with short_folder() as place, endpoint() as url, pool.lease() as client:
        folder = write_checkout(Path(place) / "checkout")
        state = {"folder": str(folder), "endpoint": url, "entities": {}}
        spec = episode_spec(world="knowledge_graph", state=state)
        with listening(client, spec) as episode:
            _assert_is_confined(_process(episode), pool)
            with Session(Path(episode.directory) / "grpc.sock") as session:
                assert "relations" in str(session.call("get_relations", {"variable": "m.0"}))
            episode.close()
        with pytest.raises(QueryFailed, match="another server"):
            checked("SELECT ?x WHERE { SERVICE ?a { ?x ?y ?z } }")
        assert checked("SELECT ?x WHERE { ns:m.0 ns:business.service ?x }")


@pytest.mark.slow
@pytest.mark.skipif(not has_postgresql(), reason="PostgreSQL is not installed")
def test_a_postgresql_server_is_reached_through_the_service(pool: ServicePool) -> None:
    state = {"init_sql": "CREATE TABLE t (a int); INSERT INTO t VALUES (7)", "anomalies": []}
    spec = episode_spec(world="marble_database", state=state)
    with pool.lease() as client, listening(client, spec) as episode:
        _assert_is_confined(_process(episode), pool)
        with Session(Path(episode.directory) / "grpc.sock") as session:
            assert "'7'" in str(session.call("query_db", {"sql": "SELECT a FROM t"}))
            assert "sql_error" in str(session.call("query_db", {"sql": "DROP TABLE t"}))
        episode.close()


def test_a_process_reads_the_folder_that_its_task_names_and_no_other() -> None:
    paths = {
        world: readable_paths(episode_spec(world=world, state={"folder": "/a", "other": "/b"}))
        for world in ("webshop", "knowledge_graph", "crud")
    }
    assert paths == {"webshop": ("/a",), "knowledge_graph": ("/a",), "crud": ()}
