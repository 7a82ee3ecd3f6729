"""``fumehood verify``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click

from fumehood.core.errors import InputError
from fumehood.records.signing_key import key_path, read_key
from fumehood.records.verify import Verification
from fumehood.records.verify import verify as verify_folder
from fumehood.report.safe_text import safe

DAMAGED = 1
_HEX_KEY = re.compile(r"[0-9a-f]{64}")


@click.command()
@click.argument("run_dir", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--key", default=None, help="The key that must have signed it, 64 hex digits.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
def verify(run_dir: Path, key: str | None, as_json: bool) -> int:
    """Compare the run in DIR with its seals and name everything that was cut, moved, edited or added.

    Without --key, whoever wrote the folder anew may have signed it anew; with it, only who holds that key.
    Exit status 1 where something is not as it was sealed, also where the run is not over.
    """
    if key is not None and not _HEX_KEY.fullmatch(key):
        raise InputError(
            f"--key is 64 hex digits, as `fumehood verify` prints them, and not {key!r}"
        )
    found = verify_folder(run_dir, key)
    if as_json:
        click.echo(json.dumps(_report(run_dir, found), indent=2))
    else:
        for damage in found.damage:
            click.echo(safe(str(damage)))
        if not found.damage:
            click.echo(
                f"sound: {found.episodes} episodes, signed with {found.key} ({_whose(found.key)})"
            )
    return DAMAGED if found.damage else 0


def _report(run_dir: Path, found: Verification) -> dict[str, object]:
    return {
        "run": str(run_dir),
        "sound": not found.damage,
        "signing_key": found.key,
        "planned": found.planned,
        "episodes": found.episodes,
        "damage": [{"where": one.where, "what": one.what} for one in found.damage],
    }


def _whose(key: str) -> str:
    try:
        return "your key" if read_key(key_path()).public == key else "not your key"
    except (InputError, OSError):
        return "not your key"
