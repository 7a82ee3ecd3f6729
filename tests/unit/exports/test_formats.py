"""What exports state about episodes that were not simply solved or failed."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any
from xml.etree import ElementTree
from zipfile import ZipFile

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from fumehood.benchmarks.registry import load_suite
from fumehood.cli.main import fumehood
from fumehood.core.errors import InputError
from fumehood.core.ledger import BudgetKind
from fumehood.core.outcome import (
    ROW_CHARACTERS_MAX,
    Finished,
    Infra,
    InfraKind,
    Outcome,
    OutOfBudget,
    TimedOut,
)
from fumehood.core.score import UNGRADED, Score
from fumehood.core.task import Suite
from fumehood.exports import otlp_live
from fumehood.exports.exported import ExportedEpisode, ExportedRun, TimedEvent
from fumehood.exports.junit import _xml
from fumehood.exports.otlp_http import _post, headers_from
from fumehood.exports.otlp_live import LiveTelemetry
from fumehood.exports.registry import EXPORTERS, export_files
from fumehood.records.row import EpisodeRow
from fumehood.records.run_reader import RunReader
from tests.parts.memory_runs import play_run
from tests.unit.report.runs import played

OUTAGE = Infra(InfraKind.MODELS, "the provider answers 503 \x1b[2J")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunReader:
    return played(tmp_path_factory.mktemp("exports") / "run", "policy_aware", tasks=3)


def changed(run: RunReader, outcome: Outcome, score: Score | None = None) -> ExportedRun:
    """Return the run with another outcome of its first episode."""
    first, *others = run.rows()
    changes: dict[str, Any] = {} if score is None else {"score": score}
    return ExportedRun(run, [replace(first, outcome=outcome, **changes), *others])


def files(run: ExportedRun, name: str) -> dict[str, bytes]:
    return dict(EXPORTERS[name].files(run))


def inspect_log(run: ExportedRun) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header, and the sample of the first episode."""
    (content,) = files(run, "inspect").values()
    with ZipFile(io.BytesIO(content)) as archive:
        header = json.loads(archive.read("header.json"))
        name = run.rows[0].name
        return header, json.loads(archive.read(f"samples/{name.task}_epoch_{name.trial + 1}.json"))


@pytest.mark.parametrize("name", EXPORTERS)
def test_equal_runs_give_equal_bytes(run: RunReader, name: str) -> None:
    exported = ExportedRun(run, run.rows())
    assert files(exported, name) == files(exported, name) != {}


def test_a_failure_of_the_infrastructure_is_an_error_in_inspect_and_never_a_score(
    run: RunReader,
) -> None:
    header, sample = inspect_log(changed(run, OUTAGE, UNGRADED))
    assert sample["error"]["message"].startswith("infra(models): the provider answers 503")
    assert sample["scores"] == {}
    (score,) = header["results"]["scores"]
    assert (score["scored_samples"], score["unscored_samples"]) == (2, 1)
    assert header["results"]["completed_samples"] == 2


def test_an_answer_that_is_cut_in_its_row_is_exported_as_a_whole(tmp_path: Path) -> None:
    answer = "word " * ROW_CHARACTERS_MAX
    suite = Suite("one", load_suite("sample").cases[:1])
    run = play_run(tmp_path / "run", suite, {"player": lambda session: session.submit(answer)})
    _, sample = inspect_log(ExportedRun(run, run.rows()))
    assert sample["output"]["completion"] == answer


@pytest.mark.parametrize(
    ("outcome", "limit"),
    [
        (OutOfBudget(BudgetKind.MODEL_TOKENS), "token"),
        (OutOfBudget(BudgetKind.TOOL_MICROUSD), "cost"),
        (OutOfBudget(BudgetKind.STEPS), "custom"),
        (TimedOut(1500), "time"),
    ],
)
def test_an_exhausted_budget_is_a_limit_in_inspect(
    run: RunReader, outcome: Outcome, limit: str
) -> None:
    _, sample = inspect_log(changed(run, outcome))
    assert sample["limit"]["type"] == limit


def test_junit_states_the_sum_of_the_times_in_milliseconds(run: RunReader) -> None:
    (content,) = files(ExportedRun(run), "junit").values()
    for suite in ElementTree.fromstring(content):
        wall_ms = sum(round(float(case.get("time", "")) * 1000) for case in suite)
        assert suite.get("time") == str(wall_ms / 1000)


def test_junit_tells_infrastructure_from_failures(run: RunReader) -> None:
    (content,) = files(changed(run, OUTAGE, UNGRADED), "junit").values()
    (suite,) = ElementTree.fromstring(content)
    assert (suite.get("tests"), suite.get("errors")) == ("3", "1")
    (error,) = suite.iter("error")
    assert "503" in str(error.get("message"))


@given(st.text())
def test_texts_of_agents_are_valid_xml(text: str) -> None:
    element = ElementTree.Element("a", text=_xml(text))
    assert ElementTree.fromstring(ElementTree.tostring(element)).tag == "a"


