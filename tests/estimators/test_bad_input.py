"""Bad input has a defined answer: an error that names the argument, or a model that holds."""

import json
import re
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from laconic import ErrorClumpingClassifier, Predictor, ShareBoostClassifier
from laconic.files.store import digest, write_archive
from laconic.model.atoms import Column, Stump
from laconic.pools import Columns, Stumps

POOLS = ["columns", "stumps", "products", "rules", "hinges"]


def fit(X, y, sample_weight=None, **settings):
    return ShareBoostClassifier(**{"max_atoms": 3, **settings}).fit(X, y, sample_weight)


def refusal(call, *arguments, **settings):
    """The words of the `ValueError` that a call ends with; nothing if it succeeds."""
    try:
        call(*arguments, **settings)
    except ValueError as error:
        return str(error)
    return ""


@pytest.fixture
def X(three_classes):
    return three_classes[0]


@pytest.fixture
def y(three_classes):
    return three_classes[1]


# -- X ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", ["columns", "products", "hinges"])
def test_missing_values_are_refused_where_no_atom_can_ask_for_them(X, y, pool):
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="X contains NaN"):
        fit(X, y, pool=pool)


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_infinities_are_refused(X, y, pool, value, make):
    X[3, 2] = value
    with pytest.raises(ValueError, match="X contains infinity"):
        fit(make(X), y, pool=pool)


def test_missing_values_and_infinities_are_refused_when_predicting(X, y):
    model = fit(X, y)
    for value, word in ((np.nan, "NaN"), (np.inf, "infinity")):
        X[0, 0] = value
        for method in (model.predict, model.predict_proba, model.transform):
            with pytest.raises(ValueError, match=word):
                method(X)
        with pytest.raises(ValueError, match=word):
            next(model.staged_predict(X))


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((150,), "Expected 2D array"),
        ((1, 150, 8), "dim 3"),
        ((150, 0), "0 feature"),
        ((149, 8), "inconsistent numbers of samples.*149, 150"),
    ],
)
def test_wrong_shapes_are_refused(y, shape, words):
    with pytest.raises(ValueError, match=words):
        fit(np.ones(shape), y)


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match="0 sample"):
        fit(np.ones((0, 3)), [])


def test_text_is_refused_where_no_atom_can_ask_for_it(y):
    with pytest.raises(ValueError, match="column 'colour' of X holds text"):
        fit(pd.DataFrame({"colour": ["red"] * 150}), y)


def test_products_need_two_columns(X, y):
    with pytest.raises(ValueError, match="at least two"):
        fit(X[:, :1], y, pool="products")


@pytest.mark.parametrize("width", [7, 9])
def test_rows_of_another_width_are_refused(X, y, width):
    model = fit(X, y)
    other = np.ones((4, width))
    for method in (model.predict, model.predict_proba, model.decision_function, model.transform):
        with pytest.raises(ValueError, match=f"X has {width} features.*expecting 8"):
            method(other)
    with pytest.raises(ValueError, match=f"X must have 8 columns.*{width}"):
        model.predictor_.scores(other)


def test_frames_of_another_width_or_order_are_refused():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_normal(60), "b": rng.choice(["u", "v"], 60)})
    model = fit(frame, frame["b"] == "u", pool="stumps")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a"]])
    for other in (frame[["a"]], frame.assign(c=1.0)):
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(other)


# -- y and weights ---------------------------------------------------------------------------------


@pytest.mark.parametrize("label", [0, "only", True])
def test_one_class_is_refused(X, label):
    with pytest.raises(ValueError, match=f"at least two classes.*one class, {label!r}$"):
        fit(X, np.full(150, label))


def test_one_class_of_positive_weight_is_refused(X, y):
    with pytest.raises(ValueError, match=r"at least two classes with positive weight.*one class"):
        fit(X, y, sample_weight=(y == 1).astype(float))


