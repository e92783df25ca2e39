"""Numbers near the ends of what a float can hold: the right answer, or an error in words.

A power of two changes no digit of a number. So a model that does not depend on the units of X is
the same for X times a power of two, to the last bits, until something overflows or vanishes.
"""

import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from laconic import (
    ErrorClumpingClassifier,
    HolePunchingClassifier,
    Predictor,
    ShareBoostClassifier,
    TotalQBoostClassifier,
)
from laconic.model.atoms import ProductsMap
from laconic.pools import Bumps, Columns, Hinges, Patches, Pieces

# About 1e-321, 1e-308, 1e-160, 1e-30, 1e30, 1e150, 1e160, 1e300 and 1e308; and for float32.
POWERS = {
    np.float64: [-1066, -1022, -531, -100, 100, 498, 531, 996, 1023],
    np.float32: [-133, -66, 66, 126, 127],
}
# What an error may say. Anything else would be wrong: no value of X is missing or infinite.
SOUND = re.compile(
    r"(column|columns|X) .*(overflow|underflow|vanish|too large for sums|single precision).*"
    r"(MaxAbsScaler|power of ten|scale='max')"
)
POOLS = {
    "columns": lambda scale: "columns",
    "groups": lambda scale: Columns(scale, [[0, 1], [2, 3], [4, 5]]),
    "stumps": lambda scale: "stumps",
    "products": lambda scale: "products",
    "rules": lambda scale: "rules",
    "pieces": lambda scale: Pieces(12, 3),
    "soft": lambda scale: Pieces(12, 3, soft=True),
    "bumps": lambda scale: Bumps(12, 3),
    "hinges": lambda scale: Hinges(12, 3, scale=scale),
    "relative": lambda scale: Pieces(12, 3, relative=True),
    "patches": lambda scale: Patches((3, 2), 3, 2, 1, 1.5, scale=scale),
}
FITS = [
    *(("share", pool, "max", True) for pool in POOLS),
    *(("total", pool, "max", pool != "columns") for pool in POOLS),
    *(("share", pool, scale, False) for pool in ("columns", "products") for scale in ("std", None)),
    ("total", "columns", None, True),
    ("share", "patches", None, False),
    ("share", "groups", "std", False),
    ("share", "pieces", "max", False),
]


def made(booster, pool, scale, intercept):
    settings = {"pool": POOLS[pool](scale), "scale": scale, "fit_intercept": intercept}
    if booster == "share":
        return ShareBoostClassifier(2, **settings)
    return TotalQBoostClassifier(2, price=1e-4, **settings)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    X = np.round(1024 * rng.uniform(0.1, 1, (60, 6))) / 1024 * rng.choice([-1, 1], (60, 6))
    y = (X[:, 0] - X[:, 2] + X[:, 1] * X[:, 3] + 0.3 * rng.standard_normal(60) > 0).astype(int)
    return X, y


def times(X, power, columns=slice(None)):
    """X times a power of two, in its own precision; some columns or all."""
    X = X.copy()
    X[:, columns] = np.ldexp(X[:, columns], power)
    assert np.isfinite(X).all()
    return X