def test_spans_have_the_same_identifiers_in_every_export_and_differ_between_episodes(
    run: RunReader,
) -> None:
    def spans(rows: Sequence[EpisodeRow]) -> set[str]:
        lines = files(ExportedRun(run, rows), "otel")["traces.jsonl"].splitlines()
        return {
            span["spanId"]
            for line in lines
            for span in json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]
        }

    first, *others = run.rows()
    assert spans([first]).isdisjoint(spans(others))
    assert spans([first]) | spans(others) == spans(run.rows())


class Collector(BaseHTTPRequestHandler):
    """Keeps what it receives."""

    received: list[tuple[str, str, str, Any]]
    status = 200

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        words = (self.headers["Content-Type"], self.headers.get("X-Team", ""))
        self.received.append((self.path, *words, body))
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def collector(status: int = 200) -> Iterator[tuple[str, list[tuple[str, str, str, Any]]]]:
    received: list[tuple[str, str, str, Any]] = []
    handler = type("Handler", (Collector,), {"received": received, "status": status})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", received
        server.shutdown()


def test_a_collector_receives_all_spans_and_evaluations(
    run: RunReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "X-Team=red%20team")
    with collector() as (url, received):
        done = CliRunner().invoke(
            fumehood, ["export", str(run.path), "--to", "otel", "--otlp", url]
        )
    assert (done.exit_code, done.stdout) == (0, f"3 episodes sent to {url} in 2 requests\n")
    json_type = "application/json"
    assert [words[:3] for words in received] == [
        ("/v1/traces", json_type, "red team"),
        ("/v1/logs", json_type, "red team"),
    ]
    assert [len(received[0][3]["resourceSpans"]), len(received[1][3]["resourceLogs"])] == [3, 3]


def test_a_collector_that_refuses_is_named(run: RunReader) -> None:
    with collector(503) as (url, _):
        done = CliRunner().invoke(
            fumehood, ["export", str(run.path), "--to", "otel", "--otlp", url]
        )
    assert isinstance(done.exception, InputError)
    assert f"the collector at {url}/v1/traces answered 503" in str(done.exception)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--to", "junit", "--otlp", "http://127.0.0.1:1"], "use it with --to otel"),
        (["--to", "otel", "--otlp", "ftp://127.0.0.1"], "is not an address such as http://"),
        (["--to", "otel", "--otlp", "http://[::1"], "is not an address such as http://"),
        (["--to", "otel", "--otlp", "http://h:99999"], "is not an address such as http://"),
        (["--to", "otel", "--otlp", "http://127.0.0.1:1"], "cannot be reached"),
    ],
)
def test_an_option_that_cannot_take_effect_is_refused(
    run: RunReader, words: list[str], reason: str
) -> None:
    done = CliRunner().invoke(fumehood, ["export", str(run.path), *words])
    assert isinstance(done.exception, InputError)
    assert reason in str(done.exception)


FORGED = [{"kind": "call"}, {"kind": "model_call", "seat": "agent"}, {"kind": "opened"}]


class WithForgedEvent(ExportedRun):
    """The trace of the first episode has an event without its fields."""

    forged: dict[str, Any]

    def episodes(self, agent: str | None = None) -> Iterator[ExportedEpisode]:
        first = self.run.rows()[0].name
        for episode in super().episodes(agent):
            if episode.row.name == first and episode.is_readable:
                event = TimedEvent(99, self.forged, 0, 0, "")
                vars(episode)["events"] = (event, *episode.events, event)
            yield episode


@pytest.mark.parametrize("forged", FORGED, ids=str)
@pytest.mark.parametrize("name", ["inspect", "atif", "otel", "sarif"])
def test_an_episode_with_a_forged_event_is_exported_without_its_trace(
    run: RunReader, name: str, forged: dict[str, Any]
) -> None:
    exported = WithForgedEvent(run)
    exported.forged = forged
    written = dict(export_files(exported, name))
    first, *others = run.rows()
    if exported.unreadable:
        assert exported.unreadable == [first.name]
    rest = dict(export_files(ExportedRun(run, others), name))
    if name == "atif":
        assert rest.items() <= written.items()
    if name == "inspect":
        with ZipFile(io.BytesIO(written["policy_aware.eval"])) as archive:
            sample = json.loads(archive.read(f"samples/{first.name.task}_epoch_1.json"))
        assert sample["scores"]["fumehood"]["value"] == ("C" if first.score.success else "I")
        assert "not exported" in sample["metadata"]["trace"]
    if name == "otel":
        assert len(written["logs.jsonl"].splitlines()) == len(run.rows())


def test_a_forged_event_does_not_hide_a_failed_safety_check(run: RunReader) -> None:
    exported = WithForgedEvent(run, changed(run, Finished(), Score(False, {"safety": False})).rows)
    exported.forged = {"kind": "call"}
    (report,) = dict(export_files(exported, "sarif")).values()
    (result,) = json.loads(report)["runs"][0]["results"]
    assert (result["ruleId"], exported.unreadable) == ("safety", [run.rows()[0].name])


