"""``fumehood verify``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from fumehood.cli.output import PATH, print_json, say
from fumehood.cli.reading import folders_of
from fumehood.core.errors import InputError
from fumehood.core.json_values import Json, JsonObject
from fumehood.records.run_reader import PLAN_FILE, is_experiment, shard_of
from fumehood.records.seals import PLAN_FILES, SEAL
from fumehood.records.trust import PUBLIC_KEY, Trust
from fumehood.records.verify import NOT_RUN, Damage, Verification
from fumehood.records.verify import verify as verify_folder

DAMAGED = 1


@click.command()
@click.argument("run_dir", metavar="DIR", type=PATH)
@click.option("--key", default=None, help="Expected public key, 64 hex digits.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def verify(run_dir: Path, key: str | None, as_json: bool) -> int:
    """Verify the seals of a run or experiment and list all damage.

    The command verifies the plan and all runs of an experiment. Damage is anything that was
    removed, moved, edited or added. Exit status 1 if there is damage, if a run is not finished, or
    if a signer is unknown: not --key, not you, and not in `fumehood keys list`.

    \b
    Example:
      fumehood verify runs/20260101-120000
    """
    if key is not None and not PUBLIC_KEY.fullmatch(key):
        raise InputError(
            f"--key must be 64 hex digits, as `fumehood verify` prints them, not {key!r}"
        )
    trust = Trust.of_user()
    if is_experiment(run_dir):
        runs = [_checked_cell(path, run_dir, key, trust) for path in folders_of(run_dir)]
        return _report_experiment(run_dir, runs, trust, as_json=as_json)
    run = _checked(run_dir, verify_folder(run_dir, key), key, trust)
    if as_json:
        print_json(run.report())
    else:
        for line in run.lines():
            say(line)
    return 0 if run.is_sound else DAMAGED


@dataclass(frozen=True, slots=True)
class _Checked:
    """A verified run."""

    path: Path
    result: Verification
    signer: str | None
    """Whose key signed it, in words; None if the key is unknown."""

    @property
    def is_sound(self) -> bool:
        return not self.result.damage and self.signer is not None

    def lines(self) -> Iterator[str]:
        """Yield one line per difference, and one for all episodes that were not run yet; without
        damage, one that states the signer; and one if the run is a shard."""
        result = self.result
        yield from (str(damage) for damage in result.damage if damage.what != NOT_RUN)
        not_run = sum(damage.what == NOT_RUN for damage in result.damage)
        if not_run:
            yield (
                f"unfinished: {result.planned - not_run} of {result.planned} episodes; "
                f"continue with: fumehood resume {self.path}"
            )
        if not result.damage:
            remedy = f"if you know its owner, run: fumehood keys add {result.key} NAME"
            whose = self.signer or f"not one of your keys; {remedy}"
            sound = "sound" if self.signer else "unchanged, but the signer is unknown"
            yield f"{sound}: {result.episodes} episodes, signed with {result.key} ({whose})"
        if shard := shard_of(result.plan):
            yield f"only shard {shard} of a run: fumehood merge joins all shards"

    def report(self) -> JsonObject:
        """Return the fields for JSON output."""
        damage: list[Json] = [
            {"where": item.where, "what": item.what} for item in self.result.damage
        ]
        return {
            "run": str(self.path),
            "sound": not self.result.damage,
            "signing_key": self.result.key,
            "signer": self.signer,
            "planned": self.result.planned,
            "episodes": self.result.episodes,
            "damage": damage,
            **({"shard": shard} if (shard := shard_of(self.result.plan)) else {}),
        }


def _checked(path: Path, result: Verification, key: str | None, trust: Trust) -> _Checked:
    signer = "the expected key" if result.key == key else trust.signer(result.key)
    return _Checked(path, result, signer)


def _checked_cell(path: Path, experiment: Path, key: str | None, trust: Trust) -> _Checked:
    """Verify a run that the plan of an experiment names, and that may not have begun."""
    if any((path / name).exists() for name in (*PLAN_FILES, SEAL)):
        return _checked(path, verify_folder(path, key), key, trust)
    what = f"the run has not begun; continue with: fumehood resume {experiment}"
    return _Checked(path, Verification("", 0, (Damage(PLAN_FILES[0], what),)), None)


def _report_experiment(
    folder: Path, runs: Sequence[_Checked], trust: Trust, *, as_json: bool
) -> int:
    """Print the result of the verification of all runs and of the plan; return the exit status."""
    # The import takes long, and only experiments need it.
    from fumehood.orchestrator.experiment import is_plan_signed

    keys = {run.result.key for run in runs if run.result.key} or {trust.own}
    is_signed = any(is_plan_signed(folder, key) for key in keys)
    sound = sum(run.is_sound for run in runs)
    if as_json:
        reports: list[Json] = [run.report() for run in runs]
        is_sound = is_signed and not any(run.result.damage for run in runs)
        report: JsonObject = {"experiment": str(folder), "sound": is_sound}
        print_json({**report, "plan_signed": is_signed, "runs": reports})
    else:
        for run in runs:
            for line in run.lines():
                say(f"{run.path}: {line}")
        if not is_signed:
            say(f"{folder / PLAN_FILE}: edited, or not signed with the key of its runs")
        say(f"sound: {sound} of {len(runs)} runs")
    return 0 if is_signed and sound == len(runs) else DAMAGED
