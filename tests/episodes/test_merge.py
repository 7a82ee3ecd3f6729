"""Shards play as one machine does, and merge joins only what belongs together."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fumehood.cli.leaderboard import leaderboard
from fumehood.core.errors import InputError
from fumehood.core.json_values import as_object, canonical_json
from fumehood.core.outcome import Infra, InfraKind
from fumehood.core.score import UNGRADED
from fumehood.engines.engine import Isolation
from fumehood.orchestrator import launch
from fumehood.orchestrator.config import (
    MACHINE_SETTINGS,
    RunConfig,
    run_config,
    usual_machine_settings,
)
from fumehood.orchestrator.experiment import FORMAT as EXPERIMENT
from fumehood.orchestrator.experiment import own_plan, plan_of, read_experiment, write_plan
from fumehood.orchestrator.launch import Progress, resume_run, start_run
from fumehood.orchestrator.merge import merge
from fumehood.orchestrator.run_plan import planned_of
from fumehood.records.files import digest_file
from fumehood.records.receipt import receipt_statement
from fumehood.records.row import EpisodeRow
from fumehood.records.run_folder import RunFolder
from fumehood.records.run_reader import PLAN_FILE, RunReader
from fumehood.records.seals import Signing, read_seal
from fumehood.records.signing_key import SigningKey, user_key
from fumehood.records.trust import Trust
from fumehood.records.verify import verify
from fumehood.report.summary import run_digest
from fumehood.testing.scripted_models import ScriptedModels
from tests.architecture.project import ROOT
from tests.parts.clumsy_model import clumsy
from tests.parts.commands import fumehood, fumehood_json, run_fumehood
from tests.parts.cut_short import cut_short
from tests.parts.reading import sign_again, verified
from tests.unit.records.test_receipt import STRANGER

SAMPLE = ROOT / "runner" / "fumehood" / "benchmarks" / "sample" / "tasks.jsonl"
QUIET = Progress(lambda *_: None, lambda _: None, lambda _: None)
SHARDS = 3


def tasks_in(folder: Path, number: int = 4) -> Path:
    path = folder / "tasks.jsonl"
    path.write_text("".join(SAMPLE.read_text().splitlines(keepends=True)[:number]))
    return path


def config_of(tasks: Path, **changes: Any) -> RunConfig:
    settings = {"suite": str(tasks), "agents": ["policy_aware", "noop"], "engine": "inline"}
    return run_config({**settings, **changes})


def digest_of(run: RunReader) -> str:
    return run_digest(run.rows(), [str(episode.name) for episode in planned_of(run)])


def merged(out: Path, *shards: Path) -> RunReader:
    merge(out, shards, Trust.of_user())
    return verified(out)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the shards 1 to 3 of a run, and with the same run of one machine."""
    folder = tmp_path_factory.mktemp("run s")
    tasks = tasks_in(folder)
    start_run(config_of(tasks, trials=2), folder / "one", QUIET)
    for number in range(1, SHARDS + 1):
        config = config_of(tasks, trials=2, shard=f"{number}/{SHARDS}")
        start_run(config, folder / str(number), QUIET)
    return folder


@pytest.fixture
def shards(played: Path, tmp_path: Path) -> list[Path]:
    """Return copies of the shards."""
    copies = tmp_path / "copies"
    for number in range(1, SHARDS + 1):
        shutil.copytree(played / str(number), copies / str(number))
    return sorted(copies.iterdir())


@pytest.mark.slow
def test_shards_play_together_what_one_machine_plays(played: Path, tmp_path: Path) -> None:
    run, one = (
        merged(tmp_path / "all", *(played / f"{k}" for k in (1, 2, 3))),
        verified(played / "one"),
    )
    of_one = {row.name: row for row in one.rows()}
    assert {row.name for row in run.rows()} == of_one.keys()
    assert [row.name for row in run.rows()] == [planned.name for planned in planned_of(one)]
    for row in run.rows():
        same = of_one[row.name]
        assert (row.seed, row.trace_digest, row.score) == (
            same.seed,
            same.trace_digest,
            same.score,
        )
    assert digest_of(run) == digest_of(one)
    assert run.manifest()["suite_digest"] == one.manifest()["suite_digest"]
    own_config, merged_config = one.manifest()["config"], run.manifest()["config"]
    assert merged_config == {**as_object(own_config), **usual_machine_settings()}
    replayed = fumehood_json("replay", str(run.path), "--json")
    assert (replayed["replayed"], replayed["identical"]) == (16, 16)


