"""Pieces: every sum over balls against the explicit group of columns, and fits that use them."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from laconic import Predictor, ShareBoostClassifier
from laconic.correct import Newton
from laconic.losses import MarginLoss
from laconic.model.pieces import Piece
from laconic.numeric.threads import Threads
from laconic.penalties import L2
from laconic.pools import Columns, Pieces, Place, balls, bind_parts
from laconic.rows.limits import Limits
from laconic.rows.rows import rows_in_memory
from problems import random_problem

KINDS = {
    "hard": {},
    "soft": {"soft": True},
    "relative": {"relative": True, "balance": 0.5},
    "soft relative": {"soft": True, "relative": True, "slope": 2.0},
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def rings(m=240, d=3, seed=0, dtype=np.float64):
    """Three classes by distance from the origin, with noise: no linear model tells them apart."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    size = np.linalg.norm(X, axis=1) + 0.1 * rng.standard_normal(m)
    y = np.digitize(size, np.quantile(size, [1 / 3, 2 / 3]))
    return X.astype(dtype), y


def bound(X, weight=None, n_jobs=1, **settings):
    settings = {"n_centres": 9, "n_radii": 5, "max_share": 0.8, **settings}
    weight = np.ones(len(X)) if weight is None else weight
    return Pieces(**settings).bind(X, weight / weight.sum(), Threads(n_jobs))


def explicit(pool, X, weight, kind):
    """Columns of every ball from the definition, (atoms, n_rows, width)."""
    settings = {"soft": False, "relative": False, "slope": X.shape[1] ** 0.5, "balance": 0.0}
    settings.update(KINDS[kind])
    weight = weight / weight.sum()
    mean = weight @ X
    spread = np.sqrt(weight @ ((X - mean) ** 2).sum(axis=1))
    out = []
    for number in range(pool.n_atoms):
        centre, radius = pool.extract([number]).centre[0], pool.atom(number).radius
        distance = np.linalg.norm(X - centre, axis=1)
        height = (distance < radius).astype(float)
        share = weight @ height
        if settings["soft"]:
            height *= 1 - (distance / radius) ** 2
        origin, unit = (centre, radius) if settings["relative"] else (mean, spread)
        linear = settings["slope"] * (X - origin) / unit
        columns = np.column_stack([linear, np.ones(len(X))])
        out.append(height[:, None] * columns * share ** -settings["balance"])
    return np.array(out)


@every_kind
def test_sums_and_scores_of_every_ball_are_those_of_its_columns(kind):
    X, _ = rings()
    rng = np.random.default_rng(1)
    weight = rng.random(len(X))
    pool = bound(X, weight, **KINDS[kind])
    columns = explicit(pool, X, weight, kind)
    residual = rng.standard_normal((len(X), 4))
    exact = np.einsum("amw,mk->awk", columns, residual)
    blocks = list(pool.gradients(residual))
    assert [first for first, _ in blocks] == np.cumsum(
        [0] + [len(s) for _, s in blocks[:-1]]
    ).tolist()
    np.testing.assert_allclose(np.vstack([s for _, s in blocks]), exact.reshape(-1, 4), atol=1e-11)
    norms = np.abs(exact).sum(axis=2)
    np.testing.assert_allclose(
        np.concatenate([n for _, n in pool.norms(residual)]), norms.reshape(-1), rtol=1e-9
    )
    choice = pool.best(residual)
    assert choice.index == norms.sum(axis=1).argmax()
    assert choice.score == pytest.approx(norms.sum(axis=1).max())
    assert choice.steepest == pytest.approx(norms.max())
    barred = pool.best(residual, forbidden=np.array([choice.index]))
    assert barred.index == np.delete(norms.sum(axis=1), choice.index).argsort()[-1] + (
        np.delete(norms.sum(axis=1), choice.index).argmax() >= choice.index
    )
    np.testing.assert_allclose(pool.columns(range(pool.n_atoms)), np.hstack(columns), atol=1e-12)
    squares = np.einsum("m,amw->aw", weight, columns**2)
    np.testing.assert_allclose(pool.squares(weight), squares.reshape(-1), rtol=1e-9)


