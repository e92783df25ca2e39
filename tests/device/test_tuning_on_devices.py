"""Tuned hinges on a device are those of the processor, and no step waits for the device."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch.utils._pytree import tree_map

from laconic import ShareBoostClassifier
from laconic.device.tuned_patches import DeviceTunedPatches
from laconic.losses import LOSSES
from laconic.model.hinges import HingeAtom, HingesMap
from laconic.numeric.threads import Threads
from laconic.penalties import PENALTIES
from laconic.pools import Hinges, Patches
from laconic.tune import Tuning
from laconic.tune.batches import Batches
from laconic.tune.descent import Descent, Frame, TunedModel
from laconic.tune.hinges import TunedHinges, moments
from laconic.tune.patches import TunedPatches

HINGES = HingesMap.of([HingeAtom((0, 2), (1.5, -0.2), 0.3), HingeAtom((1,), (-2.0,), -0.7)])

ROUNDING = 1e-6


def rings(n=330, dtype=np.float64):
    X = np.random.default_rng(0).normal([3, -1, 0], [2, 1, 9], (n, 3)).astype(dtype)
    return X, (np.hypot((X[:, 0] - 3) / 2, X[:, 2] / 9) < 1).astype(int)


def booster(**settings):
    """Batches do not divide the rows of an epoch: the last one is smaller."""
    tuning = Tuning(sizes=[3, 4], epochs=20, batch_size=50, rate=0.1)
    pool = Hinges(15, 5, n_inputs=2)
    return ShareBoostClassifier(4, pool=pool, tune=tuning, random_state=0, alpha=1e-4, **settings)


@pytest.fixture(scope="module", params=[np.float32, np.float64], ids=["single", "double"])
def known(request):
    """Rows, classes, and the model tuned on the processor."""
    X, y = rings(dtype=request.param)
    return X, y, booster().fit(X, y)


def same_tuned(found, known):
    """Whether both have the same tuned hinges up to rounding, at the same sizes."""
    tuned = [[e.size for e in model.path_ if e is not model.path_.chosen[e.size]]
             for model in (found, known)]  # fmt: skip
    assert tuned == [[3, 4], [3, 4]]
    for own, other in zip(found.path_, known.path_, strict=True):
        for a, b in zip(own.atoms, other.atoms, strict=True):
            assert a.features == b.features
            np.testing.assert_allclose(a.values, b.values, rtol=ROUNDING)
            np.testing.assert_allclose(a.knot, b.knot, rtol=ROUNDING, atol=ROUNDING)
        assert own.loss == pytest.approx(other.loss, rel=ROUNDING)
        assert own.certificate.gap <= 1e-3
    return True


def test_arrays_are_tuned_as_on_the_processor(known, device):
    X, y, here = known
    assert same_tuned(booster(device=device).fit(X, y), here)


@pytest.mark.usefixtures("there")
def test_tensors_are_tuned_where_they_are(known, device):
    X, y, here = known
    given = torch.from_numpy(X).to(device), torch.from_numpy(y).to(device)
    found = booster().fit(*given)
    assert same_tuned(found, here)
    again = booster().fit(*given)
    assert again.atoms_ == found.atoms_
    assert again.atom_coef_.tobytes() == found.atom_coef_.tobytes()
    labels = found.predict(given[0])
    np.testing.assert_array_equal(labels.cpu(), found.predict(X))


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_values_and_slopes_are_those_of_arrays(unit, device):
    X, pull = rings()[0] * unit, np.random.default_rng(4).standard_normal((2, 330))
    hinges = [HingeAtom(a.features, a.values, a.knot * unit) for a in HINGES.atoms()]
    given = HingesMap.of(hinges)
    there = torch.from_numpy(X).to(device)
    own, other = TunedHinges(given, X), TunedHinges(given, there)
    values, kept = own.values(own.start, X)
    found, seen = other.values(other.start, there)
    np.testing.assert_allclose(found.cpu(), values, atol=1e-9 * unit)
    there = other.slopes(seen, torch.as_tensor(pull).to(device))
    for one, two in zip(own.slopes(kept, pull), there, strict=True):
        np.testing.assert_allclose(two.cpu(), one, rtol=1e-9, atol=1e-9 * unit)
    np.testing.assert_allclose(other.map(other.start).columns(X), given.columns(X), rtol=1e-6,
                               atol=1e-9 * unit)  # fmt: skip


def test_moments_of_tensors_are_those_of_arrays(device):
    X = np.column_stack([rings(dtype=np.float32)[0], np.ones(330, dtype=np.float32)])
    there = torch.from_numpy(X).to(device)
    for one, two in zip(moments(X, np.array([3, 0, 2])), moments(there, np.array([3, 0, 2])),
                        strict=True):  # fmt: skip
        np.testing.assert_allclose(two, one, rtol=1e-12)


def tuned_hinges():
    X = torch.from_numpy(rings()[0])
    return TunedHinges(HINGES, X), X


def tuned_patches():
    pool = Patches(n_templates=4, template_size=3, mask_grid=2, mask_sigma=2.0)
    X = load_digits(return_X_y=True)[0][:330].astype(np.float32)
    given = pool.bind(X, np.full(330, 1 / 330), Threads(1)).extract([0, 5])
    here = TunedPatches(given, Threads(1), True)
    return DeviceTunedPatches(here, given, torch.device("cpu"), True), torch.from_numpy(X)


@pytest.mark.parametrize("make", [tuned_hinges, tuned_patches])
@pytest.mark.parametrize("loss", LOSSES)
def test_no_step_waits_for_the_device(make, loss):
    """Tensors without data can be neither read nor mixed with others, and shapes are known."""
    atoms, X = make()
    codes, weight = torch.arange(330) % 2, torch.full((330,), 1 / 330, dtype=torch.float64)
    model = TunedModel(atoms.start, torch.ones(2, 2, dtype=torch.float64), torch.zeros(2).double())
    ones = torch.ones(2, dtype=torch.float64)
    frame = Frame(ones, ones, LOSSES[loss](), PENALTIES["l2"](1e-3), True)
    descent = Descent(atoms, model, frame, 0.1, 10)
    batch = next(Batches(X, codes, weight, 50, 0).epoch(0))
    descent.step(batch)
    assert float(descent.loss) > 0
    for own in (atoms, descent):
        for name, value in vars(own).items():
            setattr(own, name, tree_map(without_data, value))
    descent.step(tree_map(without_data, batch))
    assert descent.loss.is_meta


def without_data(part):
    return part.to("meta") if isinstance(part, torch.Tensor) else part
