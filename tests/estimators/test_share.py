"""`ShareBoostClassifier`: what it promises its users, one statement at a time."""

import contextlib
import io
from copy import deepcopy

import cvxpy
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from laconic import ShareBoostClassifier
from laconic.data.labels import held_out_rows
from laconic.losses import LOSSES, MarginLoss
from laconic.model.atoms import Column, ColumnGroup, Product, Stump
from laconic.numeric.threads import Threads
from laconic.pools import Columns, Products, Stumps
from laconic.rows.limits import Limits
from problems import random_problem

# A strictly convex problem solved to the end: what is left of the weights is rounding.
EXACT = {"alpha": 1e-3, "tol": 1e-14}


@parametrize_with_checks(
    [
        ShareBoostClassifier(),
        ShareBoostClassifier(4, pool="stumps"),
        ShareBoostClassifier(loss="log"),
        ShareBoostClassifier(refine=True, max_atoms=3),
        ShareBoostClassifier(4, penalty="l1", alpha=1e-2, tol=1e-10),
    ]
)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


# -- twins from the definitions --------------------------------------------------------------------


def unit(X):
    """Columns in [-1, 1], as the paper assumes and ``scale="max"`` makes them."""
    peak = np.abs(X).max(axis=0)
    return X / np.where(peak > 0, peak, 1.0)


def losses_of(scores, y, margin=1.0):
    """Eq. (3) row by row (margin 1), or the plain log-loss (margin 0)."""
    shift = margin * (np.arange(scores.shape[1]) != y[:, None])
    return np.log(np.exp(shift + scores - scores[np.arange(len(y)), y][:, None]).sum(axis=1))


def gradient_norms(X, y, scores):
    """‖∇_r L‖₁ of every column r, eq. (7)."""
    shifted = np.exp((np.arange(scores.shape[1]) != y[:, None]) + scores)
    rho = shifted / shifted.sum(axis=1, keepdims=True)
    rho[np.arange(len(y)), y] -= 1
    return np.abs(X.T @ rho / len(y)).sum(axis=1)


def reads(atoms):
    return {feature for atom in atoms for feature in atom.reads}


# -- weights ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", ["columns", "stumps", "products"])
@pytest.mark.parametrize("scale", ["max", "std"])
def test_weight_two_is_the_row_twice_and_weight_zero_the_row_gone(three_classes, pool, scale):
    X, y = three_classes
    times = np.random.default_rng(0).integers(0, 4, len(y))
    X[times == 0] *= 100  # rows of weight zero must not even be looked at for the scale
    settings = ShareBoostClassifier(4, pool=pool, scale=scale, **EXACT)
    weighted = clone(settings).fit(X, y, sample_weight=times)
    repeated = clone(settings).fit(X.repeat(times, axis=0), y.repeat(times))
    assert weighted.atoms_ == repeated.atoms_
    np.testing.assert_allclose(weighted.atom_coef_, repeated.atom_coef_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(weighted.path_.losses, repeated.path_.losses, rtol=1e-12)


@pytest.mark.parametrize(
    ("rows", "weight", "alpha"),
    [
        (100, None, 3e-4),
        (1000, None, 3.2e-5),
        (1000, 2.0, 8e-6),
        (100, 20.0, 8e-6),
        (100, 100.0, 1e-6),
    ],
)
def test_the_penalty_is_weaker_for_more_rows(rows, weight, alpha):
    """By the sum of the weights, so that a row of weight 2 is the row twice."""
    X, y = random_problem(m=rows, d=3)
    weight = None if weight is None else np.full(rows, weight)
    model = ShareBoostClassifier(2).fit(X, y, sample_weight=weight)
    assert model.alpha_ == pytest.approx(alpha)
    given = ShareBoostClassifier(2, alpha=model.alpha_).fit(X, y, sample_weight=weight)
    assert np.array_equal(given.atom_coef_, model.atom_coef_)
    assert ShareBoostClassifier(2, alpha=0).fit(X, y).alpha_ == 0
    even = ShareBoostClassifier(2, class_weight="balanced").fit(X, y, sample_weight=weight)
    assert even.alpha_ == pytest.approx(alpha)  # balancing keeps the sum


def test_only_the_ratios_of_the_weights_count(three_classes):
    X, y = three_classes
    weight = np.random.default_rng(0).uniform(0.1, 2, len(y))
    one = ShareBoostClassifier(4, alpha=1e-6).fit(X, y, weight)
    thousand = ShareBoostClassifier(4, alpha=1e-6).fit(X, y, 1024 * weight)
    assert one.atoms_ == thousand.atoms_
    np.testing.assert_allclose(one.atom_coef_, thousand.atom_coef_, rtol=1e-9)


def test_a_class_whose_rows_weigh_nothing_is_no_class(three_classes, assert_identical):
    X, y = three_classes
    model = ShareBoostClassifier(3).fit(X, y, sample_weight=(y != 1).astype(float))
    assert model.classes_.tolist() == [0, 2]
    assert_identical(model, ShareBoostClassifier(3).fit(X[y != 1], y[y != 1]))


def test_class_weights_are_sample_weights(three_classes, assert_identical):
    X, y = (np.concatenate([part] * 9) for part in three_classes)  # many: "auto" goes by weights
    factor = {0: 1.0, 1: 2.5, 2: 0.5}
    as_dict = ShareBoostClassifier(4, class_weight=factor).fit(X, y)
    as_rows = ShareBoostClassifier(4).fit(X, y, sample_weight=[factor[c] for c in y])
    assert_identical(as_dict, as_rows)


def test_balanced_classes_weigh_the_same_in_total(three_classes):
    X, y = three_classes
    counts = np.bincount(y)
    assert len(set(counts)) > 1
    balanced = ShareBoostClassifier(4, class_weight="balanced", **EXACT).fit(X, y)
    by_hand = ShareBoostClassifier(4, **EXACT).fit(X, y, sample_weight=1.0 / counts[y])
    assert balanced.atoms_ == by_hand.atoms_
    np.testing.assert_allclose(balanced.atom_coef_, by_hand.atom_coef_, rtol=1e-6, atol=1e-9)


def test_class_and_sample_weights_multiply(three_classes):
    X, y = three_classes
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    both = ShareBoostClassifier(4, class_weight={0: 1, 1: 3, 2: 2}, **EXACT).fit(X, y, weight)
    product = weight * np.array([1, 3, 2])[y]
    one = ShareBoostClassifier(4, **EXACT).fit(X, y, product)
    assert both.atoms_ == one.atoms_
    np.testing.assert_allclose(both.atom_coef_, one.atom_coef_, rtol=1e-6, atol=1e-9)


# -- labels, names and containers ------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [["ant", "bee", "cat"], [10, -3, 7], [0.0, 1.0, 2.0], np.array(["x", "y", "z"], dtype=object)],
)
def test_labels_come_back_as_they_went_in(three_classes, labels):
    X, y = three_classes
    named = np.asarray(labels)[y]
    model = ShareBoostClassifier(4).fit(X, named)
    assert model.classes_.tolist() == sorted(set(labels))
    assert set(model.predict(X)) <= set(labels)
    assert model.predict(X).dtype == named.dtype
    codes = np.argsort(np.argsort(np.asarray(labels)))[y]
    plain = ShareBoostClassifier(4).fit(X, codes)
    assert np.array_equal(model.atom_coef_, plain.atom_coef_)
    assert model.score(X, named) == plain.score(X, codes)