@every_kind
@pytest.mark.parametrize(("dtype", "shift"), [(np.float32, 0.0), (np.float64, 1e5)])
def test_squares_are_those_of_the_balls_written_down(kind, dtype, shift):
    X, _ = rings(m=300, dtype=dtype)
    X = np.vstack([X, X[:20], np.zeros((1, 3), dtype=dtype)]) + dtype(shift)
    weight = np.random.default_rng(5).integers(0, 3, len(X)).astype(float)
    pool = bound(X, n_jobs=2, centres=X[-25:], min_share=0.003, **KINDS[kind])
    naive = [
        weight @ np.square(pool.local(a).written(), dtype=np.float64) for a in range(pool.n_atoms)
    ]
    squares = pool.squares(weight).reshape(-1, 4)
    tolerance = 1e-5 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(squares, naive, rtol=tolerance, atol=tolerance * np.max(naive))


def test_squares_of_a_row_at_its_own_centre_are_zero():
    X, _ = rings(m=300)
    weight = np.full(300, 1 / 300)
    pool = bound(X, n_radii=1, centres=X[:40], min_share=1e-3, max_share=1e-3, relative=True)
    squares = pool.squares(weight).reshape(-1, 4)
    np.testing.assert_array_equal(squares[:, :3], 0.0)
    np.testing.assert_allclose(squares[:, 3], 1 / 300)


@pytest.mark.parametrize("m", [1, 7, 2048, 4100])
def test_rows_that_fill_no_whole_stretch_are_summed_too(m):
    rng = np.random.default_rng(m)
    codes = rng.integers(0, 4, (2, m)).astype(np.uint8)  # code 3 is outside
    depths = rng.random((2, m))
    table, residual = rng.standard_normal((m, 32)), rng.standard_normal((m, 2))
    sums = np.zeros((2, 3, 6, 32))
    balls.sums_within(codes, depths, table, residual, sums)
    for j in range(2):
        powers = np.hstack([residual * depths[j][:, None] ** p for p in range(3)])
        for b in range(3):
            of = codes[j] <= b
            np.testing.assert_allclose(sums[j, b], powers[of].T @ table[of], atol=1e-10)


@every_kind
def test_new_rows_get_the_columns_of_training_rows(kind):
    X, _ = rings()
    pool = bound(X, **KINDS[kind])
    atoms = [7, 3, 3 + 5, 44]
    scaled = pool.extract(atoms).columns(X) * pool.scales(atoms)
    np.testing.assert_allclose(scaled, pool.columns(atoms), atol=1e-12)
    written = pool.extract(atoms).sparse_columns(sparse.csr_matrix(X))
    np.testing.assert_array_equal(written.toarray(), pool.extract(atoms).columns(X))


def test_balls_hold_the_shares_that_were_asked_for():
    X, _ = rings(m=200)
    pool = bound(X, n_radii=4, min_share=0.1, max_share=1.0)
    held = [len(pool.local(a).rows) / 200 for a in range(4)]
    np.testing.assert_allclose(held, [0.1, 0.4, 0.7, 1.0])
    np.testing.assert_allclose(pool.extract(range(4)).share, held)
    distance = np.linalg.norm(X - pool.extract([0]).centre, axis=1)
    assert pool.extract([0]).nearest == distance.argmin()
    for a in range(4):  # no row lies on a sphere
        assert np.abs(distance - pool.atom(a).radius).min() > 1e-9


