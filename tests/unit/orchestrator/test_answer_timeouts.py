"""A node counts as lost when its episodes must have ended."""

from __future__ import annotations

from fumehood.orchestrator.nodes import ANSWER_TIMEOUT_S, answer_timeout_s
from fumehood.wire.ports import GRANTED_MS_MAX
from tests.parts.specs import episode_spec

SPECS = [episode_spec(wall_ms=1000), episode_spec(wall_ms=3000)]


def test_a_node_has_twice_the_wall_time_of_its_episodes() -> None:
    assert answer_timeout_s(SPECS, has_waits=False) == 8 + ANSWER_TIMEOUT_S


def test_a_node_has_the_time_of_all_waits_only_if_there_can_be_waits() -> None:
    without = answer_timeout_s(SPECS, has_waits=False)
    assert answer_timeout_s(SPECS, has_waits=True) == without + 2 * GRANTED_MS_MAX / 1000
