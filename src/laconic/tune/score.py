"""The score of an atom as a function of its parameters, and the score's gradient.

Let x_i(θ) be the column of an atom in scaled units, w_i the weight of row i, and R_i its residual,
the negative gradient of the loss in its scores. The centred residual is R̃_i = R_i − w_i Σ_l R_l. So
G_k = Σ_i R̃_ik x_i is the gradient in the weights of the centred column. The score is

    s(θ) = ‖G(θ)‖₁ / size(x(θ)).                                                              (1)

A column that is divided by its largest value, or by its standard deviation, has that number as its
size. So (1) is the score that the atom would have in the pool's list: eq. (7) of ShareBoost, for a
column with a scale of its own. Without this division an atom could raise its score just by growing.
It would then also leave the range [-1, 1] that Theorem 2 asks for. If the pool does not scale
columns, the size is 1, and the parameters themselves are of unit norm (`Tunable.settled`). For the
rule ``"projection"``, the size is the length of the part of the column that the columns in the
model do not explain.

Almost everywhere, s has the gradient Σ_i pull_i ∂x_i/∂θ with

    pull_i = (Σ_k sign(G_k) R̃_ik − s ∂size/∂x_i) / size,                                      (2)

because the sign of a sum does not move. `TunableColumns.slopes` multiplies (2) by the derivatives
of the column. The sizes have the derivatives

    largest value:       1 at the row of the largest value, 0 elsewhere (Danskin),
    unexplained length:  w_i (x − P x)_i / ‖x − P x‖_w, with P the projection in the weights w.  (3)

The standard deviation is the length of what a constant does not explain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from laconic.numeric.threads import row_blocks
from laconic.tune.contract import TunableColumns

Size = Callable[[np.ndarray], tuple[float, np.ndarray]]
"""Returns the size of a column, and the size's derivative in every entry."""


def no_size(x: np.ndarray) -> tuple[float, np.ndarray]:
    """Return 1 for every column."""
    return 1.0, np.zeros_like(x)


def largest_value(x: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the largest value of a column that is nowhere negative."""
    row = int(np.argmax(x))
    slope = np.zeros_like(x)
    slope[row] = 1.0
    return float(x[row]), slope


class Unexplained:
    """The weighted length of what other columns do not explain of a column, (3).

    Parameters
    ----------
    columns : ndarray of shape (n_rows, n_columns)
    weight : ndarray of shape (n_rows,)
        Weights that sum to one.
    """

    def __init__(self, columns: np.ndarray, weight: np.ndarray) -> None:
        root = np.sqrt(weight)
        self._basis = np.linalg.qr(columns * root[:, None])[0]
        self._root = root

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the length, and its derivative in every entry."""
        x = x * self._root
        rest = x - self._basis @ (self._basis.T @ x)
        length = float(np.sqrt(rest @ rest))
        # What rounding leaves of a column that is explained is not a direction.
        if length <= 1e-6 * float(np.sqrt(x @ x)):
            return 0.0, np.zeros_like(x)
        return length, self._root * rest / length


class Seen(NamedTuple):
    """The score at some parameters."""

    value: float
    """It is minus infinity if the column has no size."""
    pull: np.ndarray
    """Derivatives of the score in the entries of the column, (2)."""
    column: np.ndarray
    kept: Any = None
    """What `TunableColumns.slopes` needs, if all rows are one block."""


class Score:
    """The score of one atom with one column on some rows, (1).

    Parameters
    ----------
    atoms : TunableColumns
        The atom alone.
    X : array or CSR matrix
    residual : ndarray of shape (n_rows, n_outputs)
        The residual of the rows, with their weights in it.
    weight : ndarray of shape (n_rows,)
        Weights that sum to one.
    factor : float
        The column is this factor times the value of the atom.
    size : Size
    together : int
        Rows that are looked at together.
    """

    def __init__(
        self,
        atoms: TunableColumns,
        X: Any,
        residual: np.ndarray,
        weight: np.ndarray,
        factor: float,
        size: Size,
        together: int,
    ) -> None:
        self._atoms, self._X, self._factor, self._size = atoms, X, factor, size
        residual = residual.astype(np.float64)
        self._residual = residual - weight[:, None] * residual.sum(axis=0)
        self._blocks = row_blocks(X.shape[0], together)

    def at(self, parameters: list[Any]) -> Seen:
        """Return the score at some parameters."""
        x, kept = np.empty(self._X.shape[0]), None
        for s in self._blocks:
            values, kept = self._atoms.values(parameters, self._X[s])
            x[s] = values[0]
        x *= self._factor
        size, change = self._size(x)
        if not 0 < size < np.inf:
            return Seen(-np.inf, np.zeros_like(x), x)
        sums = self._residual.T @ x
        value = float(np.abs(sums).sum()) / size
        pull = (self._residual @ np.sign(sums) - value * change) / size
        return Seen(value, pull, x, kept if len(self._blocks) == 1 else None)

    def slopes(self, parameters: list[Any], seen: Seen) -> list[np.ndarray]:
        """Return the gradient of the score at parameters where it was seen."""
        total = [np.zeros_like(array) for array in parameters]
        for s in self._blocks:
            kept = seen.kept
            if kept is None:
                kept = self._atoms.values(parameters, self._X[s])[1]
            parts = self._atoms.slopes(kept, self._factor * seen.pull[None, s])
            for sums, part in zip(total, parts, strict=True):
                sums += part
        return total