def test_labels_that_are_no_classes_are_refused(X, y):
    with pytest.raises(ValueError, match="continuous"):
        fit(X, X[:, 0])
    with pytest.raises(ValueError, match="1d array"):
        fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="y has no label in"):
        fit(X, np.where(y == 0, np.nan, y))
    with pytest.raises(ValueError, match="requires y"):
        fit(X, None)


def test_impossible_weights_are_refused(X, y):
    for value, words in ((-1.0, "Negative"), (np.nan, "NaN"), (np.inf, "infinity")):
        weight = np.ones(150)
        weight[7] = value
        for settings in ({}, {"cv": 3}, {"early_stopping": True}):
            with pytest.raises(
                ValueError, match=f"(?s){words}.*sample_weight|sample_weight.*{words}"
            ):
                fit(X, y, sample_weight=weight, **settings)
    with pytest.raises(ValueError, match=r"sample_weight.*149"):
        fit(X, y, sample_weight=np.ones(149))


@pytest.mark.parametrize("make", [ShareBoostClassifier, ErrorClumpingClassifier])
def test_names_for_labels_and_weights_say_where_they_serve(X, y, make):
    for name, remedy in (("label", "give the column itself"), ("y.npy", "give np.load(file)")):
        with pytest.raises(ValueError, match=rf"y='{name}' does not .*{re.escape(remedy)}"):
            make().fit(X, name)
        with pytest.raises(ValueError, match=rf"sample_weight='{name}' .*{re.escape(remedy)}"):
            make().fit(X, y, sample_weight=name)
        with pytest.raises(ValueError, match=rf"y='{name}' does not .*{re.escape(remedy)}"):
            make().fit(X, y).score(X, name)


def test_all_weights_zero_are_refused(X, y):
    with pytest.raises(ValueError, match=r"(?i)weight"):
        fit(X, y, sample_weight=np.zeros(150))


def test_class_weights_must_be_positive(X, y):
    for weight in (0.0, -1.0):
        with pytest.raises(ValueError, match="class_weight must be positive"):
            fit(X, y, class_weight={0: weight, 1: 1, 2: 1})


def test_huge_weights_do_not_overflow(X, y):
    plain, huge = fit(X, y, alpha=1e-6), fit(X, y, np.full(len(y), 1e308))
    assert huge.alpha_ == 1e-6
    assert huge.atoms_ == plain.atoms_
    np.testing.assert_allclose(huge.atom_coef_, plain.atom_coef_, rtol=1e-9)


def test_what_a_pool_lacks_is_named(X, y):
    class Hollow:
        def bind(self, X, weight, threads):
            return object()

    with pytest.raises(TypeError, match=r"Hollow\.bind must return.*has no 'n_atoms'"):
        fit(X, y, pool=Hollow())


# -- degenerate data -------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("rule", ["gradient", "projection", "column"])
def test_constant_columns_alone_leave_the_intercept(y, pool, rule):
    X = np.full((150, 3), [1.0, -4.0, 0.0])
    with pytest.warns(UserWarning, match="no atom helps"):
        model = fit(X, y, pool=pool, rule=rule)
    assert model.atoms_ == []
    shares = np.bincount(y) / 150
    assert np.all(model.predict(X) == shares.argmax())


@pytest.mark.parametrize("pool", ["columns", "products", "hinges"])
@pytest.mark.parametrize("value", [0.0, 5.0])
def test_a_constant_column_is_never_chosen_while_another_helps(X, y, pool, value):
    constant = np.insert(X, 0, value, axis=1)
    constant = np.insert(constant, 1, value, axis=1)
    model = fit(constant, y, max_atoms=8, pool=pool)
    helped = model.path_.sizes[model.path_.losses < model.path_.losses[0] - 1e-6].max()
    assert helped == 8
    assert not any(set(a.reads) <= {0, 1} for a in model.atoms_)


def test_nothing_is_left_after_the_last_column_that_helps(X, y):
    model = fit(np.insert(X, 0, 2.0, axis=1), y, max_atoms=20)
    assert Column(0) not in model.atoms_
    assert model.n_atoms_ == 8
    assert "no admissible atom" in model.status_


