"""Nested columns: the chains are chains, and sums along them are sums."""

import numpy as np
import pytest

from laconic.subset.nested_columns import find_chains


def sets(kind, seed=0, n_rows=90):
    rng = np.random.default_rng(seed)
    if kind == "stumps":
        X = rng.normal(size=(n_rows, 3)).round(1)
        cuts = rng.normal(size=(12, 3))
        member = np.concatenate([X[:, f] > cuts[:, f, None] for f in range(3)])
        return member[rng.permutation(len(member))]
    if kind == "both signs":
        x, cuts = rng.normal(size=n_rows), rng.normal(size=(9, 1))
        return np.concatenate([x > cuts, x <= cuts])
    if kind == "unrelated":
        return rng.random((20, n_rows)) > 0.5
    return np.concatenate([np.zeros((2, n_rows), bool), np.ones((3, n_rows), bool)])


KINDS = ("stumps", "both signs", "unrelated", "constant")


def grown(member):
    """The chains of some columns, and then of the others one by one."""
    return find_chains(member[: len(member) // 3]).extended(member[len(member) // 3 :])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_rows", [1, 63, 64, 65, 130])
@pytest.mark.parametrize("find", [find_chains, grown])
def test_every_column_is_in_one_chain_and_holds_the_one_before(kind, n_rows, find):
    member = sets(kind, n_rows=n_rows)
    chains = find(member)
    assert sorted(chains.order.tolist()) == list(range(len(member)))
    for begin, end in zip(chains.offsets, chains.offsets[1:], strict=False):
        for a, b in zip(chains.order[begin:end], chains.order[begin + 1 : end], strict=False):
            assert not (member[a] & ~member[b]).any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("find", [find_chains, grown])
def test_sums_are_those_of_the_columns(kind, find):
    member = sets(kind)
    rows = np.random.default_rng(1).normal(size=(member.shape[1], 4))
    np.testing.assert_allclose(find(member).sums(rows), member @ rows, atol=1e-12)


@pytest.mark.parametrize("find", [find_chains, grown])
def test_thresholds_of_a_feature_in_any_order_are_few_chains(find):
    """A feature is one chain; a set that two features share by chance may cut a chain in two."""
    assert len(find(sets("stumps")).levels) <= 6
    assert len(find(sets("both signs")).levels) == 2
    assert len(find(sets("constant")).levels) == 1


def test_chains_of_no_columns_grow():
    member = sets("stumps")
    rows = np.ones((member.shape[1], 1))
    chains = find_chains(member[:0]).extended(member)
    np.testing.assert_array_equal(chains.sums(rows)[:, 0], member.sum(axis=1))


def test_no_columns_and_no_rows():
    assert find_chains(np.zeros((0, 5), bool)).sums(np.ones((5, 2))).shape == (0, 2)
    np.testing.assert_array_equal(find_chains(np.zeros((2, 0), bool)).sums(np.ones((0, 1))), 0)
