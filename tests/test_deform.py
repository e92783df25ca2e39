import numpy as np
import pytest
from scipy import ndimage

from laconic.deform import Deform

SHAPE = (9, 13)
NONE = {"elastic_alpha": 0, "rotation": 0, "scale": 0, "shear": 0, "shift": 0}


def images(n=40, dtype=np.float32, shape=SHAPE):
    rng = np.random.default_rng(0)
    smooth = ndimage.gaussian_filter(rng.random((n, *shape)), (0, 1, 1))
    return (255 * smooth).astype(dtype).reshape(n, -1)


def deform(**settings):
    return Deform(**{"shape": SHAPE, "copies": 3, **settings})


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64])
def test_no_strength_no_change(dtype):
    X = images(dtype=dtype)
    more = deform(**NONE).enlarge(X)
    assert more.dtype == dtype
    np.testing.assert_array_equal(more[:40], X)
    np.testing.assert_array_equal(more, np.vstack([X, *[X.astype(np.float32)] * 3]))


def test_labels_and_weights_follow_their_images():
    X = images()
    y, weight = np.arange(40).astype(str), np.random.default_rng(0).random((40, 2))
    mild = deform(shift=0.3, rotation=2, elastic_alpha=4, fill=127)
    more, labels, weights = mild.enlarge(X, y, weight)
    assert more.shape == (160, 117)
    np.testing.assert_array_equal(more[:40], X)
    np.testing.assert_array_equal(labels, np.tile(y, 4))
    np.testing.assert_array_equal(weights, np.tile(weight, (4, 1)))
    # A copy is nearest to its own image.
    distance = ((more[40:, None] - X) ** 2).sum(axis=2)
    assert np.mean(distance.argmin(axis=1) == np.tile(np.arange(40), 3)) > 0.9


def test_seeds_and_copies():
    X = images()
    one = deform().enlarge(X)
    np.testing.assert_array_equal(one, deform().enlarge(X))
    assert not np.array_equal(one, deform(random_state=1).enlarge(X))
    assert not np.array_equal(one[40:80], one[80:120])
    # The first copies do not depend on how many follow.
    np.testing.assert_array_equal(one[:80], deform(copies=1).enlarge(X))
    np.testing.assert_array_equal(one[40:80], deform().fit(X).transform(X))
    np.testing.assert_array_equal(one[:40], deform(copies=0).enlarge(X))


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_threads_do_not_change_a_pixel(n_jobs):
    one, many = deform(), deform(n_jobs=n_jobs)
    one._block = many._block = 7
    X = images()
    np.testing.assert_array_equal(many.enlarge(X), one.enlarge(X))


def test_pixels_are_those_of_scipy():
    """The affine part alone, against scipy's interpolation from the same matrices."""
    X = images(20, np.float64)
    d = deform(elastic_alpha=0, rotation=20, scale=0.2, shear=0.2, shift=2, fill=7)
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    affine = d._affine(np.random.default_rng([seed, 0, 0]), 20)
    middle = (np.array(SHAPE) - 1) / 2
    for image, made, a in zip(X, d.transform(X), affine, strict=True):
        offset = middle + a[:, 2] - a[:, :2] @ middle
        # Padded by hand, as scipy does not interpolate towards what lies outside.
        padded = np.pad(image.reshape(SHAPE), 8, constant_values=7)
        points = np.indices(SHAPE).reshape(2, -1)
        source = a[:, :2] @ points + offset[:, None] + 8
        expected = ndimage.map_coordinates(padded, source, order=1, mode="constant", cval=7)
        np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-3)


def test_elastic_bends_are_smooth_and_of_the_promised_size():
    """Displacements read off images whose value is the number of the row, or of the column."""
    shape = (60, 64)
    quiet = {**NONE, "elastic_alpha": 15}
    expected = 15 * np.sqrt(1 / 3) / (2 * np.sqrt(np.pi) * 4)
    bends = []
    for number in np.indices(shape).astype(np.float64):  # down, then across
        ramp = np.tile(number.ravel(), (30, 1))
        made = Deform(shape=shape, **quiet).transform(ramp).reshape(30, *shape)
        bend = (made - number)[:, 20:40, 20:44]
        assert np.std(bend) == pytest.approx(expected, rel=0.15)
        for axis in (1, 2):
            assert np.abs(np.diff(bend, axis=axis)).max() < 0.5
        bends.append(bend.ravel())
    # The two directions are drawn apart.
    assert abs(np.corrcoef(bends)[0, 1]) < 0.4


def test_strengths_are_bounds():
    d = deform(rotation=10, scale=0.1, shear=0.0, shift=2)
    affine = d._affine(np.random.default_rng(0), 1000)
    matrix, shift = affine[:, :, :2], affine[:, :, 2]
    assert 1.9 < np.abs(shift).max() <= 2
    stretch = np.linalg.norm(matrix, axis=1)
    assert 0.9 <= stretch.min() < 0.91
    assert 1.09 < stretch.max() <= 1.1
    angle = np.rad2deg(np.arctan2(matrix[:, 1, 0], matrix[:, 0, 0]))
    assert 9.8 < np.abs(angle).max() <= 10
    slanted = deform(**{**NONE, "shear": 0.5})._affine(np.random.default_rng(0), 1000)
    assert 0.49 < np.abs(slanted[:, 1, 0]).max() <= 0.5  # sideways a pixel of height
    assert (slanted[:, 0] == [1, 0, 0]).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"copies": -1}, "copies must be an integer"),
        ({"copies": 1.5}, "copies must be an integer"),
        ({"rotation": -1}, "rotation must be a number of at least 0"),
        ({"shift": np.nan}, "shift must be"),
        ({"scale": 1.0}, "scale must be below 1"),
        ({"elastic_sigma": 0}, "elastic_sigma must be positive"),
        ({"fill": np.nan}, "fill must be a finite number"),
        ({"fill": -np.inf}, "fill must be a finite number"),
        ({"fill": "white"}, "fill must be a finite number"),
        ({"shape": None}, "not a square image"),
        ({"shape": (5, 5)}, "25 pixels"),
    ],
)
def test_settings_that_make_no_sense(settings, message):
    with pytest.raises(ValueError, match=message):
        deform(**settings).enlarge(images())


def test_arrays_that_do_not_belong():
    with pytest.raises(ValueError, match="does not belong"):
        deform().enlarge(images(), np.arange(39))
    with pytest.raises(ValueError, match="NaN"):
        deform().enlarge(np.full((2, 117), np.nan))
