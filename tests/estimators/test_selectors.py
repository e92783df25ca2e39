"""scikit-learn's feature selectors over every estimator."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.fixes import parse_version

from laconic import (
    ErrorClumpingClassifier,
    HolePunchingClassifier,
    ShareBoostClassifier,
    TotalQBoostClassifier,
)
from laconic.pools import Patches, Pieces

TRUTH = [7, 9, 11]
UNITS = 10.0 ** np.array([6, -6, 3, -3, 0, 5, -5, 6, 2, -6, 4, -1])
MAKE = {
    "dense": np.asarray,
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_matrix,
    "frame": lambda X: pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])]),
}
BOOSTERS = {
    "share": ShareBoostClassifier(6),
    "share-l1": ShareBoostClassifier(6, penalty="linf_l1", alpha=1e-3),
    "total": TotalQBoostClassifier(12, price=1e-3),
    "total-columns": TotalQBoostClassifier(6, price=0.0, pool="columns", loss="logistic"),
}
boosters = pytest.mark.parametrize("name", BOOSTERS)
kinds = pytest.mark.parametrize("kind", MAKE)


@pytest.fixture(scope="module")
def rows():
    """400 rows of 12 columns in very different units; two classes live in three of them."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 12))
    X[rng.random(X.shape) < 0.1] = 0.0
    y = (X[:, TRUTH] @ [2.0, -2.0, 1.5] + 0.5 * rng.standard_normal(400) > 0).astype(int)
    return X * UNITS, y


def support(selector):
    return np.flatnonzero(selector.get_support()).tolist()


def most_important(selector):
    """The feature that a selector's model found most important."""
    importance = selector.estimator_.feature_importances_
    kept = range(12) if isinstance(selector, SelectFromModel) else support(selector)
    return kept[int(np.argmax(importance))]


def read_by(model):
    """Features that the deployable model reads."""
    return model.predictor_.map.features().tolist()


# -- weights belong to atoms -----------------------------------------------------------------------


@boosters
def test_boosters_have_no_weights_of_features(rows, name):
    model = BOOSTERS[name]
    assert not hasattr(model, "coef_")
    model.fit(*rows)
    assert not hasattr(model, "coef_")
    with pytest.raises(AttributeError, match=r"no coef_.*atom_coef_.*feature_importances_"):
        _ = model.coef_
    assert model.atom_coef_.shape == (len(model.intercept_), model.transform(rows[0]).shape[1])
    np.testing.assert_array_equal(model.atom_coef_, model.predictor_.weights.T)


# -- selectors -------------------------------------------------------------------------------------


@boosters
@kinds
def test_recursive_elimination_finds_the_truth(rows, name, kind):
    X, y = rows
    selector = RFE(BOOSTERS[name], n_features_to_select=3).fit(MAKE[kind](X), y)
    assert support(selector) == TRUTH
    assert selector.transform(MAKE[kind](X)).shape == (400, 3)
    assert selector.score(MAKE[kind](X), y) > 0.85


@boosters
@kinds
def test_selecting_from_a_model_keeps_what_it_reads(rows, name, kind):
    X, y = MAKE[kind](rows[0]), rows[1]
    selector = SelectFromModel(BOOSTERS[name], threshold=1e-12).fit(X, y)
    assert support(selector) == read_by(selector.estimator_)
    assert set(TRUTH) <= set(support(selector))
    kept = selector.transform(X)
    expected = rows[0][:, support(selector)]
    np.testing.assert_array_equal(kept.toarray() if sparse.issparse(kept) else kept, expected)
    if kind == "frame":
        names = [f"f{i}" for i in support(selector)]
        assert selector.get_feature_names_out().tolist() == names
        framed = SelectFromModel(BOOSTERS[name], threshold=1e-12).set_output(transform="pandas")
        assert framed.fit_transform(X, y).columns.tolist() == names


