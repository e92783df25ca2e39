"""Hinges as functions of their directions and knots.

A hinge is z = c · max(0, ⟨w, (x − μ)/s⟩ − β), where μ and s are means and standard deviations of
the inputs, and c is a constant of the hinge. So in input units the direction is c·w/s. The norm of
w is 1, and c does not change. The derivatives are

    ∂z/∂w = c · 1[z > 0] (x − μ)/s,   ∂z/∂β = −c · 1[z > 0].

A hinge keeps its inputs: an entry of w whose input the hinge does not read stays zero. The same
code runs for arrays and for tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from laconic.model.hinges import HingeAtom, HingesMap
from laconic.numeric.namespaces import contiguous, is_tensor, to_host
from laconic.numeric.threads import Threads, row_blocks
from laconic.pools.scaling import ColumnsSurvey, survey_columns
from laconic.tune.batches import there
from laconic.tune.contract import EDGE, Tunable
from laconic.tune.kinds import TunableKind

# Numbers that means and deviations are computed of together.
TOGETHER = 1 << 22


class HingeKind(TunableKind):
    """See `laconic.tune.kinds.TunableKind`."""

    def start(
        self, chosen: HingesMap, tuned: HingesMap | None, own: Sequence[int], free: bool
    ) -> HingesMap:
        """Return the map to start from. Tuned hinges never take more than chosen ones."""
        if tuned is None:
            return chosen
        known, learned = chosen.atoms(), tuned.atoms()
        return HingesMap.of(
            [atom if n < 0 else learned[n] for atom, n in zip(known, own, strict=True)]
        )

    def tunable(
        self, given: HingesMap, X: Any, threads: Threads, device: Any, free: bool
    ) -> Tunable:
        """Return the hinges as functions of their parameters."""
        return TunedHinges(given, X)


class TunedHinges:
    """Hinges as functions of their parameters; see `laconic.tune.contract.Tunable`.

    The parameters are the directions w of all hinges in standardised inputs, (n_hinges, n_inputs),
    and their knots β, (n_hinges, 1).

    Parameters
    ----------
    given : HingesMap
    X : array or tensor of shape (n_rows, n_features)
        Rows that inputs are standardised by.
    """

    def __init__(self, given: HingesMap, X: Any) -> None:
        self._atoms = given.atoms()
        reads = sorted({f for atom in self._atoms for f in atom.features})
        features = np.array(reads, dtype=np.int64)
        self._place = {feature: place for place, feature in enumerate(reads)}
        mean, spread = moments(X, features)
        self._spread, self._mean = spread, mean
        directions = np.zeros((len(self._atoms), len(reads)))
        knots = np.array([atom.knot for atom in self._atoms])
        for line, atom in zip(directions, self._atoms, strict=True):
            for feature, value in zip(atom.features, atom.values, strict=True):
                line[self._place[feature]] += value
        knots -= directions @ mean
        directions *= spread
        read = (directions != 0).astype(float)
        # Squares of entries over the largest one neither overflow nor vanish.
        largest = np.abs(directions).max(1, initial=0.0)
        largest = np.where(largest > 0, largest, 1.0)
        size = largest * np.linalg.norm(directions / largest[:, None], axis=1)
        self._size = np.where(size > 0, size, 1.0)
        terms = max(float(read.sum(1).mean()), 1.0)
        self.units = [terms**-0.5, 1.0]
        start = directions / self._size[:, None], (knots / self._size)[:, None]
        self.start = [there(array, X) for array in start]
        constants = mean, 1.0 / spread, self._size, read
        self._there = [there(array, X) for array in constants]
        self._columns = there(features, X)

    def values(self, parameters: list[Any], X: Any) -> tuple[Any, Any]:
        """Return the columns for some rows, and what `slopes` needs."""
        mean, factor, size, _ = self._there
        rows = X[:, self._columns]
        rows = rows.toarray() if sparse.issparse(rows) else rows
        rows = contiguous(rows, "float64") - mean
        rows *= factor
        found = parameters[0] @ rows.T - parameters[1]
        positive = found > EDGE
        return found * positive * size[:, None], (rows, positive)

    def slopes(self, kept: Any, pull: Any) -> list[Any]:
        """Return Σ_i Σ_j pull_ji ∂z_ij/∂θ."""
        rows, positive = kept
        _, _, size, read = self._there
        force = pull * positive * size[:, None]
        return [(force @ rows) * read, -force.sum(1)[:, None]]

    def settled(self, parameters: list[Any]) -> list[Any]:
        """Return directions of unit norm, with knots at the same places."""
        directions, knots = parameters
        norm = ((directions * directions).sum(1) ** 0.5)[:, None]
        norm = norm + (norm == 0)
        return [directions / norm, knots / norm]

    def along(self, parameters: list[Any], slopes: list[Any]) -> list[Any]:
        """Return the gradient of f(w/‖w‖, β/‖w‖) at ‖w‖ = 1, from that of f(w, β)."""
        (directions, knots), (slope, of_knot) = parameters, slopes
        radial = (directions * slope).sum(1)[:, None] + knots * of_knot
        return [slope - directions * radial, of_knot]

    def map(self, parameters: list[Any]) -> HingesMap:
        """Return the map of the hinges that these parameters make."""
        directions, knots = (np.asarray(to_host(array)) for array in parameters)
        directions = directions * self._size[:, None] / self._spread
        knots = knots[:, 0] * self._size + directions @ self._mean
        made = []
        for atom, line, knot in zip(self._atoms, directions, knots.tolist(), strict=True):
            values = tuple(float(line[self._place[feature]]) for feature in atom.features)
            made.append(HingeAtom(atom.features, values, knot))
        return HingesMap.of(made)


def moments(X: Any, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations of some columns. A constant column has deviation 1."""
    mean, spread = np.empty((2, len(features)))
    every = there(np.full(X.shape[0], 1.0 / X.shape[0]), X)
    for s in row_blocks(len(features), max(1, TOGETHER // len(every))):
        found = _sizes(X[:, features[s]], every)
        assert found.mean is not None
        assert found.deviation is not None
        mean[s], spread[s] = found.mean * found.peak, found.deviation * found.peak
    return mean, np.where(spread > 0, spread, 1.0)


def _sizes(X: Any, weight: Any) -> ColumnsSurvey:
    """Return the sizes of all columns, found where they are."""
    if not is_tensor(X):
        return survey_columns(X, "std", weight)
    from laconic.device.surveys import sizes_of_columns
    from laconic.pools.columns import Columns

    return sizes_of_columns(Columns("std"), X, weight)
