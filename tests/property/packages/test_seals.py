"""No byte of a sealed run folder can be changed unseen."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.records.run_folder import RunFolder
from fumehood.records.verify import verify
from tests.parts.sealed_runs import finished_run
from tests.property.packages.values import bounded
from tests.unit.records.test_packed_traces import packed_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=[finished_run, packed_run])
def sound_run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    make: Callable[[Path], RunFolder] = request.param
    return make(tmp_path_factory.mktemp("sealed") / "run").path


def _files(run: Path) -> list[Path]:
    return sorted(path for path in run.rglob("*") if path.is_file())


@bounded
@given(data=st.data())
def test_a_changed_byte_of_any_file_is_found(sound_run: Path, data: st.DataObject) -> None:
    assert verify(sound_run).damage == ()
    path = data.draw(st.sampled_from(_files(sound_run)))
    sound = path.read_bytes()
    at = data.draw(st.integers(0, len(sound) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != sound[at]))
    try:
        path.write_bytes(sound[:at] + bytes([other]) + sound[at + 1 :])
        assert verify(sound_run).damage != ()
    finally:
        path.write_bytes(sound)


@bounded
@given(data=st.data())
def test_a_truncated_file_is_found(sound_run: Path, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(_files(sound_run)))
    sound = path.read_bytes()
    length = data.draw(st.integers(0, len(sound) - 1))
    try:
        path.write_bytes(sound[:length])
        assert verify(sound_run).damage != ()
    finally:
        path.write_bytes(sound)


@pytest.mark.slow
def test_a_changed_bit_of_the_seal_is_found(sound_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(sound_run, run)
    sound = (run / "seal.json").read_bytes()
    for at in range(0, len(sound), 3):
        (run / "seal.json").write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
        assert verify(run).damage != ()
