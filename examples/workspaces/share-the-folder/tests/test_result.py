from pathlib import Path

GROUPS = {
    "ann": {"ann", "editors"},
    "bob": {"bob", "editors"},
    "carl": {"carl", "readers"},
    "eve": {"eve"},
}


def entries():
    listed = {}
    for line in Path("/app/permissions.txt").read_text().splitlines():
        kind, mode, owner, group, *path = line.split(" ")
        listed[path[0] if path else ""] = (kind, int(mode, 8), owner, group)
    return listed


def rights(user, path):
    _, mode, owner, group = entries()[path]
    if user == owner:
        return mode >> 6 & 7
    return mode >> 3 & 7 if group in GROUPS[user] else mode & 7


def files(folder):
    paths = [path for path in entries() if path.startswith(f"{folder}/")]
    assert len(paths) == 2
    return paths


def test_the_recorded_modes_are_those_of_the_files():
    # The copy of the folder has no owners and no bits such as setgid.
    for path, (_, mode, _, _) in entries().items():
        assert Path("/app/shared", path).stat().st_mode & 0o777 == mode & 0o777


def test_everybody_can_enter_the_top():
    assert all(rights(user, "") & 5 == 5 for user in GROUPS)


def test_drafts_belong_to_editors_also_later():
    _, mode, _, group = entries()["drafts"]
    assert mode & 0o2000 and group == "editors"
    assert all(rights(user, "drafts") & 7 == 7 for user in ("ann", "bob"))
    assert all(rights(user, "drafts") & 1 == 0 for user in ("carl", "eve"))
    assert not mode & 0o1000
    assert all(rights(user, path) & 6 == 6 for user in ("ann", "bob") for path in files("drafts"))


def test_published_is_read_by_readers_and_changed_by_editors():
    for path in files("published"):
        assert rights("ann", path) & 6 == rights("bob", path) & 6 == 6
        assert rights("carl", path) & 6 == 4
        assert rights("eve", path) & 6 == 0 or rights("eve", "published") & 1 == 0
    assert rights("carl", "published") & 7 == 5
    assert rights("eve", "published") & 5 == 0


def test_the_archive_is_read_only():
    for path in ("archive", *files("archive")):
        assert entries()[path][2] == "root"
        assert all(rights(user, path) & 6 == 4 for user in GROUPS)