@pytest.mark.parametrize("pool", ["columns", "stumps"])
def test_of_equal_columns_the_first_is_chosen(X, y, pool):
    plain = fit(X, y, max_atoms=6, pool=pool)
    copies = fit(np.hstack([X, X, X]), y, max_atoms=6, pool=pool)
    assert copies.atoms_ == plain.atoms_
    np.testing.assert_allclose(copies.atom_coef_, plain.atom_coef_, rtol=1e-9)


RULES = ["gradient", "projection", "step", "column", "refit"]


@pytest.mark.parametrize("rule", RULES)
def test_by_every_rule_the_first_of_equal_columns_is_chosen(X, y, rule):
    copies = fit(np.hstack([X[:, :3], X[:, :3]]), y, rule=rule)
    assert sorted(copies.atoms_) == [Column(0), Column(1), Column(2)]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("alpha", [0, 1e-6, 1e-2])
def test_a_copy_of_a_chosen_column_never_adds(X, y, rule, alpha):
    copies = fit(np.hstack([X[:, :3], X[:, :3]]), y, max_atoms=20, rule=rule, alpha=alpha)
    assert copies.n_atoms_ == 3
    assert {atom.feature % 3 for atom in copies.atoms_} == {0, 1, 2}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("refine", [False, True])
def test_nor_does_a_combination_of_chosen_columns(X, y, dtype, refine):
    X = X[:, :3] / np.abs(X[:, :3]).max(axis=0)
    sums = np.column_stack([X, X[:, 0] - X[:, 1] / 2, 3 - X[:, 2], X.sum(axis=1)]).astype(dtype)
    model = fit(sums, y, max_atoms=20, refine=refine)
    assert model.n_atoms_ == 3
    assert np.all(np.diff(model.path_.losses) < 0)


def test_many_copies_do_not_hide_a_column_that_helps(X, y):
    """With a strong penalty the copies have the larger gradients, and still nothing to add."""
    best = fit(X, y, max_atoms=1, alpha=0.1).atoms_[0].feature
    copies = np.hstack([X, np.repeat(X[:, [best]], 50, axis=1)])
    model, plain = fit(copies, y, max_atoms=8, alpha=0.1), fit(X, y, max_atoms=8, alpha=0.1)
    assert model.atoms_ == plain.atoms_


def test_duplicate_rows_are_rows_of_double_weight(X, y):
    settings = {"alpha": 1e-3, "tol": 1e-14}
    once, twice = fit(X, y, **settings), fit(np.vstack([X, X]), np.tile(y, 2), **settings)
    assert once.atoms_ == twice.atoms_
    np.testing.assert_allclose(twice.atom_coef_, once.atom_coef_, rtol=1e-6)


@pytest.mark.parametrize("pool", ["columns", "stumps"])
def test_a_row_alone_in_its_class_is_enough(X, y, pool):
    y[0] = 3
    model = fit(X, y, max_atoms=8, pool=pool)
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert np.all(np.isfinite(model.predict_proba(X)))


@pytest.mark.parametrize("pool", POOLS)
def test_two_rows_are_enough(pool):
    X = np.array([[1.0, -2.0], [3.0, 4.0]])
    model = fit(X, ["a", "b"], pool=pool)
    assert model.predict(X).tolist() == ["a", "b"]


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", ["margin", "log"])
def test_separable_data_without_a_penalty_end_cleanly(pool, dtype, loss, recwarn):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 4)).astype(dtype)
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + 2 * (X[:, 2] > 0)
    X = np.column_stack([X, (X[:, 0] * X[:, 1] > 0), X[:, 2] > 0]).astype(dtype)
    model = fit(X, y, max_atoms=6, pool=pool, loss=loss, alpha=0)
    for entry in model.path_:
        assert np.all(np.isfinite(entry.weights))
        assert np.all(np.isfinite(entry.intercept))
        assert np.isfinite(entry.loss)
        assert 0 <= entry.certificate.gap <= entry.objective
    if pool != "products":
        assert model.score(X, y) == 1.0
        assert model.path_.losses[-1] < 1e-2
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]