def test_two_classes_may_be_booleans(three_classes):
    X, y = three_classes
    model = ShareBoostClassifier(4).fit(X, y == 1)
    assert model.classes_.tolist() == [False, True]
    assert model.predict(X).dtype == bool
    assert model.decision_function(X).shape == (len(X),)
    assert np.array_equal(model.predict(X), model.decision_function(X) > 0)


def test_a_data_frame_is_the_array_with_names(three_classes, assert_identical):
    X, y = three_classes
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(8)])
    named = ShareBoostClassifier(4).fit(frame, pd.Series(y))
    plain = ShareBoostClassifier(4).fit(frame.to_numpy(), y)
    assert_identical(named, plain)
    assert named.feature_names_in_.tolist() == frame.columns.tolist()
    assert not hasattr(plain, "feature_names_in_")
    assert named.get_feature_names_out().tolist() == [f"f{a.feature}" for a in plain.atoms_]
    assert plain.get_feature_names_out().tolist() == [f"x{a.feature}" for a in plain.atoms_]
    assert np.array_equal(named.predict_proba(frame), plain.predict_proba(X))


@pytest.mark.parametrize("pool", ["columns", "stumps", "products"])
@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix])
def test_sparse_is_dense_with_fewer_zeros(three_classes, pool, make):
    X, y = three_classes
    X = X * (np.abs(unit(X)) > 0.2)
    settings = ShareBoostClassifier(4, pool=pool, **EXACT)
    dense, thin = clone(settings).fit(X, y), clone(settings).fit(make(X), y)
    assert dense.atoms_ == thin.atoms_
    np.testing.assert_allclose(thin.atom_coef_, dense.atom_coef_, rtol=1e-6, atol=1e-9)
    scores = dense.decision_function(X)
    np.testing.assert_allclose(thin.decision_function(make(X)), scores, rtol=1e-6, atol=1e-9)
    assert np.array_equal(thin.transform(make(X)), dense.transform(X))


@pytest.mark.parametrize("pool", ["columns", "stumps", "products"])
def test_a_memory_map_is_an_array(three_classes, pool, tmp_path, assert_identical):
    X, y = three_classes
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    fitted = ShareBoostClassifier(4, pool=pool).fit(mapped, y)
    assert_identical(fitted, ShareBoostClassifier(4, pool=pool).fit(X, y))
    assert np.array_equal(fitted.predict(mapped), fitted.predict(X))


@pytest.mark.parametrize("pool", ["columns", "stumps", "products"])
def test_the_order_of_the_array_does_not_matter(three_classes, pool):
    X, y = three_classes
    settings = ShareBoostClassifier(4, pool=pool, **EXACT)
    c = clone(settings).fit(np.ascontiguousarray(X), y)
    f = clone(settings).fit(np.asfortranarray(X), y)
    assert c.atoms_ == f.atoms_
    np.testing.assert_allclose(c.atom_coef_, f.atom_coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("pool", ["columns", "stumps", "products"])
def test_single_precision_chooses_the_same_atoms_where_the_gap_allows(pool):
    X, y = random_problem(seed=3, m=400, d=8, k=4, noise=0.5)
    X[:, 4:] *= 1e-3  # of no matter to the scale, but exponents of their own
    X = X.astype(np.float32).astype(np.float64)
    double = ShareBoostClassifier(4, pool=pool).fit(X, y)
    single = ShareBoostClassifier(4, pool=pool).fit(X.astype(np.float32), y)
    pools = {"columns": Columns(), "stumps": Stumps(), "products": Products()}
    written = columns_of(pools[pool], X)
    for size, entry in enumerate(double.path_):
        norms = gradient_norms(written, y, entry.scores(X))
        norms[list(entry.numbers)] = 0
        first, second = np.sort(norms)[[-1, -2]]
        if size < 4:
            assert first - second > 1e-5  # the data are such that rounding cannot decide
    assert single.atoms_ == double.atoms_
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.path_.losses, double.path_.losses, rtol=1e-4)


def columns_of(pool, X):
    """The pool of X written down."""
    bound = pool.bind(X, np.full(len(X), 1 / len(X)), Threads(1))
    return bound.columns(range(bound.n_atoms))


def test_refitting_forgets_the_fit_before(three_classes, assert_identical):
    X, y = three_classes
    frame = pd.DataFrame(X[:, :5], columns=list("abcde"))
    model = ShareBoostClassifier(3, early_stopping=True, random_state=0).fit(frame, y == 0)
    model.set_params(early_stopping=False).fit(X, y)
    assert_identical(model, ShareBoostClassifier(3).fit(X, y))
    assert not hasattr(model, "feature_names_in_")
    assert not hasattr(model, "validation_losses_")
    model.set_params(cv=3).fit(X, y)
    model.set_params(cv=None).fit(X, y)
    assert not hasattr(model, "cv_scores_")


# -- categories ------------------------------------------------------------------------------------


@pytest.fixture
def coloured():
    """A frame whose label is its colour, except that numbers decide among the others."""
    rng = np.random.default_rng(0)
    colour = pd.Categorical(
        rng.choice(["red", "green", "blue"], 200), categories=["red", "green", "blue"]
    )
    frame = pd.DataFrame(
        {"size": rng.standard_normal(200), "colour": colour, "shape": rng.choice(["o", "x"], 200)}
    )
    y = np.where(frame["colour"] == "red", "stop", np.where(frame["size"] > 0, "go", "wait"))
    return frame, y


