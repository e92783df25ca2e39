"""Fits whose atoms are moved when they are chosen."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import StratifiedKFold

from laconic import Predictor, ShareBoostClassifier, TotalQBoostClassifier
from laconic.boost.moved import ByRuleMoved
from laconic.boost.rules import GradientRule
from laconic.data.labels import held_out_rows
from laconic.pools import Hinges, Patches
from laconic.pools.opened import OpenPool
from laconic.rows.limits import Limits
from laconic.tune import Tuning, at_selection

MOVED = Tuning(sizes=[], at_selection=True)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:500].astype(np.float32), y[:500], X[500:1000].astype(np.float32), y[500:1000]


def patches(n=6, **settings):
    pool = Patches(n_templates=20, template_size=3, mask_grid=2, mask_sigma=2.0)
    own = {"pool": pool, "tune": MOVED, "random_state": 0, "alpha": 1e-4}
    return ShareBoostClassifier(n, **{**own, **settings})


def planes(n=700, seed=0):
    """Four classes that two oblique planes divide."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 8))
    sides = X @ np.random.default_rng(99).standard_normal((8, 2)) > 0.5
    return X, sides @ [1, 2]


def hinges(n=5, scale=None, **settings):
    own = {"pool": Hinges(n_directions=5, n_knots=5, scale=scale), "tune": MOVED, "random_state": 0}
    return ShareBoostClassifier(n, **{**own, **settings})


def bits(model):
    """Return all that two equal models share."""
    arrays = [model.atom_coef_, model.intercept_, *model.predictor_.map.arrays().values()]
    return [array.tobytes() for array in arrays]


@pytest.fixture(scope="module")
def moved(digits):
    return patches().fit(*digits[:2])


def test_moved_atoms_make_better_models(digits, moved):
    X, y, X_test, y_test = digits
    plain = patches(tune=False).fit(X, y)
    assert moved.path_[6].loss < 0.9 * plain.path_[6].loss
    assert moved.score(X_test, y_test) > plain.score(X_test, y_test)
    X, y = planes()
    one, other = hinges().fit(X, y), hinges(tune=False).fit(X, y)
    assert one.path_[5].loss < 0.9 * other.path_[5].loss


@pytest.mark.parametrize("scale", [None, "max", "std"])
@pytest.mark.parametrize("rule", ["gradient", "projection"])
def test_no_moved_atom_has_a_lower_score_than_the_best_of_the_list(scale, rule, monkeypatch):
    """The naive score of eq. (7), of the columns as the model has them."""
    X, y = planes()
    found = []

    def next_and_looked_at(self, state, plain=ByRuleMoved.next):
        rows, chosen = self.model.rows, state.entries[-1].numbers
        residual = rows.residual_of_all_rows()
        atom = plain(self, state)
        if atom is not None:
            columns = rows.columns_of_all_rows([*chosen, atom])
            columns = columns - columns.mean(axis=0)
            new, size = columns[:, -1], 1.0
            if rule == "projection":
                known = columns[:, :-1]
                rest = new - known @ np.linalg.lstsq(known, new, rcond=None)[0]
                size = np.linalg.norm(rest) / np.sqrt(len(X))
            moved = atom >= rows.pool.listed.n_atoms
            found.append((np.abs(residual.T @ new).sum() / size, self.score, moved))
        return atom

    monkeypatch.setattr(ByRuleMoved, "next", next_and_looked_at)
    hinges(scale=scale, rule=rule, tol=1e-10).fit(X, y)
    assert len(found) == 5
    assert all(own >= best * (1 - 1e-6) for own, best, _ in found)
    assert sum(own > best for own, best, moved in found if moved) >= 4
    assert max(own / best for own, best, _ in found) > 1.05


@pytest.mark.parametrize("scale", ["max", "std"])
def test_moved_columns_have_the_scale_of_the_pool(scale):
    X, y = planes()
    entry = hinges(scale=scale).fit(X, y).path_[5]
    columns = entry.map.columns(X) * entry.scales
    size = columns.max(axis=0) if scale == "max" else columns.std(axis=0)
    np.testing.assert_allclose(size, 1.0, rtol=1e-6)


def test_threads_and_repeats_change_nothing(digits, moved):
    for n_jobs in (1, 2):
        assert bits(patches(n_jobs=n_jobs).fit(*digits[:2])) == bits(moved)


def test_other_shards_give_the_same_model():
    X, y = planes()
    one, other = hinges(), hinges()
    other._limits = Limits(cuts=(100, 450))
    one.fit(X, y), other.fit(X, y)
    np.testing.assert_allclose(other.path_[5].loss, one.path_[5].loss, rtol=1e-3)
    assert np.mean(one.predict(X) != other.predict(X)) < 0.01


def test_sparse_rows_give_the_same_model():
    X, y = planes()
    X[X < 0] = 0
    one = hinges().fit(X, y)
    for given in (sparse.csr_matrix(X), sparse.csc_matrix(X)):
        other = hinges().fit(given, y)
        np.testing.assert_allclose(other.path_[5].loss, one.path_[5].loss, rtol=1e-3)


