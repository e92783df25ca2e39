"""TotalQBoost with ``tune``: its own objective, its price, and what is said about both."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_digits

from laconic import TotalQBoostClassifier
from laconic.data.labels import held_out_rows
from laconic.losses import find_loss
from laconic.penalties import L1
from laconic.pools import Hinges, Patches
from laconic.tune import Tuning
from laconic.tune.descent import Frame, TunedModel, loss_and_slopes


@pytest.fixture(scope="module")
def band():
    """Rows in a band across five features, and others. Few hinges of the pool lie along it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 5))
    y = (np.abs(X[:, :3].sum(1) + 0.2 * rng.standard_normal(900)) < 1.2).astype(int)
    return X[:500], y[:500], X[500:], y[500:]


def booster(rounds=12, **settings):
    own = {"pool": Hinges(6), "price": 0.01, "l1": 1e-3, "random_state": 0}
    own |= {"tune": Tuning(epochs=60, rate=0.1), "validation_fraction": 0.25}
    return TotalQBoostClassifier(rounds, **{**own, **settings})


@pytest.fixture(scope="module")
def tuned(band):
    return booster().fit(*band[:2])


@pytest.fixture(scope="module")
def plain(band):
    """The path of `tuned`: it is grown on the rows that do not judge."""
    X, y, *_ = band
    return booster(tune=False).fit(*held_out_rows(booster(), X, y, np.ones(len(y)))[:2])


def test_the_objective_falls_at_the_same_price(band, tuned, plain):
    size = plain.n_atoms_
    assert tuned.n_atoms_ == size
    assert tuned.path_.is_tuned(size)
    assert tuned.objective_ < 0.9 * plain.objective_
    assert tuned.score(*band[2:]) > plain.score(*band[2:])
    for model in (tuned, plain):
        entry = model.path_[size]
        assert model.objective_ == entry.objective + 0.01 * size
        assert entry.objective == pytest.approx(
            entry.loss + 1e-3 * np.abs(entry.weights).sum(), rel=1e-12
        )
        assert entry.cost == size
        assert (entry.weights != 0).all()
    assert tuned.price_ == plain.price_


def test_rounds_and_the_chosen_path_are_those_without_tuning(tuned, plain):
    for one, other in ((tuned.path_.chosen, plain.path_), (tuned.rounds_, plain.rounds_)):
        assert [e.numbers for e in one] == [e.numbers for e in other]
        expected = pytest.approx([e.objective for e in other], rel=1e-9)
        assert [e.objective for e in one] == expected
    assert [a.features for a in tuned.generated_] == [a.features for a in plain.generated_]


def test_bounds_are_for_the_atoms_of_the_pool(tuned, plain):
    size = tuned.n_atoms_
    expected = pytest.approx((plain.dual_value_, plain.bound_), rel=1e-9)
    assert (tuned.dual_value_, tuned.bound_) == expected
    assert np.isnan(tuned.duality_gap_)
    smaller = tuned.at(size - 1)
    gap = plain.at(size - 1).duality_gap_
    assert smaller.duality_gap_ == pytest.approx(gap, rel=1e-9)
    assert gap >= 0.01 * (size - 1)
    assert np.isnan(smaller.at(size).duality_gap_)
    with pytest.raises(ValueError, match="tuned"):
        tuned.path_[size].excess_loss_bound(1.0)


@pytest.mark.parametrize("loss", ["exponential", "logistic", "squared_hinge", "log"])
@pytest.mark.parametrize("intercept", [True, False])
def test_no_other_weights_of_the_tuned_atoms_are_better(band, loss, intercept):
    """A second solver: L-BFGS on w = u − v with u, v ≥ 0, the problem as the paper writes it."""
    X, y, *_ = band
    l1 = 3e-3
    model = booster(6, l1=l1, loss=loss, fit_intercept=intercept).fit(X, y)
    size = model.n_atoms_
    entry, of = model.path_[size], find_loss(loss)
    assert model.path_.is_tuned(size)
    outputs, values = of.n_outputs(2), []
    kept = held_out_rows(model, X, y, np.ones(len(y)))[:2]
    for rows, codes in ((X, y), kept):  # solved on all rows, or weights for those not held out
        Z = (entry.map.columns(rows) * entry.scales).T
        weight, target = np.full(len(codes), 1 / len(codes)), of.targets(codes, outputs)

        def objective(flat, Z=Z, weight=weight, target=target):
            u, v = flat[outputs:].reshape(2, size, outputs)
            scores = (u - v).T @ Z + flat[:outputs, None] * intercept
            state = np.empty_like(scores)
            value = of.evaluate(scores, target, weight, state)
            residual = of.residual(target, weight, state)
            slope = -Z @ residual.T
            base = -residual.sum(1) * intercept
            both = np.concatenate([base, (slope + l1).ravel(), (l1 - slope).ravel()])
            return value + l1 * flat[outputs:].sum(), both

        at_entry = np.concatenate([
            entry.intercept,
            np.maximum(entry.weights, 0).ravel(),
            np.maximum(-entry.weights, 0).ravel(),
        ])  # fmt: skip
        if objective(at_entry)[0] != pytest.approx(entry.objective, rel=1e-6):
            continue
        bounds = [(None, None)] * outputs + [(0, None)] * (2 * size * outputs)
        settings = {"maxiter": 5000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-10}
        found = minimize(
            objective, at_entry, jac=True, bounds=bounds, method="L-BFGS-B", options=settings
        )
        values.append(found.fun)
    assert len(values) == 1
    assert -1e-7 < entry.objective - values[0] <= entry.certificate.gap + 1e-7


