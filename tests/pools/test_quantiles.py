"""Summaries of weighted lists: ranks within 0.1 %, whatever is merged in which order."""

import itertools

import numpy as np
import pytest

from laconic.pools.quantiles import LISTED, POINTS, Weighted, summary, united, weighted


def rank(whole, at):
    """Mass up to some values, by brute force, as a part of all."""
    below = np.array([whole.mass[whole.values <= v].sum() for v in at])
    return below / whole.mass.sum()


def random_list(rng, n, kind):
    values = {
        "smooth": rng.standard_normal(n),
        "ties": np.floor(np.exp(rng.standard_normal(n) * 3)),
        "trend": np.linspace(0, 1, n) + rng.random() * 0.1,
    }[kind]
    mass = rng.exponential(size=n) ** 3
    if kind == "ties":
        mass[values == 1] *= 100
    return weighted(values, mass)


KINDS = ("smooth", "ties", "trend")


def test_a_weighted_list_is_sorted_and_each_value_comes_once():
    found = weighted(np.array([2.0, 1.0, 2.0, -1.0]), np.array([0.1, 0.2, 0.3, 0.4]))
    assert found.values.tolist() == [-1.0, 1.0, 2.0]
    np.testing.assert_allclose(found.mass, [0.4, 0.2, 0.4])
    assert weighted(np.empty(0), np.empty(0)).values.size == 0


def test_values_of_equal_mass_are_listed_as_others_are():
    values = np.random.default_rng(2).integers(0, 30, 400) / 4.0
    equal, other = weighted(values, np.full(400, 0.125)), np.full(401, 0.125)
    other[-1] = 7.0  # now masses differ, and the last value is alone
    known = weighted(np.append(values, 99.0), other)
    np.testing.assert_array_equal(equal.values, known.values[:-1])
    np.testing.assert_array_equal(equal.mass, known.mass[:-1])
    assert len(weighted(np.empty(0), np.empty(0)).values) == 0


def test_short_lists_are_kept_as_they_are():
    values = np.arange(LISTED, dtype=float)
    whole = Weighted(values, np.ones(LISTED))
    assert summary(whole) is whole
    longer = summary(Weighted(np.arange(LISTED + 1.0), np.ones(LISTED + 1)))
    assert len(longer.values) <= 2 * POINTS + 1
    assert 2 * 2 / POINTS <= 1e-3  # two summaries, one of the other


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("points", [5, 64])
def test_ranks_are_never_too_high_and_hardly_too_low(kind, points):
    rng = np.random.default_rng(points)
    for n in (6, 100, 3000):
        whole = random_list(rng, n, kind)
        short = summary(whole, 0, points)
        assert len(short.values) <= 2 * points + 1
        assert np.isin(short.values, whole.values).all()
        assert short.mass.sum() == pytest.approx(whole.mass.sum(), rel=1e-12)
        at = np.concatenate([whole.values, whole.values + 1e-9])
        low = rank(whole, at) - rank(short, at)
        assert low.min() > -1e-12
        assert low.max() < 2 / points


def test_a_heavy_value_keeps_its_mass():
    whole = Weighted(np.arange(1000.0), np.where(np.arange(1000) == 400, 1000.0, 1.0))
    short = summary(whole, 0, 16)
    assert short.mass[short.values == 400.0] == 1000.0


def test_summaries_of_parts_have_the_ranks_of_all_in_any_order():
    rng = np.random.default_rng(3)
    parts = [random_list(rng, n, kind) for n, kind in ((2000, "smooth"), (1, "ties"),
                                                       (700, "trend"), (1500, "ties"))]  # fmt: skip
    whole = united(parts)
    at = whole.values[::3]
    exact = rank(whole, at)
    for order in itertools.permutations(range(4)):
        short = united([summary(parts[i], 0, 200) for i in order])
        again = summary(short, 0, 200)
        assert np.abs(rank(short, at) - exact).max() < 2 / 200
        assert np.abs(rank(again, at) - exact).max() < 4 / 200
    pairs = [united([summary(parts[i], 0, 200) for i in two]) for two in ((0, 1), (2, 3))]
    np.testing.assert_array_equal(united(pairs).values, short.values)
