"""The keys whose signatures a user accepts: the user's key, and the keys that the user has listed.

The list is ``trusted_keys`` in the folder of the user's data, one line per key: 64 hex digits, a
blank, and a name.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fumehood.core.errors import InputError
from fumehood.records.files import write_whole
from fumehood.records.signing_key import data_folder, key_path, read_key

PUBLIC_KEY = re.compile(r"[0-9a-f]{64}")
"""A public key in hex."""
KEY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._@-]{0,63}")
SHOWN_DIGITS = 16
"""Digits of a key that are shown where only its owner matters."""
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class Trust:
    """The keys that a reader accepts."""

    own: str = ""
    """Public key of this user; empty if this user has none."""
    listed: Mapping[str, str] = field(default_factory=dict)
    """Public key → name of its owner."""

    @classmethod
    def of_user(cls) -> Trust:
        """Return the keys that this user accepts; creates no key.

        Raises:
            InputError: the list of keys is malformed, or other users can write it.
        """
        return cls(own_public_key(), read_trusted_keys())

    def signer(self, key: str) -> str | None:
        """Return whose key it is, in words; None if the key is not accepted."""
        if key and key == self.own:
            return "your key"
        name = self.listed.get(key)
        return None if name is None else f"the key of {name}"


def own_public_key() -> str:
    """Return the public key of this user; empty if this user has no usable key."""
    try:
        return read_key(key_path()).public
    except (InputError, OSError):
        return ""


def trusted_keys_path() -> Path:
    """Return the path of the list, which may not exist yet."""
    return data_folder() / "trusted_keys"


def read_trusted_keys() -> dict[str, str]:
    """Return the listed keys with the names of their owners.

    Raises:
        InputError: a line is malformed, the file cannot be read, or other users can write it.
    """
    path = trusted_keys_path()
    try:
        about = path.stat()
        lines = path.read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{path} cannot be read: list keys with `fumehood keys add`") from None
    if about.st_uid not in (0, os.geteuid()) or about.st_mode & _WRITABLE_BY_OTHERS:
        raise InputError(f"other users can write {path}: check its lines and run chmod 600 {path}")
    keys = {}
    for number, line in enumerate(lines, 1):
        key, _, name = line.partition(" ")
        if not (PUBLIC_KEY.fullmatch(key) and KEY_NAME.fullmatch(name)):
            raise InputError(f"{path}:{number} is not a key of 64 hex digits with a name")
        keys[key] = name
    return keys


def write_trusted_keys(keys: Mapping[str, str]) -> Path:
    """Replace the list and return its path.

    Raises:
        InputError: the list cannot be written.
    """
    path = trusted_keys_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, "".join(f"{key} {name}\n" for key, name in keys.items()))
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None
    return path
