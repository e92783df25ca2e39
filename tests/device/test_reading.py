"""A lowered map read on a device has the columns, scores and labels of the processor."""

import numpy as np
import pandas as pd
import pytest
import torch

from laconic import (
    ErrorClumpingClassifier,
    HolePunchingClassifier,
    ShareBoostClassifier,
    TotalQBoostClassifier,
)
from laconic.device import place, reading
from laconic.losses import LogLoss
from laconic.model.arrange import Arrange
from laconic.model.balls import Balls, Heights
from laconic.model.feature_maps import model_scores
from laconic.model.hinges import Hinge
from laconic.model.lowering import LoweredMap
from laconic.model.predictor import Predictor
from laconic.model.primitives import Compare, Filled, Gather, LookUp, Multiply
from laconic.model.windows import WindowMaximum
from laconic.pools import Pieces
from problems import of_every_kind, random_problem

RNG = np.random.default_rng(0)
CENTRES = RNG.uniform(1, 3, (5, 2))
NEAR = RNG.standard_normal((4, 20))  # three centres, and one of them twice
NEAR[3] = NEAR[0]
WINDOWS = WindowMaximum(  # the second column and the last one are the same
    (5, 4), [2, 3], RNG.standard_normal(13), [0, 0, 1, 1, 0, 0],
    [*CENTRES, CENTRES[1]], [0.7, 1.0, 2.0, 0.9, 5.0, 1.0],
)  # fmt: skip
PRIMITIVES = {
    "gather": Gather([3, 0, 3]),
    "gather all": Gather(range(20)),
    "filled": Filled([1, 4], [0.5, -2.0]),
    "compare": Compare([0, 1, 2, 4, 4], [0.1, 0.0, 1.0, 0.0, 0.0], [0, 0, 1, 2, 0]),
    "multiply": Multiply([0, 3], [1, 3]),
    "windows": WINDOWS,
    "hinge": Hinge([1, 2], [2, 5, 1], [1.0, -1.0, 0.5], [0.1, 0.2]),
    "bumps": Heights(NEAR, [3.0, 6.0, 0.0, 4.0]),
    "balls": Balls(NEAR, [5.0, 6.0, 0.0, 4.0], NEAR + 1, False),
    "soft balls of one origin": Balls(NEAR, [5.0, 6.0, 7.0, 4.0], NEAR[:1], True),
    "no balls": Balls(NEAR[:0], [], NEAR[:0], True),
    "look up": LookUp([2], [[1.0, 5.0, 2.0]]),
    "arrange": Arrange([Gather([2, 1]), Compare([0], [0.0], [0])], [2, 0, 1]),
}


class Listed(LoweredMap):
    def __init__(self, *primitives):
        self.primitives = list(primitives)

    def lower(self):
        return self.primitives

    def names(self, feature_names=None, categories=None):
        return [str(number) for number in range(self.n_columns)]


def rows(dtype, missing=False, n=60):
    X = np.random.default_rng(1).standard_normal((n, 20)).astype(dtype)
    X[:, 2] = np.random.default_rng(2).integers(0, 4, n)
    if missing:
        X[::7, 4] = np.nan
    return X


both = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["single", "double"])


@pytest.mark.parametrize("name", PRIMITIVES)
@both
def test_columns_and_scores_are_those_of_the_processor(name, dtype, device):
    missing = name in ("filled", "compare")
    X, map = rows(dtype, missing), Listed(PRIMITIVES[name], Gather([0]))
    weights = RNG.standard_normal((map.n_columns, 3))
    given = torch.from_numpy(X).to(device)
    found = reading.columns(map, given).cpu().numpy()
    np.testing.assert_allclose(found, map.columns(X), rtol=3e-6, atol=1e-6)
    known = model_scores(map, X, weights, np.ones(3))
    found = model_scores(map, given, weights, np.ones(3)).cpu().numpy()
    np.testing.assert_allclose(found, known, rtol=1e-5, atol=1e-5)


def test_no_primitives(device):
    found = model_scores(Listed(), torch.zeros(4, 2, device=device), np.zeros((0, 2)), np.ones(2))
    np.testing.assert_array_equal(found.cpu(), np.ones((4, 2)))


def test_products_out_of_the_range_of_single_precision(device):
    X = np.array([[1e-30, 1e-30], [1e30, 1e30], [0.0, 1.0], [2.0, 3.0]], dtype=np.float32)
    map = Listed(Multiply([0], [1]))
    found = reading.columns(map, torch.from_numpy(X).to(device))
    np.testing.assert_array_equal(found.cpu(), map.columns(X))