def test_an_ascent_on_some_rows_still_counts_all(monkeypatch):
    X, y = planes()
    monkeypatch.setattr(at_selection, "MOST_ROWS", 300)
    model, plain = hinges().fit(X, y), hinges(tune=False).fit(X, y)
    assert model.path_[5].loss < plain.path_[5].loss


@pytest.mark.parametrize("every", ["one", "resumed"])
def test_a_resumed_fit_has_the_same_bits(every, digits, moved, tmp_path):
    file = tmp_path / "fit.checkpoint"

    def stop(state):
        return len(state.entries) > 3

    first = patches(checkpoint=file, callbacks=[stop]).fit(*digits[:2])
    assert first.path_.sizes[-1] == 3
    if every == "resumed":  # once more, so that the file has records of several fits
        patches(5, checkpoint=file).fit(*digits[:2])
    assert bits(patches(checkpoint=file).fit(*digits[:2])) == bits(moved)
    model = patches(checkpoint=file).fit(*digits[:2])
    assert bits(model) == bits(moved)
    assert model.path_[6].numbers == moved.path_[6].numbers
    smaller = patches(4, checkpoint=file).fit(*digits[:2])
    assert bits(smaller) == bits(moved.at(4))


def test_a_checkpoint_keeps_moves_and_tuned_sizes(digits, tmp_path):
    both, own = Tuning(epochs=10, at_selection=True), {"early_stopping": True}
    whole = patches(4, tune=both, **own).fit(*digits[:2])
    file = tmp_path / "fit.checkpoint"
    for tune in (MOVED, both, both):
        model = patches(4, tune=tune, checkpoint=file, **own).fit(*digits[:2])
    assert any(map(whole.path_.is_tuned, whole.path_.sizes))
    assert bits(model) == bits(whole)


def test_a_checkpoint_without_moves_is_refused(digits, tmp_path):
    file = tmp_path / "fit.checkpoint"
    patches(2, tune=False, checkpoint=file).fit(*digits[:2])
    with pytest.raises(ValueError, match="other data or settings"):
        patches(2, checkpoint=file).fit(*digits[:2])


def test_refinement_goes_on_from_moved_atoms(tmp_path):
    X, y = planes()
    plain, fine = hinges().fit(X, y), hinges(refine=True).fit(X, y)
    assert all(a.loss <= b.loss for a, b in zip(fine.path_, plain.path_, strict=True))
    file = tmp_path / "fit.checkpoint"
    hinges(checkpoint=file, refine=True, callbacks=[lambda state: len(state.entries) > 4]).fit(X, y)
    assert bits(hinges(checkpoint=file, refine=True).fit(X, y)) == bits(fine)


def test_chosen_atoms_are_tuned_once_more_afterwards(digits):
    X, y, *_ = digits
    moved = patches().fit(*held_out_rows(patches(), X, y, np.ones(len(y)))[:2])
    both = patches(tune=Tuning(at_selection=True)).fit(X, y)
    for one, other in zip(both.path_.chosen, moved.path_, strict=True):
        np.testing.assert_allclose(one.map.values, other.map.values, atol=1e-5)
        assert one.numbers == other.numbers
    assert both.path_[6] is not both.path_.chosen[6]
    assert both.path_[6].loss < moved.path_[6].loss


def test_the_list_stays_as_it_is(moved):
    assert moved.path_.chosen is None
    assert [e.size for e in moved.path_] == list(range(7))
    for size in range(1, 7):  # every size has the atoms of the one before
        assert moved.path_[size].atoms[:-1] == moved.path_[size - 1].atoms
    assert np.isfinite(moved.excess_loss_bound(1.0))


@pytest.mark.parametrize(
    "settings", [{"costs": "operations"}, {"max_operations": 4000}, {"max_bytes": 2600}]
)
def test_models_keep_their_caps_and_cost_what_they_say(digits, settings):
    model = patches(12, **settings).fit(*digits[:2])
    for entry in model.path_:
        if "costs" in settings:
            assert entry.cost == entry.map.operations()
        if "max_operations" in settings:
            assert entry.predictor_cost.operations <= 4000
        if "max_bytes" in settings:
            assert entry.footprint <= 2600


def test_moves_never_cost_operations(digits, monkeypatch):
    """In every round, the model with the moved atom costs no more than with that of the list."""
    costs = []

    def costs_no_more(self, moved, chosen, plain=ByRuleMoved._costs_no_more):
        if plain(self, moved, chosen):
            costs.append([self.admissible.costs.total(numbers) for numbers in (moved, chosen)])
            return True
        return False

    monkeypatch.setattr(ByRuleMoved, "_costs_no_more", costs_no_more)
    patches(12, costs="operations").fit(*digits[:2])
    assert len(costs) > 3
    assert all(moved <= listed for moved, listed in costs)