def test_a_category_is_one_question(coloured):
    frame, y = coloured
    model = ShareBoostClassifier(1, pool="stumps").fit(frame, y == "stop")
    assert model.atoms_ == [Stump(1, 0.0, "eq")]
    assert model.get_feature_names_out().tolist() == ["colour = red"]
    assert model.score(frame, y == "stop") == 1.0


def test_text_is_a_category_too(coloured):
    frame, y = coloured
    as_text = frame.assign(colour=frame["colour"].astype(str).astype(object))
    one = ShareBoostClassifier(3, pool="stumps").fit(frame, y)
    other = ShareBoostClassifier(3, pool="stumps").fit(as_text, y)
    assert one.get_feature_names_out().tolist() == other.get_feature_names_out().tolist()
    assert np.array_equal(one.predict(frame), other.predict(as_text))


def test_the_order_of_the_categories_does_not_matter(coloured):
    frame, y = coloured
    turned = frame.assign(colour=frame["colour"].cat.reorder_categories(["blue", "red", "green"]))
    model = ShareBoostClassifier(3, pool="stumps").fit(frame, y)
    assert np.array_equal(model.predict(turned), model.predict(frame))


def test_an_unknown_category_is_a_missing_value(coloured):
    frame, y = coloured
    model = ShareBoostClassifier(3, pool="stumps").fit(frame, y)
    unknown = frame.assign(colour=pd.Categorical(["violet"] * len(frame)))
    missing = frame.assign(colour=pd.Categorical([None] * len(frame), categories=["red"]))
    assert np.array_equal(model.decision_function(unknown), model.decision_function(missing))
    assert "stop" not in model.predict(unknown)


def test_missing_can_be_the_answer(coloured):
    frame, _ = coloured
    frame.loc[::3, "colour"] = None
    y = frame["colour"].isna().to_numpy()
    model = ShareBoostClassifier(1, pool="stumps").fit(frame, y)
    assert model.atoms_ == [Stump(1, 0.0, "missing")]
    assert model.get_feature_names_out().tolist() == ["colour is missing"]
    assert model.score(frame, y) == 1.0


def test_missing_numbers_need_no_frame():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 3))
    X[::3, 1] = np.nan
    for pool in ("stumps", Stumps(), Stumps(bins=16)):
        model = ShareBoostClassifier(1, pool=pool).fit(X, np.isnan(X[:, 1]))
        assert model.atoms_ == [Stump(1, 0.0, "missing")]


def test_a_stumps_object_takes_the_same_frames(coloured):
    frame, y = coloured
    frame.loc[::7, "colour"] = None
    by_name = ShareBoostClassifier(3, pool="stumps").fit(frame, y)
    by_object = ShareBoostClassifier(3, pool=Stumps()).fit(frame, y)
    assert by_object.atoms_ == by_name.atoms_
    assert np.array_equal(by_object.predict(frame), by_name.predict(frame))


def test_categories_survive_every_way_to_choose_the_size(coloured):
    frame, y = coloured
    frame.loc[::7, "colour"] = None
    for how in ({"cv": 3}, {"early_stopping": True, "random_state": 0}):
        model = ShareBoostClassifier(4, pool="stumps", **how).fit(frame, y)
        assert "colour = red" in model.get_feature_names_out()


def test_frames_may_have_numbers_for_names(coloured):
    frame, y = coloured
    numbered = frame.set_axis([0, 1, 2], axis=1)
    named = ShareBoostClassifier(3, pool="stumps").fit(frame, y)
    assert ShareBoostClassifier(3, pool="stumps").fit(numbered, y).atoms_ == named.atoms_


# -- the tools of scikit-learn ---------------------------------------------------------------------


def test_transform_gives_named_columns_where_asked(three_classes):
    X, y = three_classes
    frame = pd.DataFrame(X, columns=list("abcdefgh"), index=np.arange(len(X)) + 1000)
    model = ShareBoostClassifier(3).set_output(transform="pandas").fit(frame, y)
    out = model.transform(frame)
    assert out.columns.tolist() == model.get_feature_names_out().tolist()
    pd.testing.assert_frame_equal(out, frame[out.columns])


def test_a_clone_is_unfitted_and_fits_alike(three_classes, assert_identical):
    X, y = three_classes
    model = ShareBoostClassifier(3, groups=[0, 0, 1, 1, 2, 2, 3, 3], costs=np.ones(8)).fit(X, y)
    other = clone(model)
    assert not hasattr(other, "path_")
    assert_identical(other.fit(X, y), model)


def test_it_works_in_pipelines_and_grids(three_classes):
    X, y = three_classes
    grid = GridSearchCV(
        make_pipeline(StandardScaler(), ShareBoostClassifier(pool="columns")),
        {"shareboostclassifier__max_atoms": [0, 1, 4]},
        cv=3,
    ).fit(X, y)
    assert grid.best_params_ == {"shareboostclassifier__max_atoms": 4}
    assert grid.score(X, y) > 0.8


def test_it_selects_features_for_another_model(three_classes):
    X, y = three_classes
    model = ShareBoostClassifier(3).fit(X, y)
    importance = model.feature_importances_
    assert np.flatnonzero(importance).tolist() == sorted(reads(model.atoms_))
    np.testing.assert_allclose(importance.sum(), 1.0, rtol=1e-12)
    selector = SelectFromModel(ShareBoostClassifier(3), threshold=1e-12)
    assert np.array_equal(selector.fit_transform(X, y), X[:, sorted(reads(model.atoms_))])


def test_fit_never_changes_a_parameter(three_classes):
    X, y = three_classes
    settings = {
        "max_atoms": 3,
        "groups": np.array([0, 0, 1, 1, 2, 2, 3, 3]),
        "costs": np.linspace(1, 2, 8),
        "include": [0],
        "exclude": [7],
        "class_weight": {0: 1.0, 1: 2.0, 2: 1.0},
        "callbacks": [len_of_path],
        "cv": StratifiedKFold(3),
        "refine": True,
    }
    before = deepcopy(settings)
    model = ShareBoostClassifier(**settings).fit(X, y)
    for name, value in model.get_params(deep=False).items():
        if name in settings:
            assert value is settings[name]
            assert repr(value) == repr(before[name])
        else:
            assert value == clone(ShareBoostClassifier()).get_params()[name]


