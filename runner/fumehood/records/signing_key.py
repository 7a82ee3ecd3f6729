"""The Ed25519 key that signs runs: one per user, outside every box and every run folder."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject, canonical_json

KEY_VARIABLE = "FUMEHOOD_SIGNING_KEY"
"""Environment variable with the path of the key file."""
_OTHERS = 0o077
_CANONICAL_HEX = re.compile("[0-9a-f]{192}")
"""A public key of 32 bytes and a signature of 64 bytes, both in lower case."""


class SigningKey:
    """An Ed25519 key pair."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
        """Public key, 64 hex digits."""

    def sign(self, statement: JsonObject) -> str:
        """Return the signature of a statement's canonical JSON in hex."""
        return self.sign_bytes(canonical_json(statement).encode("ascii")).hex()

    def sign_bytes(self, content: bytes) -> bytes:
        """Return the signature of some bytes, which must not be canonical JSON of another use."""
        return self._private.sign(content)


def is_signed_by(public: str, statement: JsonObject, signature: object) -> bool:
    """Return whether a signature is valid.

    Args:
        public: public key, 64 hex digits.
        statement: signed content.
        signature: in hex; may be any value of an untrusted file.
    """
    # bytes.fromhex also takes capitals and blanks: the same signature would have many texts.
    if not _CANONICAL_HEX.fullmatch(f"{public}{signature}"):
        return False
    content = canonical_json(statement).encode("ascii")
    return is_signature(public, content, bytes.fromhex(str(signature)))


def is_signature(public: str, content: bytes, signature: bytes) -> bool:
    """Return whether a signature of some bytes is valid.

    Args:
        public: public key, 64 hex digits.
        content: signed bytes.
        signature: 64 bytes.
    """
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(signature, content)
    except (InvalidSignature, ValueError):
        return False
    return True


def key_path() -> Path:
    """Return the path of this user's key, which may not exist yet."""
    named = os.environ.get(KEY_VARIABLE)
    if named:
        return Path(named)
    return data_folder() / "signing_key.pem"


def data_folder() -> Path:
    """Return the folder of this user's data, which may not exist yet."""
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data, "fumehood")


def user_key() -> SigningKey:
    """Return this user's key; the first call creates it.

    Raises:
        InputError: the key cannot be created or read, or other users can read it.
    """
    path = key_path()
    try:
        if not path.exists():
            _create(path)
        if path.stat().st_mode & _OTHERS:
            raise InputError(f"other users can read the signing key: run chmod 600 {path}")
        return read_key(path)
    except OSError as error:
        raise InputError(
            f"the signing key {path} cannot be used: {error.strerror}; "
            f"set {KEY_VARIABLE} to another path"
        ) from None


def read_key(path: Path) -> SigningKey:
    """Return the key in a file.

    Raises:
        InputError: the file holds no Ed25519 key.
        OSError: the file cannot be read.
    """
    try:
        private = load_pem_private_key(path.read_bytes(), password=None)
    except (TypeError, ValueError):
        private = None
    if not isinstance(private, Ed25519PrivateKey):
        raise InputError(
            f"{path} does not hold an Ed25519 key: remove it, and the next run creates one"
        )
    return SigningKey(private)


def _create(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    private = Ed25519PrivateKey.generate()
    text = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    descriptor, unfinished = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # A link fails if the file exists: of two runs that start at once, both use the first key.
        os.link(unfinished, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(unfinished)
