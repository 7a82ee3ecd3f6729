"""The monitors that a run names are read, named, and unchanged when the run is resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.orchestrator.config import RunConfig, run_config
from fumehood.orchestrator.monitors import (
    check_models,
    check_unchanged,
    monitor_facts,
    monitor_names,
    monitor_specs,
    with_absolute_paths,
)

RULES = "rules: [{name: all, action: refuse}]\n"


def _config(*monitors: Any) -> RunConfig:
    return run_config({"suite": "sample", "agents": ("noop",), "monitors": monitors})


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "my rules.yaml"
    path.write_text(RULES, encoding="utf-8")
    return path


def test_monitors_are_named_after_their_files_classes_and_models(rules: Path) -> None:
    named = {"monitor": str(rules), "name": "strict", "deadline_s": 2.5}
    config = _config(str(rules), "gate.py:Gate", "package.gates:Other", "model:m1", "person", named)
    names = ("my rules", "Gate", "Other", "model:m1", "person", "strict")
    assert monitor_names(config) == names
    (first, second) = monitor_specs(_config(str(rules), named))
    assert (first.deadline_ms, second.deadline_ms) == (10_000, 2_500)


def test_two_monitors_need_two_names(rules: Path) -> None:
    with pytest.raises(InputError, match="two are called 'my rules': set `name`"):
        monitor_names(_config(str(rules), str(rules)))


def test_a_resumed_run_needs_the_same_rules(rules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(rules.parent)
    config = with_absolute_paths(_config(rules.name))
    manifest: JsonObject = {"monitors": monitor_facts(monitor_specs(config))}
    monkeypatch.chdir("/")
    check_unchanged(monitor_specs(config), manifest)
    rules.write_text(RULES.replace("refuse", "end"), encoding="utf-8")
    with pytest.raises(InputError, match="my rules has changed since the run began"):
        check_unchanged(monitor_specs(config), manifest)


@pytest.mark.parametrize(
    ("monitor", "message"),
    [
        ("rules.txt", "'rules.txt' is not FILE.yaml"),
        ("absent.yaml", "absent.yaml: No such file"),
        ("absent.py:Gate", "absent.py: No such file"),
        ({"monitor": "person", "arguments": {"a": 1}}, "person: takes no arguments"),
        ({"monitor": "model:m1", "arguments": {"refuse": 1}}, "did you mean 'refuse_from'"),
        ({"monitor": "model:m1", "arguments": {"refuse_from": True}}, "has another type"),
        ({"monitor": "model:m1", "budget": {"usd": 1}}, "use calls or tokens"),
        ({"monitor": "a:B", "budget": {"calls": 1}}, "only a model monitor has a budget"),
    ],
)
def test_a_mistake_is_reported_with_its_place(monitor: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        monitor_specs(_config(monitor))


def test_a_model_monitor_needs_a_provider_and_boxes() -> None:
    specs = monitor_specs(_config("model:m1"))
    with pytest.raises(InputError, match="add a provider of m1"):
        check_models(specs, None, is_inline=False)
    with pytest.raises(InputError, match="use --engine docker or bubblewrap"):
        check_models(specs, None, is_inline=True)
