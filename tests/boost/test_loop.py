"""The loop: callbacks see every round and can stop it, and so can Ctrl-C."""

import signal
import time

import numpy as np
import pytest

from laconic import ShareBoostClassifier
from laconic.pools import Columns


class Interrupting:
    """A callback that presses Ctrl-C in its n-th round."""

    def __init__(self, n):
        self.left = n

    def __call__(self, state):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


# -- callbacks -------------------------------------------------------------------------------------


def test_callbacks_see_every_round(three_classes):
    X, y = three_classes
    seen = []

    def look(state):
        assert state.status == "running"
        assert state.last is state.entries[-1]
        seen.append((len(state.entries), state.last.size, state.last.loss))

    model = ShareBoostClassifier(4, callbacks=[look]).fit(X, y)
    assert seen == [(n + 1, n, model.path_[n].loss) for n in range(5)]
    assert model.status_ == "largest size reached"


def test_callbacks_see_the_refinement_too(three_classes):
    X, y = three_classes
    seen = []
    model = ShareBoostClassifier(
        3, refine=True, callbacks=[lambda state: seen.append(len(state.own.entries))]
    ).fit(X, y)
    assert seen == [0, 0, 0, 0, 2, 3, 4] + [4] * 5  # grown, refined, swept down and up
    assert model.n_atoms_ == 3


def test_a_true_answer_ends_the_fit(three_classes, assert_identical):
    X, y = three_classes
    stopped = ShareBoostClassifier(8, callbacks=[lambda state: state.last.size == 3]).fit(X, y)
    assert stopped.path_.sizes.tolist() == [0, 1, 2, 3]
    assert stopped.status_ == "stopped by a callback"
    whole = ShareBoostClassifier(8).fit(X, y)
    assert np.array_equal(stopped.atom_coef_, whole.at(3).atom_coef_)
    assert np.array_equal(stopped.predict_proba(X), whole.at(3).predict_proba(X))


def test_every_callback_is_asked_even_if_an_earlier_one_stops(three_classes):
    X, y = three_classes
    calls = []
    callbacks = [lambda state: True, lambda state: calls.append(1)]
    model = ShareBoostClassifier(3, callbacks=callbacks).fit(X, y)
    assert calls == [1]
    assert model.n_atoms_ == 0


def test_a_stop_is_a_stop_also_where_a_refinement_was_to_follow(three_classes):
    X, y = three_classes
    calls = []

    def stop(state):
        calls.append(state.last.size)
        return state.last.size == 2

    model = ShareBoostClassifier(5, refine=True, callbacks=[stop]).fit(X, y)
    assert calls == [0, 1, 2]
    assert model.n_atoms_ == 2
    assert model.status_ == "stopped by a callback"


def test_a_stopped_fit_bounds_the_sizes_it_has_looked_beyond(three_classes):
    X, y = three_classes
    stopped = ShareBoostClassifier(8, callbacks=[lambda state: state.last.size == 3]).fit(X, y)
    whole = ShareBoostClassifier(8).fit(X, y)
    assert stopped.at(2).excess_loss_bound(1.0) == whole.at(2).excess_loss_bound(1.0)
    with pytest.raises(ValueError, match="smaller size"):
        stopped.excess_loss_bound(1.0)


def test_an_error_in_a_callback_is_the_callers(three_classes):
    X, y = three_classes

    def broken(state):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        ShareBoostClassifier(3, callbacks=[broken]).fit(X, y)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_atoms": 2}, "largest size reached"),
        ({"max_atoms": 99}, "no admissible atom"),
        ({"max_atoms": 99, "max_cost": 2}, "no admissible atom"),
        ({"early_stopping": True, "n_iter_no_change": 1, "random_state": 0}, "held-out"),
    ],
    ids=str,
)
def test_the_status_says_why_the_fit_ended(settings, words):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 12))
    y = (X[:, 0] + 2 * rng.standard_normal(80) > 0).astype(int)
    assert words in ShareBoostClassifier(**settings).fit(X, y).status_


# -- Ctrl-C ----------------------------------------------------------------------------------------


def test_ctrl_c_leaves_the_model_learned_so_far(three_classes):
    X, y = three_classes
    whole = ShareBoostClassifier(6).fit(X, y)
    with pytest.warns(UserWarning, match="interrupted.*3 atoms"):
        model = ShareBoostClassifier(6, callbacks=[Interrupting(4)]).fit(X, y)
    assert model.status_ == "interrupted"
    assert model.n_atoms_ == 3
    assert model.atoms_ == whole.at(3).atoms_
    assert np.array_equal(model.atom_coef_, whole.at(3).atom_coef_)
    assert np.array_equal(model.predict(X), whole.at(3).predict(X))
    assert len(list(model.staged_predict(X))) == 4


