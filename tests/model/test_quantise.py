"""Quantising a predictor: what it changes, what it says, and what it refuses."""

from io import StringIO

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.preprocessing import StandardScaler

from laconic import Predictor, ShareBoostClassifier, TotalQBoostClassifier
from laconic.losses import decide
from laconic.model.atoms import ColumnsMap
from laconic.model.integer_predictor import IntegerPredictor
from laconic.model.program import program_of
from laconic.pools import Patches, Pieces, Stumps
from problems import random_problem

DATA = {"digits": load_digits, "iris": load_iris, "cancer": load_breast_cancer}
POOLS = {
    "columns": "columns",
    "products": "products",
    "stumps": "stumps",
    "balls": Pieces(),
    "soft balls": Pieces(soft=True),
    "patches": Patches(None, 40, 3, 3, 1.5),
}


@pytest.fixture(scope="module")
def fitted():
    """Return a function that fits a pool to a data set, each pair once."""
    done = {}

    def fit(name, pool):
        if (name, pool) not in done:
            X, y = (part[:900] for part in DATA[name](return_X_y=True))
            if name == "cancer" and "ball" in pool:  # one scale serves all coordinates of a ball
                X = StandardScaler().fit_transform(X)
            done[name, pool] = ShareBoostClassifier(6, pool=POOLS[pool]).fit(X, y).predictor_, X, y
        return done[name, pool]

    return fit


def real_scores(predictor, X):
    """Return the scores that integers stand for: all, or the difference of two."""
    scores = predictor.scores(X)
    if program_of(predictor).n_outputs < scores.shape[1]:
        return np.diff(scores, axis=1)
    return scores


# -- accuracy ----------------------------------------------------------------------------------

PAIRS = [(n, p) for n in DATA for p in POOLS if p != "patches" or n == "digits"]
# Largest error of a score at 16 bits, in parts of the largest score. Masks of patches have 8 bits,
# and heights of soft balls have 12.
CLOSE = {"columns": 1e-4, "products": 1e-4, "stumps": 1e-4, "balls": 1e-3, "soft balls": 2e-3,
         "patches": 5e-3}  # fmt: skip


@pytest.mark.parametrize(("name", "pool"), PAIRS)
def test_16_bits_are_close_to_the_scores(fitted, name, pool):
    predictor, X, y = fitted(name, pool)
    quantised = predictor.quantise(X, bits=16, y=y)
    exact = real_scores(predictor, X)
    gap = np.abs(quantised.scores(X) * quantised.unit - exact).max(axis=1) / np.abs(exact).max()
    # A row on the sphere of a hard ball may be on its other side.
    assert np.mean(gap > CLOSE[pool]) <= (0.005 if pool == "balls" else 0.0)
    assert quantised.change.labels <= 0.005
    assert abs(np.subtract(*quantised.change.error)) <= 0.002


@pytest.mark.parametrize(("name", "pool"), PAIRS)
def test_8_bits_change_the_error_by_a_point_at_most(fitted, name, pool):
    predictor, X, y = fitted(name, pool)
    kinds = ["float", "uint8", "int8", "int16"] if name == "digits" else ["float"]
    for inputs in kinds:
        before, after = predictor.quantise(X, inputs=inputs, y=y).change.error
        assert abs(after - before) <= 0.01


def test_whole_rows_of_stumps_lose_nothing_but_digits_of_weights():
    """Every threshold between whole numbers has a code of its own."""
    X, y = load_digits(return_X_y=True)
    predictor = ShareBoostClassifier(8, pool="stumps").fit(X, y).predictor_
    for inputs in ("float", "uint8", "int8", "int16"):
        quantised = predictor.quantise(X, bits=16, inputs=inputs)
        assert np.array_equal(quantised.predict(X), predictor.predict(X))


def test_one_row_is_coded_well():
    X = np.array([[0.37, -1234.5]])
    predictor = Predictor(
        ColumnsMap([0, 1]), np.eye(2), np.zeros(2), np.arange(2), "scores", [1] * 2, 2
    )
    quantised = predictor.quantise(X, bits=16)
    assert np.allclose(quantised.scores(X) * quantised.unit, X, rtol=1e-3)


# -- what it reports ---------------------------------------------------------------------------


