"""Checkpoints of tuning: a fit that is killed while it tunes ends with the same model."""

import os
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

from laconic import ShareBoostClassifier, TotalQBoostClassifier
from laconic.data.labels import held_out_rows
from laconic.files import journal
from laconic.pools import Bumps, Hinges, Patches, Pieces
from laconic.tune import Tuning
from laconic.tune.kept import KeptSize
from laconic.tune.path import Tuner
from problems import saving_always

PATCHES = {"n_templates": 20, "template_size": 3, "mask_grid": 2, "mask_sigma": 2.0}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300].astype(np.float32), y[:300]


def share(**settings):
    own = {"pool": Patches(**PATCHES), "alpha": 1e-4, "random_state": 0}
    return ShareBoostClassifier(4, **{"tune": Tuning([2, 4], epochs=4), **own, **settings})


def total(**settings):
    own = {"pool": Hinges(5), "price": 0.0, "l1": 1e-3, "random_state": 0, "loss": "log"}
    own["tune"] = Tuning([2, 3], epochs=4, rate=0.1)
    return TotalQBoostClassifier(3, **{**own, **settings})


MODELS = {
    "share": share,
    "total": total,
    "held out": lambda **own: share(early_stopping=True, n_iter_no_change=1, **own),
    "shared templates": lambda **own: share(costs="operations", **own),
    "refused": lambda **own: share(tune=Tuning([2, 4], epochs=4, rate=0.99, batch_size=1), **own),
    "moved": lambda **own: share(tune=Tuning([2, 4], epochs=4, at_selection=True), **own),
    "pieces": lambda **own: share(pool=Pieces(20, soft=True), **own),
    "tight bumps": lambda **own: share(pool=Bumps(20), max_features=64, **own),
    "device": lambda **own: share(device="cpu", **own),
}


@pytest.fixture(scope="module")
def whole(digits):
    """The undisturbed fit of `share`."""
    return share().fit(*digits)


class Crash(Exception):
    """Ends a fit the way a power cut does."""


def assert_same(one, other, assert_identical):
    """Check that two fits are identical, with their maps and with what was chosen."""
    assert_identical(one, other)
    for a, b in zip(one.path_, other.path_, strict=True):
        for name, array in a.map.arrays().items():
            assert array.tobytes() == b.map.arrays()[name].tobytes(), name
        assert np.array_equal(a.base, b.base)
        assert np.array_equal(a.means, b.means)
        assert one.path_.is_tuned(a.size) == other.path_.is_tuned(a.size)


@pytest.fixture
def stops(monkeypatch):
    """Make a fit stop with an error after an epoch, counted over all sizes; count the epochs."""
    keep, left, done = KeptSize.keep, [0], []

    def counted(self, descent, epochs, loss):
        keep(self, descent, epochs, loss)
        done.append(epochs)
        left[0] -= 1
        if left[0] == 0:
            raise left[1]

    def stopped(model, rows, after, error=Crash):
        left[:] = [after, error]
        done.clear()
        try:
            model.fit(*rows)
        except error:
            return True
        return False

    monkeypatch.setattr(KeptSize, "keep", counted)
    return stopped, done


