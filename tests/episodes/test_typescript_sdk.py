"""The TypeScript SDK: its tests, and its README after an installation."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fumehood.orchestrator.service_pool import ServicePool
from tests.parts.listening import Listened, listening
from tests.parts.npm import run, typescript_sdk
from tests.parts.specs import episode_spec

WRONG = """\
import { connect } from "@fumehood/sdk";
const answer: number = (await connect()).task.instruction;
"""
STRICT = ("--strict", "--module", "nodenext", "--target", "es2022")
ACCOUNTS = {"accounts": {"a12345": {"id": "a12345", "tier": "basic"}}}


@pytest.fixture
def episode() -> Iterator[Listened]:
    spec = episode_spec(state=ACCOUNTS, calls=5)
    with ServicePool(1) as pool, pool.lease() as client, listening(client, spec) as opened:
        yield opened


def _example(readme: Path) -> str:
    return readme.read_text("utf-8").partition("```ts\n")[2].partition("```")[0]


@pytest.mark.slow
def test_the_tests_of_the_sdk_pass() -> None:
    run("npm", "test", folder=typescript_sdk())


@pytest.mark.slow
def test_the_readme_works_after_an_installation(tmp_path: Path, episode: Listened) -> None:
    sdk = typescript_sdk()
    run("npm", "pack", "--pack-destination", tmp_path, folder=sdk)
    (packed,) = tmp_path.glob("*.tgz")
    with tarfile.open(packed) as archive:
        names = {name.removeprefix("package/") for name in archive.getnames()}
    assert {"README.md", "package.json", "dist/index.js", "dist/index.d.ts"} <= names
    assert not any(name.startswith(("test", "src", "node_modules")) for name in names)

    (tmp_path / "package.json").write_text('{"type": "module"}')
    quietly = ("--prefer-offline", "--no-audit", "--no-fund")
    run("npm", "install", *quietly, packed, folder=tmp_path)
    (tmp_path / "agent.ts").write_text(_example(sdk / "README.md"))
    tsc = sdk / "node_modules" / ".bin" / "tsc"
    run(tsc, *STRICT, "agent.ts", folder=tmp_path)
    run(
        "node",
        "agent.js",
        folder=tmp_path,
        env={"FUMEHOOD_SOCKET": f"{episode.directory}/grpc.sock"},
    )
    episode.close()
    ends = [event["end"] for event in episode.events if event["kind"] == "seat_ended"]
    assert ends == [{"outcome": "finished", "answer": "the tier is basic"}]

    (tmp_path / "wrong.ts").write_text(WRONG)
    with pytest.raises(AssertionError, match="'string' is not assignable to type 'number'"):
        run(tsc, *STRICT, "--noEmit", "wrong.ts", folder=tmp_path)