def test_change_counts_labels_and_errors():
    X, y = load_digits(return_X_y=True)
    predictor = ShareBoostClassifier(5).fit(X, y).predictor_
    quantised = predictor.quantise(X, y=y)
    before, after = predictor.predict(X), quantised.predict(X)
    assert quantised.change.rows == len(X)
    assert quantised.change.labels == np.mean(before != after)
    assert quantised.change.error == (np.mean(before != y), np.mean(after != y))
    assert "of the labels of the 1,797 rows given" in str(quantised.change)
    assert "Their error goes from" in str(quantised.change)
    plain = predictor.quantise(X).change
    assert plain.error is None
    assert "error" not in str(plain)


def test_description_says_how_numbers_are_stored_and_that_nothing_overflows():
    frame, y = load_iris(return_X_y=True, as_frame=True)
    quantised = ShareBoostClassifier(2, pool="products").fit(frame, y).predictor_.quantise(frame)
    out = StringIO()
    quantised.describe(out)
    text = " ".join(out.getvalue().split())
    for words in (
        "always in", "integers of 8 bits", "float, scaled to 8 bits", "count as its nearest end",
        "One unit of a score is", "of the labels of the 150 rows given", "No number below can",
        "score: at most", "product of two inputs: at most", "in 32 bits", "rescaled product",
        "Ranges of the inputs:", "petal width (cm): 0 to", "in steps of",
    ):  # fmt: skip
        assert words in text
    assert repr(quantised).startswith("IntegerPredictor(2 atoms (products)")
    assert "8 bits, inputs 'float'" in repr(quantised)


def test_proof_lists_every_bound(fitted):
    kinds = []
    for name, pool in (("digits", "patches"), ("iris", "soft balls")):
        predictor, X, _ = fitted(name, pool)
        quantised = predictor.quantise(X)
        assert quantised.proof().splitlines()[1:] == [f"  {bound}" for bound in quantised.bounds()]
        kinds.append({bound.what for bound in quantised.bounds()})
    responses = {f"{word} response" for word in ("shifted", "masked", "rescaled")}
    responses.add("response of a template")
    assert kinds == [{"score", "pixel"} | responses, {"score", "height", "squared distance"}]


def test_many_inputs_are_not_all_listed(fitted):
    predictor, X, _ = fitted("digits", "balls")
    quantised = predictor.quantise(X, inputs="uint8")
    assert "… and 44 more" in quantised.details()
    assert "uint8, as they are" in quantised.summary()
    assert quantised.range_of(5) == "0 to 255"


# -- two classes -------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["margin", "log", "exponential", "logistic", "squared_hinge"])
def test_two_classes_have_one_integer_score_and_close_probabilities(loss):
    X, y = load_breast_cancer(return_X_y=True)
    predictor = ShareBoostClassifier(4, loss=loss).fit(X, y).predictor_
    quantised = predictor.quantise(X, bits=16)
    scores = quantised.scores(X)
    assert scores.shape == (len(X), 1)
    assert scores.dtype == np.int64
    assert np.array_equal(quantised.predict(X), (scores[:, 0] > 0).astype(int))
    assert np.abs(quantised.predict_proba(X) - predictor.predict_proba(X)).max() < 1e-3
    assert np.allclose(quantised.predict_proba(X).sum(axis=1), 1.0)


def test_two_scores_of_which_not_only_the_difference_counts_stay_two():
    X, y = random_problem(m=100, d=4, k=2)
    fitted = ShareBoostClassifier(2, loss="log").fit(X, y).predictor_
    predictor = Predictor(
        fitted.map, fitted.weights, fitted.intercept, fitted.classes, "one_vs_rest", [1, 1], 4
    )
    quantised = predictor.quantise(X, bits=16)
    assert quantised.scores(X).shape == (100, 2)
    assert np.abs(quantised.predict_proba(X) - predictor.predict_proba(X)).max() < 1e-3


def test_three_classes_have_close_probabilities():
    X, y = load_iris(return_X_y=True)
    predictor = ShareBoostClassifier(3).fit(X, y).predictor_
    for bits, close in ((8, 0.1), (16, 1e-3)):
        found = predictor.quantise(X, bits=bits).predict_proba(X)
        assert np.abs(found - predictor.predict_proba(X)).max() < close