@pytest.mark.parametrize("case", MODELS)
def test_after_whichever_epoch_it_ends_it_resumes_identically(
    case, digits, stops, tmp_path, assert_identical
):
    if case == "device":
        pytest.importorskip("torch")
    stopped, done = stops
    expected = MODELS[case]()
    assert not stopped(expected, digits, 0)
    n = len(done)
    path = expected.path_
    assert any(map(path.is_tuned, path.sizes)) == (case != "refused")
    for after in [1, n // 2, n // 2 + 2, n] if case == "share" else [n // 2 + 1]:
        model = MODELS[case](checkpoint=tmp_path / f"{after}")
        assert stopped(clone(model), digits, after)
        assert not stopped(model, digits, 0)
        assert_same(model, expected, assert_identical)
        assert len(done) == n - after


def test_it_may_be_killed_after_every_epoch(digits, whole, stops, tmp_path, assert_identical):
    stopped, done = stops
    model, times = share(checkpoint=tmp_path / "fit"), 0
    while stopped(saving_always(clone(model)), digits, 1):
        times += 1
        assert len(done) == 1
    assert times == 8
    assert_same(model.fit(*digits), whole, assert_identical)


def test_a_checkpoint_changes_nothing_and_a_finished_fit_is_taken_up(
    digits, whole, stops, tmp_path, assert_identical
):
    stopped, done = stops
    model = share(checkpoint=tmp_path / "fit")
    assert_same(model.fit(*digits), whole, assert_identical)
    again = clone(model)
    assert not stopped(again, digits, 0)
    assert done == []
    assert_same(again, model, assert_identical)
    assert [e.seconds for e in again.path_] == [e.seconds for e in model.path_]


# Kills its own process after an epoch, or while the n-th record of tuning is being written.
KILLED = """
from laconic import ShareBoostClassifier
from laconic.data.labels import held_out_rows
from laconic.files import journal
from laconic.pools import Patches
from laconic.tune import Tuning
from laconic.tune.kept import KeptSize

def die(data, checkpoint, pool, when, n):
    left, write, keep = [n], journal.Journal._write, KeptSize.keep

    def kill():
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def half(self, data):
        if "step".encode("utf-32-le") in data:
            if left == [1]:
                write(self, data[: len(data) // 2])
            kill()
        write(self, data)

    def killed(self, *given):
        keep(self, *given)
        kill()

    if when == "epoch":
        KeptSize.keep = killed
    else:
        journal.Journal._write = half
    model = ShareBoostClassifier(
        4, pool=Patches(**pool), tune=Tuning([2, 4], epochs=4), alpha=1e-4, random_state=0,
        checkpoint=checkpoint, n_jobs=2,
    )
    model._save_every = 0.0
    with np.load(data) as file:
        model.fit(file["X"], file["y"])
"""


def test_a_killed_process_loses_at_most_an_epoch(
    digits, whole, killed_fits, stops, tmp_path, assert_identical
):
    # Records of tuning: four epochs of size 2, its end, four epochs of size 4, its end.
    cases = {("epoch", 3): 5, ("epoch", 7): 1, ("write", 3): 6, ("write", 5): 4, ("write", 10): 0}
    np.savez(tmp_path / "data.npz", X=digits[0], y=digits[1])
    started = [
        (tmp_path / "data.npz", tmp_path / f"{when}{n}", PATCHES, when, n) for when, n in cases
    ]
    killed_fits(KILLED, started)
    stopped, done = stops
    for (_, file, _, when, n), left in zip(started, cases.values(), strict=True):
        model = share(checkpoint=file)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not stopped(model, digits, 0)
        assert len(done) == left, (when, n)
        assert_same(model, whole, assert_identical)


def test_after_ctrl_c_finished_sizes_stay_and_a_later_fit_goes_on(
    digits, whole, stops, tmp_path, assert_identical
):
    stopped, done = stops
    model = share(checkpoint=tmp_path / "fit")
    with pytest.warns(UserWarning, match="keeps 1 tuned size,"):
        assert not stopped(model, digits, 6, KeyboardInterrupt)
    assert model.status_ == "interrupted"
    assert [size for size in range(5) if model.path_.is_tuned(size)] == [2]
    assert not stopped(model, digits, 0)
    assert done == [3, 4]
    assert_same(model, whole, assert_identical)


def test_rows_in_files_go_on_unless_a_file_was_changed(digits, stops, tmp_path, assert_identical):
    (stopped, done), file = stops, tmp_path / "X.npy"
    np.save(file, digits[0])
    rows = str(file), digits[1]
    whole = share().fit(*rows)
    model = share(checkpoint=tmp_path / "fit")
    assert stopped(clone(model), rows, 6)
    assert not stopped(model, rows, 0)
    assert done == [3, 4]
    assert_same(model, whole, assert_identical)

    model = saving_always(share(checkpoint=tmp_path / "other"))
    keep = KeptSize.keep

    def changes(self, descent, epochs, loss):
        if (self._size, epochs) == (4, 2):
            file.write_bytes(file.read_bytes())
        keep(self, descent, epochs, loss)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KeptSize, "keep", changes)
        with pytest.raises(ValueError, match="changed"):
            model.fit(*rows)
    assert [header["epochs"] for header, _ in journal_records(tmp_path / "other")[-2:]] == [4, 1]
    assert not stopped(share(checkpoint=tmp_path / "other"), rows, 0)
    assert done == [2, 3, 4]


