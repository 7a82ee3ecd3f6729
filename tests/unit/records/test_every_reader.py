"""Every command that reads a run verifies it first: forged and damaged runs are refused."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fumehood.cli.main import COMMANDS, fumehood
from fumehood.core.errors import InputError
from fumehood.core.trace import Chain
from fumehood.records.seals import FIRST, SealedFile, digest_bytes, sealed_line
from fumehood.records.signing_key import SigningKey
from fumehood.records.trust import Trust, read_trusted_keys, write_trusted_keys
from tests.parts.cut_short import cut_short
from tests.parts.reading import sign_again
from tests.unit.report.runs import played

AGENTS = ("schema_repair", "instruction_parser")
STRANGER = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(31) + b"\7"))


def _policy(folder: Path) -> Path:
    file = folder / "policy.yaml"
    file.write_text("format: fumehood.policy/1\nlimits: [{of: failure, max_rate: 0.5}]\n")
    return file


def _rules(folder: Path) -> Path:
    file = folder / "rules.yaml"
    file.write_text("rules: [{name: writes, tool: 'create_*', suspicion: 0.5}]\n")
    return file


READERS: dict[str, Callable[[Path, Path], list[object]]] = {
    "attribute": lambda run, out: [run],
    "compare": lambda run, out: [f"{run}:{AGENTS[0]}", f"{run}:{AGENTS[1]}", "--report", out],
    "export": lambda run, out: [run, "--to", "junit", "--out", out],
    "leaderboard": lambda run, out: [run],
    "monitor": lambda run, out: [run, "--monitor", _rules(run.parent)],
    "reliability": lambda run, out: [run],
    "replay": lambda run, out: [run, "--episode", "crud_gold"],
    "report": lambda run, out: [run, "--out", out],
    "score": lambda run, out: [run],
    "show": lambda run, out: [run],
    "verdict": lambda run, out: [run, "--policy", _policy(run.parent)],
}
"""Command → its arguments, for a run and a folder for its output."""

each_reader = pytest.mark.parametrize("command", list(READERS))


@pytest.fixture(scope="module")
def sound_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(tmp_path_factory.mktemp("runs") / "run", *AGENTS, tasks=4).path


@pytest.fixture
def run(sound_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound_run, tmp_path / "run"))


@pytest.fixture(autouse=True)
def own_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def read(command: str, run: Path, *words: object) -> Result:
    arguments = [command, *READERS[command](run, run.parent / "out"), *words]
    result = CliRunner().invoke(fumehood, [str(one) for one in arguments], standalone_mode=False)
    if command == "verdict" and isinstance(result.exception, SystemExit):
        # Status 1 only says that an agent did not pass.
        result.exception = None
    return result


def forge(run: Path) -> None:
    """Turn every failure into a success, and compute all hashes and digests again."""
    rows = run / "episodes.jsonl"
    forged = []
    for line in rows.read_text().splitlines():
        row = json.loads(line)
        trace = run / row["trace"]
        chain, records = Chain(), []
        for text in trace.read_text().splitlines():
            record = json.loads(text.replace('"status":"', '"status":"forged '))
            event = json.dumps(record["event"], separators=(",", ":"), sort_keys=True)
            records.append({**record, "hash": chain.link(event)})
        trace.write_text("".join(json.dumps(one, separators=(",", ":")) + "\n" for one in records))
        row |= {"success": True, "trace_digest": records[-1]["hash"]}
        row["checks"] = dict.fromkeys(row["checks"], True)
        forged.append(json.dumps(row, separators=(",", ":"), sort_keys=True) + "\n")
    rows.write_text("".join(forged))


def forge_and_sign_again(run: Path) -> None:
    forge(run)
    sign_again(run, STRANGER)


def sign_rows_again(run: Path) -> None:
    """Keep the seal of the run, and sign the rows with a fresh key."""
    before, lines = FIRST, []
    for line in (run / "episodes.jsonl").read_text().splitlines():
        row = json.loads(line)
        seal = row.pop("seal")
        files = [SealedFile(**file) for file in seal["files"]]
        lines.append(
            sealed_line(row, STRANGER, run="r", after=before, records=seal["records"], files=files)
        )
        before = digest_bytes(lines[-1])
    (run / "episodes.jsonl").write_bytes(b"".join(lines))


def tear_the_last_row(run: Path) -> None:
    rows = run / "episodes.jsonl"
    rows.write_bytes(rows.read_bytes()[:-20])


def repeat_a_row(run: Path) -> None:
    rows = run / "episodes.jsonl"
    lines = rows.read_text().splitlines(keepends=True)
    rows.write_text("".join([*lines, lines[-1]]))


def empty_the_rows(run: Path) -> None:
    (run / "episodes.jsonl").write_text("")


def remove_the_rows(run: Path) -> None:
    (run / "episodes.jsonl").unlink()


def remove_the_seal(run: Path) -> None:
    (run / "seal.json").unlink()


def remove_every_signature(run: Path) -> None:
    remove_the_seal(run)
    manifest = json.loads((run / "run.json").read_text())
    del manifest["signing_key"]
    (run / "run.json").write_text(json.dumps(manifest))


def remove_a_trace(run: Path) -> None:
    next(iter(sorted((run / "traces").rglob("*.jsonl")))).unlink()


ATTACKS = [
    forge,
    forge_and_sign_again,
    sign_rows_again,
    tear_the_last_row,
    repeat_a_row,
    empty_the_rows,
    remove_the_rows,
    remove_the_seal,
    remove_every_signature,
    remove_a_trace,
]


def test_every_command_that_reads_runs_is_tested_here() -> None:
    source = Path(__file__).parents[3] / "runner/fumehood/cli"
    opening = {
        path.stem
        for path in source.glob("*.py")
        if re.search(r"read_runs?\(", path.read_text(encoding="utf-8"))
    }
    # The latencies of a suite can come from a run, and merge reads the run that it has signed.
    assert opening - {"reading"} <= {*READERS, "merge", "receipt", "suite"}
    assert set(READERS) <= set(COMMANDS)


@pytest.mark.slow
@each_reader
def test_a_sound_run_is_read_and_its_signer_is_named(command: str, run: Path) -> None:
    result = read(command, run)
    assert result.exception is None, result.exception
    assert f"{run} is verified: signed with your key" in result.stderr
    assert "UNVERIFIED" not in result.output


def test_the_signer_of_several_runs_is_named_once(run: Path) -> None:
    other = shutil.copytree(run, run.with_name("other"))
    result = read("leaderboard", run, other)
    assert result.exception is None, result.exception
    assert "fumehood: 2 runs are verified: signed with your key, " in result.stderr
    assert result.stderr.count("signed with") == 1


@each_reader
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_forged_or_damaged_run_is_refused(
    attack: Callable[[Path], None], command: str, run: Path
) -> None:
    attack(run)
    result = read(command, run)
    assert isinstance(result.exception, InputError), result.output
    message = str(result.exception)
    assert "does not verify" in message
    assert "\n" not in message
    assert result.stdout == ""
    assert not (run.parent / "out").exists()


@pytest.mark.slow
@each_reader
def test_without_verification_a_forged_run_would_be_read(command: str, run: Path) -> None:
    """The control: the attack works where the protection is removed, and is marked."""
    forge_and_sign_again(run)
    result = read(command, run, "--unverified")
    assert result.exception is None, result.exception
    assert "UNVERIFIED" in result.stderr
    if command not in ("report",):
        assert "UNVERIFIED" in result.stdout


@pytest.mark.slow
@each_reader
def test_json_of_an_unverified_run_is_marked(command: str, run: Path) -> None:
    forge_and_sign_again(run)
    result = read(command, run, "--unverified", "--json")
    assert result.exception is None, result.exception
    shown = result.stdout
    assert '"verified": false' in shown or '"unverified": "UNVERIFIED' in shown


@pytest.mark.slow
def test_pages_and_tables_of_an_unverified_run_are_marked(run: Path) -> None:
    forge_and_sign_again(run)
    read("report", run, "--unverified")
    out = run.parent / "out"
    page = (out / "report.html").read_text(encoding="utf-8")
    assert '<p class="unverified" role="alert">UNVERIFIED' in page
    markdown = (out / "report.md").read_text(encoding="utf-8")
    assert markdown.count("UNVERIFIED") > markdown.count("\n| ---")
    figures = list((out / "figures").glob("*.svg"))
    assert figures
    assert all("UNVERIFIED" in figure.read_text(encoding="utf-8") for figure in figures)
    for table in (out / "tables").glob("*.csv"):
        header, *rows = table.read_text(encoding="utf-8").splitlines()
        assert header.endswith(",unverified")
        assert all("UNVERIFIED" in row for row in rows)


@pytest.mark.slow
@each_reader
def test_a_listed_key_is_accepted_and_its_owner_is_named(command: str, run: Path) -> None:
    sign_again(run, STRANGER)
    write_trusted_keys({STRANGER.public: "alice"})
    result = read(command, run)
    assert result.exception is None, result.exception
    assert "signed with the key of alice" in result.stderr


@pytest.mark.slow
@each_reader
def test_an_interrupted_run_is_read_as_unfinished(command: str, run: Path) -> None:
    cut_short(run, 5)
    result = read(command, run)
    assert result.exception is None, result.exception
    assert "is unfinished: 5 of 8 episodes, signed with your key" in result.stderr
    assert f"fumehood resume {run}" in result.stderr


@each_reader
def test_an_interrupted_run_with_a_torn_trace_is_refused_with_the_remedy(
    command: str, run: Path
) -> None:
    cut_short(run, 5)
    row = json.loads((run / "episodes.jsonl").read_text().splitlines()[0])
    (run / row["trace"]).write_text("")
    result = read(command, run)
    assert isinstance(result.exception, InputError)
    assert "fumehood resume repeats torn episodes" in str(result.exception)


def test_the_list_of_keys_is_edited_by_commands(tmp_path: Path) -> None:
    def keys(*words: str) -> Result:
        return CliRunner().invoke(fumehood, ["keys", *words], standalone_mode=False)

    assert keys("add", STRANGER.public, "alice").exception is None
    assert read_trusted_keys() == {STRANGER.public: "alice"}
    assert f"{STRANGER.public}  alice" in keys("list").stdout
    listed = json.loads(keys("list", "--json").stdout)["listed"]
    assert listed == [{"key": STRANGER.public, "name": "alice"}]
    for words in (("add", "X" * 64, "bob"), ("add", STRANGER.public, "a\nb"), ("remove", "bob")):
        assert isinstance(keys(*words).exception, InputError)
    assert keys("remove", "alice").exception is None
    assert read_trusted_keys() == {}


def test_a_list_that_others_can_write_is_refused(tmp_path: Path) -> None:
    path = write_trusted_keys({STRANGER.public: "alice"})
    path.chmod(0o666)
    with pytest.raises(InputError, match="other users can write"):
        Trust.of_user()


def test_a_malformed_line_of_the_list_is_named_with_its_number() -> None:
    path = write_trusted_keys({STRANGER.public: "alice"})
    path.write_text(f"{path.read_text()}{STRANGER.public}\n")
    with pytest.raises(InputError, match=rf"^{path}:2 is not a key of 64 hex digits with a name"):
        Trust.of_user()
