"""Options of ``fumehood doctor`` that cannot take effect together are rejected."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from fumehood.cli.doctor import doctor
from fumehood.core.errors import InputError


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
