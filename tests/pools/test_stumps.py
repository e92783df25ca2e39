"""Stumps: the pool is every different yes/no question about one feature, and nothing else."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from laconic.model.atoms import Column, Stump
from laconic.numeric.threads import Threads
from laconic.pools import codings, histograms, quantiles
from laconic.pools.parts import Place
from laconic.pools.stump_limits import StumpLimits
from laconic.pools.stumps import Stumps

NAN = np.nan
TINY = np.finfo(np.float64).smallest_subnormal
HUGE = np.finfo(np.float64).max


def limited(limits):
    """Stumps whose work is cut elsewhere."""

    class Limited(Stumps):
        _limits = limits

    return Limited


def bound(X, weight=None, n_jobs=1, pool=Stumps, **settings):
    weight = np.full(X.shape[0], 1 / X.shape[0]) if weight is None else weight
    return pool(**settings).bind(X, weight, Threads(n_jobs))


def mixed(m=300, seed=0, dtype=np.float64):
    """Ties, missing values, categories (see `NAMES`), constant and duplicate columns."""
    rng = np.random.default_rng(seed)
    X = np.empty((m, 11))
    X[:, 0] = rng.standard_normal(m)
    X[:, 1] = rng.integers(0, 5, m)
    X[:, 2] = rng.choice([-2.5, 0, 7], m)
    X[:, 3] = 4.0
    X[:, 4] = np.where(rng.random(m) < 0.3, NAN, rng.integers(-3, 3, m))
    X[:, 5] = rng.choice([1.0, 2.0], m)
    X[:, 6] = X[:, 0]
    X[:, 7] = np.where(rng.random(m) < 0.5, NAN, 1.0)
    X[:, 8] = np.where(rng.random(m) < 0.5, NAN, 3.0)
    X[:, 9] = np.where(rng.random(m) < 0.2, NAN, rng.choice([5.0, 6.0], m))
    X[:, 10] = NAN
    return X.astype(dtype)


NAMES = (2, 5, 8, 9)


def naive(X, categorical=()):
    """Every question of the definition, less constants and complements, by looking at columns."""
    found = []
    for f in range(X.shape[1]):
        v = X[:, f].astype(np.float64)
        distinct = np.unique(v[~np.isnan(v)])
        if f in categorical:
            asked = [(Stump(f, c, "eq"), v == c) for c in distinct]
        else:
            asked = []
            for a, b in zip(distinct, [*distinct[1:], np.inf], strict=False):
                middle = a / 2 + b / 2
                theta = middle if a <= middle < b else a
                asked.append((Stump(f, theta), v <= theta))
        missing = np.isnan(v)
        kept = [(Stump(f, 0.0, "missing"), missing)] if 0 < missing.sum() < len(v) else []
        first = len(kept)
        for stump, column in asked:
            same = column.all() or not column.any()
            if not same and not any((column == ~other).all() for _, other in kept):
                kept.append((stump, column))
        found += kept[first:] + kept[:first]
    return found


def written(pool):
    return pool.columns(range(pool.n_atoms))


def all_sums(pool, residual):
    blocks = list(pool.gradients(residual))
    ends = [first + len(sums) for first, sums in blocks]
    assert [first for first, _ in blocks] == [0, *ends[:-1]]
    assert ends[-1] == pool.n_atoms
    assert all(sums.dtype == np.float64 for _, sums in blocks)
    return np.concatenate([sums for _, sums in blocks])


# A feature of a few hundred distinct values is treated as one of millions.
ManyCodes = limited(StumpLimits(narrow=4, block=64, wave=200))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("categorical", [(), NAMES])
def test_pool_is_the_naive_enumeration(dtype, categorical):
    X = mixed(dtype=dtype)
    pool = bound(X, bins=None, categorical=categorical)
    expected = naive(X, categorical)
    assert [pool.atom(i) for i in range(pool.n_atoms)] == [stump for stump, _ in expected]
    columns = written(pool)
    np.testing.assert_array_equal(columns, np.stack([c for _, c in expected], axis=1))
    assert columns.dtype == pool.dtype == dtype
    assert columns.flags.f_contiguous
    assert pool.n_columns == pool.n_atoms


def test_sorted_storage_is_the_naive_enumeration():
    rng = np.random.default_rng(1)
    X = np.round(rng.standard_normal((900, 3)), 2)
    X[rng.random(900) < 0.2, 1] = NAN
    X[:, 2] += NAN * (rng.random(900) < 0.1)
    pool = bound(X, bins=None, categorical=[2], pool=ManyCodes)
    expected = naive(X, [2])
    assert [pool.atom(i) for i in range(pool.n_atoms)] == [stump for stump, _ in expected]
    columns = np.stack([c for _, c in expected], axis=1)
    np.testing.assert_array_equal(written(pool), columns)
    for k in (1, 3):
        residual = rng.standard_normal((900, k))
        sums = all_sums(pool, residual)
        np.testing.assert_allclose(sums, columns.T @ residual, atol=1e-11)
    assert len(list(pool.gradients(residual))) > 10


def test_binned_is_exact_for_few_distinct_values():
    X = mixed()
    X[:, [0, 6]] = np.round(X[:, [0, 6]], 1)
    exact, binned = bound(X, bins=None), bound(X, bins=200)
    assert [exact.atom(i) for i in range(exact.n_atoms)] == [
        binned.atom(i) for i in range(binned.n_atoms)
    ]
    np.testing.assert_array_equal(written(exact), written(binned))


def test_rare_values_count_as_distinct_beyond_the_sample():
    X = np.zeros((100, 1))
    X[1], X[99] = -1.0, 1.0
    pool = bound(X, bins=3, pool=limited(StumpLimits(sample=10)))
    assert [pool.atom(i).value for i in range(2)] == [-0.5, 0.5]


@pytest.mark.parametrize("bins", [2, 16, 255])
def test_bins_have_about_equal_weight(bins):
    rng = np.random.default_rng(2)
    v = np.exp(rng.standard_normal(20_000))
    pool = bound(v[:, None], bins=bins)
    assert pool.n_atoms == bins - 1
    shares = np.diff(np.r_[0, pool.squares(np.full(20_000, 1 / 20_000)), 1])
    np.testing.assert_allclose(shares, 1 / bins, atol=2 / 20_000)


def test_a_heavy_value_takes_one_bin():
    rng = np.random.default_rng(3)
    v = np.where(rng.random(5000) < 0.9, 0.0, rng.random(5000))
    assert bound(v[:, None], bins=32).n_atoms == 31


@pytest.mark.parametrize("missing", [False, True])
def test_cuts_of_a_sample(missing):
    rng = np.random.default_rng(4)
    v = rng.random(10_000)
    if missing:
        v[rng.random(10_000) < 0.99] = NAN
    pool = bound(v[:, None], bins=10, pool=limited(StumpLimits(sample=500)))
    assert pool.n_atoms == 9 + missing
    shares = pool.squares(np.ones(10_000)) / np.isfinite(v).sum()
    np.testing.assert_allclose(shares[:9], np.arange(1, 10) / 10, atol=0.05)


@pytest.mark.parametrize("k", [1, 3, 7])
@pytest.mark.parametrize("bins", [16, None])
def test_gradients_are_the_sums_of_the_columns(k, bins):
    X = mixed(700)
    pool = bound(X, bins=bins, categorical=NAMES)
    residual = np.random.default_rng(5).standard_normal((700, k))
    expected = written(pool).T @ residual
    np.testing.assert_allclose(all_sums(pool, residual), expected, atol=1e-11)
    # The residual's storage does not matter.
    frozen = np.asfortranarray(residual)
    frozen.flags.writeable = False
    np.testing.assert_array_equal(all_sums(pool, frozen), all_sums(pool, residual))
    whole = np.arange(700)[:, None]
    np.testing.assert_array_equal(all_sums(pool, whole), written(pool).T @ whole)


def test_squares_scales_and_costs():
    X = mixed()
    pool = bound(X, categorical=NAMES)
    weight = np.random.default_rng(6).random(300)
    columns = written(pool)
    np.testing.assert_allclose(pool.squares(weight), (columns**2).T @ weight, rtol=1e-12)
    np.testing.assert_array_equal(pool.scales([0, 3]), [1, 1])
    costs = pool.costs(np.arange(11.0))
    assert costs.tolist() == [pool.atom(i).feature for i in range(pool.n_atoms)]


@pytest.mark.parametrize("bins", [8, None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_records_and_feature_map_agree_with_the_pool(bins, dtype):
    X = mixed(dtype=dtype)
    pool = bound(X, bins=bins, categorical=NAMES)
    for i in range(pool.n_atoms):
        assert pool.index(pool.atom(i)) == i
        assert pool.matching(pool.atom(i)).tolist() == [i]
    some = np.random.default_rng(7).permutation(pool.n_atoms)
    of_new_rows = pool.extract(some).columns(X)
    np.testing.assert_array_equal(of_new_rows, pool.columns(some))
    assert of_new_rows.dtype == dtype
    for f in range(11):
        expected = [i for i in range(pool.n_atoms) if pool.atom(i).feature == f]
        assert pool.matching(f).tolist() == pool.matching(np.int64(f)).tolist() == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_thresholds_part_neighbouring_and_extreme_floats(dtype):
    info = np.finfo(dtype)
    tiny, one = info.smallest_subnormal, dtype(1)
    values = [-info.max, -info.max / 2, -1, -tiny, 0, tiny, 2 * tiny, info.tiny, one]
    values += [np.nextafter(one, dtype(2)), np.nextafter(np.nextafter(one, dtype(2)), dtype(2))]
    values += [np.nextafter(info.max, dtype(0)), info.max]
    X = np.array(values, dtype=dtype)[:, None]
    for bins in (255, None):
        pool = bound(X, bins=bins)
        assert pool.n_atoms == len(values) - 1
        np.testing.assert_array_equal(written(pool), np.tri(len(values), dtype=dtype).T[:, :-1])
        np.testing.assert_array_equal(pool.extract(range(pool.n_atoms)).columns(X), written(pool))


def test_midpoints_lie_between():
    low = np.array([-HUGE, -TINY, 0, 1, HUGE / 2, -np.inf, 1])
    high = np.array([HUGE, 0, TINY, np.nextafter(1, 2), HUGE, np.inf, np.inf])
    middle = quantiles.midpoints(low, high)
    assert (low <= middle).all()
    assert (middle < high).all()
    assert middle[0] == 0


@pytest.mark.parametrize("bins", [7, 255])
def test_weight_two_is_the_row_twice(bins):
    rng = np.random.default_rng(8)
    v = np.round(np.where(rng.random(3000) < 0.2, 0, rng.standard_normal(3000)), 3)
    assert len(np.unique(v)) > 255
    times = rng.integers(1, 4, 3000)
    v = np.where(rng.random(3000) < 0.1, NAN, v)[:, None]
    once = bound(v, times / times.sum(), bins=bins)
    twice = bound(np.repeat(v, times, axis=0), bins=bins)
    assert [once.atom(i) for i in range(once.n_atoms)] == [
        twice.atom(i) for i in range(twice.n_atoms)
    ]
    residual = rng.standard_normal((3000, 2))
    sums = all_sums(once, residual * times[:, None])
    np.testing.assert_allclose(sums, all_sums(twice, np.repeat(residual, times, axis=0)), atol=1e-9)


def test_equal_weights_that_meet_quantiles_exactly():
    """A thousand values in ten bins: every quantile is hit, whatever the weights' rounding."""
    v = np.arange(1000.0)[:, None]
    cuts = [99.5, 199.5, 299.5, 399.5, 499.5, 599.5, 699.5, 799.5, 899.5]
    for scale in (1, 1 / 3, 1 / 1000, 0.1):
        pool = bound(v, np.full(1000, scale), bins=10)
        assert [pool.atom(i).value for i in range(9)] == cuts


