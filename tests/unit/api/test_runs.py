"""Runs from Python: with classes, as tables, and compared."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import fumehood
from fumehood.api.classes import packed, reference_of
from fumehood.api.runs import AgentLike
from fumehood.core.errors import InputError
from fumehood_agent import Session
from tests.unit.report.runs import played

ANSWER = "patience"


def answer_of(words: list[str]) -> str:
    return ANSWER if words else ""


class Patient:
    """Submits a constant answer, which a function of the same module makes."""

    def run(self, session: Session) -> None:
        session.submit(answer_of(["a"]))


LOCK = object()


class Impatient:
    """Uses a value that source code cannot state."""

    def run(self, session: Session) -> None:
        session.submit(str(LOCK))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> fumehood.Run:
    path = tmp_path_factory.mktemp("api") / "run"
    played(path, "schema_repair", "instruction_parser", tasks=6)
    return fumehood.open_run(path)


@pytest.mark.slow
@pytest.mark.parametrize("is_async", [False, True])
def test_a_class_runs_in_a_box_beside_a_built_in_agent(folder: Path, *, is_async: bool) -> None:
    given: dict[str, Any] = {"tasks": {"limit": 2}, "engine": "process", "progress": False}
    given["i_trust_this_agent"] = True
    agents: list[AgentLike] = [Patient, "policy_aware"]
    if is_async:
        run = asyncio.run(fumehood.run_async("sample", agents, **given))
    else:
        run = fumehood.run("sample", agents, **given)
    assert (run.agents, len(run)) == (["Patient", "policy_aware"], 4)
    ends: list[Any] = [
        episode.trace()[-3]["end"] for episode in run if episode.row.name.agent == "Patient"
    ]
    assert ends == [{"outcome": "finished", "answer": "patience"}] * 2
    assert run.success["policy_aware"] == 1.0


def test_a_packed_class_is_a_module_without_the_rest_of_its_file() -> None:
    source = packed(Patient)
    namespace = ModuleType("packed_for_test")
    exec(compile(source, "packed", "exec"), namespace.__dict__)
    assert namespace.__dict__["answer_of"](["a"]) == "patience"
    assert isinstance(namespace.__dict__["Patient"], type)
    assert "LOCK" not in source
    assert "def test_" not in source


def test_a_class_of_a_module_in_the_working_directory_stays_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "my_agents.py").write_text("class Mine:\n    pass\n")
    monkeypatch.syspath_prepend(str(folder))
    module = __import__("my_agents")
    assert reference_of(module.Mine) == "my_agents:Mine"
    assert sorted(path.name for path in folder.glob("*.py")) == ["my_agents.py"]
    sys.modules.pop("my_agents")


def test_a_value_that_cannot_be_copied_is_named() -> None:
    with pytest.raises(InputError, match="the agent uses LOCK, a value of type object"):
        packed(Impatient)


def test_a_class_without_source_is_refused() -> None:
    with pytest.raises(InputError, match="the source of Nowhere is not available"):
        packed(type("Nowhere", (), {"__module__": "__main__"}))


def test_a_run_is_a_table(run: fumehood.Run) -> None:
    table = run.arrow()
    assert table.num_rows == len(run) == 12
    by_agent = {
        agent: [row["success"] for row in table.to_pylist() if row["agent"] == agent]
        for agent in run.agents
    }
    assert {agent: sum(solved) / 6 for agent, solved in by_agent.items()} == run.success


def test_an_episode_has_its_trace_and_checks(run: fumehood.Run) -> None:
    first = next(iter(run))
    name = first.row.name
    again = run[name.agent, name.task]
    assert again.trace() == first.trace()
    assert again.trace()[0]["kind"] == "opened"
    assert all(again.checks.values()) == again.success


def test_an_unknown_episode_names_the_nearest_one(run: fumehood.Run) -> None:
    with pytest.raises(KeyError, match="did you mean"):
        run["schema_repair", "crud_gol"]


@pytest.mark.slow
def test_agents_are_compared_and_drawn(run: fumehood.Run) -> None:
    compared = fumehood.compare(run)
    pairs = compared.to_dict()["comparisons"]
    assert isinstance(pairs, list)
    assert len(pairs) == 1
    assert r"schema\_repair" in str(compared)
    assert compared.plot().svg.startswith("<svg")


def test_notebooks_show_text_of_agents_as_text(run: fumehood.Run) -> None:
    assert "<li>schema_repair: " in run._repr_html_()
    assert repr(run).startswith("<Run ")


def test_only_the_interface_is_an_attribute_of_the_package() -> None:
    assert all(hasattr(fumehood, name) for name in fumehood.__all__)
    with pytest.raises(AttributeError, match="no attribute 'rum'"):
        fumehood.rum  # noqa: B018
