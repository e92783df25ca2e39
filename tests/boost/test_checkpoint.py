"""Checkpoints: a fit that is killed resumes and ends with the identical model."""

import os
import re
import shutil
import signal
import warnings
from pathlib import Path

import numpy as np
import pytest
from loops import share_loop, total_loop
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from laconic import ErrorClumpingClassifier, ShareBoostClassifier
from laconic.boost.checkpoint import Checkpoint
from laconic.boost.refine import refine
from laconic.files import journal, store
from problems import random_problem, saving_always

# Fits with a checkpoint and kills its own process: after the n-th round, or while the n-th record
# is being written.
KILLED = """
from laconic import ShareBoostClassifier
from laconic.files import journal

def die(data, checkpoint, settings, when, n, every):
    left, write = [n], journal.Journal._write

    def kill(*_):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def half(self, data):
        if left == [1]:
            write(self, data[: len(data) // 2])
        kill()
        write(self, data)

    if when == "round":
        settings["callbacks"] = [kill]
    else:
        journal.Journal._write = half
    model = ShareBoostClassifier(checkpoint=checkpoint, **settings)
    model._save_every = every
    with np.load(data) as file:
        model.fit(file["X"], file["y"])
"""

HELD_OUT = {"early_stopping": True, "validation_fraction": 0.3, "random_state": 0}

# Settings, and when the process dies. Growing 6 atoms takes rounds 1 to 7; those after refine.
# In all cases but the last every round is written down, whatever the time.
CASES = {
    "columns": ({}, ("round", 4)),
    "stumps": ({"pool": "stumps"}, ("round", 4)),
    "products": ({"pool": "products"}, ("round", 4)),
    "projection": ({"rule": "projection"}, ("round", 5)),
    "refining": ({"refine": True, "pool": "stumps"}, ("round", 10)),
    "held out": ({**HELD_OUT, "n_iter_no_change": 3}, ("round", 4)),
    "writing": ({}, ("write", 4)),
    "in a hurry": ({}, ("round", 5)),
}
HURRY = "in a hurry"
ROWS = {"columns": 5000}  # more than one block; the other cases do with fewer


def problem(case):
    return random_problem(seed=1, m=ROWS.get(case, 200), d=9)


@pytest.fixture(scope="module")
def killed(killed_fits, tmp_path_factory):
    """The checkpoint that the fit of every case leaves; each ends by its own hand."""
    checkpoints, started = {}, []
    for case, (settings, when) in CASES.items():
        folder = tmp_path_factory.mktemp("killed")
        X, y = problem(case)
        np.savez(folder / "data.npz", X=X, y=y)
        asked = {"max_atoms": 6, "n_jobs": 2, **settings}
        every = 3600.0 if case == HURRY else 0.0
        started.append((folder / "data.npz", folder / "fit", asked, *when, every))
        checkpoints[case] = folder / "fit"
    killed_fits(KILLED, started)
    return checkpoints


@pytest.mark.parametrize("case", CASES)
def test_a_killed_fit_resumes_to_the_identical_model(killed, case, assert_identical):
    X, y = problem(case)
    settings = {"max_atoms": 6, **CASES[case][0]}
    rounds = []
    resumed = ShareBoostClassifier(
        checkpoint=killed[case], n_jobs=1, callbacks=[rounds.append], **settings
    ).fit(X, y)
    whole = ShareBoostClassifier(**settings).fit(X, y)
    assert_identical(resumed, whole)
    assert resumed.status_ == whole.status_
    assert np.array_equal(resumed.predict_proba(X), whole.predict_proba(X))
    when, n = CASES[case][1]
    sizes = len(whole.path_) - 1
    total = 1 + sizes + (3 * sizes - 1) * whole.refine
    # A record that was not written whole is a round to do again, and so are those not yet written.
    written = 1 if case == HURRY else n - (when == "write")
    assert len(rounds) == total - written
    if "refine" not in settings:
        assert np.all(np.diff(resumed.path_.seconds) > 0)


# -- within one process ----------------------------------------------------------------------------


class Crash(Exception):
    """Ends a fit the way a power cut does: nothing is cleaned up."""


def crashed(model, X, y, n):
    """Fit a clone that crashes after its n-th round; returns whether it got that far."""
    left = [n]

    def crash(state):
        left[0] -= 1
        if left[0] == 0:
            raise Crash

    try:
        clone(model).set_params(callbacks=[crash]).fit(X, y)
    except Crash:
        return True
    return False


