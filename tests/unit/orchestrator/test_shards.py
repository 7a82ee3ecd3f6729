"""Shards partition the episodes of a run, and schedulers name them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.core.errors import InputError
from fumehood.orchestrator.config import run_config
from fumehood.orchestrator.shards import Shard, shard_setting
from fumehood.records.row import EpisodeName

NAMES = st.lists(
    st.builds(EpisodeName, st.text(max_size=8), st.text(max_size=8), st.integers(0, 9)),
    unique=True,
    max_size=40,
)


@given(names=NAMES, count=st.integers(1, 50))
def test_shards_partition_any_episodes(names: list[EpisodeName], count: int) -> None:
    parts = [Shard(number, count).part_of(names) for number in range(1, count + 1)]
    assert sorted((name for part in parts for name in part), key=repr) == sorted(names, key=repr)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@given(names=NAMES, count=st.integers(1, 5), data=st.data())
def test_a_part_does_not_depend_on_the_order(
    names: list[EpisodeName], count: int, data: st.DataObject
) -> None:
    other = data.draw(st.permutations(names))
    assert Shard(1, count).part_of(names) == Shard(1, count).part_of(other)


@pytest.mark.parametrize("text", ["0/4", "5/4", "1/0", "1", "a/b", "01/4", "1/4 ", "-1/4", "auto"])
def test_a_shard_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="shard: must be K/N, such as 3/16"):
        run_config({"suite": "sample", "agents": ["noop"], "shard": text})


def slurm(task: int, first: int, tasks: int, step: int = 1) -> dict[str, str]:
    given = {"ID": task, "MIN": first, "COUNT": tasks, "STEP": step}
    return {f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in given.items()}


@pytest.mark.parametrize(
    ("text", "variables", "shard"),
    [
        ("3/16", slurm(1, 1, 2), "3/16"),
        ("auto", slurm(1, 1, 4), "1/4"),
        ("auto", slurm(3, 0, 4), "4/4"),
        ("auto/4", slurm(7, 1, 4, 2), "4/4"),
        ("auto/16", {"JOB_COMPLETION_INDEX": "15"}, "16/16"),
    ],
)
def test_variables_of_schedulers_name_the_shard(
    text: str, variables: dict[str, str], shard: str
) -> None:
    assert shard_setting(text, variables) == shard


@pytest.mark.parametrize(
    ("text", "variables", "message"),
    [
        ("auto", {}, "use auto in a job array of Slurm"),
        ("auto", {"JOB_COMPLETION_INDEX": "0"}, "auto/N with the number N of completions"),
        ("auto/4", {"JOB_COMPLETION_INDEX": "4"}, "--shard auto/4: use auto"),
        ("auto/4", slurm(3, 3, 1), r"the job array has 1 tasks from 3.* --shard 3/4"),
        ("auto", slurm(4, 1, 2, 2), "the job array has 2 tasks from 1, and this is 4"),
        ("auto", slurm(9, 1, 2), "use auto in a job array of Slurm"),
        *(
            (
                text,
                {},
                f"^--shard must be K/N, such as 3/16, with K from 1 to N, not '{text}'; "
                "with Slurm or Kubernetes, use auto or auto/N$",
            )
            for text in ("4", "3/2", "0/2", "foo", "")
        ),
    ],
)
def test_variables_that_name_no_shard_are_refused(
    text: str, variables: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        shard_setting(text, variables)


@pytest.mark.parametrize(
    "settings",
    [{"data_mode": "record"}, {"models": {"mode": "record", "cassette": "exchanges"}}],
)
def test_a_shard_does_not_record_outside_its_run(settings: dict[str, object]) -> None:
    with pytest.raises(InputError, match="record on one machine"):
        run_config({"suite": "sample", "agents": ["noop"], "shard": "1/2", **settings})
