"""The signing key of a user is created once and is private."""

from __future__ import annotations

from pathlib import Path

import pytest

from fumehood.core.errors import InputError
from fumehood.records.signing_key import KEY_VARIABLE, key_path, user_key


def test_the_key_is_created_once_and_is_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "deep" / "key.pem"))
    first = user_key()
    assert user_key().public == first.public
    assert key_path().stat().st_mode & 0o777 == 0o600
    assert list(key_path().parent.iterdir()) == [key_path()]
    key_path().chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        user_key()


def test_a_file_without_a_key_is_an_input_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "key.pem"))
    (tmp_path / "key.pem").touch(mode=0o600)
    with pytest.raises(InputError, match="does not hold an Ed25519 key"):
        user_key()