@pytest.mark.parametrize(
    "settings",
    [
        {"refine": True},
        {"refine": True, "rule": "projection"},
        {"refine": True, "include": [8], "groups": [0, 0, 1, 2, 3, 4, 5, 6, 7]},
        {"costs": [1, 2, 3, 4, 5, 6, 7, 8, 9], "max_cost": 15.0, "refine": True},
        {"max_atoms": 7, **HELD_OUT, "n_iter_no_change": 2},
        {"max_atoms": 5, **HELD_OUT, "n_iter_no_change": 2, "refine": True},
        {"penalty": "linf_l1", "alpha": 1e-3, "loss": "log"},
        {"fit_intercept": False, "scale": "std", "pool": "products"},
        {"rule": "column"},
    ],
    ids=str,
)
def test_in_whichever_round_it_ends_it_resumes_identically(tmp_path, settings, assert_identical):
    X, y = random_problem(seed=2, m=90, d=9, noise=2.0)
    settings = {"max_atoms": 4, **settings}
    whole = ShareBoostClassifier(**settings).fit(X, y)
    n = 1
    while crashed(ShareBoostClassifier(checkpoint=tmp_path / f"{n}", **settings), X, y, n):
        resumed = ShareBoostClassifier(checkpoint=tmp_path / f"{n}", **settings).fit(X, y)
        assert_identical(resumed, whole)
        n += 1
    assert n > len(whole.path_)


def test_it_may_be_killed_again_and_again(tmp_path, assert_identical):
    X, y = random_problem(seed=3, m=90, d=9)
    model = ShareBoostClassifier(4, refine=True, checkpoint=tmp_path / "fit")
    times = 0
    while crashed(model, X, y, 1):
        times += 1
    assert times == 5 + 4 + 3 + 4  # grown, refined, swept down and up
    assert_identical(model.fit(X, y), ShareBoostClassifier(4, refine=True).fit(X, y))


def test_single_precision_resumes_identically(tmp_path, assert_identical):
    X, y = random_problem(seed=3, m=90, d=9, dtype=np.float32)
    model = ShareBoostClassifier(6, checkpoint=tmp_path / "fit")
    assert crashed(model, X, y, 4)
    assert_identical(model.fit(X, y), ShareBoostClassifier(6).fit(X, y))


def test_a_checkpoint_does_not_change_the_fit(three_classes, tmp_path, assert_identical):
    X, y = three_classes
    written = ShareBoostClassifier(5, checkpoint=str(tmp_path / "fit")).fit(X, y)
    assert_identical(written, ShareBoostClassifier(5).fit(X, y))
    assert [p.name for p in tmp_path.iterdir()] == ["fit"]


def test_an_interrupted_fit_resumes_identically(three_classes, tmp_path, assert_identical):
    X, y = three_classes

    def press(state):
        if state.last.size == 2:
            raise KeyboardInterrupt

    model = ShareBoostClassifier(5, checkpoint=tmp_path / "fit")
    with pytest.warns(UserWarning, match="interrupted"):
        clone(model).set_params(callbacks=[press]).fit(X, y)
    assert_identical(model.fit(X, y), ShareBoostClassifier(5).fit(X, y))


# -- records ---------------------------------------------------------------------------------------


@pytest.fixture
def records(monkeypatch):
    """The records that are written, and a clock that a test sets."""
    clock, written = [0.0], []
    append = journal.Journal.append

    def noted(self, header, arrays):
        written.append((clock[0], header, arrays))
        return append(self, header, arrays)

    monkeypatch.setattr(journal.Journal, "append", noted)
    monkeypatch.setattr(journal.time, "monotonic", lambda: clock[0])
    return written, clock


def test_a_record_is_written_every_five_seconds_and_at_the_end(tmp_path, records):
    X, y = random_problem(seed=3, m=90, d=20)
    written, clock = records

    def tick(state):
        clock[0] += 2.0

    ShareBoostClassifier(10, checkpoint=tmp_path / "fit", callbacks=[tick]).fit(X, y)
    # Rounds end at 0, 2, 4, … seconds: at most two of them, less than 5 seconds, are not in yet.
    assert [at for at, *_ in written] == [0.0, 6.0, 12.0, 18.0, 22.0]


