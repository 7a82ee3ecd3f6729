"""Reads which processes there are below one, and what they used. Source: proc(5)."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path


def process_tree(root: int) -> dict[int, int]:
    """Return a process and its descendants, each with its parent."""
    parents = {}
    for name in names("/proc"):
        if name.isdigit() and (stat := text(f"/proc/{name}/stat")):
            parents[int(name)] = int(stat.rpartition(")")[2].split()[1])
    return {pid: parents[pid] for pid in below(parents, root) if pid in parents}


def below(parents: Mapping[int, int], root: int) -> set[int]:
    """Return a process and its descendants.

    Args:
        parents: the parent of each process.
        root: the process.
    """
    children = defaultdict[int, list[int]](list)
    for pid, parent in parents.items():
        children[parent].append(pid)
    found, todo = set[int](), [root]
    while todo:
        pid = todo.pop()
        found.add(pid)
        todo += children[pid]
    return found


def command(pid: int) -> str:
    """Return the words of a process, separated by NUL."""
    return text(f"/proc/{pid}/cmdline")


def is_service(pid: int) -> bool:
    """Return whether a process is a service of this project."""
    return "\0fumehood.service\0" in command(pid)


def processor_s(pid: int) -> tuple[float, float]:
    """Return the processor time of a process, and that of its children that ended, seconds."""
    stat = text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if not stat:
        return 0.0, 0.0
    own, ended = int(stat[11]) + int(stat[12]), int(stat[13]) + int(stat[14])
    hz = os.sysconf("SC_CLK_TCK")
    return own / hz, ended / hz


def names(folder: str) -> list[str]:
    """Return the names in a folder of ``/proc``; none if the process has ended."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def text(path: str) -> str:
    """Return a file of ``/proc``; empty if the process has ended."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
