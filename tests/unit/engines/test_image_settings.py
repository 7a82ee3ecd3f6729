"""Settings of images that would keep a box from starting."""

from __future__ import annotations

import pytest

from fumehood.core.errors import InputError
from fumehood.engines.docker.image_settings import require_startable, scratch_folders


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ((), "has no command"),
        (("",), "has no command"),
        (("agent", "x" * 131_072), "an argument of 131072"),
        (("agent", *["x" * 131_071] * 9), "have 1179644 bytes"),
        (("agent", "a\0b"), "without zero bytes"),
    ],
)
def test_a_command_that_the_kernel_refuses_is_an_input_error(
    command: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        require_startable("agent:1", command)


def test_a_long_command_is_accepted() -> None:
    require_startable("agent:1", ("agent", "x" * 131_071))


def test_thousands_of_volumes_are_an_input_error() -> None:
    assert len(scratch_folders("agent:1", [f"/v{number}" for number in range(64)])) == 64
    with pytest.raises(InputError, match="has 3000 volumes, of at most 64"):
        scratch_folders("agent:1", [f"/v{number}" for number in range(3000)])