def test_what_is_in_the_file_is_not_written_again(tmp_path, records):
    X, y = random_problem(seed=3, m=90, d=20)
    written, clock = records

    def tick(state):
        clock[0] += 10.0

    model = ShareBoostClassifier(20, checkpoint=tmp_path / "fit", callbacks=[tick]).fit(X, y)
    sizes = [[item["size"] for item in header["items"]] for _, header, _ in written]
    # The entry before is there again: the next round knows its steepest gradient.
    assert sizes == [[0], *([n - 1, n] for n in range(1, 21))]
    whole = sum(entry.weights.nbytes for entry in model.path_)
    assert sum(arrays["weights"].nbytes for *_, arrays in written) <= 2.1 * whole


def test_wherever_the_file_ends_the_fit_ends_identically(tmp_path, assert_identical):
    X, y = random_problem(seed=3, m=60, d=6)
    path, settings = tmp_path / "fit", {"max_atoms": 3, "refine": True}
    model = ShareBoostClassifier(checkpoint=path, **settings)
    whole = saving_always(clone(model)).fit(X, y)
    contents = path.read_bytes()
    for length in [0, 3, *range(19, len(contents), 1949), len(contents) - 1]:
        path.write_bytes(contents[:length])
        assert_identical(saving_always(clone(model)).fit(X, y), whole)


def test_zeros_at_the_end_are_cut_off(tmp_path, assert_identical):
    """What a power cut may leave of a record: its place, but not its contents."""
    X, y = random_problem(seed=3, m=60, d=6)
    path = tmp_path / "fit"
    whole = ShareBoostClassifier(3, checkpoint=path).fit(X, y)
    contents = path.read_bytes()
    path.write_bytes(contents + bytes(300))
    assert_identical(ShareBoostClassifier(3, checkpoint=path).fit(X, y), whole)
    path.write_bytes(contents + journal.prefix(300) + bytes(300))
    with pytest.warns(RuntimeWarning, match=r"fit ends in a damaged record.*from the record"):
        assert_identical(ShareBoostClassifier(3, checkpoint=path).fit(X, y), whole)


def test_a_damaged_length_is_not_taken_for_the_end(tmp_path):
    """Else the records after it would be cut off without a word."""
    X, y = random_problem(seed=3, m=60, d=6)
    path = tmp_path / "fit"
    saving_always(ShareBoostClassifier(3, checkpoint=path)).fit(X, y)
    contents, at = path.read_bytes(), len(b"laconic checkpoint\n")
    for byte in range(len(journal.prefix(0))):
        damaged = bytearray(contents)
        damaged[at + byte] ^= 64
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="fit is damaged"):
            ShareBoostClassifier(3, checkpoint=path).fit(X, y)
        assert path.read_bytes() == damaged


def test_a_record_of_a_newer_version_is_kept(tmp_path, monkeypatch):
    X, y = random_problem(seed=3, m=60, d=6)
    path = tmp_path / "fit"
    with monkeypatch.context() as newer:
        newer.setattr(store, "VERSION", 99)
        ShareBoostClassifier(3, checkpoint=path).fit(X, y)
    contents = path.read_bytes()
    with pytest.raises(ValueError, match="fit has format version 99"):
        ShareBoostClassifier(3, checkpoint=path).fit(X, y)
    assert path.read_bytes() == contents


def test_damage_is_refused_or_harmless(tmp_path, assert_identical):
    """Harmless: bytes of an archive without meaning, and a last record that is cut off."""
    X, y = random_problem(seed=3, m=60, d=6)
    path = tmp_path / "fit"
    whole = saving_always(ShareBoostClassifier(3, checkpoint=path)).fit(X, y)
    contents = path.read_bytes()
    refused, harmless, places = 0, 0, range(0, len(contents), 241)
    for at in places:
        path.write_bytes(contents[:at] + bytes([contents[at] ^ 1]) + contents[at + 1 :])
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "checkpoint .* ends in a damaged record")
                model = ShareBoostClassifier(3, checkpoint=path).fit(X, y)
        except ValueError as error:
            refused += bool(re.search("fit is damaged|readable Laconic file", str(error)))
            continue
        assert_identical(model, whole)
        harmless += 1
    assert refused + harmless == len(places)
    assert refused > len(places) / 2


