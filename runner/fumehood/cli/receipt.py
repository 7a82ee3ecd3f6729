"""``fumehood receipt``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from fumehood.cli.output import PATH, beside, print_json, say
from fumehood.cli.reading import find_episode, read_run
from fumehood.core.errors import InputError
from fumehood.core.json_values import Json, JsonObject, as_object
from fumehood.records.caches import last_probe, probe_summary, system_name
from fumehood.records.files import write_export
from fumehood.records.receipt import (
    Receipt,
    compare_receipt,
    read_receipt,
    signed_receipt,
)
from fumehood.records.row import EpisodeName, file_name
from fumehood.records.run_reader import RunReader
from fumehood.records.trust import SHOWN_DIGITS, Trust

PROBE_AGE_MAX = timedelta(hours=1)


@click.command()
@click.argument("run_dir", metavar="[DIR]", required=False, type=PATH)
@click.argument("episode", required=False)
@click.option("--out", type=PATH, help="Output file.  [default: DIR.receipt.json]")
@click.option(
    "--probe", is_flag=True, help="Include the result of a probe of the engine in the last hour."
)
@click.option("--verify", "receipt_file", type=PATH, help="Verify this receipt.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def receipt(
    run_dir: Path | None,
    episode: str | None,
    out: Path | None,
    probe: bool,
    receipt_file: Path | None,
    as_json: bool,
) -> None:
    """Write or verify a signed receipt of a run or an EPISODE.

    A receipt states what separated the agents from the host, and the root of a Merkle tree over
    all rows. The command also prints it in words. EPISODE is AGENT/TASK/TRIAL, or a part of it that
    only one episode has. Only the signer of a run can write its receipt. With --verify, the command
    verifies a receipt; with DIR, it also compares it with the run.

    \b
    Examples:
      fumehood receipt runs/20260101-120000
      fumehood receipt runs/20260101-120000 policy_aware/crud_gold --out row.json
      fumehood receipt --verify row.json runs/20260101-120000
    """
    if receipt_file is not None:
        verified = read_receipt(receipt_file, Trust.of_user())
        if run_dir is not None:
            compare_receipt(verified, read_run(run_dir, unverified=False))
        _print(verified, receipt_file, run_dir, as_json=as_json)
        return
    if run_dir is None:
        raise InputError("name a run folder, or a receipt with --verify")
    run = read_run(run_dir, unverified=False)
    name = None if episode is None else find_episode(run.rows(), episode, run_dir).name
    content = signed_receipt(run, name, _recent_probe(run) if probe else None)
    path = out or _default_path(run_dir, name)
    try:
        write_export(path, content.encode())
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None
    _print(read_receipt(path, Trust(own=run.provenance.key)), path, run_dir, as_json=as_json)


def _default_path(run_dir: Path, name: EpisodeName | None) -> Path:
    middle = "" if name is None else f".{file_name(name.identifier)}"
    return beside(run_dir, f"{middle}.receipt.json")


def _recent_probe(run: RunReader) -> JsonObject:
    """Return the result of the last probe of the run's engine.

    Raises:
        InputError: there is none, or it is older than an hour.
    """
    manifest = run.manifest()
    engine, stored = str(manifest.get("engine")), manifest.get("containment")
    detail = str(stored.get("detail")) if isinstance(stored, dict) else ""
    probe = last_probe(engine, detail) if detail else None
    command = f"run fumehood doctor --probe {engine} before the run and before the receipt"
    if probe is None:
        raise InputError(
            f"the engine {engine} of the run was never probed on {system_name()}: {command}"
        )
    age = datetime.now(UTC) - datetime.fromisoformat(str(probe["made"]))
    if age > PROBE_AGE_MAX:
        minutes = round(age.total_seconds() / 60)
        raise InputError(
            f"the last probe of {engine} is {minutes} minutes old, at most 60: {command}"
        )
    return probe


def _print(verified: Receipt, path: Path, run_dir: Path | None, *, as_json: bool) -> None:
    if as_json:
        result = {
            "receipt": str(path),
            "verified": True,
            "compared_with": None if run_dir is None else str(run_dir),
            "signing_key": verified.key,
            "signer": verified.signer,
            "statement": verified.statement,
        }
        print_json(result)
        return
    for line in _lines(verified, path, run_dir):
        say(line)


def _lines(verified: Receipt, path: Path, run_dir: Path | None) -> Iterator[str]:
    facts = verified.predicate
    (subject,) = _objects(verified.statement["subject"])
    compared = f"equal to {run_dir}" if run_dir else "not compared with a run"
    yield f"{path}: signed with {verified.signer}, {verified.key[:SHOWN_DIGITS]}…; {compared}"
    yield f"subject     {subject.get('name')}"
    yield f"engine      {facts.get('engine')}, isolation {facts.get('isolation')}"
    for isolation, number in as_object(facts.get("isolation_of_episodes", {})).items():
        yield f"            but isolation {isolation} in {number} episodes"
    for shard in _objects(facts.get("shards")):
        signer = str(shard.get("signing_key"))[:SHOWN_DIGITS]
        yield (
            f"shard       {shard.get('shard')}, {shard.get('episodes')} episodes, engine "
            f"{shard.get('engine')}, isolation {shard.get('isolation')}, signed with {signer}…"
        )
    isolation_facts = as_object(facts.get("isolation_facts"))
    yield f"kernel      {isolation_facts.get('kernel', 'not recorded')}"
    yield f"users       {isolation_facts.get('users', 'not recorded')}"
    yield f"network     {isolation_facts.get('network', 'not recorded')}"
    yield f"calls       filter {isolation_facts.get('system_call_filter') or 'none'}"
    prepared = isolation_facts.get("prepared")
    in_advance = f", up to {prepared} boxes in advance" if prepared else ""
    yield f"starts      {isolation_facts.get('starts', 'not recorded')}{in_advance}"
    unenforced = isolation_facts.get("unenforced") or []
    limits = ", ".join(f"{name} {value}" for name, value in as_object(facts.get("limits")).items())
    yield f"limits      {limits}; not enforced for a box: {_list(unenforced)}"
    yield f"grants      {_list(facts.get('grants'))}"
    for agent in _objects(facts.get("agents")):
        yield f"image       {agent.get('label')}: {agent.get('digest') or 'none'}"
    yield f"episodes    {facts.get('episodes')}, infra {facts.get('infra')}"
    attempts = as_object(facts.get("infra_attempts")).items()
    yield f"attempts    ended as infra: {', '.join(f'{name} {count}' for name, count in attempts)}"
    versions = as_object(facts.get("versions")).items()
    yield f"versions    {', '.join(f'{name} {version}' for name, version in versions)}"
    rows = as_object(facts.get("rows"))
    yield f"rows        {rows.get('number')}, Merkle root {rows.get('root')}"
    probe = facts.get("probe")
    yield f"probe       {probe_summary(probe) if isinstance(probe, dict) else 'not included'}"
    row = facts.get("row")
    if isinstance(row, dict):
        content = as_object(row.get("content"))
        outcome = f"{content.get('outcome')}, success {json.dumps(content.get('success'))}"
        yield f"row         number {row.get('index')}, proven: {outcome}"


def _objects(value: Json) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _list(value: Json) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) and value else "none"
