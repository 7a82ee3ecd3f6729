"""An agent whose Dockerfile starts from the image of the task runs inside the workspace."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.core.errors import InputError
from fumehood.engines.images.dockerfile import starts_from_workspace
from fumehood.orchestrator.config import run_config
from fumehood.orchestrator.setup import RunSetup
from fumehood.orchestrator.workspaces.episode_boxes import CHANGED_MAX, changed_files
from tests.architecture.project import ROOT

TASK = f"harbor:{ROOT / 'examples' / 'workspaces' / 'fix-the-average'}"
DOCKERFILE = 'ARG FUMEHOOD_WORKSPACE\nFROM ${FUMEHOOD_WORKSPACE}\nCMD ["true"]\n'


@pytest.fixture
def agent(tmp_path: Path) -> str:
    (tmp_path / "Dockerfile").write_text(DOCKERFILE, encoding="utf-8")
    return str(tmp_path)


def set_up(agent: str, **settings: Any) -> RunSetup:
    return RunSetup.create(run_config({"suite": TASK, "agents": [agent], **settings}))


def test_it_can_run_beside_agents_in_other_boxes(agent: str) -> None:
    assert len(set_up(agent, agents=[agent, "noop"]).episodes) == 2


@pytest.mark.parametrize(
    ("text", "is_inside"),
    [
        (DOCKERFILE, True),
        ("FROM python AS build\nFROM $FUMEHOOD_WORKSPACE\n", True),
        ("FROM python\n# FROM ${FUMEHOOD_WORKSPACE}\n", False),
        ("FROM ${FUMEHOOD_WORKSPACE_2}\n", False),
    ],
)
def test_its_dockerfile_decides(tmp_path: Path, text: str, is_inside: bool) -> None:
    (tmp_path / "Dockerfile").write_text(text, encoding="utf-8")
    assert starts_from_workspace(tmp_path) is is_inside


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"suite": "sample"}, "it has no workspace"),
        ({"shared_score": True}, "so no tests can run there"),
        (
            {"suite": TASK.replace("harbor:", "harbor:shared:")},
            "its tests run inside the workspace",
        ),
        ({"budget": {"calls": 3}}, "budget.calls has no effect"),
        ({"budget": {"scale": 2.0}}, "budget.scale has no effect"),
        ({"monitors": ["person"]}, "--monitor has no effect"),
        ({"faults": str(ROOT / "none.yaml")}, "none.yaml"),
    ],
)
def test_what_cannot_work_is_refused(agent: str, settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        set_up(agent, **settings)


def test_bounds_of_time_and_models_apply(agent: str) -> None:
    assert set_up(agent, budget={"wall_ms": 1000, "model_calls": 3}).episodes


def test_changed_files_are_those_of_the_watched_folders_without_their_folders() -> None:
    paths = {"/app", "/app/a", "/app/a/b.py", "/tmp/x", "/application"}
    assert changed_files(paths, ["/app"]) == ("/app/a/b.py",)
    assert len(changed_files({f"/app/{number}" for number in range(300)}, ["/app"])) == CHANGED_MAX


NAMES = st.sampled_from(["a", "a-", "a.b", "ab", "b"])
PATHS = st.builds(lambda parts: "/" + "/".join(parts), st.lists(NAMES, min_size=1, max_size=4))


@given(st.frozensets(PATHS, max_size=12))
def test_changed_files_contain_no_other_changed_path(paths: frozenset[str]) -> None:
    contains_none = {
        path
        for path in paths
        if not any(PurePosixPath(path) in PurePosixPath(one).parents for one in paths)
    }
    assert changed_files(paths, ["/"]) == tuple(sorted(contains_none))
    below = {path for path in contains_none if PurePosixPath(path).is_relative_to("/a")}
    assert changed_files(paths, ["/a"]) == tuple(sorted(below))