# -- other settings --------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["share", "total", "held out", "device"])
def test_a_file_belongs_to_the_rows_that_judge_too(case, digits, tmp_path):
    """One of these rows differs or weighs more."""
    if case == "device":
        pytest.importorskip("torch")
    (X, y), weight, file = digits, np.ones(len(digits[1])), tmp_path / "fit"
    model = MODELS[case](checkpoint=file).fit(X, y, weight)
    judge = held_out_rows(model, np.arange(len(y)), y, weight)[3][0][3]
    rows, heavier = X.copy(), weight.copy()
    rows[judge] += 1
    heavier[judge] = 2
    for given in ((rows, y, weight), (X, y, heavier)):
        with pytest.raises(ValueError, match="other data or settings"):
            MODELS[case](checkpoint=file).fit(*given)
    again = MODELS[case](checkpoint=file).fit(X, y, weight)
    assert again.atom_coef_.tobytes() == model.atom_coef_.tobytes()


def test_other_settings_of_tuning_use_the_path_and_what_they_share(
    digits, stops, tmp_path, assert_identical
):
    stopped, done = stops
    file = tmp_path / "fit"
    share(checkpoint=file).fit(*digits)
    size = file.stat().st_size
    for tune, epochs in [
        (Tuning([2, 4], epochs=4), []),
        (Tuning([2], epochs=4), []),  # a part of what is there
        (Tuning([4], epochs=4), [1, 2, 3, 4]),  # size 4 does not start from size 2
        (Tuning([2, 4], epochs=2), [1, 2, 1, 2]),
        (Tuning([2, 3], epochs=4), [1, 2, 3, 4]),
        (Tuning([2, 4], epochs=4, rate=0.01), [1, 2, 3, 4] * 2),
        (Tuning([2, 4], epochs=4), []),  # the first one is still there
    ]:
        rounds = []
        model = share(checkpoint=file, tune=tune, callbacks=[rounds.append])
        assert not stopped(model, digits, 0)
        assert (rounds, done) == ([], epochs)
        assert_same(model, share(tune=tune).fit(*digits), assert_identical)
    assert file.stat().st_size > size


def test_a_longer_path_keeps_the_sizes_that_are_tuned(digits, stops, tmp_path, assert_identical):
    stopped, done = stops
    tuning, file = {"tune": Tuning([2, 4], epochs=4)}, tmp_path / "fit"
    assert stopped(share(checkpoint=file, **tuning), digits, 6)
    longer = {"max_atoms": 6, "tune": Tuning([2, 4, 6], epochs=4)}
    model = share(checkpoint=file).set_params(**longer)
    assert not stopped(model, digits, 0)
    assert done == [3, 4, 1, 2, 3, 4]
    assert_same(model, share().set_params(**longer).fit(*digits), assert_identical)


def test_number_of_threads_and_device_may_change(digits, stops, tmp_path, whole, assert_identical):
    stopped, _ = stops
    assert stopped(share(checkpoint=tmp_path / "fit", n_jobs=1), digits, 3)
    model = share(checkpoint=tmp_path / "fit", n_jobs=2).fit(*digits)
    assert_same(model, whole, assert_identical)
    pytest.importorskip("torch")
    assert stopped(share(checkpoint=tmp_path / "there", device="cpu"), digits, 3)
    here = share(checkpoint=tmp_path / "there").fit(*digits)
    assert here.path_.is_tuned(4)
    np.testing.assert_allclose(here.path_[4].loss, model.path_[4].loss, rtol=0.05)