def len_of_path(state):
    assert len(state.entries) > 0


def test_fit_never_changes_the_data(three_classes):
    X, y = three_classes
    weight = np.linspace(0, 1, len(y))
    for pool in ("columns", "stumps", "products"):
        for part in (X, y, weight):
            part.setflags(write=False)
        kept = X.copy()
        ShareBoostClassifier(3, pool=pool).fit(X, y, weight)
        assert np.array_equal(X, kept)


# -- the same answer, however it is computed -------------------------------------------------------


@pytest.fixture(scope="module")
def tall():
    """Rows for several blocks of every kind, the last one short."""
    return random_problem(seed=5, m=3 * 4096 + 57, d=12, k=3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("pool", "make"),
    [
        ("columns", np.ascontiguousarray),
        ("columns", np.asfortranarray),
        ("columns", sparse.csr_matrix),
        ("columns", sparse.csc_matrix),
        ("stumps", np.ascontiguousarray),
        ("products", np.ascontiguousarray),
    ],
)
def test_threads_do_not_change_a_bit(tall, dtype, pool, make, assert_identical):
    X, y = make(tall[0].astype(dtype)), tall[1]
    one, two = (ShareBoostClassifier(3, pool=pool, rule="projection", n_jobs=n) for n in (1, 2))
    for model in (one, two):
        model._limits = Limits(serial=0)  # so that every sum is really shared out
        model.fit(X, y)
    assert_identical(one, two)
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))


def test_threads_do_not_change_a_bit_of_a_refined_model(three_classes, assert_identical):
    X, y = three_classes
    one, two = (ShareBoostClassifier(4, refine=True, n_jobs=n).fit(X, y) for n in (1, 2))
    assert_identical(one, two)


@pytest.mark.parametrize("rule", ["gradient", "projection", "column"])
def test_permuted_columns_give_permuted_atoms(three_classes, rule):
    X, y = three_classes
    order = np.random.default_rng(0).permutation(8)
    plain = ShareBoostClassifier(5, rule=rule, **EXACT).fit(X, y)
    permuted = ShareBoostClassifier(5, rule=rule, **EXACT).fit(X[:, order], y)
    assert [order[a.feature] for a in permuted.atoms_] == [a.feature for a in plain.atoms_]
    np.testing.assert_allclose(permuted.atom_coef_, plain.atom_coef_, rtol=1e-6, atol=1e-9)


def test_rescaling_a_column_changes_nothing_but_its_weights(three_classes):
    X, y = three_classes
    plain = ShareBoostClassifier(4, **EXACT).fit(X, y)
    first = plain.atoms_[0].feature
    factor = np.where(np.arange(8) == first, 1000.0, 1.0)
    scaled = ShareBoostClassifier(4, **EXACT).fit(X * factor, y)
    assert scaled.atoms_ == plain.atoms_
    assert np.array_equal(scaled.predict(X * factor), plain.predict(X))
    np.testing.assert_allclose(
        scaled.decision_function(X * factor), plain.decision_function(X), rtol=1e-6, atol=1e-9
    )
    np.testing.assert_allclose(scaled.atom_coef_[:, 0] * 1000, plain.atom_coef_[:, 0], rtol=1e-6)


@pytest.mark.parametrize("scale", ["max", "std"])
def test_powers_of_two_rescale_to_the_last_bit(three_classes, scale):
    X, y = three_classes
    factor = 2.0 ** np.arange(-4, 4)
    plain = ShareBoostClassifier(4, scale=scale).fit(X, y)
    scaled = ShareBoostClassifier(4, scale=scale).fit(X * factor, y)
    assert scaled.atoms_ == plain.atoms_
    assert np.array_equal(scaled.path_.losses, plain.path_.losses)
    assert np.array_equal(scaled.decision_function(X * factor), plain.decision_function(X))


