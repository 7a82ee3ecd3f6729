"""Image archives are unpacked completely, and never outside their folder."""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest

from fumehood.core.errors import InputError
from fumehood.engines.oci.archive import ImageArchive
from fumehood.engines.oci.roots import Root
from tests.parts.image_archives import (
    Entry,
    config_of,
    file,
    folder,
    layer,
    link,
    write_archive,
    write_layout,
    write_saved,
)

BASE = layer(
    folder("etc"),
    file("etc/passwd", b"root:x:0:0\n"),
    file("etc/old", b"old"),
    folder("opt"),
    file("opt/a", b"a"),
    file("bin/tool", b"#!tool", mode=0o4755),
    link("bin/again", "bin/tool", hard=True),
    link("sbin", "bin"),
)
NEXT = layer(
    file("etc/.wh.old"),
    file("opt/.wh..wh..opq"),
    file("opt/b", b"b"),
    file("etc/passwd", b"box:x:1:1\n"),
)


def unpacked(archive: Path, place: Path) -> Path:
    place.mkdir()
    with ImageArchive(archive) as image:
        image.unpack(place)
    return place


def content_of(place: Path) -> dict[str, str]:
    return {
        str(path.relative_to(place)): (
            f"-> {path.readlink()}" if path.is_symlink() else path.read_text()
        )
        for path in place.rglob("*")
        if path.is_symlink() or path.is_file()
    }


@pytest.mark.parametrize("form", ["layout", "archive", "saved"])
def test_later_layers_replace_and_remove_files(form: str, tmp_path: Path) -> None:
    layers = [BASE, NEXT]
    source = write_layout(tmp_path / "layout", layers, config_of(layers))
    if form == "archive":
        source = write_archive(tmp_path / "image.tar", source)
    elif form == "saved":
        source = write_saved(tmp_path / "saved.tar", layers, config_of(layers))
    root = unpacked(source, tmp_path / "root")
    assert content_of(root) == {
        "etc/passwd": "box:x:1:1\n",
        "opt/b": "b",
        "bin/tool": "#!tool",
        "bin/again": "#!tool",
        "sbin": "-> bin",
    }
    assert (root / "bin/tool").stat().st_ino == (root / "bin/again").stat().st_ino
    assert (root / "bin/tool").stat().st_mode & 0o7777 == 0o755, "set-user-ID is left out"
    assert (root / "bin/tool").stat().st_mtime == 1_000_000


def test_all_forms_of_an_image_have_one_digest(tmp_path: Path) -> None:
    config = config_of([BASE])
    layout = write_layout(tmp_path / "layout", [BASE], config)
    forms = (
        layout,
        write_archive(tmp_path / "image.tar", layout),
        write_saved(tmp_path / "saved.tar", [BASE], config),
    )
    digests = set()
    for form in forms:
        with ImageArchive(form) as archive:
            digests.add(archive.digest)
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([file("../out", b"x")], "leaves the image"),
        ([file("a/../../out", b"x")], "leaves the image"),
        ([link("way", "/"), file("way/out", b"x")], "below a path that is no folder"),
        ([link("copy", "../../etc/passwd", hard=True)], "leaves the image"),
        ([link("copy", "nowhere", hard=True)], "cannot unpack"),
    ],
)
def test_a_path_that_leaves_the_root_is_rejected(
    entries: list[Entry], message: str, tmp_path: Path
) -> None:
    bad = layer(*entries)
    source = write_layout(tmp_path / "layout", [bad], config_of([bad]))
    with pytest.raises(InputError, match=message):
        unpacked(source, tmp_path / "root")
    assert not (tmp_path / "out").exists()


def test_a_link_of_an_earlier_layer_cannot_redirect_a_later_one(tmp_path: Path) -> None:
    layers = [layer(link("way", str(tmp_path))), layer(folder("way"), file("way/out", b"x"))]
    source = write_layout(tmp_path / "layout", layers, config_of(layers))
    root = unpacked(source, tmp_path / "root")
    assert content_of(root) == {"way/out": "x"}
    assert not (tmp_path / "out").exists()