def test_images_that_are_not_finite_have_no_values(device):
    X = rows(np.float64)
    X[3, 5] = np.nan
    found = reading.columns(Listed(WINDOWS), torch.from_numpy(X).to(device)).cpu().numpy()
    np.testing.assert_allclose(found, WINDOWS.columns(X), atol=1e-6)
    assert np.isnan(found[3]).all()


def test_hinges_do_not_see_gaps_that_they_do_not_read(device):
    X, hinges = rows(np.float64), PRIMITIVES["hinge"]
    X[3, 5], X[4, 2], X[5, 1] = np.nan, np.inf, -np.inf
    found = reading.columns(Listed(hinges), torch.from_numpy(X).to(device)).cpu().numpy()
    np.testing.assert_allclose(found, hinges.columns(X), atol=1e-12)
    assert np.isnan(found[3]).tolist() == [False, True]


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("unit", [2.0**-1060, 1e-200, 1e200])
def test_balls_in_any_unit(soft, unit, device):
    X = rows(np.float64)
    X[5] = 1e90  # far outside
    weights = np.random.default_rng(3).standard_normal((84, 2))
    weights.reshape(4, 21, 2)[:, :-1] /= max(unit, 1e-290)
    balls = Balls(NEAR * unit, np.full(4, 5.0) * unit, NEAR * unit, soft)
    given = torch.from_numpy(X * unit).to(device)
    map = Listed(balls)
    known = model_scores(map, X * unit, weights, np.ones(2))
    np.testing.assert_allclose(model_scores(map, given, weights, np.ones(2)).cpu(), known, 1e-6)
    found = reading.columns(map, given).cpu()
    np.testing.assert_allclose(found, map.columns(X * unit), rtol=1e-9, atol=1e-9 * unit)


def test_rows_at_a_centre_are_exact(device):
    """Also if all rows are far from zero."""
    X = rows(np.float64) + 1e6
    bumps = Heights(X[:3], [1e-3, 1e-6, 1.0])
    found = reading.columns(Listed(bumps), torch.from_numpy(X).to(device)).cpu().numpy()
    assert found[:3].tolist() == np.eye(3).tolist()