@pytest.mark.parametrize("rule", ["gradient", "projection"])
@pytest.mark.parametrize(
    ("dtype", "offset", "rtol"), [(np.float32, 400, 1e-2), (np.float64, 4000, 1e-3)]
)
def test_a_column_far_from_zero_is_still_a_column(dtype, offset, rtol, rule):
    """Years, temperatures in kelvin: next to an intercept only the deviations matter."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2)).astype(dtype)
    y = X[:, 0] + 0.3 * rng.standard_normal(300) > 0
    moved = X + np.array([offset, 0], dtype=dtype)
    settings = ShareBoostClassifier(2, rule=rule, scale="std", alpha=0)
    near, far = clone(settings).fit(X, y), clone(settings).fit(moved, y)
    assert far.atoms_ == near.atoms_
    np.testing.assert_allclose(far.path_.losses, near.path_.losses, rtol=rtol)


def test_without_a_scale_columns_are_taken_as_they_are(three_classes):
    X, y = three_classes
    by_hand = ShareBoostClassifier(4, scale=None, **EXACT).fit(unit(X), y)
    scaled = ShareBoostClassifier(4, **EXACT).fit(X, y)
    raw = ShareBoostClassifier(4, scale=None, **EXACT).fit(X, y)
    assert by_hand.atoms_ == scaled.atoms_ != raw.atoms_
    np.testing.assert_allclose(
        by_hand.decision_function(unit(X)), scaled.decision_function(X), rtol=1e-6, atol=1e-9
    )


# -- what may be chosen ----------------------------------------------------------------------------


def test_the_first_atom_has_the_largest_gradient(three_classes):
    X, y = three_classes
    model = ShareBoostClassifier(1, fit_intercept=False).fit(X, y)
    norms = gradient_norms(unit(X), y, np.zeros((len(y), 3)))
    assert model.atoms_ == [Column(norms.argmax())]
    np.testing.assert_allclose(model.path_[0].steepest, norms.max(), rtol=1e-12)
    assert not model.intercept_.any()


def test_groups_of_one_are_plain_columns(three_classes, monkeypatch):
    X, y = three_classes
    plain = ShareBoostClassifier(5).fit(X, y)
    for groups in (range(8), [[i] for i in range(8)], list("abcdefgh")):
        grouped = ShareBoostClassifier(5, groups=groups).fit(X, y)
        assert grouped.atoms_ == [ColumnGroup((a.feature,)) for a in plain.atoms_]
        assert np.array_equal(grouped.atom_coef_, plain.atom_coef_)
        assert np.array_equal(grouped.intercept_, plain.intercept_)
        assert np.array_equal(grouped.path_.losses, plain.path_.losses)
        assert np.array_equal(grouped.path_.gaps, plain.path_.gaps)


@pytest.mark.parametrize("seed", range(5))
def test_the_first_group_has_the_largest_sum_of_gradients(three_classes, seed):
    X, y = three_classes
    labels = np.random.default_rng(seed).integers(0, 3, 8)
    model = ShareBoostClassifier(1, groups=labels, fit_intercept=False).fit(X, y)
    norms = gradient_norms(unit(X), y, np.zeros((len(y), 3)))
    totals = np.bincount(labels, norms)
    chosen = np.flatnonzero(labels == totals.argmax())
    assert model.atoms_ == [ColumnGroup(tuple(chosen))]
    assert model.atom_coef_.shape == (3, len(chosen))
    assert np.all(np.any(model.atom_coef_ != 0, axis=0))


def test_the_columns_of_a_group_come_together(three_classes):
    X, y = three_classes
    groups = [[0, 7], [1, 2, 3], [4], [5, 6]]
    model = ShareBoostClassifier(3, groups=groups).fit(X, y)
    assert model.n_atoms_ == 3
    assert all(list(atom.features) in groups for atom in model.atoms_)
    assert model.atom_coef_.shape[1] == sum(atom.width for atom in model.atoms_)
    order = [f for atom in model.atoms_ for f in atom.features]
    assert np.array_equal(model.transform(X), X[:, order])
    assert model.get_feature_names_out().tolist() == [f"x{f}" for f in order]
    np.testing.assert_allclose(
        model.decision_function(X), X[:, order] @ model.atom_coef_.T + model.intercept_, rtol=1e-12
    )


def test_an_included_atom_is_in_from_the_start(three_classes, assert_identical):
    X, y = three_classes
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    last = ShareBoostClassifier(8).fit(X, y).atoms_[-1]
    by_record = ShareBoostClassifier(3, include=[last]).fit(frame, y)
    assert by_record.path_.sizes.tolist() == [1, 2, 3]
    assert all(entry.atoms[0] == last for entry in by_record.path_)
    for item in (last.feature, np.int64(last.feature), "abcdefgh"[last.feature]):
        assert_identical(ShareBoostClassifier(3, include=[item]).fit(frame, y), by_record)


def test_an_excluded_atom_is_never_in(three_classes, assert_identical):
    X, y = three_classes
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    first = ShareBoostClassifier(1).fit(X, y).atoms_[0]
    by_record = ShareBoostClassifier(8, exclude=[first]).fit(frame, y)
    assert by_record.n_atoms_ == 7
    assert first not in by_record.atoms_
    for item in (first.feature, "abcdefgh"[first.feature]):
        assert_identical(ShareBoostClassifier(8, exclude=[item]).fit(frame, y), by_record)
    without = ShareBoostClassifier(8, **EXACT).fit(np.delete(X, first.feature, axis=1), y)
    barred = ShareBoostClassifier(8, exclude=[first], **EXACT).fit(X, y)
    kept = np.delete(np.arange(8), first.feature)
    assert [kept[a.feature] for a in without.atoms_] == [a.feature for a in barred.atoms_]
    np.testing.assert_allclose(without.atom_coef_, barred.atom_coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("pool", "kind"), [("stumps", Stump), ("products", Product)])
def test_excluding_a_feature_excludes_every_atom_that_reads_it(three_classes, pool, kind):
    X, y = three_classes
    plain = ShareBoostClassifier(4, pool=pool).fit(X, y)
    feature = plain.atoms_[0].reads[0]
    barred = ShareBoostClassifier(4, pool=pool, exclude=[feature]).fit(X, y)
    assert feature not in reads(barred.atoms_)
    assert all(isinstance(atom, kind) for atom in barred.atoms_)
    included = ShareBoostClassifier(4, pool=pool, include=[plain.atoms_[2]]).fit(X, y)
    assert included.atoms_[0] == plain.atoms_[2]


def test_a_pool_object_is_its_name_with_settings(three_classes, assert_identical):
    X, y = three_classes
    groups = [0, 0, 1, 1, 2, 2, 3, 3]
    for by_object, by_name in (
        ({"pool": Columns()}, {}),
        ({"pool": Columns("std", groups)}, {"scale": "std", "groups": groups}),
        ({"pool": Products(None)}, {"pool": "products", "scale": None}),
        ({"pool": Stumps()}, {"pool": "stumps"}),
    ):
        one = ShareBoostClassifier(3, **by_object).fit(X, y)
        assert_identical(one, ShareBoostClassifier(3, **by_name).fit(X, y))


# -- costs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_first_atom_gains_most_per_cost(three_classes, seed):
    X, y = three_classes
    costs = np.random.default_rng(seed).uniform(0.2, 5, 8)
    model = ShareBoostClassifier(1, costs=costs, fit_intercept=False).fit(X, y)
    norms = gradient_norms(unit(X), y, np.zeros((len(y), 3)))
    assert model.atoms_ == [Column(((norms / 2) ** 2 / costs).argmax())]
    np.testing.assert_allclose(model.path_.costs, [0, costs[model.atoms_[0].feature]])


def test_costs_can_change_the_choice(three_classes):
    X, y = three_classes
    first = ShareBoostClassifier(1).fit(X, y).atoms_[0].feature
    dear = np.where(np.arange(8) == first, 1000.0, 1.0)
    assert ShareBoostClassifier(1, costs=dear).fit(X, y).atoms_[0].feature != first


def test_equal_costs_are_no_costs(three_classes):
    X, y = three_classes
    plain = ShareBoostClassifier(5).fit(X, y)
    equal = ShareBoostClassifier(5, costs=np.full(8, 3.0)).fit(X, y)
    assert equal.atoms_ == plain.atoms_
    assert np.array_equal(equal.atom_coef_, plain.atom_coef_)
    assert equal.path_.costs.tolist() == (3 * plain.path_.costs).tolist()


@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize("pool", ["columns", "stumps", "products"])
def test_the_cap_is_reached_but_never_exceeded(three_classes, pool, refine):
    X, y = three_classes
    costs = np.random.default_rng(1).uniform(0.5, 3, 8)
    model = ShareBoostClassifier(20, pool=pool, costs=costs, max_cost=6.0, refine=refine)
    model.fit(X, y)
    for entry in model.path_:
        total = costs[list(reads(entry.atoms))].sum()
        np.testing.assert_allclose(entry.cost, total, rtol=1e-12)
        assert total <= 6.0
    if pool == "columns" and not refine:
        left = set(range(8)) - reads(model.atoms_)
        assert all(costs[f] > 6.0 - model.path_.costs[-1] for f in left)


def test_a_cap_without_costs_counts_atoms(three_classes, assert_identical):
    X, y = three_classes
    capped = ShareBoostClassifier(20, max_cost=3).fit(X, y)
    assert capped.n_atoms_ == 3
    assert capped.atoms_ == ShareBoostClassifier(3).fit(X, y).atoms_


# -- choosing the size -----------------------------------------------------------------------------


@pytest.fixture
def noisy():
    """Three useful columns among forty, and few rows: large models do worse on new rows."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((120, 40))
    y = (X[:, :3] + 1.2 * rng.standard_normal((120, 3))).argmax(axis=1)
    return X, y