def test_devices_and_pipes_are_left_out(tmp_path: Path) -> None:
    content = layer(file("disk", type=b"4", devmajor=8), file("pipe", type=b"6"), file("kept"))
    source = write_layout(tmp_path / "layout", [content], config_of([content]))
    assert os.listdir(unpacked(source, tmp_path / "root")) == ["kept"]


def test_copies_of_a_removed_file_count_as_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fumehood.engines.oci.archive.ROOT_BYTES_MAX", 10_000)
    names = [f"copy{number}" for number in range(20)]
    first = layer(file("large", bytes(1000)), *(link(name, "large", hard=True) for name in names))
    layers = [first, layer(file(".wh.large"))]
    source = write_layout(tmp_path / "layout", layers, config_of(layers))
    with pytest.raises(InputError, match="the copies of its hard links have more than"):
        unpacked(source, tmp_path / "root")


@pytest.mark.parametrize(
    "index", ["[" * 100_000, '{"manifests": []}', '{"manifests": ["x"]}', '{"manifests": 1}']
)
def test_a_malformed_index_is_rejected(index: str, tmp_path: Path) -> None:
    layout = write_layout(tmp_path / "layout", [BASE], config_of([BASE]))
    (layout / "index.json").write_text(index)
    with pytest.raises(InputError, match="neither an OCI archive nor a file of `docker save`"):
        ImageArchive(layout)


def test_changed_content_is_rejected(tmp_path: Path) -> None:
    layout = write_layout(tmp_path / "layout", [BASE], config_of([BASE]))
    largest = max((layout / "blobs/sha256").iterdir(), key=lambda blob: blob.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-1] + b"x")
    with pytest.raises(InputError, match="does not match its digest"):
        unpacked(layout, tmp_path / "root")


@pytest.mark.parametrize("form", ["layout", "archive", "saved"])
def test_layers_of_another_image_do_not_take_its_digest(form: str, tmp_path: Path) -> None:
    config, forged = config_of([BASE]), [layer(file("bin/tool", b"#!forged"))]
    source = write_layout(tmp_path / "layout", forged, config)
    if form == "archive":
        source = write_archive(tmp_path / "image.tar", source)
    elif form == "saved":
        source = write_saved(tmp_path / "saved.tar", forged, config)
    with pytest.raises(InputError, match="is not that of the image's configuration"):
        unpacked(source, tmp_path / "root")
    assert list((tmp_path / "root").iterdir()) == []


def test_an_image_has_the_layers_that_its_configuration_states(tmp_path: Path) -> None:
    source = write_layout(tmp_path / "layout", [BASE, NEXT], config_of([BASE]))
    with pytest.raises(InputError, match="it has 2 layers, but its configuration states 1"):
        ImageArchive(source)


def test_a_layer_that_continues_after_its_last_file_is_rejected(tmp_path: Path) -> None:
    content = BASE + bytes(2 << 20)
    source = write_layout(tmp_path / "layout", [content], config_of([content]))
    with pytest.raises(InputError, match="continues after its last file"):
        unpacked(source, tmp_path / "root")


@pytest.mark.parametrize("name", ["index.json", "a blob"])
def test_a_pipe_in_a_layout_is_rejected_and_not_waited_for(name: str, tmp_path: Path) -> None:
    layout = write_layout(tmp_path / "layout", [BASE], config_of([BASE]))
    replaced = layout / name if name == "index.json" else next((layout / "blobs/sha256").iterdir())
    replaced.unlink()
    os.mkfifo(replaced)
    with pytest.raises(InputError, match="is not a regular file"):
        unpacked(layout, tmp_path / "root")