@every_kind
@pytest.mark.parametrize("intercept", [True, False])
def test_correction_is_that_of_the_columns_written_down(kind, intercept):
    X, y = rings()
    weight = np.random.default_rng(2).random(len(y))
    weight /= weight.sum()
    atoms = [4, 22, 38]
    pool = bound(X, weight, **KINDS[kind])
    design = pool.columns(atoms)
    groups = [list(range(4 * i, 4 * i + 4)) for i in range(3)]
    written = Columns(scale=None, groups=groups).bind(design, weight, Threads(1))
    penalty, answers, sums = L2(1e-3), [], []
    for p, numbers in ((pool, atoms), (written, range(3))):
        rows = rows_in_memory([p], MarginLoss(), y, weight, 3, Threads(2), intercept, Limits(64, 0))
        rows.reset(numbers)
        start = np.zeros((rows.n_columns, 3))
        answers.append(Newton(gradient_tol=1e-10).solve(rows, penalty, start))
        sums.append(rows.class_sums[int(intercept) :] + np.outer(rows.means, rows.class_sums[0])[
            int(intercept) :] * intercept)  # fmt: skip
        assert answers[-1].certificate.converged
        assert answers[-1].certificate.gap < 1e-8
    ours, theirs = answers
    assert ours.value == pytest.approx(theirs.value, rel=1e-10)
    np.testing.assert_allclose(ours.weights[1:], theirs.weights[1:], atol=1e-6)
    np.testing.assert_allclose(*sums, atol=1e-12)


@every_kind
def test_hessian_blocks_are_those_of_the_columns_written_down(kind):
    X, y = rings()
    pool = bound(X, **KINDS[kind])
    limits = Limits(block_rows=100, preconditioner_rows=240, local_rows=240)  # no row is left out
    weight = np.full(240, 1 / 240)
    rows = rows_in_memory([pool], MarginLoss(), y, weight, 3, Threads(1), limits=limits)
    rows.reset([4, 38])
    W = np.random.default_rng(3).standard_normal((9, 3))
    rows.evaluate(W)
    whole = np.array([rows.curve(e.reshape(9, 3)).reshape(-1) for e in np.eye(27)])
    whole = whole.reshape(9, 3, 9, 3)
    first = 0
    for block in rows.hessian_blocks():
        s = slice(first, first + block.shape[1])
        first = s.stop
        for c in range(3):
            np.testing.assert_allclose(block[c], whole[s, c, s, c], atol=1e-12)
    assert first == 9


def test_ball_of_all_rows_is_the_linear_model():
    X, y = random_problem(m=150, d=4)
    pool = Pieces(1, 1, min_share=1, max_share=1, slope=1.0, relative=True)
    piece = ShareBoostClassifier(1, pool=pool, alpha=0, tol=1e-12).fit(X, y)
    linear = ShareBoostClassifier(4, alpha=0, tol=1e-12).fit(X, y)
    assert piece.path_.losses[-1] == pytest.approx(linear.path_.losses[-1], rel=1e-8)
    np.testing.assert_allclose(piece.predict_proba(X), linear.predict_proba(X), atol=1e-5)


def test_balls_without_rows_or_with_the_rows_of_another_are_never_chosen():
    X, y = rings(m=60)
    centres = np.vstack([X[:2], X[:2], X[:1] + 1e-9])  # each centre twice and more
    model = ShareBoostClassifier(50, pool=Pieces(n_radii=4, centres=centres)).fit(X, y)
    inside = [
        tuple(np.linalg.norm(X - c, axis=1) < r)
        for c, r in zip(model.predictor_.map.centre, model.predictor_.map.radius, strict=True)
    ]
    assert 5 <= len(set(inside)) == len(inside) <= 8
    assert all(any(held) for held in inside)
    assert model.status_ == "no admissible atom is left that helps"


def test_soft_balls_of_the_same_rows_differ_by_their_radii():
    X, _ = rings()
    hard, soft = (bound(X, n_radii=1, centres=X[:1], soft=s).local(0) for s in (False, True))
    assert hard.spans(hard)
    assert soft.spans(soft)
    assert not hard.spans(soft)
    assert not soft.spans(soft._replace(heights=soft.heights**2))
    assert not hard.spans(hard._replace(rows=hard.rows[1:]))


