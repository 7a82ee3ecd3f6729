"""A merged run keeps the seals of its shards, and each difference from them is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fumehood.core.json_values import Json, JsonObject
from fumehood.records.files import digest_file
from fumehood.records.run_folder import RunFolder
from fumehood.records.seals import SEAL, Signing
from fumehood.records.shard_seals import SHARD_FILES
from fumehood.records.verify import verify
from tests.parts.sealed_runs import KEY, NAMES, OTHER_KEY, SUITE, play

PARTS = {"1": NAMES[:2], "2": NAMES[2:]}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run that was merged from two shards of another signer."""
    facts: list[Json] = []
    for number, names in PARTS.items():
        manifest: JsonObject = {"run": f"part {number}", "suite": "small"}
        shard = RunFolder.create(tmp_path / number, manifest, SUITE, Signing(OTHER_KEY, names))
        for name in names:
            play(shard, name)
        shard.seal()
        facts.append({"shard": f"{number}/2", "seal": digest_file(shard.path / SEAL)})
    manifest = {"run": "r1", "suite": "small", "shards": facts}
    merged = RunFolder.create(tmp_path / "all", manifest, SUITE, Signing(KEY, NAMES))
    for number, names in PARTS.items():
        (merged.path / "shards" / number).mkdir(parents=True)
        for file in SHARD_FILES:
            shutil.copy(tmp_path / number / file, merged.path / "shards" / number / file)
        for name in names:
            play(merged, name)
    merged.seal()
    return merged.path


def damage_of(run: Path) -> list[str]:
    return [str(damage) for damage in verify(run).damage]


def test_a_run_with_the_rows_of_its_shards_is_sound(run: Path) -> None:
    assert damage_of(run) == []


def edit_the_configuration(run: Path) -> str:
    path = run / "shards/2/run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"suite": "large"}))
    return "shards/2/seal.json: the shard has another run.json"


def edit_a_row(run: Path) -> str:
    path = run / "shards/1/episodes.jsonl"
    path.write_text(path.read_text().replace('"success":true', '"success":false', 1))
    return "shards/1/episodes.jsonl:1: the merged run does not have this row"


def take_the_seal_of_another(run: Path) -> str:
    shutil.copy(run / "shards/1/seal.json", run / "shards/2/seal.json")
    return "shards/2/seal.json: not the seal that was merged"


def remove_the_seal(run: Path) -> str:
    (run / "shards/2/seal.json").unlink()
    return f"shards/2/seal.json: {run / 'shards/2'}"


def add_a_shard(run: Path) -> str:
    shutil.copytree(run / "shards/2", run / "shards/3")
    return "shards/3: belongs to no shard"


@pytest.mark.parametrize(
    "change",
    [edit_the_configuration, edit_a_row, take_the_seal_of_another, remove_the_seal, add_a_shard],
)
def test_each_difference_from_a_shard_is_named(change: Callable[[Path], str], run: Path) -> None:
    expected = change(run)
    assert any(line.startswith(expected) for line in damage_of(run)), damage_of(run)