@pytest.mark.slow
def test_shards_with_packed_traces_play_what_one_machine_plays(
    played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "PACKED_MIN", 1)
    for number in (1, 2):
        config = config_of(tasks_in(played), trials=2, shard=f"{number}/2")
        start_run(config, tmp_path / str(number), QUIET)
    run, one = merged(tmp_path / "all", tmp_path / "1", tmp_path / "2"), verified(played / "one")
    assert digest_of(run) == digest_of(one)
    assert not list((run.path / "traces").iterdir())
    of_one = {row.name: one.read_trace(row) for row in one.rows()}
    for row in run.rows():
        events = [record.event_json for record in run.read_trace(row)]
        assert events == [record.event_json for record in of_one[row.name]]
    replayed = fumehood_json("replay", str(run.path), "--json")
    assert (replayed["replayed"], replayed["identical"]) == (16, 16)


def test_verify_states_that_a_shard_is_only_a_part(shards: list[Path], tmp_path: Path) -> None:
    line = "only shard 2/3 of a run: fumehood merge joins all shards"
    assert fumehood("verify", str(shards[1])).splitlines()[1:] == [line]
    assert fumehood_json("verify", str(shards[1]), "--json")["shard"] == "2/3"
    run = merged(tmp_path / "all", *shards)
    assert len(fumehood("verify", str(run.path)).splitlines()) == 1
    assert "shard" not in fumehood_json("verify", str(run.path), "--json")


def test_the_results_of_a_shard_list_the_agents_in_the_order_of_the_configuration(
    tmp_path: Path,
) -> None:
    shard = tmp_path / "2"
    start_run(config_of(tasks_in(tmp_path), shard="2/2"), shard, QUIET)
    assert planned_of(verified(shard))[0].agent == "noop"
    agents = fumehood_json("score", str(shard), "--json")["agents"]
    assert [agent["agent"] for agent in agents] == ["policy_aware", "noop"]


def test_any_order_of_the_shards_gives_the_same_rows(shards: list[Path], tmp_path: Path) -> None:
    rows = set()
    for number, order in enumerate(permutations(shards)):
        merged(tmp_path / str(number), *order)
        rows.add((tmp_path / str(number) / "episodes.jsonl").read_bytes())
    assert len(rows) == 1


def test_a_receipt_states_who_signed_each_shard(shards: list[Path], tmp_path: Path) -> None:
    sign_again(shards[1], STRANGER)
    with pytest.raises(InputError, match="which is not one of your keys"):
        merged(tmp_path / "all", *shards)
    merge(tmp_path / "all", shards, Trust(Trust.of_user().own, {STRANGER.public: "stranger"}))
    predicate = receipt_statement(verified(tmp_path / "all"))["predicate"]
    assert isinstance(predicate, dict)
    stated = predicate["shards"]
    assert isinstance(stated, list)
    for facts, shard in zip(stated, shards, strict=True):
        assert isinstance(facts, dict)
        manifest = json.loads((shard / "run.json").read_text())
        for name in ("engine", "isolation", "host", "versions", "agents"):
            assert facts[name] == manifest[name]
    own = Trust.of_user().own
    assert [facts["signing_key"] for facts in stated if isinstance(facts, dict)] == [
        own,
        STRANGER.public,
        own,
    ]
    printed = fumehood("receipt", str(tmp_path / "all"))
    assert f"shard       2/3, 5 episodes, engine inline, isolation {Isolation.INLINE.value}" in (
        printed
    )