def quiet(call, *arguments):
    """The answer, or the words of the `ValueError`; warnings of overflow are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.filterwarnings("ignore", "no atom|stopped at a gap|lbfgs failed")
        try:
            return call(*arguments), ""
        except ValueError as error:
            return None, str(error)


def reloaded(model, path):
    model.predictor_.save(path / "model.laconic")
    return Predictor.load(path / "model.laconic")


def assert_sound(model, X, path):
    """Finite parts and scores, and the same answers from the file."""
    for part in (model.predictor_.weights, model.predictor_.intercept):
        assert np.isfinite(part).all()
    scores, words = quiet(model.decision_function, X)
    assert not words
    assert np.isfinite(scores).all()
    again = reloaded(model, path)
    np.testing.assert_array_equal(quiet(again.scores, X)[0], model.predictor_.scores(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    return scores


# -- fits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("booster", "pool", "scale", "intercept"), FITS)
def test_fits_are_the_same_in_other_units_or_say_why_not(
    rows, booster, pool, scale, intercept, tmp_path, capfd
):
    for dtype, powers in POWERS.items():
        X, y = rows[0].astype(dtype), rows[1]
        plain = made(booster, pool, scale, intercept).fit(X, y)
        expected = plain.decision_function(X)
        for power in powers:
            for columns in (slice(None), slice(2, 3)):
                Z = times(X, power, columns)
                model, words = quiet(made(booster, pool, scale, intercept).fit, Z, y)
                if model is None:
                    assert SOUND.match(words), words
                    continue
                scores = assert_sound(model, Z, tmp_path)
                # Distances, patches and columns that are not scaled depend on one column's units.
                units = pool in ("columns", "groups", "stumps", "products") and scale is not None
                whole = columns == slice(None) and scale is not None
                if units or whole:
                    bits = 1e-9 if dtype == np.float64 else 1e-4
                    np.testing.assert_allclose(scores, expected, rtol=bits, atol=bits)
    assert capfd.readouterr() == ("", "")


# Powers that a fit must not refuse, by the dtype: the range that each pool promises.
ROOM = {
    "columns": {np.float64: (-990, 1023), np.float32: (-140, 127)},
    "groups": {np.float64: (-990, 1023), np.float32: (-140, 127)},
    "stumps": {np.float64: (-1060, 1023), np.float32: (-140, 127)},
    "products": {np.float64: (-490, 490), np.float32: (-140, 127)},
    "pieces": {np.float64: (-990, 990), np.float32: (-140, 125)},
    "soft": {np.float64: (-990, 990), np.float32: (-140, 125)},
    "relative": {np.float64: (-990, 990), np.float32: (-140, 125)},
    "patches": {np.float64: (-90, 90), np.float32: (-90, 90)},
}


@pytest.mark.parametrize("pool", ROOM)
@pytest.mark.parametrize("booster", ["share", "total"])
def test_what_has_room_is_not_refused(rows, booster, pool):
    for dtype, ends in ROOM[pool].items():
        X, y = rows[0].astype(dtype), rows[1]
        # Few enough digits are left of numbers as small as these to be kept as they are.
        X = np.round(16 * X) / 16 if min(ends) < -130 else X
        plain = made(booster, pool, "max", True).fit(X.astype(dtype), y)
        for power in ends:
            Z = times(X.astype(dtype), power)
            model, words = quiet(made(booster, pool, "max", True).fit, Z, y)
            assert not words
            np.testing.assert_array_equal(model.predict(Z), plain.predict(X.astype(dtype)))


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_matrix])
@pytest.mark.parametrize("pool", ["columns", "stumps", "products", "pieces"])
def test_sparse_rows_have_the_same_room(rows, make, pool):
    X, y = rows
    plain = made("share", pool, "max", True).fit(make(X), y)
    for power in (-490, 490):
        Z = make(times(X, power))
        model, words = quiet(made("share", pool, "max", True).fit, Z, y)
        assert not words
        np.testing.assert_array_equal(model.predict(Z), plain.predict(make(X)))
    for power in (-1030, 1022):
        _, words = quiet(made("share", pool, "max", True).fit, make(times(X, power)), y)
        assert not words or SOUND.match(words)


def test_messages_name_the_columns(rows):
    X, y = rows
    X = X.copy()
    X[:, 3] *= 1e-310
    assert "column 3 of X has values no larger than" in quiet(ShareBoostClassifier(2).fit, X, y)[1]
    X[:, 3] = rows[0][:, 3] * 1e200
    X[:, 5] *= 1e150
    words = quiet(ShareBoostClassifier(2, pool="products").fit, X, y)[1]
    assert words.startswith("columns 3 and 5 of X hold values up to")
    assert not quiet(ShareBoostClassifier(2).fit, X, y)[1]
    words = quiet(ShareBoostClassifier(2, scale=None).fit, X, y)[1]
    assert words.startswith("column 3 of X holds values up to")


def test_the_advice_helps(rows):
    X, y = rows
    for pool in ("products", "pieces"):
        plain = ShareBoostClassifier(2, pool=POOLS[pool]("max")).fit(X / np.abs(X).max(axis=0), y)
        scaled = make_pipeline(MaxAbsScaler(), ShareBoostClassifier(2, pool=POOLS[pool]("max")))
        scaled.fit(1e300 * X, y)
        assert (scaled.predict(1e300 * X) == plain.predict(X / np.abs(X).max(axis=0))).all()
    tiny = X * 1e-310
    model = ShareBoostClassifier(2).fit(tiny * 1e300, y)
    assert model.score(tiny * 1e300, y) == ShareBoostClassifier(2).fit(X, y).score(X, y)


def test_a_fit_without_intercept_prints_nothing(rows, capfd):
    """LAPACK complains of a triangle without rows."""
    X, y = rows
    for pool in ("columns", "stumps", "products"):
        ShareBoostClassifier(2, fit_intercept=False, pool=pool, refine=True).fit(X, y)
        ShareBoostClassifier(1, fit_intercept=False, pool=pool, include=None).fit(X[:, :2], y)
    assert capfd.readouterr() == ("", "")


# -- distances -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [ErrorClumpingClassifier(), HolePunchingClassifier(max_holes=2, min_rows=4)],
    ids=["clumping", "holes"],
)
def test_squares_that_overflow_or_vanish_are_refused(rows, model, tmp_path, capfd):
    for dtype, powers in POWERS.items():
        X, y = rows[0].astype(dtype), rows[1]
        room = np.log2(np.sqrt([np.finfo(dtype).tiny, np.finfo(dtype).max / 24]))
        for power in powers:
            Z = times(X, power)
            fitted, words = quiet(model.fit, Z, y)
            inside = room[0] < power < room[1]
            assert bool(words) != inside
            if words:
                assert SOUND.match(words)
            else:
                assert_sound(fitted, Z, tmp_path)
            _, words = quiet(model.fit, times(X, power, slice(2, 3)), y)
            assert not words or SOUND.match(words)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("power", [-200, -40, 40, 200])
def test_clumping_is_the_same_in_other_units(rows, power):
    """With λ times the square of the unit: w is then over the unit, and scores are the same."""
    X, y = rows
    plain = ErrorClumpingClassifier(1e-2, fit_intercept=False).fit(X, y)
    alpha = np.ldexp(1e-2, 2 * power)
    model = ErrorClumpingClassifier(alpha, fit_intercept=False).fit(times(X, power), y)
    np.testing.assert_allclose(np.ldexp(model.coef_, power), plain.coef_, rtol=1e-6)


# -- prediction ------------------------------------------------------------------------------------

FITTED = {
    "columns": ShareBoostClassifier(3),
    "stumps": ShareBoostClassifier(3, pool="stumps"),
    "products": ShareBoostClassifier(3, pool="products"),
    "pieces": ShareBoostClassifier(3, pool=Pieces(12, 3)),
    "soft": TotalQBoostClassifier(3, pool=Pieces(12, 3, soft=True), price=0.0),
    "relative": ShareBoostClassifier(3, pool=Pieces(12, 3, relative=True)),
    "patches": ShareBoostClassifier(3, pool=Patches((3, 2), 3, 2, 1, 1.5)),
    "clumping": ErrorClumpingClassifier(),
    "holes": HolePunchingClassifier(max_holes=2, min_rows=4),
}


@pytest.mark.parametrize("name", FITTED)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_new_rows_may_be_extreme(rows, name, dtype, tmp_path, capfd):
    """The estimator and its file answer alike: with finite scores, or with the same words."""
    X, y = rows[0].astype(dtype), rows[1]
    model = FITTED[name].fit(X, y)
    file = reloaded(model, tmp_path)
    inside = model.predict(X[:4])
    for power in POWERS[dtype]:
        for columns in (slice(None), slice(2, 3)):
            for n in (1, 20):  # few rows, and many, take different ways
                Z = np.vstack([times(X[:n], power, columns), X[:4]])
                labels, words = quiet(model.predict, Z)
                again, same = quiet(file.predict, Z)
                assert words == same
                if words:
                    assert re.match(r"(X|scores|the product of columns) .*overflow|X holds pixels",
                                    words), words  # fmt: skip
                    continue
                np.testing.assert_array_equal(labels, again)
                np.testing.assert_array_equal(labels[-4:], inside)
                scores = quiet(model.decision_function, Z)[0]
                assert np.isfinite(scores).all()
                if hasattr(model, "transform"):
                    assert np.isfinite(quiet(model.transform, Z)[0]).all()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["pieces", "soft", "relative"])
def test_rows_far_away_are_in_no_ball(rows, name):
    X, y = rows
    model = FITTED[name].fit(X, y)
    nothing = model.decision_function(np.full((1, 6), 100.0))
    for far in (1e20, 1e170, 1e300, 1.7e308):
        for n in (1, 20):
            scores, words = quiet(model.decision_function, np.full((n, 6), far))
            assert not words
            np.testing.assert_array_equal(scores, np.repeat(nothing, n))


def test_missing_and_infinite_values_are_still_called_so(rows, tmp_path):
    X, y = rows
    for name in ("columns", "products", "pieces", "patches"):
        file = reloaded(FITTED[name].fit(X, y), tmp_path)
        for value in (np.nan, np.inf):
            Z = np.where(np.arange(6) >= 0, value, X[:3])
            with pytest.raises(ValueError, match="X holds missing or infinite values"):
                file.predict(Z)


def test_products_of_whole_numbers_do_not_wrap_around():
    map = ProductsMap([0], [1])
    whole = np.array([[2**40, 2**40]])
    assert map.columns(whole)[0, 0] == 2.0**80
    assert map.columns(np.array([[2**14, 2**14]], dtype=np.float16))[0, 0] == 2.0**28


def test_products_leave_single_precision_where_they_must():
    map = ProductsMap([0], [1])
    X = np.array([[2.0**-100, 2.0**-100], [2.0**100, 2.0**100], [3.0, 5.0], [0.0, 2.0**-100]])
    expected = [2.0**-200, 2.0**200, 15.0, 0.0]
    assert map.columns(X.astype(np.float32))[:, 0].tolist() == expected
    for row, product in zip(X, expected, strict=True):
        assert map.columns(row[None].astype(np.float32))[0, 0] == product
    assert map.columns(X[2:3].astype(np.float32)).dtype == np.float32
