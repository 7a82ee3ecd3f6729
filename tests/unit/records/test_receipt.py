"""Receipts: independent programs accept them, and a changed run or receipt is refused."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fumehood.cli.main import fumehood
from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject, canonical_json
from fumehood.records.caches import keep_probe
from fumehood.records.receipt import receipt_statement, sign_receipt
from fumehood.records.signing_key import SigningKey, user_key
from tests.parts.cut_short import cut_short
from tests.parts.reading import sign_again, unverified, verified
from tests.unit.report.runs import part_of_sample, played

STRANGER = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(31) + b"\7"))
ROW = f"policy_aware/{part_of_sample(1).cases[0].task.task_id}/0"


@pytest.fixture(scope="module")
def sound_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(tmp_path_factory.mktemp("runs") / "run", "policy_aware", "noop", tasks=3).path


@pytest.fixture
def run(sound_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound_run, tmp_path / "run"))


def receipt(*words: object) -> Result:
    arguments = ["receipt", *map(str, words)]
    return CliRunner().invoke(fumehood, arguments, standalone_mode=False)


def written(run: Path, *words: object) -> Path:
    """Return the receipt of a run that the command wrote."""
    out = run.parent / "out.json"
    result = receipt(run, *words, "--out", out)
    assert result.exception is None, result.exception
    return out


def statement_of(path: Path) -> dict[str, Any]:
    value = json.loads(base64.b64decode(json.loads(path.read_text())["payload"]))
    assert isinstance(value, dict)
    return value


def test_an_independent_program_accepts_signature_and_statement(run: Path) -> None:
    dsse = pytest.importorskip("securesystemslib.dsse")
    signer = pytest.importorskip("securesystemslib.signer")
    attestation = pytest.importorskip("in_toto_attestation.v1.statement")
    wrong = pytest.importorskip("securesystemslib.exceptions").VerificationError
    path = written(run)
    key = user_key().public
    envelope = dsse.Envelope.from_dict(json.loads(path.read_text()))
    known = signer.SSlibKey(key, "ed25519", "ed25519", {"public": key})
    assert list(envelope.verify([known], threshold=1)) == [key]
    other = signer.SSlibKey(key, "ed25519", "ed25519", {"public": STRANGER.public})
    with pytest.raises(wrong):
        envelope.verify([other], threshold=1)
    content = json.loads(envelope.payload)
    (subject,) = content["subject"]
    descriptor = pytest.importorskip("in_toto_attestation.v1.resource_descriptor")
    described = descriptor.ResourceDescriptor(name=subject["name"], digest=subject["digest"])
    described.validate()
    statement = attestation.Statement(
        [described.pb], content["predicateType"], content["predicate"]
    )
    statement.validate()
    assert content["_type"] == attestation.STATEMENT_TYPE_URI


def test_a_receipt_states_the_facts_of_the_run(run: Path) -> None:
    statement = statement_of(written(run))
    manifest = json.loads((run / "run.json").read_text())
    facts = statement["predicate"]
    assert (facts["engine"], facts["isolation"]) == (manifest["engine"], manifest["isolation"])
    assert facts["agents"] == manifest["agents"]
    assert facts["limits"] == manifest["config"]["limits"]
    assert facts["runtime"] == manifest["config"]["runtime"]
    assert facts["infra_attempts"] == {"policy_aware": 0, "noop": 0}
    assert facts["rows"]["number"] == facts["episodes"] == 6
    assert "RFC 6962" in facts["rows"]["tree"]
    seal = sha256((run / "seal.json").read_bytes()).hexdigest()
    assert statement["subject"][0]["digest"] == {"sha256": seal}


def test_the_command_explains_and_verifies_a_receipt(run: Path) -> None:
    path = written(run)
    shown = receipt("--verify", path, run)
    assert shown.exception is None, shown.exception
    assert f"signed with your key, {user_key().public[:16]}…; equal to {run}" in shown.stdout
    assert "Merkle root" in shown.stdout
    report = json.loads(receipt("--verify", path, "--json").stdout)
    assert report["verified"] is True
    assert report["compared_with"] is None


def test_a_row_is_proven_without_the_other_rows(run: Path) -> None:
    path = written(run, ROW)
    root = statement_of(path)["predicate"]["rows"]["root"]
    assert root == statement_of(written(run))["predicate"]["rows"]["root"]
    path = written(run, ROW)
    shutil.copy(path, run.parent / "kept.json")
    shutil.rmtree(run)
    shown = receipt("--verify", run.parent / "kept.json")
    assert shown.exception is None, shown.exception
    assert "proven: finished, success true" in shown.stdout
    assert "noop" not in json.dumps(statement_of(path)["predicate"]["row"])


def test_another_row_in_the_place_of_a_proven_one_is_refused(run: Path) -> None:
    statement = statement_of(written(run, ROW))
    row = statement["predicate"]["row"]
    row["content"]["success"] = False
    line = (canonical_json(row["content"]) + "\n").encode()
    statement["subject"][0]["digest"]["sha256"] = sha256(line).hexdigest()
    forged = run.parent / "forged.json"
    forged.write_text(sign_receipt(statement, user_key()))
    refused = receipt("--verify", forged)
    assert "the proof does not show that the row belongs to the run" in str(refused.exception)


@pytest.mark.parametrize("words", [(), (ROW,)])
def test_one_changed_byte_in_any_file_of_the_run_is_refused(
    words: tuple[str, ...], run: Path
) -> None:
    path = written(run, *words)
    assert receipt("--verify", path, run).exception is None
    for file in sorted(file for file in run.rglob("*") if file.is_file()):
        sound = file.read_bytes()
        for at in (0, len(sound) // 2, len(sound) - 1):
            file.write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
            refused = receipt("--verify", path, run)
            assert isinstance(refused.exception, InputError), f"{file}: byte {at}"
            assert "\n" not in str(refused.exception)
        file.write_bytes(sound)
    assert receipt("--verify", path, run).exception is None


def test_one_changed_byte_of_a_receipt_is_refused(run: Path) -> None:
    path = written(run, ROW)
    sound = path.read_bytes()
    for at in range(0, len(sound), 41):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
        assert isinstance(receipt("--verify", path).exception, InputError), at


@pytest.mark.parametrize(
    "encode",
    [
        lambda envelope: json.dumps(envelope).encode(),
        lambda envelope: canonical_json({**envelope, "note": "sound"}).encode() + b"\n",
    ],
    ids=["other blanks", "another field"],
)
def test_an_envelope_has_exactly_one_encoding(
    run: Path, encode: Callable[[dict[str, Any]], bytes]
) -> None:
    path = written(run)
    path.write_bytes(encode(json.loads(path.read_bytes())))
    refused = receipt("--verify", path).exception
    assert isinstance(refused, InputError)
    assert "another encoding" in str(refused)


def edit_and_sign_again(run: Path) -> None:
    """Change a fact of the run and seal it again with the same key."""
    manifest = json.loads((run / "run.json").read_text()) | {"isolation": "container"}
    (run / "run.json").write_text(json.dumps(manifest, indent=2) + "\n")
    sign_again(run)


def test_a_run_that_its_signer_sealed_again_is_another_run(run: Path) -> None:
    path = written(run)
    edit_and_sign_again(run)
    refused = receipt("--verify", path, run)
    assert f"the receipt is not about {run} as it is now: the run was sealed again later" in str(
        refused.exception
    )


def test_a_receipt_of_another_run_is_refused_with_the_names_of_both_runs(run: Path) -> None:
    path = written(run)
    manifest = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(manifest | {"run": "other"}, indent=2) + "\n")
    sign_again(run)
    refused = str(receipt("--verify", path, run).exception)
    assert f"it is about run {manifest['run']}, and the folder contains run other" in refused


def test_a_file_that_is_no_receipt_is_refused_with_the_missing_field(run: Path) -> None:
    refused = str(receipt("--verify", run / "run.json").exception)
    assert refused == (
        f"{run / 'run.json'} is not a receipt that fumehood wrote: it has no field 'payload'"
    )


def sign_with_another_key(run: Path) -> None:
    sign_again(run, STRANGER)


def interrupt(run: Path) -> None:
    cut_short(run, 2)


@pytest.mark.parametrize(
    ("change", "reason"),
    [(sign_with_another_key, "does not verify"), (interrupt, "is unfinished")],
)
def test_a_receipt_needs_a_finished_run_of_this_user(
    change: Callable[[Path], None], reason: str, run: Path
) -> None:
    change(run)
    assert reason in str(receipt(run).exception)


def test_a_receipt_of_an_unknown_signer_is_refused(run: Path) -> None:
    path = run.parent / "other.json"
    path.write_text(sign_receipt(receipt_statement(verified(run)), STRANGER))
    assert "which is not one of your keys" in str(receipt("--verify", path).exception)
    (run / "seal.json").unlink()
    with pytest.raises(InputError, match="is unverified"):
        receipt_statement(unverified(run))


def test_the_result_of_a_recent_probe_is_included(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert "was never probed" in str(receipt(run, "--probe").exception)
    manifest = json.loads((run / "run.json").read_text())
    manifest["containment"] = {"format": "fumehood.probe/1", "detail": "in memory"}
    (run / "run.json").write_text(json.dumps(manifest, indent=2) + "\n")
    sign_again(run)
    for minutes, is_recent in ((5, True), (70, False)):
        made = (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat(timespec="seconds")
        counts: JsonObject = {"made": made, "fumehood": "0.1.0", "counts": {"stopped": 3}}
        keep_probe(manifest["engine"], "in memory", counts)
        result = receipt(run, "--probe")
        if is_recent:
            assert result.exception is None, result.exception
            assert "3 stopped" in result.stdout
        else:
            assert "70 minutes old" in str(result.exception)
