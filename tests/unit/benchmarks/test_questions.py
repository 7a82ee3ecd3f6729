"""Questions on a snapshot as a suite."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.proof import prove_not_free, prove_solvable
from fumehood.core.clock import StoppedClock
from fumehood.core.errors import InputError
from fumehood.core.evidence import read_evidence
from fumehood.core.json_values import canonical_json
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.harness_modes.registry import HARNESS_MODES
from fumehood.orchestrator.config import run_config
from fumehood.orchestrator.data_source import data_source_of, resolve_config
from fumehood.orchestrator.plan import plan_episodes
from fumehood.scorers.registry import score_evidence
from fumehood.testing.memory_seat import MemorySeat
from fumehood_agent.adapter import work
from fumehood_agent.builtin.searcher import Searcher, passages
from fumehood_snapshots.almanac.benchmark import QUESTIONS, build_almanac
from fumehood_snapshots.metrics.retrieval import measure_snapshot
from fumehood_snapshots.snapshot import open_snapshot
from tests.parts.folders import short_folder


@pytest.fixture(scope="module")
def almanac():  # type: ignore[no-untyped-def]
    """Return the almanac snapshot in a folder that a service of another user can read."""
    with short_folder() as place:
        build_almanac(Path(place) / "almanac")
        yield Path(place) / "almanac"


def test_every_question_has_an_answer_and_documents_that_contain_it(almanac: Path) -> None:
    snapshot = open_snapshot(almanac)
    for identity, gold in QUESTIONS.gold().items():
        assert gold.accepts(gold.answer)
        held = [
            snapshot.find(name)
            for name, grade in QUESTIONS.judgements()[identity].items()
            if grade == 2
        ]
        assert any(document and gold.accepts(document.text) for document in held), identity
    assert (
        measure_snapshot(snapshot, QUESTIONS.questions(), QUESTIONS.judgements()).means["R@5"] > 0.9
    )


def test_the_path_of_the_snapshot_is_configurable(almanac: Path) -> None:
    named = load_suite("almanac", almanac)
    assert named.snapshot == almanac
    assert named == load_suite(f"almanac:{almanac}")
    with pytest.raises(InputError, match="there is no snapshot nowhere"):
        load_suite("almanac:nowhere", almanac)


def test_the_oracle_solves_the_suite_and_the_no_op_does_not(almanac: Path) -> None:
    suite = load_suite(f"almanac:{almanac}")
    assert len(suite.cases) == 10
    for case in suite.cases:
        prove_solvable(case, score_evidence)
        prove_not_free(case, score_evidence)


def test_the_state_names_the_snapshot_and_contains_no_answer(almanac: Path) -> None:
    for case in load_suite(f"almanac:{almanac}").cases:
        given = canonical_json([case.task.initial_state, case.task.seats[0].instruction])
        assert open_snapshot(almanac).digest in given
        assert str(almanac) not in given
        assert not QUESTIONS.gold()[case.task.task_id].accepts(given)


def test_the_searcher_finds_most_answers_and_cites_its_sources(almanac: Path) -> None:
    suite = load_suite(f"almanac:{almanac}")
    config = resolve_config(run_config({"suite": "almanac", "agents": ("searcher",)}), suite)
    scores = []
    for planned in plan_episodes(suite, ["searcher"], 1, 0, data_source_of(config, suite)):
        recorder, profile = MemoryRecorder(), HARNESS_MODES.load("native")()
        episode = profile.open_episode(planned.to_spec(1000), recorder, StoppedClock())
        work(Searcher(), MemorySeat(episode.seats[0]))
        episode.close()
        scores.append(
            score_evidence(planned.case.task, planned.case.gold, read_evidence(recorder.written()))
        )
    assert sum(score.success is True for score in scores) >= 6
    assert all(score.metrics["citation_precision"] is not None for score in scores)
    assert all(score.metrics["evidence_recall"] for score in scores)


def test_a_passage_is_short_for_any_text() -> None:
    assert all(
        len(passage.split()) <= 45 for passage in passages("word " * 500 + ". One. Two.\n\nThree")
    )
    assert list(passages("")) == []


def test_a_missing_snapshot_is_reported_with_the_build_command(tmp_path: Path) -> None:
    for name, command in (("almanac", "snapshot almanac"), ("python-docs", "python3.11-doc")):
        with pytest.raises(InputError, match=command):
            load_suite(f"{name}:{tmp_path / 'missing'}")


def test_a_snapshot_with_another_digest_is_refused_before_the_run(
    almanac: Path, tmp_path: Path
) -> None:
    suite = load_suite(f"almanac:{almanac}")
    other = tmp_path / "other"
    other.mkdir()
    manifest = json.loads((almanac / "manifest.json").read_text())
    (other / "manifest.json").write_text(json.dumps({**manifest, "name": "other"}))
    with pytest.raises(InputError, match="needs the snapshot sha256:"):
        resolve_config(run_config({"suite": "almanac", "agents": ("a",), "snapshot": other}), suite)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"data_mode": "live"}, "needs fetch"),
        ({"data_mode": "record", "fetch": {"hosts": ["a.example"]}}, "needs fetch and recording"),
        ({"data_mode": "replay", "snapshot": "/nowhere"}, None),
        (
            {"data_mode": "live", "fetch": {"hosts": ["a.example"], "seconds_max": 25}},
            "at most 20",
        ),
    ],
)
def test_an_incomplete_data_source_is_refused_before_the_run(
    almanac: Path, settings: dict[str, object], says: str | None
) -> None:
    suite = load_suite(f"almanac:{almanac}")
    config = run_config({"suite": "almanac", "agents": ("a",), **settings})
    if says is None:
        assert resolve_config(config, suite).snapshot == Path("/nowhere")
        return
    with pytest.raises(InputError, match=says):
        resolve_config(config, suite)


def test_a_suite_without_a_data_source_accepts_no_data_mode() -> None:
    suite = load_suite("sample")
    assert data_source_of(run_config({"suite": "sample", "agents": ("a",)}), suite) is None
    with pytest.raises(InputError, match="sample uses no searches or pages"):
        resolve_config(
            run_config({"suite": "sample", "agents": ("a",), "data_mode": "live"}), suite
        )
