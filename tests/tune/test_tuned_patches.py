"""Values and derivatives of tuned patches, beside naive ones and finite differences."""

import numpy as np
import pytest

from laconic.model.patches import PatchesMap, normed
from laconic.numeric.threads import Threads
from laconic.tune.patches import TunedPatches, apart


def some_patches(seed=0, shape=(9, 11), sizes=(3, 4, 3), template=(0, 1, 2, 0, 2)):
    rng = np.random.default_rng(seed)
    values = np.concatenate([normed(rng.standard_normal(s * s)) for s in sizes])
    n = len(template)
    centre = rng.uniform(2, 6, (n, 2))
    sigma = rng.choice([1.0, 1.7, np.inf], n)
    return PatchesMap(
        np.array(shape), np.arange(len(sizes)), np.array(sizes), values, template, centre, sigma
    )


def images(seed, n, shape=(9, 11)):
    return np.random.default_rng(seed).standard_normal((n, shape[0] * shape[1]))


def work(given, places=False, n_threads=1):
    return TunedPatches(given, Threads(n_threads), places)


@pytest.mark.parametrize("n", [1, 64, 150])
def test_values_are_those_of_the_map(n):
    given, X = some_patches(), images(1, n)
    own = work(given)
    found, _ = own.values(own.start, X)
    np.testing.assert_allclose(found.T, given.columns(X), rtol=1e-5, atol=1e-6)
    same = own.map(own.start)
    np.testing.assert_allclose(same.values, given.values, rtol=1e-6, atol=1e-7)
    assert same.atoms() == given.atoms()


@pytest.mark.parametrize("places", [False, True])
def test_slopes_are_finite_differences(places):
    given, X = some_patches(2), images(3, 70)
    given.sigma[given.sigma == np.inf] = 3.0
    given = PatchesMap(**given.arrays())
    own = work(given, places)
    pull = np.random.default_rng(4).standard_normal((5, 70))
    _, kept = own.values(own.start, X)
    found = own.slopes(kept, pull)

    def total(parameters):
        values = reference(own, parameters, X)
        return float((pull.T * values).sum())

    step, rng = 1e-6, np.random.default_rng(5)
    for number, array in enumerate(own.start):
        entries = list(np.ndindex(array.shape))
        some = [entries[n] for n in rng.permutation(len(entries))[:6]]
        for at in some:
            ends = []
            for sign in (1, -1):
                moved = [p.copy() for p in own.start]
                moved[number][at] += sign * step
                ends.append(total(moved))
            expected = (ends[0] - ends[1]) / (2 * step)
            np.testing.assert_allclose(found[number][at], expected, rtol=2e-4, atol=2e-4)


def reference(own, parameters, X):
    """Naive values in double precision, (n_rows, n_columns)."""
    given, shape = own._given, own._shape
    places = parameters[-1] if own._places else np.column_stack([given.centre, given.sigma])
    out = np.zeros((len(X), len(given.template)))
    for number, group in enumerate(own.groups):
        s = group.size
        for t, a in zip(group.template, group.place, strict=True):
            v = parameters[number][t].reshape(s, s)
            row, column, sigma = places[a]
            under = given.windows.mask(a) > 0  # the cut does not move
            for i, image in enumerate(X.reshape(-1, *shape)):
                for y, x in np.argwhere(under):
                    away = (y + (s - 1) / 2 - row) ** 2 + (x + (s - 1) / 2 - column) ** 2
                    g = np.exp(-away / (2 * sigma**2))
                    out[i, a] = max(out[i, a], g * (v * image[y : y + s, x : x + s]).sum())
    return out


def test_threads_change_nothing():
    given, X = some_patches(5), images(6, 300)
    pull = np.random.default_rng(7).standard_normal((5, 300))
    answers = []
    for n_threads in (1, 3):
        own = work(given, True, n_threads)
        values, kept = own.values(own.start, X)
        answers.append([values, *own.slopes(kept, pull)])
    for one, other in zip(*answers, strict=True):
        assert one.tobytes() == other.tobytes()


def test_settled_templates_have_no_mean_and_unit_norm():
    own = work(some_patches(8), places=True)
    rng = np.random.default_rng(9)
    moved = own.settled([p + rng.standard_normal(p.shape) for p in own.start])
    for templates in moved[:-1]:
        np.testing.assert_allclose(templates.mean(1), 0.0, atol=1e-12)
        np.testing.assert_allclose((templates**2).sum(1), 1.0)
    assert (moved[-1][:, 2] >= 0.5).all()
    own.map(moved)  # it refuses masks that find no place


def test_shared_templates_can_be_taken_apart():
    given, X = some_patches(10), images(11, 20)
    alone = apart(given)
    assert len(alone.size) == len(alone.template) == 5
    np.testing.assert_array_equal(alone.columns(X), given.columns(X))
    shared, single = work(given), work(alone)
    pull = np.random.default_rng(12).standard_normal((5, 20))
    of_shared = shared.slopes(shared.values(shared.start, X)[1], pull)
    of_single = single.slopes(single.values(single.start, X)[1], pull)
    sums = np.zeros_like(of_shared[0])
    group = single.groups[0]
    templates = given.template[alone.template[group.own]]
    for t, slope in zip(np.unique(templates, return_inverse=True)[1], of_single[0], strict=True):
        sums[t] += slope
    np.testing.assert_allclose(sums, of_shared[0], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("places", [False, True])
def test_a_device_gives_the_same(places, device):
    torch = pytest.importorskip("torch")
    from laconic.device.tuned_patches import DeviceTunedPatches

    given, X = some_patches(13), images(14, 90)
    own = work(given, places)
    there = DeviceTunedPatches(own, given, torch.device(device), places)
    pull = np.random.default_rng(15).standard_normal((5, 90))
    values, kept = own.values(own.start, X)
    rows, force = (torch.as_tensor(array, device=device) for array in (X, pull))
    found, seen = there.values(there.start, rows)
    np.testing.assert_allclose(found.cpu().numpy(), values, rtol=1e-5, atol=1e-6)
    assert np.array_equal(seen.at.cpu().numpy(), kept.at)
    expected, slopes = own.slopes(kept, pull), there.slopes(seen, force)
    for one, other in zip(expected, slopes, strict=True):
        np.testing.assert_allclose(other.cpu().numpy(), one, rtol=1e-4, atol=1e-4)
    moved = [p + 0.3 for p in own.start]
    for one, other in zip(
        own.settled(moved),
        there.settled([torch.as_tensor(p, device=device) for p in moved]),
        strict=True,
    ):
        np.testing.assert_allclose(other.cpu().numpy(), one, rtol=1e-12)
    assert there.map(there.start).atoms() == own.map(own.start).atoms()


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    """The processor as a device, and a GPU."""
    torch = pytest.importorskip("torch")
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    return request.param