BAD = {
    "gaps in balls": (PRIMITIVES["balls"], rows(np.float64, missing=True)),
    "gaps in bumps": (PRIMITIVES["bumps"], rows(np.float64, missing=True)),
    "hinge": (PRIMITIVES["hinge"], np.outer([1, 1.7e308], np.where(np.arange(20) == 5, -1, 1))),
    "overflow": (Multiply([0], [1]), np.full((3, 20), 1e200)),
    "gaps": (Gather([4]), rows(np.float64, missing=True)),
    "scores": (Gather([0]), np.full((3, 20), 1e308)),
    "pixels": (WINDOWS, np.full((3, 20), 1e36)),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_rows_get_the_messages_of_arrays(name, device):
    primitive, X = BAD[name]
    map = Listed(primitive)
    weights = np.full((map.n_columns, 2), 1e3)
    told = []
    for given in (X, torch.from_numpy(X).to(device)):
        with pytest.raises(ValueError) as raised:
            model_scores(map, given, weights, np.zeros(2))
        told.append(str(raised.value))
    assert told[0] == told[1]


ANSWERS = ("predict", "predict_proba", "decision_function", "transform", "corrected_proba")
MODELS = {
    "columns": ShareBoostClassifier(3),
    "stumps": ShareBoostClassifier(3, pool="stumps", loss="log", class_weight="balanced"),
    "rules": ShareBoostClassifier(2, pool="rules"),
    "hinges": ShareBoostClassifier(3, pool="hinges"),
    "pieces": ShareBoostClassifier(2, pool=Pieces(3, 2)),
    "bumps": ShareBoostClassifier(2, pool="bumps"),
    "mixed": ShareBoostClassifier(4, pool=["columns", "stumps", "products"]),
    "boosted": TotalQBoostClassifier(5, loss="log"),
    "own loss": ShareBoostClassifier(2, loss=LogLoss()),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("place", ["processor", "there"])
def test_models_answer_tensors_with_tensors(name, place, device, request):
    """Any fitted model predicts tensors, on the processor and in their own place."""
    if place == "there":
        request.getfixturevalue("there")
    X, y = of_every_kind()
    model = MODELS[name].fit(X, y)
    given = torch.from_numpy(X).to(device)
    for answer in ANSWERS:
        found, known = getattr(model, answer)(given), getattr(model, answer)(X)
        assert isinstance(found, torch.Tensor)
        assert found.device == given.device
        np.testing.assert_allclose(found.cpu(), known, rtol=1e-9, atol=1e-12)
    for found, known in zip(model.staged_predict(given), model.staged_predict(X), strict=True):
        np.testing.assert_array_equal(found.cpu(), known)
    staged = zip(model.staged_predict_proba(given), model.staged_predict_proba(X), strict=True)
    for found, known in staged:
        np.testing.assert_allclose(found.cpu(), known, rtol=1e-9)
    assert model.score(given, torch.from_numpy(y)) == pytest.approx(model.score(X, y))


@pytest.mark.parametrize("loss", ["exponential", "logistic", "squared_hinge"])
@pytest.mark.usefixtures("there")
def test_one_score(loss, device):
    X, y = random_problem(1, k=2)
    model = TotalQBoostClassifier(5, loss=loss).fit(X, y)
    given = torch.from_numpy(X).to(device)
    for answer in ANSWERS[:3]:
        found, known = getattr(model, answer)(given), getattr(model, answer)(X)
        np.testing.assert_allclose(found.cpu(), known, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [3, 5], [0.0, 1.0]])
@pytest.mark.usefixtures("there")
def test_labels(labels, device):
    """Labels that are no numbers come back as an array of NumPy."""
    X, y = random_problem(1, k=2)
    y = np.array(labels)[y]
    model = ShareBoostClassifier(2).fit(X, y)
    found = model.predict(torch.from_numpy(X).to(device))
    assert isinstance(found, np.ndarray if y.dtype.kind == "U" else torch.Tensor)
    np.testing.assert_array_equal(np.asarray(found.tolist()), model.predict(X))
    assert np.asarray(found[:1].tolist()).dtype.kind == y.dtype.kind
    assert model.score(torch.from_numpy(X).to(device), y) == model.score(X, y)


@pytest.mark.parametrize("model", [ErrorClumpingClassifier(), HolePunchingClassifier()],
                         ids=lambda model: type(model).__name__)  # fmt: skip
@pytest.mark.parametrize("place", ["processor", "there"])
def test_other_estimators_predict_tensors(model, place, device, request):
    if place == "there":
        request.getfixturevalue("there")
    X, y = random_problem(2, k=2)
    model.fit(X, y)
    given = torch.from_numpy(X).to(device)
    found = model.predict(given)
    assert isinstance(found, torch.Tensor)
    np.testing.assert_array_equal(found.cpu(), model.predict(X))
    found = model.decision_function(given).cpu()
    np.testing.assert_allclose(found, model.decision_function(X), rtol=1e-12)
    assert model.score(given, torch.from_numpy(y)) == model.score(X, y)
    if hasattr(model, "apply"):
        np.testing.assert_array_equal(model.apply(given).cpu(), model.apply(X))
        staged = zip(model.staged_predict(given), model.staged_predict(X), strict=True)
        assert all(torch.equal(own.cpu(), torch.from_numpy(known)) for own, known in staged)


def test_other_estimators_learn_from_tensors_of_the_processor():
    X, y = random_problem(2, k=2)
    weight = torch.ones(len(y), dtype=torch.float64)
    given = torch.from_numpy(X), torch.from_numpy(y), weight
    found = ErrorClumpingClassifier(random_state=0).fit(*given)
    known = ErrorClumpingClassifier(random_state=0).fit(X, y)
    np.testing.assert_array_equal(found.predict(X), known.predict(X))


@pytest.mark.usefixtures("there")
def test_rows_of_another_width_are_refused(device):
    X, y = random_problem(1)
    model = ShareBoostClassifier(2).fit(X, y)
    told = []
    for rows in (X[:, :3], torch.from_numpy(X[:, :3]).to(device)):
        with pytest.raises(ValueError) as raised:
            model.predict(rows)
        told.append(str(raised.value))
    assert told[0] == told[1]


def test_a_saved_predictor_reads_tensors(device, tmp_path):
    X, y = random_problem(1)
    ShareBoostClassifier(2).fit(X, y).predictor_.save(tmp_path / "model")
    predictor = Predictor.load(tmp_path / "model")
    given = torch.from_numpy(X).to(device)
    np.testing.assert_array_equal(predictor.predict(given).cpu(), predictor.predict(X))
    found = predictor.predict_proba(given)
    np.testing.assert_allclose(found.cpu(), predictor.predict_proba(X), rtol=1e-12)


@pytest.fixture
def of_counts():
    """Rows of whole numbers, and a saved predictor of them."""
    X = np.random.default_rng(4).integers(0, 9, (90, 4))
    y = (X[:, 1] + X[:, 2] > 8).astype(int)
    return X, ShareBoostClassifier(3, pool=["columns", "stumps"]).fit(X, y).predictor_


SHORT = (torch.int64, torch.uint8, torch.bool, torch.float16, torch.bfloat16)


@pytest.mark.parametrize("dtype", SHORT, ids=str)
@pytest.mark.parametrize("place", ["processor", "there"])
@pytest.mark.parametrize("integers", [False, True], ids=["floats", "integers"])
def test_a_predictor_answers_tensors_of_any_type_in_kind(
    dtype, place, integers, of_counts, device, request
):
    if place == "there":
        request.getfixturevalue("there")
    X, predictor = of_counts
    predictor = predictor.quantise(X) if integers else predictor
    given = torch.from_numpy(X).to(device, dtype)
    rows = given.double().cpu().numpy()
    for answer in ("predict", "scores", "predict_proba", "corrected_proba"):
        found, known = getattr(predictor, answer)(given), getattr(predictor, answer)(rows)
        assert isinstance(found, torch.Tensor)
        assert found.device == given.device
        np.testing.assert_allclose(found.cpu(), known, rtol=1e-12)


def test_a_predictor_of_dates_answers_in_kind(device):
    X, y = random_problem(1)
    table = pd.DataFrame(X).rename(columns=str)
    table["when"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.round(100 * X[:, 0]), "D")
    predictor = ShareBoostClassifier(4).fit(table[["when", "1", "2"]], y).predictor_
    days = np.c_[np.arange(len(y)) + 19000.0, X[:, 1:3]]
    found = predictor.scores(torch.from_numpy(days).to(device))
    assert isinstance(found, torch.Tensor)
    np.testing.assert_allclose(found.cpu(), predictor.scores(days), rtol=1e-12)


UNREAD = {
    "sparse": (lambda X: X.to_sparse(), r"give X.to_dense\(\)"),
    "meta": (lambda X: X.to("meta"), "X has no data"),
    "eight bits": (lambda X: X.to(torch.float8_e4m3fn), r"give X.float\(\)"),
    "quantised": (
        lambda X: torch.quantize_per_tensor(X.float(), 0.1, 0, torch.quint8),
        r"give X.dequantize\(\)",
    ),
    "complex": (lambda X: X + 1j, "(?i)complex"),
}


@pytest.mark.filterwarnings("ignore:.*quant")
@pytest.mark.parametrize("name", UNREAD)
def test_tensors_that_cannot_be_read(name, of_counts):
    change, message = UNREAD[name]
    X, predictor = of_counts
    y = predictor.predict(X)
    given = change(torch.from_numpy(X).double())
    model = ShareBoostClassifier(2).fit(X, y)
    asked = [ShareBoostClassifier(2), TotalQBoostClassifier(2), ErrorClumpingClassifier()]
    asked = [lambda own=own: own.fit(given, y) for own in asked]
    if name != "complex":
        asked.append(lambda: ShareBoostClassifier(2, device="cpu").fit(given, y))
    asked += [lambda own=own: own.predict(given) for own in (model, predictor)]
    asked.append(lambda: predictor.quantise(X).predict(given))
    for ask in asked:
        with pytest.raises((TypeError, ValueError), match=message):
            ask()


def test_complex_arrays_are_refused(of_counts):
    X, predictor = of_counts
    with pytest.raises(ValueError, match="complex"):
        predictor.predict(X + 1j)


def test_tensors_of_the_processor_share_their_memory():
    """Their path is that of arrays, without a copy."""
    X, y = random_problem(1)
    seen = []

    class Watched(ShareBoostClassifier):
        def _validated(self, X, y=None, reset=False, weight=None):
            out = super()._validated(X, y, reset, weight)
            seen.append(out[0] if reset else out)
            return out

    given = torch.from_numpy(X)
    model = Watched(2).fit(given, torch.from_numpy(y))
    model.predict(given)
    assert len(seen) == 2
    assert all(np.shares_memory(rows, X) for rows in seen)


@pytest.mark.gpu
def test_arrays_of_cupy_give_arrays_of_cupy():
    cupy = pytest.importorskip("cupy")
    X, y = random_problem(1)
    known = ShareBoostClassifier(3).fit(X, y)
    model = ShareBoostClassifier(3).fit(cupy.asarray(X), cupy.asarray(y))
    assert model.atoms_ == known.atoms_
    weighted = ShareBoostClassifier(3).fit(cupy.asarray(X), y, cupy.ones(len(y)))
    assert weighted.atoms_ == known.atoms_
    for answer in ANSWERS:
        found = getattr(model, answer)(cupy.asarray(X))
        assert isinstance(found, cupy.ndarray)
        np.testing.assert_allclose(found.get(), getattr(model, answer)(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", [(1000, 7), (1000,), (3, 5000)])
def test_rows_are_moved_piece_by_piece(shape, device, monkeypatch):
    monkeypatch.setattr(place, "MOVED", 5000)
    given = np.random.default_rng(0).random(shape)
    for array in (given, np.asfortranarray(given), given[::-1]):
        found = place.moved(array, torch.device(device))
        np.testing.assert_array_equal(found.cpu(), array)
    given.setflags(write=False)
    np.testing.assert_array_equal(place.moved(given, torch.device(device)).cpu(), given)
