"""Fits on a device: the same atoms as on the processor, and weights within both gaps."""

import sys
import warnings

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from laconic import (
    CompactClassifier,
    ErrorClumpingClassifier,
    HolePunchingClassifier,
    ShareBoostClassifier,
    TotalQBoostClassifier,
)
from laconic.device import check, place
from laconic.losses import BinaryLoss, ExponentialLoss, LogLoss, sigmoid
from laconic.numeric.namespaces import namespace
from laconic.pools import Columns, Hinges, Mixed, Patches, Products, Stumps
from problems import random_problem, saving_always

pytestmark = pytest.mark.usefixtures("pools_there")
SHARES = {
    "columns": {},
    "groups": {"groups": [0, 0, 1, 1, 2, 3]},
    "products": {"pool": "products"},
    "stumps": {"pool": Stumps(6)},
    "stumps of every value": {"pool": Stumps(None)},
    "hinges": {"pool": Hinges(20)},
    "short hinges": {"pool": Hinges(20, 5, n_inputs=2, scale="max"), "max_operations": 30},
    "hinges by steps": {"pool": Hinges(2, 2, scale="std"), "rule": "step", "max_atoms": 2},
    "projection": {"rule": "projection"},
    "step": {"rule": "step", "max_atoms": 2},
    "column": {"rule": "column", "max_atoms": 2},
    "refit": {"rule": "refit", "max_atoms": 2},
    "l1": {"penalty": "l1", "alpha": 1e-3},
    "linf_l1": {"penalty": "linf_l1", "alpha": 1e-3},
    "none": {"alpha": 0.0},
    "log": {"loss": "log"},
    "no intercept": {"fit_intercept": False},
    "costs": {"costs": [1, 2, 1, 3, 1, 1], "max_cost": 4},
    "terms": {"include": [5], "exclude": [0]},
    "refined": {"refine": True, "max_atoms": 4},
    "balanced": {"class_weight": "balanced"},
    "of each class": {"class_weight": {0: 2.0, 1: 1.0, 2: 0.5}},
    "caps": {"max_features": 2},
    "std": {"scale": "std"},
}
QBOOSTS = {
    "stumps": {},
    "no search": {"search": None, "price": 0.0},
    "hot start": {"hot_start": 4, "price": 1e-2},
    "logistic": {"loss": "logistic"},
    "squared hinge": {"loss": "squared_hinge"},
    "columns": {"pool": "columns", "loss": "log"},
    "hinges": {"pool": Hinges(10), "loss": "log", "max_rounds": 4},
    "exact": {"search": "exact", "price": 1e-2, "max_rounds": 5},
}


def same_path(found, known, rounding=1e-12):
    assert len(found.path_) == len(known.path_)
    for own, other in zip(found.path_, known.path_, strict=True):
        assert own.atoms == other.atoms
        gaps = own.certificate.gap + other.certificate.gap
        assert abs(own.objective - other.objective) <= gaps + rounding


@pytest.mark.parametrize("name", SHARES)
def test_shareboost_finds_the_same_path(name, device):
    X, y = random_problem(3, m=300)
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    model = ShareBoostClassifier(**{"max_atoms": 5, **SHARES[name]})
    found = clone(model).set_params(device=device).fit(X, y, weight)
    known = model.fit(X, y, weight)
    same_path(found, known)
    np.testing.assert_allclose(found.class_prior_, known.class_prior_)
    np.testing.assert_array_equal(found.predict(X), known.predict(X))


@pytest.mark.parametrize("name", QBOOSTS)
def test_totalqboost_finds_the_same_path(name, device):
    X, y = random_problem(4, m=300, k=2)
    model = TotalQBoostClassifier(**{"max_rounds": 8, **QBOOSTS[name]})
    found = clone(model).set_params(device=device).fit(X, y)
    same_path(found, model.fit(X, y))


def test_totalqboost_of_very_many_rows_asks_for_sums(device):
    """Beyond the rows that may be gathered, the subset search asks the shard."""
    X, y = random_problem(4, m=300, k=2)
    model = TotalQBoostClassifier(6, device=device)
    few = clone(model)
    few._limits = few._limits._replace(gathered=100)
    found, known = few.fit(X, y), model.fit(X, y)
    assert found.path_[found.n_atoms_].objective == pytest.approx(
        known.path_[known.n_atoms_].objective, rel=1e-3
    )


