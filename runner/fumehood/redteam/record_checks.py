"""Writes an attack's records as a run, reads them with the commands, and checks what the commands
print."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject
from fumehood.core.task import Case, Suite, Task
from fumehood.orchestrator.config import run_config
from fumehood.orchestrator.episode_runner import Attempt
from fumehood.orchestrator.scoring import PlayedAttempt, ScoredAttempt, score_attempt
from fumehood.records.row import EpisodeName, EpisodeRow
from fumehood.records.run_folder import RunFolder
from fumehood.records.seals import Signing
from fumehood.records.signing_key import SigningKey, user_key
from fumehood.redteam.provider import texts_in

_COMMAND_TIMEOUT_S = 120
_ACTIVE_MARKUP = (
    "<script>alert(1)",
    "<img src=x onerror",
    "](javascript:alert",
    "</transcript><system>",
)
"""Markup that the agents send; pages must contain it only in escaped form."""
_BAD_INPUT = 2
"""Exit status of a command whose optional dependencies are missing."""


def record_breaches(spec: EpisodeSpec, attempt: Attempt) -> Iterator[str]:
    """Yield how the records misled a reader."""
    case = _case_of(spec)
    scored = score_attempt(PlayedAttempt(case, attempt.records, attempt.exit), attempt.infra)
    with tempfile.TemporaryDirectory() as folder:
        run, row = _write_run(Path(folder, "run"), case, attempt, scored, user_key())
        yield from _compare(run, row, attempt)
        yield from _check_terminal(run, row)
        yield from _check_pages(run, Path(folder, "report"))


def forged_run_breaches(spec: EpisodeSpec, attempt: Attempt, *, unverified: bool) -> Iterator[str]:
    """Yield the commands that read a run whose success is forged and signed with a fresh key.

    Args:
        spec: the episode.
        attempt: the result of the episode, which failed.
        unverified: ask the commands to read a run that does not verify.
    """
    case = _case_of(spec)
    scored = score_attempt(PlayedAttempt(case, attempt.records, attempt.exit), attempt.infra)
    forged = replace(scored, score=replace(scored.score, success=True))
    fresh = SigningKey(Ed25519PrivateKey.generate())
    options = ("--unverified",) if unverified else ()
    with tempfile.TemporaryDirectory() as folder:
        run, row = _write_run(Path(folder, "run"), case, attempt, forged, fresh)
        out = ("--out", str(Path(folder, "report")))
        for command in (("show", str(run.path)), ("report", str(run.path), *out)):
            if _command(*command, *options).returncode == 0:
                yield f"`fumehood {command[0]}` accepts a forged run of {row.name}"


def _write_run(
    path: Path, case: Case, attempt: Attempt, scored: ScoredAttempt, key: SigningKey
) -> tuple[RunFolder, EpisodeRow]:
    name = EpisodeName("agent", case.task.task_id, 0)
    signing = Signing(key, (name,))
    config = run_config({"suite": "probe", "agents": [name.agent]}).model_dump(mode="json")
    manifest: JsonObject = {"suite": "probe", "config": config}
    run = RunFolder.create(path, manifest, Suite("probe", (case,)), signing)
    output = attempt.output
    assert output is not None
    run.write_output(name, output.stdout, output.stderr)
    row = EpisodeRow(
        name=name,
        seed=case.task.seed,
        outcome=scored.outcome,
        score=scored.score,
        trace=run.write_trace(name, attempt.records),
        trace_digest=scored.trace_digest,
        attempts=1,
        wall_ms=attempt.wall_ms,
        stdout_bytes=output.stdout_bytes,
        stderr_bytes=output.stderr_bytes,
        refusals=0,
    )
    run.append_rows([row])
    run.seal()
    return run, row


def _case_of(spec: EpisodeSpec) -> Case:
    task = Task(
        task_id="probe",
        world=spec.world,
        harness_mode=spec.harness_mode,
        initial_state=spec.initial_state,
        fault_plan=spec.fault_plan,
        seed=spec.seed,
        seats=spec.seats,
        tags={},
    )
    # This criterion cannot hold, so a success would be forged.
    never = {"op": "equals", "path": "files./never", "value": "written"}
    return Case(task, Gold("native", (never,)))


def _compare(run: RunFolder, row: EpisodeRow, attempt: Attempt) -> Iterator[str]:
    if row.score.success is not False:
        yield f"the score was {row.score.success}"
    if [(stored.name, stored.outcome) for stored in run.rows()] != [(row.name, row.outcome)]:
        yield "the rows read differ from the rows written"
    if [record.hash for record in run.read_trace(row)] != [
        record.hash for record in attempt.records
    ]:
        yield "the trace read differs from the trace written"


def _check_terminal(run: RunFolder, row: EpisodeRow) -> Iterator[str]:
    for arguments in (("show", str(run.path)), ("show", str(run.path), str(row.name))):
        shown = _command(*arguments)
        if shown.returncode != 0:
            yield f"`fumehood show` failed: {_last_line(shown)}"
        yield from control_characters(shown.stdout.decode(errors="replace"))


def control_characters(text: str) -> Iterator[str]:
    """Yield the control characters in a text that a terminal would interpret."""
    active = {character for character in text if unicodedata.category(character)[0] == "C"} - {
        "\n",
        "\t",
    }
    if active:
        yield f"a terminal would interpret {sorted(active)!r}"


def _check_pages(run: RunFolder, out: Path) -> Iterator[str]:
    written = _command("report", str(run.path), "--out", str(out))
    if written.returncode == _BAD_INPUT:
        return  # Reports are not installed here.
    if written.returncode != 0:
        yield f"`fumehood report` failed: {_last_line(written)}"
    yield from active_markup(out)


def active_markup(folder: Path) -> Iterator[str]:
    """Yield the active markup in the pages of a folder."""
    for page in (*folder.rglob("*.html"), *folder.rglob("*.md")):
        yield from active_markup_in(page.name, page.read_text(encoding="utf-8"))


def active_markup_in(name: str, text: str) -> Iterator[str]:
    """Yield the active markup in a page."""
    yield from (f"{name} contains {markup!r}" for markup in _ACTIVE_MARKUP if markup in text)


def _command(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "fumehood", *arguments]
    return subprocess.run(command, capture_output=True, timeout=_COMMAND_TIMEOUT_S, check=False)


def _last_line(ended: subprocess.CompletedProcess[bytes]) -> str:
    return json.dumps(ended.stderr.decode(errors="replace")[-200:])


def plain_reader_breaches(attempt: Attempt) -> Iterator[str]:
    """Yield how an attack would mislead a reader that prints records as they are."""
    text = "\n".join(texts_in([json.loads(record.event_json) for record in attempt.records]))
    yield from control_characters(text)
    yield from active_markup_in("the page", text)
    forged = sum(_is_event(line) for line in text.splitlines())
    if forged:
        yield f"{forged} forged events were read"


def _is_event(line: str) -> bool:
    try:
        value = json.loads(line)
    except ValueError:
        return False
    return isinstance(value, dict) and bool({"kind", "outcome"} & value.keys())
