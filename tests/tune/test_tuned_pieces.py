"""Soft balls as functions of their centres and radii, and tuned fits of pieces and bumps."""

import shutil

import numpy as np
import pytest
from scipy import sparse

from laconic import Predictor, ShareBoostClassifier
from laconic.correct import Newton
from laconic.data.labels import held_out_rows
from laconic.estimators.training import TrainingInMemory
from laconic.losses import find_loss
from laconic.model.bumps import BumpsMap
from laconic.model.card import card
from laconic.model.pieces import PiecesMap
from laconic.numeric.threads import Threads
from laconic.penalties import L2
from laconic.pools import Bumps, Columns, Pieces, bind_parts
from laconic.rows.asked import RowsAsked
from laconic.rows.limits import Limits
from laconic.tune import Tuning
from laconic.tune.balls import WIDEST
from laconic.tune.balls_of import BallsOf
from laconic.tune.batches import Batch
from laconic.tune.bumps import BumpKind, TunedBumps
from laconic.tune.descent import Frame, TunedModel, loss_and_slopes
from laconic.tune.kinds import kind_of
from laconic.tune.pieces import PieceKind, TunedPieces

KINDS = ("one origin", "own origins", "bumps")
every_kind = pytest.mark.parametrize("kind", KINDS)


def some_balls(kind, unit=1.0, n=4, d=3):
    """Balls of which the first and the third share a centre."""
    rng = np.random.default_rng(0)
    centre, radius = rng.standard_normal((n, d)), rng.uniform(1.5, 3.0, n)
    centre[2] = centre[0]
    share, nearest = np.full(n, 0.5), np.arange(n)
    if kind == "bumps":
        return BumpsMap(unit * centre, unit * radius, share, nearest)
    origin = centre if kind == "own origins" else rng.standard_normal((1, d))
    return PiecesMap(unit * centre, unit * radius, unit * origin, True, share, nearest)


def rows(n=300, seed=1, d=3):
    return np.random.default_rng(seed).standard_normal((n, d)) * 1.5


def work(given, X, n_threads=1, free=True):
    kind = TunedBumps if given.kind == "bumps" else TunedPieces
    return kind(given, X, Threads(n_threads), free)


def asked(own, parameters, X, weights, residual):
    """Return scores, slopes and column sums, by whichever methods the atoms have."""
    if isinstance(own, TunedPieces):
        scores, kept = own.scores(parameters, X, weights)
        return scores, *own.sums(kept, residual)
    values, kept = own.values(parameters, X)
    return weights.T @ values, own.slopes(kept, weights @ residual), values @ residual.T


def drawn(given, n_rows, k=3, seed=2):
    rng = np.random.default_rng(seed)
    n = len(given) * (1 if given.kind == "bumps" else given.centre.shape[1] + 1)
    return rng.standard_normal((n, k)), rng.standard_normal((k, n_rows))


@every_kind
@pytest.mark.parametrize("unit", [1.0, 1e-150, 1e150])
def test_scores_and_sums_are_those_of_the_columns(kind, unit):
    given, X = some_balls(kind, unit), rows() * unit
    weights, residual = drawn(given, len(X))
    if kind != "bumps":  # the linear columns are as large as the unit
        weights.reshape(len(given), -1, 3)[:, :-1] /= unit
    own = work(given, X)
    scores, _, sums = asked(own, own.start, X, weights, residual)
    columns = given.columns(X)
    np.testing.assert_allclose(scores.T, columns @ weights, rtol=1e-9, atol=1e-9)
    naive = columns.T @ residual.T
    np.testing.assert_allclose(sums, naive, rtol=1e-9, atol=1e-10 * np.abs(naive).max())
    np.testing.assert_allclose(own.map(own.start).columns(X), columns, rtol=1e-9, atol=1e-10 * unit)


@every_kind
@pytest.mark.parametrize("free", [True, False])
def test_slopes_are_finite_differences(kind, free):
    X = rows()
    given = some_balls(kind)
    own = work(given, X, free=free)
    rng = np.random.default_rng(3)
    start = [p + 0.1 * rng.standard_normal(p.shape) for p in own.start]
    weights, residual = drawn(given, len(X))
    _, slopes, _ = asked(own, start, X, weights, residual)
    assert len(own.start[0]) == (4 if free else 3)
    step = 1e-6
    for number, array in enumerate(start):
        assert slopes[number].shape == array.shape
        for at in np.ndindex(array.shape):
            ends = []
            for sign in (1, -1):
                moved = [p.copy() for p in start]
                moved[number][at] += sign * step
                columns = own.map(moved).columns(X)
                ends.append(float(((columns @ weights).T * residual).sum()))
            expected = (ends[0] - ends[1]) / (2 * step)
            assert slopes[number][at] == pytest.approx(expected, rel=1e-4, abs=1e-3)


