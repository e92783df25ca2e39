"""Tuning on rows in parts: the sums of the parts are those of rows in one memory."""

import warnings
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from test_tuned_patches import images, some_patches

from laconic import ShareBoostClassifier
from laconic.beyond import drawn
from laconic.beyond.check import CheckedPart
from laconic.beyond.drawn import Drawn, DrawnBatches, held_numbers
from laconic.beyond.in_parts import TrainingInParts, joined_here
from laconic.beyond.to_tune import JudgedParts, PartToTune, RowsInParts
from laconic.boost.held_out import HeldOut
from laconic.data.labels import held_out_rows
from laconic.deform import Deform
from laconic.losses import find_loss
from laconic.model.bumps import BumpsMap
from laconic.model.pieces import PiecesMap
from laconic.numeric.parts import Here
from laconic.numeric.threads import Threads
from laconic.penalties import L2
from laconic.pools import Bumps, Hinges, Patches, Pieces
from laconic.pools.parts import Place
from laconic.tune import Tuning
from laconic.tune.batches import Batches
from laconic.tune.descent import Frame, TunedModel, batch_sums
from laconic.tune.kinds import kind_of
from tune.lossy_parts import LossyParts
from tune.test_tuned_hinges import some_hinges

CUTS = [(), (71,), (1, 50, 51), (1, 20, 21, 45, 80, 100), tuple(range(1, 40))]
"""The last parts have one row each. So some have no row that is held out, and some no other."""
JUDGE = SimpleNamespace(validation_fraction=0.2, random_state=3, tune=True)


def cut(arrays, cuts):
    ends = pairwise([0, *cuts, arrays[0].shape[0]])
    return [CheckedPart(*(array[a:b] for array in arrays)) for a, b in ends]


def labelled(n=120, k=3, seed=0):
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.5, 2.0, n)
    return rng.integers(0, k, n).astype(np.uint8), weight / weight.sum()


def judged(parts, estimator=JUDGE):
    loss = find_loss("log")
    training = TrainingInParts(parts, joined_here)
    return JudgedParts(estimator, training).rows(loss, Threads(1))


BALLS = np.random.default_rng(2).normal(1.0, 2.0, (4, 5)), np.array([6.0, 5.0, 4.0, 7.0])
REMARKS = np.full(4, 0.5), np.arange(4)
KINDS = {
    "pieces": (
        PiecesMap(*BALLS, np.ones((1, 5)), True, *REMARKS),
        np.random.default_rng(1).normal(1.0, 2.0, (120, 5)),
    ),
    "bumps": (BumpsMap(*BALLS, *REMARKS), np.random.default_rng(1).normal(1.0, 2.0, (120, 5))),
    "hinges": (some_hinges(), np.random.default_rng(1).normal(1.0, 2.0, (120, 5))),
    "sparse hinges": (some_hinges(), sparse.random(120, 5, 0.5, "csr", random_state=0)),
    "patches": (some_patches(), images(1, 120).astype(np.float32)),
}