# -- rows of all kinds -------------------------------------------------------------------------


def test_sparse_rows_frames_and_lists_give_the_same_model():
    pd = pytest.importorskip("pandas")
    X, y = random_problem(m=90, d=4)
    X = np.where(X < 0, 0.0, X)
    predictor = ShareBoostClassifier(3).fit(pd.DataFrame(X, columns=list("abcd")), y).predictor_
    wanted = predictor.quantise(X).scores(X)
    for rows in (sparse.csr_matrix(X), sparse.csc_matrix(X), pd.DataFrame(X, columns=list("abcd")),
                 X.tolist()):  # fmt: skip
        assert np.array_equal(predictor.quantise(rows).scores(rows), wanted)


def test_scores_do_not_depend_on_how_many_rows_there_are():
    X, y = random_problem(m=5000, d=4)
    quantised = ShareBoostClassifier(3).fit(X, y).predictor_.quantise(X)
    assert np.array_equal(quantised.scores(X)[7:9], quantised.scores(X[7:9]))
    assert quantised.scores(X[:0]).shape == (0, 3)
    assert decide(quantised.scores(X[:1])).shape == (1,)


def test_missing_values_of_stumps():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 100, (300, 3)).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    y = np.isnan(X[:, 0]) ^ (X[:, 1] > 50)
    predictor = ShareBoostClassifier(5, pool="stumps").fit(X, y).predictor_
    for inputs in ("float", "uint8", "int8", "int16"):
        quantised = predictor.quantise(X, inputs=inputs, bits=16)
        assert np.array_equal(quantised.predict(X), predictor.predict(X))
        reserved = {"float": 2**15 - 1, "uint8": 255, "int8": 127, "int16": 2**15 - 1}[inputs]
        assert quantised.integers.inputs.missing == reserved
        assert (f"A missing value is {reserved}." in quantised.summary()) == (inputs != "float")


def test_unknown_categories_answer_no():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (200, 2)).astype(float)
    y = (X[:, 0] == 3) | (X[:, 1] == 5)
    pool = Stumps(categorical=[0, 1])
    predictor = ShareBoostClassifier(3, pool=pool).fit(X, y).predictor_
    new = np.array([[77.0, 3.0], [-1.0, -1.0], [3.0, 1e9], [1e9, 5.0]])
    for inputs in ("float", "uint8", "int8", "int16"):
        quantised = predictor.quantise(X, inputs=inputs)
        assert np.array_equal(quantised.predict(X), predictor.predict(X))
        assert np.array_equal(quantised.predict(new), predictor.predict(new))


