"""Opens runs for tests, and signs edited runs again as their forger would."""

from __future__ import annotations

import json
from pathlib import Path

from fumehood.records.row import EpisodeRow
from fumehood.records.run_folder import RunFolder
from fumehood.records.run_reader import Accept, RunReader, open_run
from fumehood.records.seals import PLAN_FILES, Sealing, Signing, digest_bytes, read_seal
from fumehood.records.signing_key import SigningKey, user_key
from fumehood.records.trust import Trust


def verified(path: Path) -> RunReader:
    """Open a run that this user signed."""
    return open_run(path, Trust.of_user())


def unverified(path: Path) -> RunReader:
    """Open a run that may have been edited."""
    return open_run(path, Trust.of_user(), Accept.UNVERIFIED)


def sign_again(path: Path, key: SigningKey | None = None) -> Path:
    """Seal an edited finished run as it is now, with this user's key or with another one."""
    key = key or user_key()
    names = tuple(episode.name for episode in read_seal(path).episodes)
    manifest = json.loads((path / "run.json").read_text()) | {"signing_key": key.public}
    (path / "run.json").write_text(json.dumps(manifest, indent=2) + "\n")
    rows = [json.loads(line) for line in (path / "episodes.jsonl").read_text().splitlines()]
    (path / "episodes.jsonl").unlink()
    sealing = Sealing(path, Signing(key, names), str(manifest.get("run", "")))
    sealing.seal_plan([digest_bytes((path / name).read_bytes()) for name in PLAN_FILES])
    folder = RunFolder.open(path)
    folder.sign_with(Signing(key, names))
    traces = {trace: trace.read_bytes() for trace in (path / "traces").rglob("*.jsonl")}
    for row in rows:
        # A row without a trace removes that of an earlier attempt.
        for trace, content in traces.items():
            trace.write_bytes(content)
        folder.append_rows([EpisodeRow.from_json(row)])
    folder.seal()
    return path
