"""Latencies of a scenario from recorded calls."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from fumehood.benchmarks.native.calibration import fits_of, read_durations
from fumehood.cli.main import fumehood
from fumehood.core.errors import InputError
from fumehood.core.virtual_time import LogNormal, Samples, latency_of
from tests.unit.report.runs import played


def log_normal(calls: int, median_ms: float, sigma: float) -> list[float]:
    draws = random.Random(3)
    return [median_ms * 2.718281828 ** draws.gauss(0, sigma) for _ in range(calls)]


def test_the_parameters_of_a_log_normal_log_are_found() -> None:
    (fit,) = fits_of({"read": log_normal(2000, 300, 0.5)})
    latency = latency_of(fit.latency, "latency")
    assert isinstance(latency, LogNormal)
    assert latency.median_ms == pytest.approx(300, rel=0.05)
    assert latency.sigma == pytest.approx(0.5, rel=0.05)
    assert fit.distance is not None
    assert fit.critical_distance is not None
    assert fit.distance <= fit.critical_distance


def test_a_log_with_two_modes_is_represented_by_its_quantiles() -> None:
    (fit,) = fits_of({"read": [*log_normal(300, 10, 0.1), *log_normal(300, 5000, 0.1)]})
    latency = latency_of(fit.latency, "latency")
    assert isinstance(latency, Samples)
    assert len(latency.samples_ms) == 50
    assert latency.at(0.25) == pytest.approx(10, rel=0.3)
    assert latency.at(0.75) == pytest.approx(5000, rel=0.3)
    assert "does not fit" in fit.remark()


@pytest.mark.parametrize("durations", [[5.0], [7.0] * 100, [0.0, *log_normal(50, 300, 0.5)]])
def test_few_equal_or_zero_durations_become_samples(durations: list[float]) -> None:
    (fit,) = fits_of({"read": durations})
    assert isinstance(latency_of(fit.latency, "latency"), Samples)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log.csv", "tool,duration_s\nread,0.5\nwrite,2\nread,1.5\n"),
        (
            "log.jsonl",
            '{"tool": "read", "duration_ms": 500}\n{"tool": "write", "duration_s": 2}\n'
            '{"tool": "read", "duration_ms": 1500}\n',
        ),
    ],
)
def test_csv_and_jsonl_are_read(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_durations(tmp_path / name) == {"read": [500, 1500], "write": [2000]}


@pytest.mark.parametrize("row", ["read,", "read,-1", "read,soon", ",5", "read,nan"])
def test_an_unusable_row_is_named(tmp_path: Path, row: str) -> None:
    (tmp_path / "log.csv").write_text(f"tool,duration_ms\nread,5\n{row}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"log\.csv:3: needs tool"):
        read_durations(tmp_path / "log.csv")


def test_the_command_reads_the_trace_of_a_run(tmp_path: Path) -> None:
    run = played(tmp_path / "run", "policy_aware", tasks=3).path
    out = tmp_path / "latency.yaml"
    words = ["suite", "calibrate", str(run), "--out", str(out)]
    CliRunner().invoke(fumehood, words, standalone_mode=False, catch_exceptions=False)
    assert out.read_text(encoding="utf-8").startswith("latency:\n")
    assert '"samples_ms": [' in out.read_text(encoding="utf-8")
