"""The scan statistic: how much evidence there is of errors in a region beyond those expected.

A row has an error e, 0 or 1, and an expected error p. If nothing is wrong, P(e = 1) = p. Suppose
that a share ε of a region's rows fails whatever the model expects. Then P(e = 1) = p + ε(1 − p)
there, and the log-likelihood ratio of the region is a sum over its rows,

    Σ g(ε),  g(ε) = e·log(1 + ε(1 − p)/p) + (1 − e)·log(1 − ε).

The evidence of a region is the largest of these sums over the few values of ε in ``SHARES``. So an
unexpected error counts for much, an expected one for little, and the sums of many regions are quick
to get. If all p are alike, the evidence is about n·KL(error rate ‖ p), as in Kulldorff's scan.

Other losses are ranked, and e is the rank scaled to [0, 1].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

# Shares ε of rows that fail whatever the model expects. Larger ones would favour small regions in
# which nearly all rows happen to fail.
SHARES = np.array([0.03, 0.1, 0.25, 0.5])
# The share by which errors count where one number is needed.
MIDDLE = 2


class Candidate(NamedTuple):
    """The best region of one shape."""

    shape: Any
    inside: np.ndarray
    """Numbers of the rows inside that were left."""
    evidence: float
    price: float
    """Logarithm of the number of regions that the search chose from. A shape with more regions
    needs more evidence."""

    @property
    def worth(self) -> float:
        """Evidence beyond the price."""
        return self.evidence - self.price


def gains(error: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return g(ε) of every row and every ε of ``SHARES``, (n_rows, n_shares).

    Examples
    --------
    >>> gains(np.array([1.0, 0.0]), np.array([0.1, 0.1])).round(2)
    array([[ 0.24,  0.64,  1.18,  1.7 ],
           [-0.03, -0.11, -0.29, -0.69]])
    """
    error, expected = error[:, None], expected[:, None]
    fails = np.log1p(SHARES * (1.0 - expected) / expected)
    return np.ascontiguousarray(error * fails + (1.0 - error) * np.log1p(-SHARES))