def test_patches(device):
    rng = np.random.default_rng(0)
    X = rng.random((80, 36))
    y = (X[:, 7] + X[:, 14] > 1).astype(int)
    model = ShareBoostClassifier(3, pool=Patches((6, 6), 2, 3, 2, 1.0))
    same_path(clone(model).set_params(device=device).fit(X, y), model.fit(X, y), 1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.usefixtures("there")
def test_tensors_in_their_place_give_the_same_path(dtype, device):
    X, y = random_problem(5, m=300, dtype=dtype)
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    known = ShareBoostClassifier(5, class_weight="balanced").fit(X, y, weight)
    given = [torch.from_numpy(a).to(device) for a in (X, y, weight)]
    for rest in (given[1:], (y, weight), (y.tolist(), given[2])):
        found = ShareBoostClassifier(5, class_weight="balanced").fit(given[0], *rest)
        same_path(found, known, 1e-6 if dtype == np.float32 else 1e-12)
        assert found.alpha_ == pytest.approx(known.alpha_)
        assert found.n_features_in_ == 6
        np.testing.assert_array_equal(found.classes_, known.classes_)
        np.testing.assert_allclose(found.class_prior_, known.class_prior_)
        np.testing.assert_allclose(found._class_factors, known._class_factors)


@pytest.mark.usefixtures("there")
def test_without_weights_and_with_huge_ones(device):
    X, y = random_problem(5)
    given = torch.from_numpy(X).to(device), torch.from_numpy(y).to(device)
    known = ShareBoostClassifier(3, alpha=1e-4).fit(X, y)
    same_path(ShareBoostClassifier(3, alpha=1e-4).fit(*given), known)
    huge = torch.full((len(y),), 1e308, dtype=torch.float64, device=device)
    same_path(ShareBoostClassifier(3, alpha=1e-4).fit(*given, huge), known)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float16, torch.bfloat16])
@pytest.mark.usefixtures("there")
def test_other_types_become_float64(dtype, device):
    X = np.random.default_rng(0).integers(0, 9, (90, 4)).astype(float)
    y = (X[:, 1] + X[:, 2] > 8).astype(int)
    known = ShareBoostClassifier(2).fit(X, y)
    given = torch.from_numpy(X).to(device, dtype)
    same_path(ShareBoostClassifier(2).fit(given, y), known)
    assert known.predict(given).tolist() == known.predict(X).tolist()


def test_two_fits_have_the_same_bits(device):
    X, y = random_problem(6, m=400, dtype=np.float32)

    def fitted():
        return ShareBoostClassifier(6, pool="products", device=device).fit(X, y).atom_coef_

    assert fitted().tobytes() == fitted().tobytes()


def test_early_stopping_and_folds(device):
    X, y = random_problem(7, m=300)
    for settings in ({"early_stopping": True}, {"cv": 3}):
        model = ShareBoostClassifier(6, random_state=0, **settings)
        found, known = clone(model).set_params(device=device).fit(X, y), model.fit(X, y)
        assert found.n_atoms_ == known.n_atoms_
        same_path(found, known)


@pytest.mark.usefixtures("there")
def test_early_stopping_of_tensors(device):
    X, y = random_problem(7, m=300)
    model = ShareBoostClassifier(6, random_state=0, early_stopping=True)
    known = clone(model).fit(X, y)
    found = model.fit(*(torch.from_numpy(a).to(device) for a in (X, y)))
    same_path(found, known)
    np.testing.assert_allclose(found.validation_losses_, known.validation_losses_, rtol=1e-6)
    with pytest.raises(ValueError, match="choose the size by early_stopping"):
        ShareBoostClassifier(6, cv=3).fit(torch.from_numpy(X).to(device), y)


def test_callbacks_and_progress(device, capsys):
    X, y = random_problem(7)
    sizes = []
    ShareBoostClassifier(
        4, device=device, verbose=1, callbacks=[lambda state: sizes.append(state.last.size)]
    ).fit(X, y)
    assert sizes[-1] == 4