def test_the_objective_has_these_gradients():
    """`loss_and_slopes` by way of scores, beside the same loss by way of columns."""
    X, given = rows(80), some_balls("own origins")
    own, rng = work(given, X), np.random.default_rng(4)
    weights, base = rng.standard_normal((16, 3)), rng.standard_normal(3)
    frame = Frame(
        rng.uniform(0.3, 1, 16), rng.uniform(0, 1, 16), find_loss("margin"), L2(0.1), True
    )
    weight = rng.uniform(0.5, 2, 80)
    batch = Batch(X, rng.integers(0, 3, 80), weight / weight.sum())
    model = TunedModel(own.start, weights, base)

    class Written:
        def values(self, parameters, X):
            return own.map(parameters).columns(X).T, None

        def slopes(self, kept, pull):
            return []

    value, gradients = loss_and_slopes(own, model, frame, batch)
    same, of_weights = loss_and_slopes(Written(), model, frame, batch)
    assert value == pytest.approx(same, rel=1e-12)
    for one, other in zip(gradients[2:], of_weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    for number, step in ((0, 1e-6), (1, 1e-6)):
        along = rng.standard_normal(own.start[number].shape)
        ends = []
        for sign in (1, -1):
            moved = list(own.start)
            moved[number] = own.start[number] + sign * step * along
            ends.append(loss_and_slopes(Written(), TunedModel(moved, weights, base), frame, batch))
        found = (ends[0][0] - ends[1][0]) / (2 * step)
        assert found == pytest.approx(float((gradients[number] * along).sum()), rel=1e-4)


@every_kind
def test_single_precision_stays(kind):
    given, X = some_balls(kind), rows().astype(np.float32)
    weights, residual = drawn(given, len(X))
    own = work(given, X)
    one = asked(own, own.start, X, weights, residual)
    other = asked(own, own.start, X.astype(np.float64), weights, residual)
    for a, b in zip((one[0], *one[1], one[2]), (other[0], *other[1], other[2]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)
    kept = own.values(own.start, X)[1] if kind == "bumps" else own.scores(own.start, X, weights)[1]
    block = kept.blocks[0] if kind == "bumps" else kept.blocks[0].seen
    assert block.rows.dtype == block.heights.dtype == np.float32


@every_kind
def test_sparse_and_whole_rows_are_read(kind):
    given, X = some_balls(kind), rows().round()
    weights, residual = drawn(given, len(X))
    own = work(given, X)
    expected = asked(own, own.start, X, weights, residual)[0]
    for same in (sparse.csr_matrix(X), X.astype(np.int8)):
        np.testing.assert_array_equal(asked(own, own.start, same, weights, residual)[0], expected)


@every_kind
def test_threads_change_nothing(kind):
    given, X = some_balls(kind), rows(700).astype(np.float32)
    weights, residual = drawn(given, len(X))
    answers = []
    for n_threads in (1, 3):
        with Threads(n_threads) as threads:
            own = work(given, X)
            own._threads = threads
            scores, slopes, sums = asked(own, own.start, X, weights, residual)
            answers.append([scores, *slopes, sums])
    for one, other in zip(*answers, strict=True):
        assert one.tobytes() == other.tobytes()


@every_kind
def test_no_step_makes_columns_larger(kind):
    """Heights end at 1, and radii stay near those at the start."""
    given, X = some_balls(kind), rows()
    for free in (True, False):
        own = work(given, X, free=free)
        for change in (-9.0, 9.0):
            moved = own.settled([own.start[0], own.start[1] + change])
            made, most = own.map(moved), WIDEST if free else 1.0
            ratio = made.radius / given.radius
            np.testing.assert_allclose(ratio, most if change > 0 else 1 / WIDEST)
            columns = np.abs(made.columns(X))
            full = np.ones((len(X), 1))
            if kind != "bumps":
                away = np.abs(X[:, None] - given.origin[None])
                full = np.concatenate([away, np.ones((*away.shape[:2], 1))], axis=2)
                full = np.broadcast_to(full, (len(X), len(given), 4)).reshape(len(X), -1)
            assert (columns <= full + 1e-12).all()


def test_tuned_balls_are_inherited_by_larger_models():
    for kind, of in (("one origin", PieceKind()), ("bumps", BumpKind())):
        chosen, tuned = some_balls(kind), some_balls(kind, 2.0)
        assert of.start(chosen, None, [-1] * 4, True) is chosen
        made = of.start(chosen, tuned, [-1, 3, 1, -1], True)
        np.testing.assert_array_equal(made.radius[[1, 2]], tuned.radius[[3, 1]])
        np.testing.assert_array_equal(made.radius[[0, 3]], chosen.radius[[0, 3]])
        np.testing.assert_array_equal(made.centre[0], chosen.centre[0])
        shared = of.start(chosen, tuned, [-1, 3, 1, -1], False)
        np.testing.assert_array_equal(shared.centre[[0, 2]], tuned.centre[[1, 1]])
        np.testing.assert_array_equal(chosen.centre, some_balls(kind).centre)


@every_kind
def test_remarks_are_those_of_the_rows(kind):
    given, X = some_balls(kind), rows(5000)
    weight = np.random.default_rng(5).uniform(0.5, 2, len(X))
    with Threads(1) as threads:
        pool = kind_of(given).pool(given, np.ones(16), remarks=True)
        parts = [(X[s], weight[s] / weight.sum()) for s in (slice(3000), slice(3000, 5000))]
        [whole] = bind_parts(pool, [(X, weight / weight.sum())], threads)
        [found, again] = (b.extract(range(4)) for b in (whole, bind_parts(pool, parts, threads)[1]))
    distance = np.linalg.norm(X[:, None] - given.centre, axis=2)
    np.testing.assert_allclose(found.share, weight @ (distance < given.radius) / weight.sum())
    np.testing.assert_array_equal(found.nearest, distance.argmin(axis=0))
    np.testing.assert_array_equal(found.radius, given.radius)
    np.testing.assert_allclose(again.share, found.share)
    np.testing.assert_array_equal(again.nearest, found.nearest)


@every_kind
@pytest.mark.parametrize("cuts", [(), (100, 130)])
def test_the_corrector_gets_the_columns_of_the_map(kind, cuts):
    """Of pieces, only rows inside the balls are stored. The solution is that of all columns."""
    given, X = some_balls(kind), rows()
    codes = np.arange(300) % 3
    scales = np.ones(4) if kind == "bumps" else np.tile([0.7, 0.7, 0.7, 1.3], 4)
    answers = []
    with Threads(1) as threads:
        local = bound(X, codes, BallsOf(given, scales), threads, Limits(cuts=cuts))
        whole = bound(given.columns(X) * scales, codes, Columns(scale=None), threads)
        for there in (local, whole):
            start = np.zeros((there.n_columns, 3))
            answers.append(Newton(1e-9).solve(there, L2(0.01), start))
    assert answers[0].value == pytest.approx(answers[1].value, abs=1e-8)
    np.testing.assert_allclose(answers[0].weights[1:], answers[1].weights[1:], atol=1e-3)
    np.testing.assert_allclose(local.pool.scales(range(4)), scales)
    third, first = np.split(local.pool.extract([2, 0]).columns(X), 2, axis=1)
    width = len(scales) // 4
    np.testing.assert_allclose(third, given.columns(X)[:, 2 * width : 3 * width])
    np.testing.assert_allclose(first, given.columns(X)[:, :width])


def shells(n, seed, d=4):
    X = np.random.default_rng(seed).standard_normal((n, d))
    return X, np.digitize(np.linalg.norm(X, axis=1), [1.5, 2.2])


POOLS = {
    "pieces": Pieces(60, 8, soft=True),
    "relative": Pieces(60, 8, soft=True, relative=True, balance=0.3),
    "bumps": Bumps(60, 8),
}
every_pool = pytest.mark.parametrize("name", POOLS)


def booster(name, n=5, **settings):
    own = {"pool": POOLS[name], "tune": Tuning(epochs=40), "random_state": 0, "alpha": 1e-4}
    return ShareBoostClassifier(n, **{**own, **settings})


@pytest.fixture(scope="module")
def fits():
    """Tuned fits, and their paths: fits without tuning of the rows that do not judge."""
    X, y = shells(1000, 0)
    kept = held_out_rows(booster("pieces"), X, y, np.ones(1000))[:2]
    return {name: (booster(name).fit(X, y), booster(name, tune=False).fit(*kept)) for name in POOLS}


@every_pool
def test_tuned_balls_are_better(fits, name):
    tuned, plain = fits[name]
    X, y = shells(3000, 1)
    assert tuned.path_[5].loss < plain.path_[5].loss
    assert tuned.score(X, y) > plain.score(X, y) + 0.02
    assert [e.atoms for e in tuned.path_.chosen] == [e.atoms for e in plain.path_]


@every_pool
def test_the_entry_tells_its_atoms(fits, name):
    tuned, plain = fits[name]
    entry, (X, _) = tuned.path_[5], shells(1000, 0)
    assert [a.radius for a in entry.atoms] == entry.map.radius.tolist()
    assert [a.centre for a in entry.atoms] == [a.centre for a in plain.atoms_]
    assert tuned.atoms_ == list(entry.atoms)
    inside = np.linalg.norm(X[:, None] - entry.map.centre, axis=2) < entry.map.radius
    np.testing.assert_allclose(entry.map.share, inside.mean(axis=0))
    np.testing.assert_allclose(entry.scales, plain.path_[5].scales, rtol=1e-12)
    assert f"radius {entry.map.radius[0]:.3g}" in card(tuned.predictor_)
    np.testing.assert_array_equal(tuned.at(4).predict(X), plain.at(4).predict(X))


@every_pool
def test_the_nearest_row_is_numbered_among_all(fits, name, tmp_path):
    """The row nearest to a chosen ball is one that its path was grown on."""
    X, y = shells(1000, 0)
    absent = held_out_rows(booster(name), np.arange(1000), y, np.ones(1000))[3][0]
    np.save(tmp_path / "rows.npy", X)
    in_parts = booster(name).fit(tmp_path / "rows.npy", y)
    assert in_parts.path_.chosen is not None
    for model in (fits[name][0], in_parts):
        for entry in [*model.path_.chosen, model.path_[5]][1:]:
            distance = np.linalg.norm(X[:, None] - entry.map.centre, axis=2)
            if entry is not model.path_[5]:
                distance[absent] = np.inf
            np.testing.assert_array_equal(entry.map.nearest, distance.argmin(axis=0))


@pytest.mark.parametrize("name", ["pieces", "relative"])
def test_the_certificate_holds_for_the_tuned_balls(fits, name):
    """Weights of the descent are for the rows that are not held out, solved ones for all rows."""
    (model, _), (X, y) = fits[name], shells(1000, 0)
    entry = model.path_[5]
    found = []
    for rows, codes in ((X, y), held_out_rows(model, X, y, np.ones(1000))[:2]):
        columns = entry.map.columns(rows) * entry.scales
        at_entry, best = objectives(columns, codes, model.alpha_, entry)
        if at_entry == pytest.approx(entry.objective, rel=1e-9):
            found.append(best)
    assert len(found) == 1
    assert -1e-9 < entry.objective - found[0] <= entry.certificate.gap


def objectives(columns, codes, alpha, entry):
    """Return the objective of an entry over its scaled columns, and the least possible one."""
    with Threads(1) as threads:
        there = bound(columns, codes, Columns(scale=None), threads)
        weights = np.vstack([entry.base, entry.weights])
        weights[0] += (there.means[1:] - entry.means) @ entry.weights
        at_entry = Newton(1e-10, max_iter=0).solve(there, L2(alpha), weights)
        return at_entry.value, Newton(1e-10).solve(there, L2(alpha), weights).value


def bound(X, codes, pool, threads, limits=Limits()):  # noqa: B008 (it never changes)
    """Return rows with the columns of all atoms of a pool."""
    training = TrainingInMemory(X, codes, np.full(len(X), 1 / len(X)))
    there = training.rows(RowsAsked(pool, False, find_loss("margin"), 3, threads, True, limits))
    there.reset(range(there.pool.n_atoms))
    return there


@every_pool
def test_fits_repeat_on_any_number_of_threads(fits, name):
    tuned = fits[name][0]
    again = booster(name, n_jobs=3).fit(*shells(1000, 0))
    assert again.atom_coef_.tobytes() == tuned.atom_coef_.tobytes()
    assert again.predictor_.map.centre.tobytes() == tuned.predictor_.map.centre.tobytes()


@every_pool
def test_the_model_ships_as_any_other(fits, name, tmp_path):
    tuned, (X, _) = fits[name][0], shells(500, 3)
    tuned.predictor_.save(tmp_path / "m.laconic")
    read = Predictor.load(tmp_path / "m.laconic")
    np.testing.assert_array_equal(read.scores(X), tuned.predictor_.scores(X))
    integers = tuned.predictor_.quantise(X, bits=16)
    assert (integers.predict(X) == tuned.predict(X)).mean() > 0.97
    if shutil.which("cc"):
        for predictor in (tuned.predictor_, integers):
            compiled = predictor.to_c("m").compile()
            assert (compiled.predict(X) == predictor.predict(X)).mean() > 0.995


@pytest.mark.parametrize("name", ["pieces", "bumps"])
@pytest.mark.parametrize("unit", [1e-120, 1e120])
def test_units_may_be_tiny_and_huge(fits, name, unit):
    X, y = shells(1000, 0)
    other = booster(name).fit(X * unit, y)
    assert any(map(other.path_.is_tuned, other.path_.sizes))
    assert np.mean(fits[name][0].predict(X) != other.predict(X * unit)) < 0.02


@every_pool
def test_where_operations_count_they_do_not_grow(name):
    X, y = shells(600, 4)
    model = booster(name, 12, costs="operations", tune=Tuning(epochs=20)).fit(X, y)
    chosen = model.path_.chosen[12]
    cost, before = model.path_[12].predictor_cost, chosen.predictor_cost
    assert cost.operations <= before.operations
    assert cost.bytes <= before.bytes
    assert (model.path_[12].map.radius <= chosen.map.radius * (1 + 1e-12)).all()


@pytest.mark.parametrize("own", [{"max_features": 4}, {"costs": np.ones(4)}])
def test_where_only_features_count_pieces_are_tuned(own):
    X, y = shells(1000, 0)
    model = booster("pieces", **own).fit(X, y)
    entry, chosen = model.path_[5], model.path_.chosen[5]
    assert entry is not chosen
    assert entry.cost == chosen.cost
    assert (entry.map.radius <= chosen.map.radius * (1 + 1e-12)).all()


class Blurred:
    """Makes copies of rows with noise."""

    def copies_of(self, X, number):
        return X + 0.05 * np.random.default_rng(number).standard_normal(X.shape)


@every_pool
def test_copies_are_made_on_the_way(fits, name):
    X, y = shells(1000, 0)
    model = booster(name, tune=Tuning(epochs=40, copies=Blurred())).fit(X, y)
    entry, (X_test, y_test) = model.path_[5], shells(3000, 1)
    assert model.score(X_test, y_test) > fits[name][1].score(X_test, y_test) + 0.02
    inside = np.linalg.norm(X[:, None] - entry.map.centre, axis=2) < entry.map.radius
    np.testing.assert_allclose(entry.map.share, inside.mean(axis=0))  # of the rows, not of copies


def test_every_size_can_be_tuned():
    X, y = shells(500, 5)
    for name in ("pieces", "bumps"):
        model = booster(name, tune=Tuning(sizes="all", epochs=5)).fit(X, y)
        assert [entry.size for entry in model.path_] == list(range(6))
        assert any(map(model.path_.is_tuned, model.path_.sizes))


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        ("pieces", "hard balls cannot be tuned"),
        (Pieces(5, 3), r"use .*Pieces\(soft=True\)"),
        ([Pieces(5, 3, soft=True), "bumps"], "no parameters to tune"),
    ],
)
def test_what_cannot_be_tuned_is_refused(pool, message):
    with pytest.raises(TypeError, match=message):
        ShareBoostClassifier(2, pool=pool, tune=True).fit(*shells(50, 6))


def test_a_hard_map_is_refused():
    hard = PiecesMap(**{**some_balls("one origin").arrays(), "soft": False})
    with pytest.raises(TypeError, match="hard balls"):
        PieceKind().tunable(hard, rows(), Threads(1), None, True)