@pytest.mark.parametrize("magnitude", [1e-300, 1e-30, 1e30, 1e150])
def test_the_magnitude_of_the_data_does_not_matter(X, y, magnitude):
    model, plain = fit(X * magnitude, y), fit(X, y)
    assert model.atoms_ == plain.atoms_
    np.testing.assert_allclose(model.path_.losses, plain.path_.losses, rtol=1e-9)
    assert np.array_equal(model.predict(X * magnitude), plain.predict(X))


# -- sizes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", POOLS)
def test_no_atoms_leave_the_intercept(X, y, pool):
    model = fit(X, y, max_atoms=0, pool=pool)
    assert model.n_atoms_ == 0
    assert model.atom_coef_.shape == (3, 0)
    assert np.all(model.predict(X) == np.bincount(y).argmax())
    assert model.transform(X).shape == (150, 0)
    assert model.predict(sparse.csr_matrix(X)).shape == (150,)
    log = fit(X, y, max_atoms=0, pool=pool, loss="log", tol=1e-12)
    np.testing.assert_allclose(log.predict_proba(X[:1])[0], np.bincount(y) / 150, atol=1e-6)


def test_neither_atoms_nor_intercept_leave_nothing(X, y):
    model = fit(X, y, max_atoms=0, fit_intercept=False)
    assert not model.decision_function(X).any()


def test_more_atoms_than_exist_end_the_path_at_what_exists(X, y):
    model = fit(X, y, max_atoms=100)
    assert model.path_.sizes.tolist() == list(range(9))
    assert sorted(model.atoms_) == [Column(i) for i in range(8)]
    assert "no admissible atom" in model.status_
    grouped = fit(X, y, max_atoms=100, groups=[0, 0, 0, 1, 1, 2, 2, 2])
    assert grouped.n_atoms_ == 3


def test_everything_excluded_leaves_the_intercept(X, y):
    assert fit(X, y, exclude=list(range(8))).atoms_ == []


def test_a_size_that_the_path_does_not_have_is_refused(X, y):
    model = fit(X, y)
    for n in (4, -1):
        with pytest.raises(ValueError, match="sizes 0 to 3"):
            model.at(n)


# -- settings --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["loss", "rule", "penalty", "scale"])
def test_unknown_names_are_refused_and_the_known_ones_told(X, y, name):
    known = {"loss": "margin", "rule": "gradient", "penalty": "linf_l1", "scale": "std"}[name]
    with pytest.raises(ValueError, match=f"{name}.*'{known}'.*'nonsense'"):
        fit(X, y, **{name: "nonsense"})


def test_an_unknown_pool_is_refused_and_the_known_ones_told(X, y):
    with pytest.raises(ValueError, match=r"pool must be.*'columns'.*'stumps'.*'products'.*'trees'"):
        fit(X, y, pool="trees")


@pytest.mark.parametrize("pool", [3, None, object(), np.zeros(2), {"columns"}])
def test_a_pool_object_must_bind(X, y, pool):
    with pytest.raises(TypeError, match=r"pool must be.*bind"):
        fit(X, y, pool=pool)


@pytest.mark.parametrize(
    "settings",
    [
        {"max_atoms": -1},
        {"max_atoms": 2.5},
        {"alpha": -1e-9},
        {"alpha": np.nan},
        {"beta": 0.5},
        {"tol": 0},
        {"max_cost": 0},
        {"validation_fraction": 1.0},
        {"n_iter_no_change": 0},
        {"fit_intercept": "yes"},
        {"include": "ash"},
        {"exclude": 3},
        {"callbacks": len},
        {"class_weight": "fair"},
        {"cv": "many"},
        {"costs": 1.0},
        {"groups": 3},
    ],
)
def test_settings_out_of_range_are_refused_by_name(X, y, settings):
    [name] = settings
    with pytest.raises((ValueError, TypeError), match=f"'{name}' parameter"):
        fit(X, y, **settings)