def test_ctrl_c_keeps_the_path(device):
    X, y = random_problem(7)

    def interrupt(state):
        if state.last.size == 2:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted"):
        model = ShareBoostClassifier(6, device=device, callbacks=[interrupt]).fit(X, y)
    assert model.path_.sizes[-1] == 2


@pytest.mark.parametrize("make", [ShareBoostClassifier, TotalQBoostClassifier])
def test_a_checkpoint_resumes_with_the_same_bits(make, device, tmp_path):
    X, y = random_problem(8, m=300, k=2)
    file = tmp_path / "fit"
    whole = make(6, device=device).fit(X, y)
    saving_always(make(3, device=device, checkpoint=file)).fit(X, y)
    resumed = make(6, device=device, checkpoint=file).fit(X, y)
    assert resumed.atoms_ == whole.atoms_
    assert resumed.atom_coef_.tobytes() == whole.atom_coef_.tobytes()


def test_a_checkpoint_knows_its_fit_on_any_device(there, device, tmp_path):
    X, y = random_problem(8)
    file = tmp_path / "fit"
    saving_always(ShareBoostClassifier(3, checkpoint=file, alpha=1e-4)).fit(X, y)
    known = ShareBoostClassifier(5, alpha=1e-4).fit(X, y)
    for rows in (X, torch.from_numpy(X).to(device)):
        same_path(ShareBoostClassifier(5, checkpoint=file, alpha=1e-4, device=device).fit(rows, y),
                  known)  # fmt: skip
    with pytest.raises(ValueError, match="other data"):
        ShareBoostClassifier(3, checkpoint=file, device=device, alpha=1e-4).fit(2 * X, y)


def test_sums_of_classes_over_several_blocks(device, monkeypatch):
    monkeypatch.setattr(check, "LOOKED_AT", 4096)
    rng = np.random.default_rng(0)
    codes, weight = rng.integers(0, 3, 5000), rng.random(5000)
    there = (torch.from_numpy(array).to(device) for array in (codes, weight))
    found = check._class_sums(*there, 4)
    np.testing.assert_allclose(found, np.bincount(codes, weight, 4), rtol=1e-13)


# -- what is refused -------------------------------------------------------------------------------


class Own:
    """A pool of the user."""

    def bind(self, X, weight, threads):
        return Columns().bind(X, weight, threads)


@pytest.mark.parametrize("pool", [
    "rules", "pieces", "bumps", ["columns", "stumps"], Own(),
    Mixed([Columns(), Products()]),
])  # fmt: skip
@pytest.mark.usefixtures("there")
def test_pools_without_a_form_there(pool, device):
    X, y = random_problem(0)
    model = ShareBoostClassifier(2, pool=pool)
    for fit in (
        lambda: clone(model).set_params(device=device).fit(X, y),
        lambda: model.fit(torch.from_numpy(X).to(device), y),
    ):
        with pytest.raises(TypeError, match='does not run on a device; use "columns", "products"'):
            fit()


@pytest.mark.parametrize(("pool", "told"), [
    ("rules", 'the pool "rules" does'), (["pieces"], 'the pool "pieces" does'),
    (Own(), "the pool Own does"), (["stumps", "columns"], "a list of pools does"),
    (DecisionTreeClassifier(), "the pool DecisionTreeClassifier does"),
])  # fmt: skip
def test_pools_that_are_refused_are_called_as_given(pool, told, device):
    X, y = random_problem(0, k=2)
    with pytest.raises(TypeError, match=told):
        TotalQBoostClassifier(2, pool=pool, device=device).fit(X, y)


def test_a_list_of_one_pool_is_that_pool(device):
    X, y = random_problem(0)
    model = ShareBoostClassifier(2, pool=["stumps"], device=device).fit(X, y)
    same_path(model, ShareBoostClassifier(2, pool="stumps").fit(X, y))


@pytest.mark.parametrize(
    "model",
    [ErrorClumpingClassifier(), HolePunchingClassifier(), CompactClassifier(2000)],
    ids=lambda model: type(model).__name__,
)
def test_estimators_of_the_processor(model, there):
    X, y = random_problem(0)
    with pytest.raises(TypeError, match=r"give X.cpu\(\)"):
        model.fit(torch.from_numpy(X), y)