def test_a_record_that_was_moved_or_left_out_is_refused(tmp_path):
    X, y = random_problem(seed=3, m=60, d=6)
    path = tmp_path / "fit"
    saving_always(ShareBoostClassifier(3, checkpoint=path)).fit(X, y)
    contents, parts, at = path.read_bytes(), [], len(b"laconic checkpoint\n")
    start = contents[:at]
    while at < len(contents):
        end = at + len(journal.prefix(0)) + int.from_bytes(contents[at : at + 8], "little")
        parts.append(contents[at:end])
        at = end
    for order in ([1, 0, 2, 3], [0, 2, 3], [0, 1, 1, 2, 3]):
        path.write_bytes(start + b"".join(parts[i] for i in order))
        with pytest.raises(ValueError, match=r"fit is damaged.*not in its original place"):
            ShareBoostClassifier(3, checkpoint=path).fit(X, y)


def test_two_fits_cannot_write_to_one_file(three_classes, tmp_path):
    pytest.importorskip("fcntl")
    X, y = three_classes
    said = []

    def again(state):
        with pytest.raises(ValueError, match="fit is in use by another fit") as caught:
            ShareBoostClassifier(2, checkpoint=tmp_path / "fit").fit(X, y)
        said.append(caught)

    ShareBoostClassifier(2, checkpoint=tmp_path / "fit", callbacks=[again]).fit(X, y)
    assert len(said) == 3
    ShareBoostClassifier(2, checkpoint=tmp_path / "fit").fit(X, y)


@pytest.mark.parametrize("model", [ShareBoostClassifier(2), ErrorClumpingClassifier()])
def test_a_link_to_nothing_is_followed(model, three_classes, tmp_path):
    X, y = three_classes
    (tmp_path / "link").symlink_to("file")
    model = clone(model).set_params(checkpoint=tmp_path / "link").fit(X, y == 0)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").stat().st_size > 0
    model.fit(X, y == 0)


@pytest.mark.parametrize("model", [ShareBoostClassifier(2), ErrorClumpingClassifier()])
def test_what_cannot_be_read_again_is_no_checkpoint(model, three_classes, tmp_path):
    X, y = three_classes
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/null", "/dev/full"):
        with pytest.raises(ValueError, match=f"{path} cannot be a checkpoint: it is not a regular"):
            clone(model).set_params(checkpoint=path).fit(X, y == 0)


# Fits with a limit on the size of files, which is what a full disk looks like: none is left, or
# there is room for some rounds. Each fit has a line for what it says.
FULL = """
import resource, sys, warnings
import numpy as np
from laconic import ShareBoostClassifier

data, *fits = sys.argv[1:]
with np.load(data) as file:
    X, y = file["X"], file["y"]
for checkpoint, limit in zip(fits[::2], fits[1::2]):
    model = ShareBoostClassifier(8, checkpoint=checkpoint)
    model._save_every = 0.0
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        full = model.fit(X, y)
    print(*(f"{w.category.__name__}: {w.message}" for w in caught), sep=" | ")
    assert len(full.path_) == 9
"""


def test_a_full_disk_ends_the_checkpoint_and_not_the_fit(python, tmp_path, assert_identical):
    pytest.importorskip("resource")
    X, y = random_problem(seed=3, m=90, d=9)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    none, part = tmp_path / "none", tmp_path / "part"
    process = python(FULL, tmp_path / "data.npz", none, 0, part, 20_000)
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    why = "cannot be written (File too large); the fit goes on without it"
    assert out.splitlines() == [f"RuntimeWarning: checkpoint {file} {why}" for file in (none, part)]
    whole, left = ShareBoostClassifier(8).fit(X, y), []
    for file in (none, part):
        rounds = []
        resumed = ShareBoostClassifier(8, checkpoint=file, callbacks=[rounds.append])
        assert_identical(resumed.fit(X, y), whole)
        left.append(len(rounds))
    assert left[0] == 9 > left[1] > 0


# -- finished fits ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"refine": True},
        {"max_atoms": 99},
        {"max_cost": 3.0},
        {**HELD_OUT, "n_iter_no_change": 2},
        {**HELD_OUT, "n_iter_no_change": 2, "refine": True},
    ],
    ids=str,
)
def test_a_finished_fit_is_taken_up_as_it_is(tmp_path, settings, assert_identical):
    X, y = random_problem(seed=2, m=90, d=9, noise=2.0)
    settings = {"max_atoms": 7, "checkpoint": tmp_path / "fit", **settings}
    first = ShareBoostClassifier(**settings).fit(X, y)
    rounds = []
    again = ShareBoostClassifier(callbacks=[rounds.append], **settings).fit(X, y)
    assert_identical(again, first)
    assert rounds == []


