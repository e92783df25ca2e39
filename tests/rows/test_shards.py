"""Rows in shards: the same atoms and weights as in one memory, whatever the shards.

The shards of `CUTS` are of unequal size. Among them is one of a single class, one of one row, one
with a constant column, one in which a category never occurs, and one in which a feature is all
missing.
"""

import threading
import time
from typing import ClassVar

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeClassifier

from laconic import ShareBoostClassifier, TotalQBoostClassifier
from laconic.losses import BINARY_LOSSES, LOSSES, MarginLoss
from laconic.numeric.threads import Threads
from laconic.pools import (
    Bumps,
    Columns,
    Hinges,
    Mixed,
    Patches,
    Pieces,
    Products,
    Rules,
    Stumps,
    bind_parts,
)
from laconic.pools.parts import Unfinished
from laconic.rows.limits import Limits
from laconic.rows.rows import Rows, rows_in_memory
from laconic.rows.together import Together
from problems import random_problem

CUTS = [(), (71,), (1, 50), (1, 20, 21, 45, 80, 100)]
RULES = ("gradient", "projection", "step", "column", "refit")


def table(missing=False, classes=3):
    """120 rows: 1 to 19 are of one class, 21 to 44 have a constant column, and so on."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (120, 6))
    X[:, 3] = rng.integers(0, 5, 120)
    score = X @ rng.standard_normal((6, classes)) + rng.gumbel(size=(120, classes))
    y = np.argmax(score, axis=1)
    y[1:20] = 0
    X[21:45, 2] = 0.25
    X[45:80, 3] %= 3  # category 3 and 4 never occur
    if missing:
        X[rng.random(120) < 0.3, 4] = np.nan
        X[80:100, 4] = np.nan
    return X, y


def images():
    """120 images of 6 x 5 pixels."""
    X, y = table()
    rng = np.random.default_rng(6)
    return np.repeat(np.abs(X[:, :5]), 6, axis=1) * rng.random((120, 30)), y


POOLS = {
    "columns": (Columns(), table()),
    "columns csr": (Columns("std"), (sparse.csr_matrix(table()[0]), table()[1])),
    "columns csc": (Columns(None), (sparse.csc_matrix(table()[0]), table()[1])),
    "groups": (Columns(groups=[[0, 1], [2, 5], [3, 4]]), table()),
    "products": (Products(), (table()[0][:, 1:5], table()[1])),
    "stumps": (Stumps(3), table()),
    "stumps None": (Stumps(None), (np.round(table(missing=True)[0]), table()[1])),
    "stumps named": (Stumps(3, categorical=[3]), table(missing=True)),
    "stumps csc": (Stumps(3), (sparse.csc_matrix(table()[0]), table()[1])),
    "pieces": (Pieces(3, 2), (table()[0][:, 2:4], table()[1])),
    "pieces soft": (
        Pieces(3, 2, soft=True, relative=True, balance=0.5),
        (sparse.csr_matrix(table()[0][:, 2:4]), table()[1]),
    ),
    "rules": (Rules(2), (table()[0][:, 2:5], table()[1])),
    "rules named": (Rules(2, 3, categorical=[1]), (table(missing=True)[0][:, 2:5], table()[1])),
    "rules csr": (Rules(2), (sparse.csr_matrix(table()[0][:, 1:4]), table()[1])),
    "bumps": (Bumps(3, 2), (table()[0][:, 2:4], table()[1])),
    "hinges": (Hinges(3, 3), (table()[0][:, 2:4], table()[1])),
    "hinges csr": (
        Hinges(3, 2, n_inputs=1, scale="std"),
        (sparse.csr_matrix(table()[0][:, :4]), table()[1]),
    ),
    "patches": (Patches((6, 5), 2, 3, (2, 1), 1.0), images()),
    "mixed": (Mixed([Columns("std"), Products(), Stumps(3)]), table()),
    "mixed with rules": (
        Mixed([Stumps(2, categorical=[1]), Rules(2, categorical=[1])]),
        (table(missing=True)[0][:, 2:5], table()[1]),
    ),
    "mixed with pieces": (
        Mixed([Columns(), Pieces(3, 2, slope=0.1), Stumps(2)]),
        (table()[0][:, 2:4], table()[1]),
    ),
    "mixed with hinges": (
        Mixed([Stumps(2), Hinges(3, 2, scale="max")]),
        (table()[0][:, 2:4], table()[1]),
    ),
    "mixed with patches": (Mixed([Patches((6, 5), 1, (3, 2), 1, 1.0), Columns("std")]), images()),
    "patches of two sizes": (Patches((6, 5), 1, (3, 2), 1, 1.0), images()),
}


def in_shards(model, X, y, cuts=CUTS, **limits):
    """The model fitted with the rows cut in every way."""
    fits = []
    for each in cuts:
        fit = clone(model)
        fit._limits = Limits(cuts=each, **limits)
        fits.append(fit.fit(X, y))
    return fits


def one_cut(number):
    """Every third number has the same cut, so that each pool, rule and loss meets all of them."""
    return CUTS[0], CUTS[1 + number % 3]


def assert_same_paths(fits):
    """The same atoms, and objectives that differ by no more than both gaps, at every size."""
    for other in fits[1:]:
        assert len(other.path_) == len(fits[0].path_)
        for a, b in zip(fits[0].path_, other.path_, strict=True):
            assert a.atoms == b.atoms
            gaps = a.certificate.gap + b.certificate.gap
            # Without atoms the gap is zero, but the sum of the losses has its rounding.
            rounding = 1e-15 * a.objective
            assert abs(a.objective - b.objective) <= gaps + rounding


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", POOLS)
def test_every_pool_rule_and_loss(name, rule, capfd):
    pool, (X, y) = POOLS[name]
    n = 3 if rule in ("gradient", "projection") else 2  # the others try every atom out
    place = list(POOLS).index(name) + RULES.index(rule)
    for number, loss in enumerate([*LOSSES, *BINARY_LOSSES] if rule == "gradient" else LOSSES):
        model = ShareBoostClassifier(n, pool=pool, rule=rule, loss=loss, n_jobs=1)
        cuts = CUTS if rule == "gradient" and loss in LOSSES else one_cut(place + number)
        assert_same_paths(in_shards(model, X, y if loss in LOSSES else y > 0, cuts))
    assert capfd.readouterr().out == ""  # BLAS complains there


@pytest.mark.parametrize("loss", [*LOSSES, *BINARY_LOSSES])
@pytest.mark.parametrize("name", [name for name in POOLS if "patches" not in name])
def test_weights_are_those_of_one_memory(name, loss):
    """In double precision; patches are computed in single precision."""
    pool, (X, y) = POOLS[name]
    model = ShareBoostClassifier(3, pool=pool, loss=loss, alpha=1e-4, tol=1e-14, n_jobs=1)
    cuts = one_cut(list(POOLS).index(name) + [*LOSSES, *BINARY_LOSSES].index(loss))
    one, other = in_shards(model, X, y if loss in LOSSES else y > 0, cuts)
    for a, b in zip(one.path_, other.path_, strict=True):
        assert a.atoms == b.atoms
        size = np.linalg.norm(a.weights)
        assert np.linalg.norm(a.weights - b.weights) <= 1e-6 * size
        assert np.linalg.norm(a.base - b.base) <= 1e-6 * max(size, np.linalg.norm(a.base))


SETTINGS = [
    {"penalty": "l1"},
    {"penalty": "linf_l1"},
    {"refine": True},
    {"fit_intercept": False},
    {"costs": np.arange(1.0, 7.0)},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_other_settings(settings):
    assert_same_paths(in_shards(ShareBoostClassifier(4, n_jobs=1, **settings), *table()))


@pytest.mark.parametrize("loss", [*LOSSES, *BINARY_LOSSES])
@pytest.mark.parametrize("name", POOLS)
def test_totalq(name, loss):
    pool, (X, y) = POOLS[name]
    rounds = 2 if "pieces" in name else 4  # their atoms have many weights
    model = TotalQBoostClassifier(rounds, pool=pool, loss=loss, price=3e-3, n_jobs=1)
    cuts = one_cut(list(POOLS).index(name) + [*LOSSES, *BINARY_LOSSES].index(loss))
    assert_same_paths(in_shards(model, X, y if loss in LOSSES else y > 0, cuts))


class Watched(MarginLoss):
    """Notes which threads evaluate it. It waits, so that other threads get a block, too."""

    seen: ClassVar[set[int]] = set()

    def evaluate(self, *block):
        self.seen.add(threading.get_ident())
        time.sleep(1e-5)
        return super().evaluate(*block)


@pytest.mark.parametrize("name", POOLS)
def test_threads_change_no_bit(name, assert_identical):
    """Blocks are small and all sums are shared out, so that threads have something to do."""
    pool, (X, y) = POOLS[name]
    for booster, many in ((ShareBoostClassifier, 2), (TotalQBoostClassifier, 3)):
        fits = []
        for n_jobs in (1, many):
            Watched.seen.clear()
            model = booster(2, pool=pool, loss=Watched(), n_jobs=n_jobs)
            fits += in_shards(model, X, y, CUTS[-1:], serial=0, block_rows=8)
            assert bool(Watched.seen - {threading.get_ident()}) == (n_jobs > 1)
        assert_identical(*fits)


class Placed(Columns):
    """Notes the parts that it is bound to: their first rows, and the number of all rows."""

    seen: ClassVar[list[tuple[int, int]]] = []

    def bind(self, X, weight, threads, survey=None, place=None):
        self.seen.append((0, X.shape[0]) if place is None else (place.first, place.total))
        return super().bind(X, weight, threads, survey, place)


@pytest.mark.filterwarnings("ignore:cross-validation chooses no atom")
def test_models_of_folds_have_shards_in_proportion():
    X, y = table()
    fold = [(0, 80), (26, 80), (66, 80)]  # 40 and 100 of 120 rows
    for prices in (0.01, [0.02, 0.01]):
        one, cut = (
            TotalQBoostClassifier(4, pool=Placed(), loss="log", price=prices, cv=KFold(3))
            for _ in range(2)
        )
        one.fit(X, y)
        Placed.seen.clear()
        cut._limits = Limits(cuts=(40, 100))
        cut.fit(X, y)
        assert Placed.seen == [*3 * fold, (0, 120), (40, 120), (100, 120)]
        np.testing.assert_array_equal(cut.cv_scores_, one.cv_scores_)
        assert cut.price_ == one.price_
    share = ShareBoostClassifier(2, pool=Placed(), cv=KFold(3))
    share._limits = Limits(cuts=(40, 100))
    Placed.seen.clear()
    share.fit(X, y)
    assert Placed.seen == [*3 * fold, (0, 120), (40, 120), (100, 120)]


def test_folds_too_small_for_a_cut_have_fewer_shards():
    limits = Limits(cuts=(1, 2, 30, 118, 119), rows=120)
    X = np.arange(60)
    assert [len(part) for (part,) in limits.parts(X)] == [1, 14, 44, 1]
    assert [len(part) for (part,) in limits.parts(np.arange(120))] == [1, 1, 28, 88, 1, 1]
    assert [len(part) for (part,) in limits.parts(X[:1])] == [1]


@pytest.mark.parametrize("of", [{"price": [0.02, 0.01]}, {"l1": [0.02, 0.01]}])
def test_models_of_a_path_have_shards(of):
    X, y = table()
    model = TotalQBoostClassifier(4, pool=Placed(), loss="log")
    model._limits = Limits(cuts=(40, 100))
    Placed.seen.clear()
    fits = model.fit_path(X, y, **of)
    assert Placed.seen == [(0, 120), (40, 120), (100, 120)]
    assert all(fit._limits == model._limits for fit in fits)


def test_weak_learners_need_one_memory():
    X, y = table(classes=2)
    model = TotalQBoostClassifier(3, pool=DecisionTreeClassifier(max_depth=1))
    model._limits = Limits(cuts=(50,))
    with pytest.raises(TypeError, match="fitted to all rows at once; keep the rows in one memory"):
        model.fit(X, y)


def test_a_pool_without_surveys_needs_one_memory():
    class Own:
        def bind(self, X, weight, threads):
            return Columns().bind(X, weight, threads)

    model = ShareBoostClassifier(2, pool=Own())
    model._limits = Limits(cuts=(50,))
    with pytest.raises(TypeError, match="Own cannot be bound to rows in parts: it has no 'survey'"):
        model.fit(*table())


def test_parts_know_where_they_stand():
    """Counts are added up before any part is surveyed, and all parts hear of one seed."""
    seen = []

    class Counting(Columns):
        def count(self, X, place, threads):
            return np.array([len(X), 1])

        def survey(self, X, weight, place, threads):
            seen.append(place)
            return super().survey(X, weight, place, threads)

    X = np.random.default_rng(0).random((10, 2))
    parts = [(X[a:b], np.full(b - a, 0.1)) for a, b in ((0, 3), (3, 4), (4, 10))]
    bind_parts(Counting(), parts, Threads(1))
    assert [(place.first, place.total) for place in seen] == [(0, 10), (3, 10), (4, 10)]
    assert [place.before.tolist() for place in seen] == [[0, 0], [3, 1], [4, 2]]
    assert all(place.counted.tolist() == [10, 3] for place in seen)
    assert len({place.seed for place in seen}) == 1


@pytest.mark.parametrize("pool", [Columns(), Pieces(15, 4)], ids=["columns", "pieces"])
def test_estimates_of_curvature_take_the_same_rows_for_any_shards(pool):
    """Where rows are many, drops are ranked from some of them: of all shards those of one."""
    X, y = random_problem(seed=4, m=700, d=6, k=3)
    weight, threads, blocks = np.full(700, 1 / 700), Threads(1), []
    for cuts in ((), (1, 300), (200, 201, 500)):
        limits = Limits(cuts=cuts, preconditioner_rows=1, local_rows=2)
        bounds = bind_parts(pool, limits.parts(X, weight), threads)
        rows = rows_in_memory(bounds, MarginLoss(), y, weight, 3, threads, limits=limits)
        rows.reset([1, 3])
        rows.evaluate(np.random.default_rng(0).standard_normal((rows.n_columns, 3)))
        blocks.append(rows.hessian_blocks())
    for other in blocks[1:]:
        for one, two in zip(blocks[0], other, strict=True):
            np.testing.assert_allclose(two, one, rtol=1e-5, atol=1e-7)


def test_parts_that_do_not_go_together_are_refused():
    X, _ = table()
    weight = np.full(120, 1 / 120)
    parts = Limits(cuts=(30,)).parts(X, weight)

    class Forgetful(Columns):
        def merge(self, surveys, threads):
            return None

    class Uneven(Columns):
        def bind(self, X, weight, threads, survey=None, place=None):
            n = 6 if place.first == 0 else 5
            return super().bind(X[:, :n], weight, threads, survey._replace(peak=survey.peak[:n]))

    class Endless(Columns):
        def merge(self, surveys, threads):
            return Unfinished(super().merge(surveys, threads))

    with pytest.raises(RuntimeError, match=r"Endless\.merge still returns Unfinished after 1000"):
        bind_parts(Endless(), parts, Threads(1))
    with pytest.raises(TypeError, match=r"Forgetful\.merge must return"):
        bind_parts(Forgetful(), parts, Threads(1))
    with pytest.raises(ValueError, match=r"must have the same atoms for all parts.*5 and 6 atoms"):
        bind_parts(Uneven(), parts, Threads(1))
    with pytest.raises(ValueError, match="every part must have at least one row"):
        bind_parts(Columns(), Limits(cuts=(0,)).parts(X, weight), Threads(1))
    with pytest.raises(ValueError, match="at least one shard"):
        Rows(Together([]))
    with pytest.raises(TypeError, match="object cannot be a shard: it has no"):
        Rows(object())
