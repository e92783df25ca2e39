import numpy as np
import pytest
from share_mnist_patches import CANDIDATES, CHOSEN, errors
from sklearn.datasets import load_digits

from laconic import ShareBoostClassifier
from laconic.deform import Deform
from laconic.pools import Patches


@pytest.mark.parametrize("refine", [False, True])
def test_errors_are_those_of_every_size(refine):
    X, y = load_digits(return_X_y=True)
    pool = Patches(n_templates=10, template_size=3, mask_grid=2, mask_sigma=2.0)
    model = ShareBoostClassifier(5, pool=pool, refine=refine).fit(X[:300], y[:300])
    curve = errors(model.path_, model.classes_, X[300:900], y[300:900])
    expected = [100 * np.mean(p != y[300:900]) for p in model.staged_predict(X[300:900])]
    np.testing.assert_allclose([c["error"] for c in curve], expected)
    for point in curve:
        assert point["operations"] == model.at(point["atoms"]).predictor_.cost().operations


def test_settings_are_those_of_the_library():
    assert set(CHOSEN.values()) <= set(CANDIDATES)
    for setting in CANDIDATES.values():
        Patches(**setting["pool"])
        Deform(**setting.get("deform", {}))
        ShareBoostClassifier(**{n: v for n, v in setting.items() if n not in ("pool", "deform")})