@pytest.mark.parametrize("settings", [{}, {"pool": "stumps"}, {"refine": True}], ids=str)
def test_a_larger_size_continues_a_smaller_one(three_classes, tmp_path, settings, assert_identical):
    X, y = three_classes
    settings["checkpoint"] = tmp_path / "fit"
    ShareBoostClassifier(3, **settings).fit(X, y)
    larger = ShareBoostClassifier(7, **settings).fit(X, y)
    settings["checkpoint"] = None
    assert_identical(larger, ShareBoostClassifier(7, **settings).fit(X, y))


@pytest.mark.parametrize("settings", [{}, {"refine": True}], ids=str)
def test_a_smaller_size_takes_its_part_of_a_larger_one(
    three_classes, tmp_path, settings, assert_identical
):
    X, y = three_classes
    ShareBoostClassifier(7, checkpoint=tmp_path / "fit", **settings).fit(X, y)
    smaller = ShareBoostClassifier(3, checkpoint=tmp_path / "fit", **settings).fit(X, y)
    assert_identical(smaller, ShareBoostClassifier(3, **settings).fit(X, y))


@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize("patience", [1, 4])
def test_another_patience_ends_where_it_would_have_ended(
    tmp_path, patience, refine, assert_identical
):
    X, y = random_problem(seed=2, m=90, d=9, noise=2.0)
    settings = {"max_atoms": 9, "refine": refine, **HELD_OUT}
    path = tmp_path / "fit"
    ShareBoostClassifier(checkpoint=path, n_iter_no_change=2, **settings).fit(X, y)
    resumed = ShareBoostClassifier(checkpoint=path, n_iter_no_change=patience, **settings).fit(X, y)
    fresh = ShareBoostClassifier(n_iter_no_change=patience, **settings).fit(X, y)
    assert_identical(resumed, fresh)
    assert np.array_equal(resumed.validation_losses_, fresh.validation_losses_)


@pytest.mark.parametrize("caps", [(6.0, 12.0), (12.0, 6.0)], ids=str)
def test_another_cap_is_refused_or_ends_where_it_would_have_ended(
    three_classes, tmp_path, caps, assert_identical
):
    """Close to its cap a fit chooses what it can still afford, not what helps most."""
    X, y = three_classes
    settings = {"costs": [2.0, 5.0, 0.5, 3.0, 1.0, 4.0, 1.5, 2.5], "max_atoms": 8}
    path = tmp_path / "fit"
    ShareBoostClassifier(checkpoint=path, max_cost=caps[0], **settings).fit(X, y)
    model = ShareBoostClassifier(checkpoint=path, max_cost=caps[1], **settings)
    try:
        model.fit(X, y)
    except ValueError as error:
        refused = "other data or settings" in str(error)
        assert refused
    else:
        assert_identical(model, ShareBoostClassifier(max_cost=caps[1], **settings).fit(X, y))


def test_a_smaller_fit_does_not_cut_the_path_in_the_file(three_classes, tmp_path, assert_identical):
    X, y = three_classes
    settings = {"checkpoint": tmp_path / "fit", "refine": True}
    whole = ShareBoostClassifier(6, **settings).fit(X, y)
    smaller = ShareBoostClassifier(2, **settings).fit(X, y)
    assert_identical(smaller, ShareBoostClassifier(2, refine=True).fit(X, y))
    sizes = []
    note = [lambda state: sizes.append(0 if state.own.entries else state.last.size)]
    again = ShareBoostClassifier(6, callbacks=note, **settings).fit(X, y)
    assert_identical(again, whole)
    assert set(sizes) == {0}  # nothing was grown again


def test_a_checkpoint_that_cannot_be_used_is_refused_before_the_folds(three_classes, tmp_path):
    X, y = three_classes

    class NeverSplit(StratifiedKFold):
        def split(self, X, y, groups=None):
            raise AssertionError("the folds were begun")

    with pytest.raises(OSError, match="nowhere"):
        ShareBoostClassifier(2, cv=NeverSplit(3), checkpoint=tmp_path / "nowhere" / "fit").fit(X, y)
    ShareBoostClassifier(2, checkpoint=tmp_path / "fit").fit(X, y)
    with pytest.raises(ValueError, match="other data or settings"):
        ShareBoostClassifier(2, cv=NeverSplit(3), checkpoint=tmp_path / "fit").fit(X + 1, y)