@pytest.mark.parametrize("soft", [False, True])
def test_weight_two_is_the_row_twice(soft):
    X, y = rings(m=80)
    weight = np.random.default_rng(4).integers(1, 3, 80)
    pool = Pieces(n_radii=6, centres=X[:10], soft=soft)
    settings = {"max_atoms": 4, "pool": pool, "tol": 1e-10, "alpha": 1e-4}
    twice = ShareBoostClassifier(**settings).fit(np.repeat(X, weight, 0), np.repeat(y, weight))
    weighted = ShareBoostClassifier(**settings).fit(X, y, sample_weight=weight)
    assert [a.centre for a in twice.atoms_] == [a.centre for a in weighted.atoms_]
    np.testing.assert_allclose(twice.path_.losses, weighted.path_.losses, rtol=1e-7)
    np.testing.assert_allclose(twice.decision_function(X), weighted.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_clusters_of_weighted_repeated_and_shuffled_rows_are_the_same(dtype):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 3)).astype(dtype)  # many more rows than centres
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    weight = rng.integers(1, 4, 300)
    model = ShareBoostClassifier(3, pool=Pieces(20, 3))
    weighted = clone(model).fit(X, y, sample_weight=weight)
    copies = rng.permutation(np.repeat(np.arange(300), weight))
    repeated = clone(model).fit(X[copies], y[copies])
    one, other = weighted.predictor_.map, repeated.predictor_.map
    np.testing.assert_array_equal(one.centre, other.centre)
    np.testing.assert_allclose(one.radius, other.radius, rtol=1e-6)
    assert np.array_equal(weighted.predict(X), repeated.predict(X))
    # Weights count all the same: the centre of a cluster is a weighted mean.
    unweighted = clone(model).fit(X, y).predictor_.map
    assert not np.array_equal(one.centre, unweighted.centre)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_do_not_change_a_bit(dtype):
    X, y = rings(m=5000, dtype=dtype)
    pool = Pieces(40, 7, soft=True)
    one, two = (ShareBoostClassifier(4, pool=pool, n_jobs=n, alpha=1e-3) for n in (1, 2))
    for model in (one, two):
        model._limits = Limits(serial=0)
        model.fit(X, y)
    assert one.atoms_ == two.atoms_
    np.testing.assert_array_equal(one.atom_coef_, two.atom_coef_)
    assert one.atom_coef_.dtype == np.float64


def test_float32_chooses_as_float64():
    X, y = rings(m=400, dtype=np.float32)
    pool = Pieces(n_radii=5, centres=X[:12])
    single = ShareBoostClassifier(5, pool=pool, alpha=1e-3).fit(X, y)
    double = ShareBoostClassifier(5, pool=pool, alpha=1e-3).fit(X.astype(np.float64), y)
    assert [a.centre for a in single.atoms_] == [a.centre for a in double.atoms_]
    np.testing.assert_allclose(single.path_.losses, double.path_.losses, rtol=1e-4)


def test_rows_far_from_zero_are_as_good_as_near():
    X, y = rings(m=300)
    near, far = (
        ShareBoostClassifier(4, pool=Pieces(n_radii=5, centres=X[:12] + shift), alpha=1e-3)
        for shift in (0.0, 1e5)
    )
    near.fit(X, y)
    far.fit(X + 1e5, y)
    np.testing.assert_allclose(far.path_.losses, near.path_.losses, rtol=1e-6)
    assert far.score(X + 1e5, y) == near.score(X, y)


@every_kind
@pytest.mark.parametrize("unit", [2.0**-10, 2.0**10])
def test_rows_in_other_units_get_the_same_balls(kind, unit):
    X, y = rings(m=200)
    one, other = (
        ShareBoostClassifier(
            3, pool=Pieces(n_radii=3, centres=u * X[:8], max_share=1.0, **KINDS[kind]), alpha=1e-3
        ).fit(u * X, y)
        for u in (1.0, unit)
    )
    assert [a.centre for a in one.atoms_] == [a.centre for a in other.atoms_]
    radii = np.array([[a.radius for a in model.atoms_] for model in (one, other)])
    np.testing.assert_allclose(radii[1], unit * radii[0])
    np.testing.assert_allclose(other.path_.losses, one.path_.losses, rtol=1e-7)


