"""Code of an agent in the process of an episode asks the service only what its task allows."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from fumehood.core.episode_spec import DataMode, DataSource, EpisodeSpec
from fumehood.core.errors import InfraError
from fumehood.core.json_values import BRACKETS_MAX, JsonObject
from fumehood.supervised.frames import send_frame
from fumehood.third_party.outside import (
    Asker,
    CheckerOutside,
    JsonOutside,
    Outside,
    answer_questions,
)
from fumehood.third_party.process import QuestionFailed, checker
from fumehood.worlds import search
from fumehood.worlds.registry import open_outside
from fumehood_snapshots.library.environment import SHARES
from tests.parts.folders import short_folder
from tests.parts.mariadb import has_mariadb
from tests.parts.postgresql import has_postgresql
from tests.parts.specs import episode_spec
from tests.parts.taubench import write_checkout
from tests.unit.snapshots.sites import article, serving

TABLE: JsonObject = {"name": "secrets", "columns": ["word"], "rows": [["owl"]]}
needs_mariadb = pytest.mark.skipif(not has_mariadb(), reason="MariaDB is not installed")


@contextmanager
def answered_by(outside: Outside | None) -> Iterator[Asker]:
    """Yield the end of an episode's process."""
    assert outside is not None
    service_end, own_end = socket.socketpair()
    thread = Thread(target=answer_questions, args=(service_end, outside))
    thread.start()
    with own_end:
        yield Asker(own_end)
    thread.join()


def database(episode_id: str, **state: Any) -> EpisodeSpec:
    return episode_spec(
        episode_id=episode_id, world="sql_mariadb", state={"tables": [TABLE], **state}
    )


def browsing(policy: Any, mode: DataMode, calls: int = 100, **settings: Any) -> EpisodeSpec:
    spec = episode_spec(world="search", state={}, calls=calls)
    fetch = policy.model_dump(mode="json")
    object.__setattr__(spec, "data_source", DataSource(mode, {"fetch": fetch, **settings}))
    return spec


@needs_mariadb
def test_a_process_reaches_only_the_database_of_its_episode() -> None:
    with (
        answered_by(open_outside(database("one"))) as one,
        answered_by(open_outside(database("two"))) as two,
    ):
        for statement in (
            "SELECT user FROM mysql.user",
            "SET GLOBAL max_connections = 1",
            "KILL 1",
        ):
            assert "rejected" in one.ask("mariadb", {"statement": statement}), statement
        assert one.ask("mariadb", {"statement": "DROP DATABASE task"})["wrote"]
        shown = two.ask("mariadb", {"statement": "SELECT word FROM secrets"})
        assert shown == {"text": "[('owl',)]", "wrote": False}
        assert two.ask("mariadb", {})["tables"] == [TABLE]


@needs_mariadb
def test_a_question_of_another_form_changes_nothing() -> None:
    with answered_by(open_outside(database("one"))) as asker:
        for question in ([1], None, {"statement": 1}):
            assert "tables" in asker.ask("mariadb", question)  # type: ignore[arg-type]
        assert asker.ask("mariadb", {})["tables"] == [TABLE]


@needs_mariadb
def test_the_end_of_its_server_is_no_failure_of_the_infrastructure() -> None:
    """A statement of the agent may have ended it."""
    outside = open_outside(database("one"))
    assert outside is not None
    with answered_by(outside) as asker:
        row = str(asker.ask("mariadb", {"statement": "SELECT @@pid_file"})["text"])
        os.kill(int(Path(row[3:-4]).read_text(encoding="ascii")), signal.SIGKILL)
        # The statement in progress may have been the reason.
        assert "rejected" in asker.ask("mariadb", {"statement": "SELECT 1"})
        with pytest.raises(InfraError, match="MariaDB"):
            asker.ask("mariadb", {})
    assert not outside.has_failed


def postgresql(init_sql: str) -> Outside:
    state: JsonObject = {"init_sql": init_sql, "anomalies": []}
    outside = open_outside(episode_spec(world="marble_database", state=state))
    assert outside is not None
    return outside


def ask_until_it_fails(asker: Asker) -> None:
    ends_at = time.monotonic() + 10
    while time.monotonic() < ends_at:
        asker.ask("postgresql", {"statement": "SELECT 1"})


@pytest.mark.slow
@pytest.mark.skipif(not has_postgresql(), reason="PostgreSQL is not installed")
def test_only_a_postgresql_server_that_does_not_start_is_a_failure_of_the_infrastructure() -> None:
    outside = postgresql("CREATE TABLE t (a int)")
    with answered_by(outside) as asker:
        answer: Any = asker.ask(
            "postgresql", {"statement": "SELECT current_setting('data_directory')"}
        )
        (folder,) = answer["rows"][0]
        pid, *_ = (Path(folder) / "postmaster.pid").read_text(encoding="ascii").split()
        os.kill(int(pid), signal.SIGKILL)
        with pytest.raises(InfraError, match="PostgreSQL"):
            ask_until_it_fails(asker)
    assert not outside.has_failed
    broken = postgresql("CREATE")
    with answered_by(broken) as asker, pytest.raises(InfraError, match="cannot be created"):
        ask_until_it_fails(asker)
    assert broken.has_failed, "the control"


