"""Fits with ``tune``: what is accepted, what it keeps, and what is refused."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_digits

from laconic import Predictor, ShareBoostClassifier, TotalQBoostClassifier
from laconic.correct import Newton
from laconic.data.labels import held_out_rows
from laconic.deform import Deform
from laconic.estimators.training import TrainingInMemory
from laconic.losses import find_loss
from laconic.numeric.threads import Threads
from laconic.penalties import L2
from laconic.pools import Columns, Hinges, Patches
from laconic.rows.asked import RowsAsked
from laconic.rows.limits import Limits
from laconic.tune import Tuning


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600].astype(np.float32), y[:600], X[600:1200].astype(np.float32), y[600:1200]


def booster(n=6, **settings):
    pool = Patches(n_templates=20, template_size=3, mask_grid=2, mask_sigma=2.0)
    own = {"pool": pool, "tune": True, "random_state": 0, "alpha": 1e-4}
    return ShareBoostClassifier(n, **{**own, **settings})


def booster_of_prices():
    pool = Patches(n_templates=20, template_size=3, mask_grid=2, mask_sigma=2.0)
    return TotalQBoostClassifier(6, pool=pool, tune=True, random_state=0, price=0.0)


def kept_rows(model, X, y):
    """Return the rows that do not judge. The path is grown on them."""
    return held_out_rows(model, X, y, np.ones(len(y)))[:2]


@pytest.fixture(scope="module")
def tuned(digits):
    return booster().fit(*digits[:2])


@pytest.fixture(scope="module")
def plain(digits):
    """The path of `tuned`."""
    return booster(tune=False).fit(*kept_rows(booster(), *digits[:2]))


def test_a_tuned_model_is_better(digits, tuned):
    X, y, X_test, y_test = digits
    plain = booster(tune=False).fit(X, y)  # on more rows
    assert tuned.score(X_test, y_test) > plain.score(X_test, y_test) + 0.02
    assert tuned.path_[6].loss < plain.path_[6].loss
    assert plain.path_.chosen is None


def test_the_path_holds_both_forms(tuned, plain):
    assert [e.atoms for e in tuned.path_.chosen] == [e.atoms for e in plain.path_]
    for size in range(6):  # only the size that is used is tuned
        assert tuned.path_[size] is tuned.path_.chosen[size]
    assert tuned.path_[6].numbers == tuned.path_.chosen[6].numbers
    with pytest.raises(ValueError, match="tuned"):
        tuned.excess_loss_bound(1.0)
    assert np.isfinite(tuned.path_.chosen[6].excess_loss_bound(1.0))


def test_templates_keep_zero_mean_and_unit_norm(tuned):
    for template in tuned.path_[6].map.templates():
        assert abs(template.mean()) < 1e-6
        assert (template**2).sum() == pytest.approx(1.0, rel=1e-5)


def test_the_certificate_holds_for_the_tuned_atoms(digits, tuned):
    """Weights of the descent are for the rows that are not held out, solved ones for all rows."""
    entry, (X, y) = tuned.path_[6], digits[:2]
    X_kept, y_kept, *_ = held_out_rows(tuned, X, y, np.ones(len(y)))
    found = []
    for rows, codes in ((X, y), (X_kept, y_kept)):
        values = entry.map.columns(rows) * entry.scales.astype(np.float32)
        at_entry, best = objectives(values, codes, tuned.alpha_, entry)
        if at_entry == pytest.approx(entry.objective, rel=1e-6):
            found.append(best)
    assert len(found) == 1
    assert -1e-9 < entry.objective - found[0] <= entry.certificate.gap


def objectives(values, codes, alpha, entry):
    """Return the objective of an entry over its scaled columns, and the least possible one."""
    with Threads(1) as threads:
        training = TrainingInMemory(values, codes, np.full(len(codes), 1 / len(codes)))
        loss = find_loss("margin")
        asked = RowsAsked(Columns(scale=None), False, loss, 10, threads, True, Limits())
        rows = training.rows(asked)
        rows.reset(range(6))
        weights = np.vstack([entry.base, entry.weights])
        weights[0] += (rows.means[1:] - entry.means) @ entry.weights
        there = Newton(1e-10, max_iter=0).solve(rows, L2(alpha), weights)
        return there.value, Newton(1e-10).solve(rows, L2(alpha), weights).value


@pytest.mark.parametrize("copies", [None, Deform(shift=0.2)])
def test_the_loss_of_a_tuned_model_is_that_of_all_training_rows(digits, copies):
    every = digits[0][:300], digits[1][:300]
    tuning = Tuning("all", epochs=8, rate=0.1, copies=copies)
    model = booster(loss="log", tune=tuning).fit(*every)
    path = model.path_
    assert any(path.is_tuned(size) for size in path.sizes)
    for entry in path:
        X, y = every if path.is_tuned(entry.size) else kept_rows(model, *every)
        scores = entry.scores(X)
        expected = np.mean(logsumexp(scores, axis=1) - scores[np.arange(len(y)), y])
        assert entry.loss == pytest.approx(expected, rel=1e-5)


def test_threads_and_repeats_change_nothing(digits, tuned):
    for n_jobs in (1, 2):
        again = booster(n_jobs=n_jobs).fit(*digits[:2])
        assert again.atom_coef_.tobytes() == tuned.atom_coef_.tobytes()
        assert again.predictor_.map.values.tobytes() == tuned.predictor_.map.values.tobytes()


def test_a_worse_model_is_not_accepted(digits, plain):
    model = booster(tune=Tuning(epochs=1, rate=0.99, batch_size=4)).fit(*digits[:2])
    assert not model.path_.is_tuned(6)
    assert model.path_.chosen[6] is model.path_[6]
    assert model.atoms_ == plain.atoms_
    np.testing.assert_allclose(model.atom_coef_, plain.atom_coef_, rtol=1e-6)


def test_rows_that_judge_do_not_choose_atoms(digits):
    X, y = digits[:2]
    places = held_out_rows(booster(), np.arange(len(y)), y, np.ones(len(y)))[3][0]
    other = X.copy()
    other[places] = X[places][:, ::-1]
    one, two = (booster(tune=Tuning(epochs=1)).fit(rows, y) for rows in (X, other))
    for a, b in zip(one.path_.chosen, two.path_.chosen, strict=True):
        assert a.atoms == b.atoms
        assert a.weights.tobytes() == b.weights.tobytes()


def test_sizes_start_from_smaller_ones(digits):
    X, y = digits[:2]
    model = booster(tune=Tuning(sizes=[2, 4, 6], epochs=10)).fit(X, y)
    changed = [e.size for e in model.path_ if e is not model.path_.chosen[e.size]]
    assert changed == [2, 4, 6]
    every = booster(tune=Tuning(sizes="all", epochs=3)).fit(X, y)
    assert [e.size for e in every.path_] == list(range(7))
    losses = [e.loss for e in model.path_ if e.size in changed]
    assert losses == sorted(losses, reverse=True)


def test_operations_do_not_grow_where_they_cost_something(digits):
    X, y = digits[:2]
    model = booster(20, costs="operations").fit(X, y)
    chosen, entry = model.path_.chosen[20], model.path_[20]
    assert len(entry.map.size) == len(chosen.map.size) < 20  # templates are still shared
    assert entry.predictor_cost.operations == chosen.predictor_cost.operations
    assert entry.loss < chosen.loss


@pytest.mark.parametrize("settings", [{"max_features": 60}, {"costs": np.ones(64)}])
def test_the_pixels_that_are_read_stay_where_they_count(digits, settings):
    model = booster(4, **settings).fit(*digits[:2])
    chosen, entry = model.path_.chosen[4], model.path_[4]
    assert entry is not chosen
    np.testing.assert_array_equal(entry.map.features(), chosen.map.features())


def test_places_can_be_kept_and_moved(digits):
    for places in (False, True):
        model = booster(tune=Tuning(epochs=3, places=places)).fit(*digits[:2])
        chosen, entry = model.path_.chosen[6], model.path_[6]
        assert entry is not chosen
        assert np.array_equal(entry.map.centre, chosen.map.centre) is not places


@pytest.mark.parametrize("name", ["costs", "max_features", "max_operations", "max_bytes"])
def test_places_do_not_move_where_they_count(digits, name):
    value = "operations" if name == "costs" else 5000
    with pytest.raises(ValueError, match=f"{name} counts them"):
        booster(tune=Tuning(places=True), **{name: value}).fit(*digits[:2])


def test_places_do_not_move_to_excluded_pixels(digits):
    with pytest.raises(ValueError, match="inputs that exclude forbids"):
        booster(tune=Tuning(places=True), exclude=[0]).fit(*digits[:2])
    pool = Patches(n_templates=20, template_size=3, mask_grid=2, mask_sigma=0.6)
    model = booster(4, pool=pool, exclude=list(range(8))).fit(*digits[:2])
    assert any(map(model.path_.is_tuned, model.path_.sizes))
    assert model.path_[4].map.features().min() >= 8


def test_the_model_ships_as_any_other(digits, tuned, tmp_path):
    X_test = digits[2]
    tuned.predictor_.save(tmp_path / "m.laconic")
    read = Predictor.load(tmp_path / "m.laconic")
    np.testing.assert_array_equal(read.predict(X_test), tuned.predict(X_test))
    assert "static" in str(tuned.predictor_.to_c())
    integers = tuned.predictor_.quantise(digits[0])
    assert (integers.predict(X_test) == tuned.predict(X_test)).mean() > 0.98


def test_held_out_rows_and_folds_choose_the_size_first(digits):
    X, y = digits[:2]
    watched = booster(12, early_stopping=True, n_iter_no_change=2).fit(X, y)
    size = watched.n_atoms_
    assert watched.path_[size] is not watched.path_.chosen[size]
    assert len(watched.validation_losses_) == len(watched.path_)
    folds = booster(cv=2).fit(X, y)
    assert folds.path_[folds.n_atoms_] is not folds.path_.chosen[folds.n_atoms_]


def test_copies_are_made_on_the_way(digits):
    X, y, X_test, y_test = digits
    mild = {"elastic_alpha": 1, "rotation": 2, "scale": 0.02, "shear": 0.02, "shift": 0.2}
    copies = Deform(elastic_sigma=2, **mild)
    model = booster(tune=Tuning(copies=copies)).fit(X, y)
    assert any(map(model.path_.is_tuned, model.path_.sizes))
    assert model.score(X_test, y_test) > model.at(5).score(X_test, y_test)


class Changed:
    """Makes copies with a function of the rows."""

    def __init__(self, change):
        self.change = change

    def copies_of(self, X, number):
        return self.change(X)


@pytest.mark.parametrize("change", [lambda X: X[1:], lambda X: X * np.nan])
def test_copies_that_are_not_copies_of_the_rows_are_refused(digits, change):
    for early in (False, True):  # before the path is grown
        settings = {"early_stopping": early, "callbacks": [refuse]}
        with pytest.raises(ValueError, match="one copy of every row"):
            booster(tune=Tuning(copies=Changed(change)), **settings).fit(*digits[:2])


def test_copies_do_not_change_the_rows(digits):
    class Darker:
        def copies_of(self, X, number):
            X *= 0.5
            return X

    with pytest.raises(ValueError, match="read-only"):
        booster(tune=Tuning(copies=Darker())).fit(*digits[:2])


def test_copies_are_made_of_sparse_rows(digits):
    X, y = digits[:2]
    tuning = Tuning(epochs=3, copies=Changed(lambda X: X + 0.5))
    dense, thin = booster(tune=tuning).fit(X, y), booster(tune=tuning).fit(csr_matrix(X), y)
    assert any(map(thin.path_.is_tuned, thin.path_.sizes))
    np.testing.assert_allclose(thin.atom_coef_, dense.atom_coef_, rtol=1e-3, atol=1e-6)


def test_a_device_tunes_the_same_way(digits, tuned):
    pytest.importorskip("torch")
    X, y, X_test, y_test = digits
    there = booster(device="cpu").fit(X, y)
    assert there.path_[6].numbers == tuned.path_[6].numbers
    assert there.path_[6].loss == pytest.approx(tuned.path_[6].loss, rel=0.05)
    assert abs(there.score(X_test, y_test) - tuned.score(X_test, y_test)) < 0.03


def test_after_an_interruption_the_chosen_model_stays(digits, monkeypatch):
    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr("laconic.tune.path.descend", interrupted)
    with pytest.warns(UserWarning, match="0 tuned sizes"):
        model = booster().fit(*digits[:2])
    assert model.status_ == "interrupted"
    assert not model.path_.is_tuned(6)
    assert model.n_atoms_ == 6


@pytest.mark.parametrize("make", [booster, booster_of_prices])
def test_a_descent_that_overflows_is_refused(digits, monkeypatch, make):
    def too_far(atoms, model, *given):
        return model._replace(weights=model.weights * np.nan)

    monkeypatch.setattr("laconic.tune.path.descend", too_far)
    model = make().fit(*digits[:2])
    assert not model.path_.is_tuned(6)
    assert model.n_atoms_ == 6


def test_a_checkpoint_of_the_path_is_used_again_if_its_rows_are_the_same(digits, tmp_path):
    file, rounds = tmp_path / "fit.checkpoint", []
    own = {"early_stopping": True, "n_iter_no_change": 9, "callbacks": [rounds.append]}
    expected = booster(**own).fit(*digits[:2])
    booster(tune=False, checkpoint=file, **own).fit(*digits[:2])
    rounds.clear()
    model = booster(checkpoint=file, **own).fit(*digits[:2])
    assert rounds == []
    assert any(map(model.path_.is_tuned, model.path_.sizes))
    assert model.atom_coef_.tobytes() == expected.atom_coef_.tobytes()
    with pytest.raises(ValueError, match="other data or settings"):
        booster(checkpoint=file).fit(*digits[:2])  # rows that judge do not choose the size


@pytest.mark.parametrize("pool", ["columns", "stumps", ["stumps", "columns"]])
def test_pools_without_parameters_are_refused(digits, pool):
    with pytest.raises(TypeError, match="no parameters to tune"):
        ShareBoostClassifier(2, pool=pool, tune=True).fit(*digits[:2])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "epochs"),
        ({"batch_size": 0}, "batch_size"),
        ({"rate": 1.5}, "rate"),
        ({"places": 1}, "places"),
        ({"sizes": "some"}, "sizes"),
        ({"sizes": [0]}, "sizes"),
        ({"sizes": 5}, "sizes must be a list"),
        ({"sizes": {5}}, "sizes must be a list"),
        ({"sizes": np.array([[5]])}, "sizes must be a list"),
        ({"sizes": []}, "sizes"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Tuning(**settings)


def test_other_wrong_settings(digits):
    with pytest.raises(TypeError, match="copies_of"):
        Tuning(copies=3)
    with pytest.raises(TypeError, match="tune must be"):
        booster(tune="yes").fit(*digits[:2])
    with pytest.raises(ValueError, match="no model of 9 atoms to tune, because max_atoms=6"):
        booster(tune=Tuning(sizes=[2, 9])).fit(*digits[:2])


def refuse(*given):
    """Stand in for a round, where there must be none."""
    raise AssertionError("the path was grown")


def test_rows_that_cannot_judge_are_refused_before_the_path_is_grown(digits):
    X, y = digits[0][:40], np.arange(40) % 2
    with pytest.raises(ValueError, match="lower validation_fraction or set tune=False"):
        booster(validation_fraction=0.97, random_state=1, callbacks=[refuse]).fit(X, y)


def test_sizes_that_the_path_does_not_reach_are_left_out():
    X, y = np.arange(8.0)[:, None], np.arange(8) % 2
    settings = {"pool": Hinges(4, 2), "tune": Tuning(sizes=[1, 30], epochs=1)}
    with pytest.warns(UserWarning, match="no model of 30 atoms to tune"):
        model = booster(30, **settings).fit(X, y)
    assert 0 < len(model.path_) - 1 < 30


@pytest.mark.long
def test_whole_numbers_of_numpy_are_seeds(digits):
    one, other = (booster(random_state=seed).fit(*digits[:2]) for seed in (3, np.int64(3)))
    assert any(map(one.path_.is_tuned, one.path_.sizes))
    assert one.atom_coef_.tobytes() == other.atom_coef_.tobytes()


@pytest.mark.parametrize("sizes", [[3, 6], (3, 6), np.array([3, 6]), range(3, 7, 3)])
def test_sizes_may_be_any_sequence(sizes):
    tuning = Tuning(sizes=sizes)
    assert tuning == Tuning(sizes=[3, 6])
    assert hash(tuning) == hash(Tuning(sizes=[3, 6]))
    assert repr(tuning) == "Tuning(sizes=(3, 6))"


def test_settings_can_be_cloned():
    tuning = Tuning(epochs=3, copies=Deform())
    assert clone(booster(tune=tuning)).tune.epochs == 3


def test_bars_show_the_epochs(digits, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        booster(3, tune=Tuning(epochs=2), verbose=1).fit(*digits[:2])
    assert "tuning" in capsys.readouterr().out
