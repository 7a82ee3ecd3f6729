"""A run of BrowseComp-Plus leaves no question in plain text on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from fumehood.benchmarks.registry import load_suite
from fumehood.cli.report import report
from fumehood.core.outcome import Finished
from fumehood.orchestrator.config import run_config
from fumehood.orchestrator.rescore import rescore
from fumehood.records.run_reader import RunReader
from tests.parts.browsecomp import QUESTIONS, write_plus
from tests.parts.folders import short_folder
from tests.parts.libraries import play

CHATTY = '''"""Prints its question and repeats it in its answer."""
from fumehood_agent import Answer

class Chatty:
    def reset(self): pass
    def act(self, observation):
        print(observation["instruction"])
        if not observation["transcript"]:
            return {"tool_name": "search", "args": {"query": observation["instruction"][-300:]}}
        return Answer("[101] " + observation["instruction"] + "\\nExact Answer: Ottoline Brask")
'''


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> RunReader:  # type: ignore[misc]
    """A run of the searcher and of an agent that repeats the question everywhere."""
    with short_folder() as place:
        (Path(place) / "chatty_agent.py").write_text(CHATTY)
        monkeypatch.chdir(place)
        config = run_config(
            {
                "suite": f"browsecomp-plus:{write_plus(Path(place) / 'plus')}:judge=exact",
                "agents": ("searcher", "chatty_agent:Chatty"),
                "engine": "process",
                "i_trust_this_agent": True,
            }
        )
        yield play(config, Path(place) / "run")


@pytest.mark.slow
def test_no_file_of_a_run_contains_a_question(folder: RunReader) -> None:
    pytest.importorskip("vl_convert")
    ends = [row.outcome for row in folder.rows()]
    assert all(isinstance(end, Finished) for end in ends), ends
    done = CliRunner().invoke(report, [str(folder.path), "--out", str(folder.path / "report")])
    assert done.exit_code == 0, done.output
    files = [path for path in folder.path.rglob("*") if path.is_file()]
    assert len(files) > 8
    for path in files:
        content = path.read_bytes()
        for question, _ in QUESTIONS:
            for piece in (question, question[10:40]):
                assert piece.encode() not in content, path


@pytest.mark.slow
def test_a_run_is_rescored_from_its_files(folder: RunReader) -> None:
    again = rescore(folder)
    assert [row.score for row in again] == [row.score for row in folder.rows()]
    assert {row.score.success for row in again} == {True, False}


def test_tasks_have_no_oracle(tmp_path: Path) -> None:
    with short_folder() as place:
        suite = load_suite(f"browsecomp-plus:{write_plus(Path(place) / 'plus')}")
    assert all(case.gold.oracle is None for case in suite.cases)