def model_of(atoms, k=3):
    rng = np.random.default_rng(7)
    made = atoms.map(atoms.start)
    n = made.columns(np.zeros((1, 99 if made.kind == "patches" else 5))).shape[1]
    weights, base = rng.standard_normal((n, k)), rng.standard_normal(k)
    frame = Frame(rng.uniform(0.3, 1, n), rng.uniform(0, 1, n), find_loss("log"), L2(0.1), True)
    return TunedModel(atoms.start, weights, base), frame


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("lossy", [False, True])
def test_sums_over_a_batch_are_those_of_one_memory(name, cuts, lossy):
    given, X = KINDS[name]
    codes, weight = labelled()
    parts = cut((X, codes, weight), cuts)
    _, fitted, held = judged(LossyParts.of(parts, 0.3) if lossy else Here(parts))
    atoms = fitted.tunable(kind_of(given), given, False)
    model, frame = model_of(atoms)

    X_fit, codes_fit, weight_fit, kept = held_out_rows(JUDGE, X, codes, weight)
    alone = kind_of(given).tunable(given, X_fit, Threads(1), None, False)
    for mine, theirs in zip(atoms.start, alone.start, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    size = Tuning().rows_of_a_batch(96)
    near, far = Batches(X_fit, codes_fit, weight_fit, size, 5), fitted.batches(Tuning(), 5)
    assert far.n_batches == near.n_batches == 3
    for epoch in (0, 4):
        for one, batch in zip(near.epoch(epoch), far.epoch(epoch), strict=True):
            value, slopes = batch_sums(alone, model, frame, one)
            found, sums = fitted.sums(atoms, model, frame, batch)
            assert found == pytest.approx(value, rel=1e-6)
            for a, b in zip(slopes, sums, strict=True):
                np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-6)

    entry = SimpleNamespace(scores=lambda X: given.columns(X)[:, :3])
    expected = HeldOut(*kept, find_loss("log"), 1).loss(entry)
    if not lossy:  # a function of a test cannot be pickled
        assert held.loss(entry) == pytest.approx(expected, rel=1e-6)


def test_lost_parts_and_other_carriers_have_the_same_bits():
    given, X = KINDS["hinges"]
    parts, found = cut((X, *labelled()), CUTS[3]), []
    for where in (Here(parts), LossyParts.of(parts, 0.0), LossyParts.of(parts, 0.5)):
        _, fitted, _ = judged(where)
        atoms = fitted.tunable(kind_of(given), given, False)
        batch = next(fitted.batches(Tuning(), 5).epoch(0))
        value, slopes = fitted.sums(atoms, *model_of(atoms), batch)
        found.append([value, *(array.tobytes() for array in slopes)])
    assert found[0] == found[1] == found[2]


