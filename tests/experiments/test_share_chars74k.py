"""What counts as features needed, and which rows may meet."""

import numpy as np
import pytest
from share_chars74k import CLASSES, DRAWN, METHODS, Curve, Part, parts, summarise


def test_features_needed_are_those_where_the_target_is_first_met():
    curve = Curve(
        np.array([0.6, 0.4, 0.2, 0.25, 0.1]),
        np.array([2, 3, 5, 6, 6]),
        np.array([2, 4, 6, 8, 10]),
    )
    assert curve.needed(0.5) == (3, 4)
    assert curve.needed(0.2) == (5, 6)  # at the target, and not where it is met again
    assert curve.needed(0.15) == (6, 10)
    assert curve.needed(0.05) is None


def test_summary_is_of_all_repeats_or_of_none():
    def needed(method, k, target, repeat):
        if method == "one-vs-rest" and k == 36 and repeat == 1:
            return None, None
        return k + repeat, 10 * k

    lines = summarise(
        [
            (method, k, target, repeat, *needed(method, k, target, repeat))
            for method in METHODS
            for k in CLASSES
            for target in (0.2, 0.08)
            for repeat in range(3)
        ],
        (0.2, 0.08),
    )
    assert len(lines) == 4
    for (mean, spread, in_sum), k in zip(lines["ShareBoost, 8 %"], CLASSES, strict=True):
        assert (mean, in_sum) == (k + 1, 10 * k)
        assert spread == pytest.approx(1 / np.sqrt(3))  # of k, k + 1, k + 2
    assert lines["one-vs-rest, 20 %"][-1] == (None, 0.0, None)
    assert lines["one-vs-rest, 20 %"][0][0] == CLASSES[0] + 1


def test_no_family_of_fonts_is_in_two_parts():
    rng = np.random.default_rng(0)
    family = np.repeat(np.arange(40), 36 * 8)
    y = np.tile(np.arange(36), 40 * 8)
    found = parts(y, family, rng)
    families = [set(family[rows]) for rows in found]
    assert not families[0] & families[1]
    assert not (families[0] | families[1]) & families[2]
    for rows, most in zip(found, DRAWN, strict=True):
        assert len(np.unique(rows)) == len(rows)
        counts = np.bincount(y[rows], minlength=36)
        assert counts.min() > 0
        assert counts.max() <= most


def test_without_families_every_row_is_in_one_part():
    found = parts(np.arange(200) % 36, None, np.random.default_rng(0))
    assert [len(rows) for rows in found] == [100, 30, 70]
    np.testing.assert_array_equal(np.sort(np.concatenate(found)), np.arange(200))


def test_some_classes_are_numbered_anew():
    part = Part(np.arange(6)[:, None], np.array([4, 7, 9, 7, 4, 1]))
    some = part.only(np.array([4, 9]))
    np.testing.assert_array_equal(some.F[:, 0], [0, 2, 4])
    np.testing.assert_array_equal(some.y, [0, 1, 0])