def test_a_callback_that_cannot_be_called_is_refused_by_name(X, y):
    with pytest.raises(TypeError, match="callbacks"):
        fit(X, y, callbacks=[3])


def test_the_size_is_chosen_in_one_way(X, y):
    with pytest.raises(ValueError, match=r"cv.*early_stopping"):
        fit(X, y, cv=3, early_stopping=True)


def test_early_stopping_needs_rows_of_every_class_to_fit(X, y):
    y[0] = 3  # one row, which either part may get
    settings = {"early_stopping": True, "validation_fraction": 0.5}
    answers = [refusal(fit, X, y, random_state=seed, **settings) for seed in range(12)]
    refused = [words for words in answers if words]
    assert 0 < len(refused) < 12
    assert all("has every row of a class; lower validation_fraction" in w for w in refused)


# -- groups ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([[0, 1, 2, 3], [], [4, 5, 6, 7]], "group 1 of groups is empty"),
        ([[0, 1, 2], [3, 4, 5, 6]], "each of the 8 features exactly once"),
        ([[0, 1, 2, 3], [3, 4, 5, 6, 7]], "each of the 8 features exactly once"),
        ([[0, 1, 2, 3, 4, 5, 6, 8]], "each of the 8 features exactly once"),
        ([[0, 1, 2, 3, 4, 5, 6, -1]], "each of the 8 features exactly once"),
        ([[0, 1, 2, 3, 4, 5, 6, 7.5]], "groups"),
        ([["a", "b"], list("cdefgh")], "groups"),
        ([[0, 1], [2, 3], 4, 5, 6, 7], "groups"),
        ([0, 0, 1], "one label per feature"),
        ([], "one label per feature"),
        (np.zeros((8, 2)), "groups"),
    ],
)
def test_groups_must_name_every_feature_once(X, y, groups, words):
    with pytest.raises((ValueError, TypeError), match=words):
        fit(X, y, groups=groups)


@pytest.mark.parametrize("pool", ["stumps", "products"])
def test_groups_are_of_columns(X, y, pool):
    with pytest.raises(ValueError, match='groups need pool="columns"'):
        fit(X, y, pool=pool, groups=[0] * 8)


# -- costs, include, exclude -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        ([1.0] * 7, "costs must have one number per feature.*8.*7"),
        ([[1.0] * 8], "costs must have one number per feature"),
        ([1.0] * 7 + [-1.0], "costs must be positive"),
        ([1.0] * 7 + [0.0], "costs must be positive"),
        ([1.0] * 7 + [np.nan], "costs must be positive and finite"),
        ([1.0] * 7 + [np.inf], "costs must be positive and finite"),
        (["cheap"] * 8, "costs"),
    ],
)
def test_costs_must_be_one_positive_number_per_feature(X, y, costs, words):
    with pytest.raises(ValueError, match=words):
        fit(X, y, costs=costs)


@pytest.mark.parametrize("argument", ["include", "exclude"])
def test_unknown_features_are_refused_by_name(X, y, argument):
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    with pytest.raises(ValueError, match=f"{argument} names 'z', which is not a feature"):
        fit(frame, y, **{argument: ["z"]})
    with pytest.raises(ValueError, match=f"{argument} names 'a', but X has no feature names"):
        fit(X, y, **{argument: ["a"]})
    for item in (8, -1, Column(8), Column(-1)):
        with pytest.raises(ValueError, match=f"{argument}: .*{re.escape(str(item))}"):
            fit(X, y, **{argument: [item]})
    for item in (1.7, None, True, Stump(0, 0.0), (0, 1)):
        with pytest.raises((TypeError, ValueError), match=f"{argument}: .*feature"):
            fit(X, y, **{argument: [item]})


def test_an_included_feature_must_mean_one_atom(X, y):
    with pytest.raises(ValueError, match=r"include: 0 stands for .* atoms.*record"):
        fit(X, y, pool="stumps", include=[0])
    with pytest.raises(ValueError, match=r"include: 0 stands for 7 atoms.*record"):
        fit(X, y, pool="products", include=[0])


