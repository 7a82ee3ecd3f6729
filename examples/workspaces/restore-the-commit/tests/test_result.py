import subprocess

import pytest

UNPRIVILEGED = {"user": 65534, "group": 65534, "extra_groups": []}
SECRET = "hunter2-in-plain-text"
SHOP = """\
def price(item):
    return item["price"]


def total(items):
    return sum(price(item) for item in items)
"""


def git(*words):
    command = ["git", "-c", "safe.directory=*", "-C", "/app/repository", *words]
    return run(*command).stdout


def run(*command):
    # Git reads settings of the home folder, which must not be that of root.
    return subprocess.run(
        ["env", "HOME=/nonexistent", *command],
        cwd="/app",
        input="",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        **UNPRIVILEGED,
    )


@pytest.fixture(scope="module", autouse=True)
def without_settings():
    """Delete the settings and hooks of the repository, which can name programs that Git runs."""
    names = ("config", "config.worktree", "commondir", "hooks")
    run("rm", "-rf", *(f"/app/repository/.git/{name}" for name in names))


def test_one_commit_more_with_its_message():
    assert git("log", "--format=%s", "main").split("\n")[:3] == [
        "Add total",
        "Add a page",
        "Add price",
    ]
    assert git("rev-list", "--count", "main").strip() == "3"


def test_the_change_without_the_secret():
    # The lost change, not a function that was written again.
    assert git("show", "main:shop.py") == SHOP
    assert SECRET not in git("show", "main:settings.ini")
    assert SECRET not in git("log", "-p", "--all")


def test_a_clean_work_tree():
    assert git("symbolic-ref", "HEAD").strip() == "refs/heads/main"
    assert git("status", "--porcelain") == ""