def without(shards: list[Path]) -> list[Path]:
    return shards[:1]


def doubled(shards: list[Path]) -> list[Path]:
    return [*shards, Path(shutil.copytree(shards[0], shards[0].with_name("again")))]


def of_another_count(shards: list[Path]) -> list[Path]:
    start_run(config_of(tasks_in(shards[0].parent), trials=2, shard="2/2"), other(shards), QUIET)
    return [shards[0], other(shards)]


def of_another_seed(shards: list[Path]) -> list[Path]:
    config = config_of(tasks_in(shards[0].parent), trials=2, shard="3/3", seed=7)
    start_run(config, other(shards), QUIET)
    return [*shards[:2], other(shards)]


def of_other_tasks(shards: list[Path]) -> list[Path]:
    config = config_of(tasks_in(shards[0].parent, 3), trials=2, shard="3/3")
    start_run(config, other(shards), QUIET)
    return [*shards[:2], other(shards)]


def whole(shards: list[Path]) -> list[Path]:
    start_run(config_of(tasks_in(shards[0].parent), trials=2), other(shards), QUIET)
    return [*shards[:2], other(shards)]


def unfinished(shards: list[Path]) -> list[Path]:
    cut_short(shards[2], 2)
    return shards


def edited(shards: list[Path]) -> list[Path]:
    rows = shards[2] / "episodes.jsonl"
    rows.write_text(rows.read_text().replace('"success":false', '"success":true '))
    return shards


def with_the_rows_of_another(shards: list[Path]) -> list[Path]:
    """Rename a shard in its configuration, and sign it again, as a mistaken signer would."""
    manifest = json.loads((shards[0] / "run.json").read_text())
    manifest["config"]["shard"] = "3/3"
    (shards[0] / "run.json").write_text(json.dumps(manifest, indent=2) + "\n")
    first = json.loads((shards[2] / "run.json").read_text())
    first["config"]["shard"] = "1/3"
    (shards[2] / "run.json").write_text(json.dumps(first, indent=2) + "\n")
    return [sign_again(shards[0]), shards[1], sign_again(shards[2])]


def with_agents(shards: list[Path], *images: str) -> list[Path]:
    """Let the first agent of each shard be a folder, with an image that its machine built."""
    for path, image in zip(shards, images, strict=True):
        manifest = json.loads((path / "run.json").read_text())
        manifest["agents"][0] |= {"kind": "folder", "image": image, "digest": f"sha256:{path}"}
        (path / "run.json").write_text(json.dumps(manifest, indent=2) + "\n")
        sign_again(path)
    return shards


def of_another_content_of_a_folder(shards: list[Path]) -> list[Path]:
    return with_agents(shards, *(f"fumehood/agent-folder:{part}" for part in "aab"))


def of_other_code_of_a_class(shards: list[Path]) -> list[Path]:
    for path in shards:
        manifest = json.loads((path / "run.json").read_text())
        code = "b" if path is shards[2] else "a"
        manifest["agents"][0] |= {"kind": "module", "name": "my:Agent", "code": code}
        (path / "run.json").write_text(json.dumps(manifest, indent=2) + "\n")
        sign_again(path)
    return shards


def of_a_great_count(shards: list[Path]) -> list[Path]:
    config = config_of(tasks_in(shards[0].parent), trials=2, shard="1/999999999")
    start_run(config, other(shards), QUIET)
    return [other(shards)]


