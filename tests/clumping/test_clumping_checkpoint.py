"""Checkpoints of error clumping: where a fit is ended, raised limits, full disks, strangers."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import fuzz
from laconic import ErrorClumpingClassifier
from laconic.clumping import averaging
from laconic.clumping.checkpoint import Resumable
from laconic.clumping.neighbours import nearest_graph
from laconic.files import journal
from problems import saving_always

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SOLVERS = {
    "newton": {"alpha": 1e-6, "tol": 1e-12},
    "averaging": {"alpha": 1e-2, "solver": "averaging", "random_state": 0, "max_iter": 6},
}


def noisy(classes, m=150):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((m, 6))
    return X, (X[:, :classes] + rng.standard_normal((m, classes))).argmax(axis=1)


def few_rows():
    """As many features as rows: λ is approached from above."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((20, 30)), np.arange(20) % 2


def assert_identical(one, other):
    for name in ("coef_", "intercept_", "objective_", "gap_", "n_iter_"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


def interrupted_after(model, X, y, iterations, monkeypatch):
    """Press Ctrl-C in the middle of the iteration that follows so many."""
    told, call = [], Resumable.__call__

    def counted(self, state):
        call(self, state)
        told.append(state)
        if len(told) == iterations:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Resumable, "__call__", counted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)


# -- fits that are ended ---------------------------------------------------------------------------

KILLED = """
from laconic import ErrorClumpingClassifier
from laconic.files import journal

def die(data, checkpoint, writes):
    append, written = journal.Slate.append, []

    def until_killed(self, *record):
        append(self, *record)
        written.append(record)
        if len(written) == writes:
            os.kill(os.getpid(), signal.SIGKILL)

    journal.Slate.append = until_killed
    model = ErrorClumpingClassifier(1e-6, tol=1e-12, checkpoint=checkpoint)
    model._save_every = 0.0
    with np.load(data) as file:
        model.fit(file["X"], file["y"])
"""


@pytest.fixture(scope="module")
def killed(killed_fits, tmp_path_factory):
    """Checkpoints of fits that were killed after so many writes."""
    folder = tmp_path_factory.mktemp("killed")
    X, y = noisy(3)
    np.savez(folder / "data.npz", X=X, y=y)
    checkpoints = {writes: folder / f"{writes}" for writes in (3, 9)}
    killed_fits(KILLED, [(folder / "data.npz", file, n) for n, file in checkpoints.items()])
    return checkpoints


@pytest.mark.parametrize("writes", [3, 9])
def test_a_killed_fit_resumes_to_the_identical_model(killed, writes):
    (X, y), file = noisy(3), killed[writes]
    model = ErrorClumpingClassifier(1e-6, tol=1e-12)
    straight = clone(model).fit(X, y)
    assert_identical(clone(model).set_params(checkpoint=file).fit(X, y), straight)
    assert_identical(clone(model).set_params(checkpoint=file).fit(X, y), straight)  # it is finished
    for other in ({"alpha": 1e-5}, {"radius": 1.0}, {"class_weight": {0: 2.0, 1: 1.0, 2: 1.0}}):
        with pytest.raises(ValueError, match="other data or settings"):
            clone(model).set_params(checkpoint=file, **other).fit(X, y)
    with pytest.raises(ValueError, match="other data or settings"):
        clone(model).set_params(checkpoint=file).fit(X, y, graph=nearest_graph(X, 3))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("classes", "iterations"), [(2, 1), (2, 2), (2, 5), (3, 7), (3, 13)])
def test_an_interrupted_fit_goes_on_from_its_last_whole_iteration(
    tmp_path, solver, classes, iterations, monkeypatch, capsys
):
    X, y = noisy(classes)
    model = ErrorClumpingClassifier(verbose=1, **SOLVERS[solver])
    straight = clone(model).fit(X, y)
    lines = capsys.readouterr().out.splitlines()[1:]
    model.set_params(checkpoint=tmp_path / "fit")
    interrupted_after(model, X, y, iterations, monkeypatch)
    capsys.readouterr()
    assert_identical(clone(model).fit(X, y), straight)
    assert capsys.readouterr().out.splitlines()[1:] == lines[iterations:]


