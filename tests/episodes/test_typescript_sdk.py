"""The TypeScript SDK: its own tests, and what a stranger gets who installs it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.orchestrator.service_pool import ServicePool
from tests.parts.listening import Listened, listening
from tests.parts.npm import run, typescript_sdk
from tests.parts.specs import episode_spec

AGENT = """\
import { connect } from "glovebox-agent";

const session = await connect();
const reply = await session.call("get_account", { id: "ax1" });
if (reply.result.kind === "value") {
  const tier: string = reply.result.output["account"].tier;
  await session.submit(`the tier is ${tier}`);
} else {
  await session.giveUp(reply.result.message);
}
"""
WRONG = """\
import { connect } from "glovebox-agent";
const answer: number = (await connect()).task.instruction;
"""
STRICT = ("--strict", "--module", "nodenext", "--target", "es2022")


@pytest.fixture
def episode() -> Iterator[Listened]:
    with ServicePool(1) as pool, pool.lease() as client, listening(client, episode_spec(calls=5)) as opened:
        yield opened


def test_its_own_tests_pass() -> None:
    run("npm", "test", folder=typescript_sdk())


def test_a_stranger_installs_it_and_writes_ten_lines(tmp_path: Path, episode: Listened) -> None:
    sdk = typescript_sdk()
    packed = json.loads(run("npm", "pack", "--json", "--pack-destination", tmp_path, folder=sdk))
    names = {file["path"] for file in packed[0]["files"]}
    assert {"README.md", "package.json", "dist/index.js", "dist/index.d.ts"} <= names
    assert not any(name.startswith(("test", "src", "node_modules")) for name in names)

    (tmp_path / "package.json").write_text('{"type": "module"}')
    quietly = ("--prefer-offline", "--no-audit", "--no-fund")
    run("npm", "install", *quietly, packed[0]["filename"], folder=tmp_path)
    (tmp_path / "agent.ts").write_text(AGENT)
    tsc = sdk / "node_modules" / ".bin" / "tsc"
    run(tsc, *STRICT, "agent.ts", folder=tmp_path)
    run("node", "agent.js", folder=tmp_path, env={"GLOVEBOX_SOCKET": f"{episode.directory}/grpc.sock"})
    episode.close()
    ends = [event["end"] for event in episode.events if event["kind"] == "seat_ended"]
    assert ends == [{"outcome": "finished", "answer": "the tier is basic"}]

    (tmp_path / "wrong.ts").write_text(WRONG)
    with pytest.raises(AssertionError, match="'string' is not assignable to type 'number'"):
        run(tsc, *STRICT, "--noEmit", "wrong.ts", folder=tmp_path)