@pytest.mark.parametrize("loss", ["margin", "log"])
def test_early_stopping_takes_the_size_of_lowest_held_out_loss(noisy, loss):
    X, y = noisy
    settings = {"loss": loss, "early_stopping": True, "validation_fraction": 0.3}
    model = ShareBoostClassifier(30, n_iter_no_change=5, random_state=0, **settings).fit(X, y)
    best = int(np.argmin(model.validation_losses_))
    assert model.n_atoms_ == model.path_.sizes[best]
    assert len(model.path_) - 1 - best == 5
    assert len(model.validation_losses_) == len(model.path_)
    _, _, _, (held, truth, _) = held_out_rows(model, X, y, np.ones(len(y)))
    assert len(held) == 36
    for size, value in enumerate(model.validation_losses_):
        scores = model.at(size).decision_function(held)
        expected = losses_of(scores, truth, margin=float(loss == "margin")).mean()
        np.testing.assert_allclose(value, expected, rtol=1e-10)


def test_early_stopping_reproduces_for_a_random_state(noisy, assert_identical):
    X, y = noisy
    settings = {"early_stopping": True, "n_iter_no_change": 3}
    one = ShareBoostClassifier(random_state=1, **settings).fit(X, y)
    assert_identical(one, ShareBoostClassifier(random_state=1, n_jobs=1, **settings).fit(X, y))
    other = ShareBoostClassifier(random_state=2, **settings).fit(X, y)
    assert not np.array_equal(other.validation_losses_[:2], one.validation_losses_[:2])


@pytest.mark.parametrize("include", [None, [5, 6]])
@pytest.mark.parametrize("cv", [4, KFold(5, shuffle=True, random_state=0)])
def test_cross_validation_takes_the_smallest_size_within_one_standard_error(noisy, cv, include):
    X, y = noisy
    model = ShareBoostClassifier(10, cv=cv, include=include).fit(X, y)
    splitter = StratifiedKFold(4) if cv == 4 else cv
    by_hand = []
    for fit, test in splitter.split(X, y):
        fold = ShareBoostClassifier(10, include=include).fit(X[fit], y[fit])
        by_hand.append([fold.at(n).score(X[test], y[test]) for n in fold.path_.sizes])
    assert np.array_equal(model.cv_scores_, by_hand)
    mean = np.mean(by_hand, axis=0)
    best = mean.argmax()
    error = np.std(by_hand, axis=0, ddof=1)[best] / np.sqrt(len(by_hand))
    within = [
        size for size, m in zip(model.path_.sizes, mean, strict=True) if m >= mean[best] - error
    ]
    assert model.n_atoms_ == min(within)
    assert model.path_.sizes[-1] == 10


def test_cross_validation_counts_rows_by_their_weight(noisy):
    X, y = noisy
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    model = ShareBoostClassifier(4, cv=3).fit(X, y, sample_weight=weight)
    for row, (fit, test) in zip(model.cv_scores_, StratifiedKFold(3).split(X, y), strict=True):
        fold = ShareBoostClassifier(4).fit(X[fit], y[fit], sample_weight=weight[fit])
        expected = [fold.at(n).score(X[test], y[test], weight[test]) for n in range(5)]
        np.testing.assert_allclose(row, expected, rtol=1e-12)


# -- the path --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [{}, {"pool": "stumps"}, {"pool": "products"}, {"rule": "projection"}],
)
def test_a_smaller_size_is_the_fit_that_asked_for_it(three_classes, settings, assert_identical):
    X, y = three_classes
    model = ShareBoostClassifier(5, **settings).fit(X, y)
    for n in range(6):
        small = ShareBoostClassifier(n, **settings).fit(X, y)
        at = model.at(n)
        at.path_ = type(model.path_)(model.path_.entries[: n + 1])
        assert_identical(at, small)
        assert np.array_equal(at.predict_proba(X), small.predict_proba(X))
        assert at.excess_loss_bound(2.0) == small.excess_loss_bound(2.0)
    assert model.n_atoms_ == 5  # and the model itself is as it was


@pytest.mark.parametrize("pool", ["columns", "stumps", "products"])
def test_stages_are_the_sizes(three_classes, pool):
    X, y = three_classes
    model = ShareBoostClassifier(5, pool=pool).fit(X, y)
    labels, probabilities = list(model.staged_predict(X)), list(model.staged_predict_proba(X))
    assert len(labels) == len(probabilities) == 6
    for n in range(6):
        assert np.array_equal(labels[n], model.at(n).predict(X))
        assert np.array_equal(probabilities[n], model.at(n).predict_proba(X))


@pytest.mark.parametrize("refine", [False, True])
def test_the_path_tells_what_every_atom_brought(three_classes, refine):
    X, y = three_classes
    model = ShareBoostClassifier(6, refine=refine).fit(X, y)
    path = model.path_
    assert path.sizes.tolist() == list(range(7))
    assert np.all(np.diff(path.losses) < 0)
    assert np.all(np.diff(path.objectives) < 0)
    assert np.all(path.gaps >= 0)
    assert np.all(path.objectives >= path.losses)
    for entry in path:
        scores = entry.scores(X)
        np.testing.assert_allclose(entry.loss, losses_of(scores, y).mean(), rtol=1e-12)
        assert len(entry.gains) == entry.size
        np.testing.assert_allclose(
            sum(entry.gains), path.losses[0] - entry.loss, rtol=1e-9, atol=1e-12
        )
    if not refine:
        assert np.all(np.diff(path.seconds) > 0)
        for before, after in zip(path, list(path)[1:], strict=False):
            assert after.atoms[:-1] == before.atoms