def test_an_image_of_another_processor_is_rejected(tmp_path: Path) -> None:
    source = write_layout(tmp_path / "layout", [BASE], config_of([BASE], "s390x"))
    with pytest.raises(InputError, match="is an image for s390x, but this machine is"):
        ImageArchive(source)


@pytest.mark.parametrize("content", [b"", b"no archive", layer(file("a"))])
def test_another_file_is_rejected(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file.tar").write_bytes(content)
    with pytest.raises(InputError, match="neither an OCI archive nor a file of `docker save`"):
        ImageArchive(tmp_path / "file.tar")


def test_links_of_a_root_are_resolved_inside(tmp_path: Path) -> None:
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/sh").write_text("")
    (tmp_path / "bin").symlink_to("usr/bin")
    (tmp_path / "up").symlink_to("../../../usr")
    (tmp_path / "host").symlink_to("/etc")
    (tmp_path / "round").symlink_to("round")
    root = Root(tmp_path)
    assert root.resolved("/bin/sh") == "/usr/bin/sh"
    assert root.resolved("/up/bin/../bin/sh") == "/usr/bin/sh"
    assert root.resolved("/host") is None
    assert root.resolved("/round") is None
    assert root.resolved("") == "/"
    assert not root.is_program("/bin/sh")
    (tmp_path / "usr/bin/sh").chmod(0o755)
    assert root.is_program("/bin/sh")


def of_size(name: str, size: int, kind: bytes = b"0") -> bytes:
    """Return the header of an entry that states a size, without content."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.type = size, kind
    return entry.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(of_size("a", 5000), id="larger than the limit"),
        pytest.param(of_size("a", -512) * 2, id="read again and again"),
        pytest.param(of_size("a", 4000, b"x") + bytes(4096), id="long header"),
        pytest.param(of_size("a", 4000, b"L") + bytes(4096), id="long name"),
        pytest.param(b"".join(of_size(f"{n}", 0) for n in range(20)), id="many entries"),
        pytest.param(layer(file("a", mtime=1e300)), id="time"),
        pytest.param(layer(file("a", uid=-5)), id="owner"),
        pytest.param(layer(file("a", pax_headers={"size": "-1024"})), id="size in a header"),
    ],
)
def test_a_hostile_layer_is_rejected_before_its_content_is_read(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, limit in (
        ("engines.oci.archive.ROOT_BYTES_MAX", 4096),
        ("engines.oci.archive._ENTRIES_MAX", 16),
        ("core.bounded_tar.HEADER_BYTES_MAX", 999),
    ):
        monkeypatch.setattr(f"fumehood.{name}", limit)
    source = write_layout(tmp_path / "layout", [content], config_of([content]))
    with pytest.raises(InputError, match="cannot unpack the image"):
        unpacked(source, tmp_path / "root")


@pytest.mark.parametrize(
    ("limit", "value", "content"),
    [
        ("engines.oci.archive.ROOT_BYTES_MAX", 10_000, layer(file("a", bytes(4000)))),
        ("engines.oci.archive._ENTRIES_MAX", 16, layer(*(file(f"{n}") for n in range(6)))),
        (
            "core.bounded_tar.HEADERS_BYTES_MAX",
            4096,
            layer(file("a", pax_headers={"comment": "x" * 1500})),
        ),
    ],
)
def test_the_limits_hold_for_all_layers_together(
    limit: str, value: int, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two, three = (
        write_layout(tmp_path / f"{count}", [content] * count, config_of([content] * count))
        for count in (2, 3)
    )
    monkeypatch.setattr(f"fumehood.{limit}", value)
    assert content_of(unpacked(two, tmp_path / "root"))
    with pytest.raises(InputError, match="more than"):
        unpacked(three, tmp_path / "other")


@pytest.mark.parametrize(
    ("limit", "value", "names"),
    [
        pytest.param("_ENTRIES_MAX", 50, [f"{n}/{'a/' * 20}" for n in range(3)], id="folders"),
        pytest.param("_PATHS_BYTES_MAX", 2000, ["a/" * 50], id="one deep path"),
        pytest.param(
            "_PATHS_BYTES_MAX", 2000, [f"{n:02}" * 50 for n in range(21)], id="long names"
        ),
        pytest.param("_PATHS_BYTES_MAX", 2000, ["é" * 100 + "/a"] * 9, id="wide folders"),
        pytest.param(
            "_PATHS_BYTES_MAX", 2000, [f"{n}" + "é" * 100 for n in range(10)], id="wide names"
        ),
    ],
)
def test_folders_that_no_layer_lists_count_too(
    limit: str, value: int, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"fumehood.engines.oci.archive.{limit}", value)
    few, last = (layer(*map(folder, part)) for part in (names[:-1], names[-1:]))
    fitting = write_layout(tmp_path / "few", [few], config_of([few]))
    unpacked(fitting, tmp_path / "root")
    for layers in ([layer(*map(folder, names))], [few, last]):
        source = write_layout(tmp_path / f"{len(layers)}", layers, config_of(layers))
        place = tmp_path / f"root{len(layers)}"
        with pytest.raises(InputError, match="files and folders"):
            unpacked(source, place)
        assert list(place.iterdir()) == [], "nothing was written"


def test_an_image_has_at_most_127_layers(tmp_path: Path) -> None:
    content = layer(file("a"))
    most, more = (
        write_saved(tmp_path / f"{count}", [content] * count, config_of([content] * count))
        for count in (127, 128)
    )
    with ImageArchive(most) as image:
        assert image.config["architecture"]
    with pytest.raises(InputError, match="has 128 layers, but at most 127 are allowed"):
        ImageArchive(more)


def test_a_layer_that_unpacks_to_too_much_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = [layer(file("large", bytes(20_000)))]
    saved = write_saved(tmp_path / "saved.tar", layers, config_of(layers))
    packed = tmp_path / "saved.tar.gz"
    packed.write_bytes(gzip.compress(saved.read_bytes()))
    monkeypatch.setattr("fumehood.engines.oci.archive.ROOT_BYTES_MAX", 10_000)
    with pytest.raises(InputError, match="it has more than"):
        unpacked(packed, tmp_path / "root")


@pytest.mark.parametrize(
    "settings",
    [{"Env": [1]}, {"Cmd": "sh"}, {"Volumes": ["/data"]}, {"WorkingDir": 1}, {"Cmd": {"a": 1}}],
)
def test_settings_of_other_types_are_rejected(settings: dict[str, Any], tmp_path: Path) -> None:
    source = write_layout(tmp_path / "layout", [BASE], config_of([BASE], **settings))
    with pytest.raises(InputError, match="has a wrong type"):
        ImageArchive(source)


def test_a_path_has_a_place_also_where_links_lead_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / "run").symlink_to("/run")
    (tmp_path / "out").symlink_to("../../..")
    (tmp_path / "loop").symlink_to("loop")
    root = Root(tmp_path)
    assert root.place("/var/run/data") == "/run/data"
    assert root.place("/out/proc") == "/proc"
    assert root.place("/loop/data") is None
    assert root.resolved("/var/run/data") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes an ordinary user")
def test_an_ordinary_user_owns_unpacked_files_and_can_read_and_remove_them() -> None:
    content = layer(
        folder("closed", mode=0o000),
        file("closed/secret", b"text", mode=0o000, uid=7, gid=7),
    )
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o777)
        archive = write_layout(Path(place, "image"), [content], config_of([content]))
        os.seteuid(1234)
        try:
            root = unpacked(archive, Path(place, "root"))
            assert (root / "closed/secret").read_text() == "text"
            assert (root / "closed/secret").stat().st_uid == 1234
            shutil.rmtree(root)
        finally:
            os.seteuid(0)