@boosters
def test_the_default_threshold_keeps_features_above_their_even_share(rows, name):
    X, y = rows
    selector = SelectFromModel(BOOSTERS[name]).fit(X, y)
    importance = selector.estimator_.feature_importances_
    assert selector.threshold_ == pytest.approx(1 / 12)
    assert support(selector) == np.flatnonzero(importance >= 1 / 12).tolist()
    assert support(selector) == TRUTH


@boosters
@pytest.mark.parametrize("kind", ["dense", "csc", "frame"])
def test_cross_validated_elimination_keeps_the_truth(rows, name, kind):
    X, y = MAKE[kind](rows[0]), rows[1]
    selector = RFECV(BOOSTERS[name], step=3, cv=3).fit(X, y)
    assert set(TRUTH) <= set(support(selector))


@pytest.mark.parametrize("name", ["share", "total"])
@pytest.mark.parametrize("kind", ["dense", "csr", "frame"])
def test_sequential_selection_finds_the_truth(rows, name, kind):
    X, y = MAKE[kind](rows[0][:, 5:]), rows[1]
    small = {"share": ShareBoostClassifier(3), "total": TotalQBoostClassifier(5)}[name]
    selector = SequentialFeatureSelector(small, n_features_to_select=3, cv=2).fit(X, y)
    assert support(selector) == [f - 5 for f in TRUTH]


# -- every feature that is read has a share --------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        ShareBoostClassifier(12, refine=True),
        ShareBoostClassifier(12, alpha=1e-2, penalty="l1"),
        ShareBoostClassifier(8, pool="stumps"),
        ShareBoostClassifier(5, pool="products"),
        ShareBoostClassifier(2, pool=Pieces(20, 3)),
        ShareBoostClassifier(3, groups=[0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]),
        ShareBoostClassifier(3, pool=Patches((3, 4), 4, 2, 2, 1.0)),
        ShareBoostClassifier(6, include=[0, 1], alpha=10.0),
        TotalQBoostClassifier(30, price=0.0, hot_start=10),
        TotalQBoostClassifier(12, pool="products", loss="log", price=0.0),
    ],
    ids=lambda m: f"{type(m).__name__[:5]}-{m.pool if isinstance(m.pool, str) else 'own'}",
)
def test_a_feature_has_a_share_exactly_if_it_is_read(rows, model):
    X, y = rows
    model.fit(X / UNITS, y)
    for size in model.path_.sizes[1:]:
        smaller = model.at(size)
        importance = smaller.feature_importances_
        assert np.flatnonzero(importance > 1e-12).tolist() == read_by(smaller)
        assert np.flatnonzero(importance).tolist() == read_by(smaller)
        assert importance.sum() == pytest.approx(1.0)


def test_an_atom_that_gains_nothing_still_counts(rows):
    """A column of zeros is read where it is always in, though it lowers no loss."""
    X, y = rows[0].copy(), rows[1]
    X[:, [0, 3]] = 0.0
    alone = ShareBoostClassifier(2, include=[0, 3], fit_intercept=False).fit(X, y)
    assert alone.path_[2].gains == (0.0, 0.0)
    np.testing.assert_array_equal(alone.feature_importances_, np.isin(np.arange(12), [0, 3]) / 2)
    beside = ShareBoostClassifier(4, include=[0, 3], fit_intercept=False).fit(X, y)
    importance = beside.feature_importances_
    assert np.flatnonzero(importance).tolist() == read_by(beside)
    assert 1e-12 < importance[0] == importance[3] < 1e-6


def test_features_that_no_classifier_of_the_pool_uses_have_none(rows):
    X, y = rows
    model = TotalQBoostClassifier(3, pool=DecisionTreeClassifier(max_depth=1), price=0.0)
    selector = SelectFromModel(model, threshold=1e-12).fit(X, y)
    split = {int(atom.classifier.tree_.feature[0]) for atom in selector.estimator_.atoms_}
    assert support(selector) == sorted(split)


