"""Θ of eq. (1): the discount for the slacks of neighbours, for weighted rows.

Row i stands for s_i copies (its sample weight). The slack of a copy costs p_i (its class weight).
Let w_i = s_i p_i, and let c_ij be 1/√(d_i d_j) or one constant c. The quadratic form of eq. (1) is

    ξᵀΘξ = Σ_i w_i ξ_i² − η [Σ_{j ∈ N_i} w_i w_j c_ij ξ_i ξ_j + Σ_i w_i (w_i − p_i) c_ii ξ_i²].

It is the form of s_i rows of weight p_i each. Copies are neighbours of each other and share their
slack. So a sample weight of 2 is the same as the row twice, whatever the class weights. Degrees add
up weights, d_i = Σ_{j ∈ N_i} w_j + w_i − p_i. 1/c is the largest possible degree, which is Σ_i w_i
less the smallest min(s_i, 1) p_i (m − 1 in the paper). The mean is over m = Σ_i w_i. If s_i < 1,
the row has no other copy, so w_i − p_i is taken as 0. The cost of the row's slack and the discount
of its neighbours are then s_i times those of a whole row.

A price counts for the row and for its neighbours alike. The slack that a row is allowed, (Mξ)_i
below, is η times a mean of its neighbours' slacks. Slacks with a high price count for more in this
mean. (This is exact if degrees are equal.) Without a discount, ξᵀΘξ = Σ_i w_i ξ_i². Only then is a
class weight of 2 the same as the rows of the class twice. Multiplying all prices by one number
changes nothing.

Θ = W − ηB with a non-negative B. By degree, the row sums of B (in the scale of u = √d) equal W. By
pairs, they are at most W. In both cases the eigenvalues of Θ relative to W lie in [1 − η, 1 + η].
Hence Θ is positive semidefinite for η ≤ 1, and positive definite for η < 1.
"""

from __future__ import annotations

import numpy as np

from laconic.clumping.graph import NeighbourGraph
from laconic.numeric.threads import Threads

NORMALIZE = ("degree", "pairs")
# Above this rate, conjugate gradients speed up the contraction.
SLOW = 0.6
# Most conjugate gradient iterations between two steps of the contraction.
MOST_CONJUGATE = 100


