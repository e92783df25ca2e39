"""The contract of atoms that can be tuned.

A column of a model is a function z_j(x; θ) of a row and of the parameters of the chosen atoms. To
tune them, the objective's gradient in θ is needed:

    ∂L/∂θ = Σ_i Σ_j (∂L/∂z_ij) ∂z_ij/∂θ = −Σ_i Σ_j s_j ⟨R_i, W_j⟩ ∂z_ij/∂θ,

where R_i is the residual of row i (the negative gradient in its scores, weight included), W_j are
the weights of column j in scaled units, and s_j is the factor of the column. So atoms only have to
multiply given numbers by the derivatives of their columns. They know neither the loss nor the
weights.

Atoms of many columns each need not write them down. They get the weights V_j = s_j W_j, and answer
with scores Σ_j V_j' z_j and with sums over rows.
"""

from __future__ import annotations

from typing import Any, Protocol

from laconic.model.feature_maps import FeatureMap

EDGE = 1e-9
"""Rows so near to the edge of an atom, in its own units, count as outside. Edges are often drawn
through rows, and rounding must not decide on which side these are."""


class Tunable(Protocol):
    """The atoms of a map as functions of their parameters.

    Atoms also have the methods of `TunableColumns` or of `TunableScores`.

    Parameters are a list of arrays, each with one line for every part that has a scale of its own,
    such as a template. All arrays are of NumPy, or all are tensors on one device.
    """

    start: list[Any]
    """The parameters of the map that was given."""
    units: list[float]
    """The size of a small but clear change of an entry of each array."""

    def settled(self, parameters: list[Any]) -> list[Any]:
        """Return the nearest parameters that are allowed, such as templates of unit norm."""

    def map(self, parameters: list[Any]) -> FeatureMap:
        """Return the map of the atoms that these parameters make."""


class TunableColumns(Tunable, Protocol):
    """Atoms that write their columns down."""

    def values(self, parameters: list[Any], X: Any) -> tuple[Any, Any]:
        """Return the columns for some rows, (n_columns, n_rows), and what `slopes` needs.

        The rows are an array, a sparse matrix or a tensor.
        """

    def slopes(self, kept: Any, pull: Any) -> list[Any]:
        """Return Σ_i Σ_j pull_ji ∂z_ij/∂θ for the rows of `values`, like the parameters."""


class MovableAtoms(TunableColumns, Protocol):
    """Atoms that can also be moved when they are chosen; see `laconic.tune.at_selection`."""

    def along(self, parameters: list[Any], slopes: list[Any]) -> list[Any]:
        """Return the gradient of f(settled(θ)) at settled parameters, from the gradient of f(θ)."""


class TunableScores(Tunable, Protocol):
    """Atoms of many columns, which answer with what the weights make of them."""

    def scores(self, parameters: list[Any], X: Any, weights: Any) -> tuple[Any, Any]:
        """Return Σ_j V_j' z_j for some rows, (n_outputs, n_rows), and what `sums` needs.

        ``weights`` are the V_j, (n_columns, n_outputs).
        """

    def sums(self, kept: Any, residual: Any) -> tuple[list[Any], Any]:
        """Return Σ_i Σ_j ⟨R_i, V_j⟩ ∂z_ij/∂θ, like the parameters, and Σ_i z_ij R_i' for all j."""