@pytest.mark.parametrize("iterations", [2, 3, 5, 8])
def test_a_fit_interrupted_on_its_way_down_in_alpha_goes_on(
    tmp_path, iterations, monkeypatch, capsys
):
    X, y = few_rows()
    model = ErrorClumpingClassifier(1e-5, verbose=1)
    straight = clone(model).fit(X, y)
    lines = capsys.readouterr().out.splitlines()[1:]
    assert any("iteration 4 at alpha " in line for line in lines)
    assert lines[-1].startswith(f"iteration {len(lines)}: ")
    model.set_params(checkpoint=tmp_path / "fit")
    interrupted_after(model, X, y, iterations, monkeypatch)
    capsys.readouterr()
    assert_identical(clone(model).fit(X, y), straight)
    assert capsys.readouterr().out.splitlines()[1:] == lines[iterations:]


def test_a_pass_that_is_half_done_is_never_written(tmp_path, monkeypatch):
    """Also where states of two problems wait to be written, and the second goes on to change."""
    X, y = noisy(3)
    model = ErrorClumpingClassifier(**{**SOLVERS["averaging"], "max_iter": 2})
    model.set_params(checkpoint=tmp_path / "fit").fit(X, y)
    take, passes = averaging.take_pass, []

    def half(problem, state, learning_rate, seed):
        passes.append(state.iterations)
        if len(passes) == 2:  # the first one of the second problem
            state.u[:] = state.mu[:] = 7.0
            raise KeyboardInterrupt
        take(problem, state, learning_rate, seed)

    with monkeypatch.context() as patched:
        patched.setattr(averaging, "take_pass", half)
        with pytest.raises(KeyboardInterrupt):
            clone(model).set_params(max_iter=3).fit(X, y)
    assert passes == [2, 2]
    straight = clone(model).set_params(checkpoint=None, max_iter=4).fit(X, y)
    assert_identical(clone(model).set_params(max_iter=4).fit(X, y), straight)


# -- limits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    ("solver", "limits"), [("newton", [1, 2, 5, 100]), ("averaging", [1, 2, 5, 8])]
)
def test_a_fit_resumed_with_a_larger_limit_ends_where_a_fresh_one_does(
    tmp_path, classes, solver, limits
):
    X, y = noisy(classes)
    model = ErrorClumpingClassifier(**SOLVERS[solver])
    for limit in limits:
        fresh = clone(model).set_params(max_iter=limit).fit(X, y)
        resumed = clone(model).set_params(max_iter=limit, checkpoint=tmp_path / "fit").fit(X, y)
        assert_identical(resumed, fresh)
    assert 5 < fresh.n_iter_ < 100


@pytest.mark.parametrize("limit", [1, 3, 6, 12])
def test_the_limit_may_be_raised_on_the_way_down_in_alpha(tmp_path, limit):
    X, y = few_rows()
    model = ErrorClumpingClassifier(1e-5, checkpoint=tmp_path / "fit")
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        clone(model).set_params(max_iter=limit).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resumed = clone(model).fit(X, y)
    assert_identical(resumed, clone(model).set_params(checkpoint=None).fit(X, y))


def test_a_fit_that_ended_converged_stays_as_it_is(tmp_path, capsys):
    X, y = noisy(3)
    model = ErrorClumpingClassifier(checkpoint=tmp_path / "fit", verbose=1)
    whole = clone(model).fit(X, y)
    capsys.readouterr()
    assert_identical(clone(model).set_params(max_iter=10_000).fit(X, y), whole)
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize("solver", SOLVERS)
def test_with_a_smaller_limit_what_is_in_the_file_stays(tmp_path, solver, monkeypatch, capsys):
    X, y = noisy(3)
    model = ErrorClumpingClassifier(checkpoint=tmp_path / "fit", **SOLVERS[solver])
    model.set_params(max_iter=4)
    interrupted_after(model, X, y, 4 + 3, monkeypatch)  # all of the first, three of the second
    capsys.readouterr()
    less = clone(model).set_params(max_iter=2, verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split(":")[:2] for line in lines] == [["2", " iteration 1"], ["2", " iteration 2"]]
    fits = {
        limit: clone(model).set_params(checkpoint=None, max_iter=limit).fit(X, y)
        for limit in (2, 3, 4)
    }
    for code, limit in enumerate([4, 3, 2]):
        assert np.array_equal(less.coef_[code], fits[limit].coef_[code])
    assert less.n_iter_ == 4
    assert_identical(clone(model).fit(X, y), fits[4])  # nothing was lost