def other(shards: list[Path]) -> Path:
    return shards[0].with_name("other")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without, "shards 2/3, 3/3 are missing: name their folders, too"),
        (doubled, r"/1 and .*/again are both shard 1/3: name only one of them"),
        (of_another_count, r"is shard 2/2, but .*/1 is shard 1/3"),
        (of_another_seed, "shards of different runs: they differ in seed"),
        (of_a_great_count, "/999999999 and 999,999,978 more are missing: name their folders, too"),
        (of_another_content_of_a_folder, "they differ in agents"),
        (of_other_code_of_a_class, "3 was played with other code of the agent policy_aware than"),
        (of_other_tasks, "shards of different runs: they differ in suite"),
        (whole, "other is no shard: it was run without --shard"),
        (unfinished, "shard 3/3 is unfinished, 2 of 5 episodes; finish it with: fumehood resume"),
        (edited, r"3 does not verify: .*; nothing was run or signed; see: fumehood verify \S*/3$"),
        (with_the_rows_of_another, r"does not hold the episodes of shard 1/3: 6 are missing, 5"),
    ],
)
def test_what_does_not_belong_together_is_not_merged(
    change: Callable[[list[Path]], list[Path]],
    message: str,
    shards: list[Path],
    tmp_path: Path,
) -> None:
    given = change(shards)
    with pytest.raises(InputError, match=message):
        merged(tmp_path / "all", *given)
    assert [path.name for path in tmp_path.iterdir()] == ["copies"]


def test_each_machine_may_build_the_image_of_an_equal_folder(
    shards: list[Path], tmp_path: Path
) -> None:
    run = merged(tmp_path / "all", *with_agents(shards, *["fumehood/agent-folder:a"] * SHARDS))
    assert len(run.rows()) == 16


def test_a_leaderboard_ranks_no_part_of_a_run(shards: list[Path]) -> None:
    done = CliRunner().invoke(leaderboard, [str(shards[0])])
    assert isinstance(done.exception, InputError)
    assert str(done.exception) == f"{shards[0]} is only shard 1/3: merge all shards first"


def test_a_merged_experiment_is_continued_with_no_settings_of_other_machines(
    tmp_path: Path,
) -> None:
    """No signature covers the settings of the execution in the plan of a shard."""
    experiment = {"format": EXPERIMENT, "agents": ["noop"], "run": {"engine": "inline"}}
    file = tmp_path / "noop.yaml"
    file.write_text(json.dumps({**experiment, "suites": [str(tasks_in(tmp_path, 2))]}))
    shards = [tmp_path / str(number) for number in (1, 2)]
    for number, folder in enumerate(shards, 1):
        fumehood("experiment", str(file), "--shard", f"{number}/2", "--out", str(folder))
        plan = json.loads((folder / PLAN_FILE).read_text())
        foreign = {"on": "ray://elsewhere:10001", "i_trust_this_cluster": True}
        plan["cells"][0]["config"] |= {**foreign, "engine": "process", "i_trust_this_agent": True}
        (folder / PLAN_FILE).write_text(json.dumps(plan))
    merge(tmp_path / "out", shards, Trust.of_user())
    (cell,) = own_plan(tmp_path / "out").cells
    usual = run_config({"suite": "", "agents": [""]})
    assert all(getattr(cell.config, name) == getattr(usual, name) for name in MACHINE_SETTINGS)
    assert "report.html" in fumehood("experiment", str(tmp_path / "out"))


FOREIGN = {
    **{"on": "ray://elsewhere:10001", "i_trust_this_cluster": True, "runtime": "runsc"},
    **{"engine": "process", "i_trust_this_agent": True},
}
"""Settings of the execution that a user would not choose for the shards of others."""


def as_infra(shard: Path, key: SigningKey | None = None) -> Path:
    """Make the last episode of a shard end as ``infra``, and sign the shard again."""
    *lines, last = (shard / "episodes.jsonl").read_text().splitlines()
    row = EpisodeRow.from_json(json.loads(last))
    (shard / row.trace).unlink()
    for output in (shard / "output").rglob(f"{Path(row.trace).stem}.std*"):
        output.unlink()
    lost = replace(row, outcome=Infra(InfraKind.SERVICE, "lost"), score=UNGRADED, trace="")
    lost = replace(lost, trace_digest="", stdout_bytes=0, stderr_bytes=0)
    lines.append(json.dumps(lost.to_json()))
    (shard / "episodes.jsonl").write_text("\n".join(lines) + "\n")
    return sign_again(shard, key)