@pytest.mark.parametrize("bins", [8, None])
def test_permuting_features_permutes_the_answer(bins):
    X = mixed(500)
    order = np.random.default_rng(9).permutation(11)
    residual = np.random.default_rng(10).standard_normal((500, 3))
    here, there = bound(X, bins=bins), bound(X[:, order], bins=bins)
    sums, permuted = all_sums(here, residual), all_sums(there, residual)
    for f in range(11):
        np.testing.assert_array_equal(
            permuted[there.matching(f)], sums[here.matching(int(order[f]))]
        )


@pytest.mark.parametrize("bins", [32, None])
def test_threads_do_not_change_a_bit(bins):
    rng = np.random.default_rng(11)
    X = np.hstack([mixed(600), np.round(rng.standard_normal((600, 20)), 1)])
    residual = rng.standard_normal((600, 3)).astype(np.float32)
    answers = []
    for n_jobs in (1, 2, 3):
        with Threads(n_jobs) as threads:
            pool = ManyCodes(bins=bins).bind(X, np.full(600, 1 / 600), threads)
            answers.append((all_sums(pool, residual), written(pool), pool.best(residual)))
    for sums, columns, best in answers[1:]:
        np.testing.assert_array_equal(sums, answers[0][0])
        np.testing.assert_array_equal(columns, answers[0][1])
        assert best == answers[0][2]


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 10, 26])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("code", [np.uint8, np.uint16])
@pytest.mark.parametrize("n_features", [1, 4, 5])
def test_accumulate_is_add_at(k, dtype, code, n_features):
    rng = np.random.default_rng(12)
    m = histograms._SUM + 1000
    codes = rng.integers(0, 200, (n_features, m)).astype(code)
    residual = rng.standard_normal((m, k)).astype(dtype)
    base = 200 * np.arange(n_features + 1)
    sums = histograms.accumulate(codes, base, residual)
    twin = np.zeros_like(sums)
    for f in range(n_features):
        np.add.at(twin, base[f] + codes[f].astype(int), residual)
    np.testing.assert_array_equal(sums, twin)