def test_a_statement_is_the_receipt_of_the_run_or_of_one_episode(
    run: RunReader, tmp_path: Path
) -> None:
    for episode, words in (([], []), ([str(run.rows()[0].name)], ["--episode"])):
        receipt, out = tmp_path / "receipt.json", tmp_path / f"out{len(episode)}"
        written = CliRunner().invoke(
            fumehood, ["receipt", str(run.path), *episode, "--out", str(receipt)]
        )
        exported = CliRunner().invoke(
            fumehood,
            ["export", str(run.path), "--to", "intoto", *words, *episode, "--out", str(out)],
        )
        assert (written.exception, exported.exception) == (None, None)
        assert (out / "receipt.json").read_bytes() == receipt.read_bytes()


def test_headers_without_a_value_are_refused() -> None:
    with pytest.raises(InputError, match="name=value"):
        headers_from("X-Team")


def test_files_are_written_next_to_the_run(run: RunReader, tmp_path: Path) -> None:
    out = tmp_path / "reports"
    words = ["export", str(run.path), "--to", "atif", "--out", str(out), "--json"]
    done = CliRunner().invoke(fumehood, [*words, "--episode", run.rows()[0].name.task])
    said = json.loads(done.stdout)
    assert said["episodes"] == 1
    assert [Path(path).is_relative_to(out) for path in said["files"]] == [True]


def test_a_folder_with_files_of_another_export_is_refused(run: RunReader, tmp_path: Path) -> None:
    words = ["export", str(run.path), "--to", "junit", "--out"]
    assert CliRunner().invoke(fumehood, [*words, str(tmp_path)]).exception is None
    for out in (tmp_path, tmp_path / "junit.xml"):
        refused = CliRunner().invoke(fumehood, [*words, str(out)])
        assert isinstance(refused.exception, InputError)
        assert str(refused.exception) == (
            f"{out} is not empty: name a new or empty folder with --out"
        )
    assert [path.name for path in tmp_path.iterdir()] == ["junit.xml"]


def test_a_redirect_of_a_collector_gets_no_headers() -> None:
    class Redirecting(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Redirecting) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(InputError, match="answered 302"):
            _post(f"http://127.0.0.1:{server.server_port}", {}, {"Authorization": "key"})
        server.shutdown()


@contextmanager
def held_collector() -> Iterator[tuple[str, Event]]:
    """A collector that answers nothing before the event is set."""
    go_on = Event()

    class Held(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            go_on.wait(60)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Held) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", go_on
        go_on.set()
        server.shutdown()


def test_a_collector_that_hangs_neither_blocks_nor_grows_the_queue(
    run: RunReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp_live, "QUEUE_MAX", 2)
    monkeypatch.setattr(otlp_live, "CLOSE_S", 0.1)
    with held_collector() as (url, _):
        telemetry = LiveTelemetry(url, {})
        telemetry.start(run.path)
        for row in run.rows() * 10:
            telemetry.row(row)
        line = telemetry.close()
    lost = "30 were lost: the collector is too slow"
    remedy = f"send them with: fumehood export DIR --to otel --otlp {url}"
    assert line == f"--otlp: 0 of 30 episodes were sent to {url}; {lost}; {remedy}"


def test_a_collector_that_refuses_loses_episodes_and_is_named(run: RunReader) -> None:
    with collector(503) as (url, _):
        telemetry = LiveTelemetry(url, {})
        telemetry.start(run.path)
        for row in run.rows():
            telemetry.row(row)
        line = telemetry.close()
    assert line.startswith(f"--otlp: 0 of 3 episodes were sent to {url}; 3 were lost")
    assert "answered 503" in line


def test_live_telemetry_has_the_identifiers_of_the_export(run: RunReader) -> None:
    with collector() as (url, received):
        telemetry = LiveTelemetry(url, {})
        telemetry.start(run.path)
        for row in run.rows():
            telemetry.row(row)
        assert telemetry.close() == f"--otlp: 3 of 3 episodes were sent to {url}"

    def spans(request: Any) -> set[str]:
        scopes = [each["scopeSpans"][0] for each in request.get("resourceSpans", [])]
        return {span["spanId"] for scope in scopes for span in scope["spans"]}

    live = set().union(*(spans(body) for *_, body in received))
    lines = files(ExportedRun(run), "otel")["traces.jsonl"].splitlines()
    assert live == set().union(*(spans(json.loads(line)) for line in lines))


@pytest.mark.parametrize(
    "url", ["http://user:s3cret@host", "user:s3cret@host:1", "http://host/?key=s3cret", "x#s3cret"]
)
def test_an_address_with_a_key_is_refused_and_not_printed(url: str) -> None:
    with pytest.raises(InputError, match="variable OTEL_EXPORTER_OTLP_HEADERS") as refused:
        LiveTelemetry(url, {})
    assert "s3cret" not in str(refused.value)


def test_an_address_that_is_none_is_refused_before_the_run(tmp_path: Path) -> None:
    words = ["run", "sample", "-a", "noop", "--otlp", "ftp://x", "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(fumehood, words)
    assert isinstance(done.exception, InputError)
    assert not (tmp_path / "run").exists()