def with_settings(shard: Path, settings: dict[str, Any], key: SigningKey | None = None) -> Path:
    """Change settings in the configuration of a shard, and sign the shard again."""
    manifest = json.loads((shard / "run.json").read_text())
    manifest["config"] |= settings
    (shard / "run.json").write_text(json.dumps(manifest, indent=2) + "\n")
    return sign_again(shard, key)


def state_key(shard: Path, stated: str, key: SigningKey) -> None:
    """Let the ``run.json`` of a shard state another key than the one that signs it."""
    manifest = json.loads((shard / "run.json").read_text()) | {"signing_key": stated}
    (shard / "run.json").write_text(json.dumps(manifest, indent=2) + "\n")
    seal, digest = read_seal(shard), digest_file(shard / "run.json")
    files = (
        replace(file, sha256=digest) if file.path == "run.json" else file for file in seal.files
    )
    sealed = replace(seal, files=tuple(files)).signed(key)
    (shard / "seal.json").write_text(canonical_json(sealed) + "\n")


def merged_with_stranger(out: Path, *shards: Path) -> RunReader:
    merge(out, shards, Trust(Trust.of_user().own, {STRANGER.public: "stranger"}))
    return verified(out)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Started(Exception):
    """Episodes are to be played."""


def started(_: Path, reason: str, episodes: int, done: object) -> None:
    if episodes:
        raise Started(reason)


PLAYS_NOTHING = replace(QUIET, on_start=started)


@pytest.mark.parametrize("key", [None, STRANGER], ids=["own", "stranger"])
def test_a_merged_run_has_the_default_settings_of_the_execution(
    shards: list[Path], tmp_path: Path, key: SigningKey | None
) -> None:
    """Your signature of a merged run must not choose the engine and the cluster of `resume`."""
    before = as_object(json.loads((shards[0] / "run.json").read_text())["config"])
    for shard in shards:
        with_settings(shard, FOREIGN, key)
    run = merged_with_stranger(tmp_path / "all", *shards)
    usual = run_config({"suite": "", "agents": [""]}).model_dump(mode="json")
    config = run.manifest()["config"]
    assert config == {
        **before,
        **{name: usual[name] for name in MACHINE_SETTINGS},
        "shard": None,
    }


@pytest.mark.parametrize("stated", ["own", "true"])
@pytest.mark.parametrize("foreign", [0, 1])
def test_no_episode_of_a_merged_run_is_played_with_the_settings_of_another_signer(
    shards: list[Path], tmp_path: Path, foreign: int, stated: str
) -> None:
    as_infra(with_settings(shards[foreign], FOREIGN), STRANGER)
    if stated == "own":
        state_key(shards[foreign], Trust.of_user().own, STRANGER)
    run = merged_with_stranger(tmp_path / "all", *shards)
    assert [row.is_infra for row in run.rows()].count(True) == 1
    facts = run.manifest()["shards"]
    assert isinstance(facts, list)
    assert as_object(facts[foreign])["signing_key"] == STRANGER.public
    before = contents(tmp_path / "all")
    with pytest.raises(InputError) as raised:
        resume_run(tmp_path / "all", PLAYS_NOTHING, {"engine": "inline"})
    assert str(raised.value) == (
        f"shard {foreign + 1}/3 of {tmp_path / 'all'} has another key ({STRANGER.public[:16]}…), "
        "which is not yours. Its configuration chooses agents and hosts that get keys, so no "
        f"further episodes are played. Read the finished ones (fumehood report {tmp_path / 'all'})"
        "; or let the signer resume the shard, and merge again"
    )
    assert contents(tmp_path / "all") == before


def test_an_unfinished_merged_run_of_another_signer_is_not_continued(
    shards: list[Path], tmp_path: Path
) -> None:
    sign_again(shards[1], STRANGER)
    merged_with_stranger(tmp_path / "all", *shards)
    folder = RunFolder.open(tmp_path / "all")
    names = tuple(planned.name for planned in planned_of(verified(tmp_path / "all")))
    folder.sign_with(Signing(user_key(), names))
    folder.reopen()
    with pytest.raises(InputError, match=r"shard 2/3 of .* which is not yours"):
        resume_run(tmp_path / "all", PLAYS_NOTHING)


