"""Receipts: signed statements of what separated the agents of a run from the host.

A receipt is an in-toto Statement v1 in a DSSE envelope, signed with the key of the run. Its subject
is the run, or one row of it. Sources: the in-toto Attestation Framework and the DSSE protocol, both
version 1.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fumehood.core.errors import InputError
from fumehood.core.json_values import Json, JsonObject, canonical_json
from fumehood.records.files import read_plain
from fumehood.records.merkle import is_in_tree, merkle_proof, merkle_root
from fumehood.records.row import EpisodeName, EpisodeRow
from fumehood.records.run_reader import RunReader
from fumehood.records.seals import SEAL, UNREADABLE, digest_bytes
from fumehood.records.shard_seals import SHARDS
from fumehood.records.signing_key import SigningKey, is_signature, user_key
from fumehood.records.trust import Trust

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:fumehood:receipt:v1"
TREE = "RFC 6962 over the SHA-256 of each row, in the order of the plan"
_COPIED = ("engine", "isolation", "isolation_facts", "host", "versions", "suite", "suite_digest")
"""Fields of ``run.json`` that a receipt repeats."""
_BYTES_MAX = 16 << 20


@dataclass(frozen=True, slots=True)
class Receipt:
    """A receipt whose signature has been checked."""

    statement: JsonObject
    key: str
    """Public key of the signer, 64 hex digits."""
    signer: str
    """Owner of the key, in words."""

    @property
    def predicate(self) -> JsonObject:
        """The stated facts."""
        predicate = self.statement["predicate"]
        assert isinstance(predicate, dict)
        return predicate


def receipt_statement(
    run: RunReader, episode: EpisodeName | None = None, probe: JsonObject | None = None
) -> JsonObject:
    """Return the statement about a finished run, or about one row of it.

    Args:
        run: a verified run.
        episode: episode of the row; None for the whole run.
        probe: result of a probe to include.

    Raises:
        InputError: the run is unverified or unfinished.
    """
    _require_finished(run)
    digests = run.row_digests()
    leaves = [bytes.fromhex(digest) for digest in digests.values()]
    predicate = _predicate(run, leaves)
    if probe is not None:
        predicate["probe"] = probe
    name, digest = f"run {run.manifest().get('run')}", digest_bytes(read_plain(run.path / SEAL))
    predicate["seal"] = digest
    if episode is not None:
        index = list(digests).index(episode)
        name, digest = str(episode), digests[episode]
        predicate["row"] = {
            "index": index,
            "content": run.sealed_row(episode),
            "proof": [node.hex() for node in merkle_proof(leaves, index)],
        }
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": digest}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": predicate,
    }


def signed_receipt(
    run: RunReader, episode: EpisodeName | None = None, probe: JsonObject | None = None
) -> str:
    """Return the receipt of a run, or of one row of it, signed with the key of this user.

    Args:
        run: a verified run.
        episode: episode of the row; None for the whole run.
        probe: result of a probe to include.

    Raises:
        InputError: another key signed the run, or it is unverified or unfinished.
    """
    key = user_key()
    if run.provenance.key != key.public:
        raise InputError(f"only the signer of {run.path} can write its receipt")
    return sign_receipt(receipt_statement(run, episode, probe), key)


def sign_receipt(statement: JsonObject, key: SigningKey) -> str:
    """Return the DSSE envelope of a statement, as JSON text."""
    payload = canonical_json(statement).encode("ascii")
    signature = key.sign_bytes(_pre_authentication(payload))
    envelope: JsonObject = {
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [{"keyid": key.public, "sig": base64.b64encode(signature).decode()}],
    }
    return canonical_json(envelope) + "\n"


def read_receipt(path: Path, trust: Trust) -> Receipt:
    """Return a receipt after checking its signature and, of a receipt of a row, its proof.

    Raises:
        InputError: the file is no receipt, was changed, or was signed with an unknown key.
    """
    try:
        content = read_plain(path)
        if len(content) > _BYTES_MAX:
            raise InputError(f"{path} has more than {_BYTES_MAX} bytes, so it is no receipt")
        key, payload = _open_envelope(content)
        statement = json.loads(payload)
        predicate = statement["predicate"]
        (subject,) = statement["subject"]
        digest = subject["digest"]["sha256"]
        known = (statement["_type"], statement["predicateType"])
        is_proven = _is_proven(predicate, digest)
    except (*UNREADABLE, binascii.Error) as error:
        reason = f"it has no field {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(f"{path} is not a receipt that fumehood wrote: {reason}") from None
    if known != (STATEMENT_TYPE, PREDICATE_TYPE):
        raise InputError(f"{path} is a statement of another type: {known[1]!r}")
    if not is_proven:
        raise InputError(f"{path}: the proof does not show that the row belongs to the run")
    signer = trust.signer(key)
    if signer is None:
        raise InputError(
            f"{path} is signed with {key}, which is not one of your keys: "
            f"if you know its owner, run fumehood keys add {key} NAME"
        )
    return Receipt(statement, key, signer)


def compare_receipt(receipt: Receipt, run: RunReader) -> None:
    """Check that a receipt states what a run contains; the result of a probe is not compared.

    Raises:
        InputError: the receipt is about another run, or about another content of the run.
    """
    row, probe = receipt.predicate.get("row"), receipt.predicate.get("probe")
    episode = None
    if isinstance(row, dict):
        content = row["content"]
        assert isinstance(content, dict)
        episode = EpisodeRow.from_json(content).name
        if episode not in run.row_digests():
            raise InputError(f"the receipt is about {episode}, which {run.path} does not contain")
    expected = receipt_statement(run, episode, probe if isinstance(probe, dict) else None)
    if receipt.key != run.provenance.key or canonical_json(expected) != canonical_json(
        receipt.statement
    ):
        stated, found = receipt.predicate.get("run"), run.manifest().get("run")
        reason = (
            "the run was sealed again later: write a new receipt"
            if stated == found
            else f"it is about run {stated}, and the folder contains run {found}: name the folder "
            f"of run {stated}"
        )
        raise InputError(f"the receipt is not about {run.path} as it is now: {reason}")


def _require_finished(run: RunReader) -> None:
    if run.provenance.problem:
        raise InputError(f"{run.path} is unverified, so it has no receipt")
    if not run.provenance.is_finished:
        raise InputError(f"{run.path} is unfinished; finish it with: fumehood resume {run.path}")


def _predicate(run: RunReader, leaves: list[bytes]) -> dict[str, Json]:
    manifest, rows = run.manifest(), run.rows()
    config = manifest.get("config")
    config = config if isinstance(config, dict) else {}
    models = config.get("models")
    attempts: Counter[str] = Counter()
    others = Counter(row.isolation for row in rows if row.isolation)
    for row in rows:
        attempts[row.name.agent] += row.infra_attempts
    return {
        "run": manifest.get("run"),
        **{name: manifest.get(name) for name in _COPIED},
        **({"isolation_of_episodes": dict(others)} if others else {}),
        **({SHARDS: manifest[SHARDS]} if SHARDS in manifest else {}),
        "runtime": config.get("runtime"),
        "limits": config.get("limits"),
        "wall_time_s": config.get("wall_time_s"),
        "data_mode": config.get("data_mode"),
        "monitors": manifest.get("monitors", []),
        "grants": models.get("grants", []) if isinstance(models, dict) else [],
        "agents": manifest.get("agents"),
        "episodes": len(rows),
        "infra": sum(row.is_infra for row in rows),
        "infra_attempts": dict(attempts),
        "rows": {"root": merkle_root(leaves).hex(), "number": len(leaves), "tree": TREE},
    }


def _open_envelope(content: bytes) -> tuple[str, bytes]:
    """Return the signer's key and the payload of an envelope whose signature is valid.

    Raises:
        ValueError: the signature is not valid, or the envelope has another encoding.
    """
    envelope: dict[str, Any] = json.loads(content)
    payload = base64.b64decode(envelope["payload"], validate=True)
    (signed,) = envelope["signatures"]
    key, signature = str(signed["keyid"]), base64.b64decode(signed["sig"], validate=True)
    if content != (canonical_json(envelope) + "\n").encode() or set(envelope) != {
        "payload",
        "payloadType",
        "signatures",
    }:
        raise ValueError("the envelope has another encoding")
    if envelope["payloadType"] != PAYLOAD_TYPE:
        raise ValueError("the payload has another type")
    if not is_signature(key, _pre_authentication(payload), signature):
        raise ValueError("the signature does not match")
    return key, payload


def _is_proven(predicate: dict[str, Any], digest: str) -> bool:
    """Return whether the subject of a receipt is the run, or a row that belongs to its root."""
    row, rows = predicate.get("row"), predicate["rows"]
    if row is None:
        return bool(digest == predicate["seal"])
    EpisodeRow.from_json(row["content"])
    if type(row["index"]) is not int or type(rows["number"]) is not int:
        raise TypeError("index and number must be integers")
    line = (canonical_json(row["content"]) + "\n").encode("ascii")
    proof = [bytes.fromhex(node) for node in row["proof"]]
    return digest == digest_bytes(line) and is_in_tree(
        bytes.fromhex(digest), row["index"], rows["number"], proof, bytes.fromhex(rows["root"])
    )


def _pre_authentication(payload: bytes) -> bytes:
    """Return the bytes that DSSE signs."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
