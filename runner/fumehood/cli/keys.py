"""``fumehood keys``: the public keys whose runs this user accepts."""

from __future__ import annotations

import json

import click

from fumehood.cli.output import print_json, say
from fumehood.core.errors import InputError
from fumehood.records.signing_key import user_key
from fumehood.records.trust import (
    KEY_NAME,
    PUBLIC_KEY,
    own_public_key,
    read_trusted_keys,
    write_trusted_keys,
)


@click.group()
def keys() -> None:
    """List, add and remove the keys whose runs you accept.

    Commands that read runs accept your key and the keys in this list.
    """


@keys.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_keys(as_json: bool) -> None:
    """Print your public key and the listed keys.

    \b
    Example:
      fumehood keys list
    """
    own, listed = own_public_key(), read_trusted_keys()
    if as_json:
        named = [{"key": key, "name": name} for key, name in listed.items()]
        print_json({"own": own or None, "listed": named})
        return
    say(f"{own or 'no key yet; the first run creates it'}  you")
    for key, name in listed.items():
        say(f"{key}  {name}")


@keys.command()
@click.argument("key")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def add(key: str, name: str, as_json: bool) -> None:
    """Accept runs that KEY signed, and call its owner NAME.

    Ask the owner for the key over a channel that you trust: `fumehood keys list` prints it.

    \b
    Example:
      fumehood keys add 4f0c…64 hex digits… alice
    """
    if not PUBLIC_KEY.fullmatch(key):
        raise InputError(f"a key has 64 hex digits in lower case, not {key!r}")
    if not KEY_NAME.fullmatch(name):
        raise InputError(f"a name has 1 to 64 letters, digits, blanks and . _ @ -, not {name!r}")
    if key == user_key().public:
        raise InputError("this is your key, which is always accepted")
    path = write_trusted_keys({**read_trusted_keys(), key: name})
    if as_json:
        click.echo(json.dumps({"file": str(path), "key": key, "name": name}))
    else:
        say(f"{path}: runs that {name} signs are accepted")


@keys.command()
@click.argument("key")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def remove(key: str, as_json: bool) -> None:
    """Stop accepting runs that KEY signed.

    KEY is a key or the name of its owner.

    \b
    Example:
      fumehood keys remove alice
    """
    listed = read_trusted_keys()
    kept = {
        listed_key: owner for listed_key, owner in listed.items() if key not in (listed_key, owner)
    }
    if len(kept) == len(listed):
        raise InputError(f"no listed key is {key!r}; see: fumehood keys list")
    path = write_trusted_keys(kept)
    if as_json:
        removed = sorted(listed.keys() - kept.keys())
        click.echo(json.dumps({"file": str(path), "removed": removed}))
    else:
        say(f"{path}: {len(listed) - len(kept)} removed")
