from argparse import Namespace

import numpy as np
import pytest
from new_weights import new_weights
from share_mnist_patches import CANDIDATES, CHOSEN, described, errors, grow, weigh
from sklearn.datasets import load_digits

from laconic import ShareBoostClassifier
from laconic.deform import Deform
from laconic.pools import Patches

SETTING = {"alpha": 1e-3, "tol": 1e-8}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600].astype(np.float32) / 16, y[:600]


@pytest.fixture(scope="module")
def grown(digits):
    return grow(*digits, pool(), SETTING, arguments())


@pytest.fixture(params=[None, "cpu"])
def device(request):
    """The library on the processor, and on torch's processor device."""
    if request.param:
        pytest.importorskip("torch")
    return request.param


def pool():
    return Patches(
        n_templates=20, template_size=(3, 4), mask_grid=2, mask_sigma=(1.5, 3.0), storage="float32"
    )


def arguments(**given):
    return Namespace(**{"atoms": 6, "minutes": None, "checkpoint": None, "device": None, **given})


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


@pytest.mark.parametrize("costs", [None, "operations"])
def test_a_device_chooses_the_same_patches_with_the_same_weights(digits, costs):
    pytest.importorskip("torch")
    setting = {**SETTING, "costs": costs}
    path, predictor, told = grow(*digits, pool(), setting, arguments())
    there, twin, again = grow(*digits, pool(), setting, arguments(device="cpu"))
    assert [entry.numbers for entry in there] == [entry.numbers for entry in path]
    np.testing.assert_allclose(there.losses, path.losses, atol=1e-6)
    np.testing.assert_allclose(twin.weights, predictor.weights, atol=1e-4)
    assert told == again == {"status": "largest size reached"}


def test_new_weights_are_the_optimum(digits, grown, device):
    path = grown[0]
    entries = new_weights(path[6].map, *digits, [6, 3], device=device, **SETTING)
    assert [entry.size for entry in entries] == [3, 6]
    for entry, size in zip(entries, (3, 6), strict=True):
        before = path[size]
        assert entry.atoms == before.atoms
        gaps = entry.certificate.gap + before.certificate.gap
        assert abs(entry.objective - before.objective) <= gaps + 1e-7
        np.testing.assert_allclose(entry.scores(digits[0]), before.scores(digits[0]), atol=1e-3)


def test_new_weights_make_a_predictor_of_the_same_patches(digits, grown, device, tmp_path):
    predictor = grown[1]
    predictor.save(tmp_path / "grown.laconic")
    args = arguments(weights=tmp_path / "grown.laconic", sizes=[3, 1000], device=device)
    entries, again, _ = weigh(*digits, SETTING, args)
    assert [entry.size for entry in entries] == [3, 6]  # no more than there are
    np.testing.assert_array_equal(again.map.columns(digits[0]), predictor.map.columns(digits[0]))
    np.testing.assert_allclose(again.weights, predictor.weights, atol=1e-4)
    curve = errors(entries, again.classes, *digits)
    assert curve[-1]["error"] == pytest.approx(100 * np.mean(again.predict(digits[0]) != digits[1]))


def test_a_device_is_described():
    assert described(None) == {}
    pytest.importorskip("torch")
    assert described("cpu")["device"] == "processor"