def test_an_atom_cannot_be_both_in_and_out(X, y):
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    for include, exclude in (([2], [2]), ([Column(2)], ["c"]), (["c", "a"], [5, 0])):
        with pytest.raises(ValueError, match=r"include.*exclude|exclude.*include"):
            fit(frame, y, include=include, exclude=exclude)


def test_included_atoms_must_fit_the_largest_size_and_the_cap(X, y):
    with pytest.raises(ValueError, match=r"include.*max_atoms|max_atoms.*include"):
        fit(X, y, max_atoms=2, include=[0, 1, 2])
    with pytest.raises(ValueError, match=r"include.*max_cost|max_cost.*include"):
        fit(X, y, include=[0, 1], max_cost=1.5)
    assert fit(X, y, include=[0, 1, 2]).atoms_ == [Column(0), Column(1), Column(2)]


# -- files -----------------------------------------------------------------------------------------


@pytest.fixture
def saved(X, y, tmp_path):
    model = fit(X, np.array(["ant", "bee", "cat"])[y], max_atoms=2).predictor_
    path = tmp_path / "model.laconic"
    model.save(path)
    return model, path


def same(one, other, X):
    return (
        np.array_equal(one.scores(X), other.scores(X))
        and np.array_equal(one.classes, other.classes)
        and one.names() == other.names()
        and one.cost() == other.cost()
        and one.loss == other.loss
    )


def test_a_truncated_file_is_refused(saved):
    _, path = saved
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 97), len(whole) - 1, len(whole) - 22]:
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=f"{path.name}.*(damaged|readable)"):
            Predictor.load(path)


@pytest.mark.parametrize("mask", [0xFF, 0x01])
def test_a_flipped_byte_is_refused_or_harmless(saved, X, mask):
    """Harmless: zip archives hold bytes without meaning, such as the time of day."""
    model, path = saved
    whole = path.read_bytes()
    directory = whole.index(b"PK\x01\x02")
    positions = [*range(0, directory, 5), *range(directory, len(whole))]
    refused = 0
    for at in positions:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :])
        words = refusal(Predictor.load, path)
        if words:
            assert path.name in words
            refused += 1
        else:
            assert same(model, Predictor.load(path), X)
    assert refused > len(positions) / 2


def test_every_byte_of_an_array_counts(saved):
    model, path = saved
    whole = path.read_bytes()
    start = whole.index(np.ascontiguousarray(model.weights).tobytes())
    for position in range(start, start + model.weights.nbytes):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(ValueError, match="damaged"):
            Predictor.load(path)


def test_changed_weights_are_refused_even_in_a_sound_archive(saved):
    _, path = saved
    with np.load(path) as file:
        arrays = dict(file)
    arrays["weights"] = arrays["weights"] + 1
    with open(path, "wb") as file:
        np.savez(file, **arrays)
    with pytest.raises(ValueError, match=r"damaged.*digest"):
        Predictor.load(path)


def test_other_files_are_refused(tmp_path, X, y):
    path = tmp_path / "model.laconic"
    contents = {
        "empty": b"",
        "text": b"not a model",
        "zeros": bytes(1000),
        "half a zip": b"PK\x03\x04" + bytes(100),
    }
    for content in contents.values():
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"{path.name}.*readable Laconic file"):
            Predictor.load(path)
    with open(path, "wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ValueError, match="readable Laconic file"):
        Predictor.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.npy", b"not an array")
    with pytest.raises(ValueError, match="readable Laconic file"):
        Predictor.load(path)
    with open(path, "wb") as file:
        np.savez(file, header=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="readable Laconic file"):
        Predictor.load(path)
    with pytest.raises(IsADirectoryError):
        Predictor.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        Predictor.load(tmp_path / "nowhere")


def test_an_array_too_large_for_the_file_is_refused(tmp_path):
    path = tmp_path / "model.laconic"
    described = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1125899906842624,), }"
    member = b"\x93NUMPY\x01\x00v\x00" + described.ljust(117) + b"\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.npy", member)
    with pytest.raises(ValueError, match="readable Laconic file"):
        Predictor.load(path)