@pytest.mark.parametrize("k", [1, 3, 26])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("running", [False, True])
def test_accumulate_sorted_is_reduceat(k, dtype, running):
    rng = np.random.default_rng(13)
    codes = np.sort(rng.permutation(np.r_[np.arange(90), rng.integers(0, 90, 910)]))
    order = rng.permutation(1000).astype(np.uint32)
    starts = np.searchsorted(codes, np.arange(91)).astype(np.uint32)
    residual = rng.standard_normal((1000, k)).astype(dtype)
    sums = np.empty((90, k))
    histograms.accumulate_sorted(order, starts, residual, running, sums)
    twin = np.add.reduceat(residual[order].astype(np.float64), starts[:-1], axis=0)
    np.testing.assert_allclose(sums, twin.cumsum(axis=0) if running else twin, atol=1e-11)


@pytest.mark.parametrize(
    ("n_cuts", "code"),
    [
        (0, np.uint8),
        (1, np.uint8),
        (2, np.uint8),
        (3, np.uint8),
        (254, np.uint8),
        (1000, np.uint16),
    ],
)
def test_encode_is_searchsorted(n_cuts, code):
    rng = np.random.default_rng(14)
    cuts = np.unique(rng.integers(0, 4000, n_cuts) / 2.0)
    values = rng.integers(-5, 2010, 1100).astype(np.float64)
    values[::7] = NAN
    codes = np.empty(1100, dtype=code)
    codings.encode(values, cuts, len(cuts) + 1, codes)
    twin = np.where(np.isnan(values), len(cuts) + 1, np.searchsorted(cuts, values))
    np.testing.assert_array_equal(codes, twin)