def test_a_process_fetches_only_what_the_policy_of_the_run_allows(tmp_path: Path) -> None:
    with serving({"/owls": article("owls")}) as allowed, serving({"/cats": "cats"}) as other:
        spec = browsing(allowed.policy(), DataMode.LIVE, calls=1)
        with answered_by(open_outside(spec)) as asker:
            fetch: JsonObject = {"purpose": "page"}
            page = asker.ask(search.FETCHING, {**fetch, "url": f"{allowed.url}/owls"})
            assert page["status"] == 200
            for url in (f"{other.url}/cats", "file:///etc/passwd", "http://169.254.169.254/"):
                assert "failure" in asker.ask(search.FETCHING, {**fetch, "url": url}), url
            assert other.requests == []
            for _ in range(14):
                asker.ask(search.FETCHING, {**fetch, "url": f"{allowed.url}/owls"})
            requests = len(allowed.requests)
            with pytest.raises(QuestionFailed, match="budget"):
                asker.ask(search.FETCHING, {**fetch, "url": f"{allowed.url}/owls"})
            assert len(allowed.requests) == requests


def test_an_episode_cannot_fill_the_disk_with_its_recording(tmp_path: Path) -> None:
    recording = tmp_path / "recording"
    with serving({"/large": "x" * 30_000}) as site:
        settings: dict[str, Any] = {"recording": str(recording), "recording_mb": 1}
        spec = browsing(site.policy(), DataMode.RECORD, **settings)
        with answered_by(open_outside(spec)) as asker:
            page: JsonObject = {"purpose": "page", "url": f"{site.url}/large"}
            assert "body" in asker.ask(search.FETCHING, page)
            answers = [asker.ask(search.FETCHING, page) for _ in range(10)]
            requests = len(site.requests)
            nothing = asker.ask(search.FETCHING, {**page, "url": "http://a/" + "x" * 60_000})
            last = asker.ask(search.FETCHING, page)
        assert "at most" in str(answers[-1]["reason"])
        assert last["failure"] == nothing["failure"] == "too_large"
        assert len(site.requests) == requests, "nothing is fetched that cannot be recorded"
    used = sum(file.stat().st_size for file in recording.iterdir())
    assert used <= (1 << 20) // SHARES


def test_the_recordings_of_all_episodes_together_have_a_limit(tmp_path: Path) -> None:
    recording = tmp_path / "recording"
    recording.mkdir()
    (recording / "responses.warc").write_bytes(b"x" * (1 << 20))
    with serving({"/owls": "owls"}) as site:
        settings: dict[str, Any] = {"recording": str(recording), "recording_mb": 1}
        spec = browsing(site.policy(), DataMode.RECORD, **settings)
        with answered_by(open_outside(spec)) as asker:
            page: JsonObject = {"purpose": "page", "url": f"{site.url}/owls"}
            assert asker.ask(search.FETCHING, page)["failure"] == "too_large"
        assert site.requests == []


HOSTILE = "raise OSError('the checkout of the agent was imported')\n"


def test_a_process_cannot_choose_the_files_that_a_checker_imports() -> None:
    with short_folder() as place:
        named, other = (write_checkout(Path(place) / name) for name in ("named", "other"))
        (other / "tau_bench" / "envs" / "base.py").write_text(HOSTILE)
        state: JsonObject = {"folder": str(named), "domain": "retail", "split": "test"}
        question = {**state, "op": "describe", "folder": str(other)}
        with pytest.raises(InfraError, match="the checkout of the agent was imported"):
            checker("taubench").ask(question)  # The control.
        with answered_by(CheckerOutside("taubench", state)) as asker:
            assert asker.ask("taubench", question)["wiki"] == "Cancel nothing twice."


@pytest.mark.parametrize("question", [b"[]", b"{", b"null", b"[" * 100_000, b"{}"])
def test_a_question_that_no_checker_can_read_fails_alone(question: bytes) -> None:
    service_end, own_end = socket.socketpair()
    outside = CheckerOutside("declared", {})
    thread = Thread(target=answer_questions, args=(service_end, outside))
    thread.start()
    with own_end:
        asker = Asker(own_end)
        send_frame(own_end, question)
        assert own_end.recv(4, socket.MSG_PEEK)
        with pytest.raises(QuestionFailed):
            asker.ask("declared", {})
    thread.join()


def test_a_question_with_too_many_values_is_not_parsed() -> None:
    question = b"[" + b"[]," * BRACKETS_MAX + b"[]]"
    with pytest.raises(QuestionFailed, match="too many values"):
        JsonOutside(lambda question: {}).answer(question)


def test_a_question_that_is_too_large_ends_the_connection() -> None:
    outside = JsonOutside(lambda question: {}, question_bytes_max=1000)
    with answered_by(outside) as asker, pytest.raises(InfraError, match="does not answer"):
        asker.ask("declared", {"source": "x" * 2000})
