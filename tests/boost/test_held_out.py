"""Held-out rows: when a path has grown enough, against a loop by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from loops import share_loop

from laconic.boost.held_out import HeldOut
from laconic.losses import LOSSES


def rows(seed, m=40, d=3, k=3):
    rng = np.random.default_rng(seed)
    weight = rng.random(m)
    return rng.normal(size=(m, d)), rng.integers(0, k, m), weight / weight.sum()


def an_entry(scores):
    """An entry that gives these scores."""
    return SimpleNamespace(scores=lambda X: scores)


def test_the_loss_is_the_weighted_mean_over_the_rows():
    X, y, weight = rows(0)
    scores = np.random.default_rng(1).normal(size=(len(y), 3))
    held = HeldOut(X, y, weight, LOSSES["log"](), 3)
    by_hand = sum(
        w * (np.log(np.exp(f).sum()) - f[c]) for w, f, c in zip(weight, scores, y, strict=True)
    )
    assert held.loss(an_entry(scores)) == pytest.approx(by_hand, rel=1e-12)
    assert held.losses == []


@pytest.mark.parametrize("patience", [1, 2, 4])
@pytest.mark.parametrize("seed", range(4))
def test_it_is_enough_after_so_many_rounds_without_a_new_lowest_loss(patience, seed):
    X, y, weight = rows(seed)
    rng = np.random.default_rng(seed)
    held = HeldOut(X, y, weight, LOSSES["log"](), patience)
    lowest, waited = np.inf, 0
    for _ in range(12):
        entry = an_entry(rng.normal(size=(len(y), 3)))
        loss = held.loss(entry)
        lowest, waited = (loss, 0) if loss < lowest else (lowest, waited + 1)
        assert held(entry) == (waited >= patience)
        assert held.losses[-1] == loss


def test_a_loop_ends_there():
    loop = share_loop(13)
    X, y, weight = rows(3, d=13)
    loop.watch = HeldOut(X, y, weight, LOSSES["log"](), 2)
    state = loop.begin()
    loop.grow(state)
    losses = loop.watch.losses
    assert state.status == "held-out loss no longer falls"
    assert len(losses) == len(state.entries) == int(np.argmin(losses)) + 3


def test_another_path_starts_without_a_memory():
    X, y, weight = rows(0)
    held = HeldOut(X, y, weight, LOSSES["log"](), 1)
    held(an_entry(np.zeros((len(y), 3))))
    again = held.again()
    assert again.losses == []
    assert len(held.losses) == 1
    assert again.X is held.X