def test_a_finished_merged_run_of_another_signer_can_be_resumed_without_an_effect(
    shards: list[Path], tmp_path: Path
) -> None:
    sign_again(shards[1], STRANGER)
    run = merged_with_stranger(tmp_path / "all", *shards)
    assert resume_run(tmp_path / "all", PLAYS_NOTHING).rows() == run.rows()


def test_a_merged_run_of_own_shards_is_continued(shards: list[Path], tmp_path: Path) -> None:
    as_infra(shards[1])
    assert any(row.is_infra for row in merged(tmp_path / "all", *shards).rows())
    run = resume_run(tmp_path / "all", QUIET, {"engine": "inline"})
    assert not any(row.is_infra for row in run.rows())
    assert verify(tmp_path / "all").damage == ()


def experiment_in(folder: Path, **changes: Any) -> Path:
    """Return the file of an experiment with two runs."""
    experiment = {"format": EXPERIMENT, "agents": ["noop"], "run": {"engine": "inline"}}
    levels = {"suites": [str(tasks_in(folder, 2))], "budgets": ["own", {"calls": 1}]}
    file = folder / "noop.yaml"
    file.write_text(json.dumps({**experiment, **levels, **changes}))
    return file


def experiment_of_stranger(folder: Path, *, infra: bool = False, **changes: Any) -> Path:
    """Return a merged experiment, whose second shards a stranger signed."""
    file = experiment_in(folder, **changes)
    parts = [folder / str(number) for number in (1, 2)]
    for number, part in enumerate(parts, 1):
        fumehood("experiment", str(file), "--shard", f"{number}/2", "--out", str(part))
    for run in (parts[1] / "runs").iterdir():
        if infra:
            as_infra(run, STRANGER)
        else:
            sign_again(run, STRANGER)
    merge(folder / "out", parts, Trust(Trust.of_user().own, {STRANGER.public: "stranger"}))
    return folder / "out"


def refused(*command: str) -> str:
    """Return what a command prints that refuses to play."""
    done = run_fumehood(*command)
    assert (done.returncode, done.stdout) == (2, "")
    assert "shard 2/2 of " in done.stderr
    assert "which is not yours" in done.stderr
    return done.stderr


def test_a_merged_experiment_of_another_signer_is_reported_and_plays_nothing(
    tmp_path: Path,
) -> None:
    out = experiment_of_stranger(tmp_path)
    signed = json.loads((out / PLAN_FILE).read_text())["shards"]
    own = {"shard": "1/2", "signing_key": Trust.of_user().own}
    assert signed == [own, {"shard": "2/2", "signing_key": STRANGER.public}]
    assert "report.html" in fumehood("experiment", str(out))
    refused("experiment", str(out), "--estimate", "1")
    # One run is left, and then none.
    for run in sorted((out / "runs").iterdir()):
        shutil.rmtree(run)
        before = contents(out)
        message = refused("experiment", str(out))
        assert f"YAML file with --out {out}; or merge the shards again" in message
        refused("resume", str(out))
        refused("experiment", str(out), "--estimate", "1")
        assert contents(out) == before


def test_an_own_file_plays_the_removed_runs_of_a_merged_experiment(tmp_path: Path) -> None:
    out = experiment_of_stranger(tmp_path)
    shutil.rmtree(out / "runs")
    file = str(tmp_path / "noop.yaml")
    assert "report.html" in fumehood("experiment", file, "--out", str(out))
    assert "report.html" in fumehood("experiment", str(out))


