"""The path, which is the loop's result: atoms, weights, losses, certificates and times by size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from laconic.correct.objective import Certificate
from laconic.model.cost import Cost, model_cost
from laconic.model.feature_maps import FeatureMap, model_scores
from laconic.numeric.once import once


@dataclass(frozen=True, repr=False)
class PathEntry:
    """The model of one size.

    Attributes
    ----------
    numbers : tuple of int
        Numbers of the atoms in the pool.
    atoms : tuple
        Records of the atoms, in the order in which they were chosen.
    map : FeatureMap
        Computes the atoms' columns on new rows.
    weights : ndarray of shape (n_columns, n_outputs)
        Weights in scaled units, without the intercept.
    base : ndarray of shape (n_outputs,)
        Intercept of the model with centred columns.
    scales, means : ndarray of shape (n_columns,)
        Centred column = scale · input column − mean.
    loss, objective : float
        L and Φ = L + Ω on the training rows.
    gains : tuple of float
        Share of each atom in the decrease of L. The shares sum to the decrease. An atom that is
        swapped in takes over the gain of the atom that it replaces, and adds its own. If a sweep
        drops an atom, the others evenly share its gain, less the increase of L. With a price on
        atoms, the decrease is shared out along the ray to the weights (see
        `laconic.boost.shares`).
    certificate : Certificate
        Bound on the distance of the weights from the optimum over these columns. A search of
        TotalQBoost solves many problems. There, evaluations and products count only the work of
        recording the entry. If the atoms were tuned, it holds on the rows that the weights were
        last solved or compared on (see `laconic.tune.path`).
    inner : float
        ⟨∇L(W), W⟩, the first term of the bound from Lemma 3.
    steepest : float
        max_r ‖∇_r L(W)‖₁ over all columns of the pool and the intercept. For TotalQBoost, whose l1
        term counts every entry of W, it is the largest entry of the gradient over the pool. It is
        NaN until the next scoring pass computes it.
    cost : float
        Cost of the model, as the setting ``costs`` counts it: the number of atoms, the price of the
        features that are read, each paid once, or the operations of the atoms.
    seconds : float
        Time since the fit began.
    footprint : int or None
        Bytes of the exported model on the chip, if the fit has a cap on them.
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
    footprint: int | None = None

    def __repr__(self) -> str:
        return f"PathEntry(size {self.size}, loss {self.loss:.4g}, objective {self.objective:.4g})"

    @property
    def size(self) -> int:
        """Number of atoms."""
        return len(self.atoms)

    @once
    def predictor_cost(self) -> Cost:
        """All that the predictor costs: atoms, features, operations and bytes."""
        return model_cost(self.map, self.size, self.weights, self.base)

    def input_weights(self) -> np.ndarray:
        """Return the weights in the units of the input."""
        return self.weights * self.scales[:, None]

    @property
    def intercept(self) -> np.ndarray:
        """Intercept of the model with columns that are not centred."""
        return self.base - self.means @ self.weights

    def scores(self, X: Any) -> Any:
        """Return scores (n_rows, n_outputs) on new rows."""
        return model_scores(self.map, X, self.input_weights(), self.intercept)

    def excess_loss_bound(self, norm: float) -> float:
        """Return a bound on L(W) − L(W*) for every W* with ‖W*‖_{∞,1} ≤ norm (from Lemma 3).

        The bound is ⟨∇L(W), W⟩ + norm · max_r ‖∇_r L(W)‖₁ in scaled units. It holds because L is
        convex. For an entry of TotalQBoost the norm is ‖W*‖₁.
        """
        if not norm >= 0:
            raise ValueError(f"norm must be at least 0, not {norm}.")
        if math.isnan(self.steepest):
            raise ValueError(
                "This size has no bound, because the fit was stopped before its gradients were "
                "known, or because its atoms were tuned. Ask for a smaller size, or path_.chosen."
            )
        return self.inner + norm * self.steepest


class Path:
    """Models of growing size, all from one run.

    Index the path by size: ``path[5]`` is the entry of five atoms. In a path of
    ShareBoost without refinement, each entry has the atoms of the previous entry and one more.

    Attributes
    ----------
    entries : list of PathEntry
    chosen : Path or None
        The path as it was chosen, if the fit tunes atoms afterwards, and None if not. Where no
        tuned model was accepted, both have the same entry.
    """

    def __init__(self, entries: list[PathEntry], chosen: Path | None = None) -> None:
        self.entries = entries
        self.chosen = chosen

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[PathEntry]:
        return iter(self.entries)

    def __getitem__(self, size: int) -> PathEntry:
        for entry in self.entries:
            if entry.size == size:
                return entry
        raise KeyError(f"The path has no model of {size} atoms. Its sizes are {self._span()}.")

    def __repr__(self) -> str:
        return f"Path(sizes {self._span()}, loss {self.losses[0]:.4g} to {self.losses[-1]:.4g})"

    def _repr_html_(self) -> str:
        from laconic.boost.html_path import html_path

        return html_path(self)

    def is_tuned(self, size: int) -> bool:
        """Return whether a size has tuned atoms, which are not in the pool.

        It is False if the size was not tuned, or if its tuned model was not accepted.
        """
        return self.chosen is not None and self[size] is not self.chosen[size]

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
        """Proven bound on each entry's distance from its optimum (see its certificate)."""
        return np.array([e.certificate.gap for e in self.entries])

    @property
    def costs(self) -> np.ndarray:
        """Cost of every entry, as the setting ``costs`` counts it."""
        return np.array([e.cost for e in self.entries])

    @property
    def features(self) -> np.ndarray:
        """Number of distinct features that every entry reads."""
        return np.array([e.predictor_cost.features for e in self.entries])

    @property
    def operations(self) -> np.ndarray:
        """Operations of every entry for one row."""
        return np.array([e.predictor_cost.operations for e in self.entries])

    @property
    def bytes(self) -> np.ndarray:
        """Bytes of the arrays of every entry; see `laconic.model.cost.Cost`."""
        return np.array([e.predictor_cost.bytes for e in self.entries])

    @property
    def footprints(self) -> np.ndarray:
        """Bytes of every entry on the chip. They are known only if the fit has a cap on them."""
        if any(e.footprint is None for e in self.entries):
            raise AttributeError("the fit does not know a chip; set max_bytes and chip")
        return np.array([e.footprint for e in self.entries])

    @property
    def seconds(self) -> np.ndarray:
        """Seconds from the start of the fit to every entry."""
        return np.array([e.seconds for e in self.entries])


def rounds_needed(norm: float, epsilon: float) -> int:
    """Return the number of rounds that suffices for a loss of at most L(W*) + epsilon.

    It is ⌈4 norm² / epsilon⌉, for every W* with ‖W*‖_{∞,1} ≤ norm (Theorem 2).
    """
    if not norm >= 0 or not epsilon > 0:
        raise ValueError(f"norm must be at least 0 and epsilon positive, not {norm} and {epsilon}.")
    return math.ceil(4.0 * norm**2 / epsilon)


def best_of_every_size(
    entries: list[PathEntry], offered: list[PathEntry], allowed: Callable[[PathEntry], bool]
) -> list[PathEntry]:
    """Return the best allowed entry of every size, smallest first.

    If the last of ``entries`` is allowed, it counts as the best of its size.
    """
    best: dict[int, PathEntry] = {}
    for entry in filter(allowed, (*entries, *offered)):
        held = best.get(entry.size)
        if held is None or entry.objective <= held.objective:
            best[entry.size] = entry
    if allowed(entries[-1]):
        best[entries[-1].size] = entries[-1]
    return [best[size] for size in sorted(best)]