# -- what it refuses ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole():
    """A predictor of whole numbers from 0 to 99, and its rows."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 100, (80, 2)).astype(float)
    return ShareBoostClassifier(2).fit(X, X[:, 0] > X[:, 1]).predictor_, X


def put(X, value):
    changed = X.copy()
    changed[3, 1] = value
    return changed


REFUSED = {
    "bits": (lambda X: X, {"bits": 7}, "bits must be 8 or 16, not 7"),
    "bits of text": (lambda X: X, {"bits": "8"}, "bits must be 8 or 16, not '8'"),
    "inputs": (lambda X: X, {"inputs": "uint4"}, "inputs must be one of .*, not 'uint4'"),
    "parts": (lambda X: X + 0.5, {"inputs": "uint8"}, "X must hold whole numbers.*\"float\""),
    "above": (lambda X: put(X, 256), {"inputs": "uint8"}, "feature 1 of X goes from 0 to 256, but "
              "uint8 goes from 0 to 255; use another type"),
    "below": (lambda X: put(X, -1), {"inputs": "uint8"}, "from -1 to 99, but uint8"),
    "small type": (lambda X: put(X, 128), {"inputs": "int8"}, "int8 goes from -128 to 127"),
    "large": (lambda X: put(X, 40_000), {"inputs": "int16"}, "int16 goes from -32768 to 32767"),
    "infinite": (lambda X: put(X, np.inf), {}, "X holds infinite values"),
    "infinite raw": (lambda X: put(X, -np.inf), {"inputs": "int16"}, "X holds infinite values"),
    "beyond float32": (lambda X: put(X, 1e39), {}, "feature 1 of X holds numbers beyond 3.4e.38"),
    "no rows": (lambda X: X[:0], {}, "X has no rows; give training rows"),
    "narrow rows": (lambda X: X[:, :1], {}, "X must have 2 columns"),
    "labels": (lambda X: X, {"y": [1, 2]}, r"y must have one label per row \(80\), not \(2,\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_in_words(whole, name):
    predictor, X = whole
    rows, settings, words = REFUSED[name]
    with pytest.raises(ValueError, match=words):
        predictor.quantise(rows(X), **settings)


@pytest.mark.parametrize("inputs", ["float", "uint8", "int16"])
def test_missing_values_are_refused_where_there_is_no_code_for_them(whole, inputs):
    predictor, X = whole
    quantised = predictor.quantise(X, inputs=inputs)
    assert quantised.integers.inputs.missing is None
    for rows in (put(X, np.nan), np.full((1, 2), np.nan)):
        with pytest.raises(ValueError, match=r"X holds missing values, but .* no code for them"):
            quantised.predict(rows)


def test_the_reserved_code_cannot_also_be_a_number():
    X = np.array([[255.0], [0.0], [np.nan], [7.0]] * 20)
    predictor = ShareBoostClassifier(2, pool="stumps").fit(X, np.isnan(X[:, 0])).predictor_
    words = r"uint8 goes from 0 to 254 \(255 is reserved for missing values\)"
    with pytest.raises(ValueError, match=words):
        predictor.quantise(X, inputs="uint8")
    assert np.array_equal(predictor.quantise(X, inputs="int16").predict(X), predictor.predict(X))


@pytest.mark.parametrize(
    ("inputs", "most", "wider"),
    [("uint8", 254, "int16"), ("int8", 126, "int16"), ("float", 253, "bits=16")],
)
def test_categories_beyond_the_codes_are_refused(inputs, most, wider):
    X = np.repeat(np.arange(400.0), 3)[:, None]
    pool = Stumps(categorical=[0])
    predictor = ShareBoostClassifier(1, pool=pool).fit(X, X[:, 0] == 390).predictor_
    with pytest.raises(ValueError, match=rf"codes from 0 to 390, but .* 0 to {most};.*{wider}"):
        predictor.quantise(X, inputs=inputs)
    for settings in ({"inputs": "int16"}, {"bits": 16}):
        quantised = predictor.quantise(X, **settings)
        assert np.array_equal(quantised.predict(X), predictor.predict(X))


def test_rows_that_are_not_whole_are_refused_at_prediction_too(whole):
    predictor, X = whole
    quantised = predictor.quantise(X, inputs="uint8")
    with pytest.raises(ValueError, match="X must hold whole numbers"):
        quantised.predict(X + 0.25)


def test_balls_far_from_the_rows_are_refused():
    X, y = random_problem(m=200, d=3)
    predictor = ShareBoostClassifier(2, pool="pieces").fit(X, y).predictor_
    with pytest.raises(ValueError, match="far from all rows of X; give the rows"):
        predictor.quantise(1e-9 * X)


def test_intercepts_that_dwarf_the_weights_are_refused():
    weights, intercept = np.full((1, 2), 1e-20), np.array([1e20, 0.0])
    predictor = Predictor(ColumnsMap([0]), weights, intercept, np.arange(2), "scores", [1], 1)
    with pytest.raises(ValueError, match="do not fit 64-bit integers"):
        predictor.quantise(np.ones((3, 1)))


def test_an_integer_predictor_is_not_quantised_again(whole):
    predictor, X = whole
    quantised = predictor.quantise(X)
    assert isinstance(quantised, IntegerPredictor)
    with pytest.raises(TypeError, match="has integers already; quantise the one it was made from"):
        quantised.quantise(X, bits=16)


def test_ensembles_of_scikit_learn_cannot_be_quantised():
    from sklearn.tree import DecisionTreeClassifier

    X, y = load_breast_cancer(return_X_y=True)
    trees = TotalQBoostClassifier(pool=DecisionTreeClassifier(max_depth=1), max_rounds=2)
    with pytest.raises(TypeError, match="scikit-learn classifiers cannot be exported"):
        trees.fit(X, y).predictor_.quantise(X)