def test_a_merged_experiment_without_keys_in_its_plan_is_refused_for_the_keys_of_its_runs(
    tmp_path: Path,
) -> None:
    """Earlier versions did not state the keys."""
    out = experiment_of_stranger(tmp_path)
    (out / PLAN_FILE).unlink()
    plan = plan_of(read_experiment(tmp_path / "noop.yaml"))
    write_plan(plan, out)
    assert "shards" not in json.loads((out / PLAN_FILE).read_text())
    shutil.rmtree(sorted((out / "runs").iterdir())[0])
    refused("experiment", str(out))
    shutil.rmtree(out / "runs")
    assert own_plan(out) == plan


def test_a_merged_experiment_of_another_signer_repeats_no_episode(tmp_path: Path) -> None:
    out = experiment_of_stranger(tmp_path, infra=True)
    refused("experiment", str(out))
    assert "report.html" in fumehood("report", str(out), "--out", str(tmp_path / "report"))


def test_a_folder_with_content_is_not_replaced(shards: list[Path]) -> None:
    with pytest.raises(InputError, match="is not empty: choose another folder"):
        merged(shards[0], *shards)


@pytest.mark.parametrize("below", [(), ("run",), ("runs", "run")])
def test_a_file_is_named_instead_of_the_folder(
    shards: list[Path], tmp_path: Path, below: tuple[str, ...]
) -> None:
    file = tmp_path / "shelled.txt"
    file.write_text("text")
    out = file.joinpath(*below)
    with pytest.raises(InputError, match=f"^{file} is a file: choose another folder$"):
        merged(out, *shards)
    with pytest.raises(InputError, match=f"^{file} is a file: choose another --out$"):
        start_run(config_of(tasks_in(tmp_path)), out, QUIET)
    assert file.read_text() == "text"


@pytest.mark.slow
def test_a_resumed_shard_is_merged_with_all_its_attempts(
    shards: list[Path], played: Path, tmp_path: Path
) -> None:
    cut_short(shards[0], 2)
    resume_run(shards[0], QUIET, {"engine": "process"})
    run = merged(tmp_path / "all", *shards)
    assert digest_of(run) == digest_of(verified(played / "one"))
    process = Isolation.NONE.value
    assert run.isolation() == f"{Isolation.INLINE.value}, {process} in 4 episodes"


def test_a_merged_run_states_in_which_way_boxes_started(shards: list[Path], tmp_path: Path) -> None:
    manifest = json.loads((shards[0] / "run.json").read_text())
    manifest["isolation_facts"]["starts"] = "forked"
    (shards[0] / "run.json").write_text(json.dumps(manifest, indent=2) + "\n")
    sign_again(shards[0])
    run, inline = merged(tmp_path / "all", *shards), Isolation.INLINE.value
    assert run.isolation() == f"{inline} (forked), {inline} in 10 episodes"
    assert verify(tmp_path / "all").damage == ()


def edit_row(run: Path) -> None:
    rows = run / "shards" / "1" / "episodes.jsonl"
    rows.write_text(rows.read_text().replace('"wall_ms":', '"wall_ms":1', 1))


def remove_seal(run: Path) -> None:
    (run / "shards" / "2" / "seal.json").unlink()


def add_file(run: Path) -> None:
    (run / "shards" / "note").write_text("?")


def change_row_and_sign(run: Path) -> None:
    rows = (run / "episodes.jsonl").read_text().splitlines()
    first = json.loads(rows[0]) | {"success": None}
    (run / "episodes.jsonl").write_text("\n".join([json.dumps(first), *rows[1:]]) + "\n")
    sign_again(run)


@pytest.mark.parametrize(
    ("change", "damage"),
    [
        (edit_row, "shards/1/seal.json: the shard has another episodes.jsonl"),
        (remove_seal, "shards/2/seal.json: "),
        (add_file, "shards/note: belongs to no shard"),
        (change_row_and_sign, "the merged run does not have this row"),
    ],
)
def test_a_merged_run_is_compared_with_the_seals_of_its_shards(
    change: Callable[[Path], None], damage: str, shards: list[Path], tmp_path: Path
) -> None:
    merged(tmp_path / "all", *shards)
    assert verify(tmp_path / "all").damage == ()
    change(tmp_path / "all")
    assert any(damage in str(item) for item in verify(tmp_path / "all").damage)