def test_ctrl_c_in_the_refinement_keeps_the_larger_sizes(three_classes):
    X, y = three_classes
    whole = ShareBoostClassifier(5, refine=True).fit(X, y)
    with pytest.warns(UserWarning, match="interrupted"):
        model = ShareBoostClassifier(5, refine=True, callbacks=[Interrupting(8)]).fit(X, y)
    plain = ShareBoostClassifier(5).fit(X, y)
    assert model.path_.sizes.tolist() == list(range(6))
    assert model.n_atoms_ == 5
    for n in range(3):
        assert model.path_[n].loss == whole.path_[n].loss
    for n in range(3, 6):
        assert model.path_[n].loss == plain.path_[n].loss


def test_ctrl_c_with_rows_held_out_takes_the_best_size_so_far(three_classes):
    X, y = three_classes
    settings = {"early_stopping": True, "random_state": 0}
    with pytest.warns(UserWarning, match="interrupted"):
        model = ShareBoostClassifier(6, callbacks=[Interrupting(4)], **settings).fit(X, y)
    assert len(model.validation_losses_) == 4
    assert model.n_atoms_ == int(np.argmin(model.validation_losses_))


class InterruptedColumns:
    """A pool that presses Ctrl-C the n-th time it is asked for sums, and never again."""

    def __init__(self, n):
        self.left = n

    def bind(self, X, weight, threads):
        bound = Columns().bind(X, weight, threads)
        gradients = bound.gradients

        def counted(residual):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
            return gradients(residual)

        bound.gradients = counted
        return bound

    def __deepcopy__(self, memo):
        return self  # clones press the same key


@pytest.mark.parametrize("n", [1, 2, 4])
def test_ctrl_c_within_a_round_keeps_the_rounds_before(three_classes, n):
    X, y = three_classes
    with pytest.warns(UserWarning, match=f"interrupted.*{n - 1} atoms"):
        model = ShareBoostClassifier(6, pool=InterruptedColumns(n)).fit(X, y)
    assert model.n_atoms_ == n - 1
    assert np.array_equal(model.atom_coef_, ShareBoostClassifier(n - 1).fit(X, y).atom_coef_)


def test_ctrl_c_before_anything_is_learned_propagates(three_classes):
    X, y = three_classes

    class Interrupted:
        def bind(self, X, weight, threads):
            raise KeyboardInterrupt

    model = ShareBoostClassifier(3, pool=Interrupted())
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not hasattr(model, "path_")


def test_ctrl_c_during_cross_validation_ends_the_fit(three_classes, recwarn):
    """A fold cut short would count as a whole one: there is nothing to keep yet."""
    X, y = three_classes
    pool = InterruptedColumns(3)
    model = ShareBoostClassifier(4, pool=pool, cv=3)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not hasattr(model, "path_")
    assert pool.left == 0  # not one more sum was asked for
    assert not recwarn.list  # least of all a warning that a model was kept


def test_ctrl_c_in_a_callback_of_the_first_round_still_leaves_the_intercept(three_classes):
    X, y = three_classes
    with pytest.warns(UserWarning, match="interrupted.*0 atoms"):
        model = ShareBoostClassifier(3, callbacks=[Interrupting(1)]).fit(X, y)
    assert np.all(model.predict(X) == np.bincount(y).argmax())


SLOW_FIT = """
import signal, sys, time, warnings
import numpy as np
from laconic import ShareBoostClassifier

# A shell starts background jobs with Ctrl-C ignored, and so do the processes that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

def slowly(state):
    print("round", state.last.size, flush=True)
    time.sleep(0.05)

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 100))
y = (X[:, :3] + rng.standard_normal((200, 3))).argmax(axis=1)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    model = ShareBoostClassifier(90, callbacks=[slowly]).fit(X, y)
print("status", model.status_)
print("usable", model.predict(X).shape == y.shape, len(model.path_) == model.n_atoms_ + 1)
print("warned", [str(w.message) for w in told])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGINT"), reason="needs signals")
def test_a_real_interrupt_leaves_a_usable_model(python):
    process = python(SLOW_FIT)
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("round 3"):
            break
    time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "status interrupted" in rest
    assert "usable True True" in rest
    assert "fit was interrupted" in rest


# -- progress --------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"refine": True}, {"max_atoms": 0}, {"pool": "stumps"}])
def test_the_progress_bar_shows_atoms_and_loss(three_classes, capsys, settings, assert_identical):
    X, y = three_classes
    loud = ShareBoostClassifier(**{"max_atoms": 3, "verbose": 1, **settings}).fit(X, y)
    shown = capsys.readouterr()
    assert "atoms" in shown.out + shown.err
    assert f"{loud.path_.losses[-1]:.4f}" in shown.out + shown.err
    quiet = ShareBoostClassifier(**{"max_atoms": 3, **settings}).fit(X, y)
    shown = capsys.readouterr()
    assert shown.out + shown.err == ""
    assert_identical(loud, quiet)


def test_the_progress_bar_survives_ctrl_c(three_classes, capsys):
    X, y = three_classes
    with pytest.warns(UserWarning, match="interrupted"):
        ShareBoostClassifier(6, verbose=1, callbacks=[Interrupting(3)]).fit(X, y)
    shown = capsys.readouterr()
    assert "atoms" in shown.out + shown.err
