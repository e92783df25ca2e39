"""What the loop leaves behind: for every size, atoms, weights, losses, certificates and times."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from laconic.correct.objective import Certificate
from laconic.model.feature_maps import FeatureMap, map_scores
from laconic.numeric.magnitudes import checked_scores


@dataclass(frozen=True, repr=False)
class PathEntry:
    """The model of one size.

    Attributes
    ----------
    numbers : tuple of int
        The pool's numbers of the atoms.
    atoms : tuple
        Records of the atoms, in the order they came.
    map : FeatureMap
        Computes the atoms' columns on new rows.
    weights : ndarray of shape (n_columns, n_outputs)
        In scaled units, the intercept left out.
    base : ndarray of shape (n_outputs,)
        Intercept of the centred columns.
    scales, means : ndarray of shape (n_columns,)
        Centred column = scale times input column, less mean.
    loss, objective : float
        L and Φ = L + Ω on the training rows.
    gains : tuple of float
        Every atom's share in the decrease of L, summing to it. An atom swapped in takes over the
        gain of the one it replaced and adds its own; what is lost with an atom that a sweep drops
        is taken from the others evenly. Under a price on atoms, the decrease is shared out along
        the ray to the weights; see `laconic.boost.shares`.
    certificate : Certificate
        How far from the optimum over these columns the weights can be.
        The searches of TotalQBoost solve many problems:
        of its entries, evaluations and products are what it took to write the entry down.
    inner : float
        ⟨∇L(W), W⟩, the first term of the bound from Lemma 3.
    steepest : float
        max_r ‖∇_r L(W)‖₁ over all columns of the pool and the intercept; of TotalQBoost, whose l1
        term counts every entry of W, the largest entry of the gradient over the pool. NaN until the
        next scoring pass has found it.
    cost : float
        Sum of the atoms' costs.
    seconds : float
        Time since the fit began.
    """

    numbers: tuple[int, ...]
    atoms: tuple[Any, ...]
    map: FeatureMap
    weights: np.ndarray
    base: np.ndarray
    scales: np.ndarray
    means: np.ndarray
    loss: float
    objective: float
    gains: tuple[float, ...]
    certificate: Certificate
    inner: float
    steepest: float
    cost: float
    seconds: float

    def __repr__(self) -> str:
        return f"PathEntry(size {self.size}, loss {self.loss:.4g}, objective {self.objective:.4g})"

    @property
    def size(self) -> int:
        """Number of atoms."""
        return len(self.atoms)

    def input_weights(self) -> np.ndarray:
        """Weights in the units of the input."""
        return self.weights * self.scales[:, None]

    @property
    def intercept(self) -> np.ndarray:
        """Intercept beside columns that are not centred."""
        return self.base - self.means @ self.weights

    def scores(self, X: Any) -> np.ndarray:
        """Scores (n_rows, n_outputs) on new rows."""
        return checked_scores(map_scores(self.map, X, self.input_weights()), self.intercept)

    def excess_loss_bound(self, norm: float) -> float:
        """Bound on L(W) − L(W*) for every W* with ‖W*‖_{∞,1} ≤ norm (from Lemma 3).

        ⟨∇L(W), W⟩ + norm · max_r ‖∇_r L(W)‖₁, by convexity of L, in scaled units. For an entry of
        TotalQBoost the norm is ‖W*‖₁.
        """
        if not norm >= 0:
            raise ValueError(f"norm must be at least 0, not {norm}")
        if math.isnan(self.steepest):
            raise ValueError(
                "the fit was stopped before the gradients of this size were known; "
                "ask for another, smaller size"
            )
        return self.inner + norm * self.steepest


class Path:
    """Entries of growing size, one run's answer to every size at once.

    Indexing goes by size: ``path[5]`` is the entry of five atoms. Without refinement each entry's
    atoms are the previous entry's and one more.
    """

    def __init__(self, entries: list[PathEntry]) -> None:
        self.entries = entries

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[PathEntry]:
        return iter(self.entries)

    def __getitem__(self, size: int) -> PathEntry:
        for entry in self.entries:
            if entry.size == size:
                return entry
        raise KeyError(f"no model of {size} atoms; the path has sizes {self._span()}")

    def __repr__(self) -> str:
        return f"Path(sizes {self._span()}, loss {self.losses[0]:.4g} to {self.losses[-1]:.4g})"

    def _span(self) -> str:
        return f"{self.entries[0].size} to {self.entries[-1].size}"

    @property
    def sizes(self) -> np.ndarray:
        """Number of atoms of every entry."""
        return np.array([e.size for e in self.entries])

    @property
    def losses(self) -> np.ndarray:
        """Training loss of every entry."""
        return np.array([e.loss for e in self.entries])

    @property
    def objectives(self) -> np.ndarray:
        """Training loss plus penalty of every entry."""
        return np.array([e.objective for e in self.entries])

    @property
    def gaps(self) -> np.ndarray:
        """Proven bound on every entry's distance from its optimum; see its certificate."""
        return np.array([e.certificate.gap for e in self.entries])

    @property
    def costs(self) -> np.ndarray:
        """Sum of the atoms' costs of every entry."""
        return np.array([e.cost for e in self.entries])

    @property
    def seconds(self) -> np.ndarray:
        """Time since the fit began at every entry."""
        return np.array([e.seconds for e in self.entries])


def rounds_needed(norm: float, epsilon: float) -> int:
    """Rounds that reach L(W*) + epsilon for ‖W*‖_{∞,1} ≤ norm: ⌈4 norm² / epsilon⌉ (Theorem 2)."""
    if not norm >= 0 or not epsilon > 0:
        raise ValueError(f"norm must be at least 0 and epsilon positive, not {norm} and {epsilon}")
    return math.ceil(4.0 * norm**2 / epsilon)


def best_of_every_size(
    entries: list[PathEntry], offered: list[PathEntry], cap: int
) -> list[PathEntry]:
    """The best entry of every size up to a cap, smallest first; the last one is the best of its."""
    best: dict[int, PathEntry] = {}
    for entry in (*entries, *offered):
        held = best.get(entry.size)
        if entry.size <= cap and (held is None or entry.objective <= held.objective):
            best[entry.size] = entry
    if entries[-1].size <= cap:
        best[entries[-1].size] = entries[-1]
    return [best[size] for size in sorted(best)]
