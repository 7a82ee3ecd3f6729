"""Merkle trees over SHA-256 as in RFC 6962, section 2.1.

A proof shows that one leaf belongs to a root, without the other leaves. Leaves and inner nodes are
hashed with different prefixes, so that no node can be presented as a leaf.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

_LEAF, _NODE = b"\x00", b"\x01"


def merkle_root(leaves: Sequence[bytes]) -> bytes:
    """Return the root of a list of leaves; that of no leaf is the SHA-256 of nothing."""
    if not leaves:
        return sha256().digest()
    level = [_leaf(leaf) for leaf in leaves]
    while len(level) > 1:
        level = _parents(level)
    return level[0]


def merkle_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Return the audit path of a leaf, from the leaf to the root.

    Raises:
        IndexError: there is no such leaf.
    """
    if not 0 <= index < len(leaves):
        raise IndexError(index)
    path, level = [], [_leaf(leaf) for leaf in leaves]
    while len(level) > 1:
        sibling = index ^ 1
        if sibling < len(level):
            path.append(level[sibling])
        level, index = _parents(level), index // 2
    return path


def is_in_tree(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Return whether a proof shows that a leaf belongs to a root (RFC 9162, section 2.1.3.2).

    Args:
        leaf: content of the leaf.
        index: position of the leaf, from 0.
        size: number of leaves of the tree.
        proof: from :func:`merkle_proof`.
        root: of the tree.
    """
    if not 0 <= index < size:
        return False
    digest, at, last = _leaf(leaf), index, size - 1
    remaining_nodes = list(proof)
    while last:
        if at % 2 or at < last:
            if not remaining_nodes:
                return False
            sibling = remaining_nodes.pop(0)
            digest = _node(sibling, digest) if at % 2 else _node(digest, sibling)
        at, last = at // 2, last // 2
    return not remaining_nodes and digest == root


def _parents(level: Sequence[bytes]) -> list[bytes]:
    pairs = zip(level[::2], level[1::2], strict=False)
    return [*(_node(*pair) for pair in pairs), *(level[-1:] if len(level) % 2 else ())]


def _leaf(content: bytes) -> bytes:
    return sha256(_LEAF + content).digest()


def _node(left: bytes, right: bytes) -> bytes:
    return sha256(_NODE + left + right).digest()