# -- writing ---------------------------------------------------------------------------------------


def test_it_is_written_every_five_seconds_and_at_the_end(tmp_path, monkeypatch):
    X, y = noisy(3)
    clock, written = [0.0], []
    append, call = journal.Slate.append, Resumable.__call__

    def noted(self, header, arrays):
        written.append((clock[0], [p["iterations"] for p in header["problems"]]))
        return append(self, header, arrays)

    def ticking(self, state):
        call(self, state)
        clock[0] += 2.0

    monkeypatch.setattr(journal.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(journal.Slate, "append", noted)
    monkeypatch.setattr(Resumable, "__call__", ticking)
    model = ErrorClumpingClassifier(checkpoint=tmp_path / "fit", tol=1e-12, max_iter=5)
    model.set_params(solver="averaging", random_state=0, alpha=1e-2).fit(X, y)
    assert written == [
        (0.0, [1]), (6.0, [4]), (12.0, [5, 2]), (18.0, [5, 5]), (24.0, [5, 5, 3]),
        (30.0, [5, 5, 5]),
    ]  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["fit"]
    written.clear()
    clone(model).fit(X, y)
    assert written == []


def test_a_checkpoint_does_not_change_the_fit(tmp_path):
    X, y = noisy(3)
    for solver, settings in SOLVERS.items():
        model = ErrorClumpingClassifier(**settings)
        written = saving_always(clone(model).set_params(checkpoint=str(tmp_path / solver)))
        assert_identical(written.fit(X, y), clone(model).fit(X, y))


# A limit on the size of files is what a full disk looks like. Each fit has a line for what it says.
FULL = """
import resource, sys, warnings
import numpy as np
from laconic import ErrorClumpingClassifier

data, *fits = sys.argv[1:]
with np.load(data) as file:
    X, y = file["X"], file["y"]
for checkpoint, limit in zip(fits[::2], fits[1::2]):
    model = ErrorClumpingClassifier(checkpoint=checkpoint)
    model._save_every = 0.0
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        full = model.fit(X, y)
    print(*(f"{w.category.__name__}: {w.message}" for w in caught), sep=" | ")
    assert full.gap_ <= 1e-10 * full.objective_
"""


def test_a_full_disk_ends_the_checkpoint_and_not_the_fit(python, tmp_path):
    pytest.importorskip("resource")
    X, y = noisy(3)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    none, part = tmp_path / "none", tmp_path / "part"
    process = python(FULL, tmp_path / "data.npz", none, 0, part, 8_000)
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    why = "cannot be written (File too large); the fit goes on without it"
    assert out.splitlines() == [f"RuntimeWarning: checkpoint {file} {why}" for file in (none, part)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.npz", "part"]
    whole = ErrorClumpingClassifier().fit(X, y)
    for file in (none, part):
        assert_identical(ErrorClumpingClassifier(checkpoint=file).fit(X, y), whole)


# -- strangers -------------------------------------------------------------------------------------


def stored(path, solver, classes=3):
    """A finished checkpoint: how to fit it again, and what is in it."""
    X, y = noisy(classes, m=40)
    model = ErrorClumpingClassifier(checkpoint=path, **SOLVERS[solver]).set_params(max_iter=3)
    model.fit(X, y)
    return (lambda: clone(model).fit(X, y)), *fuzz._archive(path)


@pytest.mark.parametrize(
    ("name", "change", "match"),
    [
        ("w", lambda a: a[:-1], "'0_w' has shape"),
        ("w", lambda a: a.astype(np.int64), "'0_w' must hold real numbers"),
        ("w", lambda a: a + 1.0, "weights and shortfalls do not belong together"),
        ("w", lambda a: a * 1e150, "outside -1e.100 to 1e.100"),
        ("g", lambda a: np.full_like(a, np.nan), "'0_g' holds NaN"),
        ("g", lambda a: a[::-1].copy(), "do not belong together"),
        ("slack", lambda a: -a - 1, "'0_slack' has values outside 0"),
        ("slack", lambda a: a + 1e9, "far beyond the shortfalls"),
        ("factored", lambda a: a.astype(float), "must hold truth values"),
        ("factored", lambda a: a[:0], "'0_factored' has shape"),
        ("strange", lambda a: np.zeros(3), "does not belong there"),
    ],
)
def test_arrays_that_cannot_be_are_refused(tmp_path, name, change, match):
    path = tmp_path / "fit"
    again, header, arrays = stored(path, "newton")
    changed = {**arrays, f"0_{name}": change(arrays.get(f"0_{name}"))}
    path.write_bytes(fuzz.sealed(header, changed)[0])
    with pytest.raises(ValueError, match=f"checkpoint .*fit is not sound: .*{match}"):
        again()
    del changed[f"0_{name}"], arrays["0_w"]
    path.write_bytes(fuzz.sealed(header, arrays)[0])
    with pytest.raises(ValueError, match="it has no array '0_w'"):
        again()


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("iterations", 0, "iterations must be a whole number from 1"),
        ("iterations", 2.0, "iterations must be a whole number"),
        ("iterations", 10**400, "iterations must be a whole number"),
        ("exactness", 0.0, "exactness must be a number from"),
        ("exactness", "small", "exactness must be a number"),
        ("step", float("nan"), "step must be finite"),
        ("step", -1.0, "step must be a number from 0"),
        ("doublings", 101, "doublings must be a whole number from 0 to 100"),
        ("direct", 1, "direct must be true or false"),
        ("number", 3, "number must be a whole number from 0 to 2"),
        ("number", 1, "a problem is listed twice"),
    ],
)
def test_numbers_that_cannot_be_are_refused(tmp_path, name, value, match):
    path = tmp_path / "fit"
    again, header, arrays = stored(path, "newton")
    problem = header["problems"][0]
    del problem[name]
    path.write_bytes(fuzz.sealed(header, arrays)[0])
    with pytest.raises(ValueError, match=f"fit is not sound: it has no '{name}'"):
        again()
    problem[name] = value
    path.write_bytes(fuzz.sealed(header, arrays)[0])
    with pytest.raises(ValueError, match=f"checkpoint .*fit is not sound: {match}"):
        again()


@pytest.mark.parametrize("problems", [None, 3, [None], {"0": 1}, "all"])
def test_a_list_of_problems_that_is_none_is_refused(tmp_path, problems):
    path = tmp_path / "fit"
    again, header, arrays = stored(path, "averaging")
    path.write_bytes(fuzz.sealed({**header, "problems": problems}, arrays)[0])
    with pytest.raises(ValueError, match="fit is not sound: problems must be a list of dict"):
        again()
    del header["problems"]
    path.write_bytes(fuzz.sealed(header, arrays)[0])
    with pytest.raises(ValueError, match="fit is not sound: it has no 'problems'"):
        again()


@pytest.mark.parametrize("solver", SOLVERS)
def test_damaged_files_are_refused_by_name_and_kept(tmp_path, solver):
    path = tmp_path / "fit"
    again, *_ = stored(path, solver, classes=2)
    contents = path.read_bytes()
    for length in (1, 30, len(contents) // 2, len(contents) - 1):
        path.write_bytes(contents[:length])
        with pytest.raises(ValueError, match=f"{path.name} is not a readable Laconic file"):
            again()
        assert path.read_bytes() == contents[:length]
    path.write_bytes(b"")
    again()
    assert path.stat().st_size > 0