@pytest.mark.parametrize("n_values", [0, 1, 2, 7, 40, 41, 300])
def test_survey_is_unique(n_values):
    rng = np.random.default_rng(15)
    pick = rng.standard_normal(n_values + 1)
    block = pick[rng.integers(0, n_values, (2, 3000))] if n_values else np.full((2, 3000), NAN)
    block[1, ::3] = NAN
    listed, counts, missing = np.empty((2, 41)), np.zeros(2, dtype=int), np.zeros(2, dtype=bool)
    for part in (slice(0, 1000), slice(1000, 3000)):
        codings.survey(np.ascontiguousarray(block[:, part]), listed, counts, missing)
    for f in range(2):
        expected = np.unique(block[f][~np.isnan(block[f])])
        assert counts[f] == min(len(expected), 41)
        if len(expected) <= 40:
            np.testing.assert_array_equal(listed[f, : counts[f]], expected)
        assert missing[f] == np.isnan(block[f]).any()


@pytest.mark.parametrize("form", ["C", "F", "csr", "csc", "int"])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("d", [1, 13, 200])
def test_present_values_are_counted(form, gaps, d):
    X = np.random.default_rng(18).integers(0, 9, (2000, d)).astype(np.float32)
    if gaps and form != "int":
        X[::7, 0] = X[5:9, d - 1] = NAN
    expected = (~np.isnan(X)).sum(axis=0)
    if form == "F":
        given = np.asfortranarray(X)
    elif form == "int":
        given = X.astype(np.int64)
    else:
        given = X if form == "C" else getattr(sparse, f"{form}_matrix")(X)
    pool = limited(StumpLimits(sample=100))()
    for n_jobs in (1, 3):
        with Threads(n_jobs) as threads:
            found = pool.count(given, Place(0, 2000), threads)
            np.testing.assert_array_equal(found, expected)


