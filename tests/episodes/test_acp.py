"""The in-box client of the Agent Client Protocol plays episodes with the official library."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from select import select
from typing import Any

import pytest

from fumehood.core.conversation import Turn
from fumehood.core.episode_spec import EpisodeSpec, SeatSpec
from fumehood.core.ledger import Budget
from fumehood.engines.images.helper import build_helper
from fumehood.orchestrator.service_pool import HttpOffer, ServiceOptions, ServicePool
from fumehood.wire.control_client import ControlClient
from tests.architecture.project import ROOT
from tests.episodes.test_mcp_conformance import NODE
from tests.parts.fetched import official_packages
from tests.parts.listening import listening
from tests.parts.specs import episode_spec

AGENT = ROOT / "tests" / "parts" / "acp_agent.mjs"
TIMEOUT_S = 60
UNANSWERED_S = 0.3
LOOKED = '"Do it." é 😀 \\n: {"account":{"id":"ax1","tier":"basic"}}'


@pytest.fixture(scope="module")
def helper() -> Path:
    found = build_helper(lambda _: None)
    if found is None:
        pytest.skip("needs a C compiler (Debian: apt-get install musl-tools)")
    return found


@pytest.fixture(scope="module")
def client(helper: Path) -> Iterator[ControlClient]:
    with ServicePool(1, ServiceOptions(http=HttpOffer(helper))) as pool, pool.lease() as lent:
        yield lent


class Played:
    """An episode that an ACP agent has played."""

    def __init__(
        self, done: subprocess.CompletedProcess[str], events: list[dict[str, Any]]
    ) -> None:
        self.status = done.returncode
        self.errors = done.stderr
        self.events = events

    def end(self) -> Any:
        (end,) = [event["end"] for event in self.events if event["kind"] == "seat_ended"]
        return end

    def permissions(self) -> list[tuple[str, str]]:
        asked = [event for event in self.events if event["kind"] == "permission"]
        return [(event["title"], event["answer"]) for event in asked]

    def calls(self) -> list[str]:
        return [event["tool"] for event in self.events if event["kind"] == "call"]


class Player:
    """Plays episodes with the agent, which does what a scene says."""

    def __init__(self, helper: Path, client: ControlClient, folder: Path) -> None:
        packages = official_packages()
        shutil.copy(AGENT, folder)
        (folder / "node_modules").symlink_to(packages)
        node = packages / NODE[platform.machine()] / "bin" / "node"
        self._agent = [str(node), str(folder / AGENT.name)]
        self._helper = helper
        self._client = client

    def start(self, scene: str, *options: str, folder: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [str(self._helper), "acp", *options, "--", *self._agent, scene],
            env={"FUMEHOOD_SOCKET": f"{folder}/grpc.sock"},
            stderr=subprocess.PIPE,
        )

    def play(self, scene: str, *options: str, spec: EpisodeSpec | None = None) -> Played:
        command = [str(self._helper), "acp", *options, "--", *self._agent, scene]
        with listening(self._client, spec or episode_spec(calls=10)) as episode:
            done = subprocess.run(
                command,
                env={"FUMEHOOD_SOCKET": f"{episode.directory}/grpc.sock"},
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
            )
            episode.close()
            return Played(done, episode.events)


@pytest.fixture
def player(helper: Path, client: ControlClient, tmp_path: Path) -> Player:
    return Player(helper, client, tmp_path)


@pytest.mark.slow
def test_an_agent_gets_the_task_and_the_tools_and_its_last_message_is_the_answer(
    player: Player,
) -> None:
    played = player.play("looks")
    assert played.status == 0, played.errors
    assert played.calls() == ["get_account"]
    assert played.end() == {"outcome": "finished", "answer": LOOKED}
    assert played.permissions() == [("call of get_account", "allow_once")]


@pytest.mark.slow
def test_a_policy_can_reject_all_permissions(player: Player) -> None:
    played = player.play("looks", "--permissions", "reject")
    assert played.calls() == []
    assert played.permissions() == [("call of get_account", "reject_once")]
    assert played.end()["answer"].endswith(": rejected")


def test_the_client_offers_no_files_and_no_terminal(player: Player) -> None:
    played = player.play("reads_files")
    assert played.end() == {"outcome": "finished", "answer": "Let me look. -32601"}


@pytest.mark.slow
def test_an_agent_starts_before_its_episode_and_gets_its_session_in_it(
    player: Player, client: ControlClient
) -> None:
    with (
        listening(client, episode_spec(), is_held=True) as episode,
        player.start("reports_its_start", "--model", "m", folder=episode.directory) as running,
    ):
        assert running.stderr is not None
        assert running.stderr.readline() == b"initialized\n"
        assert select([running.stderr], [], [], UNANSWERED_S)[0] == []
        client.begin_episode(episode.spec.episode_id)
        assert running.stderr.readline() == b"session opened\n"
        assert running.wait(TIMEOUT_S) == 0


@pytest.mark.slow
def test_every_message_of_the_user_is_a_prompt_in_one_session(player: Player) -> None:
    further = (Turn("And then?"), Turn("Thanks.\n"))
    seat = SeatSpec(instruction="First.", budget=Budget(), further_turns=further)
    played = player.play("echoes", spec=episode_spec(seats=[seat]))
    answers = [event["answer"] for event in played.events if event["kind"] == "turn_ended"]
    assert [*answers, played.end()["answer"]] == ["First.", "And then?", "Thanks."]


def test_the_turn_is_cancelled_when_a_tool_call_has_ended_the_work(player: Player) -> None:
    played = player.play("submits_itself")
    assert (played.status, played.end()) == (0, {"outcome": "finished", "answer": "mine"})


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        ("max_tokens", {"outcome": "stopped", "problem": "reply_truncated"}),
        ("max_turn_requests", {"outcome": "stopped", "problem": "turn_limit"}),
        ("refusal", {"outcome": "gave_up", "reason": "refusal: Let me look."}),
        ("cancelled", {"outcome": "gave_up", "reason": "cancelled: Let me look."}),
    ],
)
def test_the_reason_of_a_stop_is_the_end_of_the_episode(
    player: Player, reason: str, end: object
) -> None:
    played = player.play(reason)
    assert (played.status, played.end()) == (0, end)


@pytest.mark.parametrize(
    ("scene", "status", "message"),
    [
        ("crashes", 7, "the ACP agent ended with status 7 before it answered session/prompt"),
        ("is_killed", 137, "the ACP agent ended with status 137"),
        ("raises", 1, "the ACP agent: session/prompt: {"),
        ("raises", 1, "no idea"),
        ("wants_login", 1, "the ACP agent: session/new: {"),
        ("wants_login", 1, "Authentication required"),
        ("other_version", 1, "it does not speak version 1 of the protocol"),
        ("no_such_reason", 1, "no_such_reason"),
    ],
)
def test_a_failure_of_the_agent_leaves_the_episode_without_an_answer(
    player: Player, scene: str, status: int, message: str
) -> None:
    played = player.play(scene)
    assert played.status == status
    assert message in played.errors
    assert not any(event["kind"] == "seat_ended" for event in played.events)