@pytest.mark.slow
def test_more_shards_than_episodes_are_merged(tmp_path: Path) -> None:
    tasks, folders = tasks_in(tmp_path, 1), [tmp_path / f"s{number}" for number in (1, 2, 3)]
    for number, folder in enumerate(folders, 1):
        arguments = ("-a", "policy_aware", "-a", "noop", "--engine", "inline", "--json")
        out = ("--shard", f"{number}/3", "--out", str(folder))
        stated = fumehood_json("run", str(tasks), *arguments, *out)
        assert stated["verification"][0]["shard"] == f"{number}/3"
    assert sum(len(verified(folder).rows()) for folder in folders) == 2
    assert min(len(verified(folder).rows()) for folder in folders) == 0
    printed = fumehood_json("merge", str(tmp_path / "all"), *map(str, folders), "--json")
    assert (printed["episodes"], printed["planned"]) == (2, 2)


@pytest.mark.slow
def test_resume_asks_no_provider_that_the_signer_of_a_shard_chose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks, folders = tasks_in(tmp_path, 2), [tmp_path / "s1", tmp_path / "s2"]
    monkeypatch.setenv("KEY_OF_A_PROVIDER", "sk-of-the-stranger")
    with ScriptedModels(clumsy) as provider:
        named = {"name": "p", "address": provider.address, "key_env": "KEY_OF_A_PROVIDER"}
        settings: dict[str, Any] = {"agents": ["react"], "engine": "process"}
        for number, folder in enumerate(folders, 1):
            models = {"model": "some-model", "models": {"providers": [named]}}
            config = config_of(tasks, **settings, **models, shard=f"{number}/2")
            start_run(config, folder, QUIET)
        for folder in folders:
            sign_again(folder, STRANGER)
        as_infra(folders[0], STRANGER)
        merged_with_stranger(tmp_path / "all", *folders)
        asked = len(provider.asked)
        monkeypatch.setenv("KEY_OF_A_PROVIDER", "sk-of-the-user")
        with pytest.raises(InputError, match="hosts that get keys, so no further episodes"):
            resume_run(tmp_path / "all", QUIET, {"engine": "process"})
        assert len(provider.asked) == asked > 0


@pytest.mark.slow
def test_a_merged_experiment_without_runs_asks_no_provider_that_the_signer_of_a_shard_chose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_OF_A_PROVIDER", "sk-of-the-stranger")
    with ScriptedModels(clumsy) as provider:
        named = {"name": "p", "address": provider.address, "key_env": "KEY_OF_A_PROVIDER"}
        settings = {"engine": "process", "models": {"providers": [named]}}
        agents: dict[str, Any] = {"agents": ["react"], "models": ["some-model"], "budgets": ["own"]}
        out = experiment_of_stranger(tmp_path, **agents, run=settings)
        shutil.rmtree(out / "runs")
        asked = len(provider.asked)
        monkeypatch.setenv("KEY_OF_A_PROVIDER", "sk-of-the-user")
        refused("experiment", str(out))
        assert len(provider.asked) == asked > 0


@pytest.mark.slow
def test_model_exchanges_are_merged(tmp_path: Path) -> None:
    tasks, folders = tasks_in(tmp_path, 2), [tmp_path / "s1", tmp_path / "s2"]
    with ScriptedModels(clumsy) as provider:
        models = {"providers": [{"name": "p", "address": provider.address}]}
        settings: dict[str, Any] = {"agents": ["react"], "engine": "process", "models": models}
        for number, folder in enumerate(folders, 1):
            shard = {"shard": f"{number}/2", "model": "some-model"}
            start_run(config_of(tasks, **settings, **shard), folder, QUIET)
    run = merged(tmp_path / "all", *folders)
    for folder in folders:
        for row in verified(folder).rows():
            exchanges = verified(folder).exchanges(row.name)
            assert len(exchanges) > 0
            assert run.exchanges(row.name) == exchanges
