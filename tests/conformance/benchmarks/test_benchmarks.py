"""Requirements of every benchmark."""

from __future__ import annotations

from pathlib import Path

import pytest

from fumehood.benchmarks.registry import BENCHMARKS, RecognisesRecords
from fumehood.core.errors import InputError

each_benchmark = pytest.mark.parametrize("name", list(BENCHMARKS))


@each_benchmark
def test_a_missing_path_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(InputError) as refusal:
        BENCHMARKS.load(name)().load(str(missing))
    assert str(missing) in str(refusal.value)
    assert "\n" not in str(refusal.value)


@each_benchmark
def test_the_source_of_the_data_is_stated(name: str) -> None:
    assert BENCHMARKS.load(name)().source


@each_benchmark
def test_no_benchmark_recognises_an_unknown_format(name: str) -> None:
    benchmark = BENCHMARKS.load(name)()
    if isinstance(benchmark, RecognisesRecords):
        assert not benchmark.recognises({})
        assert not benchmark.recognises({"format": "other.format/1", "tasks": []})
