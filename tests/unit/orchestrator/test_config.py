"""Run configurations are validated strictly, and each error is one line with its location."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from fumehood.core.errors import InputError
from fumehood.orchestrator.config import (
    WALL_TIME_S_MAX,
    BoxLimits,
    MessageLimits,
    read_yaml,
    run_config,
)

GOOD = {"suite": "sample", "agents": ["noop"]}


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "run.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def error_of(path: Path) -> str:
    with pytest.raises(InputError) as raised:
        read_yaml(path)
    return str(raised.value)


def test_a_file_configures_a_run(tmp_path: Path) -> None:
    text = "suite: sample\nagents: [noop, mine=module:Class]\ntrials: 3\nlimits: {memory_mb: 64}\n"
    config = run_config(read_yaml(written(tmp_path, text)))
    assert (config.suite, config.agents, config.trials) == (
        "sample",
        ("noop", "mine=module:Class"),
        3,
    )
    assert config.limits.memory_mb == 64
    assert config.limits.processes == run_config(GOOD).limits.processes


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("suite: sample\ntrails: 3\n", ["run.yaml: trails: ", "did you mean 'trials'?"]),
        ("limits: {memroy_mb: 1}\n", [": limits.memroy_mb: ", "did you mean 'memory_mb'?"]),
        ("judging: {sample: 1}\n", [": judging.sample: ", "did you mean 'samples'?"]),
        ("messages: {refusal: 1}\n", [": messages.refusal: ", "did you mean 'refusals'?"]),
        ("models: {provider: []}\n", [": models.provider: ", "did you mean 'providers'?"]),
        ("models: {providers: [{name: p}]}\n", [": models.providers[0].address: is missing"]),
        ("seats: {user: {agnt: noop}}\n", [": seats.user.agnt: ", "did you mean 'agent'?"]),
        ("agents: policy_aware\n", ["agents: must be a list, such as [policy_aware]"]),
        ("zzz: 1\n", [": zzz: ", "there are: suite, agents"]),
        ("1: 2\n", ["keys should be strings, not 1"]),
        ("a: 1\n a: 2\n", ["mapping values are not allowed here"]),
        ("suite: a\nsuite: b\n", ["run.yaml:2: the key 'suite' is repeated"]),
        ("limits: {cpus: 1, cpus: 2}\n", ["the key 'cpus' is repeated"]),
        ("a: &x [1]\nb: [*x, *x]\n", ["run.yaml:2: the alias *x is not supported"]),
        ("? [a, b]\n: 1\n", ["run.yaml:1: a key must be a scalar"]),
        ("? {a: b}\n: 1\n", ["run.yaml:1: a key must be a scalar"]),
        ("suite: *nowhere\n", ["run.yaml:1: the alias *nowhere is not supported"]),
        ("suite: !!python/object/apply:os.system [id]\n", ["could not determine a constructor"]),
        ("- suite\n", ["must contain settings"]),
        ("", ["must contain settings"]),
        ("suite: [\n", ["run.yaml:1: the file ends too early: expected the node content"]),
        ("suite: [a,\ntrials: 1\n", ["run.yaml:2: the file ends too early: expected ',' or ']'"]),
        ("suite: [", ["run.yaml:1: the file ends too early"]),
        ("suite: {a: 1\n\n", ["run.yaml:2: the file ends too early: expected ',' or '}'"]),
        ("a: '\t\n", ["run.yaml:1: the file ends too early"]),
        (b"suite: \xff\n", ["is not UTF-8 text"]),
        (b"suite: \x00\n", ["special characters are not allowed"]),
        ("suite: " + "[" * 20_000, ["is nested too deeply"]),
    ],
)
def test_an_invalid_file_gives_one_line_with_the_location(
    tmp_path: Path, text: str | bytes, parts: list[str]
) -> None:
    line = error_of(written(tmp_path, text))
    for part in ["run.yaml", *parts]:
        assert part in line
    assert "\n" not in line


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    assert (
        error_of(tmp_path / "none.yaml") == f"{tmp_path / 'none.yaml'}: No such file or directory"
    )
    assert error_of(tmp_path) == f"{tmp_path}: Is a directory"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"suite": None}, "suite"),
        ({"agents": []}, "agents"),
        ({"trials": 0}, "trials"),
        ({"trials": 1.5}, "trials"),
        ({"concurrency": 0}, "concurrency"),
        ({"service_workers": 0}, "service_workers"),
        ({"wall_time_s": 0}, "wall_time_s"),
        ({"wall_time_s": -1}, "wall_time_s"),
        ({"wall_time_s": math.inf}, "wall_time_s"),
        ({"wall_time_s": math.nan}, "wall_time_s"),
        ({"wall_time_s": WALL_TIME_S_MAX + 1}, "wall_time_s"),
        ({"limits": {"cpus": math.inf}}, "limits.cpus"),
        ({"limits": {"memory_mb": 1}}, "limits.memory_mb"),
        ({"limits": {"unknown": 1}}, "limits.unknown"),
        ({"seed": "x"}, "seed"),
    ],
)
def test_an_invalid_value_is_reported_with_its_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError, match=rf"^{field}: ") as raised:
        run_config({**GOOD, **change})
    assert "\n" not in str(raised.value)


def test_a_missing_value_is_reported_with_its_field() -> None:
    with pytest.raises(InputError, match=r"^agents: is missing"):
        run_config({"suite": "sample"})


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("localhost:8000", "'localhost:8000' is not a URL such as http://localhost:8000"),
        ("https://api.example.com/?key=1", "'https://api.example.com/?key=1' is not a URL such as"),
        ("https://me:secret@api.example.com", "must not contain a key"),
    ],
)
def test_an_invalid_provider_address_is_reported(address: str, reason: str) -> None:
    models = {"providers": [{"name": "p", "address": address}]}
    with pytest.raises(InputError) as raised:
        run_config({**GOOD, "models": models})
    assert str(raised.value).startswith(f"models.providers[0].address: {reason}")
    assert "secret" not in str(raised.value)


def test_the_stored_form_of_a_configuration_gives_the_same_configuration() -> None:
    config = run_config({**GOOD, "seed": 10**30, "wall_time_s": 0.25})
    assert run_config(config.model_dump(mode="json")) == config


def test_a_configuration_cannot_be_changed() -> None:
    config = run_config(GOOD)
    for section in (config, config.limits, config.messages, config.judging):
        assert isinstance(section, (type(config), BoxLimits, MessageLimits, type(config.judging)))
        with pytest.raises(ValueError, match="frozen"):
            setattr(section, next(iter(type(section).model_fields)), 1)