def test_a_path_is_indexed_by_size(three_classes):
    X, y = three_classes
    path = ShareBoostClassifier(4, include=[3]).fit(X, y).path_
    assert [path[n].size for n in (1, 2, 3, 4)] == [1, 2, 3, 4]
    for n in (0, 5):
        with pytest.raises(KeyError, match=f"no model of {n} atoms.*1 to 4"):
            path[n]


def test_an_entry_is_shown_on_one_line(three_classes):
    path = ShareBoostClassifier(2).fit(*three_classes).path_
    loss, objective = path.losses[2], path.objectives[2]
    assert repr(path[2]) == f"PathEntry(size 2, loss {loss:.4g}, objective {objective:.4g})"


# -- predictions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["margin", "log"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_labels_scores_and_probabilities_agree(loss, n_classes):
    X, y = random_problem(seed=1, k=n_classes)
    model = ShareBoostClassifier(4, loss=loss).fit(X, y)
    scores, p = model.predictor_.scores(X), model.predict_proba(X)
    assert np.array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])
    assert np.array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert p.min() >= 0
    decision = model.decision_function(X)
    if n_classes == 2:
        assert np.array_equal(decision, scores[:, 1] - scores[:, 0])
    else:
        assert np.array_equal(decision, scores)


def test_the_log_loss_has_softmax_probabilities(three_classes):
    X, y = three_classes
    model = ShareBoostClassifier(4, loss="log").fit(X, y)
    scores = np.exp(model.decision_function(X))
    np.testing.assert_allclose(
        model.predict_proba(X), scores / scores.sum(axis=1, keepdims=True), rtol=1e-12
    )


@pytest.mark.parametrize("loss", ["margin", "log"])
@pytest.mark.parametrize("k", [2, 3, 6])
def test_scores_are_the_best_answer_to_their_own_probabilities(loss, k):
    """Minimising the expected loss Σ_y p_y ℓ(f, y) gives the scores back, up to a shift."""
    scores = 1.5 * np.random.default_rng(k).standard_normal((8, k))
    probabilities = LOSSES[loss]().probabilities(scores)
    margin = float(loss == "margin")
    everyone = np.arange(k)

    def expected(f, p):
        return p @ losses_of(np.tile(f, (k, 1)), everyone, margin)

    for f, p in zip(scores, probabilities, strict=True):
        found = minimize(expected, np.zeros(k), args=(p,), tol=1e-12, options={"gtol": 1e-9}).x
        np.testing.assert_allclose(found - found.mean(), f - f.mean(), atol=2e-5)


def test_probabilities_of_the_margin_loss_keep_the_ranking():
    scores = np.random.default_rng(0).normal(0, 5, (200, 4))
    p = MarginLoss().probabilities(scores)
    order = scores.argsort(axis=1)
    assert np.all(np.diff(np.take_along_axis(p, order, axis=1), axis=1) > 0)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    extreme = MarginLoss().probabilities(np.array([[1e5, 0.0, -1e5], [-1e300, 0.0, 1e300]]))
    assert np.all(np.isfinite(extreme))
    np.testing.assert_allclose(extreme.max(axis=1), 1.0, rtol=1e-12)