def test_rows_that_judge_must_be_drawn_again(digits, tmp_path):
    with pytest.raises(ValueError, match="fit with tune needs an integer random_state"):
        share(checkpoint=tmp_path / "fit", random_state=None).fit(*digits)
    moves_only = {"tune": Tuning([], at_selection=True), "random_state": None}
    share(checkpoint=tmp_path / "fit", **moves_only).fit(*digits)


class Brighter:
    """Copies that no digest tells apart, because a function makes them."""

    def __init__(self, change):
        self.change = change

    def copies_of(self, X, number):
        return self.change(X)


def test_copies_that_cannot_be_compared_are_refused_at_once(digits, tmp_path):
    def refuse(state):
        raise AssertionError("the path was grown")

    tune = Tuning(copies=Brighter(lambda X: X + 0.5))
    with pytest.raises(ValueError, match="settings that can be compared"):
        share(tune=tune, checkpoint=tmp_path / "fit", callbacks=[refuse]).fit(*digits)
    share(tune=Tuning(epochs=1, copies=Brighter(lambda X: X + 0.5))).fit(*digits)


# -- damage ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tuned_file(digits, tmp_path_factory):
    """A file with a finished size and a descent that is half done."""
    file, keep = tmp_path_factory.mktemp("tuned") / "fit", KeptSize.keep

    def crash(self, descent, epochs, loss):
        keep(self, descent, epochs, loss)
        if (self._size, epochs) == (4, 2):
            raise Crash

    model = saving_always(share(checkpoint=file))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KeptSize, "keep", crash)
        with pytest.raises(Crash):
            model.fit(*digits)
    return file.read_bytes()


def test_wherever_the_file_ends_the_fit_ends_identically(
    tuned_file, digits, whole, tmp_path, assert_identical
):
    path = tmp_path / "fit"
    for length in np.random.default_rng(0).integers(19, len(tuned_file), 6):
        path.write_bytes(tuned_file[:length])
        assert_same(share(checkpoint=path).fit(*digits), whole, assert_identical)


def test_damage_is_refused_or_harmless(tuned_file, digits, whole, tmp_path, assert_identical):
    path, refused = tmp_path / "fit", 0
    places = np.random.default_rng(1).integers(0, len(tuned_file), 20)
    for at in places.tolist():
        changed = bytearray(tuned_file)
        changed[at] ^= 1
        path.write_bytes(changed)
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "checkpoint .* ends in a damaged record")
                model = share(checkpoint=path).fit(*digits)
        except ValueError as error:
            refused += "fit is damaged" in str(error) or "readable Laconic file" in str(error)
            continue
        assert_same(model, whole, assert_identical)
    assert refused > 5


def rewritten(file, path, change):
    """Copy the records of a file after a change, as a stranger could do it."""
    path.write_bytes(file)
    mark = next(iter(journal_records(path)))[0]["fingerprint"]
    records = journal_records(path)
    path.unlink()
    new = journal.Journal(path, "checkpoint", mark)
    for header, arrays in records:
        change(header, arrays)
        new.append({k: v for k, v in header.items() if k != "after"}, arrays)
    new.close()


def journal_records(path):
    """Return all records of a file that count."""
    take, seen = journal.Journal._take, []

    def any_mark(self, header, arrays):
        self.fingerprint = header["fingerprint"]
        take(self, header, arrays)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal.Journal, "_take", any_mark)
        file = journal.Journal(path, "checkpoint", "")
        seen = file.records
        file.close()
    return seen


def in_finished(**changed):
    def change(header, arrays):
        if header.get("accepted"):
            apply(changed, header, arrays)

    return change


def in_descent(**changed):
    def change(header, arrays):
        if header.get("passing"):
            apply(changed, header, arrays)

    return change


