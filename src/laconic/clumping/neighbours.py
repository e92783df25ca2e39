"""Graphs of neighbours: within a radius, by number, or as the user gives them (section 2).

    N_i = {j ≠ i : ‖x_i − x_j‖ ≤ ρ}

The graph of a Euclidean radius is exact. BLAS computes the inner products of tiles of rows in
single precision. A proven bound on their rounding says which pairs this decides. The few other
pairs are decided by their differences in double precision. No m x m matrix of distances is ever
stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import pairwise_distances
from sklearn.utils import check_array

from laconic.clumping.graph import GraphLimits, NeighbourGraph
from laconic.clumping.radius_graph import distances, euclidean_graph
from laconic.clumping.symmetric import Edges
from laconic.clumping.ties import Digests
from laconic.numeric.sparse_rows import canonical, with_short_indices
from laconic.numeric.threads import Threads, row_blocks

# Number of rows from which an automatic radius is computed.
SAMPLED_ROWS = 1000
# Number of rows whose neighbours are counted first, to estimate how large a graph will be.
ESTIMATED = 64

USUAL = GraphLimits()

Watch = Callable[[float], None]


def radius_graph(
    X: Any,
    radius: float,
    *,
    metric: Any = "euclidean",
    n_jobs: int | None = None,
    watch: Watch | None = None,
    limits: GraphLimits = USUAL,
) -> NeighbourGraph:
    """Return the graph in which rows at a distance of at most ``radius`` are neighbours.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_rows, n_features)
    radius : float
        ρ of section 2, at least 0.
    metric : str or callable, default="euclidean"
        Any symmetric metric that `sklearn.metrics.pairwise_distances` takes.
    n_jobs : int, default=None
        Number of threads. None and -1 take every core. The answer does not depend on it.
    watch : callable, default=None
        Called repeatedly with the share of the work that is done.
    limits : GraphLimits
        Sizes of the parts of the work.

    Returns
    -------
    NeighbourGraph
        The exact graph. Two rows are neighbours if their distance, computed from their differences
        in float64, is at most the radius. The graph takes at most m²/8 bytes, and at most 4 bytes
        for each neighbour of each row.
    """
    X = _checked(X)
    if not radius >= 0:
        raise ValueError(f"radius must be a number of at least 0, not {radius!r}")
    with Threads(n_jobs) as threads:
        if metric == "euclidean":
            return euclidean_graph(X, float(radius), threads, watch, limits)
        edges = Edges(X.shape[0], limits)
        some = np.unique(np.linspace(0, X.shape[0] - 1, ESTIMATED).round().astype(np.int64))
        near = pairwise_distances(X[some], X, metric=metric) <= radius
        edges.expect(near.mean() * X.shape[0] ** 2)
        for rows in row_blocks(X.shape[0], max(1, limits.held // max(X.shape[0], 1))):
            near, others = np.nonzero(pairwise_distances(X[rows], X, metric=metric) <= radius)
            edges.add(rows.start + near, others)
            if watch is not None:
                watch(rows.stop / X.shape[0])
    return edges.graph()


def nearest_graph(
    X: Any,
    n_neighbors: int,
    weight: np.ndarray | None = None,
    *,
    metric: Any = "euclidean",
    n_jobs: int | None = None,
    watch: Watch | None = None,
    limits: GraphLimits = USUAL,
) -> NeighbourGraph:
    """Return the graph of nearest rows.

    Two rows are neighbours if either is among the ``n_neighbors`` nearest of the other. Rows as far
    away as the last of these count too. A row of weight 2 counts twice, also as a neighbour of
    itself; see `laconic.clumping.nearest`.
    """
    from laconic.clumping.nearest import nearest_pairs  # here, because it imports sklearn.neighbors

    X = _checked(X)
    if n_neighbors < 1:
        raise ValueError(f"n_neighbors must be at least 1, not {n_neighbors!r}")
    edges = Edges(X.shape[0], limits)
    edges.expect(float(n_neighbors) * X.shape[0])
    jobs = -1 if n_jobs is None else n_jobs
    how = (metric, jobs, watch, limits.listed)
    for pairs in nearest_pairs(X, int(n_neighbors), weight, *how):
        edges.add(*pairs)
    return edges.graph()


def given_graph(graph: Any, n_rows: int, limits: GraphLimits = USUAL) -> NeighbourGraph:
    """Return the graph that the user gives, as a `NeighbourGraph` or a matrix.

    The non-zeros of a matrix are edges. It is made symmetric (an edge in either direction is an
    edge), because Θ of an unsymmetric graph would not be positive semidefinite. Its diagonal is
    left out.
    """
    if isinstance(graph, NeighbourGraph):
        if graph.n_rows != n_rows:
            raise ValueError(f"graph has {graph.n_rows} rows, but X has {n_rows}")
        return graph
    if np.ndim(graph) != 2 or np.shape(graph) != (n_rows, n_rows):
        raise ValueError(
            f"graph must be a matrix of shape ({n_rows}, {n_rows}), one row and column per row of "
            f"X, or a NeighbourGraph; it has shape {np.shape(graph)}"
        )
    matrix: Any = graph.tocsr() if sparse.issparse(graph) else np.asarray(graph)
    edges = Edges(n_rows, limits)
    edges.expect(matrix.nnz if sparse.issparse(matrix) else np.inf)
    for rows in row_blocks(n_rows, max(1, limits.held // max(n_rows, 1))):
        part = sparse.csr_matrix(matrix[rows])
        if np.isnan(part.data).any():
            raise ValueError("graph has NaN entries; give 0 for rows that are not neighbours")
        near, others = part.nonzero()
        edges.add(rows.start + near, others)
    return edges.graph()


def find_graph(
    X: Any,
    radius: float | str = "auto",
    n_neighbors: int | None = None,
    metric: Any = "euclidean",
    graph: Any = None,
    *,
    weight: np.ndarray | None = None,
    n_jobs: int | None = None,
    watch: Watch | None = None,
) -> tuple[NeighbourGraph, float]:
    """Return the graph of an estimator's parameters, and its radius (NaN without one).

    A given ``graph`` has precedence over ``n_neighbors`` and ``radius``, of which only one may be
    given. If there is a ``graph``, ``X`` may be None.
    """
    used = find_radius(X, radius, n_neighbors, metric, graph, weight=weight)
    if graph is not None:
        rows = graph if X is None else X
        n_rows = rows.n_rows if isinstance(rows, NeighbourGraph) else np.shape(rows)[0]
        return given_graph(graph, n_rows), used
    how: dict[str, Any] = {"metric": metric, "n_jobs": n_jobs, "watch": watch}
    if n_neighbors is not None:
        return nearest_graph(X, n_neighbors, weight, **how), used
    return radius_graph(X, used, **how), used


def find_radius(
    X: Any,
    radius: float | str = "auto",
    n_neighbors: int | None = None,
    metric: Any = "euclidean",
    graph: Any = None,
    *,
    weight: np.ndarray | None = None,
) -> float:
    """Return the radius of `find_graph`, without making the graph."""
    if n_neighbors is not None and not (isinstance(radius, str) and radius == "auto"):
        raise ValueError(
            f"n_neighbors={n_neighbors!r} and radius={radius!r} were both given; leave one of them "
            "at its default"
        )
    if graph is not None:
        return np.nan
    if X is None:
        raise ValueError("X is needed to find neighbours if no graph is given")
    if n_neighbors is not None:
        return np.nan
    if not isinstance(radius, str):
        return float(radius)
    if radius != "auto":
        raise ValueError(f"radius must be a number or 'auto', not {radius!r}")
    return auto_radius(X, weight, metric=metric)


def auto_radius(
    X: Any, weight: np.ndarray | None = None, *, share: float = 0.05, metric: Any = "euclidean"
) -> float:
    """Return the radius that contains a given share of the pairs of rows.

    If there are at most 1,000 rows with a total weight of at most 1,000, all pairs count. A pair
    counts with the product of its rows' weights. The copies of one row are pairs at distance 0.
    Otherwise, 1,000 copies are taken. They are evenly spaced in an order that is as good as random,
    but depends only on the values of the rows. So an integer weight is the same as repeated rows,
    in any order.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_rows, n_features)
    weight : ndarray of shape (n_rows,), default=None
        Sample weights.
    share : float, default=0.05
        Share of the pairs that should be neighbours.
    metric : str or callable, default="euclidean"

    Returns
    -------
    float
        A little more (1e-9, relative) than the distance at that quantile, so that rounding does
        not decide on pairs at exactly that distance.
    """
    X = _checked(X)
    m = X.shape[0]
    weight = np.ones(m) if weight is None else np.asarray(weight, dtype=np.float64)
    some, weight = _sampled(X, weight)
    X = X[some]
    distances, of = _pair_distances(X, metric), np.triu_indices(X.shape[0], 1)
    part = weight / weight.max()  # products of the weights themselves might underflow
    copies = part * np.maximum(part - 1.0 / weight.max(), 0.0) / 2.0
    pairs = np.concatenate([[copies.sum()], part[of[0]] * part[of[1]]])
    distances = np.concatenate([[0.0], distances])
    order = np.argsort(distances, kind="stable")
    reached = np.cumsum(pairs[order])
    at = int(np.searchsorted(reached, share * reached[-1] * (1.0 - 1e-12)))
    return float(distances[order[min(at, len(order) - 1)]]) * (1.0 + 1e-9)


def _sampled(X: Any, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a sample of copies, and the number of copies of each.

    The sample is spaced evenly among all copies. If the copies are few, all are returned.
    """
    m, total = len(weight), weight.sum()
    if total <= SAMPLED_ROWS:
        if m <= SAMPLED_ROWS:
            return np.arange(m), weight
        weight, total = weight * (m / total), m
    order = Digests(X).order()
    # Without ``round``, three weights of 1/3 might not add up to exactly 1.
    ends = np.cumsum(weight[order]).round(9)
    copies = np.linspace(0, total - 1, SAMPLED_ROWS).round()
    rows = np.minimum(np.searchsorted(ends, copies, side="right"), m - 1)
    some, counts = np.unique(order[rows], return_counts=True)
    return some, counts.astype(np.float64)


def _pair_distances(X: Any, metric: Any) -> np.ndarray:
    """Return the distances of all pairs i < j, from differences if the metric is Euclidean."""
    if metric == "euclidean":
        from scipy.spatial.distance import pdist

        if sparse.issparse(X):
            return distances(X, *np.triu_indices(X.shape[0], 1))
        return pdist(X.astype(np.float64, copy=False))
    return pairwise_distances(X, metric=metric)[np.triu_indices(X.shape[0], 1)]


def _checked(X: Any) -> Any:
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    return with_short_indices(canonical(X))
