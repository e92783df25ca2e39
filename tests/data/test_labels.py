"""Labels are refused, and warned of, as scikit-learn does."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.utils.multiclass import check_classification_targets

from laconic.data.labels import kept_rows


def found(function):
    """Return the warnings of a call, and the text of its error."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        error = ""
        try:
            function()
        except ValueError as raised:
            error = str(raised)
    return [str(each.message) for each in given if "unique classes" in str(each.message)], error


@pytest.mark.parametrize(
    "y",
    [
        np.arange(30),
        np.arange(30) % 15,
        np.arange(30) % 16,
        np.arange(30) % 2 == 0,
        (np.arange(30) % 3).astype(np.uint8),
        (np.arange(30) % 3).astype(float),
        np.arange(30) / 7.0,
        np.array(["a", "b", "c"] * 10),
    ],
)
def test_labels_are_refused_and_warned_of_as_by_scikit_learn(y):
    X, estimator = np.ones((30, 1)), SimpleNamespace()
    known = found(lambda: check_classification_targets(y))
    assert found(lambda: kept_rows(estimator, X, y, None)) == known
    if not known[1]:
        codes = kept_rows(estimator, X, y, None)[1]
        np.testing.assert_array_equal(estimator.classes_[codes], y)