# -- weights of rows -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def halves(rows):
    """Labels of which every second one obeys another column; weights of either half alone."""
    X, y = rows
    other = np.arange(400) % 2 == 1
    y = np.where(other, X[:, 4] > 0, y).astype(int)
    return X, y, {True: other.astype(float), False: (~other).astype(float)}


def follows(selector, X, y, weights, pick=lambda fitted: fitted):
    """Whether the most important feature is that of the rows that count."""
    found = {of: most_important(pick(selector.fit(X, y, sample_weight=weights[of])))
             for of in (True, False)}  # fmt: skip
    return found[True] == 4 and found[False] in TRUTH


@pytest.mark.parametrize("name", ["share", "total"])
def test_selectors_pass_weights_of_rows_on(halves, name):
    assert follows(SelectFromModel(BOOSTERS[name]), *halves)
    assert follows(RFE(BOOSTERS[name], n_features_to_select=3), *halves)


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.9"),
    reason="pipelines pass weights to selectors since scikit-learn 1.9",
)
@pytest.mark.parametrize("name", ["share", "total"])
def test_weights_of_rows_reach_selectors_in_pipelines(halves, name):
    with sklearn.config_context(enable_metadata_routing=True):
        asking = sklearn.base.clone(BOOSTERS[name]).set_fit_request(sample_weight=True)
        scoring = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        for selector in (
            SelectFromModel(asking),
            RFE(asking, n_features_to_select=3),
            RFECV(asking, step=4, cv=2, scoring=scoring),
        ):
            scale = StandardScaler().set_fit_request(sample_weight=False)
            last = LogisticRegression().set_fit_request(sample_weight=False)
            pipeline = Pipeline([("scale", scale), ("select", selector), ("last", last)])
            assert follows(pipeline, *halves, pick=lambda fitted: fitted["select"])


# -- the other estimators --------------------------------------------------------------------------


@kinds
def test_error_clumping_is_a_linear_model_for_selectors(rows, kind):
    X, y = MAKE[kind](rows[0] / UNITS), rows[1]
    model = ErrorClumpingClassifier()
    assert support(RFE(model, n_features_to_select=3).fit(X, y)) == TRUTH
    assert support(SelectFromModel(model, max_features=3).fit(X, y)) == TRUTH
    assert set(TRUTH) <= set(support(RFECV(model, step=3, cv=2).fit(X, y)))
    weight = np.where(np.arange(400) % 2, 1.0, 0.5)
    RFE(model, n_features_to_select=3).fit(X, y, sample_weight=weight)


def test_hole_punching_says_that_it_has_no_importances(rows):
    X, y = rows[0] / UNITS, rows[1]
    model = HolePunchingClassifier(max_holes=2)
    for selector in (SelectFromModel(model), RFE(model, n_features_to_select=3)):
        with pytest.raises(
            (ValueError, AttributeError),
            match="HolePunchingClassifier should have `coef_` or `feature_importances_`",
        ):
            selector.fit(X, y).get_support()
    outside = RFE(model, n_features_to_select=3, importance_getter="estimator_.coef_").fit(X, y)
    assert support(outside) == TRUTH
    chosen = SequentialFeatureSelector(model, n_features_to_select=1, cv=2).fit(X[:, 7:10], y)
    assert len(support(chosen)) == 1


def test_a_selector_stands_before_another_model(rows):
    X, y = rows
    pipeline = make_pipeline(SelectFromModel(ShareBoostClassifier(3)), StandardScaler(),
                             LogisticRegression()).fit(X, y)  # fmt: skip
    assert support(pipeline[0]) == TRUTH
    assert pipeline.score(X, y) > 0.9


def test_even_shares_are_at_least_their_mean():
    """All features of a ball have the same share, which is the default threshold."""
    X, y = load_wine(return_X_y=True)
    selector = SelectFromModel(ShareBoostClassifier(2, pool="pieces")).fit(X, y)
    assert selector.get_support().all()
