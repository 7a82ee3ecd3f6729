"""``fumehood doctor``: options without effect, and a machine without engines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fumehood.cli.doctor import doctor
from fumehood.core.errors import InputError
from tests.parts.commands import run_fumehood


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["--attack", "egress"], "--attack and --page need --probe ENGINE"),
        (["--orphans", "--probe", "docker"], "run the command twice"),
        (["--orphans", "--runtime", "runsc"], "remove --runtime"),
        (["--probe", "docker", "--runtime", "runsc"], "--probe docker/RUNTIME probes a runtime"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_option_without_effect_is_rejected(words: list[str], remedy: str) -> None:
    error = CliRunner().invoke(doctor, words).exception
    assert isinstance(error, InputError)
    assert remedy in str(error)


@pytest.mark.slow
def test_a_machine_without_boxes_is_status_2_with_the_remedy(tmp_path: Path) -> None:
    env = {"PATH": str(tmp_path), "HOME": str(tmp_path), "DOCKER_HOST": "unix:///nonexistent"}
    done = run_fumehood("doctor", "--json", env=env, timeout_s=120)
    assert done.returncode == 2
    assert json.loads(done.stdout)["holds_untrusted_agents"] is False
    (line,) = done.stderr.splitlines()
    assert "apt-get install bubblewrap" in line
