"""Tests on fresh rows: against brute force, and on tables in which nothing is wrong."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binom, mannwhitneyu

from laconic.report.expected import recalibrate
from laconic.report.tails import (
    _exact,
    _saddlepoint,
    at_least,
    falling,
    higher_losses,
    holm,
    spread_evenly,
    surprise,
)


def test_the_exact_tail_is_the_sum_over_all_outcomes():
    p = np.random.default_rng(0).random(9)
    for errors in range(11):
        every = (np.array(bits) for bits in product([0, 1], repeat=9))
        brute = sum(np.prod(np.where(b, p, 1 - p)) for b in every if b.sum() >= errors)
        assert at_least(errors, p) == pytest.approx(brute, rel=1e-12)


def test_alike_rows_are_binomial():
    for n in (40, 2000):
        for errors in (0, n // 20, n // 10, n // 5):
            expected = binom.sf(errors - 1, n, 0.1)
            assert at_least(errors, np.full(n, 0.1)) == pytest.approx(expected, rel=1e-3)


def test_the_saddlepoint_is_near_the_exact_tail():
    rng = np.random.default_rng(0)
    for n, (a, b) in ((301, (1, 8)), (800, (0.5, 0.7)), (1500, (0.3, 20))):
        p = np.clip(rng.beta(a, b, n), 1e-9, 1 - 1e-9)
        mean, spread = p.sum(), np.sqrt((p * (1 - p)).sum())
        for z in (-2, -0.01, 0, 1, 3, 6):
            errors = int(np.clip(round(mean + z * spread), 1, n))
            assert _saddlepoint(errors, p) == pytest.approx(float(_exact(errors, p)), rel=0.01)


def test_uncertainty_makes_a_tail_heavier():
    """A curve fitted to few rows knows less, so the same errors surprise less."""
    rng = np.random.default_rng(0)
    own = rng.beta(1, 6, 3000)
    wrong = rng.random(3000) < own
    inside = own[:100]
    errors = int(inside.sum() + 15)
    few, many = recalibrate(own[:150], wrong[:150]), recalibrate(own, wrong)
    assert surprise(errors, inside, many) < surprise(errors, inside, few)
    exact = float(at_least(errors, many.expected(inside)))
    assert surprise(errors, inside, many) > exact


def test_the_level_holds_for_rows_that_fail_as_expected():
    """The curve is fitted to one half, and the rows of the region are in the other."""
    rng = np.random.default_rng(1)
    chances = []
    for _ in range(400):
        own = rng.beta(0.7, 4, 600)
        wrong = rng.random(600) < expit(0.5 + 0.7 * logit(np.clip(own, 1e-6, 1 - 1e-6)))
        curve = recalibrate(own[:300], wrong[:300])
        inside = np.sort(own[300:])[-60:]
        errors = int(wrong[300:][np.argsort(own[300:])[-60:]].sum())
        chances.append(surprise(errors, inside, curve))
    # At most 5 % below 0.05, up to three standard errors of the 400 tables.
    assert np.mean(np.array(chances) < 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    assert np.mean(np.array(chances) < 0.01) <= 0.01 + 3 * np.sqrt(0.01 * 0.99 / 400)


def test_recalibration_follows_a_curve():
    """Overconfident probabilities, and a floor of errors at any probability."""
    rng = np.random.default_rng(0)
    own = rng.beta(0.3, 3, 20_000)
    for truth in (0.03 + 0.9 * own, expit(0.5 * logit(np.clip(own, 1e-6, 1 - 1e-6)))):
        curve = recalibrate(own, rng.random(20_000) < truth)
        for low, high in ((0, 0.001), (0.001, 0.05), (0.05, 0.2), (0.2, 0.6)):
            some = (own >= low) & (own < high)
            assert curve.expected(own)[some].mean() == pytest.approx(truth[some].mean(), abs=0.015)


@pytest.mark.parametrize("own", [np.full(200, 0.3), np.zeros(200), np.linspace(0, 1, 200)])
def test_recalibration_of_odd_probabilities_is_finite(own):
    for wrong in (
        np.arange(200) % 3 == 0,
        np.zeros(200, dtype=bool),
        own > 0.5,
        np.arange(200) < 2,
    ):
        curve = recalibrate(own, wrong)
        expected = curve.expected(own)
        assert np.isfinite(expected).all()
        assert ((expected > 0) & (expected < 1)).all()
        assert 0 <= surprise(int(wrong[:50].sum()), own[:50], curve) <= 1
    assert recalibrate(np.full(200, 0.3), np.arange(200) % 4 == 0).expected(own[:1]) > 0


def test_ranks_of_losses_are_those_of_scipy():
    rng = np.random.default_rng(0)
    inside, outside = rng.exponential(1.2, 300), np.round(rng.exponential(1.0, 900), 1)
    mine = higher_losses(inside, outside)
    theirs = mannwhitneyu(inside, outside, alternative="greater", use_continuity=False)
    assert mine == pytest.approx(theirs.pvalue, rel=0.01)
    few = higher_losses(inside[:12], outside)
    exact = mannwhitneyu(inside[:12], outside, alternative="greater", use_continuity=False).pvalue
    assert few == pytest.approx(exact, abs=0.02)
    assert higher_losses(inside[:0], outside) == 1.0
    assert higher_losses(np.ones(20), np.ones(50)) == 1.0


def test_the_level_of_all_clumps_together():
    """Weighted Holm: whichever hypotheses are true, one of them is rejected in at most 5 %."""
    rng = np.random.default_rng(0)
    for true in ([0, 1, 2, 3], [1, 3], [0], [3]):
        alarms = 0
        for _ in range(4000):
            chances = np.full(4, 1e-9)
            chances[true] = rng.random(len(true))
            alarms += min(np.array(holm(chances.tolist(), falling(1.0, 4)))[true]) < 0.05
        assert alarms / 4000 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 4000)
    assert holm([], []) == []
    assert holm([0.01], [1.0]) == [0.01]
    assert holm([0.04, 0.001, 0.5], [1.0] * 3) == pytest.approx([0.08, 0.003, 0.5])  # plain Holm
    assert holm([0.9, 0.9], [1.0, 0.5]) == [1.0, 1.0]
    assert holm([0.004, 1.0], [1.0, 0.5])[0] == pytest.approx(0.006)
    assert spread_evenly(0, 10, 5, 10) == 1.0