def apply(changed, header, arrays):
    for name, new in changed.items():
        where = arrays if name in arrays else header
        if new is None:
            del where[name]
        else:
            where[name] = new(where[name]) if callable(new) else new


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (in_finished(weights=lambda a: a[1:]), "shape"),
        (in_finished(weights=lambda a: a * np.nan), "NaN"),
        (in_finished(parameter_0=lambda a: a[:, :4]), "shape"),
        (in_finished(parameter_1=None), "no array 'parameter_1'"),
        (in_finished(loss="small"), "loss must be a number"),
        (in_finished(objective=np.inf), "objective must be finite"),
        (in_finished(certificate=[0, 0]), "not enough values"),
        (in_finished(spent=None), "no 'spent'"),
        (in_finished(accepted=False), "does not belong there"),
        (in_finished(epochs=-1), "epochs must be a whole number"),
        (in_finished(key=None), "no 'key'"),
        (in_finished(key=[]), "unhashable"),
        (in_descent(epochs=5), "more epochs than a descent"),
        (in_descent(part_0=lambda a: a.astype(str)), "real numbers"),
        (in_descent(square_0=lambda a: a - 1.0), "outside 0"),
        (in_descent(mean_1=lambda a: a.T), "shape"),
        (in_descent(square_2=None), "no array 'square_2'"),
    ],
)
def test_files_of_a_stranger_are_refused(tuned_file, digits, tmp_path, change, message):
    path = tmp_path / "fit"
    rewritten(tuned_file, path, change)
    contents = path.read_bytes()
    with pytest.raises(ValueError, match=f"fit is not sound: .*{message}"):
        share(checkpoint=path).fit(*digits)
    assert path.read_bytes() == contents


def test_a_file_that_is_only_copied_is_fine(tuned_file, digits, whole, tmp_path, assert_identical):
    rewritten(tuned_file, tmp_path / "fit", lambda header, arrays: None)
    model = share(checkpoint=tmp_path / "fit").fit(*digits)
    assert_same(model, whole, assert_identical)


def test_records_come_every_five_seconds_and_a_full_disk_ends_only_the_file(
    digits, whole, tmp_path, monkeypatch, assert_identical
):
    clock, written, append, keep = [0.0], [], journal.Journal.append, KeptSize.keep

    def noted(self, header, arrays):
        written.append((clock[0], header.get("epochs"), "accepted" in header))
        return append(self, header, arrays)

    def tick(self, *given):
        clock[0] += 2.0
        keep(self, *given)

    monkeypatch.setattr(journal.Journal, "append", noted)
    monkeypatch.setattr(journal.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(KeptSize, "keep", tick)
    share(checkpoint=tmp_path / "fit").fit(*digits)
    of_tuning = [record for record in written if record[1] is not None]
    # Epochs end at 2, 4, … seconds. The last form of a descent gives way to the result.
    assert of_tuning == [(6.0, 3, False), (12.0, 4, True), (12.0, 2, False), (16.0, 4, True)]

    def full(self, data):
        if clock[0] > 3.0:
            raise OSError(28, "No space left on device")
        os.write(self._file.fileno(), data)

    clock[0] = 0.0
    monkeypatch.setattr(journal.Journal, "_write", full)
    with pytest.warns(RuntimeWarning, match="No space left on device"):
        model = share(checkpoint=tmp_path / "full").fit(*digits)
    assert_same(model, whole, assert_identical)


def test_the_bar_is_right_after_a_resume(digits, stops, tmp_path, monkeypatch):
    stopped, _ = stops
    model, seen = share(checkpoint=tmp_path / "fit"), []
    assert stopped(clone(model), digits, 6)
    begin = Tuner.__init__

    def watched(self, given, tuning, free, told, kept):
        def noted(size, share, loss):
            seen.append((size, share, np.isfinite(loss)))
            return told(size, share, loss)

        begin(self, given, tuning, free, noted, kept)

    monkeypatch.setattr(Tuner, "__init__", watched)
    model.set_params(verbose=1).fit(*digits)
    assert seen == [(2, 1.0, True), (4, 0.5, True), (4, 0.75, True), (4, 1.0, True)]