def test_complete_features_are_read_until_their_lists_are_full():
    rng = np.random.default_rng(19)
    X = rng.standard_normal((4000, 3))
    X[:, 2] = rng.integers(0, 5, 4000)  # its list is never full
    for features in (slice(0, 2), slice(0, 3)):
        whole = codings.listed(X, features, 20, 100)
        found = codings.listed(X, features, 20, 100, complete=True)
        for (values, missing), (expected, none) in zip(found, whole, strict=True):
            np.testing.assert_array_equal(values, expected)
            assert not missing
            assert not none
    X[200:] = NAN
    assert not any(missing for _, missing in codings.listed(X, slice(0, 2), 20, 100, complete=True))


@pytest.mark.parametrize("with_costs", [False, True])
@pytest.mark.parametrize("bins", [8, None])
def test_best_is_brute_force(bins, with_costs):
    rng = np.random.default_rng(16)
    X = mixed(400)
    X = np.hstack([X, X])  # every atom has a twin: ties go to the lower number
    pool = bound(X, bins=bins, categorical=NAMES)
    residual = np.round(rng.standard_normal((400, 3)), 3)
    scores = np.abs(written(pool).T @ residual).sum(axis=1)
    costs = pool.costs(np.tile(rng.uniform(0.5, 3, 11), 2)) if with_costs else None
    value = scores if costs is None else (scores / 2) ** 2 / costs
    forbidden: list[int] = []
    for _ in range(6):
        allowed = np.setdiff1d(np.arange(pool.n_atoms), forbidden)
        near = allowed[np.isclose(value[allowed], value[allowed].max(), rtol=1e-12, atol=0)]
        choice = pool.best(residual, forbidden=np.array(forbidden, dtype=int), costs=costs)
        assert choice.index == near[0]
        assert choice.score == pytest.approx(scores[near[0]], rel=1e-12)
        assert choice.steepest == pytest.approx(scores.max(), rel=1e-12)
        forbidden.insert(0, choice.index)
    assert pool.best(residual, forbidden=np.arange(pool.n_atoms)).index == -1


@pytest.mark.parametrize("form", ["F", "memmap", "csc", "csr", "coo", "csr_array", "int"])
def test_any_storage_of_the_input(form, tmp_path):
    few = limited(StumpLimits(sample=60, read=50))
    X = np.random.default_rng(17).integers(-3, 40, (200, 13)).astype(np.float64)
    X[X < 5] = 0
    if form != "int":
        X[3, 4] = NAN
        X[:, 5] /= 3
    expected = bound(X, bins=12, categorical=[1], pool=few)
    if form == "memmap":
        np.save(tmp_path / "X.npy", X)
        given = np.load(tmp_path / "X.npy", mmap_mode="r")
    elif form == "F":
        given = np.asfortranarray(X)
    elif form == "int":
        given = X.astype(np.int32)
    else:
        given = getattr(sparse, form if "_" in form else f"{form}_matrix")(X)
    pool = bound(given, bins=12, categorical=[1], pool=few)
    assert pool.dtype == np.float64
    assert [pool.atom(i) for i in range(pool.n_atoms)] == [
        expected.atom(i) for i in range(expected.n_atoms)
    ]
    np.testing.assert_array_equal(written(pool), written(expected))