def test_a_row_of_weight_two_is_the_same_row_twice():
    given, X = KINDS["hinges"]
    codes, _ = labelled()
    weight = np.where(np.arange(120) < 60, 2.0, 1.0) / 180
    twice = np.r_[np.arange(60), np.arange(120)]
    atoms = kind_of(given).tunable(given, X, Threads(1), None, False)
    sums = []
    for rows, own in ((np.arange(120), weight), (twice, np.full(180, 1 / 180))):
        n = len(rows)
        part = PartToTune(X[rows], codes[rows], own, np.empty(0, np.int64), 0)
        every = RowsInParts(Here([part]), joined_here, lambda: None, [n], 1.0)
        [batch] = DrawnBatches(n, n, 0).epoch(0)
        sums.append(every.sums(atoms, *model_of(atoms), batch))
    assert sums[0][0] == pytest.approx(sums[1][0], rel=1e-12)
    for one, other in zip(sums[0][1], sums[1][1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


# -- what is drawn ---------------------------------------------------------------------------------


@pytest.mark.parametrize("runs", [1 << 18, 7])
@pytest.mark.parametrize("size", [1, 8, 50, 1000])
def test_every_row_comes_once_in_an_epoch(monkeypatch, runs, size):
    monkeypatch.setattr(drawn, "RUNS", runs)
    batches = DrawnBatches(50, size, 3)
    seen = [batch.among(0, 50).tolist() for batch in batches.epoch(2)]
    assert len(seen) == batches.n_batches
    assert [len(own) for own in seen] == [batch.size for batch in batches.epoch(2)]
    assert sorted(np.concatenate(seen)) == list(range(50))
    assert all(own == sorted(own) for own in seen)
    if size < 50:
        assert seen != [batch.among(0, 50).tolist() for batch in batches.epoch(3)]


@pytest.mark.parametrize("run", [1, 8])
@pytest.mark.parametrize("cuts", CUTS)
def test_parts_find_the_rows_of_a_batch_whatever_the_cuts(run, cuts):
    batch = Drawn(120, run, 3, 1, 2, 9)
    whole = batch.among(0, 120)
    assert batch.size == len(whole) > 0
    found = [first + batch.among(first, last - first) for first, last in pairwise([0, *cuts, 120])]
    np.testing.assert_array_equal(np.concatenate(found), whole)


def held_of(codes, cuts, estimator=JUDGE):
    ends = [0, *cuts, len(codes)]
    places = [Place(first, len(codes)) for first in ends[:-1]]
    parts = Here([CheckedPart(None, codes[a:b], None) for a, b in pairwise(ends)])
    return held_numbers(estimator, parts, places)


@pytest.mark.parametrize("cuts", CUTS)
def test_the_rows_that_are_held_out_are_those_of_one_memory(cuts):
    codes, weight = labelled()
    *_, kept = held_out_rows(JUDGE, np.arange(120), codes, weight)
    np.testing.assert_array_equal(held_of(codes, cuts), kept[0])


def test_of_many_rows_a_sample_is_held_out_and_rare_classes_stay(monkeypatch):
    monkeypatch.setattr(drawn, "CANDIDATES", 60)
    codes = np.r_[np.tile([0, 1], 58), [2, 2, 2, 3]].astype(np.uint8)
    found = [held_of(codes, cuts) for cuts in CUTS]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)
    assert len(found[0]) == 12
    assert set(found[0]) <= set(Place(0, 120).sample(120, 60))
    assert set(codes[found[0]]) <= {0, 1, 2}


@pytest.mark.parametrize("held", [[], [0], [5], [0, 1, 2], [1, 3, 4], [0, 5], [0, 1, 2, 3, 4, 5]])
def test_places_of_fitted_rows(held):
    part = PartToTune(None, np.zeros(6), None, np.array(held, dtype=np.int64), 10)
    fitted = [place for place in range(6) if place not in held]
    assert part.n_fitted == len(fitted)
    np.testing.assert_array_equal(part.places(np.arange(part.n_fitted)), fitted)


# -- fits ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def digits():
    """Digits with noise. If few rows change a pixel, rounding decides where steps lead there."""
    X, y = load_digits(return_X_y=True)
    noise = np.random.default_rng(0).random((300, 64))
    return (X[:300] + noise).astype(np.float32), y[:300]


POOLS = {
    "pieces": Pieces(20, 4, soft=True),
    "bumps": Bumps(20, 4),
    "hinges": Hinges(20, 4),
    "patches": Patches(n_templates=10, template_size=3, mask_grid=2, mask_sigma=2.0),
}


def booster(pool="hinges", **settings):
    own = {"pool": POOLS[pool], "tune": Tuning(epochs=4), "random_state": 0, "alpha": 1e-3}
    return ShareBoostClassifier(4, n_jobs=1, **{**own, **settings})


@pytest.fixture
def fit_parts(monkeypatch):
    """Fit rows as if they were far away. Each is lost with the given probability."""

    def fit(model, X, y, cuts=(1, 120, 121), share=0.0):
        parts = LossyParts.of([(*part[:2], None) for part in cut((X, y, y), cuts)], share)
        with monkeypatch.context() as patch:
            patch.setattr("laconic.beyond.given.given_parts", lambda *given: parts.given())
            return model.fit("rows.npy", y), parts._fate

    return fit


@pytest.mark.parametrize("pool", POOLS)
def test_a_tuned_fit_is_that_of_one_memory_and_survives_losses(pool, digits, fit_parts):
    near = booster(pool).fit(*digits)
    far, _ = fit_parts(booster(pool), *digits)
    assert any(map(near.path_.is_tuned, near.path_.sizes))
    assert any(map(far.path_.is_tuned, far.path_.sizes))
    assert far.path_[4].loss == pytest.approx(near.path_[4].loss, rel=1e-4)
    np.testing.assert_allclose(far.atom_coef_, near.atom_coef_, rtol=1e-2, atol=1e-3)
    again, fate = fit_parts(booster(pool), *digits, share=0.1)
    assert fate.lost > 20
    assert again.atom_coef_.tobytes() == far.atom_coef_.tobytes()
    assert again.path_[4].loss == far.path_[4].loss
    for one, other in zip(again.atoms_, far.atoms_, strict=True):
        assert one == other


@pytest.mark.parametrize("cuts", [(70, 130, 200), tuple(range(1, 30))])
def test_other_cuts_change_only_rounding(cuts, digits, fit_parts):
    one, _ = fit_parts(booster(), *digits)
    other, _ = fit_parts(booster(), *digits, cuts=cuts)
    assert other.path_[4].loss == pytest.approx(one.path_[4].loss, rel=1e-4)
    np.testing.assert_allclose(other.atom_coef_, one.atom_coef_, rtol=1e-2, atol=1e-3)


def test_a_step_is_one_exchange(digits, fit_parts):
    _, fate = fit_parts(booster(tune=Tuning(epochs=3, batch_size=30)), *digits)
    assert fate.asked.count("_sums") == 3 * 9
    assert len(fate.asked) - 3 * 9 < 80


def test_batches_of_many_rows_have_no_limit_in_parts():
    parts = Here(cut((np.zeros((100_000, 1)), *labelled(100_000)), (7,)))
    _, fitted, _ = judged(parts)
    batches = fitted.batches(Tuning(), 0)
    assert batches.n_batches == 100
    assert next(batches.epoch(0)).size == 800


def test_sizes_start_from_smaller_ones(digits, fit_parts):
    model, _ = fit_parts(booster(tune=Tuning(sizes=[2, 4], epochs=3)), *digits)
    changed = [e.size for e in model.path_ if e is not model.path_.chosen[e.size]]
    assert changed == [2, 4]


def test_after_an_interruption_the_chosen_model_stays(digits, fit_parts, monkeypatch):
    asked = []

    def interrupted(self, atoms, model, frame, batch):
        asked.append(batch)
        if len(asked) == 5:
            raise KeyboardInterrupt
        return sums(self, atoms, model, frame, batch)

    sums = RowsInParts.sums
    monkeypatch.setattr("laconic.beyond.to_tune.RowsInParts.sums", interrupted)
    with pytest.warns(UserWarning, match="0 tuned sizes"):
        model, _ = fit_parts(booster(), *digits)
    assert model.status_ == "interrupted"
    assert not model.path_.is_tuned(4)
    assert model.n_atoms_ == 4


def refuse(*given):
    """Stand in for a round, where there must be none."""
    raise AssertionError("the path was grown")


def test_copies_are_refused_before_the_path_is_grown(digits, fit_parts):
    model = booster("patches", tune=Tuning(copies=Deform()), callbacks=[refuse])
    with pytest.raises(ValueError, match=r"X is in parts, so Deform cannot.*leave copies out"):
        fit_parts(model, *digits)


def test_rows_that_cannot_judge_are_refused_before_the_path_is_grown(digits, fit_parts):
    X, y = digits[0][:40], np.arange(40) % 2
    model = booster(validation_fraction=0.97, random_state=1, callbacks=[refuse])
    with pytest.raises(ValueError, match="lower validation_fraction or set tune=False"):
        fit_parts(model, X, y, cuts=(7,))


def test_bars_show_the_epochs_and_not_the_parts(digits, fit_parts, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_parts(booster(verbose=1), *digits)
    assert "tuning" in capsys.readouterr().out


def test_a_checkpoint_belongs_to_the_rows_that_judge_too(digits, tmp_path):
    """One such row differs in the file, and no other."""
    (X, y), rows = digits, tmp_path / "rows.npy"
    np.save(rows, X)
    booster(checkpoint=tmp_path / "fit").fit(rows, y)
    again = booster(checkpoint=tmp_path / "fit", callbacks=[refuse]).fit(rows, y)
    assert again.path_.chosen is not None
    other = X.copy()
    other[held_out_rows(booster(), np.arange(300), y, np.ones(300))[3][0][0]] += 1
    np.save(rows, other)
    with pytest.raises(ValueError, match="other data or settings"):
        booster(checkpoint=tmp_path / "fit").fit(rows, y)
