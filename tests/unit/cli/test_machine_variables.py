"""Variables and flags of how episodes run: the engine and the concurrency."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from fumehood.cli.experiment import experiment
from fumehood.cli.main import fumehood
from fumehood.core.errors import InputError
from fumehood.engines.registry import AUTO, ENGINES
from tests.parts.cut_short import cut_short

SETTINGS = {
    "format": "fumehood.experiment/1",
    "suites": [{"suite": "sample", "tasks": {"limit": 1}}],
    "agents": ["policy_aware"],
    "run": {"engine": "docker", "concurrency": 7},
}


def played(out: Path, *words: str, **variables: str) -> Result:
    """Run an experiment whose file names an engine and a concurrency."""
    file = out.with_suffix(".yaml")
    file.write_text(yaml.safe_dump(SETTINGS))
    variables = {f"FUMEHOOD_{name.upper()}": value for name, value in variables.items()}
    arguments = [str(file), "--out", str(out), "--json", *words]
    return CliRunner().invoke(experiment, arguments, env=variables)


def config_in(out: Path) -> dict[str, object]:
    """Return the settings of the only run of an experiment."""
    (manifest,) = out.rglob("run.json")
    config: dict[str, object] = json.loads(manifest.read_bytes())["config"]
    return config


@pytest.mark.slow
def test_a_variable_overrides_the_file_of_an_experiment_and_a_flag_overrides_both(
    tmp_path: Path,
) -> None:
    done = played(tmp_path / "out", "-j", "1", engine="inline", concurrency="3")
    assert done.exception is None
    assert {"engine": "inline", "concurrency": 1}.items() <= config_in(tmp_path / "out").items()


def test_an_invalid_variable_is_named(tmp_path: Path) -> None:
    done = played(tmp_path / "out", concurrency="many")
    assert isinstance(done.exception, InputError)
    assert str(done.exception).startswith("FUMEHOOD_CONCURRENCY: concurrency")


@pytest.mark.slow
def test_a_variable_overrides_the_settings_of_a_run_that_is_resumed_and_a_flag_overrides_both(
    tmp_path: Path,
) -> None:
    assert played(tmp_path / "out", engine="inline").exception is None
    (run,) = (manifest.parent for manifest in tmp_path.rglob("run.json"))
    cut_short(run, 0)

    def resumed(*words: str) -> Result:
        variables = {"FUMEHOOD_ENGINE": "none"}
        return CliRunner().invoke(fumehood, ["resume", str(run), "--json", *words], env=variables)

    assert "none" in str(resumed().exception)
    assert resumed("--engine", "inline").exception is None


@pytest.fixture
def own_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Install an engine of another distribution, and return its name."""
    info = tmp_path / "boxes-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: boxes\nVersion: 1.0\n")
    entry = "[fumehood.engines]\nfirejail = fumehood.engines.inline:InlineEngine\n"
    (info / "entry_points.txt").write_text(entry)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return "firejail"


@pytest.mark.parametrize("command", ["run", "resume", "compare", "reproduce", "agent check"])
def test_help_lists_all_engines(command: str, own_engine: str) -> None:
    shown = CliRunner().invoke(fumehood, [*command.split(), "--help"]).output
    listed = "|".join((AUTO, *ENGINES))
    assert own_engine in listed
    assert f"--engine [{listed}]" in shown


def test_an_unknown_engine_is_refused_with_the_nearest_one(own_engine: str) -> None:
    words = ["run", "sample", "-a", "noop", "--engine"]
    close = CliRunner().invoke(fumehood, [*words, "bublewrap"])
    assert isinstance(close.exception, InputError)
    assert "no engine is called 'bublewrap'; did you mean 'bubblewrap'?" in str(close.exception)
    other = CliRunner().invoke(fumehood, [*words, "xyz"])
    assert str(other.exception).endswith(f"there are: {', '.join((AUTO, *ENGINES))}")
    assert own_engine in str(other.exception)