def test_the_file_is_free_after_the_fit_even_if_a_child_has_it_open(three_classes, tmp_path):
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    X, y = three_classes
    children = []

    def fork(state):
        child = os.fork()
        if child == 0:
            signal.pause()
            os._exit(0)
        children.append(child)

    try:
        ShareBoostClassifier(1, checkpoint=tmp_path / "fit", callbacks=[fork]).fit(X, y)
        assert ShareBoostClassifier(1, checkpoint=tmp_path / "fit").fit(X, y).n_atoms_ == 1
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def test_cross_validation_and_checkpoint_go_together(three_classes, tmp_path, assert_identical):
    X, y = three_classes
    model = ShareBoostClassifier(5, cv=3, checkpoint=tmp_path / "fit")
    assert crashed(model, X, y, 3)
    assert_identical(model.fit(X, y), ShareBoostClassifier(5, cv=3).fit(X, y))
    assert [p.name for p in tmp_path.iterdir()] == ["fit"]


def test_a_change_in_any_row_is_other_data(tmp_path):
    X, y = random_problem(m=5000, d=3)
    ShareBoostClassifier(2, checkpoint=tmp_path / "fit").fit(X, y)
    X[3333, 1] += 0.1
    with pytest.raises(ValueError, match="other data or settings"):
        ShareBoostClassifier(2, checkpoint=tmp_path / "fit").fit(X, y)


# -- files of old ----------------------------------------------------------------------------------

# Written when every file had the state of both boosters: the loop, how many entries and how many
# others the file has, and what only the settling stage knows.
OLD = {
    "growing": (share_loop, {"max_atoms": 4}, (3, 0), {"entries": [], "swept": 0}),
    "refining": (share_loop, {"max_atoms": 3}, (4, 4), {"swept": 1}),
    "searching": (total_loop, {"max_rounds": 8}, (5, 0), {"searched": 0}),
    "hot_started": (total_loop, {"max_rounds": 9, "hot_start": 5}, (9, 6), {"searched": 5}),
}


def whole_run(loop, state):
    if loop.grow(state) and "refined" in state.own.lists():
        refine(loop, state)
    return [*state.entries, *next(iter(state.own.lists().values()))]


@pytest.mark.parametrize("name", OLD)
def test_a_file_of_old_is_read_and_goes_on_to_the_same_model(name, tmp_path):
    make, settings, lengths, own = OLD[name]
    shutil.copy(Path(__file__).parent / "old_checkpoints" / name, tmp_path / name)
    loop = make(**settings)
    rows = loop.record.rows
    with Checkpoint(tmp_path / name, "kept") as saver:
        state = saver.resume(rows.pool, rows.n_outputs, loop.settle)
        [others] = state.own.lists().values()
        assert (len(state.entries), len(others)) == lengths
        assert {key: getattr(state.own, key) for key in own} == own
        read = list(state.entries)
        loop.hooks = [saver]
        resumed = whole_run(loop, state)
    for before, after in zip(read, state.entries, strict=False):
        assert np.array_equal(before.weights, after.weights)
    other = make(**settings)
    whole = whole_run(other, other.begin())
    assert [entry.numbers for entry in resumed] == [entry.numbers for entry in whole]
    for one, two in zip(resumed, whole, strict=True):  # another machine rounds otherwise
        np.testing.assert_allclose(one.weights, two.weights, rtol=1e-7, atol=1e-9)
    # What was added to the file is read back too.
    with Checkpoint(tmp_path / name, "kept") as saver:
        again = saver.resume(rows.pool, rows.n_outputs, loop.settle)
    assert [e.numbers for e in again.entries] == [e.numbers for e in state.entries]
    assert again.own.numbers() == state.own.numbers()


def test_a_file_of_another_stage_is_refused(tmp_path):
    for name, make in (("searching", share_loop), ("growing", total_loop)):
        shutil.copy(Path(__file__).parent / "old_checkpoints" / name, tmp_path / name)
        loop = make(9)
        rows, refused = loop.record.rows, pytest.raises(ValueError, match=f"{name} is not sound")
        with Checkpoint(tmp_path / name, "kept") as saver, refused:
            saver.resume(rows.pool, rows.n_outputs, loop.settle)