class Theta:
    """The quadratic form, by means of M = I − W⁻¹Θ ≥ 0.

    (Mξ)_i is the slack that the neighbours of row i allow it.

    Parameters
    ----------
    graph : NeighbourGraph
    discount : float
        η in [0, 1]. It must be below 1 with ``normalize="degree"``.
    normalize : {"degree", "pairs"}
        The choice of c_ij above. ``"pairs"`` is the paper's.
    weight : ndarray of shape (n_rows,), default=None
        Positive sample weights s, by default 1 each.
    threads : Threads, default=None
        Threads that compute.
    price : ndarray of shape (n_rows,), default=None
        Positive prices p of the slack of one copy, by default 1 each.

    Attributes
    ----------
    weight : ndarray of shape (n_rows,)
        w, copies times prices.
    total : float
        m, the sum of the weights.
    scale : ndarray of shape (n_rows,)
        A positive u with Mu ≤ rate · u. M multiplies max |ξ_i| / u_i by at most ``rate``.
    scale_excess : ndarray of shape (n_rows,)
        u − Mu > 0.
    rate : float
        η by degree, and η c max d_i by pairs.
    """

    def __init__(
        self,
        graph: NeighbourGraph,
        discount: float,
        normalize: str = "degree",
        weight: np.ndarray | None = None,
        threads: Threads | None = None,
        price: np.ndarray | None = None,
    ) -> None:
        if normalize not in NORMALIZE:
            raise ValueError(f"normalize must be 'degree' or 'pairs', not {normalize!r}")
        if not 0 <= discount <= 1 or (discount == 1 and normalize == "degree"):
            allowed = "[0, 1)" if normalize == "degree" else "[0, 1]"
            raise ValueError(
                f"discount must be in {allowed} with normalize={normalize!r}, not {discount!r}"
            )
        self.graph = graph
        self.discount = float(discount)
        self.threads = threads
        weight = np.ones(graph.n_rows) if weight is None else weight
        price = np.ones(graph.n_rows) if price is None else price
        self.weight = weight * price
        self.total = float(self.weight.sum())
        copies = np.maximum(weight - 1.0, 0.0) * price
        degree = self._neighbour_sums(self.weight) + copies
        if normalize == "degree":
            joined = degree > 0
            self.scale = np.sqrt(np.where(joined, degree, 1.0))
            self._inverse = np.where(joined, 1.0 / self.scale, 0.0)
            self.rate = self.discount if joined.any() else 0.0
        else:
            largest = self.total - float((np.minimum(weight, 1.0) * price).min())
            inverse = 1.0 / np.sqrt(largest) if largest > 0 else 0.0
            self.scale = np.ones(graph.n_rows)
            self._inverse = np.full(graph.n_rows, inverse)
            self.rate = self.discount * min(float(degree.max()) * inverse**2, 1.0)
        if self.rate > 1.0 - 1e-9:
            why = " because a row has all other rows as neighbours" * (normalize == "pairs")
            raise ValueError(
                f"discount={discount!r} with normalize={normalize!r} leaves nothing to "
                f"minimise{why}; lower discount" + " or radius" * (normalize == "pairs")
            )
        self._copies = copies * self._inverse**2
        self.scale_excess = self.scale - self.spread(self.scale)

    def _neighbour_sums(self, values: np.ndarray) -> np.ndarray:
        return self.graph.sums(values, self.threads)

    def spread(self, slack: np.ndarray) -> np.ndarray:
        """Return Mξ, the slack that every row's neighbours allow it."""
        if self.rate == 0.0:
            return np.zeros_like(slack)
        sums = self._neighbour_sums(self.weight * self._inverse * slack)
        sums *= self._inverse
        sums += self._copies * slack
        sums *= self.discount
        return sums

    @property
    def factors(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The factors a, b and c of (Mξ)_i = a_i Σ_{j ∈ N_i} b_j ξ_j + c_i ξ_i."""
        left = self.discount * self._inverse
        return left, self.weight * self._inverse, self.discount * self._copies

    def value(self, slack: np.ndarray, spread: np.ndarray) -> float:
        """Return ξᵀΘξ / (2m), given Mξ."""
        return 0.5 * float(np.dot(self.weight * slack, slack - spread)) / self.total

    def relax(
        self, floor: np.ndarray, start: np.ndarray, tol: float, most: int = 100_000
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the slack that minimises ξᵀΘξ above a floor: problem (1) in ξ, for fixed w.

        The method is the contraction ξ ← max(floor, Mξ). Its fixed point satisfies the optimality
        conditions ξ ≥ floor, Θξ ≥ 0, and one of them with equality in every row. Each step is also
        a step of projected gradient descent, so it never raises the value. If the rate is slow,
        conjugate gradients follow each step. They solve ξ = Mξ roughly for the rows above the
        floor. They are left out after a step that gained little, for example because rows changed
        sides.

        Parameters
        ----------
        floor : ndarray of shape (n_rows,)
            The hinge, max(0, 1 − y⟨w, x⟩).
        start : ndarray of shape (n_rows,)
            Any slack. One near the answer saves steps.
        tol : float
            Stop if a step would change no slack by more than this times ``scale``.
        most : int
            Most steps.

        Returns
        -------
        slack, spread : ndarray of shape (n_rows,)
            ξ, which is at least the floor, and Mξ.
        """
        slack = np.maximum(floor, start)
        spread, before, fresh = self.spread(slack), np.inf, True
        for _ in range(most):
            step = np.maximum(floor, spread)
            change = float((np.abs(step - slack) / self.scale).max(initial=0.0))
            if change <= tol:
                if fresh:
                    break
                # Mξ was updated along the way. Confirm it from the slack alone.
                slack = np.maximum(floor, slack)
                spread, fresh = self.spread(slack), True
                continue
            slack, spread, fresh = step, self.spread(step), True
            if self.rate > SLOW and change < 0.5 * before:
                slack, spread = self._freed(slack, spread, spread > floor)
                fresh = False
            before = change
        return slack, spread

    def _freed(
        self, slack: np.ndarray, spread: np.ndarray, free: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Solve ξ = Mξ for the free rows to a tenth of the current error. Return ξ and Mξ."""
        r = np.where(free, spread - slack, 0.0)
        weight, p = self.weight, r
        rr = first = float(np.dot(weight * r, r))
        for _ in range(MOST_CONJUGATE):
            if not rr > 0.01 * first:
                break
            Mp = self.spread(p)
            Hp = np.where(free, p - Mp, 0.0)
            t = rr / float(np.dot(weight * p, Hp))
            slack, spread = slack + t * p, spread + t * Mp
            r = r - t * Hp
            fresh = float(np.dot(weight * r, r))
            p = r + (fresh / rr) * p
            rr = fresh
        return slack, spread

    def dense(self) -> np.ndarray:
        """Return Θ itself, m² numbers. For weights of 1 it is the paper's matrix."""
        sandwich = self.graph.to_sparse().toarray() * np.outer(self._inverse, self._inverse)
        sandwich *= np.outer(self.weight, self.weight)
        sandwich += np.diag(self.weight * self._copies)
        return np.diag(self.weight) - self.discount * sandwich