@pytest.mark.parametrize("m", [1, 5])
def test_constant_features_have_no_stumps(m):
    pool = bound(np.ones((m, 3)), categorical=[1])
    assert pool.n_atoms == 0
    assert list(pool.gradients(np.ones((m, 2)))) == []
    assert pool.best(np.ones((m, 2))).index == -1
    assert pool.squares(np.ones(m)).shape == (0,)
    assert pool.columns([]).shape == (m, 0)
    assert pool.matching(2).tolist() == []


def test_settings_compare_print_and_copy():
    assert repr(Stumps()) == "Stumps(bins=255, categorical=None)"
    settings = Stumps(bins=None, categorical=np.array([2, 0]))
    assert settings == Stumps(None, [2, 0]) == copy.deepcopy(settings)
    assert settings != Stumps(None, [0])
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert len({settings, Stumps(None, (2, 0))}) == 1


def test_categorical_as_a_mask():
    X = mixed()
    mask = np.isin(np.arange(11), NAMES)
    np.testing.assert_array_equal(
        written(bound(X, categorical=mask)), written(bound(X, categorical=NAMES))
    )


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"bins": 1}, ValueError, "bins must be from 2 to 255, or None for every threshold, not 1"),
        ({"bins": 256}, ValueError, "not 256"),
        ({"bins": 2.5}, TypeError, "bins must be an integer from 2 to 255, or None, not 2.5"),
        ({"bins": True}, TypeError, "not True"),
        ({"categorical": [3]}, ValueError, "feature 3, but features are numbered 0 to 2"),
        ({"categorical": [-1]}, ValueError, "feature -1"),
        ({"categorical": [True]}, ValueError, r"one entry per feature, 3, not 1"),
        ({"categorical": ["a"]}, TypeError, r"feature numbers or a boolean mask.*\('a',\)"),
        ({"categorical": [1.0]}, TypeError, "feature numbers or a boolean mask"),
    ],
)
def test_wrong_settings(settings, error, message):
    with pytest.raises(error, match=message):
        bound(np.zeros((4, 3)), **settings)


def test_wrong_arrays():
    with pytest.raises(ValueError, match=r"two dimensions.*not 1; reshape"):
        bound(np.zeros(4))
    with pytest.raises(ValueError, match=r"one number per row, shape \(4,\), not \(3,\)"):
        bound(np.zeros((4, 2)), weight=np.ones(3))


def test_wrong_atoms():
    pool = bound(np.array([[0.0, 1, 2, 0], [1, 1, 5, NAN], [2, 1, 2, 3]]), categorical=[2])
    for wrong in (-1, pool.n_atoms):
        for ask in (pool.atom, lambda i: pool.columns([i]), lambda i: pool.extract([i])):
            with pytest.raises(IndexError, match=f"atom {wrong} is not in this pool of 5 atoms"):
                ask(wrong)
    for stump in (Stump(0, 0.6), Stump(0, 0.5, "eq"), Stump(0, 0.0, "missing"), Stump(0, 9.0)):
        with pytest.raises(ValueError, match=r"this pool does not have the stump .*matching\(0\)"):
            pool.index(stump)
    with pytest.raises(ValueError, match="does not have the stump"):
        pool.index(Stump(2, 5.0, "eq"))  # the complement of 2
    with pytest.raises(ValueError, match="feature 1 has no stumps: it is constant"):
        pool.index(Stump(1, 1.0))
    with pytest.raises(ValueError, match="feature 7 has no stumps"):
        pool.matching(Stump(7, 1.0))
    for strange in (Column(0), Stump(0, 0.5, "lt")):
        with pytest.raises(ValueError, match="expected a stump of kind le, eq, missing"):
            pool.index(strange)
    with pytest.raises(ValueError, match="feature 4 does not exist"):
        pool.matching(4)
    for strange in ("x", 1.0, True, Column(0)):
        with pytest.raises(TypeError, match="number of a feature"):
            pool.matching(strange)
    assert pool.index(Stump(3, NAN, "missing")) == pool.n_atoms - 1


def test_numba_loads_at_first_use():
    check = "import sys, laconic.pools.stumps; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True)