def test_excluded_pixels_are_never_read(digits):
    X, y = digits[:2]
    pixels = list(range(8))
    pool = Patches(n_templates=20, template_size=3, mask_grid=2, mask_sigma=0.6)
    model = patches(4, pool=pool, exclude=pixels).fit(X, y)
    assert not set(pixels) & set(model.path_[4].map.features().tolist())
    plain = patches(4, pool=pool, exclude=pixels, tune=False).fit(X, y)
    assert model.path_[4].loss < plain.path_[4].loss


def test_held_out_rows_and_folds_choose_the_size(digits):
    X, y = digits[:2]
    watched = patches(10, early_stopping=True, n_iter_no_change=2).fit(X, y)
    assert watched.validation_losses_.argmin() == watched.n_atoms_
    X, y = planes(300)
    folds = hinges(4, cv=2).fit(X, y)
    for scores, (fit, held) in zip(folds.cv_scores_, StratifiedKFold(2).split(X, y), strict=True):
        own = hinges(4).fit(X[fit], y[fit])
        assert [own.at(n).score(X[held], y[held]) for n in range(5)] == pytest.approx(scores)


def test_the_model_ships_as_any_other(digits, moved, tmp_path):
    X_test = digits[2]
    moved.predictor_.save(tmp_path / "m.laconic")
    read = Predictor.load(tmp_path / "m.laconic")
    np.testing.assert_array_equal(read.predict(X_test), moved.predict(X_test))
    assert "static" in str(moved.predictor_.to_c())


def test_atoms_that_help_no_more_come_in_as_they_are(monkeypatch):
    """If every move ends at one atom, it comes in once. All others are atoms of the list."""
    X, y = planes()
    first = hinges(1).fit(X, y).path_[1]
    numbers = []

    def same(self, rows, chosen, atom, score):
        from laconic.pools.base import Offer
        from laconic.pools.opened import OutsideAtom

        assert isinstance(rows.pool, OpenPool)
        numbers.append(atom)
        return Offer(OutsideAtom(first.map, float(first.scales[0])), score + 1)

    monkeypatch.setattr(at_selection.AtSelection, "moved", same)
    entry = hinges(3).fit(X, y).path_[3]
    assert list(entry.numbers[1:]) == numbers[1:]
    assert entry.atoms[0] == first.atoms[0]


def test_atoms_that_joined_for_nothing_keep_their_numbers(tmp_path, monkeypatch):
    X, y = planes()

    def costs_no_more(self, moved, listed):
        return len(moved) % 2 == 0

    monkeypatch.setattr(ByRuleMoved, "_costs_no_more", costs_no_more)
    whole, file = hinges().fit(X, y), tmp_path / "fit.checkpoint"
    hinges(3, checkpoint=file).fit(X, y)
    again = hinges(checkpoint=file).fit(X, y)
    assert bits(again) == bits(whole)
    assert again.path_[5].numbers == whole.path_[5].numbers


def test_units_do_not_matter():
    X, y = planes()
    there = X * np.r_[1e3, 1e-150, np.ones(6)] + np.r_[5.0, np.zeros(7)]
    one, other = hinges().fit(X, y), hinges().fit(there, y)
    assert np.mean(one.predict(X) != other.predict(there)) < 0.02


def test_the_order_of_columns_does_not_matter():
    X, y = planes()
    order = np.random.default_rng(3).permutation(8)
    one, other = hinges().fit(X, y), hinges().fit(X[:, order], y)
    assert np.mean(one.predict(X) != other.predict(X[:, order])) < 0.01
    np.testing.assert_allclose(other.path_[5].loss, one.path_[5].loss, rtol=1e-2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rule": "step"}, "rule='step' has no such score"),
        ({"rule": GradientRule()}, "has no such score"),
        ({"fit_intercept": False}, "fit_intercept=True"),
    ],
)
def test_what_cannot_be_moved_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        hinges(**settings).fit(*planes())


def test_rows_elsewhere_and_wrong_settings_are_refused(tmp_path):
    X, y = planes()
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(TypeError, match="in the memory of the processor"):
        hinges().fit(str(tmp_path / "X.npy"), y)
    for wrong in (1, "yes", None):
        with pytest.raises(ValueError, match="at_selection must be True or False"):
            Tuning(at_selection=wrong)
    with pytest.raises(ValueError, match="tunes nothing"):
        Tuning(sizes=[])
    with pytest.raises(TypeError, match="not the atoms of Bumps"):
        ShareBoostClassifier(2, pool="bumps", tune=MOVED).fit(X, y)
    with pytest.raises(TypeError, match="leave it out for a TotalQBoostClassifier"):
        TotalQBoostClassifier(pool="hinges", tune=MOVED).fit(X, y == 1)
    with pytest.raises(TypeError, match="no parameters to tune"):
        ShareBoostClassifier(2, tune=MOVED).fit(*load_iris(return_X_y=True))
    assert clone(hinges()).tune == MOVED


def test_devices_are_refused(digits):
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match="on the processor, not on device='cpu'"):
        patches(device="cpu").fit(*digits[:2])
    assert torch is not None
