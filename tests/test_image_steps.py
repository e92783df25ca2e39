"""Patches and Deform as steps of scikit-learn: its own checks, and those of data on square images.

Most of scikit-learn's checks fit data of two or three features, which is no square image.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

from laconic.deform import Deform
from laconic.pools import Patches

STEPS = [Patches(n_templates=4, template_size=2, mask_grid=1), Deform(copies=1, shift=0.5)]
CHECKS = [
    "check_complex_data",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_empty_data_messages",
    "check_fit1d",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_n_features_in_after_fitting",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
]
both = pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)


def images(n=30, side=4, dtype=np.float64):
    return np.random.default_rng(0).random((n, side * side)).astype(dtype)


@both
@pytest.mark.parametrize("check", CHECKS)
def test_keeps_the_rules_of_scikit_learn(step, check):
    getattr(estimator_checks, check)(type(step).__name__, clone(step))


@both
def test_a_fit_changes_no_setting_and_no_pixel(step):
    step, X = clone(step), images()
    before = step.get_params(), X.copy()
    X.setflags(write=False)
    out = step.fit_transform(X)
    assert step.fit(X) is step
    assert step.get_params() == before[0]
    np.testing.assert_array_equal(X, before[1])
    np.testing.assert_array_equal(step.transform(X), out)
    np.testing.assert_array_equal(clone(step).fit(X.tolist()).transform(X.tolist()), out)


@both
def test_other_widths_are_refused_once_fitted(step):
    step = clone(step).fit(images())
    assert step.n_features_in_ == 16
    for side in (3, 5):
        with pytest.raises(ValueError, match=f"X has {side**2} features, but .* is expecting 16"):
            step.transform(images(side=side))
    step.fit(images(side=5))  # a new fit begins anew
    assert step.transform(images(side=5)).shape[0] == 30


@both
def test_names_of_features_go_in_and_come_out(step):
    frame = pd.DataFrame(images(), columns=[f"p{i}" for i in range(16)])
    step = clone(step).set_output(transform="pandas").fit(frame)
    np.testing.assert_array_equal(step.feature_names_in_, frame.columns)
    out = step.transform(frame)
    assert list(out.columns) == list(step.get_feature_names_out())
    if isinstance(step, Deform):
        assert list(out.columns) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names should match"):
        step.transform(frame[frame.columns[::-1]])


@both
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_missing_and_infinite_pixels_are_refused(step, bad):
    X = images()
    step = clone(step).fit(X)
    X[3, 5] = bad
    for method in (step.fit, step.transform):
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            method(X)


def test_deformed_images_need_no_fit_and_keep_their_kind():
    X = images()
    np.testing.assert_array_equal(Deform().transform(X), Deform().fit(X).transform(X))
    for dtype in (np.float32, np.float64, np.int32, np.uint8):
        assert Deform().fit_transform(images(dtype=dtype)).dtype == dtype


def test_steps_follow_each_other_in_a_pipeline():
    X = images()
    patches, deform = (clone(step) for step in STEPS)
    out = make_pipeline(deform, patches).fit(X).transform(X)
    bent = Deform(copies=1, shift=0.5).transform(X)
    np.testing.assert_array_equal(out, clone(patches).fit(bent).transform(bent))
