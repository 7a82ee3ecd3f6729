"""``fumehood verify``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from fumehood.cli.output import PATH, print_json, say
from fumehood.core.errors import InputError
from fumehood.records.trust import PUBLIC_KEY, Trust
from fumehood.records.verify import NOT_RUN, Verification
from fumehood.records.verify import verify as verify_folder

DAMAGED = 1


@click.command()
@click.argument("run_dir", metavar="DIR", type=PATH)
@click.option("--key", default=None, help="Expected public key, 64 hex digits.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def verify(run_dir: Path, key: str | None, as_json: bool) -> int:
    """Verify the seals of a run and list all damage.

    Damage is anything that was removed, moved, edited or added. Exit status 1 if there is damage,
    if the run is not finished, or if the signer is unknown: not --key, not you, and not in
    `fumehood keys list`.

    \b
    Example:
      fumehood verify runs/20260101-120000
    """
    if key is not None and not PUBLIC_KEY.fullmatch(key):
        raise InputError(
            f"--key must be 64 hex digits, as `fumehood verify` prints them, not {key!r}"
        )
    result = verify_folder(run_dir, key)
    signer = "the expected key" if result.key == key else Trust.of_user().signer(result.key)
    if as_json:
        print_json(_report(run_dir, result, signer))
    else:
        for line in _lines(run_dir, result):
            say(line)
        if not result.damage:
            remedy = f"if you know its owner, run: fumehood keys add {result.key} NAME"
            whose = signer or f"not one of your keys; {remedy}"
            sound = "sound" if signer else "unchanged, but the signer is unknown"
            say(f"{sound}: {result.episodes} episodes, signed with {result.key} ({whose})")
    return DAMAGED if result.damage or signer is None else 0


def _lines(run_dir: Path, result: Verification) -> Iterator[str]:
    """Yield one line per difference, and one for all episodes that were not run yet."""
    yield from (str(damage) for damage in result.damage if damage.what != NOT_RUN)
    not_run = sum(damage.what == NOT_RUN for damage in result.damage)
    if not_run:
        yield (
            f"unfinished: {result.planned - not_run} of {result.planned} episodes; "
            f"continue with: fumehood resume {run_dir}"
        )


def _report(run_dir: Path, result: Verification, signer: str | None) -> dict[str, object]:
    return {
        "run": str(run_dir),
        "sound": not result.damage,
        "signing_key": result.key,
        "signer": signer,
        "planned": result.planned,
        "episodes": result.episodes,
        "damage": [{"where": item.where, "what": item.what} for item in result.damage],
    }
