"""Merkle trees of RFC 9162: a proof shows that a row belongs to a receipt."""

from __future__ import annotations

import pytest

from fumehood.records.merkle import is_in_tree, merkle_proof, merkle_root

LEAVES = [bytes([number]) * 32 for number in range(18)]


def test_roots_are_those_of_certificate_transparency() -> None:
    """Test vectors of the reference implementation of RFC 6962."""
    leaves = [
        bytes.fromhex(text)
        for text in (
            *("", "00", "10", "2021", "3031", "40414243"),
            *("5051525354555657", "606162636465666768696a6b6c6d6e6f"),
        )
    ]
    roots = {
        0: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        1: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        3: "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        8: "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    }
    for size, root in roots.items():
        assert merkle_root(leaves[:size]).hex() == root


@pytest.mark.parametrize("size", range(1, len(LEAVES)))
def test_a_proof_holds_for_its_leaf_and_for_no_other(size: int) -> None:
    leaves = LEAVES[:size]
    root = merkle_root(leaves)
    for index, leaf in enumerate(leaves):
        proof = merkle_proof(leaves, index)
        # All places include those before and after the tree.
        accepted = [at for at in range(-1, size + 2) if is_in_tree(leaf, at, size, proof, root)]
        assert accepted == [index]
        assert not any(is_in_tree(other, index, size, proof, root) for other in LEAVES[size:])
        assert not is_in_tree(leaf, index, size, [*proof, bytes(32)], root)
        assert not proof or not is_in_tree(leaf, index, size, proof[:-1], root)


def test_there_is_no_proof_of_a_leaf_outside_the_tree() -> None:
    for index in (-1, 3):
        with pytest.raises(IndexError):
            merkle_proof(LEAVES[:3], index)