def test_rows_that_cannot_go_there(device):
    X, y = random_problem(0)
    model = ShareBoostClassifier(2, device=device)
    with pytest.raises(TypeError, match="a sparse matrix, and device="):
        model.fit(sparse.csr_matrix(X), y)
    with pytest.raises(TypeError, match="the path of a file, and device="):
        model.fit("rows/*.parquet", "y")


class OfArrays(LogLoss):
    """A loss of the user that knows only NumPy."""

    name = "of arrays"

    def curvature(self, weight, state):
        return np.asarray(state.astype(float)) * weight


class OfNumPy(ExponentialLoss):
    """A loss of the user with one method that calls NumPy, which reads tensors on the processor."""

    name = "of NumPy"


class AtOfNumPy(OfNumPy):
    @staticmethod
    def at(margin):
        return 2 * (np.exp(-margin),)


class BendOfNumPy(OfNumPy):
    @staticmethod
    def bend(u):
        return np.abs(u)


class Asks(OfNumPy):
    def curvature(self, weight, state):
        return torch.from_numpy(state.numpy() * weight.numpy())


class OfBoth(BinaryLoss):
    """A loss of the user for both: e^−margin without a limit."""

    name = "of both"

    @staticmethod
    def at(margin):
        u = namespace(margin).exp(-margin)
        return u, u

    @staticmethod
    def bend(u):
        return u

    def dual(self, u):
        return ExponentialLoss().dual(u)

    def positive(self, score):
        return sigmoid(2.0 * score)


def test_own_losses(device):
    X, y = random_problem(0, k=2)
    with pytest.raises(TypeError, match="'of arrays' does not take tensors"):
        ShareBoostClassifier(2, loss=OfArrays(), device=device).fit(X, y)
    for loss in (AtOfNumPy(), BendOfNumPy(), Asks()):
        with pytest.raises(TypeError, match="'of NumPy' does not take tensors"):
            ShareBoostClassifier(2, loss=loss, device=device).fit(X, y)
    model = ShareBoostClassifier(3, loss=OfBoth())
    same_path(clone(model).set_params(device=device).fit(X, y), model.fit(X, y))


def test_devices_that_cannot_be_used(monkeypatch):
    X, y = random_problem(0)
    names = "disk", "gpu", "mps", "xpu:0", "meta", "cuda:x", "cpu:one", [1], torch.device("mps")
    for device in names:
        with pytest.raises(ValueError, match='device must be None, "cuda", "cuda:0" or "cpu"'):
            ShareBoostClassifier(2, device=device).fit(X, y)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for device in ("cuda", "cuda:1", 0):
        with pytest.raises(ValueError, match="torch finds none"):
            TotalQBoostClassifier(2, device=device).fit(X, y)


@pytest.mark.usefixtures("there")
def test_rows_on_a_device_of_another_type(monkeypatch):
    X, y = random_problem(0)
    monkeypatch.setattr(place, "TYPES", ("cuda",))
    with pytest.raises(ValueError, match=r"X is on the device .*give X.cpu\(\)"):
        ShareBoostClassifier(2).fit(torch.from_numpy(X), y)


def test_names_are_checked_before_torch_is_imported(monkeypatch):
    X, y = random_problem(0)
    monkeypatch.setitem(sys.modules, "laconic.device.place", None)
    with pytest.raises(ValueError, match="device must be None"):
        ShareBoostClassifier(2, device="gpu").fit(X, y)
    with pytest.raises(ImportError, match=r'pip install "\.\[gpu\]"'):
        ShareBoostClassifier(2, device="cuda").fit(X, y)


def broken(X, at):
    X = X.copy()
    X[7, 2] = at
    return X


BAD = {
    "NaN": (lambda X: broken(X, np.nan), None),
    "infinity": (lambda X: broken(X, np.inf), None),
    "one dimension": (lambda X: X[:, 0], None),
    "three dimensions": (lambda X: X[:, :, None], None),
    "no rows": (lambda X: X[:0], lambda y: y[:0]),
    "no columns": (lambda X: X[:, :0], None),
    "fewer labels": (lambda X: X, lambda y: y[:-1]),
    "one class": (lambda X: X, lambda y: 0 * y),
    "amounts": (lambda X: X, lambda y: y + 0.5),
    "missing labels": (lambda X: X, lambda y: np.where(y == 0, np.nan, y)),
    "complex": (lambda X: X + 1j, None),
}