def test_a_checkpoint_is_not_a_model_nor_a_model_a_checkpoint(saved, X, y, tmp_path):
    _, path = saved
    with pytest.raises(ValueError, match="'laconic predictor' file, not a 'laconic checkpoint'"):
        fit(X, y, checkpoint=path)
    fit(X, y, checkpoint=tmp_path / "fit")
    with pytest.raises(ValueError, match="'laconic checkpoint' file, not a 'laconic predictor'"):
        Predictor.load(tmp_path / "fit")


@pytest.mark.parametrize(
    "change",
    [
        {"header": {"atoms": "trees"}},
        {"header": {"loss": "nonsense"}},
        {"header": {"n_features": 1}},
        {"header": {"n_features": "8"}},
        {"header": {"feature_names": ["too", "few"]}},
        {"arrays": {"weights": np.zeros((5, 3))}},
        {"arrays": {"weights": np.zeros(6)}},
        {"arrays": {"weights": np.full((2, 3), np.nan)}},
        {"arrays": {"intercept": np.zeros(2)}},
        {"arrays": {"classes": np.array(["ant", "bee"])}},
        {"arrays": {"map_feature": np.array([0, 99])}},
        {"arrays": {"map_feature": np.array([0, -1])}},
        {"arrays": {"map_other": np.array([0, 1])}},
        {"without": "weights"},
        {"without": "classes"},
        {"without": "map_feature"},
        {"without": "loss"},
        {"without": "n_features"},
    ],
    ids=str,
)
def test_a_sealed_file_of_wrong_contents_is_refused_when_loaded(saved, change):
    """A digest proves that nothing was damaged, not that what was written makes sense."""
    _, path = saved
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(str(arrays.pop("header")))["header"]
    header |= change.get("header", {})
    arrays |= change.get("arrays", {})
    for part in (header, arrays):
        part.pop(change.get("without"), None)
    write_archive(path, "predictor", header, arrays)
    with pytest.raises(ValueError, match=path.name):
        Predictor.load(path)


def test_a_sealed_file_without_a_header_is_refused(tmp_path):
    path = tmp_path / "model.laconic"
    for header in ([], "laconic", None, 7):
        sealed = json.dumps({"header": header, "sha256": digest(header, {})})
        with open(path, "wb") as file:
            np.savez(file, header=np.array(sealed))
        with pytest.raises(ValueError, match=path.name):
            Predictor.load(path)


def test_a_file_of_another_version_is_refused(saved, monkeypatch):
    _, path = saved
    monkeypatch.setattr("laconic.files.store.READABLE", (1, 3))
    with pytest.raises(ValueError, match="format version 2, not 1 or 3"):
        Predictor.load(path)


def test_labels_that_are_no_numbers_or_strings_cannot_be_saved(X, y, tmp_path):
    model = fit(X, y).predictor_
    model.classes = np.array([("a", 1), ("b", 2), None], dtype=object)
    with pytest.raises(TypeError, match="class labels"):
        model.save(tmp_path / "model.laconic")
    assert list(tmp_path.iterdir()) == []


# -- checkpoints -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"X": "one entry"},
        {"X": "fewer rows"},
        {"X": "single precision"},
        {"y": "one label"},
        {"sample_weight": "uneven"},
        {"pool": "stumps"},
        {"loss": "log"},
        {"rule": "projection"},
        {"alpha": 1e-3},
        {"scale": "std"},
        {"fit_intercept": False},
        {"groups": [0, 0, 1, 1, 2, 2, 3, 3]},
        {"costs": np.arange(1.0, 9.0)},
        {"include": [7]},
        {"exclude": [0]},
        {"tol": 1e-7},
        {"class_weight": "balanced"},
    ],
    ids=str,
)
def test_a_checkpoint_of_other_data_or_settings_is_refused(X, y, tmp_path, change):
    path = tmp_path / "fit"
    fit(X, y, checkpoint=path)
    settings, weight = dict(change), None
    what = settings.pop("X", None)
    if what == "one entry":
        X = X.copy()
        X[77, 3] += 1e-9
    if what == "fewer rows":
        X, y = X[:-1], y[:-1]
    if what == "single precision":
        X = X.astype(np.float32)
    if settings.pop("y", None):
        y = y.copy()
        y[5] = (y[5] + 1) % 3
    if settings.pop("sample_weight", None):
        weight = np.linspace(1, 2, len(y))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=f"{path.name}.*other data or settings"):
        fit(X, y, sample_weight=weight, checkpoint=path, **settings)
    assert path.read_bytes() == before