def test_checkpoint_resumes_to_the_identical_model(tmp_path):
    X, y = rings()
    settings = {"pool": Pieces(20, 5, soft=True), "alpha": 1e-4}
    whole = ShareBoostClassifier(6, **settings).fit(X, y)
    file = tmp_path / "fit.npz"

    def stop(state):
        return state.last.size == 3

    ShareBoostClassifier(6, checkpoint=file, callbacks=[stop], **settings).fit(X, y)
    resumed = ShareBoostClassifier(6, checkpoint=file, **settings).fit(X, y)
    assert resumed.atoms_ == whole.atoms_
    np.testing.assert_array_equal(resumed.atom_coef_, whole.atom_coef_)
    other = ShareBoostClassifier(6, checkpoint=file, pool=Pieces(20, 6, soft=True), alpha=1e-4)
    with pytest.raises(ValueError, match="other data or settings"):
        other.fit(X, y)


@every_kind
def test_predictor_saves_loads_and_scores_a_row_like_a_batch(kind, tmp_path):
    X, y = rings(m=3000)
    pool = Pieces(30, 6, **KINDS[kind])
    model = ShareBoostClassifier(5, pool=pool, alpha=1e-4).fit(X[:500], y[:500])
    predictor = model.predictor_
    scores = predictor.scores(X)
    by_columns = predictor.map.columns(X) @ predictor.weights + predictor.intercept
    np.testing.assert_allclose(scores, by_columns, atol=1e-9)
    single = np.vstack([predictor.scores(row[None]) for row in X[:200]])
    np.testing.assert_allclose(single, scores[:200], atol=1e-9)
    predictor.save(tmp_path / "model.npz")
    loaded = Predictor.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.scores(X), scores)
    assert loaded.names() == predictor.names()
    np.testing.assert_allclose(model.path_[5].scores(X), scores, atol=1e-9)
    assert list(model.staged_predict(X))[-1].tolist() == model.predict(X).tolist()
    assert len(predictor.scores(X[:0])) == 0


def test_cost_counts_the_balls_a_row_is_expected_in():
    X, y = rings()
    model = ShareBoostClassifier(2, pool=Pieces(9, 3, min_share=0.25, max_share=0.25)).fit(X, y)
    cost = model.predictor_.cost()
    assert (cost.atoms, cost.features) == (2, 3)
    # Distances and comparisons, and the 3 x 3 slopes of about half a ball.
    distinct = len({a.centre for a in model.atoms_})
    inside = model.predictor_.map.share.sum()
    assert inside == pytest.approx(0.5, abs=0.02)
    assert cost.operations == 3 * distinct + 2 + round(9 * inside)


def test_learns_what_no_linear_model_can():
    X, y = rings(m=1500, d=2)
    model = ShareBoostClassifier(12, pool="pieces", alpha=1e-4).set_params(pool=Pieces(60, 10))
    assert model.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.8
    assert ShareBoostClassifier(2).fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) < 0.5


@pytest.mark.parametrize("rule", ["projection", "step", "column", "refit"])
def test_other_rules_and_refinement_work_on_balls(rule):
    X, y = rings(m=100)
    pool = Pieces(4, 3, max_share=0.6)
    model = ShareBoostClassifier(2, pool=pool, rule=rule, alpha=1e-3, refine=True).fit(X, y)
    assert np.all(np.diff(model.path_.objectives) < 0)


def test_include_and_exclude_by_record():
    X, y = rings()
    pool = Pieces(n_radii=3, centres=X[:5])
    first = ShareBoostClassifier(1, pool=pool).fit(X, y).atoms_[0]
    assert isinstance(first, Piece)
    assert first.width == 4
    without = ShareBoostClassifier(2, pool=pool, exclude=[first]).fit(X, y)
    assert first not in without.atoms_
    having = ShareBoostClassifier(2, pool=pool, include=[without.atoms_[1]]).fit(X, y)
    assert having.atoms_[0] == without.atoms_[1]
    with pytest.raises(ValueError, match="not an atom of this pool"):
        ShareBoostClassifier(2, pool=pool, include=[Piece(99, 1.0, 3)]).fit(X, y)