def test_slopes_of_l1_are_finite_differences():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))

    class Lines:
        start, units = [rng.standard_normal((4, 3))], [1.0]

        def values(self, parameters, X):
            return parameters[0] @ X.T, X

        def slopes(self, X, pull):
            return [pull @ X]

    weights, penalty = rng.standard_normal((4, 1)), L1(0.3)
    model = TunedModel(Lines.start, weights, rng.standard_normal(1))
    frame = Frame(np.ones(4), np.zeros(4), find_loss("exponential"), penalty, True)
    batch = type(
        "Batch", (), {"X": X, "codes": rng.integers(0, 2, 60), "weight": np.full(60, 1 / 60)}
    )

    def value(weights):
        given = model._replace(weights=weights)
        return loss_and_slopes(Lines(), given, frame, batch)[0] + penalty.value(weights)

    slope = loss_and_slopes(Lines(), model, frame, batch)[1][1]
    for j in range(4):
        step = 1e-6 * np.eye(4)[:, [j]]
        along = (value(weights + step) - value(weights - step)) / 2e-6
        assert along == pytest.approx(slope[j, 0], rel=1e-6)


def test_weights_that_reach_zero_do_not_count_as_atoms(band):
    """With so strong an l1 term, solved weights of tuned atoms can be zero."""
    X, y, *_ = band
    for l1 in (0.02, 0.05, 0.1):
        model = booster(8, l1=l1, price=0.0, tune=Tuning("all", epochs=10, rate=0.3)).fit(X, y)
        for entry in model.path_:
            assert entry.weights.any(axis=1).all()
            assert len(entry.atoms) == len(entry.numbers) == entry.size


def test_several_prices_are_compared_without_tuning(band):
    X, y, *_ = band
    prices = [0.03, 0.01, 0.003]
    chosen = booster(price=prices, cv=3, tune=False).fit(X, y)
    model = booster(price=prices, cv=3).fit(X, y)
    np.testing.assert_array_equal(model.cv_scores_, chosen.cv_scores_)
    assert model.price_ == chosen.price_
    assert model.path_.is_tuned(model.n_atoms_)


@pytest.mark.parametrize("values", [{"price": [0.03, 0.01]}, {"l1": [1e-2, 1e-3]}])
def test_a_path_of_fits_tunes_each_model(band, values):
    X, y, *_ = band
    models = booster(8).fit_path(X, y, **values)
    assert any(model.path_.is_tuned(model.n_atoms_) for model in models)
    [(name, given)] = values.items()
    if name == "price":  # models of an l1 start from one another
        for value, model in zip(given, models, strict=True):
            alone = clone(model).set_params(price=value).fit(X, y)
            np.testing.assert_array_equal(alone.atom_coef_, model.atom_coef_)
            assert alone.objective_ == model.objective_


def test_held_out_rows_choose_the_size_and_accept(band):
    X, y, *_ = band
    model = booster(20, price=1e-3, early_stopping=True).fit(X, y)
    assert len(model.validation_losses_) == len(model.path_)
    best = model.validation_losses_.argmin()
    assert model.path_.sizes[best] == model.n_atoms_
    assert model.path_.is_tuned(model.n_atoms_)


def test_patches_with_costs_and_caps(band):
    X, y = load_digits(return_X_y=True)
    X, y = X[:400].astype(np.float32), y[:400]
    pool = Patches(n_templates=20, template_size=3, mask_grid=2, mask_sigma=2.0)
    given = {"pool": pool, "tune": Tuning(epochs=6), "costs": "operations", "max_operations": 2500}
    model = booster(6, price=1e-5, **given).fit(X, y)
    size = model.n_atoms_
    chosen, entry = model.path_.chosen[size], model.path_[size]
    assert entry is not chosen
    assert entry.cost == chosen.cost
    assert entry.predictor_cost.operations == chosen.predictor_cost.operations <= 2500
    assert model.objective_ == entry.objective + 1e-5 * entry.cost
    assert (model.predict(X) == model.at(size).predict(X)).all()


def test_threads_change_nothing(band, tuned):
    again = booster(n_jobs=2).fit(*band[:2])
    assert again.atom_coef_.tobytes() == tuned.atom_coef_.tobytes()
    assert again.atoms_ == tuned.atoms_


@pytest.mark.parametrize("pool", ["stumps", "rules", ["columns", "stumps"]])
def test_pools_without_parameters_are_refused(band, pool):
    with pytest.raises(TypeError, match="no parameters to tune"):
        booster(pool=pool).fit(*band[:2])


def test_sizes_beyond_the_rounds_are_refused(band):
    with pytest.raises(ValueError, match="no model of 30 atoms to tune, because max_rounds=12"):
        booster(tune=Tuning([30])).fit(*band[:2])
    with pytest.raises(ValueError, match="no model of 30 atoms to tune, because max_atoms=5"):
        booster(max_atoms=5, tune=Tuning([30])).fit(*band[:2])


def test_files_of_fits_without_tuning_are_used(band, tmp_path, assert_identical):
    """With early_stopping, both are grown on the same rows."""
    file, rounds = tmp_path / "fit", []
    own = {"early_stopping": True, "n_iter_no_change": 12, "callbacks": [rounds.append]}
    booster(tune=False, checkpoint=file, **own).fit(*band[:2])
    rounds.clear()
    model = booster(checkpoint=file, **own).fit(*band[:2])
    assert rounds == []
    assert_identical(model, booster(**own).fit(*band[:2]))
