"""Choosing the size by any scorer, with rows of a group kept together."""

import re
from fractions import Fraction

import numpy as np
import pytest
from sklearn.metrics import (
    average_precision_score,
    f1_score,
    log_loss,
    make_scorer,
    roc_auc_score,
)
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from laconic import ShareBoostClassifier, TotalQBoostClassifier
from laconic.cli.console import majority_line, size_table
from laconic.estimators.priced import cross_validate_prices
from laconic.estimators.sizes import one_standard_error
from laconic.look.measures import majority, majority_rate, measures
from problems import random_problem


def rare_class(m=600, seed=0):
    """Few rows of class 1, which six columns tell something about."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 8))
    scores = X[:, :6] @ [1.0, 0.8, 0.7, 0.6, 0.5, 0.5] - 4.0
    return X, (rng.random(m) < 1 / (1 + np.exp(-scores))).astype(int)


def test_the_size_may_be_chosen_by_any_scorer():
    X, y = rare_class()
    folds = StratifiedKFold(3)
    model = ShareBoostClassifier(6, cv=folds, scoring="roc_auc").fit(X, y)
    for row, (fit, test) in zip(model.cv_scores_, folds.split(X, y), strict=True):
        fold = ShareBoostClassifier(6).fit(X[fit], y[fit])
        by_hand = [roc_auc_score(y[test], fold.at(n).decision_function(X[test])) for n in range(7)]
        np.testing.assert_allclose(row, by_hand, rtol=1e-12)
    assert model.n_atoms_ == one_standard_error(model.cv_scores_) > 0
    by_name = ShareBoostClassifier(6, cv=folds, scoring="accuracy").fit(X, y).cv_scores_
    np.testing.assert_allclose(by_name, ShareBoostClassifier(6, cv=folds).fit(X, y).cv_scores_)


def test_scorers_are_told_of_weights_or_refused():
    X, y = rare_class()
    weight = np.where(y == 1, 3.0, 1.0)
    weight[::50] = 0.0
    scored = ShareBoostClassifier(2, cv=3, scoring="accuracy").fit(X, y, sample_weight=weight)
    plain = ShareBoostClassifier(2, cv=3).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(scored.cv_scores_, plain.cv_scores_)

    def own(model, X, y):
        return model.score(X, y)

    assert ShareBoostClassifier(2, cv=3, scoring=own).fit(X, y).cv_scores_.shape == (3, 3)
    with pytest.raises(ValueError, match="scoring takes no sample_weight"):
        ShareBoostClassifier(2, cv=3, scoring=own).fit(X, y, sample_weight=weight)


def test_groups_of_rows_go_to_the_splitter():
    X, y = rare_class()
    rows = np.arange(len(y)) // 10
    model = ShareBoostClassifier(3, cv=GroupKFold(3)).fit(X, y, groups=rows)
    for row, (fit, test) in zip(model.cv_scores_, GroupKFold(3).split(X, y, rows), strict=True):
        assert not set(rows[fit]) & set(rows[test])
        fold = ShareBoostClassifier(3).fit(X[fit], y[fit])
        assert row[-1] == fold.score(X[test], y[test])


def test_scoring_and_groups_need_folds():
    X, y = rare_class()
    with pytest.raises(ValueError, match="scoring is for cross-validation; set cv too"):
        ShareBoostClassifier(2, scoring="roc_auc").fit(X, y)
    with pytest.raises(ValueError, match="groups is for cross-validation; set cv too"):
        ShareBoostClassifier(2).fit(X, y, groups=np.zeros(len(y)))
    with pytest.raises(ValueError, match="scoring='nonsense' is unknown; try 'accuracy', "):
        ShareBoostClassifier(2, cv=3, scoring="nonsense").fit(X, y)


NEAR = {"auc": "roc_auc", "AUC": "roc_auc", "log_loss": "neg_log_loss", "acuracy": "accuracy"}


@pytest.mark.parametrize(("given", "meant"), NEAR.items())
def test_a_scorer_that_is_not_known_gets_the_nearest_named(given, meant):
    X, y = rare_class(60)
    told = f"scoring='{given}' is unknown; did you mean '{meant}'?"
    with pytest.raises(ValueError, match=re.escape(told)):
        ShareBoostClassifier(2, cv=3, scoring=given).fit(X, y)
    with pytest.raises(ValueError, match=re.escape(told)):
        cross_validate_prices(TotalQBoostClassifier(), X, y, [0.1], 3, given)


def test_scorers_of_one_class_say_how_to_name_it():
    X, y = rare_class()
    words = np.where(y == 1, "yes", "no")
    for scoring, scorer in (
        ("f1", make_scorer(f1_score, pos_label="yes")),
        (
            "average_precision",
            make_scorer(
                average_precision_score,
                pos_label="yes",
                response_method=("decision_function", "predict_proba"),
            ),
        ),
    ):
        with pytest.raises(ValueError, match=f"scoring='{scoring}' cannot score.*make_sc") as told:
            ShareBoostClassifier(2, cv=3, scoring=scoring).fit(X, words)
        assert re.search(r"='yes'.*\), from sklearn.metrics, or scoring='", str(told.value))
        # The way out is one: the scores of the words are those of the numbers.
        by_word = ShareBoostClassifier(2, cv=3, scoring=scorer).fit(X, words)
        by_number = ShareBoostClassifier(2, cv=3, scoring=scoring).fit(X, y)
        np.testing.assert_array_equal(by_word.cv_scores_, by_number.cv_scores_)
    with pytest.raises(ValueError, match=r"; give scoring='f1_macro'$"):
        ShareBoostClassifier(2, cv=3, scoring="f1").fit(X, np.arange(len(X)) % 3)
    with pytest.raises(ValueError, match="scoring='r2' cannot score the labels of y: "):
        ShareBoostClassifier(2, cv=3, scoring="r2").fit(X, words)


def test_shares_of_the_classes_are_known():
    X, y = rare_class()
    weight = np.where(y == 1, 3.0, 1.0)
    model = ShareBoostClassifier(1, class_weight="balanced").fit(X, y, sample_weight=weight)
    share = weight[y == 1].sum() / weight.sum()
    np.testing.assert_allclose(model.class_prior_, [1 - share, share])
    assert majority(model) == 0
    assert majority_rate(model) == model.class_prior_[0]
    assert majority_rate(model, [0, 1, 1, 1]) == 0.25


def test_measures_apply_where_they_can():
    X, y = rare_class()
    two = ShareBoostClassifier(2).fit(X, y)
    found = measures(two, X, y)
    assert found["AUC"] == roc_auc_score(y, two.predict_proba(X)[:, 1])
    assert found["log loss"] == log_loss(y, two.predict_proba(X))
    assert set(measures(two, X[y == 0], y[y == 0])) == {"log loss"}
    assert measures(two, X, y + 5) == {}
    X, y = random_problem()
    assert set(measures(ShareBoostClassifier(2).fit(X, y), X, y)) == {"log loss"}


@pytest.mark.parametrize("scoring", [None, "roc_auc", lambda model, X, y: 1.0])
def test_the_table_says_what_always_saying_the_same_is_worth(scoring):
    X, y = rare_class()
    model = ShareBoostClassifier(2, cv=3, scoring=scoring).fit(X, y)
    table = size_table(model, X, y)
    share = f"{100 * np.mean(y == 0):.1f} %"
    line = f"Always predicting '0' is right on {share} of the test rows.\n"
    assert majority_line(model, y) == line
    heads = [str(column.header).replace("\n", " ") for column in table.columns]
    name = {None: "accuracy", "roc_auc": "roc_auc"}.get(scoring, "score")
    assert {f"cv {name}", "test AUC", "test log loss"} <= set(heads)
    assert "of the training rows" in majority_line(model, None)


def test_a_bar_goes_over_folds_and_prices(capsys):
    X, y = rare_class()
    model = TotalQBoostClassifier(3)
    quiet = cross_validate_prices(model, X, y, (0.1, 0.01), 3)
    assert capsys.readouterr().out == ""
    shown = cross_validate_prices(model, X, y, (0.1, 0.01), 3, verbose=1)
    bar = capsys.readouterr().out
    assert "choosing the price" in bar
    assert "6/6" in bar
    assert np.array_equal(quiet, shown)


@pytest.mark.filterwarnings("ignore:Only one class is present")
def test_folds_that_cannot_be_used_are_named():
    X, y = random_problem(m=120, d=3, k=2)
    model = ShareBoostClassifier(2, cv=GroupKFold(3))
    with pytest.raises(ValueError, match=r"needs the groups: call fit\(X, y, groups=\.\.\.\)"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="leaves only rows of class '0' to learn from"):
        model.fit(X, y, groups=np.where(y == 1, 0, 1 + np.arange(120) % 4))
    rare = np.zeros(120, dtype=int)
    rare[[0, 30, 31]] = 1
    few = ShareBoostClassifier(2, cv=KFold(5), scoring="roc_auc")
    with pytest.raises(ValueError, match=r"must be finite for fold 3 of cv, .* of 1 of 2 classes"):
        few.fit(X, rare)


def even_classes():
    return random_problem(m=60, d=3, k=2)


def cuts(n=60):
    rows = np.arange(n)
    return [(rows[rows % 3 != k], rows[rows % 3 == k]) for k in range(3)]


FORMS = {
    "lists": lambda rows: rows.tolist(),
    "masks": lambda rows: np.isin(np.arange(60), rows),
    "lists of truth values": lambda rows: np.isin(np.arange(60), rows).tolist(),
    "short numbers": lambda rows: rows.astype(np.uint8),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_folds_may_be_lists_or_masks(form):
    X, y = even_classes()
    plain = ShareBoostClassifier(2, cv=cuts()).fit(X, y)
    given = ((form(fit), form(test)) for fit, test in cuts())
    model = ShareBoostClassifier(2, cv=given).fit(X, y)
    assert np.array_equal(model.cv_scores_, plain.cv_scores_)
    pairs = [(form(fit), form(test)) for fit, test in cuts()]
    prices = [
        cross_validate_prices(TotalQBoostClassifier(3), X, y, [0.1], f) for f in (pairs, cuts())
    ]
    assert np.array_equal(*prices)


NO_FOLDS = {
    "none": ([], "cv has no folds"),
    "no test rows": ([(range(40), [])], "no fold of cv has test rows"),
    "nothing to learn": ([([], range(60))], "fold 1 of cv leaves no rows to learn from"),
    "too many": ([(range(40), range(40, 70))], "fold 1 of cv names row 69, but X has 60 rows"),
    "short mask": ([(range(40), [True] * 9)], "fold 1 of cv has a mask of 9 rows, but X has 60"),
    "no pairs": ([1, 2, 3], "cv must be .* pairs of rows"),
    "no rows": ([(range(40), ["a"])], "fold 1 of cv must give rows as numbers or as a mask"),
}


@pytest.mark.parametrize(("cv", "told"), NO_FOLDS.values(), ids=NO_FOLDS)
def test_folds_that_are_none_are_told(cv, told):
    X, y = even_classes()
    with pytest.raises(ValueError, match=told):
        ShareBoostClassifier(2, cv=cv).fit(X, y)
    with pytest.raises(ValueError, match=told):
        cross_validate_prices(TotalQBoostClassifier(3), X, y, [0.1], cv)


def test_test_rows_without_weight_are_told():
    X, y = even_classes()
    weight = (np.arange(60) < 40).astype(float)
    with pytest.raises(ValueError, match="no fold of cv has test rows with a positive weight"):
        ShareBoostClassifier(2, cv=[(range(40), range(40, 60))]).fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("keywords", [False, True])
def test_a_scorer_of_your_own_gets_the_weights(keywords):
    X, y = even_classes()
    weight = 1.0 + np.arange(60) % 2

    def named(model, X, y, sample_weight=None):
        return model.score(X, y, sample_weight)

    def any_keyword(model, X, y, **more):
        return model.score(X, y, **more)

    scoring = any_keyword if keywords else named
    own = ShareBoostClassifier(2, cv=3, scoring=scoring).fit(X, y, sample_weight=weight)
    known = ShareBoostClassifier(2, cv=3).fit(X, y, sample_weight=weight)
    assert own.cv_scores_ == pytest.approx(known.cv_scores_)
    with pytest.raises(ValueError, match="scoring takes no sample_weight"):
        ShareBoostClassifier(2, cv=3, scoring=lambda m, X, y: 1.0).fit(X, y, sample_weight=weight)


NO_NUMBERS = [(None, "None"), ({"a": 1.0}, "a dict"), (np.ones(2), "a ndarray"), ("1", "a str")]


@pytest.mark.parametrize(("answer", "told"), NO_NUMBERS)
def test_a_scorer_must_give_one_number(answer, told):
    X, y = even_classes()
    match = f"scoring must return one number; .* returned {told} for fold 1 of cv"
    with pytest.raises(ValueError, match=match):
        ShareBoostClassifier(2, cv=3, scoring=lambda m, X, y: answer).fit(X, y)
    with pytest.raises(ValueError, match=match):
        cross_validate_prices(TotalQBoostClassifier(3), X, y, [0.1], 3, lambda m, X, y: answer)


def test_numbers_of_any_kind_are_scores():
    X, y = even_classes()
    for one in (1, True, np.float32(1), np.array(1.0), Fraction(1)):
        model = ShareBoostClassifier(2, cv=3, scoring=lambda m, X, y, one=one: one).fit(X, y)
        assert (model.cv_scores_ == 1.0).all()


def test_fewer_folds_are_no_help_where_no_fold_has_a_score():
    X, y = even_classes()
    for run in (
        ShareBoostClassifier(2, cv=3, scoring=lambda m, X, y: np.nan).fit,
        lambda X, y: cross_validate_prices(
            TotalQBoostClassifier(3), X, y, [0.1], 3, lambda m, X, y: np.nan
        ),
    ):
        with pytest.raises(ValueError, match="must be finite for fold 1 of cv, not nan") as told:
            run(X, y)
        assert "fewer folds" not in str(told.value)


def test_a_fold_that_cannot_be_scored_is_named():
    X, y = random_problem(m=90, k=3)
    parts = np.array_split(np.argsort(y, kind="stable"), 3)
    folds = [(np.r_[parts[0], parts[1], parts[2]], parts[0]), (np.arange(90), parts[1])]
    told = r"scoring='neg_log_loss' cannot score fold 1 of cv, .* of \d of 3 classes.*fewer folds"
    with pytest.raises(ValueError, match=told):
        ShareBoostClassifier(2, cv=folds, scoring="neg_log_loss").fit(X, y)


def test_a_model_without_atoms_is_told():
    """Nothing can be learned of noise, or by accuracy of a rare class."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 3)), (np.arange(200) % 20 == 0).astype(int)
    with pytest.warns(UserWarning, match='chooses no atom.*scoring="roc_auc"'):
        model = ShareBoostClassifier(3, cv=3).fit(X, y)
    assert model.n_atoms_ == 0