def test_is_a_step_of_a_pipeline():
    X, y = rings(m=400, d=2)
    step = Pieces(15, 2, max_share=0.3, random_state=3)
    assert clone(step).get_params() == step.get_params()
    model = make_pipeline(step, LogisticRegression(max_iter=2000)).fit(X, y)
    assert model.score(X, y) > 0.8
    columns = step.fit(X).transform(X)
    assert sparse.issparse(columns)
    assert columns.shape == (400, 15 * 2 * 3)
    names = step.get_feature_names_out()
    assert list(names[:4]) == ["ball 1 · x0", "ball 1 · x1", "ball 1", "ball 2 · x0"]
    np.testing.assert_array_equal(step.transform(X[:7]).toarray(), columns[:7].toarray())


@parametrize_with_checks([Pieces(4, 2)])
def test_keeps_the_rules_of_transformers(estimator, check):
    check(estimator)


def test_fewer_distinct_rows_than_centres():
    X, y = rings(m=20)
    X[10:] = X[:10]
    pool = bound(X, n_centres=50, n_radii=2)
    assert pool.n_atoms == 20
    model = ShareBoostClassifier(3, pool=Pieces(50, 2)).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


def test_rows_all_equal_do_not_break_a_fit():
    X, y = np.ones((12, 2)), np.arange(12) % 2
    with pytest.warns(UserWarning, match="no atom helps"):
        model = ShareBoostClassifier(3, pool=Pieces(5, 3)).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_centres": 0}, "n_centres must be"),
        ({"n_radii": 256}, "n_radii must be"),
        ({"n_radii": 2.5}, "n_radii must be"),
        ({"min_share": 0.0}, "min_share and max_share"),
        ({"min_share": 0.6, "max_share": 0.5}, "min_share and max_share"),
        ({"max_share": 1.5}, "min_share and max_share"),
        ({"min_share": None}, "min_share and max_share"),
        ({"max_share": np.nan}, "min_share and max_share"),
        ({"slope": 0.0}, "slope must be positive"),
        ({"slope": "a"}, "slope must be positive"),
        ({"slope": np.inf}, "slope must be positive"),
        ({"balance": -1.0}, "balance must be from 0 to 1"),
        ({"balance": None}, "balance must be from 0 to 1"),
        ({"soft": "no"}, "soft must be True or False"),
        ({"relative": 1}, "relative must be True or False"),
        ({"centres": np.ones((3, 7))}, "centres must be one or more rows of 3 features"),
        ({"centres": np.full((3, 3), np.nan)}, "centres must not hold missing"),
    ],
)
def test_bad_settings_say_what_would_do(settings, message):
    X, y = rings(m=30)
    with pytest.raises(ValueError, match=message):
        ShareBoostClassifier(1, pool=Pieces(**settings)).fit(X, y)


def test_missing_values_are_refused_at_prediction():
    X, y = rings(m=60)
    predictor = ShareBoostClassifier(1, pool=Pieces(5, 2)).fit(X, y).predictor_
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="missing or infinite"):
        predictor.scores(X)


@every_kind
def test_parts_have_the_balls_and_columns_of_the_whole(kind):
    """Parts of one row, and parts that balls do not reach, included; dense or sparse."""
    X, _ = rings(90)
    weight = np.random.default_rng(0).random(90)
    weight /= weight.sum()
    pool = Pieces(12, 5, **KINDS[kind])
    one = pool.bind(X, weight, Threads(1))
    every = range(one.n_atoms)
    for wrap in (np.asarray, sparse.csr_matrix):
        parts = Limits(cuts=(1, 40)).parts(wrap(X), weight)
        bounds = bind_parts(pool, parts, Threads(1))
        for part in bounds:
            arrays, expected = part.extract(every).arrays(), one.extract(every).arrays()
            assert all(np.array_equal(arrays[name], expected[name]) for name in expected)
            np.testing.assert_array_equal(part.scales(every), one.scales(every))
        columns = np.vstack([part.columns(every) for part in bounds])
        np.testing.assert_array_equal(columns, one.columns(every))


