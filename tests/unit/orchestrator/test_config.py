"""A configuration is read strictly, and whatever is wrong with it is one line that says what to do."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from fumehood.core.errors import InputError
from fumehood.orchestrator.config import LONGEST_S, read_yaml, run_config

GOOD = {"suite": "sample", "agents": ["noop"]}


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "run.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def complaint(path: Path) -> str:
    with pytest.raises(InputError) as raised:
        read_yaml(path)
    return str(raised.value)


def test_a_file_says_what_a_run_is(tmp_path: Path) -> None:
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
    ("text", "said"),
    [
        ("suite: sample\ntrails: 3\n", "unknown key trails; did you mean trials?"),
        (
            "limits: {memroy_mb: 1}\n",
            "unknown key limits.memroy_mb; did you mean limits.memory_mb?",
        ),
        ("agents: policy_aware\n", "agents: must be a list, such as [policy_aware]"),
        ("zzz: 1\n", "unknown key zzz; known: suite, agents"),
        ("1: 2\n", "unknown key 1"),
        ("a: 1\n a: 2\n", "mapping values are not allowed here"),
        ("suite: a\nsuite: b\n", "run.yaml:2: the key 'suite' is there twice"),
        ("limits: {cpus: 1, cpus: 2}\n", "the key 'cpus' is there twice"),
        ("? [a, b]\n: 1\n", "run.yaml:1: a key must be a word"),
        ("? {a: b}\n: 1\n", "run.yaml:1: a key must be a word"),
        ("suite: *nowhere\n", "run.yaml:1: found undefined alias"),
        ("suite: !!python/object/apply:os.system [id]\n", "could not determine a constructor"),
        ("- suite\n", "must hold settings"),
        ("", "must hold settings"),
        ("suite: [\n", "run.yaml:2:"),
        ("a: '\t\n", "run.yaml:"),
        (b"suite: \xff\n", "is not UTF-8 text"),
        (b"suite: \x00\n", "special characters are not allowed"),
        ("suite: " + "[" * 20_000, "nests too deep"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(
    tmp_path: Path, text: str | bytes, said: str
) -> None:
    line = complaint(written(tmp_path, text))
    assert said in line
    assert "run.yaml" in line
    assert "\n" not in line


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert (
        complaint(tmp_path / "none.yaml") == f"{tmp_path / 'none.yaml'}: No such file or directory"
    )
    assert complaint(tmp_path) == f"{tmp_path}: Is a directory"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"suite": None}, "suite"),
        ({"agents": []}, "agents"),
        ({"trials": 0}, "trials"),
        ({"trials": 1.5}, "trials"),
        ({"concurrency": 257}, "concurrency"),
        ({"service_workers": 0}, "service_workers"),
        ({"wall_time_s": 0}, "wall_time_s"),
        ({"wall_time_s": -1}, "wall_time_s"),
        ({"wall_time_s": math.inf}, "wall_time_s"),
        ({"wall_time_s": math.nan}, "wall_time_s"),
        ({"wall_time_s": LONGEST_S + 1}, "wall_time_s"),
        ({"limits": {"cpus": math.inf}}, "limits.cpus"),
        ({"limits": {"memory_mb": 1}}, "limits.memory_mb"),
        ({"limits": {"unknown": 1}}, "limits.unknown"),
        ({"seed": "x"}, "seed"),
    ],
)
def test_a_value_out_of_range_is_named_by_its_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError, match=rf"^{field}: ") as raised:
        run_config({**GOOD, **change})
    assert "\n" not in str(raised.value)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(InputError, match=r"^agents: field required"):
        run_config({"suite": "sample"})


def test_a_configuration_is_frozen_and_comes_back_from_its_own_record() -> None:
    config = run_config({**GOOD, "seed": 10**30, "wall_time_s": 0.25})
    assert run_config(config.model_dump(mode="json")) == config