def test_a_file_that_is_no_checkpoint_is_refused_and_kept(X, y, tmp_path):
    path = tmp_path / "fit"
    for other in (b"a letter to a friend", bytes(1000), b"PK\x03\x04" + bytes(100)):
        path.write_bytes(other)
        with pytest.raises(ValueError, match=f"{path.name}.*readable Laconic file"):
            fit(X, y, checkpoint=path)
        assert path.read_bytes() == other


def test_a_checkpoint_of_format_version_1_is_refused_and_kept(X, y, tmp_path):
    path = tmp_path / "fit"
    write_archive(path, "checkpoint", {"fingerprint": "0"}, {})
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"older version of Laconic.*delete it to start again"):
        fit(X, y, checkpoint=path)
    assert path.read_bytes() == before


def test_a_checkpoint_in_a_folder_that_is_not_there_is_refused(X, y, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        fit(X, y, checkpoint=tmp_path / "nowhere" / "fit")


def test_what_stumps_would_take_is_said(X, y):
    hole = X.copy()
    hole[3, 1] = np.nan
    with pytest.raises(ValueError, match=r'NaN.*"stumps" and "rules" take missing values'):
        fit(hole, y)
    frame = pd.DataFrame({"a": X[:, 0], "town": ["Rome"] * len(y)})
    with pytest.raises(ValueError, match=r"column 'town' of X holds text.*stumps"):
        fit(frame, y)


def test_a_pool_class_is_not_a_pool(X, y):
    with pytest.raises(TypeError, match=r"pass Stumps\(\)"):
        fit(X, y, pool=Stumps)


@pytest.mark.parametrize("absent", [None, float("nan"), pd.NA])
def test_rows_without_a_label_are_counted(X, y, absent):
    labels = np.array(["abc"[c] for c in y], dtype=object)
    labels[[1, 4]] = absent
    with pytest.raises(ValueError, match=f"y has no label in 2 of {len(y)} rows; leave those"):
        fit(X, labels)


def test_labels_of_different_types_are_told(X, y):
    labels = np.array([c if c else "zero" for c in y.tolist()], dtype=object)
    with pytest.raises(ValueError, match=r"of different types \(int, str\); make them all text"):
        fit(X, labels)


@pytest.mark.parametrize("pool", ["columns", "stumps"])
@pytest.mark.parametrize("dtype", [object, str])
def test_text_in_an_array_is_refused_in_words(X, y, pool, dtype):
    text = np.where(X > 0, "high", "low").astype(dtype)
    with pytest.raises(ValueError, match="X is an array that holds text"):
        fit(text, y, pool=pool)


@pytest.mark.parametrize(("dtype", "huge"), [(np.float64, 1e200), (np.float32, 1e35)])
def test_values_too_large_to_add_up_need_a_scale(X, y, dtype, huge):
    X = X.astype(dtype)
    X[3, 1] = huge
    with pytest.raises(ValueError, match=r"column 1 of X holds values up to 1e\+.*scale='max'"):
        fit(X, y, pool=Columns(scale=None))
    assert np.isfinite(fit(X, y, pool=Columns(scale="max")).predict_proba(X)).all()


def test_products_beyond_single_precision_predict(X, y):
    large = (X * 1e25).astype(np.float32)
    model = fit(large, y, pool="products")
    same = fit(X.astype(np.float32), y, pool="products")
    np.testing.assert_allclose(model.predict_proba(large), same.predict_proba(X), rtol=1e-3)