class FewSampled(Pieces):
    """Balls of rows in parts, from few of them."""

    _sampled = 400


def noisy_rings(m):
    """Two classes by distance from the origin and side, with much noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, 2))
    score = 4 * np.cos(2 * np.linalg.norm(X, axis=1)) + 2 * X[:, 0]
    return X, (score + rng.logistic(size=m) > 0).astype(int)


@every_kind
def test_balls_of_very_many_rows_come_from_a_sample(kind):
    """Whatever the parts, the same balls."""
    X, _ = noisy_rings(1500)
    weight = np.full(1500, 1 / 1500)
    pool = FewSampled(60, 10, **KINDS[kind])
    cuts = ((700,), (1, 2, 900), (100, 300, 301, 800, 1200, 1499))
    parts = [bind_parts(pool, Limits(cuts=c).parts(X, weight), Threads(1)) for c in cuts]
    every = range(parts[0][0].n_atoms)
    expected = parts[0][0].extract(every).arrays()
    for bounds in parts:
        for part in bounds:
            arrays = part.extract(every).arrays()
            assert all(np.array_equal(arrays[name], expected[name]) for name in expected)
    atoms = [0, 170, 355, 599]
    one, *others = (np.vstack([part.columns(atoms) for part in bounds]) for bounds in parts)
    for other in others:
        np.testing.assert_allclose(other, one, atol=1e-12)


@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_models_of_a_sample_are_like_those_of_all_rows(kind):
    """They differ as with other seeds of the clustering. The penalty makes the units matter."""
    X, y = noisy_rings(1500)
    pool, objectives = FewSampled(60, 10, **KINDS[kind]), []
    for cuts in ((1, 700), ()):
        for seed in range(3):
            pool.set_params(random_state=seed)
            model = ShareBoostClassifier(6, alpha=0.03, pool=pool, n_jobs=1)
            model._limits = Limits(cuts=cuts)
            objectives.append(model.fit(X, y).path_[6].objective)
    sampled, whole = np.split(np.array(objectives), 2)
    assert not np.any(sampled == whole)  # a sample was drawn
    np.testing.assert_allclose(sampled.mean(), whole.mean(), rtol=0.03)


@every_kind
def test_scales_of_a_sample_are_those_of_all_rows(kind):
    """The weights of a sample do not sum to one, and this must not change the units of columns."""
    X, _ = noisy_rings(8000)
    weight = np.random.default_rng(1).uniform(0.5, 1.5, 8000)
    weight /= weight.sum()
    pool = FewSampled(5, 4, min_share=0.2, centres=X[:5], **KINDS[kind])
    one = pool.bind(X, weight, Threads(1))
    every = range(one.n_atoms)
    for part in bind_parts(pool, Limits(cuts=(1, 3000)).parts(X, weight), Threads(1)):
        np.testing.assert_allclose(part.scales(every), one.scales(every), rtol=0.1)


def test_surveys_do_not_grow_with_the_rows():
    X, _ = noisy_rings(1500)
    weight = np.full(1500, 1 / 1500)
    surveys = [
        FewSampled(5, 2).survey(X[s], weight[s], Place(s.start, 1500), Threads(1))
        for s in (slice(0, 7), slice(7, 1499), slice(1499, 1500))
    ]
    numbers = np.concatenate([survey.numbers for survey in surveys])
    assert len(numbers) == 400
    assert set(np.diff(numbers)) == {3, 4}
    np.testing.assert_array_equal(np.concatenate([s.rows for s in surveys]), X[numbers])
    few = [Place(first, 400).sample(n, 400) for first, n in ((0, 3), (3, 397))]
    assert [rows.tolist() for rows in few] == [list(range(3)), list(range(397))]
