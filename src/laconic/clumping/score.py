"""How clumped the errors of a classifier are, compared with errors placed at random."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from laconic.clumping.graph import NeighbourGraph
from laconic.clumping.neighbours import find_graph
from laconic.numeric.threads import Threads

# Numbers held at a time in the sums over neighbours of permuted errors.
HELD = 1 << 23


class ClumpScore(NamedTuple):
    """The result of `clump_score`."""

    score: float
    """Pairs of neighbouring errors, divided by the expected number. It is about 1 for errors placed
    at random and larger if errors clump. It is NaN if no pair could be expected."""
    pairs: int
    """Pairs of neighbouring rows that are both errors."""
    expected: float
    """Mean number of such pairs over all ways to place as many errors on the rows."""
    deviation: float
    """Standard deviation of that number over all these placements."""
    z: float
    """(pairs − expected) / deviation. NaN if the number cannot vary."""
    p_value: float
    """Share of random placements with at least as many pairs. The observed one is included."""
    radius: float
    """The radius used. NaN if neighbours were not found by a radius."""
    share: float
    """Share of all pairs of rows that are neighbours."""

    def __repr__(self) -> str:
        """Return the score and the numbers behind it.

        Examples
        --------
        >>> ClumpScore(2.0, 34, 17.0, 4.0, 4.25, 0.005, 0.31, 0.05)
        ClumpScore(score=2, 34 pairs of neighbouring errors where 17 were expected, p=0.005)
        """
        chance = "" if np.isnan(self.p_value) else f", p={self.p_value:.3g}"
        return (
            f"ClumpScore(score={self.score:.3g}, {self.pairs} pairs of neighbouring errors where "
            f"{self.expected:.3g} were expected{chance})"
        )


def clump_score(
    X: Any,
    errors: Any,
    *,
    radius: float | str = "auto",
    n_neighbors: int | None = None,
    metric: Any = "euclidean",
    graph: Any = None,
    n_permutations: int = 199,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> ClumpScore:
    """Measure how clumped errors are: pairs of neighbouring errors, against a permutation null.

    This works for every classifier: ``clump_score(X, model.predict(X) != y)``. It is best to use
    rows that the classifier was not fitted to. Mean and deviation under the null are exact, because
    they follow from the degrees of the graph alone. The p-value comes from random placements, each
    of which costs a product with the graph.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_rows, n_features)
        May be None if a ``graph`` is given.
    errors : array-like of bool of shape (n_rows,)
        Which rows are errors.
    radius, n_neighbors, metric, graph
        Which rows are neighbours, as in `laconic.ErrorClumpingClassifier`.
    n_permutations : int, default=199
        Number of random placements of the errors. With 0, the p-value is NaN.
    random_state : int, RandomState instance or None, default=None
        Draws the placements.
    n_jobs : int, default=None
        Number of threads.

    Returns
    -------
    ClumpScore

    Examples
    --------
    >>> import numpy as np
    >>> from laconic import clump_score
    >>> X = np.random.default_rng(0).uniform(size=(500, 2))
    >>> found = clump_score(X, X.max(axis=1) < 0.3, radius=0.1, random_state=0)
    >>> bool(found.score > 5), found.p_value
    (True, 0.005)
    """
    if not isinstance(n_permutations, Integral) or n_permutations < 0:
        raise ValueError(f"n_permutations must be an integer of at least 0, not {n_permutations!r}")
    network, used = find_graph(X, radius, n_neighbors, metric, graph, n_jobs=n_jobs)
    wrong = _checked(errors, network.n_rows)
    with Threads(n_jobs) as threads:
        pairs = _pairs(network, wrong[None], threads)[0]
        expected, deviation = _null(network, int(wrong.sum()))
        p_value = np.nan
        if n_permutations:
            random = check_random_state(random_state)
            hold, reached = max(1, HELD // network.n_rows), 1
            for first in range(0, n_permutations, hold):
                n = min(hold, n_permutations - first)
                placed = np.stack([random.permutation(wrong) for _ in range(n)])
                reached += int((_pairs(network, placed, threads) >= pairs).sum())
            p_value = reached / (n_permutations + 1)
    return ClumpScore(
        score=pairs / expected if expected > 0 else np.nan,
        pairs=int(pairs),
        expected=expected,
        deviation=deviation,
        z=(pairs - expected) / deviation if deviation > 0 else np.nan,
        p_value=p_value,
        radius=used,
        share=network.share,
    )


def _checked(errors: Any, n_rows: int) -> np.ndarray:
    wrong = np.asarray(errors)
    if wrong.shape != (n_rows,):
        raise ValueError(f"errors must have one entry per row ({n_rows}), not shape {wrong.shape}")
    if wrong.dtype != bool and not np.isin(wrong, (0, 1)).all():
        raise ValueError("errors must be true or false (or 1 or 0) for every row")
    return wrong.astype(np.float64)


def _pairs(graph: NeighbourGraph, placed: np.ndarray, threads: Threads) -> np.ndarray:
    """Return the number of pairs of marked neighbours, for every placement of the marks."""
    return np.einsum("ij,ij->i", placed, graph.sums(placed, threads)).round() / 2.0


def _null(graph: NeighbourGraph, n_errors: int) -> tuple[float, float]:
    """Return mean and standard deviation of the number of pairs over all placements of the errors.

    Two edges share both ends, one end or none, so together they have two, three or four ends. Two
    ends are both errors with probability k(k−1)/m(m−1). For three and four ends, the formula has
    three and four such factors.
    """
    m, k = graph.n_rows, n_errors
    edges = graph.degrees.sum() / 2.0
    touching = float((graph.degrees * (graph.degrees - 1.0)).sum())  # ordered pairs of edges
    chance = np.cumprod([max(k - i, 0) / (m - i) if m > i else 0.0 for i in range(4)])
    mean = edges * chance[1]
    apart = edges * (edges - 1.0) - touching
    variance = mean + touching * chance[2] + apart * chance[3] - mean**2
    return float(mean), float(np.sqrt(max(variance, 0.0)))
