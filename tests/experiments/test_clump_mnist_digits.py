"""The search for the setting that is nearest to table 1."""

import numpy as np
from clump_mnist_digits import ALPHAS, DISCOUNTS, NORMALIZE, PAPER, SHARES, nearest, per_digit


def test_per_digit_errors():
    y = np.repeat(np.arange(10), 2)
    wrong = np.arange(20) % 4 == 1
    assert per_digit(wrong, y).tolist() == [0.5, 0.0] * 5


def test_the_nearest_setting_is_found():
    far = {(n, s, a, e): PAPER[0] + 0.3 for n in NORMALIZE for s in SHARES for a in ALPHAS
           for e in DISCOUNTS}  # fmt: skip
    far.update({("degree", None, a, 0.0): PAPER[0] for a in ALPHAS})
    far["pairs", SHARES[1], ALPHAS[2], 0.7] = PAPER[1] + 0.01
    far["pairs", SHARES[1], ALPHAS[2], 0.9] = PAPER[2]
    found = nearest(far, NORMALIZE, [(0.3, 0.5), (0.7, 0.9)])
    assert found["normalize"] == "pairs"
    assert found["share"] == SHARES[1]
    assert found["alpha"] == ALPHAS[2]
    assert found["discounts"] == [0.0, 0.7, 0.9]
    assert np.isclose(found["held_apart"], 0.01 / 3)
