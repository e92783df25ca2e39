"""A pool that atoms outside its list may join."""

import numpy as np
import pytest
from scipy import sparse

from laconic.model.hinges import HingeAtom, HingesMap
from laconic.model.patches import PatchesMap
from laconic.numeric.threads import Threads
from laconic.pools import Hinges, Patches, bind_parts
from laconic.pools.base import Joinable, Offer
from laconic.pools.opened import OutsideAtom, as_open

RNG = np.random.default_rng(0)


def hinges():
    X = RNG.standard_normal((60, 5))
    outside = [
        OutsideAtom(HingesMap.of([HingeAtom((0, 3), (1.0, -0.5), 0.2)]), 2.0),
        OutsideAtom(HingesMap.of([HingeAtom((4,), (1.5,), -0.3)]), 0.5),
    ]
    return opened(Hinges(8, n_inputs=2), X, outside)


def patches():
    X = RNG.uniform(0, 1, (60, 36)).astype(np.float32)
    outside = [
        OutsideAtom(
            PatchesMap([6, 6], [2], [3], RNG.standard_normal(9), [0], [[row, 2.5]], [1.5]), 0.7
        )
        for row in (2.0, 3.0)
    ]
    return opened(Patches(n_templates=4, template_size=3, mask_grid=2, mask_sigma=1.0), X, outside)


def opened(pool, X, outside):
    bound = bind_parts(pool, [(X, np.full(len(X), 1 / len(X)))], Threads(1))
    [made] = as_open(bound, [X])
    for atom in outside:
        made.join(Offer(atom, 1.0))
    return made, X


@pytest.fixture(params=[hinges, patches])
def both(request):
    return request.param()


def mixed(pool):
    """Return numbers of the list and outside of it, in no order."""
    n = pool.listed.n_atoms
    return [n + 1, 3, n, 0]


def test_joined_atoms_are_numbered_after_the_list(both):
    pool, _ = both
    assert isinstance(pool, Joinable)
    assert pool.n_atoms == pool.listed.n_atoms + 2
    assert [pool.width(n) for n in mixed(pool)] == [1, 1, 1, 1]
    for n in range(4):
        assert pool.atom(n) == pool.listed.atom(n)


def test_columns_are_those_of_the_map(both):
    pool, X = both
    numbers = mixed(pool)
    found = pool.extract(numbers)
    assert found.atoms() == [pool.atom(n) for n in numbers]
    expected = found.columns(X) * pool.scales(numbers)
    np.testing.assert_allclose(pool.columns(numbers), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(pool.shifts(numbers), np.zeros(4))


def test_only_the_list_is_searched(both):
    pool, X = both
    residual = RNG.standard_normal((len(X), 3))
    assert pool.best(residual) == pool.listed.best(residual)
    [(_, one)] = list(pool.gradients(residual))[:1]
    [(_, other)] = list(pool.listed.gradients(residual))[:1]
    np.testing.assert_array_equal(one, other)


def test_costs_are_those_of_the_maps(both):
    pool, X = both
    prices = RNG.uniform(1, 2, X.shape[1])
    expected = [prices[pool.extract([n]).features()].sum() for n in range(pool.n_atoms)]
    np.testing.assert_allclose(pool.costs(prices), expected)


def test_operations_are_those_that_an_atom_adds(both):
    pool, _ = both
    chosen = mixed(pool)[1:]
    before = pool.extract(chosen).operations()
    added = pool.operations(chosen, 3)
    for n in set(range(pool.n_atoms)) - set(chosen):
        assert added[n] == pool.extract([*chosen, n]).operations() - before + 3


def test_atoms_that_are_alike_add_as_many_features(both):
    pool, _ = both
    chosen = mixed(pool)[:3]
    kinds = pool.alike(chosen)
    new = [
        len(pool.extract([*chosen, n]).features()) - len(pool.extract(chosen).features())
        for n in range(pool.n_atoms)
    ]
    assert len(kinds) == pool.n_atoms
    for kind in np.unique(kinds):
        own = [new[n] for n in np.flatnonzero(kinds == kind) if n not in chosen]
        assert len(set(own)) <= 1


def test_parts_share_their_atoms():
    pool, X = hinges()
    parts = [X[:25], sparse.csc_matrix(X[25:])]
    one, other = as_open([pool.listed, pool.listed], parts)
    number = one.join(Offer(OutsideAtom(pool.extract([2]), 3.0), 1.0))
    np.testing.assert_allclose(
        np.concatenate([one.columns([number]), other.columns([number])]),
        3.0 * pool.extract([2]).columns(X),
    )


def test_files_keep_every_bit(both):
    pool, X = both
    numbers = [pool.listed.n_atoms, pool.listed.n_atoms + 1]
    [again] = as_open([pool.listed], [X])
    kind, arrays = pool.written(0, 2)
    assert again.read(kind, arrays) == 2
    assert again.columns(numbers).tobytes() == pool.columns(numbers).tobytes()
    assert again.scales(numbers).tobytes() == pool.scales(numbers).tobytes()


def test_unsound_files_are_refused(both):
    pool, _ = both
    kind, arrays = pool.written(0, 2)
    for name, change in (
        ("factor", lambda a: a[:1]),
        ("factor", lambda a: a * np.nan),
        ("value" if kind == "hinges" else "sigma", lambda a: a[:-1]),
    ):
        name = f"joined_{name}"
        with pytest.raises(ValueError, match=r"fit|NaN"):
            pool.read(kind, {**arrays, name: change(arrays[name])})
    with pytest.raises(ValueError, match="no array 'factor'"):
        pool.read(kind, {n: a for n, a in arrays.items() if n != "joined_factor"})