def test_coefficients_are_in_the_units_of_the_input(three_classes):
    X, y = three_classes
    model = ShareBoostClassifier(5).fit(X, y)
    W = np.zeros((3, 8))
    W[:, [a.feature for a in model.atoms_]] = model.atom_coef_
    np.testing.assert_allclose(
        model.decision_function(X), X @ W.T + model.intercept_, rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("pool", ["columns", "stumps", "products"])
def test_scores_are_linear_in_the_transformed_columns(three_classes, pool):
    X, y = three_classes
    model = ShareBoostClassifier(5, pool=pool).fit(X, y)
    columns = model.transform(X)
    assert columns.shape == (len(X), 5)
    by_hand = {
        "columns": lambda a: X[:, a.feature],
        "stumps": lambda a: X[:, a.feature] <= a.value,
        "products": lambda a: X[:, a.first] * X[:, a.second],
    }
    expected = np.column_stack([by_hand[pool](a) for a in model.atoms_])
    np.testing.assert_allclose(columns, expected, rtol=1e-15)
    np.testing.assert_allclose(
        model.decision_function(X), columns @ model.atom_coef_.T + model.intercept_, rtol=1e-12
    )


# -- certificates ----------------------------------------------------------------------------------


def loss_at(B, y, W, margin=1.0):
    return losses_of(B @ W, y, margin).mean()


def mixed_norm(W):
    """‖W‖_{∞,1} with one row per column of the data."""
    return np.abs(W).max(axis=1).sum()


def best_of_norm(B, y, norm, k):
    """The smallest loss over ‖W‖_{∞,1} ≤ norm, by a general convex solver."""
    W = cvxpy.Variable((B.shape[1], k))
    F = B @ W
    terms = []
    for i, label in enumerate(y):
        shift = (np.arange(k) != label).astype(float)
        terms.append(cvxpy.log_sum_exp(F[i] + shift) - F[i, label])
    ball = cvxpy.sum(cvxpy.max(cvxpy.abs(W), axis=1)) <= norm
    cvxpy.Problem(cvxpy.Minimize(sum(terms) / len(y)), [ball]).solve(solver=cvxpy.CLARABEL)
    return W.value


@pytest.mark.parametrize("pool", ["columns", "stumps"])
def test_no_rival_of_the_norm_beats_the_excess_loss_bound(pool):
    X, y = random_problem(seed=2, m=40, d=4)
    model = ShareBoostClassifier(3, pool=pool).fit(X, y)
    written = columns_of(Columns() if pool == "columns" else Stumps(bins=8), X)
    if pool == "stumps":  # a subset of the pool: rivals over it are rivals over the pool
        written = written[:, ::3]
    B = np.column_stack([np.ones(len(y)), written])
    rng = np.random.default_rng(0)
    for n in range(4):
        small = model.at(n)
        loss = small.path_[n].loss
        for norm in (0.5, 3.0, 20.0):
            bound = small.excess_loss_bound(norm)
            for _ in range(20):
                W = rng.standard_normal((B.shape[1], 3)) * rng.exponential(size=(B.shape[1], 1))
                W *= norm / mixed_norm(W)
                assert loss - loss_at(B, y, W) <= bound
            if n == 1:
                W = best_of_norm(B, y, norm, 3)
                W *= min(1.0, norm / mixed_norm(W))
                assert loss - loss_at(B, y, W) <= bound + 1e-12


def test_with_every_column_in_no_rival_is_better(three_classes):
    X, y = three_classes
    model = ShareBoostClassifier(8, alpha=0, tol=1e-12).fit(X, y)
    assert 0 <= model.excess_loss_bound(10.0) <= 1e-4


def test_rounds_needed_is_theorem_2():
    assert ShareBoostClassifier.rounds_needed(2.0, 0.5) == 32
    assert ShareBoostClassifier.rounds_needed(1.0, 3.0) == 2
    assert ShareBoostClassifier.rounds_needed(0.0, 0.1) == 0


@pytest.mark.parametrize("seed", range(3))
def test_after_the_rounds_of_theorem_2_no_rival_is_better_by_epsilon(seed):
    X, y = random_problem(seed=seed, m=150, d=60)
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((60, 3)) * (rng.random((60, 1)) < 0.1)
    W *= 1.5 / mixed_norm(W)
    rival, epsilon = loss_at(unit(X), y, W), 0.4
    rounds = ShareBoostClassifier.rounds_needed(mixed_norm(W), epsilon)
    assert rounds == 23
    model = ShareBoostClassifier(rounds, fit_intercept=False, alpha=0).fit(X, y)
    assert model.path_.losses[rounds] <= rival + epsilon


# -- for people ------------------------------------------------------------------------------------


def test_describe_prints_names_weights_and_shares(three_classes):
    X, y = three_classes
    frame = pd.DataFrame(
        X, columns=["ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "oak"]
    )
    model = ShareBoostClassifier(3).fit(frame, np.array(["low", "mid", "top"])[y])
    out = io.StringIO()
    assert model.describe(file=out) is None
    text = out.getvalue()
    for name in (*model.get_feature_names_out(), *model.classes_):
        assert name in text
    for absent in set(frame.columns) - set(model.get_feature_names_out()):
        assert absent not in text
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        model.describe()
    assert printed.getvalue() == text
    first = model.path_[model.n_atoms_].gains
    assert f"{100 * first[0] / sum(first):.1f} %" in text


def test_importances_are_shares_of_the_gain(three_classes):
    X, y = three_classes
    model = ShareBoostClassifier(4).fit(X, y)
    gains = np.zeros(8)
    for before, after in zip(model.path_, list(model.path_)[1:], strict=False):
        gains[after.atoms[-1].feature] = before.loss - after.loss
    np.testing.assert_allclose(model.feature_importances_, gains / gains.sum(), rtol=1e-9)
    products = ShareBoostClassifier(2, pool="products").fit(X, y)
    assert set(np.flatnonzero(products.feature_importances_)) == reads(products.atoms_)
    nothing = ShareBoostClassifier(0).fit(X, y)
    assert not nothing.feature_importances_.any()


# -- corners ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", ["columns", "stumps", "products"])
def test_single_precision_without_intercept(three_classes, pool):
    X, y = three_classes
    single = ShareBoostClassifier(3, pool=pool, fit_intercept=False).fit(X.astype(np.float32), y)
    double = ShareBoostClassifier(3, pool=pool, fit_intercept=False).fit(X, y)
    assert not single.intercept_.any()
    np.testing.assert_allclose(single.path_.losses, double.path_.losses, rtol=1e-3)


@pytest.mark.parametrize("how", [{"include": ["b"]}, {"exclude": ["b", "c"]}], ids=str)
def test_names_reach_the_folds(three_classes, how):
    X, y = three_classes
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    named = ShareBoostClassifier(3, cv=3, **how).fit(frame, y)
    [(argument, names)] = how.items()
    numbers = {argument: ["abcdefgh".index(n) for n in names]}
    assert np.array_equal(
        named.cv_scores_, ShareBoostClassifier(3, cv=3, **numbers).fit(X, y).cv_scores_
    )


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_matrix])
def test_many_rows_of_sparse_single_precision_are_summed_well(make):
    m = 2_000_000
    X = make(np.ones((m, 1), dtype=np.float32))
    with Threads(1) as threads:
        bound = Columns(None).bind(X, np.full(m, 1 / m), threads)
        [(_, sums)] = bound.gradients(np.full((m, 1), 1 / m, dtype=np.float32))
    assert sums[0, 0] == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("size", [1e-25, 1e25])
def test_projection_takes_columns_of_any_size_in_single_precision(size):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3)).astype(np.float32)
    y = (X[:, 1] > 0).astype(int)
    X[:, 1] *= np.float32(size)
    assert ShareBoostClassifier(1, rule="projection").fit(X, y).atoms_ == [Column(1)]


def test_a_failed_first_fit_is_no_fit(three_classes):
    X, y = three_classes
    model = ShareBoostClassifier(include=["nothing"])
    with pytest.raises(ValueError, match="include"):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_the_interruption_of_a_refinement_names_the_size_kept(three_classes):
    X, y = three_classes

    def interrupt(state):
        if len(state.own.entries) == 3:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="keeps 5 atoms"):
        model = ShareBoostClassifier(5, refine=True, callbacks=[interrupt]).fit(X, y)
    assert model.n_atoms_ == 5


def test_costs_by_name():
    data = load_iris(as_frame=True)
    X, y = data.data, data.target
    costs = pd.Series([1.0, 2.0, 50.0, 60.0], index=X.columns)
    by_order = ShareBoostClassifier(4, costs=costs.to_numpy(), max_cost=10.0).fit(X, y)
    for given in (costs, costs[::-1], costs.to_dict()):
        assert (
            ShareBoostClassifier(4, costs=given, max_cost=10.0).fit(X, y).atoms_ == by_order.atoms_
        )
    assert ShareBoostClassifier(4, costs=costs[::-1], max_cost=10.0, cv=3).fit(X, y).n_atoms_ <= 2
    plain = pd.Series(costs.to_numpy())
    assert ShareBoostClassifier(4, costs=plain, max_cost=10.0).fit(X.to_numpy(), y).n_atoms_ == 2
    with pytest.raises(ValueError, match="costs names 'age', which is not a feature"):
        ShareBoostClassifier(2, costs={**costs.to_dict(), "age": 1.0}).fit(X, y)
    with pytest.raises(ValueError, match="X has no feature names"):
        ShareBoostClassifier(2, costs=costs).fit(X.to_numpy(), y)