def message(fit):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((ValueError, TypeError)) as raised:
            fit()
    return str(raised.value).split("\n")[0]


@pytest.mark.parametrize("name", BAD)
@pytest.mark.usefixtures("there")
def test_bad_input_gets_the_messages_of_arrays(name, device):
    X, y = random_problem(0)
    change_X, change_y = BAD[name]
    X, y = change_X(X), (change_y or (lambda y: y))(y)
    known = message(lambda: ShareBoostClassifier(2).fit(X, y))
    given = torch.from_numpy(np.ascontiguousarray(X)).to(device)
    for labels in (y, torch.from_numpy(y).to(device)):
        assert message(lambda: ShareBoostClassifier(2).fit(given, labels)) == known  # noqa: B023


WEIGHTS = {
    "NaN": lambda n: np.where(np.arange(n) == 3, np.nan, 1.0),
    "infinity": lambda n: np.where(np.arange(n) == 3, np.inf, 1.0),
    "negative": lambda n: np.where(np.arange(n) == 3, -1.0, 1.0),
    "two dimensions": lambda n: np.ones((n, 2)),
    "all zero": np.zeros,
}


@pytest.mark.parametrize("kind", ["U1", ">i8", ">f4", "longdouble", "uint16", "uint64", "?"])
@pytest.mark.usefixtures("there")
def test_labels_of_any_type(kind, device):
    """Those that no tensor can hold come back as an array."""
    X, y = random_problem(0, k=2)
    y = y.astype(kind)
    y.flags.writeable = False
    known = ShareBoostClassifier(2).fit(X, y)
    given = torch.from_numpy(X).to(device)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ShareBoostClassifier(2).fit(given, y)
    assert found.classes_.dtype == known.classes_.dtype
    for model in (found, known):
        labels = model.predict(given)
        assert isinstance(labels, np.ndarray) == (kind not in ("uint16", "uint64", "?"))
        labels = labels if isinstance(labels, np.ndarray) else labels.cpu().numpy()
        np.testing.assert_array_equal(labels, known.predict(X))


@pytest.mark.usefixtures("there")
def test_other_arguments_are_those_of_arrays(device):
    X, y = random_problem(0)
    given = torch.from_numpy(X).to(device)
    same_path(ShareBoostClassifier(2).fit(given, y, 2.0), ShareBoostClassifier(2).fit(X, y, 2.0))
    for rest in ((None,), (y, np.ones(len(y)) + 1j)):
        known = message(lambda: ShareBoostClassifier(2).fit(X, *rest))  # noqa: B023
        there = [torch.from_numpy(a).to(device) if a is not None else a for a in rest]
        assert message(lambda: ShareBoostClassifier(2).fit(given, *there)) == known  # noqa: B023
    assert "give X.to_dense()" in message(lambda: ShareBoostClassifier(2).fit(given.to_sparse(), y))
    model = ShareBoostClassifier(2).fit(given, y)
    X = broken(X, np.nan)
    known = message(lambda: model.predict(X))
    assert message(lambda: model.predict(torch.from_numpy(X).to(device))) == known


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.usefixtures("there")
def test_bad_weights_get_the_messages_of_arrays(name, device):
    X, y = random_problem(0)
    weight = WEIGHTS[name](len(y))
    known = message(lambda: ShareBoostClassifier(2).fit(X, y, weight))
    given = torch.from_numpy(X).to(device)
    for weights in (weight, torch.from_numpy(weight).to(device)):
        found = message(lambda: ShareBoostClassifier(2).fit(given, y, weights))  # noqa: B023
        assert found == known or (name == "two dimensions" and "sample_weight" in found)


@pytest.mark.usefixtures("there")
def test_stumps_take_missing_values(device):
    X, y = random_problem(0)
    X = broken(X, np.nan)
    known = ShareBoostClassifier(3, pool="stumps").fit(X, y)
    given = torch.from_numpy(X).to(device)
    same_path(ShareBoostClassifier(3, pool="stumps").fit(given, y), known)
    found = known.predict(given)
    np.testing.assert_array_equal(found.cpu(), known.predict(X))
